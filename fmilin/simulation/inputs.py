"""Inputs as functions of time: constants, functions, or a table with linear interpolation between its rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import UsageError
from fmilin.signals import FloatArray, RealArrayLike, Signals, as_numbers

Course = Callable[[float], FloatArray]  # time in seconds to inputs, shape (nu,)


@dataclass(frozen=True, eq=False, init=False)
class InputTable:
    """Values of some inputs at some times; linear in between, constant before the first row and after the last."""

    times: FloatArray  # (K,), in seconds, never decreasing. Two rows of the same time are a jump
    names: tuple[str, ...]  # the inputs, one per column
    values: FloatArray  # shape (K, n)

    def __init__(self, times: RealArrayLike, names: Sequence[str], values: RealArrayLike) -> None:
        object.__setattr__(self, "times", as_numbers(times, "One of the times"))
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "values", as_numbers(values, "One of the values"))
        problem = _problem(self.times, self.names, self.values)
        if problem:
            raise UsageError(f"The table of inputs cannot be used: {problem}.")


Inputs = Mapping[str, float | Callable[[float], float]] | InputTable | Course
"""By name: a constant or a function of time each; or a table; or one function for all inputs, in their order.

A function may declare the times of its jumps, kinks and pulses as ``function.knots``: integrators stop there.
"""


class InputCourse:
    """All inputs of a model over time, in pieces on which they are smooth: here one."""

    def __init__(self, course: Course, knots: Sequence[float] | None = ()) -> None:
        self._course = course
        self._knots = None if knots is None else np.unique(np.asarray(knots, dtype=np.float64))

    @property
    def is_opaque(self) -> bool:
        """Whether it is a function that does not declare where it jumps or pulses (``function.knots = [...]``)."""
        return self._knots is None

    def piece(self, start: float, end: float) -> Course:
        """Return the inputs on [start, end], which has no break inside; the values at its ends are those inside."""
        return self._course

    def breaks(self, start: float, end: float) -> FloatArray:
        """Return the times strictly inside where the inputs jump or have a kink, in order."""
        if self._knots is None:
            return np.empty(0)
        return np.asarray(self._knots[(self._knots > start) & (self._knots < end)])

    def has_jump(self, t: float) -> bool:
        """Whether the inputs jump at ``t``."""
        return False


def _check_course(course: Course, count: int) -> Course:
    """Return a function of the user's that does not return anything but ``count`` numbers."""

    def evaluate_checked(t: float) -> FloatArray:
        u = as_numbers(course(t), f"The function for the inputs returned, at t = {t:g}, what")
        if u.shape != (count,):
            raise UsageError(
                f"The function for the inputs returned an array of shape {u.shape} at t = {t:g}; it should be "
                f"({count},), one value per input of the model."
            )
        return u

    return evaluate_checked


class _Tabulated(InputCourse):
    def __init__(self, table: InputTable, columns: Sequence[int], constants: FloatArray) -> None:
        super().__init__(lambda _: constants)
        self._table, self._columns, self._constants = table, list(columns), constants
        times = table.times
        self._jump_times = np.unique(times[np.flatnonzero(np.diff(times) == 0)])
        self._break_times = np.unique(np.concatenate((self._jump_times, _kinks(times, table.values))))

    def piece(self, start: float, end: float) -> Course:
        times, values = self._table.times, self._table.values
        middle = 0.5 * (start + end) if end > start else start
        after = int(np.searchsorted(times, middle, side="right"))
        if after in (0, len(times)):
            edge = self._fill_row(values[0 if after == 0 else -1])
            return lambda _: edge
        # A table row by row: the straight line through the rows around the middle of the piece.
        before = after - 1
        slope = (values[after] - values[before]) / (times[after] - times[before])
        return lambda t: self._fill_row(values[before] + slope * (t - times[before]))

    def breaks(self, start: float, end: float) -> FloatArray:
        return self._break_times[(self._break_times > start) & (self._break_times < end)]

    def has_jump(self, t: float) -> bool:
        return bool((self._jump_times == t).any())

    def _fill_row(self, row: FloatArray) -> FloatArray:
        u = self._constants.copy()
        u[self._columns] = row
        return u


def input_course(signals: Signals, constants: FloatArray, inputs: Inputs | None) -> InputCourse:
    """Return the course of all inputs; those that ``inputs`` does not mention stay at ``constants`` (nu,)."""
    if inputs is None:
        return InputCourse(lambda _: constants)
    if isinstance(inputs, InputTable):
        columns = [signals.index_of(name, "an input of the model") for name in inputs.names]
        return _Tabulated(inputs, columns, constants)
    if callable(inputs):
        return InputCourse(_check_course(inputs, len(signals)), _read_knots([inputs]))
    values = constants.copy()
    moving: dict[int, Callable[[float], float]] = {}
    for name, value in inputs.items():
        i = signals.index_of(name, "an input of the model")
        if callable(value):
            moving[i] = value
            continue
        values[i] = _require_finite_number(name, value)
    if not moving:
        return InputCourse(lambda _: values)

    def course(t: float) -> FloatArray:
        u = values.copy()
        for i, function in moving.items():
            u[i] = _require_finite_number(signals.names[i], function(t))
        return u

    return InputCourse(course, _read_knots(list(moving.values())))


def _require_finite_number(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(
            f"The input '{name}' cannot be {value!r}: give a number, a function of time, or all inputs as a table, "
            "InputTable(times, names, values)."
        ) from None
    if not np.isfinite(number):
        raise UsageError(f"The input '{name}' cannot be {value}: give a finite number instead of it.")
    return number


def _read_knots(functions: Sequence[object]) -> list[float] | None:
    """Return the times that functions declare as their ``knots``; None where one of them declares none."""
    knots: list[float] = []
    for function in functions:
        declared = getattr(function, "knots", None)
        if declared is None:
            return None
        knots += [float(time) for time in declared]
    return knots


def _kinks(times: FloatArray, values: FloatArray) -> FloatArray:
    """Return the times of the rows where the slope changes, the first and the last row included."""
    if len(times) < 2:
        return np.empty(0)
    steps = np.diff(times)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.where(steps[:, None] > 0, np.diff(values, axis=0) / steps[:, None], np.nan)
    edge = np.zeros((1, values.shape[1]))
    around = np.vstack((edge, slopes, edge))
    size = np.abs(around[1:]) + np.abs(around[:-1])
    bends = ~(np.abs(around[1:] - around[:-1]) <= 1e-12 * size).all(axis=1)
    kinks: FloatArray = times[bends]
    return kinks


def _problem(times: FloatArray, names: tuple[str, ...], values: FloatArray) -> str:
    if times.ndim != 1 or values.shape != (len(times), len(names)):
        return f"there are {len(names)} names and {times.size} times for values of shape {values.shape}"
    if not len(times):
        return "it has no rows"
    if len(set(names)) != len(names):
        return "two columns have the same name"
    if not (np.isfinite(times).all() and np.isfinite(values).all()):
        return "a time or a value is not a finite number"
    back = np.flatnonzero(np.diff(times) < 0)
    if back.size:
        k = int(back[0])
        return f"time goes back from {times[k]:g} to {times[k + 1]:g} in row {k + 2}"
    return ""
