"""Gain-scheduled regulators: gains and trim values over scheduling variables (Rugh and Shamma, Automatica 36, 2000).

State feedback      u = u0(s) - K(s) (y - y0(s)),
in velocity form    u := u - K(s) (y - y before), without trim values: what moves with s is not fed back,
with an estimator   u = u0(s) - K(s) (y_hat - y0(s)), y_hat corrected by L(s) and predicted by the model of s,

s being the scheduling variables, y the independent coordinates. At a fixed s each is the regulator of that point.
The file is longer than others by the docstrings that the reference shows in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fmilin.design import schedule_check
from fmilin.design.kalman import KalmanFilter
from fmilin.design.laws import Savable, linear_law, with_states
from fmilin.design.regulators import FunctionRegulator
from fmilin.design.schedule_check import ScheduleReport, ScheduleTable, ScheduleVerdict, TableLayout
from fmilin.design.schedule_turns import unwrap_angles
from fmilin.errors import FmilinError, NumericalError, UnknownNameError, UsageError
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray, RealArrayLike, Signal, Signals, as_numbers, wrap_differences
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

Form = Literal["trim", "velocity"]
MAX_VARIABLES = 3


class Schedule(TableRepr, Savable):
    """A gain-scheduled regulator; :func:`schedule` makes it, :func:`fmilin.closed_loop` runs it.

    It reads the scheduling variables and then the coordinates (with an estimator: the outputs), in absolute values.

    Attributes
    ----------
    over : tuple of str
        The scheduling variables.
    reads, drives : tuple of str
        Variables of the plant that it reads, the scheduling variables first, and inputs that it sets.
    table : ScheduleTable
    """

    _attributes = ".report, .step(at, read), .linear_model(at), .along(values), .save(path)"

    @implemented_in("fmilin.report.designs:show_schedule")
    def _print_table(self, page: Sheet) -> None: ...

    def __init__(
        self,
        family: LinearFamily,
        table: ScheduleTable,
        parts: TableLayout,
        names: tuple[Signals, Signals, Signals],
        *,
        form: Form,
        sample_time: float,
        outside: Literal["refuse", "nearest"],
    ) -> None:
        self.family, self.table, self.parts, self.form, self.outside = family, table, parts, form, outside
        self.states, self.measured, self._driven = names
        self.over, self.drives = table.over, self._driven.names
        self.reads = tuple(dict.fromkeys((*self.over, *self.measured.names)))
        self._read_at = [[self.reads.index(name) for name in names] for names in (self.over, self.measured.names)]
        self.sample_time, self.estimates = sample_time, "L" in parts.shapes
        self._columns = [family.inputs.index_of(name) for name in self.drives]
        self._turns = self.measured.turns  # of measured angles, which deviate by half a turn at most
        self.redesign: Callable[[int], FloatArray | str] | None = None  # the row of a point of the grid, made again
        self.restart()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the rule out, which may be a lambda: other processes run the schedule, and do not design it."""
        return {**self.__dict__, "redesign": None}

    def restart(self) -> None:
        """Go back to before the first sample."""
        self._at: FloatArray | None = None  # the last values inside
        self._now: dict[str, FloatArray] = {}
        self._y: FloatArray | None = None  # what was read last, or estimated now; with an estimator then predicted
        self._u = np.zeros(len(self.drives))
        self.steps_outside = 0  # steps outside the range or in a hole since then

    left = DeprecatedAlias("steps_outside")

    def step(self, at: Mapping[str, float] | RealArrayLike, read: RealArrayLike) -> FloatArray:
        """Return the inputs of the plant, shape (k,), absolute values; they are taken to be applied as they are.

        ``at`` are the scheduling variables, ``read`` the independent coordinates, shape (P,), or what an estimator
        measures; absolute values.

        Raises
        ------
        UsageError, NumericalError
            Outside the range and in a hole of the grid, unless ``outside="nearest"``.
        """
        names = ", ".join(self.measured.names)
        y = as_numbers(read, f"One of {names}")
        if y.shape != (len(self.measured),) or not np.isfinite(y).all():
            raise UsageError(
                f"The schedule needs one finite value of each measured variable ({len(self.measured)}: {names}), not "
                f"{read}."
            )
        u = self.respond(self._values(at), y)
        self.update_states(u)
        return u

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return u, shape (k,), for what was ``read`` (the variables ``reads``) at ``t`` seconds."""
        at, y = (read[columns] for columns in self._read_at)
        return self.respond(at, y)

    def respond(self, at: FloatArray, y: FloatArray) -> FloatArray:
        """Return u, shape (n,), for ``at``, shape (k,), and what is measured, ``y``, shape (m,); not yet applied."""
        p = self._now = self.parts.of(self._row(at))
        if self.estimates:
            predicted = p["y0"] if self._y is None else self._y
            innovation = y - p["m0"] - p["C"] @ (predicted - p["y0"])
            y = predicted + p["L"] @ wrap_differences(innovation, self._turns)
        u0, y0 = (p["u0"], p["y0"]) if self.form == "trim" or self._y is None else (self._u, self._y)
        deviation = y - y0 if self.estimates else wrap_differences(y - y0, self._turns)
        u = u0 - p["K"] @ deviation
        self._y = y
        return u

    def update_states(self, outputs: FloatArray) -> None:
        """Update the states by the ``outputs``, shape (k,), that the actuators apply."""
        self._u = np.asarray(outputs, dtype=np.float64)
        if self.estimates and self._y is not None:
            p = self._now
            self._y = p["y0"] + p["f"] + p["A"] @ (self._y - p["y0"]) + p["B"] @ (self._u - p["u0"])

    applied = DeprecatedAlias("update_states")

    def _values(self, at: Mapping[str, float] | RealArrayLike) -> FloatArray:
        """Return the scheduling variables in their order, shape (k,)."""
        if isinstance(at, Mapping):
            for name in at:
                if name not in self.over:
                    raise UnknownNameError.among(name, self.over, "a scheduling variable")
            at = [at.get(name, np.nan) for name in self.over]
        values = as_numbers(at, f"One of {', '.join(self.over)}")
        if values.shape != (len(self.over),) or np.isnan(values).any():
            raise UsageError(f"The schedule runs over {', '.join(self.over)}: give a value of each of them.")
        return values

    def _row(self, at: FloatArray) -> FloatArray:
        if self.outside == "refuse":
            return self.table.row(at)
        inside = self.table.nearest(at)
        is_complete = self.table.good[list(self.table.corners(inside))].all()
        self.steps_outside += not (is_complete and (inside == at).all())
        self._at = inside if is_complete else self.table.first if self._at is None else self._at
        return self.table.row(self._at)

    def along(self, values: Mapping[str, float | Callable[[float], float]]) -> ScheduleAlong:
        """Return the regulator with scheduling variables that are not read from the plant.

        ``values`` are constants, or functions of time in seconds: the reference that the plant follows, a parameter.
        """
        return ScheduleAlong(self, values)

    @kinds_checked
    @implemented_in("fmilin.export.c_file:save_schedule")
    def save(
        self,
        path: str | Path,
        *,
        limits: Mapping[str, tuple[float, float]] | None = None,
        precision: Literal["double", "single"] = "double",
        fmi: Literal["2.0", "3.0"] = "2.0",
    ) -> None:
        """Write it to ``path``: .c is one C99 file for a microcontroller (its stem names the struct), .fmu an FMU.

        ``in`` is the scheduling variables, then the measurements. Outside its range and in holes it continues with the
        nearest values, or the last ones, and counts such steps in ``outside`` of its struct. ``limits`` of outputs are
        absolute values (the states of an estimator take them into account), ``precision`` is ``"double"`` or, in C,
        ``"single"``, ``fmi`` the version of an FMU. Raises UsageError or UnknownNameError when there is no such format,
        limits are none, or the file cannot be written.
        """
        ...

    def linear_model(self, at: Mapping[str, float] | RealArrayLike | None = None) -> LinearModel:
        """Return the regulator of one point, from what is measured to the inputs of the plant.

        ``at`` are the scheduling variables. D = -K, and the trim values are in ``.point``; with an estimator the states
        are what is predicted for a sample.

        Raises
        ------
        UsageError, NumericalError
            Outside the range and in a hole of the grid.
        """
        if at is None:
            raise UsageError(f"The linear model of a schedule belongs to one point: give {', '.join(self.over)}.")
        values = self._values(at)
        p = self.parts.of(self.table.row(values))
        outputs, K = _set_starts(self._driven, p["u0"]), p["K"]
        measured = _set_starts(self.measured, p["m0"] if self.estimates else p["y0"])
        states, matrices, f0 = Signals(), (np.zeros((0, 0)), np.zeros((0, K.shape[1])), np.zeros((len(K), 0)), -K), None
        if self.estimates:
            L, closed = p["L"], p["A"] - p["B"] @ K
            error_update = np.eye(len(L)) - L @ p["C"]
            matrices, f0 = (closed @ error_update, closed @ L, -K @ error_update, -K @ L), p["f"]
            named = [Signal(f"predicted.{s.name}", s.unit) for s in self.states]
            states = _set_starts(Signals(named), p["y0"])
        template = self.family.linear_model(next(iter(self.table.weights(values))))
        law = linear_law("schedule", template, matrices, (states, measured, outputs), self.sample_time, f0)
        at_point = dict(zip(self.over, values.tolist(), strict=True))
        return replace(law, point=replace(law.point, parameters=at_point), warnings=())

    @cached_property
    def report(self) -> ScheduleReport:
        """The closed loop at the points of the grid and between them; where it is weak."""
        return schedule_check.report(self)

    @cached_property
    def interpolation_errors(self) -> Mapping[str, FloatArray]:
        """How far A, B (and C) of each point are from what its neighbours say, shape (points, rows, columns)."""
        return schedule_check.errors_of_points(self)

    def verdict(self, at: Mapping[str, float] | RealArrayLike) -> ScheduleVerdict:
        """Return what the interpolated model says of the closed loop at fixed scheduling variables.

        UsageError, NumericalError: outside the range and in a hole of the grid.
        """
        return schedule_check.verdict(self, self._values(at))


class ScheduleAlong(FunctionRegulator):
    """A schedule with scheduling variables from elsewhere; :meth:`Schedule.along` makes it."""

    def __init__(self, schedule: Schedule, values: Mapping[str, float | Callable[[float], float]]) -> None:
        schedule._values(dict.fromkeys(values, 0.0))  # rejects names
        self.schedule, self._variable_courses = schedule, [values[name] for name in schedule.over]
        super().__init__(self._at_time, schedule.measured.names, schedule.drives, schedule.sample_time)

    def _at_time(self, t: float, read: FloatArray) -> FloatArray:
        at = [float(v(t)) if callable(v) else float(v) for v in self._variable_courses]
        return self.schedule.respond(np.array(at), read)

    def restart(self) -> None:
        """Go back to before the first sample."""
        self.schedule.restart()

    def update_states(self, outputs: FloatArray) -> None:
        """Tell the schedule what is really applied."""
        self.schedule.update_states(outputs)


@kinds_checked
def schedule(
    family: LinearFamily,
    rule: Callable[[LinearModel], RealArrayLike],
    over: Sequence[str] | None = None,
    *,
    estimator: Callable[[LinearModel], KalmanFilter | RealArrayLike] | None = None,
    sample_time: float | None = None,
    form: Form = "trim",
    states: Sequence[str] | None = None,
    drives: Sequence[str] | None = None,
    outside: Literal["refuse", "nearest"] = "refuse",
) -> Schedule:
    """Return a regulator that is designed at every point of a family, and interpolated between them.

    Raises UsageError or UnknownNameError when family, gains and names do not fit together; NumericalError when the rule
    fails at every point.

    Parameters
    ----------
    family : LinearFamily
        Over one to three variables, each with two values at least. Points without a linear model, with other
        coordinates than most, and where the rule fails, are holes.
    rule : callable
        From the linear model of a point to K, shape (len(drives), P): ``lambda lin: control.lqr(lin.to_control(), Q,
        R)[0]``, pole placement, your own. The linear model is that of the family, continuous or sampled.
    over : sequence of str, optional
        The scheduling variables: the axes of the family, in the order in which they will be given.
    estimator : callable, optional
        From the linear model of a point to its :class:`KalmanFilter` or the gain L, shape (P, outputs): outputs are
        read instead of coordinates (LQG).
    sample_time : float, optional
        At which it runs, in seconds; that of the filter or the family by default.
    form : str
        ``"trim"``: gains act on deviations from interpolated trim values. ``"velocity"``: on the change since the last
        sample, and the input goes on from its last value: no trim values are needed, none is held either.
    states : sequence of str, optional
        The coordinates that K is for, where these do not depend on the others: how a bicycle leans, not where it is.
        The rule gets linear models of them; all by default.
    drives : sequence of str, optional
        The inputs that K is for; all by default.
    outside : str
        ``"refuse"`` to answer outside the range and in holes, or go on with the ``"nearest"`` values.
    """
    names = tuple(family.axes) if over is None else tuple(over)
    for name in names:
        if name not in family.axes:
            raise UnknownNameError.among(name, family.axes, "an axis of the family")
    _check(family, names, form, outside, estimates=estimator is not None)
    if not callable(rule):
        raise UsageError(f"The rule must be a function from the linear model of a point to the gain K, not {rule!r}.")
    driven = Signals(family.inputs.select([family.inputs.index_of(n) for n in drives]) if drives else family.inputs)
    design = _Design(family, rule, estimator, driven, sample_time, states)
    designed = [design.row(number) for number in range(len(family))]
    good = np.array([not isinstance(row, str) for row in designed])
    if not good.any():
        raise NumericalError(f"The schedule has no gain at any point of the family. At the first point: {designed[0]}")
    rows = np.array([np.full(design.width, np.nan) if isinstance(row, str) else row for row in designed])
    reasons = [row if isinstance(row, str) else "" for row in designed]
    table = ScheduleTable(family.grid, names, rows, good, reasons)
    signals = design.states, design.measured if estimator else design.states, driven
    table = unwrap_angles(table, design.parts.start("m0" if estimator else "y0"), signals[1].turns)
    made = Schedule(family, table, design.parts, signals, form=form, sample_time=design.sample_time, outside=outside)
    made.redesign = design.row
    return made


class _Design:
    """From a point of the family to a row of the table, or why there is none."""

    def __init__(
        self,
        family: LinearFamily,
        rule: Callable[[LinearModel], RealArrayLike],
        estimator: Callable[[LinearModel], KalmanFilter | RealArrayLike] | None,
        driven: Signals,
        sample_time: float | None,
        states: Sequence[str] | None,
    ) -> None:
        self.family, self.rule, self.estimator, self.driven = family, rule, estimator, driven
        self.measured = family.outputs  # with the turns of the filters
        self._turns_of_filters: FloatArray | None = None
        self.sample_time = float(sample_time or family.sample_time)
        if family.sample_time and self.sample_time != family.sample_time:
            raise UsageError(
                f"The family is sampled every {family.sample_time:g} s, and the schedule must run at that rate."
            )
        kinds = [tuple(lin.states.names) for _, lin in family.good()]
        if not kinds:
            raise NumericalError("The family has no linear model at any point: there is nothing to schedule.")
        self._usual = max(dict.fromkeys(kinds), key=kinds.count)
        of_usual = next(lin.states for _, lin in family.good() if tuple(lin.states.names) == self._usual)
        self.states = of_usual if states is None else Signals(of_usual[of_usual.index_of(n)] for n in states)
        self._columns = [family.inputs.index_of(name) for name in driven.names]
        P, k, m = len(self.states), len(driven), len(family.outputs)
        shapes: dict[str, tuple[int, ...]] = {"K": (k, P), "u0": (k,), "y0": (P,)}
        if estimator is not None:
            shapes |= {"L": (P, m), "C": (m, P), "m0": (m,)}
        self.parts = TableLayout(shapes | {"A": (P, P), "B": (P, k), "f": (P,)})
        self.width = sum(int(np.prod(shape)) for shape in self.parts.shapes.values())

    def row(self, number: int) -> FloatArray | str:
        if not self.family.ok.flat[number]:
            return f"There is no linear model: {self.family.reasons.flat[number]}"
        linear = self.family.linear_model(number)
        if tuple(linear.states.names) != self._usual:
            return f"Its coordinates are {', '.join(linear.states.names)}, elsewhere {', '.join(self._usual)}."
        if self.states.names != self._usual:
            linear = with_states(linear, self.states.names)
        try:
            K = np.atleast_2d(np.asarray(self.rule(linear), dtype=np.float64))
            filtered = None if self.estimator is None else self.estimator(linear)
        except (FmilinError, np.linalg.LinAlgError, ValueError, ArithmeticError) as error:
            return f"The rule failed there: {error}"
        except Exception as error:
            raise UsageError(
                f"The rule or the estimator failed at point {number}: {type(error).__name__}: {error}. Correct it: "
                "its argument is the LinearModel of a point."
            ) from error
        shapes, L = self.parts.shapes, None if filtered is None else self._gain(filtered)
        if K.shape != shapes["K"] or (L is not None and L.shape != shapes["L"]):
            raise UsageError(
                f"The rule gave a gain of the shape {K.shape}; for the inputs {', '.join(self.driven.names)} and the "
                f"coordinates {', '.join(self.states.names)} it needs {shapes['K']}"
                + ("." if L is None else f", and the estimator one of {shapes['L']}, not {L.shape}.")
            )
        at, sampled = linear.point, self._sample(linear)
        values: dict[str, FloatArray | list[float]] = {
            "K": K, "u0": [at.inputs[n] for n in self.driven.names], "y0": linear.y0,
            "A": sampled.A, "B": sampled.B[:, self._columns], "f": sampled.f0,
        }  # fmt: skip
        if L is not None:
            values |= {"L": L, "C": linear.C, "m0": [at.outputs[n] for n in linear.outputs.names]}
            if linear.D[:, self._columns].any():
                raise UsageError(
                    "A scheduled estimator must not read outputs that the driven inputs move at once: measure "
                    "positions and speeds instead of accelerations (outputs=)."
                )
        row = np.concatenate([np.ravel(values[name]) for name in shapes])
        return row if np.isfinite(row).all() else "The gains are infinite or not numbers there."

    def _gain(self, filter_or_gain: KalmanFilter | RealArrayLike) -> FloatArray:
        if not isinstance(filter_or_gain, KalmanFilter):
            return np.asarray(filter_or_gain, dtype=np.float64)
        self.sample_time = self.sample_time or filter_or_gain.sampled.sample_time
        if self.sample_time != filter_or_gain.sampled.sample_time:
            raise UsageError(
                f"The filter runs every {filter_or_gain.sampled.sample_time:g} s and the schedule every "
                f"{self.sample_time:g} s. Choose one sample time."
            )
        turns = filter_or_gain.linear.outputs.turns
        if self._turns_of_filters is not None and not np.array_equal(turns, self._turns_of_filters):
            raise UsageError(
                "The filters take different outputs for angles that wrap. Name the same ones at all points: "
                "kalman_filter(..., wrapped_outputs=)."
            )
        self._turns_of_filters = turns
        self.measured = filter_or_gain.linear.outputs
        return filter_or_gain.gain

    def _sample(self, linear: LinearModel) -> LinearModel:
        return linear if linear.sample_time or not self.sample_time else discretize(linear, self.sample_time)


def _check(family: LinearFamily, over: Sequence[str], form: str, outside: str, *, estimates: bool) -> None:
    if family.grid.zipped and len(family.axes) > 1:
        raise UsageError("A family along a list of points cannot be interpolated: sweep a grid.")
    if sorted(over) != sorted(family.axes) or len(over) > MAX_VARIABLES:
        raise UsageError(
            f"The family runs over {', '.join(family.axes)}, the schedule over {', '.join(over)}: it needs all of "
            f"them, at most {MAX_VARIABLES}. Select a part of the family, as in family[:, 0]."
        )
    for name, values in family.axes.items():
        if len(values) < 2:
            raise UsageError(f"'{name}' has one value in the family: a schedule needs at least two to interpolate.")
    if form not in ("trim", "velocity") or outside not in ("refuse", "nearest"):
        raise UsageError(f"form='{form}', outside='{outside}': use 'trim' or 'velocity', and 'refuse' or 'nearest'.")
    if estimates and form == "velocity":
        raise UsageError("The velocity form reads coordinates, so it cannot have an estimator: leave one of them out.")


def _set_starts(signals: Signals, values: FloatArray) -> Signals:
    return Signals(s.with_start(v) for s, v in zip(signals, values.tolist(), strict=True))
