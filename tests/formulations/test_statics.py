"""Static equilibria with multipliers, redundant and singular ones included; equilibria of penalized systems."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import NumericalError, UsageError
from fmilin.formulations import UCS, equilibrium, form_of, penalized_equilibrium
from fmilin.models import LagrangeModel
from fmilin.systems import flexible_double_pendulum, four_bar, rolling_disk
from tests.formulations.hand_made import springs_in_line, swung_pivot

G = 9.81


def test_the_linkage_finds_its_equilibria() -> None:
    for guess, phi in ((2.0, 2.234331019017586), (-1.0, -np.pi / 2), (1.5, np.pi / 2)):
        found = equilibrium(four_bar(), {"phi": guess})
        assert found.point.states[4] == pytest.approx(phi, rel=1e-13)
        assert found.rank == 4
        assert found.is_determinate


def test_an_equilibrium_is_certified() -> None:
    """The bounds contain the closed form; multipliers of redundant constraints are a family of solutions."""
    found = equilibrium(four_bar(), {"phi": -1.0}).certificate
    phi = equilibrium(four_bar(), {"phi": -1.0}).point.states[4]
    assert abs(phi + np.pi / 2) <= found.distance["phi"] < 1e-10
    assert found.residual < 1e-12
    assert found.regularity > 1e-6
    double = equilibrium(springs_in_line(redundant=True)).certificate
    assert double.regularity < 1e-14
    assert max(double.distance.values()) < 1e-12
    assert set(double.distance) == {"x", "y", "lambda[1]", "lambda[2]"}


def test_multipliers_are_the_forces_in_the_rods() -> None:
    """Hanging, springs slack: each A-rod carries what hangs on it, its half and half a coupler's: (1.5 - 0.5) m g."""
    model = four_bar(branch="hanging")
    found = equilibrium(model)
    # Phi_q' lambda = f, and Phi_q of a rod is its vector (0, -1): lambda is the pull over the length.
    np.testing.assert_allclose(found.multipliers, [G, G, 0.0, 0.0], atol=1e-12)


def test_redundant_constraints_share_the_load_by_least_norm() -> None:
    single, double = equilibrium(springs_in_line()), equilibrium(springs_in_line(redundant=True))
    for found in (single, double):
        np.testing.assert_allclose(found.point.states, [0.125, 0.125, 0, 0], atol=1e-13)
    (force,) = single.multipliers
    assert force == pytest.approx(0.625)  # 1 N - 3 N/m / 8
    np.testing.assert_allclose(double.multipliers, force * np.array([1.0, 2.0]) / 5, rtol=1e-12)
    assert not double.is_determinate
    assert double.rank == 1


@pytest.mark.parametrize("guess", [0.0, 0.05, 0.2, -0.3])
def test_the_singular_posture_is_found_by_pseudo_inversion(guess: float) -> None:
    """The multipliers are underdetermined, the posture is not (González et al., section 5.1)."""
    model = four_bar(singular=True)
    start = model.start if guess == 0.0 else fl.operating_point(model, {"phi": guess})
    found = equilibrium(model, start)
    np.testing.assert_allclose(found.point.states, model.start.states, atol=1e-7)
    assert found.rank == 3
    np.testing.assert_allclose(found.multipliers[:2], [G, G], rtol=1e-6)


def test_the_flexible_pendulum_settles_from_a_turned_start() -> None:
    model = flexible_double_pendulum(3)
    found = equilibrium(model, {"link1.theta": -1.3})
    np.testing.assert_allclose(found.point.states, model.start.states, atol=1e-12)
    assert found.steps < 20


def test_time_and_inputs_are_held() -> None:
    found = equilibrium(springs_in_line(), {"pull": 4.0}, time=2.0)
    assert found.point.time == 2.0
    assert found.point.inputs.tolist() == [4.0]
    assert found.point.states[0] == pytest.approx(0.5)


def test_constraints_that_move_have_no_static_equilibrium() -> None:
    with pytest.raises(UsageError, match="The constraints of 'swung_pivot' depend on time"):
        equilibrium(swung_pivot(), fl.operating_point(swung_pivot(), {"x": 0.3, "vx": 0.0}, time=0.2))


def test_a_system_that_cannot_rest_is_refused() -> None:
    pushed = LagrangeModel("pushed", {"x": "vx", "y": "vy"}, [[1, 0], [0, 1]], [2, "-y"], constraints=["y"])
    with pytest.raises(NumericalError, match=r"no equilibrium of 'pushed' .* 'x' still accelerates at 2"):
        equilibrium(pushed)


def test_other_forms_are_refused() -> None:
    with pytest.raises(UsageError, match="has no accessible mass matrix"):
        equilibrium(rolling_disk())


def test_a_penalized_system_rests_where_violations_carry_the_multipliers() -> None:
    """Phi = lambda/(alpha omega^2) to first order, and f = alpha omega^2 Phi_q' Phi exactly."""
    model, options = four_bar(2), UCS(1e4, 1.0, 10.0)
    exact = equilibrium(model)
    point = penalized_equilibrium(model, exact.point, options)
    values, rates = np.split(model.evaluate(0.0, point.states, point.inputs).residuals, 2)
    assert (rates == 0.0).all()
    Phi = values
    np.testing.assert_allclose(Phi * 1e6, exact.multipliers, rtol=1e-3, atol=1e-3)
    taken = model.second_order_form(0.0, point.states, point.inputs)
    assert taken is not None
    f = taken.M @ taken.accelerations + taken.G.T @ taken.multipliers
    np.testing.assert_allclose(taken.G.T @ Phi * 1e6, f, atol=1e-8)


def test_a_penalty_that_holds_nothing_together_is_refused() -> None:
    with pytest.raises(NumericalError, match="are too small to keep the constraints"):
        penalized_equilibrium(four_bar(3), four_bar(3).start, UCS(1e-6, 1.0, 1e-3))


def test_multipliers_of_the_form_are_those_of_the_equilibrium() -> None:
    model = four_bar(3)
    np.testing.assert_allclose(form_of(model, model.start).multipliers, equilibrium(model).multipliers, atol=1e-12)
