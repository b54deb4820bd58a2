"""Other coordinates for the same motion: balanced by sizes, modal, minimal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin import LinearModel
from fmilin.errors import UsageError
from fmilin.linear_model.model import Accuracy, EntryErrors
from fmilin.reduction import Conditioning, balance, balanced_truncation, minimal_realization, modal_form
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.systems import four_bar
from tests.hand_made import pendulum, sized
from tests.reduction.cases import cart_with_pendulum, from_matrices, masses_and_springs, response

W = np.geomspace(1e-3, 1e3, 25)


def same_behaviour(a: LinearModel, b: LinearModel, tolerance: float = 1e-10) -> None:
    scale = np.abs(response(a, W)).max(axis=0)
    assert np.abs(response(a, W) - response(b, W)).max(initial=0) <= tolerance * scale.max(initial=1e-300)
    assert np.allclose(a.T @ a.f0, b.T @ b.f0, rtol=1e-10, atol=1e-12)


def test_balancing_by_nominals_divides_the_states() -> None:
    states = Signals([Signal("p", "Pa", 1e5, 1e5), Signal("m", "kg"), Signal("T", "K", 300.0)])
    linear = replace(sized(3, 0, 1, 1), states=states, y0=np.array([2e5, 3.0, 600.0]))
    scaled = balance(linear)
    assert scaled.states.names == ("p/100000", "m", "T/300")
    assert scaled.states.units == ("", "kg", "")
    assert scaled.y0.tolist() == [2.0, 3.0, 2.0]
    assert np.allclose(scaled.A, linear.A * [1e5, 1, 300] / np.array([[1e5], [1], [300]]), rtol=1e-14)
    assert scaled.full_states == linear.full_states
    assert np.allclose(scaled.T @ (scaled.y0 * 0.1), linear.T @ (linear.y0 * 0.1), rtol=1e-13)
    same_behaviour(linear, scaled)


def test_balancing_by_norms_rounds_nothing() -> None:
    D = np.diag([1e-6, 1.0, 1e7])
    base = sized(3, 0, 2, 2)
    linear = replace(base, A=np.linalg.inv(D) @ base.A @ D)
    scaled = balance(linear, "norms")
    assert np.linalg.norm(scaled.A) < 1e-3 * np.linalg.norm(linear.A)
    mantissas, _ = np.frexp(scaled.A / linear.A)
    assert set(np.abs(mantissas).ravel()) == {0.5}
    same_behaviour(linear, scaled)


def test_without_nominals_balancing_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"No state .* has a nominal value.*fl\.reduction\.balance\(linear, 'norms'\)"):
        balance(sized(3, 0, 1, 1))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_modal_form_has_a_block_per_mode(count: int) -> None:
    linear = masses_and_springs(count)
    modal = modal_form(linear)
    blocks = np.kron(np.eye(count), np.ones((2, 2)))
    assert np.abs(modal.A * (1 - blocks)).max() < 1e-12
    frequencies = 2 * np.sin(np.arange(1, count + 1) * np.pi / (2 * (count + 1)))
    found = np.hypot(np.diag(modal.A)[::2], np.diag(modal.A, 1)[::2])
    assert np.allclose(found, frequencies, rtol=1e-12)
    assert np.allclose(np.diag(modal.A, 1)[::2], -np.diag(modal.A, -1)[::2], rtol=1e-10)
    assert modal.states.names[:2] == ("mode1.re", "mode1.im")
    assert modal.warnings == linear.warnings
    same_behaviour(linear, modal)


def test_a_double_zero_stays_in_one_block_and_is_said() -> None:
    linear = cart_with_pendulum()
    modal = modal_form(linear)
    assert modal.states.names == ("mode1[1]", "mode1[2]", "mode2.re", "mode2.im")
    assert np.abs(modal.A[:2, 2:]).max() < 1e-12
    assert np.abs(modal.A[2:, :2]).max() < 1e-12
    assert np.abs(np.linalg.eigvals(modal.A[:2, :2])).max() < 1e-6
    assert np.linalg.norm(modal.A[:2, :2]) > 0.1
    assert [w.kind for w in modal.warnings] == ["modal"]
    assert "cannot be separated" in str(modal.warnings[0])
    same_behaviour(linear, modal, 1e-9)


@pytest.mark.parametrize("defect", [1e-14, 1e-10, 0.0])
def test_a_jordan_block_of_three_is_kept_together(defect: float) -> None:
    J = np.eye(3) * -1 + np.eye(3, k=1)
    J[2, 0] = defect
    A = np.zeros((5, 5))
    A[:3, :3], A[3:, 3:] = J, np.array([[-5.0, 1.0], [0.0, -7.0]])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    linear = from_matrices(Q @ A @ Q.T, Q[:, :1], Q[:1])
    modal = modal_form(linear)
    assert modal.states.names == ("mode1[1]", "mode1[2]", "mode1[3]", "mode2", "mode3")
    same_behaviour(linear, modal, 1e-8)


def test_modal_names_do_not_hide_names_of_the_model() -> None:
    states = Signals(["mode1.re", "w"])
    linear = replace(pendulum(), states=states, full_states=Signals([*states, "a", "b"]))
    assert modal_form(linear).states.names == ("mode1.re_", "mode1.im")


def test_a_cyclic_coordinate_that_no_output_shows_goes_and_the_others_keep_their_names() -> None:
    linear = cart_with_pendulum()
    small = minimal_realization(linear)
    assert small.states.names == ("phi", "w")
    assert np.allclose(small.A, linear.A[np.ix_([1, 3], [1, 3])], atol=1e-14)
    assert np.allclose(small.B, linear.B[[1, 3]], atol=1e-14)
    assert "2 of 4 states were dropped: no output shows the eigenvalues 0, 0" in str(small.warnings[-1])
    same_behaviour(linear, small)


def test_what_no_input_reaches_goes_and_says_that_it_grows() -> None:
    A = np.diag([-1.0, 2.0, -3.0])
    linear = from_matrices(A, np.array([[1.0], [0.0], [2.0]]), np.ones((1, 3)))
    small = minimal_realization(linear)
    assert small.states.names == ("x[1]", "x[3]")
    text = str(small.warnings[-1])
    assert "no input reaches the eigenvalues 2" in text
    assert "grows" in text
    same_behaviour(linear, small)


def test_hidden_parts_in_mixed_coordinates_are_found() -> None:
    rng = np.random.default_rng(3)
    core = sized(4, 0, 2, 2)
    n = 9
    A = np.zeros((n, n))
    A[:4, :4] = core.A
    A[:4, 4:7] = rng.standard_normal((4, 3))  # not reached, but seen
    A[4:7, 4:7] = rng.standard_normal((3, 3))
    A[7:, :] = rng.standard_normal((2, n))  # reached, but not seen
    A[:7, 7:] = 0.0
    B, C = np.zeros((n, 2)), np.zeros((2, n))
    B[:4], B[7:] = core.B, rng.standard_normal((2, 2))
    C[:, :4], C[:, 4:7] = core.C, rng.standard_normal((2, 3))
    Q = rng.standard_normal((n, n))
    linear = from_matrices(np.linalg.solve(Q, A @ Q), np.linalg.solve(Q, B), C @ Q)
    small = minimal_realization(linear, tolerance=1e-9)
    assert small.A.shape == (4, 4)
    assert small.states.names == ("z[1]", "z[2]", "z[3]", "z[4]")
    assert np.allclose(small.eigenvalues(), core.eigenvalues(), rtol=1e-7)
    same_behaviour(linear, small, 1e-7)


def test_away_from_an_equilibrium_f0_counts_as_an_input() -> None:
    linear = from_matrices(np.diag([-1.0, -2.0]), np.array([[1.0], [0.0]]), np.ones((1, 2)))
    assert minimal_realization(linear).A.shape == (1, 1)
    moving = replace(linear, f0=np.array([0.0, 1.0]))
    assert minimal_realization(moving) is moving


def test_weak_couplings_beside_stiff_ones_are_no_noise() -> None:
    A = np.array([[-1.0, 0.0, 0.0], [1e-3, -2e9, 1e9], [0.0, 1.0, -1.0]])
    exact = from_matrices(A, np.eye(3)[:, :1], np.eye(3)[2:])
    E = exact.errors
    noisy = replace(
        exact,
        accuracy=replace(exact.accuracy, A=1e-9),
        errors=EntryErrors(1e-9 * np.abs(A), E.B, E.C, E.D, E.T),
    )
    assert minimal_realization(noisy) is noisy


def test_couplings_within_their_errors_are_noise() -> None:
    A = np.array([[-1.0, 0.0], [3e-8, -2.0]])
    linear = from_matrices(A, np.eye(2)[:, :1], np.ones((1, 2)))
    assert minimal_realization(linear) is linear
    measured = replace(linear, errors=replace(linear.errors, A=np.full((2, 2), 1e-8)))
    assert minimal_realization(measured).states.names == ("x[1]",)
    unknown = replace(linear, A=np.array([[-1.0, 0.0], [1e-10, -2.0]]), accuracy=Accuracy(*[np.nan] * 8))
    assert minimal_realization(unknown).states.names == ("x[1]",)


def test_what_is_minimal_stays_the_same_object() -> None:
    linear = masses_and_springs(6)
    assert minimal_realization(linear) is linear


@pytest.mark.parametrize(("inputs", "outputs", "missing"), [(0, 1, "inputs"), (1, 0, "outputs")])
def test_nothing_would_remain_without_inputs_or_outputs(inputs: int, outputs: int, missing: str) -> None:
    linear = replace(sized(2, 0, inputs, outputs), f0=np.zeros(2))
    with pytest.raises(UsageError, match=f"has no {missing}: its minimal realization is empty"):
        minimal_realization(linear)


def test_errors_are_carried_into_the_new_coordinates() -> None:
    linear = masses_and_springs(3)
    rng = np.random.default_rng(5)
    E = [1e-7 * rng.random(m.shape) for m in (linear.A, linear.B, linear.C, linear.D, linear.T)]
    linear = replace(linear, errors=EntryErrors(*E))
    modal = modal_form(linear)
    V = np.linalg.pinv(linear.T) @ modal.T
    for _ in range(20):
        change = [e * rng.choice([-1.0, 1.0], e.shape) for e in E]
        moved = np.linalg.solve(V, (linear.A + change[0]) @ V)
        assert np.all(np.abs(moved - modal.A) <= modal.errors.A)
        assert np.all(np.abs((linear.C + change[2]) @ V - modal.C) <= modal.errors.C)
    assert pytest.approx(modal.errors.A.max() / np.abs(modal.A).max()) == modal.accuracy.A
    unknown = replace(linear, accuracy=replace(linear.accuracy, A=np.nan))
    assert np.isnan(modal_form(unknown).accuracy.A)


@pytest.mark.parametrize("order", [0, 1])
def test_models_with_hardly_any_states(order: int) -> None:
    linear = sized(order, 2, 1, 1)
    linear = replace(linear, errors=EntryErrors(*[np.zeros((0, 0))] * 5))
    for change in (modal_form, minimal_realization, lambda m: balance(m, "norms")):
        same_behaviour(linear, change(linear))


def test_dependent_states_of_a_mechanism_follow_its_modes() -> None:
    linear = fl.linearize(four_bar(damping=0.3))
    modal = modal_form(linear)
    assert modal.states.names == ("mode1.re", "mode1.im")

    def motion(model: LinearModel, start: FloatArray, t: float) -> FloatArray:
        return model.T @ expm(model.A * t) @ start

    dy = np.array([0.1, -0.2])
    z = np.linalg.lstsq(modal.T, linear.T @ dy, rcond=None)[0]
    for t in (0.0, 0.7, 3.0):
        assert np.allclose(motion(modal, z, t), motion(linear, dy, t), atol=1e-13)


def test_the_descriptor_system_stays_as_long_as_its_modes_do() -> None:
    linear = fl.linearize(four_bar(damping=0.3), descriptor=True)
    modal = modal_form(linear).descriptor
    assert modal is not None
    assert modal.order == 2
    assert balanced_truncation(linear, 1).descriptor is None


def test_nothing_is_done_by_default() -> None:
    linear = pendulum()
    assert Conditioning().apply(linear) is linear


def test_modal_form_passes_the_verification_at_an_equilibrium() -> None:
    model = four_bar(damping=0.3)
    linear = modal_form(fl.linearize(model, independent=["y0", "vy0"]))
    assert linear.verify(model, horizon=1.0).passed
