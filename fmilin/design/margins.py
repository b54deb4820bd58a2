"""How far a loop is from instability: gain, phase, delay and disk margin.

All four are read from S = 1/(1 - L) along the stability limit (:mod:`fmilin.numerics.sensitivity_curve`), which is
bounded where L is not. Each end of the gains and of the phase is then confirmed by the eigenvalues of the closed loop
just inside and just outside, gains and phases in between are tested in the same way, and the disk margin bounds both
from below: where two of these ways contradict each other, a warning names both numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.design.delayed_margins import bound_closed_errors, compute_delayed_margins
from fmilin.design.stability_ends import TEST_DISTANCES, End, confirm_end, confirm_gain_ends
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.numerics.feedback import (
    StateSpace,
    close_loop,
    decide_stability,
    invert_return_difference,
    measure_stability,
)
from fmilin.numerics.sensitivity_curve import SIGNIFICANT_ROUNDING_FACTOR, CurveCrossing, SensitivityCurve
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TESTED_GAIN_COUNT = 12  # between 1 and an end
FARTHEST_GAIN = 1e6  # up to which an end at infinity is tested, down to its inverse where the end is 0
TESTED_PHASE_COUNT = 12
DISK_MARGIN_TOLERANCE = 1e-9  # relative: by which a margin may be smaller than the disk margin guarantees
ON_THE_LIMIT = 1e-10  # relative to the largest eigenvalue: one this near, and within rounding, is on the limit
UNIT_GAIN_ROUNDING = 1e-12  # |D| this near to 1 counts as 1: any delay then is too much


@dataclass(frozen=True, slots=True)
class Margins(TableRepr):
    """Margins of a loop that is stable when closed; NaN where there are none, and where it is not."""

    _attributes = ".gain, .phase, .delay, .disk, .disk_gain, .disk_phase, .warnings, .plot()"

    stable: bool  #: whether the closed loop is
    gain: tuple[float, float] = (math.nan, math.nan)  #: factors that it bears, down and up; 0 and inf without bounds
    gain_frequency: float = math.nan  #: of the nearer one, in rad/s; inf where the crossing is at infinite frequency
    phase: float = math.nan  #: the smallest, in degrees; inf without any
    phase_frequency: float = math.nan  #: in rad/s
    delay: float = math.nan  #: how much more dead time it bears, in seconds
    disk: float = math.nan  #: alpha, a number; of several loops, for changes that differ between them: a lower bound
    disk_frequency: float = math.nan  #: in rad/s
    warnings: tuple[Remark, ...] = ()  #: where two ways of computing a margin contradict each other
    loop: LinearModel | None = field(default=None, repr=False, compare=False)  #: the loop that they belong to

    @implemented_in("fmilin.report.designs:show_margins")
    def _print_table(self, page: Sheet) -> None: ...

    @implemented_in("fmilin.report.frequency_plots:draw_margins_of_loop")
    def plot(self) -> Figure:
        """Return Bode and Nyquist diagrams of the loop with these margins, and S and T with their peaks."""
        ...

    @property
    def disk_gain(self) -> tuple[float, float]:
        """Factors that the loop bears along with :attr:`disk_phase`."""
        half = self.disk / 2
        if half > 1:
            return (1 / half - 1) / (1 / half + 1), math.inf
        return (1 - half) / (1 + half), (1 + half) / (1 - half) if half < 1 else math.inf

    @property
    def disk_phase(self) -> float:
        """Degrees that the loop bears along with :attr:`disk_gain`."""
        return math.degrees(2 * math.atan(self.disk / 2))

    def __str__(self) -> str:
        warnings = "".join(f" {warning}" for warning in self.warnings)
        if not self.stable:
            return f"The closed loop is unstable: it has no margins.{warnings}"
        low, high = self.disk_gain
        single = (
            f"gain {self.gain[0]:.4g} to {self.gain[1]:.4g}{_at(self.gain_frequency)}, phase {self.phase:.4g} deg"
            f"{_at(self.phase_frequency)}, delay {self.delay:.4g} s; "
        )
        return (
            f"Margins of the closed loop, which is stable: {'' if math.isnan(self.phase) else single}disk margin "
            f"{self.disk:.4g}{_at(self.disk_frequency)}: gains {low:.4g} to {high:.4g} and phases within "
            f"{self.disk_phase:.4g} deg at once.{warnings}"
        )


@kinds_checked
def margins(loop: LinearModel) -> Margins:
    """Return the margins of L from :func:`fmilin.loop_transfer`, with the sign as wired: the critical point is +1.

    Raises UsageError when inputs and outputs are not as many: this is not a loop.

    Parameters
    ----------
    loop : LinearModel
        Of one wire; of several, only the disk margin against all changes at once is given, the others are NaN: cut one
        wire after another for those.

    Returns
    -------
    Margins
        ``gain``: the loop is stable for every factor between the two ends. ``phase``: for every turn e^(j phi) by less.
        ``delay``: for every shorter dead time, in a sampled loop for every whole number of samples below it (a gain of
        1 or more at half the sampling frequency allows less than one sample); 0 where a continuous L is 1 or more at
        infinite frequency. Ends at s = 0, at infinite frequency, at z = 1 and at z = -1 count.
    """
    if len(loop.inputs) != len(loop.outputs) or not len(loop.inputs):
        raise UsageError(
            f"'{loop.model.name}' has {len(loop.inputs)} inputs and {len(loop.outputs)} outputs: margins are defined "
            "for a loop, as fl.loop_transfer returns it."
        )
    if isinstance(loop, DelayedLinearModel):
        return _compute_margins_between_delays(loop)
    system = StateSpace(loop.A, loop.B, loop.C, loop.D, loop.sample_time)
    result = compute_margins(system)
    return replace(result, loop=loop, warnings=(*result.warnings, *_warn_of_errors(loop, result)))


def _compute_margins_between_delays(loop: DelayedLinearModel) -> Margins:
    """Return the margins of a loop with delays; those of the loop without delays where all of them are zero."""
    form = loop.form.close_undelayed()
    if not len(form.delays):
        return replace(compute_margins(StateSpace(form.A, form.B1, form.C1, form.D11)), loop=loop)
    late = compute_delayed_margins(loop.form, bound_closed_errors(loop))
    return Margins(
        stable=late.stable,
        gain=late.gain,
        gain_frequency=late.gain_frequency,
        phase=math.degrees(late.phase),
        phase_frequency=late.phase_frequency,
        delay=late.delay,
        disk=late.disk,
        disk_frequency=late.disk_frequency,
        warnings=tuple(Remark("margins", text) for text in late.warnings),
        loop=loop,
    )


def _warn_of_errors(loop: LinearModel, result: Margins) -> list[Remark]:
    """Say where the stated errors of the loop's matrices could make the closed loop unstable."""
    system = StateSpace(loop.A, loop.B, loop.C, loop.D, loop.sample_time)
    closed, M = close_loop(system), invert_return_difference(system, 1.0)
    if not result.stable or closed is None or M is None:
        return []
    E, B, C = loop.errors, np.abs(loop.B @ M), np.abs(M @ loop.C)
    errors = E.A + (E.B + B @ E.D) @ C + B @ E.C
    if decide_stability(closed, loop.sample_time, errors) is not None:
        return []
    text = "The closed loop is nearer to its stability limit than the errors of A, B, C and D: it may be unstable."
    return [Remark("margins", text)]


