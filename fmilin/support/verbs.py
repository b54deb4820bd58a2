"""Verbs that people type on a result and that folders above do: ``lin.save``, ``lin.plot.bode``, ``repr(lin)``.

Who does a verb stands in a table that the package gives: results know no files, pictures or reports, and load none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

Result = TypeVar("Result")
_performers: dict[str, str] = {}


def hand_in(performers: Mapping[str, str]) -> None:
    """Say who does which verb: ``"module:function"`` by ``"Class.verb"``."""
    _performers.update(performers)


def done_by(verb: str) -> Callable[..., Any]:
    """Return the function that does a verb; its module is loaded now."""
    module, _, function = _performers[verb].partition(":")
    performer: Callable[..., Any] = getattr(import_module(module), function)
    return performer


def perform(verb: str, /, *arguments: Any, **options: Any) -> Result:  # type: ignore[type-var]
    """Do a verb; the result has the type that the caller declares, as a test makes sure."""
    result: Result = done_by(verb)(*arguments, **options)
    return result


def text_of(thing: object) -> str:
    """Return what ``repr`` shows of a result: at most 40 lines."""
    return perform("text_of", thing)


def html_of(thing: object) -> str:
    """Return what a notebook shows of it."""
    return perform("html_of", thing)


class Shown:
    """A result that shows itself as a table, in an interpreter and in a notebook; data classes say ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)
