"""A pendulum whose pivot is driven: inputs that enter the constraint, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin.composition.linear_response import compare
from fmilin.models import LagrangeModel
from fmilin.simulation import InputTable

G, LENGTH, AMPLITUDE, RATE = 9.81, 1.3, 0.2, 3.0

DRIVE = {
    "s": lambda t: AMPLITUDE * np.sin(RATE * t),
    "der(s)": lambda t: AMPLITUDE * RATE * np.cos(RATE * t),
    "der(der(s))": lambda t: -AMPLITUDE * RATE**2 * np.sin(RATE * t),
}


def driven() -> LagrangeModel:
    return LagrangeModel(
        "driven pivot",
        {"x": "vx", "y": "vy"},
        [["m", 0], [0, "m"]],
        [0, "-m*g"],
        constraints=["(x - s)^2 + y^2 - L^2"],
        inputs=["s"],
        parameters={"m": 2.0, "g": G, "L": LENGTH},
        start={"y": -LENGTH, "vx": AMPLITUDE * RATE, "der(s)": AMPLITUDE * RATE},
    )


@pytest.mark.parametrize("stabilization", ["projection", "local", "none"])
def test_it_moves_as_in_the_angle(stabilization: str) -> None:
    """theta'' = -(g sin(theta) + s'' cos(theta))/l."""
    motion = fl.simulate(driven(), stop_time=3.0, step=0.1, inputs=DRIVE, stabilization=stabilization)
    oracle = solve_ivp(
        lambda t, z: [z[1], -(G * np.sin(z[0]) + DRIVE["der(der(s))"](t) * np.cos(z[0])) / LENGTH],
        (0, 3),
        [0.0, 0.0],
        rtol=1e-11,
        atol=1e-12,
        t_eval=motion.times,
    )
    np.testing.assert_allclose(motion["x"] - motion["s"], LENGTH * np.sin(oracle.y[0]), atol=2e-7)
    np.testing.assert_allclose(motion["y"], -LENGTH * np.cos(oracle.y[0]), atol=2e-7)
    assert motion.largest_drift < (1e-6 if stabilization == "none" else 1e-12)


def test_the_linear_model_is_driven_alike() -> None:
    model = driven()
    rest = fl.operating_point(model, {"x": 0.0, "vx": 0.0, "der(s)": 0.0})
    lin = fl.linearize(model, rest, independent=["x"])
    motion = fl.simulate(model, stop_time=1.0, step=0.05, inputs=DRIVE)
    comparison = compare(motion, lin, inputs=DRIVE)
    assert (comparison.deviations[:1] < 0.05 * comparison.ranges[:1]).all()
    chain = compare(motion, lin.with_prescribed_states(), inputs=DRIVE)
    np.testing.assert_allclose(chain.linear[:, 0], comparison.linear[:, 0], atol=1e-6)


def test_derivatives_that_contradict_are_refused() -> None:
    with pytest.raises(
        fl.UsageError, match=r"'s' prescribes a motion and changes at .* 'der\(s\)', is 0\.6: make the two agree"
    ):
        fl.simulate(driven(), stop_time=1.0, inputs={"s": DRIVE["s"]})
    ramp = InputTable(np.array([0.0, 1.0]), ("s",), np.array([[0.0], [AMPLITUDE * RATE]]))
    with pytest.raises(fl.UsageError, match=r"changes at 0 per second .* is 0\.6"):
        fl.simulate(driven(), stop_time=2.0, inputs=ramp)
