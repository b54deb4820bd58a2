"""Ranges in which tables of a model have data: outside, they are extrapolated, and no statement there is the data's."""

from __future__ import annotations

from collections.abc import Iterable

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import END_OF_TABLE

MAX_NAMED_RANGES = 3


@dataclass(frozen=True, slots=True)
class TableRange:
    """The interval of an input of a table."""

    table: str  #: as the model calls it; empty where it has no name
    input: str  #: the variable that is looked up
    low: float
    high: float

    def contains(self, value: float) -> bool:
        """Whether a value is in the interval, or at an end to rounding."""
        margin = END_OF_TABLE * max(abs(self.low), abs(self.high), self.high - self.low)
        return not (value < self.low - margin or value > self.high + margin)


def find_extrapolated(values: Iterable[tuple[TableRange, float]]) -> tuple[Remark, ...]:
    """Return a diagnostic with the inputs of tables that are outside of their data; nothing where all are inside."""
    outside = [_describe(r, value) for r, value in values if not r.contains(value)]
    if not outside:
        return ()
    listed = join_first(outside, MAX_NAMED_RANGES, "; ")
    return (Remark("extrapolated", f"{listed}: the model extrapolates there."),)


def _describe(table_range: TableRange, value: float) -> str:
    table = f"the table '{table_range.table}'" if table_range.table else "a table"
    interval = f"{table_range.low:.6g} to {table_range.high:.6g}"
    return f"'{table_range.input}' = {value:.6g} is outside of {interval}, the data of {table}"
