"""Margins of loops with delays, from their exact frequency response and the eigenvalues of the closed loop.

Beyond a frequency the loop is certainly smaller than 1; up to there a grid that resolves the phase of the delays
brackets every crossing, and Brent's method finds it. The argument principle then counts eigenvalues of the closed loop
just inside and just outside of each end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from fmilin.design.stability_ends import End, confirm_end, confirm_gain_ends
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.linear_model.stability import SAFETY_FACTOR
from fmilin.numerics.delay_counts import count_eigenvalues_right_of
from fmilin.numerics.delay_eigenvalues import find_rightmost_eigenvalues
from fmilin.numerics.delay_form import Complex, DelayForm
from fmilin.numerics.delay_loops import require_retarded
from fmilin.signals import FloatArray

GRID_DECADES = 6.0  # below the slowest corner at which the grid begins
POINTS_PER_DECADE = 400
POINTS_PER_RADIAN = 8.0  # of the phase of the delays
MAX_GRID_SIZE = 400_000
LIMIT_FRACTION = 0.2  # of the distance of L's limit from the unit circle, within which L is at the end of the grid
MIN_LIMIT_DISTANCE = 1e-3
UNIT_GAIN_ROUNDING = 1e-12  # |D| this near to 1 counts as 1: any delay then is too much
MIN_POLE_WIDTH = 1e-9  # relative to its modulus, of a pole on the axis
POLE_OFFSETS = np.sinh(np.linspace(-8.0, 8.0, 161))  # of grid points around a pole, in widths
REFINED_PEAK_COUNT = 12
MAX_ROOT_COUNT = 200
MAX_GAP_CONDITION_NUMBER = 1e12  # of 1 - D: more is singular
TESTED_COUNT = 4  # gains, and delays, between the middle and an end
FARTHEST_GAIN = 1e3  # up to which an end at infinity is tested, down to its inverse where the end is 0
CLOSED_EIGENVALUE_COUNT = 6  # rightmost ones that decide whether the closed loop is stable
REAL_AXIS_TOLERANCE = 1e-12  # of |L|: smaller imaginary parts on the grid are zero


class DelayedMargins(NamedTuple):
    """Margins of a single loop with delays; see :class:`fmilin.design.margins.Margins`."""

    stable: bool
    gain: tuple[float, float] = (math.nan, math.nan)
    gain_frequency: float = math.nan
    phase: float = math.nan  # in rad
    phase_frequency: float = math.nan
    delay: float = math.nan
    disk: float = math.nan
    disk_frequency: float = math.nan
    warnings: tuple[str, ...] = ()


def close_form(form: DelayForm, gain: float = 1.0) -> DelayForm:
    """Return the autonomous form of the loop u = gain y. UsageError where it has no solution."""
    gap = np.eye(len(form.D11)) - gain * form.D11
    if np.linalg.cond(gap) > MAX_GAP_CONDITION_NUMBER:
        raise UsageError("The closed loop has no solution: 1 - D is singular. Put a state into the loop.")
    M = gain * np.linalg.inv(gap)
    return DelayForm(
        A=form.A + form.B1 @ M @ form.C1,
        B1=form.B1[:, :0],
        B2=form.B2 + form.B1 @ M @ form.D12,
        C1=form.C1[:0],
        C2=form.C2 + form.D21 @ M @ form.C1,
        D11=form.D11[:0, :0],
        D12=form.D12[:0],
        D21=form.D21[:, :0],
        D22=form.D22 + form.D21 @ M @ form.D12,
        delays=form.delays,
        errors=form.errors,
    )


def bound_closed_errors(loop: DelayedLinearModel) -> FloatArray:
    """Return errors of the entries of the closed loop's [[A, B2], [C2, D22]], shape (n + m, n + m), from its parts'."""
    form, E, k = loop.form, loop.core.errors, len(loop.outputs)
    gap = np.eye(k) - form.D11
    if np.linalg.cond(gap) > MAX_GAP_CONDITION_NUMBER:
        return form.errors
    M = np.abs(np.linalg.inv(gap))
    into = np.abs(np.vstack((form.B1, form.D21))) @ M
    out = M @ np.abs(np.hstack((form.C1, form.D12)))
    into_errors = np.vstack((E.B[:, :k], E.D[k:, :k]))
    out_errors = np.hstack((E.C[:k], E.D[:k, k:]))
    return np.asarray(form.errors + (into_errors @ M + into @ E.D[:k, :k]) @ out + into @ out_errors)


def compute_delayed_margins(form: DelayForm, errors: FloatArray | None = None) -> DelayedMargins:
    """Return the margins of a loop with one input and one output, of several the disk margin; the critical point is +1.

    ``errors`` are those of :func:`bound_closed_errors`, and count in the closed loop's stability. UsageError where
    what passes the delays without a state is too large: infinitely many eigenvalues decide then.
    """
    closed = close_form(form)
    if errors is not None and errors.shape == closed.errors.shape:
        closed = replace(closed, errors=errors)
    stable, texts, modes = _judge_closed(closed)
    form = form.close_undelayed()
    if not stable:
        return DelayedMargins(stable=False, warnings=tuple(texts))
    grid = _make_grid(form, modes)
    w = grid.w
    if grid.is_capped:
        texts.append(
            f"The frequency response was evaluated at {MAX_GRID_SIZE} frequencies up to {w[-1]:.4g} rad/s, which do "
            "not resolve the phase of the delays at high frequencies: margins there may be smaller."
        )
    L: Complex = form.evaluate(np.asarray(1j * w, dtype=np.complex128))
    peak, disk_frequency = _find_peak(
        lambda x: float(_measure_disk(_evaluate_loop(form, x)[None])[0]), w, _measure_disk(L)
    )
    if not grid.late_gain:
        limit = float(_measure_disk(form.D11[None].astype(np.complex128))[0])
        peak, disk_frequency = max((peak, disk_frequency), (limit, math.inf))
    if len(form.D11) > 1:
        return DelayedMargins(stable=True, disk=1.0 / peak, disk_frequency=disk_frequency, warnings=tuple(texts))
    single = L[:, 0, 0]

    def evaluate(frequency: float) -> complex:
        return complex(_evaluate_loop(form, frequency)[0, 0])

    crossovers = _find_roots(lambda x: abs(evaluate(x)) - 1.0, w, np.abs(single) - 1.0)
    angles = [(float(np.angle(evaluate(x))), x) for x in crossovers]
    phase, phase_frequency = min(((abs(a), x) for a, x in angles), default=(math.inf, math.nan))
    low, high, gain_texts = _find_gains(form, evaluate, w, single, grid.late_gain)
    if grid.direct_gain >= 1 - UNIT_GAIN_ROUNDING:  # waves of arbitrarily high frequency grow from turn to turn
        delay = End(0.0, math.inf)
    else:
        delay = min((End((a % (2 * math.pi)) / x, x) for a, x in angles), default=End(math.inf, math.nan))
    between = np.linspace(0.0, delay.value, TESTED_COUNT + 2)[1:-1] if 0 < delay.value < math.inf else np.empty(0)
    delay, delay_texts = confirm_end("delay", delay, between, lambda seconds: _decide(delay_input(form, seconds)))
    ends = [end for end in (low, high) if 0 < end.value < math.inf]
    nearest = min(ends, key=lambda end: abs(math.log(end.value)), default=End(math.nan, math.nan))
    return DelayedMargins(
        stable=True,
        gain=(low.value, high.value),
        gain_frequency=nearest.frequency,
        phase=phase,
        phase_frequency=phase_frequency,
        delay=delay.value,
        disk=1.0 / peak,
        disk_frequency=disk_frequency,
        warnings=(*texts, *gain_texts, *delay_texts),
    )


def delay_input(form: DelayForm, seconds: float) -> DelayForm:
    """Return the same system with a delay before its inputs."""
    n, m, k = len(form.A), len(form.delays), form.B1.shape[1]
    return DelayForm(
        A=form.A,
        B1=np.zeros((n, k)),
        B2=np.hstack((form.B2, form.B1)),
        C1=form.C1,
        C2=np.vstack((form.C2, np.zeros((k, n)))),
        D11=np.zeros((len(form.C1), k)),
        D12=np.hstack((form.D12, form.D11)),
        D21=np.vstack((np.zeros((m, k)), np.eye(k))),
        D22=np.block([[form.D22, form.D21], [np.zeros((k, m + k))]]),
        delays=np.append(form.delays, np.full(k, seconds)),
    )


def _evaluate_loop(form: DelayForm, frequency: float) -> Complex:
    return np.asarray(form.evaluate(np.array([1j * frequency]))[0])


def _measure_disk(L: Complex) -> FloatArray:
    """Return |S - 1/2|, the inverse of the disk margin, at each frequency."""
    S = np.linalg.inv(np.eye(L.shape[1]) - L)
    return np.asarray(np.linalg.norm(S - 0.5 * np.eye(L.shape[1]), 2, axis=(1, 2)))


def _decide(form: DelayForm, gain: float = 1.0) -> bool | None:
    """Return whether a loop is stable when closed; None where that is not decided."""
    try:
        count = count_eigenvalues_right_of(close_form(form, gain), 0.0)
    except (UsageError, NumericalError):
        return None
    return None if count is None else count == 0


def _judge_closed(closed: DelayForm) -> tuple[bool, list[str], Complex]:
    """Return whether the closed loop is stable, warnings, and its rightmost eigenvalues."""
    closed = closed.close_undelayed()
    if closed.find_neutral_channels():
        count = count_eigenvalues_right_of(closed, 0.0)
        if count is None:
            require_retarded(closed)
        return count == 0, [], np.empty(0, np.complex128)
    spectrum = find_rightmost_eigenvalues(closed, CLOSED_EIGENVALUE_COUNT)
    s, e = spectrum.values, SAFETY_FACTOR * spectrum.errors
    is_undecided = bool(((s.real - e <= 0) & (s.real + e >= 0)).any())
    stable = not (s.real - e > 0).any() and not (s.real >= 0).any()
    if is_undecided and not (s.real - e > 0).any():
        worst = "stable" if stable else "unstable"
        text = (
            f"The rightmost eigenvalue of the closed loop, {s.real.max():.3g} 1/s, is within its error of the "
            f"stability limit: the loop counts as {worst}."
        )
        return stable, [text], s
    return stable, [], s


def _find_gains(
    form: DelayForm, evaluate: Callable[[float], complex], w: FloatArray, L: Complex, late_gain: float
) -> tuple[End, End, list[str]]:
    """Return both ends of the gains around 1, and what contradicts them."""
    imaginary = np.where(np.abs(L.imag) <= REAL_AXIS_TOLERANCE * np.abs(L), 0.0, L.imag)
    # of many crossings only those near 1 can be ends
    distances = np.abs(np.log(np.where(L.real > 0, L.real, np.inf)))
    real_points = _find_roots(lambda x: evaluate(x).imag, w, imaginary, distances)
    values = [(evaluate(x).real, x) for x in real_points]
    if all(pole != 0 for pole in np.abs(np.linalg.eigvals(form.A))):
        values.append((evaluate(0.0).real, 0.0))
    if not late_gain:
        values.append((float(form.D11[0, 0]), math.inf))
    factors = [End(1.0 / value, x) for value, x in values if value > 0]
    return confirm_gain_ends(factors, TESTED_COUNT, FARTHEST_GAIN, lambda gain: _decide(form, gain))


class _FrequencyGrid(NamedTuple):
    """Frequencies at which a loop is evaluated, and the gains that remain at infinite frequency."""

    w: FloatArray
    is_capped: bool
    direct_gain: float  # a bound of |L| there
    late_gain: float  # the part of it that passes delays


def _make_grid(form: DelayForm, modes: Complex) -> _FrequencyGrid:
    """Return frequencies up to one beyond which L is near its limit, dense enough for the delays' phase.

    Around each pole of the loop, open and closed, points lie as dense as its distance from the axis needs.
    """
    poles = np.concatenate((np.linalg.eigvals(form.A), _find_poles(form), modes)).astype(np.complex128)
    poles = poles[poles != 0]
    corners = [*np.abs(poles).tolist(), *(1.0 / form.delays).tolist()]
    low, high = min(corners) * 10**-GRID_DECADES, 10.0 * max(corners)
    size = float(np.linalg.norm(form.A, 2)) if len(form.A) else 0.0
    high = max(high, 2.0 * size)
    passing = np.linalg.solve(np.eye(len(form.D22)) - np.abs(form.D22), np.abs(form.D21))
    late_gain = float(np.linalg.norm(np.abs(form.D12) @ passing, 2))
    direct_gain = float(np.linalg.norm(form.D11, 2)) + late_gain
    if direct_gain < 1:
        limit = late_gain + LIMIT_FRACTION * (1.0 - direct_gain)
    elif late_gain:
        raise UsageError(
            "The gain of the loop through its delays does not vanish at high frequencies, so infinitely many "
            "eigenvalues decide about its stability and there are no margins. Add a filter or an actuator to the loop."
        )
    else:
        limit = LIMIT_FRACTION * max(abs(direct_gain - 1.0), MIN_LIMIT_DISTANCE)
    while _bound_loop(form, high, size) >= limit:
        high *= 2.0
    count = POINTS_PER_RADIAN * high * float(form.delays.sum()) + 2
    widths = np.maximum(np.abs(poles.real), MIN_POLE_WIDTH * np.abs(poles))
    around = (np.abs(poles.imag)[:, None] + widths[:, None] * POLE_OFFSETS).ravel()
    logarithmic = np.geomspace(low, high, int(POINTS_PER_DECADE * math.log10(high / low)))
    even = np.linspace(low, high, int(min(count, MAX_GRID_SIZE)))
    w = np.unique(np.concatenate((logarithmic, even, around[(around > 0) & (around < high)])))
    return _FrequencyGrid(w, count > MAX_GRID_SIZE, direct_gain, late_gain)


def _find_poles(form: DelayForm) -> Complex:
    """Return the rightmost poles that loops with delays give to the open loop; none where they are not computed."""
    try:
        return find_rightmost_eigenvalues(form, CLOSED_EIGENVALUE_COUNT).values
    except (UsageError, NumericalError):
        return np.empty(0, np.complex128)


def _bound_loop(form: DelayForm, frequency: float, size: float) -> float:
    """Return a bound of |L - D11| from a frequency on, with |(s - A)^-1| <= 1/(|s| - |A|); inf where there is none."""
    if frequency <= size:
        return math.inf
    resolvent = 1.0 / (frequency - size)

    def bound(C: FloatArray, B: FloatArray, D: FloatArray) -> FloatArray:
        return np.outer(np.linalg.norm(C, axis=1), np.linalg.norm(B, axis=0)) * resolvent + np.abs(D)

    P22 = bound(form.C2, form.B2, form.D22)
    inner = np.eye(len(P22)) - P22
    if len(P22) and np.abs(np.linalg.eigvals(P22)).max() >= 1:
        return math.inf
    through = bound(form.C1, form.B2, form.D12) @ np.linalg.solve(inner, bound(form.C2, form.B1, form.D21))
    return float(np.linalg.norm(bound(form.C1, form.B1, np.zeros_like(form.D11)) + through, 2))


def _find_roots(
    function: Callable[[float], float], w: FloatArray, values: FloatArray, distances: FloatArray | None = None
) -> list[float]:
    """Return the zeros that sign changes on the grid bracket, and touching zeros between them.

    Of more than ``MAX_ROOT_COUNT`` brackets those of the smallest ``distances``.
    """
    signs = np.sign(values)
    roots = [float(x) for x in w[signs == 0]]
    changes = np.flatnonzero(signs[:-1] * signs[1:] < 0)
    if distances is not None and len(changes) > MAX_ROOT_COUNT:
        nearest = np.minimum(distances[changes], distances[changes + 1])
        changes = np.sort(changes[np.argsort(nearest)[:MAX_ROOT_COUNT]])
    brackets = [(w[k], w[k + 1]) for k in changes]
    sizes = np.abs(values)
    dips = np.flatnonzero((sizes[1:-1] < sizes[:-2]) & (sizes[1:-1] < sizes[2:]) & (sizes[1:-1] < 0.05)) + 1
    for k in dips.tolist():
        if not signs[k - 1] == signs[k] == signs[k + 1] != 0:
            continue
        signed = _multiply(function, float(signs[k]))
        dip = minimize_scalar(signed, bounds=(w[k - 1], w[k + 1]), method="bounded")
        if dip.fun < 0:  # two zeros between two points of the grid
            brackets += [(w[k - 1], dip.x), (dip.x, w[k + 1])]
    roots += [float(brentq(function, a, b, xtol=1e-300, rtol=8 * np.finfo(float).eps)) for a, b in brackets]
    return sorted(roots)


def _multiply(function: Callable[[float], float], factor: float) -> Callable[[float], float]:
    return lambda x: factor * function(x)


def _find_peak(function: Callable[[float], float], w: FloatArray, values: FloatArray) -> tuple[float, float]:
    """Return the largest value and its frequency, refined from the highest ones of the grid."""
    inner = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
    candidates = inner[np.argsort(-values[inner])][:REFINED_PEAK_COUNT].tolist()
    best, at = float(values.max()), float(w[int(values.argmax())])
    for k in candidates:
        result = minimize_scalar(
            _multiply(function, -1.0), bounds=(w[k - 1], w[k + 1]), method="bounded", options={"xatol": 1e-12 * w[k]}
        )
        if -result.fun > best:
            best, at = float(-result.fun), float(result.x)
    return best, at
