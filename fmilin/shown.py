"""What an interpreter and a notebook show of a result.

Rooms know no report: the package says once, when it is imported, who lays results out, and that is loaded when first
something is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Layout", "html_of", "laid_out_by", "text_of"]


class Layout(Protocol):
    """Who lays results out."""

    def text_of(self, thing: object) -> str:
        """Return a table as text."""

    def html_of(self, thing: object) -> str:
        """Return the same as HTML."""


_layouts: list[Callable[[], Layout]] = []


def laid_out_by(layout: Callable[[], Layout]) -> None:
    """Say who lays results out; called when first one is looked at."""
    _layouts[:] = [layout]


def text_of(thing: object) -> str:
    """Return what ``repr`` shows of a result: at most 40 lines."""
    return _layouts[0]().text_of(thing)


def html_of(thing: object) -> str:
    """Return what a notebook shows of it."""
    return _layouts[0]().html_of(thing)
