"""Margins against brute force: closed-loop eigenvalues over a fine grid of gains, of turns and of whole delays."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import block_diag, expm, solve_continuous_are, solve_discrete_are

from fmilin.design.margins import compute_margins
from fmilin.numerics.feedback import StateSpace

Matrix = NDArray[np.float64]


def growth(loop: StateSpace, factor: complex) -> float:
    """Return how far the closed loop's rightmost or outermost eigenvalue is beyond the stability limit."""
    direct = 1 - factor * loop.D[0, 0]
    if direct == 0:
        return 1.0
    values = np.linalg.eigvals(loop.A + loop.B @ loop.C * (factor / direct))
    if loop.sample_time:
        return float(np.abs(values).max(initial=0.0) - 1)
    return float(values.real.max(initial=-1.0))


def find_first_unstable(grow: Callable[[float], float], values: Matrix) -> float | None:
    """Return where a loop that is stable at the first value becomes unstable, by bisection."""
    for before, after in pairwise(values):
        if grow(float(after)) >= 0:
            stable, unstable = float(before), float(after)
            for _ in range(100):
                middle = (stable + unstable) / 2
                if grow(middle) >= 0:
                    unstable = middle
                else:
                    stable = middle
            return stable
    return None


def draw_plant(rng: np.random.Generator, sample_time: float) -> Matrix:
    """Return a matrix with lightly damped, slow, fast and unstable modes and integrators, in mixed coordinates."""
    n = int(rng.integers(1, 11))
    blocks: list[Matrix] = []
    while sum(map(len, blocks)) < n:
        if rng.random() < 0.5 and sum(map(len, blocks)) <= n - 2:
            w, damping = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-3, 0) * rng.choice([1, 1, 1, -0.1])
            blocks.append(np.array([[0, w], [-w, -2 * damping * w]]))
        else:
            blocks.append(np.array([[-(10 ** rng.uniform(-1, 2)) * rng.choice([1.0, 1.0, -0.3, 0.0])]]))
    A = block_diag(*blocks)
    if sample_time:
        fastest = np.linalg.eigvals(A).real.max() * sample_time
        A = expm(A * sample_time * min(1.0, 2.0 / fastest if fastest > 0 else 1.0))  # growth of e^2 at most
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return np.asarray(Q @ A @ Q.T)


def draw_loop(rng: np.random.Generator, sample_time: float) -> StateSpace:
    """Return a loop, half of them with a regulator and an observer, so that unstable plants are stabilized."""
    A = draw_plant(rng, sample_time)
    n = len(A)
    B, C = rng.standard_normal((n, 1)), rng.standard_normal((1, n))
    if rng.random() < 0.5:
        gain = 10 ** rng.uniform(-2, 1)
        direct = rng.choice([0.0, 0.0, 0.3, -2.0]) * np.ones((1, 1))
        return StateSpace(A, B, C * gain, direct, sample_time)
    weight = C.T @ C + 1e-3 * np.eye(n)
    noise = B @ B.T + 1e-3 * np.eye(n)
    if sample_time:
        X, Y = solve_discrete_are(A, B, weight, [[1.0]]), solve_discrete_are(A.T, C.T, noise, [[1.0]])
        K, L = np.linalg.solve(1 + B.T @ X @ B, B.T @ X @ A), A @ Y @ C.T / (1 + C @ Y @ C.T)
    else:
        X, Y = solve_continuous_are(A, B, weight, [[1.0]]), solve_continuous_are(A.T, C.T, noise, [[1.0]])
        K, L = B.T @ X, Y @ C.T
    states = np.block([[A, np.zeros((n, n))], [L @ C, A - B @ K - L @ C]])
    entry, exit_ = np.vstack([B, np.zeros((n, 1))]), np.hstack([np.zeros((1, n)), -K])
    return StateSpace(states, entry, exit_, np.zeros((1, 1)), sample_time)


