"""Time responses of systems with internal delays by the method of steps, with spectral collocation in each step.

Inputs are polynomials between break points. Each break point returns after every sum of delays, one derivative smoother
with every passage through a state: the steps end at these instants, so that the solution is smooth inside of each. A
step is no longer than the shortest delay, so that the delayed signals are known in it. It is halved until the Chebyshev
coefficients of its solution have decayed.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from fmilin.errors import NumericalError
from fmilin.numerics.delay_eigenvalues import differentiate_chebyshev
from fmilin.numerics.delay_form import DelayForm
from fmilin.numerics.delay_loops import require_retarded
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

DEGREE = 14  # of the polynomials in a step
TAIL_COEFFICIENT_COUNT = 2  # last coefficients, which must have decayed
TAIL_TOLERANCE = 1e-12  # of these coefficients, relative to the largest value of the same signal so far
ROUNDING_FACTOR = 8.0  # times eps: rounding of a derivative, relative to the terms that it is the sum of
HALVING_COUNT = 30  # of a step between two break points
SMOOTH_ORDER = 8  # derivatives of which jumps need no break point: the tolerance of the tail sees to the others
MAX_BREAK_POINTS = 20_000  # beyond, break points of the highest derivatives are left to the tolerance, then rejected
MAX_STEPS = 200_000  # of a response, all of which are kept: delayed signals are looked up in them
SAME_INSTANT_FRACTION = 1e-12  # of the duration: break points that are nearer are one
LOOKUP_FRACTION = 1e-9  # of a step, by which its ends are looked up inside of it


@dataclass(frozen=True, eq=False)
class PiecewiseInput:
    """Inputs that are linear in time between instants; zero before the first one."""

    times: FloatArray  # (k,)
    starts: FloatArray  # (k, nu), values at the beginning of each interval; the last one goes on
    rates: FloatArray  # (k, nu)

    def evaluate(self, times: FloatArray, inside: float) -> FloatArray:
        """Return the values at times in the interval in which the instant ``inside`` lies, shape (len(times), nu)."""
        k = int(np.searchsorted(self.times, inside, side="right")) - 1
        if k < 0:
            return np.zeros((len(times), self.starts.shape[1]))
        return np.asarray(self.starts[k] + np.subtract(times, self.times[k])[:, None] * self.rates[k])


@dataclass(frozen=True, eq=False)
class DelaySolution:
    """States and outputs at sample times, and an estimate of their largest error."""

    states: FloatArray  # (k, n)
    outputs: FloatArray  # (k, ny)
    error: float


def list_break_points(form: DelayForm, starts: FloatArray, stop: float) -> FloatArray:
    """Return the instants up to ``stop`` at which a derivative of low order may jump, sorted."""
    resolution = SAME_INSTANT_FRACTION * max(abs(stop), abs(float(starts[0])), stop - float(starts[0]))
    for highest in range(SMOOTH_ORDER, 0, -1):
        instants = _propagate(form, starts, stop, highest, resolution)
        if len(instants) <= MAX_BREAK_POINTS:
            return instants
    raise NumericalError(
        f"The inputs have {len(starts)} break points, and return with every sum of delays: more than "
        f"{MAX_BREAK_POINTS} steps would be needed. Take fewer samples, or lin.pade(order)."
    )


def _propagate(form: DelayForm, starts: FloatArray, stop: float, highest: int, resolution: float) -> FloatArray:
    """Return break points of derivatives below ``highest``. Through D21 and D22 a jump passes without a state."""
    m = len(form.delays)
    direct = np.asarray((form.D21 != 0).any(axis=1), dtype=np.bool_)
    reached = {0.0: 0}  # offsets from an input's break point, and the lowest derivative that jumps there
    frontier = {(float(form.delays[i]), i): 0 if direct[i] else 1 for i in range(m)}
    lowest: dict[tuple[float, int], int] = {}
    span = stop - float(starts[0])
    while frontier:
        following: dict[tuple[float, int], int] = {}
        for (offset, i), order in frontier.items():
            if offset > span or order >= highest or lowest.get((offset, i), highest) <= order:
                continue
            lowest[offset, i] = order
            reached[offset] = min(order, reached.get(offset, highest))
            for k in range(m):
                further = order if form.D22[k, i] != 0 else order + 1
                key = (round(offset + float(form.delays[k]), 14), k)
                following[key] = min(further, following.get(key, highest))
        frontier = following
        if len(lowest) > MAX_BREAK_POINTS:
            break
    offsets = np.array(sorted(reached))
    # Too many even where some coincide: they are not listed, as the caller takes a lower order.
    if len(offsets) * len(starts) > 4 * MAX_BREAK_POINTS:
        return np.empty(MAX_BREAK_POINTS + 1)
    instants = np.sort((starts[:, None] + offsets).ravel())
    instants = np.asarray(np.append(instants[instants < stop - resolution], stop))
    is_new = np.asarray(np.diff(instants, prepend=-np.inf) > resolution)
    return np.asarray(instants[is_new])


class _History:
    """The solution so far: polynomials of (x, z) in each step."""

    def __init__(self, nodes: FloatArray) -> None:
        self.nodes = nodes  # ascending in [-1, 1]
        self.ends: list[float] = []
        self.begins: list[float] = []
        self.values: list[FloatArray] = []
        signs = (-1.0) ** np.arange(len(nodes))
        signs[[0, -1]] *= 0.5
        self.weights = signs

    def append(self, begin: float, end: float, values: FloatArray) -> None:
        self.begins.append(begin)
        self.ends.append(end)
        self.values.append(values)

    def find(self, instant: float) -> int:
        """Return the step in which an instant lies, -1 before the first one."""
        return bisect_right(self.begins, instant) - 1

    def interpolate(self, step: int, times: FloatArray) -> FloatArray:
        """Return values at times in a step, by the barycentric formula."""
        begin, end = self.begins[step], self.ends[step]
        position = (2.0 * np.asarray(times) - begin - end) / (end - begin)
        gap = position[:, None] - self.nodes
        exact = gap == 0
        gap[exact] = 1.0
        weights = self.weights / gap
        weights[exact.any(axis=1)] = exact[exact.any(axis=1)]
        return np.asarray((weights @ self.values[step]) / weights.sum(axis=1)[:, None])


def solve_delay_system(form: DelayForm, inputs: PiecewiseInput, rate: FloatArray, times: FloatArray) -> DelaySolution:
    """Return the response to inputs from rest, x = 0 and z = 0 before the first time, shape (k, ...).

    ``rate`` is a constant added to x' from then on. UsageError for neutral systems, NumericalError where the steps are
    too many.
    """
    form = form.close_undelayed()
    require_retarded(form)
    n, m = len(form.A), len(form.delays)
    D, nodes = differentiate_chebyshev(DEGREE)
    D, nodes = D[::-1, ::-1], nodes[::-1]
    history = _History(nodes)
    to_coefficients = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, DEGREE))
    solve = _make_step_solver(form.A, D)
    loop = np.abs(form.loop)
    start, stop = float(times[0]), float(times[-1])
    shortest = float(form.delays.min(initial=np.inf))
    instants = list_break_points(form, np.unique(np.append(inputs.times[inputs.times < stop], start)), stop)
    x, scale, error = np.zeros(n), np.zeros(n + m), 0.0
    for begin, end in zip(instants[:-1].tolist(), instants[1:].tolist(), strict=True):
        parts = max(1, int(np.ceil((end - begin) / shortest * (1 - 1e-12)))) if np.isfinite(shortest) else 1
        edges = np.linspace(begin, end, parts + 1)
        pending = [(float(a), float(b), 0) for a, b in itertools.pairwise(edges)][::-1]
        while pending:
            a, b, halvings = pending.pop()
            t = (a + b) / 2 + (b - a) / 2 * nodes
            u = inputs.evaluate(t, (a + b) / 2)
            w = _read_delayed(form, history, t, a, b)
            X = solve(b - a, x, rate + u @ form.B1.T + w @ form.B2.T)
            Z = X @ form.C2.T + u @ form.D21.T + w @ form.D22.T
            both = np.hstack((X, Z))
            coefficients = np.abs(to_coefficients @ both)
            sizes = np.maximum(scale, np.abs(both).max(axis=0, initial=0.0))
            tail = coefficients[-TAIL_COEFFICIENT_COUNT:].max(axis=0, initial=0.0)
            # each in its own unit; smaller than the rounding of what moves it no tail becomes
            rounding = ROUNDING_FACTOR * EPS * (loop @ sizes) * np.append(np.full(n, b - a), np.ones(m))
            if halvings < HALVING_COUNT and (tail > TAIL_TOLERANCE * sizes + rounding).any():
                middle = (a + b) / 2
                pending += [(middle, b, halvings + 1), (a, middle, halvings + 1)]
                continue
            history.append(a, b, both)
            error += float(tail.max(initial=0.0))
            scale, x = sizes, X[-1]
            if len(history.ends) > MAX_STEPS:
                raise NumericalError(
                    f"The response needs more than {MAX_STEPS} steps: the shortest delay ({shortest:g} s) is small "
                    "beside the duration. Follow it for a shorter time, or take lin.pade(order)."
                )
    return _sample(form, inputs, history, times, error)


def _make_step_solver(A: FloatArray, D: FloatArray) -> Callable[[float, FloatArray, FloatArray], FloatArray]:
    """Return a function that solves x' = A x + g in a step, with values of g at the nodes; it keeps factorizations."""
    n, count = len(A), len(D) - 1
    factors: dict[float, Any] = {}  # of SciPy's LU factorization

    def solve(length: float, x: FloatArray, g: FloatArray) -> FloatArray:
        if not n:
            return np.zeros((count + 1, 0))
        key = float(f"{length:.14e}")
        if key not in factors:
            # Each takes the memory of a matrix; steps of equal length follow each other.
            if len(factors) >= 50:
                factors.clear()
            factors[key] = lu_factor(np.kron(2.0 / key * D[1:, 1:], np.eye(n)) - np.kron(np.eye(count), A))
        right = g[1:] - 2.0 / key * D[1:, :1] * x
        return np.vstack((x, lu_solve(factors[key], right.ravel()).reshape(count, n)))

    return solve


