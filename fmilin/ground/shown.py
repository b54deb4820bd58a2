"""What an interpreter and a notebook show of a result."""

from __future__ import annotations

from fmilin.ground.verbs import perform

__all__ = ["html_of", "text_of"]


def text_of(thing: object) -> str:
    """Return what ``repr`` shows of a result: at most 40 lines."""
    return perform("text_of", thing)


def html_of(thing: object) -> str:
    """Return what a notebook shows of it."""
    return perform("html_of", thing)
