"""Values on the command line: read and checked before any model is touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from fmilin.errors import UsageError
from fmilin.export.files import check_output

INPUTS = "fmilin.cli.inputs"
"""Where click's context has the files that the present command reads."""


class NewFile(click.Path):
    """The type of an option that names a file to write, not one to read; the shell completes its ``suffixes``."""

    def __init__(self, suffixes: Sequence[str] = ()) -> None:
        super().__init__(path_type=Path)
        self.suffixes = tuple(suffixes)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that the typed one may become; without a dot in it, files that are there already."""
        stem, dot, typed = incomplete.rpartition(".")
        if not dot or not Path(stem).name or "/" in typed:
            return super().shell_complete(ctx, param, incomplete)
        return [CompletionItem(f"{stem}{s}") for s in self.suffixes if s.startswith(f".{typed}")]


def names(text: str | None, option: str) -> list[str] | None:
    """Split ``A,B,...`` at the commas outside brackets and backquotes; the empty text is the empty list."""
    if text is None:
        return None
    if not text.strip():
        return []
    items = [_unquote(item) for item in _at_commas(text)]
    if "" in items:
        raise UsageError(f"{option} '{text}': a name is missing between two commas. Write for example {option} A,B,C.")
    if twice := sorted({item for item in items if items.count(item) > 1}):
        raise UsageError(f"{option} '{text}': {', '.join(twice)} occurs more than once. Name each once.")
    return items


def _at_commas(text: str) -> list[str]:
    """Split at the commas outside parentheses, brackets and backquotes."""
    items, start, depth, quoted = [], 0, 0, False
    for position, char in enumerate(text):
        quoted ^= char == "`"
        if not quoted:
            depth = max(0, depth + (char in "([") - (char in ")]"))
        if char == "," and not quoted and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    return [*items, text[start:].strip()]


def split_name(text: str) -> tuple[str, str]:
    """Return the name, without backquotes, and what stands behind the last "="; an empty name without one."""
    name, equals, value = text.rpartition("=")
    return (_unquote(name.strip()), value.strip()) if equals else ("", "")


def _unquote(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name


def assignments(texts: Sequence[str], option: str = "--set") -> dict[str, float]:
    """Return ``NAME=VALUE`` texts as values by name; ``true`` and ``false`` are values of Boolean parameters."""
    values: dict[str, float] = {}
    for text in texts:
        name, value = split_name(text)
        if not name:
            raise UsageError(f"{option} '{text}' is not of the form NAME=VALUE. Write for example {option} phi=1.5.")
        if name in values:
            raise UsageError(f"{option} sets '{name}' twice. Keep one of them.")
        values[name] = number(value, f"{option} '{text}'")
    return values


def assignment_lists(texts: Sequence[str], option: str) -> dict[str, float]:
    """Return ``A=VALUE,B=VALUE`` texts as values by name."""
    return assignments([item for text in texts for item in names(text, option) or []], option)


def guesses(texts: Sequence[str], option: str) -> list[dict[str, float]]:
    """Return each text ``A=VALUE,B=VALUE`` as values by name."""
    return [assignments(names(text, option) or [], option) for text in texts]


def bounds(texts: Sequence[str], option: str) -> dict[str, tuple[float, float]]:
    """Return ``NAME=LO:HI`` as a pair by name; a missing side is infinite."""
    pairs: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        low, colon, high = pair.partition(":")
        if not (equals and colon and name.strip()):
            raise UsageError(
                f"{option} '{text}' is not of the form NAME=LO:HI. Write for example {option} torque=-5:5."
            )
        name = name.strip().strip("`")
        if name in pairs:
            raise UsageError(f"{option}: '{name}' has bounds twice. Keep one pair of bounds.")
        lower = assignments([f"side={low}"], option)["side"] if low.strip() else -math.inf
        upper = assignments([f"side={high}"], option)["side"] if high.strip() else math.inf
        pairs[name] = (lower, upper)
    return pairs


def number(text: str, where: str) -> float:
    """Return the finite number that a text says; true and false are 1 and 0."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = float(text)
    except ValueError:
        raise UsageError(
            f"{where}: '{text}' is not a number. Write for example 1.5 or -2e-3, or true or false."
        ) from None
    if not math.isfinite(value):
        raise UsageError(f"{where}: the value must be finite.")
    return value


def floats(text: str | None, separator: str, refusal: str, count: int | None = None) -> tuple[float, ...]:
    """Return the numbers of a text, so many, none without a text; ``refusal`` is said of any other one."""
    try:
        values = [] if text is None else [float(item) for item in text.split(separator)]
    except ValueError:
        raise UsageError(refusal) from None
    if values and count not in (None, len(values)):
        raise UsageError(refusal)
    return tuple(values)


def finite(value: float | None, option: str) -> float | None:
    """Return ``value``, which must not be NaN or infinite."""
    if value is not None and not math.isfinite(value):
        raise UsageError(f"{option} {value}: the value must be finite.")
    return value


def check_outputs(paths: Sequence[Path]) -> list[Path]:
    """Return ``paths`` after making sure that every one can be written."""
    for path in paths:
        check_output(path)
    require_apart(paths)
    return list(paths)


def require_apart(outputs: Sequence[Path]) -> None:
    """Make sure that files to write are different from each other and from those that the present command reads."""
    context = click.get_current_context(silent=True)
    inputs: Sequence[Path] = () if context is None else context.meta.get(INPUTS, ())
    for i, output in enumerate(outputs):
        if any(_same(output, other) for other in outputs[:i]):
            raise UsageError(f"The outputs name the same file twice: '{output}'. Keep one.")
        for source in inputs:
            if _same(output, source):
                raise UsageError(
                    f"'{output}' would overwrite '{source}', the file that is read. Choose another name for the output."
                )


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or cannot
        return one.absolute() == other.absolute()