def _read_delayed(form: DelayForm, history: _History, t: FloatArray, begin: float, end: float) -> FloatArray:
    """Return w at times of the step from ``begin`` to ``end``, shape (len(t), m)."""
    n = len(form.A)
    w = np.zeros((len(t), len(form.delays)))
    inside = np.clip(t, begin + LOOKUP_FRACTION * (end - begin), end - LOOKUP_FRACTION * (end - begin))
    for i, delay in enumerate(form.delays.tolist()):
        steps = np.array([history.find(instant - delay) for instant in inside.tolist()])
        for step in np.unique(steps[steps >= 0]).tolist():
            rows = steps == step
            w[rows, i] = history.interpolate(step, t[rows] - delay)[:, n + i]
    return w


def _sample(
    form: DelayForm, inputs: PiecewiseInput, history: _History, times: FloatArray, error: float
) -> DelaySolution:
    """Return values at sample times; at a jump those behind it."""
    n = len(form.A)
    states, outputs = np.zeros((len(times), n)), np.zeros((len(times), len(form.C1)))
    first = history.begins[0]
    located = np.array([history.find(t + SAME_INSTANT_FRACTION * (abs(t) + abs(t - first))) for t in times.tolist()])
    for step in np.unique(located).tolist():
        rows = np.flatnonzero(located == step)
        begin, end = history.begins[step], history.ends[step]
        t = np.clip(times[rows], begin, end)
        X = history.interpolate(step, t)[:, :n]
        u, w = inputs.evaluate(t, (begin + end) / 2), _read_delayed(form, history, t, begin, end)
        states[rows] = X
        outputs[rows] = X @ form.C1.T + u @ form.D11.T + w @ form.D12.T
    return DelaySolution(states, outputs, error)
