"""Fewer states: balanced truncation, modes of a range, and the bounds that come with them."""

from __future__ import annotations

import re
from dataclasses import replace

import control
import numpy as np
import pytest
from scipy.linalg import expm

from fmilin import LinearModel
from fmilin.errors import UsageError
from fmilin.numerics.feedback import StateSpace
from fmilin.reduction import balanced_truncation, hankel_singular_values, keep_frequencies
from fmilin.reduction.gramians import peak_gain
from fmilin.signals import Signal, Signals
from tests.hand_made import sized
from tests.reduction.cases import cart_with_pendulum, from_matrices, masses_and_springs, response

W = np.geomspace(1e-4, 1e4, 2000)


def heat(n: int = 12) -> LinearModel:
    """A rod in n pieces, heated at one end and measured at the other."""
    A = n**2 * (np.eye(n, k=1) + np.eye(n, k=-1) - 2 * np.eye(n)) / 10
    return from_matrices(A, np.eye(n)[:, :1] * n, np.eye(n)[-1:])


def remark(linear: LinearModel) -> str:
    assert linear.warnings[-1].kind == "reduced"
    return str(linear.warnings[-1])


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(g) for g in found.groups()]


@pytest.mark.parametrize("model", [heat(), masses_and_springs(5, 0.3)])
@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_the_bound_holds_and_is_close(model: LinearModel, order: int) -> None:
    small = balanced_truncation(model, order)
    assert small.A.shape == (order, order)
    worst = np.abs(response(model, W) - response(small, W)).max()
    bound, found = numbers(r"more than (\S+) \(found: (\S+);", remark(small))
    assert worst <= bound * 1.001
    assert worst == pytest.approx(found, rel=0.01)
    values = hankel_singular_values(model)
    assert bound == pytest.approx(2 * values[order:].sum(), rel=0.01)
    assert worst >= values[order] * 0.999  # no model of this order is better than that


def test_no_bound_is_smaller_than_the_error_that_was_found() -> None:
    model = masses_and_springs(8, 2.0)  # its last singular values are rounding, and so would be a bound of them
    bound, found = numbers(r"more than (\S+) \(found: (\S+);", remark(balanced_truncation(model, 14)))
    assert 2 * hankel_singular_values(model)[14:].sum() < found < bound


def test_hankel_singular_values_of_a_known_system() -> None:
    # G = 1/(s + 1) has the one value 1/2; diag of two independent lags has those of both.
    linear = from_matrices(np.diag([-1.0, -4.0]), np.eye(2), np.diag([1.0, 3.0]))
    assert np.allclose(hankel_singular_values(linear), [0.5, 0.375], rtol=1e-12)
    sampled = replace(from_matrices([[0.5]], [[1.0]], [[1.0]]), sample_time=1.0)  # P = Q = 1/(1 - a^2)
    assert np.allclose(hankel_singular_values(sampled), [1 / 0.75], rtol=1e-12)


def test_balanced_coordinates_have_equal_gramians() -> None:
    linear = masses_and_springs(4, 0.3)
    small = balanced_truncation(linear, 4)
    P = control.lyap(small.A, small.B @ small.B.T)
    Q = control.lyap(small.A.T, small.C.T @ small.C)
    values = hankel_singular_values(linear)[:4]
    assert np.allclose(P, np.diag(values), atol=1e-10 * values[0])
    assert np.allclose(Q, np.diag(values), atol=1e-10 * values[0])


