"""Second ways of margins: eigenvalues of the closed loop by bisection, and the sensitivity on a grid of frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from fmilin.auditing.crossings import compare_crossings, compare_peak
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim
from fmilin.design.margins import Margins
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.feedback import StateSpace, close_loop, measure_stability
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_DISK, AUDITED_ENDS

GAINS = 400  # of the grid between 1 and an end, or 1e6
FARTHEST_GAIN = 1e6
ANGLES = 400
BISECTIONS = 80
FREQUENCIES = 4000
LONGEST_DELAY = 40  # samples that are tested
PADE_ORDER = 10


def audit_margins(margins: Margins) -> Audit:
    """Return the audit of margins, which know their loop."""
    if margins.loop is None:
        raise UsageError("These margins do not know their loop: take those that fl.design.margins(loop) returns.")
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

    low = _find_end(keep_gain, np.geomspace(1.0, min(1 / FARTHEST_GAIN, margins.gain[0] or 1.0), GAINS))
    high = _find_end(keep_gain, np.geomspace(1.0, max(FARTHEST_GAIN, _finite(margins.gain[1])), GAINS))
    lower = 0.0 if low is None else low
    yield compare("lower gain", margins.gain[0], lower, f"{way}, bisected", AUDITED_ENDS * lower)
    upper = math.inf if high is None else high
    yield compare("upper gain", margins.gain[1], upper, f"{way}, bisected", AUDITED_ENDS * _finite(upper))
    angle = _find_end(keep_angle, np.linspace(0.0, math.pi * (1 - 1e-6), ANGLES))
    if angle is not None:
        degrees = math.degrees(angle)
        yield compare("phase", margins.phase, degrees, f"{way} turned by the angle, bisected", AUDITED_ENDS * degrees)
    else:
        beyond = min(margins.phase, 180.0)
        yield compare("phase", beyond, 180.0, f"{way} turned by the angle, none unstable", AUDITED_ENDS * 180.0)
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
        for _ in range(BISECTIONS):
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
        far = np.linalg.inv(np.eye(m) - loop.D) - 0.5 * np.eye(m)
        largest = max(largest, float(np.linalg.norm(far, 2)))
    second = 1 / largest if largest else math.inf
    yield compare(
        "disk margin", margins.disk, second, "sensitivity on a grid of frequencies", AUDITED_DISK * _finite(second)
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
        kept = all(_measure(_delay_by_samples(loop, k), 1.0) > 0 for k in range(1, last + 1))
        yield compare_claim(f"stable with 1 to {last} samples of delay", "eigenvalues with the delay", holds=kept)
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
