"""Margins of loops with delays, from their exact frequency response and the eigenvalues of the closed loop.

Beyond a frequency the loop is certainly smaller than 1; up to there a grid that resolves the phase of the delays
brackets every crossing, and Brent's method finds it. A loop with delays that is strictly proper becomes unstable only
through these crossings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from fmilin.errors import UsageError
from fmilin.numerics.delay_eigenvalues import find_rightmost_eigenvalues
from fmilin.numerics.delay_form import Complex, DelayForm
from fmilin.numerics.delay_loops import require_retarded
from fmilin.signals import FloatArray

GRID_DECADES = 6.0  # below the slowest corner at which the grid begins
POINTS_PER_DECADE = 400
POINTS_PER_RADIAN = 8.0  # of the phase of the delays
MAX_GRID_SIZE = 400_000
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


def close_form(form: DelayForm, gain: float = 1.0) -> DelayForm:
    """Return the autonomous form of the loop u = gain y. UsageError where it has no solution."""
    gap = np.eye(len(form.D11)) - gain * form.D11
    if np.linalg.cond(gap) > 1e12:
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


def compute_delayed_margins(form: DelayForm) -> DelayedMargins:
    """Return the margins of a loop with one input and one output, the critical point being +1.

    UsageError where the loop does not fade at high frequencies: the closed loop is neutral then.
    """
    if len(form.C1) != 1 or form.B1.shape[1] != 1:
        raise UsageError("Margins of loops with delays are those of one wire: cut one wire after another.")
    form = form.close_undelayed()
    closed = close_form(form)
    require_retarded(closed)
    spectrum = find_rightmost_eigenvalues(closed, CLOSED_EIGENVALUE_COUNT)
    if (spectrum.values.real + spectrum.errors >= 0).any():
        return DelayedMargins(stable=False)
    w = _make_grid(form)

    def evaluate(frequency: float) -> complex:
        return complex(form.evaluate(np.array([1j * frequency]))[0, 0, 0])

    L: Complex = form.evaluate(np.asarray(1j * w, dtype=np.complex128))[:, 0, 0]
    crossovers = _find_roots(lambda x: abs(evaluate(x)) - 1.0, w, np.abs(L) - 1.0)
    angles = [(float(np.angle(evaluate(x))), x) for x in crossovers]
    phase, phase_frequency = min(((abs(a), x) for a, x in angles), default=(math.inf, math.nan))
    delay = min(((a % (2 * math.pi)) / x for a, x in angles), default=math.inf)
    imaginary = np.where(np.abs(L.imag) <= REAL_AXIS_TOLERANCE * np.abs(L), 0.0, L.imag)
    real_points = _find_roots(lambda x: evaluate(x).imag, w, imaginary)
    values = [(evaluate(x).real, x) for x in real_points]
    if all(pole != 0 for pole in np.abs(np.linalg.eigvals(form.A))):
        values.append((complex(form.evaluate(np.zeros(1, np.complex128))[0, 0, 0]).real, 0.0))
    factors = [(1.0 / value, x) for value, x in values if value > 0]
    low = max((f for f in factors if f[0] < 1), default=(0.0, math.nan))
    high = min((f for f in factors if f[0] > 1), default=(math.inf, math.nan))
    ends = [end for end in (low, high) if 0 < end[0] < math.inf]
    nearest = min(ends, key=lambda end: abs(math.log(end[0])), default=(math.nan, math.nan))
    peak, disk_frequency = _find_peak(lambda x: abs(1.0 / (1.0 - evaluate(x)) - 0.5), w, np.abs(1 / (1 - L) - 0.5))
    return DelayedMargins(
        stable=True,
        gain=(low[0], high[0]),
        gain_frequency=nearest[1],
        phase=phase,
        phase_frequency=phase_frequency,
        delay=delay,
        disk=1.0 / peak,
        disk_frequency=disk_frequency,
    )


def _make_grid(form: DelayForm) -> FloatArray:
    """Return frequencies up to one beyond which the loop is smaller than 1, dense enough for the delays' phase."""
    poles = np.abs(np.linalg.eigvals(form.A)) if len(form.A) else np.empty(0)
    corners = [*poles[poles > 0].tolist(), *(1.0 / form.delays).tolist()] or [1.0]
    low, high = min(corners) * 10**-GRID_DECADES, 10.0 * max(corners)
    n = len(form.A)
    size = float(np.linalg.norm(form.A, 2)) if n else 0.0
    high = max(high, 2.0 * size)
    while _bound_loop(form, high, size) >= 1.0:
        high *= 2.0
        if high > 1e9 * max(corners):
            raise UsageError(
                "The loop does not fade at high frequencies, so that any further delay makes the closed loop unstable "
                "or neutral: it has no margins. Put a state (a filter, an actuator) into it."
            )
    total = float(form.delays.sum())
    count = min(int(POINTS_PER_RADIAN * high * total) + 2, MAX_GRID_SIZE)
    logarithmic = np.geomspace(low, high, int(POINTS_PER_DECADE * math.log10(high / low)))
    return np.unique(np.concatenate((logarithmic, np.linspace(low, high, count))))


def _bound_loop(form: DelayForm, frequency: float, size: float) -> float:
    """Return a bound of |L| at a frequency and beyond, with |(s - A)^-1| <= 1/(|s| - |A|); inf where there is none."""
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
    return float((bound(form.C1, form.B1, form.D11) + through)[0, 0])


def _find_roots(function: Callable[[float], float], w: FloatArray, values: FloatArray) -> list[float]:
    """Return the zeros that sign changes on the grid bracket, and touching zeros between them."""
    signs = np.sign(values)
    roots = [float(x) for x in w[signs == 0]]
    brackets = [(w[k], w[k + 1]) for k in np.flatnonzero(signs[:-1] * signs[1:] < 0)]
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
    """Return the largest value and its frequency, refined from the three highest points of the grid."""
    inner = np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])) + 1
    candidates = inner[np.argsort(-values[inner])][:3].tolist()
    best, at = float(values.max()), float(w[int(values.argmax())])
    for k in candidates:
        result = minimize_scalar(
            _multiply(function, -1.0), bounds=(w[k - 1], w[k + 1]), method="bounded", options={"xatol": 1e-12 * w[k]}
        )
        if -result.fun > best:
            best, at = float(-result.fun), float(result.x)
    return best, at
