"""Regulators of a fixed structure over a family: goals against python-control's own numbers."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.design import tune
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models import OdeModel


@pytest.fixture(scope="module")
def motors() -> fl.LinearFamily:
    motor = OdeModel("motor", {"x": "v", "v": "(u - 2*v)/J"}, inputs=["u"], outputs={"pos": "x"}, parameters={"J": 1.0})
    return fl.sweep(motor, {"J": [0.7, 1.0, 1.5]})


def test_every_plant_reaches_the_goals(motors: fl.LinearFamily) -> None:
    start = {"kp": 1.0, "ki": 0.1, "kd": 0.1}
    tuned = tune(motors, "PID", start, input="u", output="pos", bandwidth=4.0, fixed={"tf": 0.01})
    assert tuned.attained
    w = np.geomspace(1e-2, 1e4, 20000)
    for k, (_, linear) in enumerate(motors.good()):
        loop = linear.to_control() * tuned.controller
        closed = control.feedback(1, loop)
        assert closed.poles().real.max() < -4.0 / 20 * 0.99
        S = np.squeeze(closed(1j * w))
        assert 1 / np.abs(S - 0.5).max() == pytest.approx(tuned.disk_margins[k], rel=1e-2)
        assert tuned.disk_margins[k] > 0.74
        assert w[np.flatnonzero(np.abs(S) >= np.sqrt(0.5))[0]] == pytest.approx(tuned.bandwidths[k], rel=0.05)
        assert tuned.bandwidths[k] > 3.99
    assert "reached" in repr(tuned)
    assert tuned.parameters["tf"] == 0.01


def test_what_cannot_be_reached_is_said(motors: fl.LinearFamily) -> None:
    tuned = tune(motors, "P", {"kp": 1.0}, input="u", output="pos", bandwidth=4.0)
    assert not tuned.attained
    with pytest.raises(NumericalError, match=r"stabilize all of the 3 plants; .* Start elsewhere \(check signs\)"):
        tune(motors, "P", {"kp": -1.0}, input="u", output="pos", bandwidth=1.0)


def test_a_structure_of_ones_own_on_a_sampled_plant(motors: fl.LinearFamily) -> None:
    plant = fl.reduction.discretize(motors[1], 0.02)

    def lead(k: float, zero: float) -> control.TransferFunction:
        return control.tf([k, -k * zero], [1.0, -0.2], 0.02)

    tuned = tune(plant, lead, {"k": 10.0, "zero": 0.9}, input="u", output="pos", bandwidth=3.0)
    assert tuned.attained
    closed = control.feedback(plant.to_control() * tuned.controller, 1)
    assert np.abs(closed.poles()).max() < np.exp(-3.0 / 20 * 0.02 * 0.99)


def test_bad_input_is_told(motors: fl.LinearFamily) -> None:
    with pytest.raises(UsageError, match="use P, PI, PD, PID"):
        tune(motors, "PIDD", {"kp": 1.0}, input="u", output="pos", bandwidth=1.0)
    with pytest.raises(UsageError, match="a start other than 0 for every parameter"):
        tune(motors, "P", {"kp": 0.0}, input="u", output="pos", bandwidth=1.0)
    with pytest.raises(UsageError, match="between 0 and 2"):
        tune(motors, "P", {"kp": 1.0}, input="u", output="pos", bandwidth=1.0, disk_margin=3.0)
    with pytest.raises(UnknownNameError, match=r"'kx' is not a parameter of the structure\. Did you mean 'kp'"):
        tune(motors, "P", {"kx": 1.0}, input="u", output="pos", bandwidth=1.0)
    with pytest.raises(UsageError, match="The derivative part needs a filter"):
        tune(motors, "PD", {"kp": 1.0, "kd": 1.0}, input="u", output="pos", bandwidth=1.0)