def family_margins(family: LinearFamily) -> NDArray[np.object_]:
    """Return the margins of every loop of a family."""
    all_margins = np.full(len(family), None, dtype=object)
    for number, linear in family.good():
        all_margins[number] = margins(linear)
    return all_margins.reshape(family.shape)


def compute_margins(loop: StateSpace) -> Margins:
    """Return the margins of a loop with as many inputs as outputs, the critical point being +1."""
    loop = loop.balance()
    closed = close_loop(loop)
    if closed is None:
        text = "1 - D is singular: the closed loop has no unique solution."
        return Margins(stable=False, warnings=(Remark("margins", text),))
    decided = decide_stability(closed, loop.sample_time)
    if decided is False or (decided is None and measure_stability(closed, loop.sample_time) <= ON_THE_LIMIT):
        return Margins(stable=False)
    curve = make_sensitivity_curve(loop)
    peak, disk_frequency = curve.find_peak()
    disk = 1.0 / peak if peak > 0 else math.inf
    if len(loop.D) > 1:
        return Margins(stable=True, disk=disk, disk_frequency=disk_frequency)
    low, high, doubts = _find_gains(loop, curve)
    phase, phase_doubts = _find_phase(loop, curve)
    ends = [end for end in (low, high) if 0 < end.value < math.inf]
    nearest = min(ends, key=lambda end: abs(math.log(end.value)), default=End(math.nan, math.nan))
    result = Margins(
        stable=True,
        gain=(low.value, high.value),
        gain_frequency=nearest.frequency,
        phase=math.degrees(phase.value),
        phase_frequency=phase.frequency,
        delay=_find_delay(loop, curve),
        disk=disk,
        disk_frequency=disk_frequency,
    )
    rounded = [] if decided else ["Rounding of the closed loop's matrix may make it unstable."]
    texts = [*rounded, *doubts, *phase_doubts, *_compare_with_disk(result)]
    return replace(result, warnings=tuple(Remark("margins", text) for text in texts))


def compute_disk_margin(loop: StateSpace) -> float:
    """Return the disk margin of a loop with the critical point +1, NaN where it is unstable when closed."""
    loop = loop.balance()
    closed = close_loop(loop)
    if closed is None or measure_stability(closed, loop.sample_time) <= 0:
        return math.nan
    peak = make_sensitivity_curve(loop).find_peak()[0]
    return 1.0 / peak if peak > 0 else math.inf


