"""Errors, with location and remedy: each class has an exit status, a sentence and data."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import ClassVar

MAX_COMPARED_NAMES = 20_000  # names among which the nearest are searched for
_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode: controls, directions, halves, line separators


def escape_controls(text: str, allowed: str = "\t") -> str:
    r"""Return the text with control characters, which a terminal would obey, as escapes that it shows.

    So are characters that change the direction of writing or are not visible.

    >>> print(escape_controls("arm\x1b[2J"))
    arm\x1b[2J
    """
    visible = text
    for character in allowed:
        visible = visible.replace(character, "")
    if visible.isprintable():
        return text
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in _CONTROLS and c not in allowed else c
        for c in text
    )


class FmilinError(Exception):
    """Base of everything that fmilin raises on purpose: one paragraph that says what, where and what to do."""

    exit_status: ClassVar[int] = 1

    def __str__(self) -> str:
        return escape_controls(super().__str__(), "\n\t")  # it may quote a file


class UsageError(FmilinError, ValueError):
    """The request itself is wrong: an option, a wrong count of coordinates, an unknown suffix."""

    exit_status = 2


class UnknownNameError(UsageError):
    """A name that the model does not have: ``name``, with the nearest ones that it has, ``suggestions``, best first."""

    def __init__(self, message: str, *, name: str = "", suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.suggestions = suggestions

    @classmethod
    def among(cls, name: str, names: Iterable[str], what: str) -> UnknownNameError:
        """Return the error for ``name``, which should have been ``what`` (``"an input"``) out of ``names``."""
        name = str(name)  # keys of a mapping may be anything
        names = list(names)
        suggestions = nearest_names(name, names)
        if suggestions:
            hint = "Did you mean " + " or ".join(f"'{s}'" for s in suggestions) + "?"
        elif names:
            hint = f"Known: {join_first(names, 8)}."
        else:
            hint = "There is none."
        return cls(f"'{name}' is not {what}. {hint}", name=name, suggestions=suggestions)


class ModelError(FmilinError):
    """The model cannot be read or evaluated, is not supported, or failed to initialize.

    ``costs_start``: whether the model must start anew before its next evaluation.
    """

    exit_status = 3
    costs_start = False


def count_omitted(count: int, most: int, what: str = "") -> str:
    """Return ``and 7 more`` where ``count`` exceeds ``most`` by 7, ``and 7 more rows`` with ``what``; else nothing."""
    return f"and {count - most} more {what}".rstrip() if count > most else ""


def cut_list(pieces: Iterable[str], most: int) -> list[str]:
    """Return the first ``most`` pieces, and behind them how many more there are."""
    pieces = list(pieces)
    remaining = count_omitted(len(pieces), most)
    return [*pieces[:most], remaining] if remaining else pieces


def join_first(pieces: Iterable[str], most: int, separator: str = ", ") -> str:
    """Return the first ``most`` pieces as a text that says how many more there are: ``a, b and 7 more``."""
    pieces = list(pieces)
    text = separator.join(pieces[:most])
    remaining = count_omitted(len(pieces), most)
    if not remaining:
        return text
    return f"{text} {remaining}" if separator == ", " else f"{text}{separator}{remaining}"


def quote_first(names: Iterable[str], most: int = 4) -> str:
    """Return the first names in quotes, and how many more there are: ``'a', 'b', 'c', 'd' and 7 more``."""
    return join_first((f"'{name}'" for name in names), most)


def missing_file(path: PurePath) -> ModelError:
    """Return what is said where a model's file should be."""
    return ModelError(f"There is no file '{path}'. Check the path and the working directory.")


class ConstraintError(FmilinError, ValueError):
    """The constraints are wrong: inconsistent at the point, not invariant, or about unknown names.

    ``residuals``: how far each offending constraint is from zero, by its text.
    """

    exit_status = 4

    def __init__(self, message: str, *, residuals: Mapping[str, float] | None = None) -> None:
        super().__init__(message)
        self.residuals: dict[str, float] = dict(residuals or {})


class NumericalError(FmilinError, ArithmeticError):
    """The numbers do not come out: no convergence, a singular choice of coordinates, NaN, an event at the point.

    ``condition_number``: of the matrix that was singular, where that is the reason; ``variable``: the one at fault,
    where there is one; else None.
    """

    exit_status = 5

    def __init__(self, message: str, *, condition_number: float | None = None, variable: str | None = None) -> None:
        super().__init__(message)
        self.condition_number = condition_number
        self.variable = variable


class KinkError(NumericalError):
    """The model answers small moves up and down differently: there is no linear model of both sides."""


class ModelCrashError(FmilinError):
    """The model's own code crashed, hung or was killed. The model can be opened again."""

    exit_status = 6


REFUSALS = (UsageError, ModelError, ConstraintError, NumericalError)
"""The errors of a model that cannot be evaluated; a crash is not among them, and is passed on."""


def _resembling(name: str, names: list[str]) -> list[str]:
    """Return those that begin or end like ``name`` and are about as long: a million names take too long otherwise."""
    begin, end, shortest, longest = name[:4].lower(), name[-4:].lower(), 0.7 * len(name) - 1, 1.4 * len(name) + 1
    folded = ((k, k.lower()) for k in names if shortest <= len(k) <= longest)
    return [k for k, low in folded if low.startswith(begin) or low.endswith(end)][:MAX_COMPARED_NAMES]


def nearest_names(name: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return the names out of ``names`` that look most like ``name``, best first."""
    names = list(names)
    if len(names) > MAX_COMPARED_NAMES:
        names = _resembling(name, names)
    folded = {k.lower(): k for k in names}
    return tuple(folded[c] for c in difflib.get_close_matches(name.lower(), list(folded), n=count, cutoff=0.5))
