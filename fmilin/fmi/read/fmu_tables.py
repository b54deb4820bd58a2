"""Tables inside an FMU that say between which ends they have data: those of the Modelica FmiStandard Library do.

``Modelica.Blocks.Tables`` declare ``u_min`` and ``u_max`` next to their input ``u`` (``u1`` and ``u2`` of two of them).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.model.ranges import TableRange

_LOW_END = re.compile(r"(?P<table>.+)\.u_min(\[(?P<axis>[12])\])?")
_PERIODIC_EXTRAPOLATION_CODE = 3.0  # Modelica.Blocks.Types.Extrapolation


class FmuTable(NamedTuple):
    """One input of a table and what holds its ends."""

    name: str
    input: ScalarVariable
    low: ScalarVariable
    high: ScalarVariable
    extrapolation: ScalarVariable | None

    def read(self, number: Callable[[ScalarVariable], float]) -> tuple[TableRange, float] | None:
        """Return the range and the input's value now; None where the table is periodic or has one row."""
        if self.extrapolation is not None and number(self.extrapolation) == _PERIODIC_EXTRAPOLATION_CODE:
            return None
        low, high = number(self.low), number(self.high)
        return (TableRange(self.name, self.input.name, low, high), number(self.input)) if low < high else None


def find_tables(layout: ScalarLayout) -> list[FmuTable]:
    """Return the inputs of tables with declared ends; none of an FMU with very many variables."""
    variables = layout.description.variables
    if variables.is_large:
        return []
    tables: list[FmuTable] = []
    for low in [s for v in variables if "u_min" in v.name and v.is_float for s in layout.scalars(v)]:
        match = _LOW_END.fullmatch(low.name)
        if match is None:
            continue
        table, axis = match["table"], match["axis"] or ""
        high = layout.find(low.name.replace(f"{table}.u_min", f"{table}.u_max"))
        if high is None:
            continue
        extrapolation = layout.find(f"{table}.extrapolation")
        inputs = _find_inputs(layout, f"{table}.u{axis}")
        tables += [FmuTable(table, scalar, low, high, extrapolation) for scalar in inputs]
    return tables


def _find_inputs(layout: ScalarLayout, name: str) -> list[ScalarVariable]:
    """Return the scalar of a name, or the elements of a vector of that name."""
    array = layout.description.by_name.get(name)
    if array is not None:
        return list(layout.scalars(array))
    elements: list[ScalarVariable] = []
    while (element := layout.find(f"{name}[{len(elements) + 1}]")) is not None:
        elements.append(element)
    return elements
