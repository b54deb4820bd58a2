"""Stability of equilibria of models with delays and periodic coefficients: milling, parametric excitation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.delayed import get_form
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import operating_point
from fmilin.model.capabilities import CutDelays, HasBatchDerivatives, HasDelays
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.delay_form import DelayForm
from fmilin.numerics.delayed_monodromy import (
    DelayCoefficients,
    PeriodicDelaySystem,
    collocate_period,
    semi_discretize_period,
    sort_multipliers,
)
from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

NODE_COUNT = 8  # Gauss points in a window
MAX_ORDER = 1500  # of the monodromy matrix
FIRST_WINDOW_COUNT = 4
CONVERGENCE_TOLERANCE = 1e-9  # of the multipliers, relative to 1 or the largest
SEMI_STEP_COUNT = 50  # steps of the second way, and twice as many
SECOND_WAY_FACTOR = 3.0  # times what half the step changes: a larger difference is a contradiction
BATCH_TOLERANCE = 1e-9  # by which coefficients of a batch may differ from those of a linear model, relative
COMPARED_PHASE_FRACTIONS = (0.123, 0.382, 0.724)  # of the period, at which coefficients must be those of a period later
PERIODICITY_TOLERANCE = 1e-6  # of the coefficients after a period, relative


@dataclass(frozen=True, eq=False, repr=False)
class DelayedFloquet(TableRepr):
    """The largest multipliers of a period; :func:`delayed_floquet` makes it."""

    _attributes = ".multipliers, .exponents, .stable, .semi_discretized, .remarks"

    multipliers: NDArray[np.complex128]  #: shape (k,); by what a motion has grown after a period; largest first
    errors: FloatArray  #: shape (k,); how far each may be off, absolute
    period: float  #: in seconds
    delays: dict[str, float]  #: in seconds, by the delayed signal
    semi_discretized: complex  #: the largest multiplier by the second way; NaN where that does not apply
    semi_error: float  #: how far that may be off, absolute, a number
    name: str = ""  #: of the model
    remarks: tuple[Remark, ...] = ()  #: warnings

    @implemented_in("fmilin.report.delays:show_delayed_floquet")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def exponents(self) -> NDArray[np.complex128]:
        """log(mu)/T in 1/s, shape (k,); imaginary parts are known modulo 2 pi/T."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.multipliers) / self.period)

    @property
    def stable(self) -> bool | None:
        """Whether every multiplier is inside the unit circle; None where the errors leave it open."""
        sizes = np.abs(self.multipliers)
        if (sizes - self.errors > 1).any():
            return False
        return True if (sizes + self.errors < 1).all() else None


@kinds_checked
def delayed_floquet(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    period: float,
    breaks: Sequence[float] = (),
    count: int = 6,
) -> DelayedFloquet:
    """Return the largest Floquet multipliers of a model with delays at an equilibrium, with periodic coefficients.

    The linear models over the period, with the delays cut, are collocated at Gauss points; the largest multiplier is
    compared with that of semi-discretization (Insperger and Stepan 2004).

    Parameters
    ----------
    model : Model
        With delays (``delay(x, T)``), which stay the same over the period.
    point : OperatingPoint, optional
        An equilibrium at all times of the period; its time begins the period. By default the model's start.
    period : float, in seconds
    breaks : sequence of float, in seconds
        Times after the point's within the period at which coefficients jump, as where a tooth enters the material.
    count : int
        How many multipliers are returned, at least.

    Raises
    ------
    UsageError
        When the model has no delays, a break is outside the period, the point moves, or the model is not of this
        period.
    NumericalError
        When delays change over the period.

    Examples
    --------
    >>> import fmilin as fl
    >>> rates = {"x": "v", "v": "-(1 + 0.5*cos(time))*x + 0.1*delay(x, T)"}
    >>> model = fl.models.OdeModel("mathieu", rates, parameters={"T": 6.283185307179586})
    >>> result = fl.delayed_floquet(model, period=6.283185307179586)
    >>> result.stable, round(float(abs(result.multipliers[0])), 7)
    (False, 1.1318768)
    """
    if not isinstance(model, HasDelays):
        raise UsageError(f"'{model.info.name}' has no delays: use fl.periodic_orbit(model, period=...).")
    if not (np.isfinite(period) and period > 0) or count < 1:
        raise UsageError("The period must be a positive number of seconds, and count at least 1.")
    if not all(0 < time < period for time in breaks):
        raise UsageError(f"Breaks are times after the point's within the period of {period:g} s.")
    start = operating_point(model) if point is None else point
    first = _linearize(model, start, None)
    names = first.states.names
    form = get_form(first)
    is_used = form.delays > 0
    if not is_used.any():
        raise UsageError(f"All delays of '{model.info.name}' are zero: use fl.periodic_orbit(model, period=...).")

    coefficients = CoefficientReader(model, start, names, form)
    _require_period(coefficients, model.info.name, period)
    system = PeriodicDelaySystem(coefficients, form.delays, period, tuple(sorted(breaks)), coefficients.prepare)
    values, errors, is_converged = _find_multipliers(system, count)
    second, second_error = _semi_discretize(system)
    remarks = list[Remark]()
    largest = max(1.0, float(np.abs(values[0])))
    if not is_converged:
        text = (
            f"The multipliers are known to {errors.max():.2g} only: the coefficients are not smooth over the period. "
            "Name the times at which they jump (breaks=)."
        )
        remarks.append(Remark("accuracy", text))
    difference = float(min(abs(second - v) for v in (values[0], values[0].conjugate())))
    # 1e-6: multipliers that coincide react to errors by their root.
    if difference > SECOND_WAY_FACTOR * second_error + float(errors[0]) + 1e-6 * largest:
        text = (
            f"Semi-discretization gives {second:.6g} for the largest multiplier {complex(values[0]):.6g}: trust "
            "neither before you know the cause. Coefficients that jump need breaks=."
        )
        remarks.append(Remark("accuracy", text))
    delays = dict(zip(first.delays, form.delays.tolist(), strict=True))
    return DelayedFloquet(values, errors, period, delays, second, second_error, model.info.name, tuple(remarks))


