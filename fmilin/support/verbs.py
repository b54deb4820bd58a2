"""Results that show themselves as tables."""

from __future__ import annotations

from fmilin.support.implemented_in import implemented_in


@implemented_in("fmilin.report.notebook:text_of")
def text_of(thing: object) -> str:
    """Return what ``repr`` shows of a result: at most 40 lines."""
    ...


@implemented_in("fmilin.report.notebook:html_of")
def html_of(thing: object) -> str:
    """Return what a notebook shows of it."""
    ...


class Shown:
    """A result that shows itself as a table, in an interpreter and in a notebook; data classes say ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)