def test_what_does_not_decay_is_kept() -> None:
    chain, cart = heat(6), cart_with_pendulum()
    A = np.zeros((10, 10))
    A[:4, :4], A[4:, 4:] = cart.A, chain.A
    B, C = np.vstack((cart.B, chain.B)), np.hstack((cart.C + np.eye(4)[:1], chain.C))
    linear = from_matrices(A, B, C)
    small = balanced_truncation(linear, 5)
    assert small.states.names == ("kept[1]", "kept[2]", "balanced[1]", "balanced[2]", "balanced[3]")
    assert np.sort(np.abs(small.eigenvalues()))[:2] == pytest.approx([0, 0], abs=1e-6)
    bound = numbers(r"more than (\S+) ", remark(small))[0]
    w = W[W > 1e-2]
    assert np.abs(response(linear, w) - response(small, w)).max() <= bound * 1.01 + 1e-6
    with pytest.raises(UsageError, match=r"2 of the 10 eigenvalues do not decay.*fl.reduction.keep_frequencies"):
        balanced_truncation(linear, 1)


def test_an_undamped_chain_keeps_everything_that_swings() -> None:
    linear = masses_and_springs(4, 0.0)
    with pytest.raises(UsageError, match="8 of the 8 eigenvalues do not decay"):
        balanced_truncation(linear, 4)


def test_sampled_models_have_the_same_bound() -> None:
    base = heat(6)
    h = 0.02
    A = expm(base.A * h)
    linear = replace(
        base, A=A, B=np.asarray(np.linalg.solve(base.A, (A - np.eye(6)) @ base.B), dtype=float), sample_time=h
    )
    small = balanced_truncation(linear, 2)
    z = np.exp(1j * np.linspace(0, np.pi, 500))

    def gains(m: LinearModel) -> list[complex]:
        return [complex((m.C @ np.linalg.solve(v * np.eye(len(m.A)) - m.A, m.B))[0, 0]) for v in z]

    bound = numbers(r"more than (\S+),", remark(small))[0]
    worst = np.abs(np.subtract(gains(linear), gains(small))).max()
    assert hankel_singular_values(linear)[2] * 0.99 <= worst <= bound * 1.001


def test_gains_count_in_nominal_values() -> None:
    base = heat(6)
    linear = replace(
        base, inputs=Signals([Signal("P", "W", 1e3)]), outputs=Signals([Signal("T", "K", 300.0)]), B=base.B / 1e3
    )
    assert np.allclose(hankel_singular_values(linear), hankel_singular_values(base) / 300, rtol=1e-6, atol=1e-12)


def test_dependent_states_still_follow() -> None:
    linear = masses_and_springs(5, 0.3)
    small = balanced_truncation(linear, 8)
    t = np.linspace(0, 30, 60)
    exact = [linear.T @ expm(linear.A * v) @ linear.B for v in t]
    reduced = [small.T @ expm(small.A * v) @ small.B for v in t]
    assert np.abs(np.subtract(exact, reduced)).max() < 0.1 * np.abs(exact).max()


def test_bad_orders() -> None:
    assert balanced_truncation(heat(4), 9).A.shape == (4, 4)
    with pytest.raises(UsageError, match="order of a linear model cannot be -1"):
        balanced_truncation(heat(4), -1)
    with pytest.raises(UsageError, match="Without inputs and outputs"):
        balanced_truncation(sized(4, 0, 0, 2), 2)


def test_an_order_beyond_what_can_be_reached_is_cut() -> None:
    linear = from_matrices(np.diag([-1.0, -2.0, -3.0]), np.array([[1.0], [0.0], [0.0]]), np.ones((1, 3)))
    assert balanced_truncation(linear, 2).A.shape == (1, 1)


# -- by frequency ---------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 0.02])
def test_slow_modes_of_a_chain_with_the_static_gain_of_all(damping: float) -> None:
    linear = masses_and_springs(8, damping)
    small = keep_frequencies(linear, 0.0, 1.1)
    assert len(small.states) == 6  # 2 sin(k pi / 18) < 1.1 for k = 1, 2, 3
    assert np.allclose(response(small, np.zeros(1)), response(linear, np.zeros(1)), rtol=1e-10)
    w = np.linspace(0, 1.1, 500)
    worst = np.abs(response(linear, w) - response(small, w)).max()
    bound = numbers(r"Inside the range no frequency response differs by more than (\S+) ", remark(small))[0]
    assert worst <= bound * 1.002
    assert worst >= bound * 0.98
    assert "10 eigenvalues of 1.286 to 1.97 rad/s follow at once" in remark(small)


