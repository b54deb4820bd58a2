"""Tables of the Modelica Standard Library, interpolated as a graph: the library's own functions are written in C.

Data come with the flattened model. Smoothness: linear segments, Akima's splines (``ContinuousDerivative``), constant
segments. Beyond the ends: held, continued, or repeated, as the block says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from fmilin.adapters import TableRange
from fmilin_modelica.strings import STRING_FUNCTIONS
from fmilin_modelica.values import Value, is_symbolic
from fmilin_modelica.walker import UnsupportedError, Walker

Array = np.ndarray[Any, Any]

__all__ = ["TableWalker", "interpolated"]

SHOWN = 3  # names in the expression of an input
LINEAR, AKIMA, CONSTANT = 1, 2, 3
HOLD, CONTINUE, PERIODIC, NO_EXTRAPOLATION = 1, 2, 3, 4

_VALUES = ("getTable1DValue", "getTable1DValueNoDer", "getTable1DValueNoDer2")
_TIME_VALUES = ("getTimeTableValue", "getTimeTableValueNoDer", "getTimeTableValueNoDer2")


def _pieces(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], smoothness: int) -> np.ndarray[Any, Any]:
    """Return the polynomial of each segment from its left end, (segments, 4), the constant term first."""
    h, pieces = np.diff(x), np.zeros((len(x) - 1, 4))
    pieces[:, 0] = y[:-1]
    if smoothness == CONSTANT:
        return pieces
    if smoothness == LINEAR or (smoothness == AKIMA and len(x) == 2):
        pieces[:, 1] = np.diff(y) / h
        return pieces
    if smoothness != AKIMA:
        raise UnsupportedError(f"a table of the smoothness {smoothness} (it knows 1 to 3)")
    from scipy.interpolate import Akima1DInterpolator  # imports a third of SciPy, and few models have such tables

    return np.asarray(Akima1DInterpolator(x, y).c[::-1].T, float)


def interpolated(data: Array, column: int, smoothness: int, extrapolation: int, u: Value) -> Value:
    """Return what a table gives at ``u``, a number or an expression.

    Parameters
    ----------
    data : array, shape (rows, columns)
        The first column rises; where it stands still, the value jumps.
    column : int
        Counted from 0.
    """
    x, y = data[:, 0], data[:, column]
    if len(x) == 1:
        return float(y[0])
    graph = u if is_symbolic(u) else ca.SX(float(u))
    if extrapolation == PERIODIC:
        graph = x[0] + ca.fmod(graph - x[0], x[-1] - x[0])
        graph = ca.if_else(graph < x[0], graph + (x[-1] - x[0]), graph)
    steps = np.flatnonzero(np.diff(x) > 0)
    keep = np.append(steps, steps[-1] + 1)
    if smoothness == AKIMA and len(keep) == len(x):
        pieces = _pieces(x, y, AKIMA)
    else:  # each segment from its own two rows: a row given twice is a jump
        pieces = np.array([_pieces(x[k : k + 2], y[k : k + 2], min(smoothness, 99))[0] for k in steps])
    lefts, rights = x[steps], x[steps + 1]
    value = _polynomial(pieces[-1], graph - lefts[-1])
    for k in range(len(steps) - 2, -1, -1):
        value = ca.if_else(graph < rights[k], _polynomial(pieces[k], graph - lefts[k]), value)
    if extrapolation in (CONTINUE, NO_EXTRAPOLATION) and smoothness == AKIMA:
        for end, k in ((x[0], 0), (x[-1], -1)):
            a, b, c, d = pieces[k]
            s = end - lefts[k]
            line = a + b * s + c * s * s + d * s**3 + (b + 2 * c * s + 3 * d * s * s) * (graph - end)
            value = ca.if_else(graph < end if k == 0 else graph > end, line, value)
    if extrapolation == HOLD:
        value = ca.if_else(graph < x[0], y[0], ca.if_else(graph >= x[-1], y[-1], value))
    elif smoothness == CONSTANT:
        value = ca.if_else(graph >= x[-1], y[-1], value)
    return value if is_symbolic(u) else float(value)


def _polynomial(piece: np.ndarray[Any, Any], s: Value) -> Value:
    a, b, c, d = (float(q) for q in piece)
    if c == 0 and d == 0:
        return ca.SX(a) if b == 0 else a + b * s
    return a + s * (b + s * (c + s * d))


class TableWalker(Walker):
    """A walk that knows the tables."""

    def __init__(self, flat: Mapping[str, Any]) -> None:
        super().__init__(flat)
        self.table_ranges: dict[tuple[int, float, float], tuple[TableRange, Any]] = {}  # expressions that are looked up

    def evaluated(self, function: int, arguments: Sequence[Value]) -> list[Value]:
        """Return all outputs of a function, of tables too."""
        described = self.flat["functions"][function]
        if described["external"] is None:
            return super().evaluated(function, arguments)
        of_strings = STRING_FUNCTIONS.get(described["name"])
        if of_strings is not None and not any(map(is_symbolic, arguments)):
            return [of_strings(*arguments)]
        name = described["name"].rpartition(".")[2]
        if name in _VALUES or name in _TIME_VALUES:
            return [self._looked_up(arguments, timed=name in _TIME_VALUES)]
        if name == "getNextTimeEvent":
            return [float("inf")]  # events are not followed
        raise UnsupportedError(f"the external function '{described['name']}'")

    def _looked_up(self, arguments: Sequence[Value], *, timed: bool) -> Value:
        which, column, u = arguments[:3]
        table = next(t for t in self.flat.get("external_tables", ()) if t["id"] == which)
        data = np.array(table["data"], float)
        column_index = int(table["columns"][int(column) - 1]) - 1
        value = None
        if timed:
            begin, shift = self.timing(int(which))
            value = interpolated(data, column_index, table["smoothness"], table["extrapolation"], u - shift)
            return ca.if_else(u < begin, 0.0, value) if begin > 0 else value
        if table["extrapolation"] != PERIODIC and is_symbolic(u) and len(data) > 1:
            self._note_range(int(which), data, u)
        return interpolated(data, column_index, table["smoothness"], table["extrapolation"], u)

    def _note_range(self, table: int, data: Array, u: Any) -> None:
        """Note between which ends a table has data; the table is called by its block."""
        name = self.table_name(table)
        symbols = ca.symvar(u)
        input_name = str(u) if u.is_symbolic() else f"input of {name}, from {', '.join(map(str, symbols[:SHOWN]))}"
        low, high = float(data[0, 0]), float(data[-1, 0])
        self.table_ranges[u.__hash__(), low, high] = TableRange(name, input_name, low, high), u

    def table_name(self, table: int) -> str:
        """Return the name of the block of a table, empty where it has none; for the model to answer."""
        raise NotImplementedError

    def timing(self, table: int) -> tuple[float, float]:
        """Return the start time and the shift of a table over time; for the model to answer."""
        raise NotImplementedError
