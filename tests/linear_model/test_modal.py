"""Participation, controllability and observability by mode: closed forms, scaling, and modes that are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

import fmilin as fl
from fmilin.linear_model.modal import modal_analysis
from fmilin.models import OdeModel
from fmilin.reduction import hankel_singular_values
from fmilin.systems import bicycle, double_wishbone
from tests.families.plants import oscillator
from tests.hand_made import sized

TWO = {"q": "v", "v": "F - 4*q - 0.2*v", "p": "r", "r": "G - 25*p - 0.4*r"}


def two_oscillators(equations: dict[str, str] = TWO) -> fl.LinearModel:
    outputs = {"first": "q", "both": "q + p"}
    return fl.linearize(OdeModel("two", equations, inputs=["F", "G"], parameters={}, outputs=outputs))


def scaled(linear: fl.LinearModel, by: np.ndarray) -> fl.LinearModel:
    """The same system with coordinates in other units."""

    def of(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> dict[str, np.ndarray]:
        return {"A": A * by[:, None] / by, "B": B * by[:, None], "C": C / by}

    E = linear.errors
    errors = replace(E, **of(E.A, E.B, E.C))
    return replace(linear, **of(linear.A, linear.B, linear.C), T=linear.T / by, errors=errors)  # type: ignore[arg-type]


def test_an_oscillator_is_position_and_speed_in_equal_parts() -> None:
    found = modal_analysis(fl.linearize(oscillator()))
    (group,) = found.groups
    assert group.is_pair
    assert group.count == 1
    np.testing.assert_allclose(found.participation, [[0.5, 0.5]], rtol=1e-9)
    np.testing.assert_allclose(found.controllability, [[1.0]])
    np.testing.assert_array_equal(found.unmoved, [[0]])


def test_an_input_moves_its_own_oscillator_only() -> None:
    found = modal_analysis(two_oscillators())
    np.testing.assert_allclose(found.participation, [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(found.controllability, np.eye(2), atol=1e-9)
    np.testing.assert_array_equal(found.unmoved, 1 - np.eye(2))
    np.testing.assert_array_equal(found.uncontrollable, [0, 0])
    np.testing.assert_array_equal(found.unseen, [[0, 0], [1, 0]])


def test_factors_do_not_depend_on_units() -> None:
    linear = fl.linearize(double_wishbone())
    other = modal_analysis(scaled(linear, np.array([1e3, 1e-4, 7.0, 1e5])))
    found = modal_analysis(linear)
    for name in ("participation", "controllability", "observability"):
        np.testing.assert_allclose(getattr(other, name), getattr(found, name), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(other.unmoved, found.unmoved)


def test_factors_are_those_of_the_eigenvectors() -> None:
    linear = fl.linearize(double_wishbone())
    w, V = np.linalg.eig(linear.A)
    factors = np.abs(V * np.linalg.inv(V).T)
    found = modal_analysis(linear)
    for row, group in zip(found.participation, found.groups, strict=True):
        column = factors[:, np.argmin(np.abs(w - group.eigenvalue))]
        np.testing.assert_allclose(row, column / column.sum(), rtol=1e-9)


def test_two_equal_oscillators_need_two_inputs() -> None:
    """One input cannot move both of two equal modes apart, two can: the rank test of Popov, Belevitch and Hautus."""
    found = modal_analysis(two_oscillators(TWO | {"r": "F + G - 4*p - 0.2*r"}))
    (group,) = found.groups
    assert group.count == 2
    np.testing.assert_array_equal(found.unmoved, [[1, 1]])
    np.testing.assert_array_equal(found.uncontrollable, [0])


def test_a_double_integrator_is_one_group_that_its_input_moves() -> None:
    plant = OdeModel("cart", {"x": "v", "v": "F", "z": "-z"}, inputs=["F"], parameters={}, outputs={"x": "x", "v": "v"})
    found = modal_analysis(fl.linearize(plant))
    assert [g.count for g in found.groups] == [2, 1]
    np.testing.assert_array_equal(found.unmoved, [[0], [1]])
    np.testing.assert_array_equal(found.unseen, [[0, 1], [1, 1]])
    np.testing.assert_allclose(found.participation[0], [0.5, 0.5, 0], atol=1e-9)


def test_the_bicycle_leans_without_its_rear_torque() -> None:
    """Upright and straight on, driving and leaning are decoupled (Whipple)."""
    linear = fl.linearize(bicycle())
    found = modal_analysis(linear)
    rear = linear.inputs.names.index("rear_torque")
    leaning = [k for k, g in enumerate(found.groups) if abs(g.eigenvalue) > 0.1]
    assert (found.unmoved[leaning, rear] == 1).all()
    assert (found.controllability[leaning, rear] < 1e-6).all()
    assert (found.unmoved[leaning][:, :2] == 0).all()


def test_unit_energy_reaches_what_the_gramian_says() -> None:
    linear = fl.linearize(oscillator())
    X = solve_continuous_lyapunov(linear.A, -linear.B @ linear.B.T)
    found = modal_analysis(linear)
    # one mode alone: the largest v' z over all phases is the largest of the state that moves most
    size = np.sqrt(np.diag(X)[1])
    assert found.reachable_amplitudes[0, 0] == pytest.approx(size, rel=0.1)
    undamped = modal_analysis(fl.linearize(oscillator().with_parameters({"d": 0.0})))
    assert np.isinf(undamped.reachable_amplitudes[0, 0])
    assert np.isinf(undamped.output_norms[0, 0])


def test_energy_of_a_real_mode_is_its_closed_form() -> None:
    """x' = -a x + b u, y = c x: amplitude b / sqrt(2 a) with unit energy, output energy c^2 / (2 a), Hankel bc / 2a."""
    plant = OdeModel("lag", {"x": "-2*x + 3*u"}, inputs=["u"], parameters={}, outputs={"y": "5*x"})
    found = modal_analysis(fl.linearize(plant))
    np.testing.assert_allclose(found.reachable_amplitudes, [[3 / 2.0]], rtol=1e-9)
    np.testing.assert_allclose(found.output_norms, [[5 / 2.0]], rtol=1e-9)
    np.testing.assert_allclose(hankel_singular_values(fl.linearize(plant)), [15 / 4.0], rtol=1e-9)


def test_hankel_values_leave_out_what_does_not_decay() -> None:
    equations = {"x": "-2*x + 3*u + 0.5*z", "z": "u"}
    plant = OdeModel("lag", equations, inputs=["u"], parameters={}, outputs={"y": "5*x", "z": "z"})
    # x = 1/4 z + stable part s with s' = -2 s + (3 - 1/4) u
    np.testing.assert_allclose(hankel_singular_values(fl.linearize(plant)), [5 * 2.75 / 4], rtol=1e-9)


def test_a_sampled_model_has_the_same_factors() -> None:
    linear = two_oscillators()
    from scipy.linalg import expm

    step = 0.05
    sampled = replace(linear, A=expm(linear.A * step), B=linear.B * step, sample_time=step)
    found, other = modal_analysis(linear), modal_analysis(sampled)
    np.testing.assert_allclose(other.participation, found.participation, atol=1e-9)
    np.testing.assert_allclose([g.eigenvalue for g in other.groups], [g.eigenvalue for g in found.groups], rtol=1e-9)


def test_nothing_moves_in_an_empty_model() -> None:
    found = modal_analysis(sized(0, 2, 2, 1))
    assert found.groups == ()
    assert found.controllability.shape == (0, 2)
