"""Stability of equilibria of models with delays and periodic coefficients: milling, parametric excitation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.delayed import get_form
from fmilin.linearization.linearize import linearize_as
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import operating_point
from fmilin.model.capabilities import HasDelays
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

    @cache
    def read_coefficients(time: float) -> DelayCoefficients:
        linear = _linearize(model, replace(start, time=start.time + time), names)
        return _read_form(linear, form)

    _require_period(read_coefficients, model.info.name, period)
    system = PeriodicDelaySystem(read_coefficients, form.delays, period, tuple(sorted(breaks)))
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
    if difference > SECOND_WAY_FACTOR * second_error + float(errors[0]) + 1e-6 * largest:
        text = (
            f"Semi-discretization gives {second:.6g} for the largest multiplier {complex(values[0]):.6g}: trust "
            "neither before you know the cause. Coefficients that jump need breaks=."
        )
        remarks.append(Remark("accuracy", text))
    delays = dict(zip(first.delays, form.delays.tolist(), strict=True))
    return DelayedFloquet(values, errors, period, delays, second, second_error, model.info.name, tuple(remarks))


def _linearize(model: Model, point: OperatingPoint, names: tuple[str, ...] | None) -> LinearModel:
    options = {"checks": "none"} if names is None else {"checks": "none", "independent": list(names)}
    linear = linearize_as(model, point, Request.of("linearize", None, options))
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
        errors = nearest + 1e-14 * np.maximum(np.abs(finer), 1.0)
        size = max(1.0, float(np.abs(finer[0])))
        if errors.max() <= CONVERGENCE_TOLERANCE * size:
            return finer, errors, True
        history = len(mesh) * (1 + float(system.delays.max()) / system.period)
        if 2 * history * NODE_COUNT * len(system.delays) > MAX_ORDER:
            return finer, errors, False
        values = finer


def _semi_discretize(system: PeriodicDelaySystem) -> tuple[complex, float]:
    """Return the largest multiplier by semi-discretization, and what half the step changes."""
    if system.coefficients(0.0).D.any() or system.delays.max() > 4 * system.period:
        return complex(np.nan), np.inf
    coarse, fine = (
        complex(sort_multipliers(semi_discretize_period(system, steps), 1)[0])
        for steps in (SEMI_STEP_COUNT, 2 * SEMI_STEP_COUNT)
    )
    change = min(abs(fine - coarse), abs(fine - coarse.conjugate()))
    return fine, float(change)