def draw_stable_loops(count: int, sample_times: list[float], seed: int) -> list[StateSpace]:
    rng = np.random.default_rng(seed)
    loops: list[StateSpace] = []
    while len(loops) < count:
        try:
            loop = draw_loop(rng, float(rng.choice(sample_times)))
        except np.linalg.LinAlgError:  # SciPy finds no solution of a Riccati equation
            continue
        fastest = np.abs(np.linalg.eigvals(loop.A)).max()
        if growth(loop, 1.0) < -1e-7 and (not loop.sample_time or fastest < 20):  # else eigenvalues have few digits
            loops.append(loop)
    return loops


@pytest.mark.parametrize("sample_times", [[0.0], [1.0, 0.1, 0.01]], ids=["continuous", "sampled"])
def test_gains_and_phases_are_where_closed_loop_eigenvalues_reach_the_limit(sample_times: list[float]) -> None:
    for loop in draw_stable_loops(16, sample_times, 7):
        margins = compute_margins(loop)
        assert margins.stable
        assert not margins.warnings

        def grow(gain: float, loop: StateSpace = loop) -> float:
            return growth(loop, gain)

        def turn(angle: float, loop: StateSpace = loop) -> float:
            return growth(loop, complex(math.cos(angle), math.sin(angle)))

        low = find_first_unstable(grow, np.geomspace(1.0, 1e-4, 1000))
        high = find_first_unstable(grow, np.geomspace(1.0, 1e4, 1000))
        phase = find_first_unstable(turn, np.linspace(0.0, math.pi, 400))
        assert margins.gain[0] == pytest.approx(low, rel=1e-6) if low else margins.gain[0] < 1.01e-4
        assert margins.gain[1] == pytest.approx(high, rel=1e-6) if high else margins.gain[1] > 0.99e4
        if phase and phase < 3.14:
            assert math.radians(margins.phase) == pytest.approx(phase, rel=1e-6)
        else:
            assert margins.phase > 179.9
        gains = margins.disk_gain
        assert margins.gain[0] <= max(gains[0], 0.0) * (1 + 1e-9)
        assert margins.gain[1] >= gains[1] * (1 - 1e-9)
        assert margins.phase >= margins.disk_phase * (1 - 1e-9)


def test_the_disk_margin_is_the_largest_distance_on_a_fine_grid() -> None:
    for loop in [*draw_stable_loops(5, [0.0], 3), *draw_stable_loops(5, [0.1], 3)]:
        margins = compute_margins(loop)
        low, high = (1e-3, 31.4159265) if loop.sample_time else (1e-3, 1e3)
        grid = np.concatenate((np.geomspace(low, high, 20001), margins.disk_frequency * np.linspace(0.999, 1.001, 101)))
        grid = grid[np.isfinite(grid)]
        points = np.exp(1j * grid * loop.sample_time) if loop.sample_time else 1j * grid
        shifted = points[:, None, None] * np.eye(loop.order) - loop.A
        L = (loop.C @ np.linalg.solve(shifted, np.broadcast_to(loop.B, (len(points), *loop.B.shape))))[:, 0, 0]
        largest = np.abs(1 / (1 - L - loop.D[0, 0]) - 0.5).max()
        assert 1 / margins.disk >= largest * (1 - 1e-9)
        if math.isfinite(margins.disk_frequency):
            assert 1 / margins.disk == pytest.approx(largest, rel=1e-5)


def test_sampled_loops_bear_every_whole_delay_below_the_delay_margin_and_no_longer_one() -> None:
    counted = 0
    for loop in draw_stable_loops(30, [0.1], 11):
        delay = compute_margins(loop).delay / 0.1
        if delay > 20:
            continue
        for samples in range(1, math.ceil(delay) + 1):
            n = loop.order
            shift = np.diag(np.ones(samples - 1), -1)
            first = np.eye(samples, 1)
            last = np.eye(1, samples, samples - 1)
            A = np.block([[loop.A, loop.B @ last], [first @ loop.C, shift + loop.D[0, 0] * first @ last]])
            radius = np.abs(np.linalg.eigvals(A)).max()
            assert (radius < 1 + 1e-9) if samples < delay else (samples > delay - 1e-9)
            if samples == math.ceil(delay) and samples > delay + 1e-6:
                counted += radius > 1
            assert A.shape == (n + samples, n + samples)
    assert counted > 5  # one that is stable again beyond the first limit is no contradiction
