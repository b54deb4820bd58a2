"""Results that an interpreter and a notebook show as tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeAlias

from fmilin.support.implemented_in import implemented_in
from fmilin.support.tables import LabelledFact, ResultTable

Item: TypeAlias = LabelledFact | ResultTable | str


class Sheet(Protocol):
    """Takes the facts and tables of a result: a terminal, or a page that keeps them."""

    def print(self, item: Item = "", /) -> None:
        """Add a line, a fact or a table."""
        ...


@implemented_in("fmilin.report.report_page:as_text")
def as_text(show: Callable[[Sheet], None], more: str = "") -> str:
    """Return what ``show`` prints, 80 columns wide and at most 40 lines; ``more`` ends a table that is cut."""
    ...


@implemented_in("fmilin.report.report_page:as_html")
def as_html(show: Callable[[Sheet], None], more: str = "") -> str:
    """Return the same content as HTML."""
    ...


class TableRepr:
    """A result that is shown as a table, in an interpreter and in a notebook; data classes say ``repr=False``.

    A class declares how its table is printed with ``@implemented_in``, so that it loads no report.
    """

    __slots__ = ()

    _attributes: ClassVar[str] = ""  # where the whole result is found; ends a table that is cut

    def __repr__(self) -> str:
        return as_text(self._print_table, self._attributes)

    def _repr_html_(self) -> str:
        return as_html(self._print_table, self._attributes)

    def _print_table(self, page: Sheet) -> None:
        raise NotImplementedError
