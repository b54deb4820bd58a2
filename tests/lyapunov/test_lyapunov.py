"""Benettin's method: against eigenvalues, against minimal coordinates, and what must be zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import ConstraintError, Model, OperatingPoint, UsageError
from fmilin.lyapunov import Benettin, lyapunov_exponents
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.general_way import hide_procedure
from tests.lyapunov.double_pendulum import CANONICAL, in_angles, in_cartesian_coordinates
from tests.systems.skate_model import skate


def test_a_linear_system_has_the_real_parts_of_its_eigenvalues() -> None:
    """x' = A x with eigenvalues 1, -2 and -3 +- 5 i."""
    model = OdeModel("linear", {"a": "a + 0.3*b", "b": "-2*b", "c": "-3*c + 5*d", "d": "-5*c - 3*d"})
    found = lyapunov_exponents(model, 30.0, method=Benettin(interval=1.0))
    np.testing.assert_allclose(found.values, [1.0, -2.0, -3.0, -3.0], atol=0.1)
    long, short = found.history[-1], found.history[14]
    assert abs(long[0] - 1.0) < 0.6 * abs(short[0] - 1.0)  # the error is a bounded amount over time
    assert found.dimension == pytest.approx(1.0 + found.values[0] / abs(found.values[1]))


def test_dependent_states_are_switched_on_the_way() -> None:
    model = in_cartesian_coordinates()
    found = lyapunov_exponents(model, 1.5)
    assert found.switches
    end = model.evaluate(found.end.time, found.end.states, found.end.inputs)
    np.testing.assert_allclose(end.residuals, 0.0, atol=1e-13)


def test_other_models_are_switched_too() -> None:
    pendulum = cartesian_pendulum()
    point = fl.operating_point(pendulum, {"x": 0.0, "vx": 7.0})  # over the top
    assert lyapunov_exponents(pendulum, 2.0, point).switches


def test_cartesian_coordinates_and_angles_agree_and_volumes_are_kept() -> None:
    """All four exponents at every time, measured in angles and momenta: a symplectic flow, so their sum is zero."""
    method = Benettin(measured_in=CANONICAL, tolerance=1e-10)
    cartesian, angles = (lyapunov_exponents(m, 4.0, method=method) for m in (in_cartesian_coordinates(), in_angles()))
    np.testing.assert_allclose(cartesian.history, angles.history, atol=1e-6)
    assert cartesian.values[0] > 0.5
    np.testing.assert_allclose(cartesian.history.sum(axis=1), 0.0, atol=1e-7)
    np.testing.assert_allclose(angles.history.sum(axis=1), 0.0, atol=1e-7)
    assert cartesian.switches
    assert not angles.switches


def test_the_general_way_agrees_with_the_procedure() -> None:
    own = in_cartesian_coordinates()
    a, b = (lyapunov_exponents(m, 1.0, count=2) for m in (own, hide_procedure(own)))
    np.testing.assert_allclose(a.values, b.values, atol=1e-6)


def test_a_chaotic_motion_in_both_descriptions() -> None:
    """Beyond a few seconds the two trajectories part; the average of the largest exponent does not."""
    method = Benettin(interval=0.5, tolerance=1e-6)
    found = [
        lyapunov_exponents(m, 5.0, count=1, method=method).values[0] for m in (in_cartesian_coordinates(), in_angles())
    ]
    assert min(found) > 1.0
    assert found[0] == pytest.approx(found[1], rel=0.35)


def test_damping_is_the_sum_of_the_exponents() -> None:
    """In canonical variables the sum is the mean divergence, - c tr(M^-1)."""
    c = 0.4
    model = in_angles(damping=c)
    found = lyapunov_exponents(model, 3.0, method=Benettin(interval=0.05, measured_in=CANONICAL, tolerance=1e-10))

    def divergence(x: FloatArray) -> float:
        p = model.parameters
        coupling = p["m2"] * p["l1"] * p["l2"] * np.cos(x[0] - x[1])
        mass = np.array([[(p["m1"] + p["m2"]) * p["l1"] ** 2, coupling], [coupling, p["m2"] * p["l2"] ** 2]])
        return -c * float(np.trace(np.linalg.inv(mass)))

    from scipy.integrate import quad, solve_ivp

    run: Any = solve_ivp(
        lambda t, x: model.evaluate(t, x, np.empty(0)).derivatives, (0, 3), model.start.states, dense_output=True,
        rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    mean = quad(lambda t: divergence(run.sol(t)), 0, 3, epsabs=1e-9, limit=200)[0] / 3
    assert found.values.sum() == pytest.approx(mean, abs=1e-6)


def test_a_regular_motion_has_no_exponents() -> None:
    """A skate on a slope repeats itself: all five exponents go to zero like log(t)/t."""
    found = lyapunov_exponents(skate(0.0, yaw_rate=2.0, slope=20.0), 60.0, method=Benettin(interval=1.0))
    assert np.max(np.abs(found.values)) < 0.1
    assert np.max(np.abs(found.history[-1])) < 0.6 * np.max(np.abs(found.history[9]))


def test_a_transient_is_left_out() -> None:
    """x' = -sin(x) from x = 3: first away from rest at pi, then towards 0."""
    model = OdeModel("fall", {"x": "-sin(x)"}, start={"x": 3.0})
    whole = lyapunov_exponents(model, 4.0, method=Benettin(interval=0.5))
    late = lyapunov_exponents(model, 4.0, method=Benettin(interval=0.5, transient=12.0))
    assert late.values[0] == pytest.approx(-1.0, abs=1e-4)
    assert whole.values[0] > -0.8
    assert late.times[0] == pytest.approx(12.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 0.0}, "interval must be positive"),
        ({"tolerance": 2.0}, "tolerance"),
        ({"transient": -1.0}, "transient"),
        ({"transient": np.inf}, "none of them infinite"),
        ({"interval": np.nan}, "interval must be positive"),
    ],
)
def test_impossible_methods_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Benettin(**options)  # type: ignore[arg-type]


def test_impossible_requests_are_refused() -> None:
    model = in_angles()
    for duration in (-1.0, np.nan, np.inf):
        with pytest.raises(UsageError, match="duration of a trajectory must be positive"):
            lyapunov_exponents(model, duration)
    with pytest.raises(UsageError, match="4 independent states and as many exponents; 5"):
        lyapunov_exponents(model, 1.0, count=5)
    with pytest.raises(UsageError, match="t1, t2 distinguish only 2 of 4 independent motions"):
        lyapunov_exponents(model, 1.0, method=Benettin(measured_in=("t1", "t2")))


def test_a_start_beside_the_manifold_is_refused() -> None:
    beside = OperatingPoint(0.0, np.array([0.0, -1.2, 0.0, 0.0]), np.zeros(1))
    with pytest.raises(ConstraintError, match=r"point is not on the manifold: .* is 0\.22 instead of 0"):
        lyapunov_exponents(cartesian_pendulum(length=1.0), 1.0, beside)


def test_a_model_without_exact_derivatives_is_refused() -> None:
    model: Model = FunctionModel("decay", {"x": 1.0}, lambda t, x, u: -x)
    with pytest.raises(UsageError, match="no exact directional derivatives"):
        lyapunov_exponents(model, 1.0)
