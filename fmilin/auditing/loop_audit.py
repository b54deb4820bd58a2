"""Second ways of margins: eigenvalues of the closed loop by bisection, and the sensitivity on a grid of frequencies.

Frequencies of margins and the delay are compared with L itself on the stability limit, solved anew.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim
from fmilin.design.margins import Margins
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.feedback import StateSpace, close_loop, measure_stability
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_DISK_MARGIN_TOLERANCE, AUDIT_MARGIN_TOLERANCE

if TYPE_CHECKING:
    from fmilin.design.margins import Margins
    from fmilin.numerics.feedback import StateSpace
    from fmilin.signals import FloatArray

GAIN_COUNT = 400  # of the grid between 1 and an end, or 1e6
FARTHEST_GAIN = 1e6
ANGLE_COUNT = 400
MAX_BISECTIONS = 80
FREQUENCIES = 4000
LONGEST_DELAY = 40  # samples that are tested
PADE_ORDER = 10


def audit_margins(margins: Margins) -> Audit:
    """Return the audit of margins, which know their loop."""
    if margins.loop is None:
        raise UsageError(
            "These margins have no reference to their loop: audit those that fl.design.margins(loop) returns."
        )
    return Audit("margins", margins.loop.model.name, tuple(compare_margins(margins)))


def compare_margins(margins: Margins) -> list[AuditRow]:
    """Return the rows of the margins of a loop."""
    return [] if margins.loop is None else list(_compare(margins, margins.loop))


def _compare(margins: Margins, linear: LinearModel) -> Iterator[AuditRow]:
    loop = StateSpace(linear.A, linear.B, linear.C, linear.D, linear.sample_time)
    way = "eigenvalues of the closed loop"
    stability = _measure(loop, 1.0)
    yield compare_claim("closed loop is stable", way, stated=margins.stable, holds=stability > 0)
    if not margins.stable:
        return
    yield from _compare_disk(margins, loop)
    yield from compare_peak(margins, loop)
    if len(loop.D) > 1:
        return

    def keep_gain(gain: float) -> bool:
        return _measure(loop, gain) > 0

    def keep_angle(angle: float) -> bool:
        return _measure(loop, np.exp(1j * angle)) > 0

    low = _find_end(keep_gain, np.geomspace(1.0, min(1 / FARTHEST_GAIN, margins.gain[0] or 1.0), GAIN_COUNT))
    high = _find_end(keep_gain, np.geomspace(1.0, max(FARTHEST_GAIN, _finite(margins.gain[1])), GAIN_COUNT))
    lower = 0.0 if low is None else low
    yield compare("lower gain", margins.gain[0], lower, f"{way}, bisected", AUDIT_MARGIN_TOLERANCE * lower)
    upper = math.inf if high is None else high
    yield compare("upper gain", margins.gain[1], upper, f"{way}, bisected", AUDIT_MARGIN_TOLERANCE * _finite(upper))
    angle = _find_end(keep_angle, np.linspace(0.0, math.pi * (1 - 1e-6), ANGLE_COUNT))
    if angle is not None:
        degrees = math.degrees(angle)
        yield compare(
            "phase", margins.phase, degrees, f"{way} turned by the angle, bisected", AUDIT_MARGIN_TOLERANCE * degrees
        )
    else:
        beyond = min(margins.phase, 180.0)
        yield compare(
            "phase", beyond, 180.0, f"{way} turned by the angle, none unstable", AUDIT_MARGIN_TOLERANCE * 180.0
        )
    yield from _compare_delay(margins, loop)
    unit = loop.sample_time or 1.0
    yield from compare_crossings(margins, loop, np.array(_list_angles(margins, loop)) / unit)
    disk_low, disk_high = margins.disk_gain
    allowed = (
        margins.gain[0] <= max(disk_low, 0.0) * (1 + 1e-9) + 1e-12
        and margins.gain[1] >= disk_high * (1 - 1e-9)
        and margins.phase >= margins.disk_phase * (1 - 1e-9)
    )
    yield compare_claim("gains and phase are at least those of the disk", "disk margin", holds=allowed)


def _measure(loop: StateSpace, factor: complex) -> float:
    """Return how far inside the stability limit the closed loop is with a factor; 0 where it has no solution."""
    closed = close_loop(loop, factor)
    return 0.0 if closed is None else measure_stability(closed, loop.sample_time)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _find_end(keep: Callable[[float], bool], values: FloatArray) -> float | None:
    """Return the end of the first stretch of values that keep the loop stable, by bisection."""
    stable = float(values[0])
    for value in values[1:].tolist():
        if keep(value):
            stable = value
            continue
        unstable = value
        for _ in range(MAX_BISECTIONS):
            middle = (stable + unstable) / 2
            if keep(middle):
                stable = middle
            else:
                unstable = middle
        return stable
    return None


def _compare_disk(margins: Margins, loop: StateSpace) -> Iterator[AuditRow]:
    """Compare the disk margin with S on a grid of frequencies, solved anew at each."""
    m, n = len(loop.D), loop.order
    largest = 0.0
    for point in _make_points(margins, loop):
        L = loop.D + (loop.C @ np.linalg.solve(point * np.eye(n) - loop.A, loop.B.astype(complex)) if n else 0.0)
        S = np.linalg.inv(np.eye(m) - L)
        largest = max(largest, float(np.linalg.svd(S - 0.5 * np.eye(m), compute_uv=False)[0]))
    if not loop.sample_time:
        at_infinity = np.linalg.inv(np.eye(m) - loop.D) - 0.5 * np.eye(m)
        largest = max(largest, float(np.linalg.norm(at_infinity, 2)))
    second = 1 / largest if largest else math.inf
    yield compare(
        "disk margin",
        margins.disk,
        second,
        "sensitivity on a grid of frequencies",
        AUDIT_DISK_MARGIN_TOLERANCE * _finite(second),
    )


def _make_points(margins: Margins, loop: StateSpace) -> Iterator[complex]:
    """Return points of the stability limit away from eigenvalues of the open loop."""
    open_poles = np.linalg.eigvals(loop.A).astype(np.complex128) if loop.order else np.empty(0, np.complex128)
    for angle in (0.0, *_list_angles(margins, loop)):
        point = complex(np.exp(1j * angle)) if loop.sample_time else 1j * angle
        if not len(open_poles) or np.abs(open_poles - point).min() > 1e-12 * max(abs(point), 1e-12):
            yield point


def _list_angles(margins: Margins, loop: StateSpace) -> list[float]:
    """Return positive angles of z, or frequencies, denser around the closed loop's eigenvalues and the stated peak."""
    closed = close_loop(loop)
    poles = np.linalg.eigvals(closed) if closed is not None and loop.order else np.ones(1) * -1.0
    poles = poles.astype(np.complex128)
    if loop.sample_time:
        rates = np.log(poles[poles != 0]) if (poles != 0).any() else np.ones(1)
        top = math.pi
        stated = margins.disk_frequency * loop.sample_time
    else:
        rates, top = poles, 1e4 * float(np.abs(poles).max())
        stated = margins.disk_frequency
    sizes = np.abs(rates)[np.abs(rates) > 0]
    bottom = 1e-4 * float(sizes.min(initial=top))
    grid = [np.geomspace(bottom, top, FREQUENCIES // 2)]
    spread = np.tan(np.linspace(-1.5, 1.5, 41))
    grid += [abs(rate.imag) + abs(rate.real) * spread for rate in rates[:60]]
    if math.isfinite(stated):
        grid.append(np.array([stated]))
    angles = np.unique(np.concatenate(grid))
    angles = angles[(angles > 0) & (angles <= top)]
    return list(angles.tolist())


def _compare_delay(margins: Margins, loop: StateSpace) -> Iterator[AuditRow]:
    """Compare the delay margin with loops that have a delay just below it and just above it.

    Of a sampled loop these are whole samples; of a continuous one Pade's approximation, which is exact to 1e-8 up to a
    turn of L by 360 degrees.
    """
    delay = margins.delay
    if loop.sample_time:
        samples = delay / loop.sample_time
        last = min(LONGEST_DELAY, math.ceil(samples - 1e-9) - 1) if math.isfinite(samples) else LONGEST_DELAY
        is_stable = all(_measure(_delay_by_samples(loop, k), 1.0) > 0 for k in range(1, last + 1))
        yield compare_claim(f"stable with 1 to {last} samples of delay", "eigenvalues with the delay", holds=is_stable)
        return
    if not 0 < delay < math.inf:
        return
    verdicts = [_measure(_delay_by_pade(loop, delay * part), 1.0) > 0 for part in (1 - 1e-4, 1 + 1e-4)]
    way = f"Pade's approximation of order {PADE_ORDER}"
    yield compare_claim("stable just below the delay", way, holds=verdicts[0])
    yield compare_claim("stable just above the delay", way, stated=False, holds=verdicts[1])


def _delay_by_samples(loop: StateSpace, samples: int) -> StateSpace:
    n = loop.order
    first, last = np.eye(samples, 1), np.eye(1, samples, samples - 1)
    shift = np.diag(np.ones(samples - 1), -1)
    A = np.block([[loop.A, np.zeros((n, samples))], [first @ loop.C, shift]])
    B = np.vstack([loop.B, first @ loop.D])
    return StateSpace(A, B, np.hstack([np.zeros((1, n)), last]), np.zeros((1, 1)), loop.sample_time)


def _delay_by_pade(loop: StateSpace, delay: float) -> StateSpace:
    import control

    P = control.ss(control.tf(*control.pade(delay, PADE_ORDER)))
    n = loop.order
    A = np.block([[loop.A, np.zeros((n, P.nstates))], [P.B @ loop.C, P.A]])
    B = np.vstack([loop.B, P.B @ loop.D])
    return StateSpace(A, B, np.hstack([P.D @ loop.C, P.C]), P.D @ loop.D, 0.0)


FLAT_DISTANCE_TOLERANCE = (
    1e-8  # of the distance to the critical disk: frequencies with so small a difference are equally near
)
WAY = "L on the stability limit"


def compare_crossings(margins: Margins, loop: StateSpace, grid: FloatArray) -> Iterator[AuditRow]:
    """Compare the frequencies of a single loop's margins with L there, and the delay with all crossings of |L| = 1.

    ``grid`` are frequencies in rad/s, rising.
    """
    if math.isfinite(margins.phase_frequency) and margins.phase_frequency > 0:
        L = evaluate_loop(loop, margins.phase_frequency)
        yield compare(f"|L| at {margins.phase_frequency:.6g} rad/s (phase)", 1.0, abs(L), WAY, AUDIT_MARGIN_TOLERANCE)
    if math.isfinite(margins.gain_frequency) and margins.gain_frequency > 0:
        L = evaluate_loop(loop, margins.gain_frequency)
        ends = [end for end in margins.gain if 0 < end < math.inf]
        nearest = min(ends, key=lambda end: abs(end * L - 1), default=math.nan)
        quantity = f"L times the gain at {margins.gain_frequency:.6g} rad/s"
        yield compare(quantity, 1.0, nearest * L, WAY, 10 * AUDIT_MARGIN_TOLERANCE)
    if 0 < margins.delay < math.inf:
        delay = find_delay(loop, grid)
        if math.isfinite(delay):
            yield compare(
                "delay", margins.delay, delay, f"{WAY}, crossings of |L| = 1", 10 * AUDIT_MARGIN_TOLERANCE * delay
            )


def compare_peak(margins: Margins, loop: StateSpace) -> Iterator[AuditRow]:
    """Compare the frequency of the disk margin with the minimum of the distance to the critical disk near it."""
    from scipy.optimize import minimize_scalar

    stated = margins.disk_frequency
    if not 0 < stated < math.inf:
        return
    top = math.pi / loop.sample_time if loop.sample_time else math.inf
    low, high = 0.9 * stated, min(1.1 * stated, top)

    def distance(frequency: float) -> float:
        return _compute_disk(loop, frequency)

    try:
        minimum = minimize_scalar(distance, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * stated})
        second = min((float(minimum.x), low, high), key=distance)
        step = 0.01 * stated
        least = distance(second)
        bend = (distance(second - step) + distance(second + step) - 2 * least) / step**2
    except np.linalg.LinAlgError:  # an eigenvalue of the open loop lies there
        return
    # A minimum is known to where the distance differs from its least value by more than rounding: a flat one hardly.
    flat = math.sqrt(2 * FLAT_DISTANCE_TOLERANCE * least / bend) if bend > 0 else math.inf
    tolerance = 10 * AUDIT_MARGIN_TOLERANCE * stated + flat
    yield compare("frequency of the disk margin", stated, second, "minimum over frequencies near it", tolerance)


def _compute_disk(loop: StateSpace, frequency: float) -> float:
    """Return the disk margin of a loop at one frequency in rad/s."""
    m, n = len(loop.D), loop.order
    point = cmath.exp(1j * frequency * loop.sample_time) if loop.sample_time else 1j * frequency
    L = loop.D.astype(np.complex128)
    if n:
        L = L + loop.C @ np.linalg.solve(point * np.eye(n) - loop.A, loop.B.astype(np.complex128))
    sensitivity = np.linalg.inv(np.eye(m) - L)
    return 1 / float(np.linalg.norm(sensitivity - 0.5 * np.eye(m), 2))


def evaluate_loop(loop: StateSpace, frequency: float) -> complex:
    """Return L at a frequency in rad/s."""
    point = cmath.exp(1j * frequency * loop.sample_time) if loop.sample_time else 1j * frequency
    n = loop.order
    through = complex(loop.D[0, 0])
    if not n:
        return through
    states = np.linalg.solve(point * np.eye(n) - loop.A, loop.B.astype(np.complex128))
    return complex((loop.C @ states)[0, 0]) + through


def find_delay(loop: StateSpace, grid: FloatArray) -> float:
    """Return the shortest dead time that turns some L of modulus 1 onto 1; inf where no crossing is found."""
    delays = []
    for frequency in _find_unit_frequencies(loop, grid):
        angle = cmath.phase(evaluate_loop(loop, frequency)) % (2 * math.pi)
        delays.append(angle / frequency)
    if loop.sample_time and abs(evaluate_loop(loop, math.pi / loop.sample_time)) >= 1:
        delays.append(loop.sample_time)  # a sample of delay changes the sign of L at z = -1
    return min(delays, default=math.inf)


def _find_unit_frequencies(loop: StateSpace, grid: FloatArray) -> Iterator[float]:
    from scipy.optimize import brentq

    def excess(frequency: float) -> float:
        return math.log(max(abs(evaluate_loop(loop, frequency)), 1e-300))

    last = math.nan
    before = math.nan
    for frequency in grid.tolist():
        try:
            value = excess(frequency)
        except np.linalg.LinAlgError:  # an eigenvalue of the open loop
            continue
        if math.isfinite(before) and before * value < 0:
            yield float(brentq(excess, last, frequency, xtol=1e-14 * frequency, rtol=1e-12))
        last, before = frequency, value