def test_a_band_in_the_middle() -> None:
    linear = masses_and_springs(8, 0.02)
    small = keep_frequencies(linear, 0.5, 1.4)
    assert np.all((np.abs(small.eigenvalues()) > 0.5) & (np.abs(small.eigenvalues()) < 1.4))
    w = np.linspace(0.5, 1.4, 900)
    bound = numbers(r"more than (\S+) ", remark(small))[0]
    assert np.abs(response(linear, w) - response(small, w)).max() <= bound * 1.002
    assert "2 eigenvalues of 0.3473 to 0.3473 rad/s were left out" in remark(small)


def test_fast_dependent_states_follow_the_inputs_at_once() -> None:
    linear = from_matrices(np.diag([-1.0, -100.0]), np.array([[1.0], [50.0]]), np.array([[1.0, 1.0]]))
    small = keep_frequencies(linear, 0, 10)
    assert pytest.approx(np.array([[0.5]])) == small.D
    assert small.T_u.ravel() == pytest.approx([0.0, 0.5])


def test_what_grows_is_kept_whatever_its_frequency() -> None:
    linear = from_matrices(np.diag([-1.0, 50.0, -80.0]), np.ones((3, 1)), np.ones((1, 3)))
    assert np.sort(keep_frequencies(linear, 0, 10).eigenvalues().real) == pytest.approx([-1, 50])


def test_all_modes_inside_is_the_same_object() -> None:
    linear = masses_and_springs(3)
    assert keep_frequencies(linear, 0, 10) is linear


def test_bad_ranges() -> None:
    for low, high in [(1, 1), (-1, 2), (3, 2), (float("nan"), 1)]:
        with pytest.raises(UsageError, match="not a range of frequencies"):
            keep_frequencies(heat(4), low, high)
    with pytest.raises(UsageError, match="reduce the continuous one"):
        keep_frequencies(replace(heat(4), sample_time=0.1), 0, 1)


# -- the peak of a gain ---------------------------------------------------------------------------


def test_peak_of_an_oscillator() -> None:
    # 1/(s^2 + 2 d s + 1) has its peak 1/(2 d sqrt(1 - d^2)) at sqrt(1 - 2 d^2).
    for d in (1e-4, 0.01, 0.3):
        system = StateSpace(
            np.array([[0, 1.0], [-1, -2 * d]]), np.array([[0], [1.0]]), np.array([[1.0, 0]]), np.zeros((1, 1))
        )
        peak = peak_gain(system)
        exact = 1 / (2 * d * np.sqrt(1 - d**2))
        assert peak.attained <= exact * (1 + 1e-9)
        assert exact <= peak.bound <= 1.01 * exact
        assert peak.frequency == pytest.approx(np.sqrt(1 - 2 * d**2), rel=0.05)
        beyond = peak_gain(system, 2.0, 5.0)
        assert beyond.attained == pytest.approx(system.gain(2.0))
        assert beyond.frequency == 2.0


@pytest.mark.parametrize("seed", range(8))
def test_no_frequency_has_more_than_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    A = rng.standard_normal((n, n)) - 3.5 * np.eye(n)
    system = StateSpace(A, rng.standard_normal((n, 2)), rng.standard_normal((3, n)), 0.3 * rng.standard_normal((3, 2)))
    for low, high in [(0.0, np.inf), (0.3, 2.0), (5.0, 80.0)]:
        peak = peak_gain(system, low, high)
        w = np.geomspace(max(low, 1e-3), min(high, 1e4), 4000)[:, None, None]
        G = system.C @ np.linalg.solve(1j * w * np.eye(n) - A, np.broadcast_to(system.B, (len(w), n, 2))) + system.D
        largest = np.linalg.norm(G, 2, axis=(1, 2)).max()
        assert largest <= peak.bound
        assert peak.attained >= largest * (1 - 2.5e-3)