def make_sensitivity_curve(loop: StateSpace) -> SensitivityCurve:
    """Return S of the closed loop: x' = (A + B M C) x + B M r and w = M C x + M r with M = (1 - D)^-1."""
    M = invert_return_difference(loop, 1.0)
    if M is None:
        raise ValueError("The sensitivity S does not exist, because 1 - D is singular.")
    return SensitivityCurve(loop.A + loop.B @ M @ loop.C, loop.B @ M, M @ loop.C, M @ loop.D, loop.sample_time)


def decide_for_factor(loop: StateSpace, factor: complex) -> bool | None:
    """Return whether the loop with a real or complex factor is stable when closed; None where rounding decides."""
    closed = close_loop(loop, factor)
    return None if closed is None else decide_stability(closed, loop.sample_time)


# -- gains -------------------------------------------------------------------------------------------------------------


def _find_gains(loop: StateSpace, curve: SensitivityCurve) -> tuple[End, End, list[str]]:
    """Return both ends of the gains around 1 for which the closed loop is stable, and what contradicts them."""
    factors = [end for end in map(_compute_factor, curve.find_real_points()) if end is not None]
    return confirm_gain_ends(factors, TESTED_GAIN_COUNT, FARTHEST_GAIN, lambda gain: decide_for_factor(loop, gain))


def _compute_factor(crossing: CurveCrossing) -> End | None:
    """Return k = 1/L = S/T; None where it is not positive, or is 0 or infinite but for rounding."""
    S, T = crossing.S.real, crossing.T.real
    noise = SIGNIFICANT_ROUNDING_FACTOR * crossing.rounding
    if abs(T) <= noise or abs(S) <= noise or S / T <= 0:
        return None
    return End(S / T, crossing.frequency)


# -- phase and delay ---------------------------------------------------------------------------------------------------


def _argument(crossing: CurveCrossing) -> float:
    """Return the argument of L = T/S in (-pi, pi]."""
    return float(np.angle(crossing.T * crossing.S.conjugate()))


def _find_phase(loop: StateSpace, curve: SensitivityCurve) -> tuple[End, list[str]]:
    """Return the smallest turn, in rad, that makes the closed loop unstable, and what contradicts it."""
    ends = [End(abs(_argument(c)), c.frequency) for c in curve.find_unit_loops()]
    end = min(ends, default=End(math.inf, math.nan))
    angles = np.linspace(0.0, min(end.value, math.pi), TESTED_PHASE_COUNT + 2)[1:-1]

    def decide(angle: float) -> bool | None:
        return decide_for_factor(loop, np.exp(1j * angle))

    if end.value < math.pi * (1 - TEST_DISTANCES[-1]):
        return confirm_end("phase", end, angles, decide)
    confirmed, doubts = confirm_end(
        "phase", End(math.inf, math.nan), angles, decide
    )  # beyond 180 deg all repeats itself
    return (confirmed, doubts) if doubts else (end, [])


def _find_delay(loop: StateSpace, curve: SensitivityCurve) -> float:
    """Return the shortest dead time that makes the closed loop unstable, in seconds."""
    delays = [
        (_argument(c) % (2 * math.pi)) / c.frequency for c in curve.find_unit_loops() if 0 < c.frequency < math.inf
    ]
    if not loop.sample_time:
        direct = abs(float(loop.D[0, 0]))
        if direct >= 1 - UNIT_GAIN_ROUNDING:  # waves of arbitrarily high frequency grow from turn to turn
            return 0.0
        return min(delays, default=math.inf)
    fastest = curve.evaluate(math.pi)[0, 0, 0]
    if abs(fastest) >= abs(1.0 + fastest) * (1 - UNIT_GAIN_ROUNDING):
        # |L(-1)| >= 1: one sample of delay changes the sign of L(-1), and with it the number of turns around +1.
        delays.append(loop.sample_time)
    return min(delays, default=math.inf)


def _compare_with_disk(result: Margins) -> list[str]:
    """Return where a margin is smaller than the disk margin guarantees."""
    low, high = result.disk_gain
    texts = []
    for name, stated, bound, contradicts in (
        (
            "lower gain",
            result.gain[0],
            low,
            result.gain[0] > max(low, 0.0) * (1 + DISK_MARGIN_TOLERANCE) + DISK_MARGIN_TOLERANCE,
        ),
        ("upper gain", result.gain[1], high, result.gain[1] < high * (1 - DISK_MARGIN_TOLERANCE)),
        ("phase", result.phase, result.disk_phase, result.phase < result.disk_phase * (1 - DISK_MARGIN_TOLERANCE)),
    ):
        if contradicts:
            texts.append(f"The {name} {stated:.6g} contradicts the disk margin, which guarantees {bound:.6g}.")
    return texts


def _at(frequency: float) -> str:
    return "" if math.isnan(frequency) else f" (at {frequency:.4g} rad/s)"