class CoefficientReader:
    """The matrices of a model with delays at times after a point: by batches of exact derivatives where it has them.

    The first batch is compared with linear models at two of its times; where they differ all are linear models.
    """

    def __init__(self, model: Model, start: OperatingPoint, names: Sequence[str], form: DelayForm) -> None:
        self._model, self._start, self._names, self._form = model, start, tuple(names), form
        self._matrices: dict[float, DelayCoefficients] = {}
        self._cut = self._find_batch_source()
        self._is_compared = False

    def __call__(self, time: float) -> DelayCoefficients:
        """Return the matrices at ``time`` seconds after the point."""
        if time not in self._matrices:
            linear = _linearize(self._model, replace(self._start, time=self._start.time + time), self._names)
            self._matrices[time] = _read_form(linear, self._form)
        return self._matrices[time]

    def prepare(self, times: FloatArray) -> None:
        """Read the matrices at times (k,) at once, where that is possible."""
        new = np.array([time for time in times.tolist() if time not in self._matrices])
        if self._cut is None or not len(new):
            return
        batch = self._read_batch(self._cut, new)
        if batch is None or not (self._is_compared or self._agrees(new, batch)):
            self._cut = None
            return
        self._is_compared = True
        self._matrices.update(zip(new.tolist(), batch, strict=True))

    def _find_batch_source(self) -> CutDelays | None:
        """Return the model between its delays, where its inputs and outputs are in the order of the delays."""
        if not isinstance(self._model, HasDelays):
            return None
        cut = self._model.cut_delays(self._start)
        states = set(cut.model.states.names)
        is_plain = not cut.of_inputs and not cut.shared_inputs and states.issuperset(self._names)
        is_whole = len(cut.channels) == len(self._form.delays)
        return cut if is_plain and is_whole and isinstance(cut.model, HasBatchDerivatives) else None

    def _read_batch(self, cut: CutDelays, times: FloatArray) -> list[DelayCoefficients] | None:
        model, point = cut.model, cut.point
        if point.parameters:
            model = model.with_parameters(point.parameters)
        if not isinstance(model, HasBatchDerivatives):
            return None
        rows = [model.states.index_of(name) for name in self._names]
        count, P, m = len(times), len(rows), len(cut.channels)
        t = point.time + times
        x, u = np.tile(point.states, (count, 1)), np.tile(point.inputs, (count, 1))
        batch = model.tangents(t, x, u, rows)
        if batch is None:
            return None
        rates, outputs = batch.derivatives[:, rows], batch.outputs[:, len(model.outputs) - m :]
        is_at_rest = (
            np.abs(batch.rates[:, rows]) <= EQUILIBRIUM_RATE_TOLERANCE * model.states.scales(point.states)[rows]
        )
        # One by one, linear models name what moves or is undefined.
        if not (np.isfinite(rates).all() and np.isfinite(outputs).all() and is_at_rest.all()):
            return None
        delayed = slice(P + len(point.inputs) - m, None)
        return [
            DelayCoefficients(f[:, :P], f[:, delayed], z[:, :P], z[:, delayed])
            for f, z in zip(rates, outputs, strict=True)
        ]

    def _agrees(self, times: FloatArray, batch: Sequence[DelayCoefficients]) -> bool:
        for index in (0, len(times) // 2):
            for matrix, other in zip(batch[index], self(float(times[index])), strict=True):
                if matrix.shape != other.shape or np.abs(matrix - other).max(initial=0.0) > BATCH_TOLERANCE * max(
                    1.0, float(np.abs(other).max(initial=0.0))
                ):
                    return False
        return True


def _linearize(model: Model, point: OperatingPoint, names: tuple[str, ...] | None) -> LinearModel:
    options = {"checks": "none"} if names is None else {"checks": "none", "independent": list(names)}
    linear = linearize_request(model, point, Request.of("linearize", None, options))
    speeds = np.abs(linear.f0) / linear.states.scales(linear.y0)
    if (speeds > EQUILIBRIUM_RATE_TOLERANCE).any():
        moving = linear.states.names[int(speeds.argmax())]
        raise UsageError(
            f"'{moving}' moves at t = {point.time:g} s: the point must be an equilibrium at all times of the period. "
            "Periodic motions of models with delays are not searched."
        )
    return linear


def _read_form(linear: LinearModel, first: DelayForm) -> DelayCoefficients:
    form = get_form(linear)
    if not np.array_equal(form.delays, first.delays):
        raise NumericalError("The delays change over the period. Only constant delays have a monodromy matrix here.")
    return DelayCoefficients(form.A, form.B2, form.C2, form.D22)


def _require_period(read_coefficients: Callable[[float], DelayCoefficients], name: str, period: float) -> None:
    times = [part * period for part in COMPARED_PHASE_FRACTIONS]
    pairs = [(read_coefficients(time), read_coefficients(time + period)) for time in times]
    for k in range(4):
        size = max(float(np.abs(now[k]).max(initial=0.0)) for now, _ in pairs)
        change = max(float(np.abs(now[k] - later[k]).max(initial=0.0)) for now, later in pairs)
        if change > PERIODICITY_TOLERANCE * size:
            raise UsageError(f"The coefficients of '{name}' are not the same after a period of {period:g} s.")


def _find_multipliers(system: PeriodicDelaySystem, count: int) -> tuple[NDArray[np.complex128], FloatArray, bool]:
    """Return the multipliers with twice as many windows until that changes them no more, and by how much it did."""
    windows = FIRST_WINDOW_COUNT
    values = sort_multipliers(collocate_period(system, system.make_mesh(windows), NODE_COUNT), count)
    while True:
        windows *= 2
        mesh = system.make_mesh(windows)
        finer = sort_multipliers(collocate_period(system, mesh, NODE_COUNT), count)
        nearest = np.abs(finer[:, None] - values).min(axis=1)
        errors = nearest + 1e-14 * np.maximum(np.abs(finer), 1.0)  # 1e-14: rounding of eigenvalues
        size = max(1.0, float(np.abs(finer[0])))
        if errors.max() <= CONVERGENCE_TOLERANCE * size:
            return finer, errors, True
        history = len(mesh) * (1 + float(system.delays.max()) / system.period)
        if 2 * history * NODE_COUNT * len(system.delays) > MAX_ORDER:
            return finer, errors, False
        values = finer


def _semi_discretize(system: PeriodicDelaySystem) -> tuple[complex, float]:
    """Return the largest multiplier by semi-discretization, and what half the step changes."""
    # Semi-discretization needs D = 0, and its matrix grows with the longest delay.
    if system.coefficients(0.0).D.any() or system.delays.max() > 4 * system.period:
        return complex(np.nan), np.inf
    coarse, fine = (
        complex(sort_multipliers(semi_discretize_period(system, steps), 1)[0])
        for steps in (SEMI_STEP_COUNT, 2 * SEMI_STEP_COUNT)
    )
    change = min(abs(fine - coarse), abs(fine - coarse.conjugate()))
    return fine, float(change)
