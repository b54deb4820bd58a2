"""What is just no right linear model any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.by_hand import FunctionModel, Parts


@pytest.mark.parametrize("part", [1e-2, 1e-3, 2e-4])
@pytest.mark.parametrize("name", ["A", "B"])
def test_a_matrix_that_is_a_little_wrong_fails(name: str, part: float) -> None:
    model = cartesian_pendulum()
    lin = fl.linearize(model)
    wrong = getattr(lin, name).copy()
    wrong[1, 0] *= 1 + part
    assert not fl.verify(model, replace(lin, **{name: wrong}), horizon=1.0).passed


@pytest.mark.parametrize("part", [1e-2, 1e-4])
def test_a_point_that_is_another_fails(part: float) -> None:
    model = cartesian_pendulum()
    lin = fl.linearize(model)
    first = model.outputs.names[0]
    moved = replace(lin.point, outputs=dict(lin.point.outputs) | {first: lin.point.outputs[first] + part})
    found = fl.verify(model, replace(lin, point=moved), horizon=1.0)
    assert [c.kind for c in found.failed] == ["point"]


@pytest.mark.parametrize("speed", [1.0, 1e-3, 1e-7])
def test_a_slow_drift_is_looked_at(speed: float) -> None:
    """The linear model says that it moves, however slowly: that is a claim like the others."""
    model = OdeModel("drifting", {"x": "c - k*x"}, parameters={"c": speed, "k": 1e-3}, start={"x": 0.0})
    lin = fl.linearize(model)
    assert "drift" in {c.kind for c in fl.verify(model, lin, horizon=1.0).channels}
    double = replace(lin, f0=2 * lin.f0)
    assert "drift" in {c.kind for c in fl.verify(model, double, horizon=1.0).failed}


@pytest.mark.parametrize("accuracy", [1e-8, 1.0])
def test_what_is_said_of_errors_excuses_no_larger_ones(accuracy: float) -> None:
    model = OdeModel("lag", {"x": "-x + u"}, inputs=["u"], start={"x": 0.0})
    lin = fl.linearize(model)
    claimed = replace(lin, accuracy=replace(lin.accuracy, A=accuracy))
    assert fl.verify(model, claimed, horizon=1.0).passed
    assert not fl.verify(model, replace(claimed, A=lin.A * (1.05 if accuracy == 1.0 else 1.0005)), horizon=1.0).passed


def test_noise_excuses_no_larger_errors() -> None:
    """Noise of 3e-8 in the rates, and a slope that is wrong by a part in a thousand."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([0.5 - s[0] + u[0] + 3e-8 * np.sin(1e12 * s[0])])

    rough = FunctionModel(Parts(["x"], [0.5], rates, ["u"]))
    lin = fl.linearize(rough)
    exact = replace(lin, A=-np.eye(1), B=np.eye(1), accuracy=replace(lin.accuracy, A=0.0, B=0.0))
    for A, fails in ((-1.0, False), (-1.001, True)):
        found = fl.verify(rough, replace(exact, A=A * np.eye(1)), horizon=1.0)
        assert ("offset" in {c.kind for c in found.failed}) == fails


def test_a_dependent_state_that_hardly_responds_is_compared_all_the_same() -> None:
    """A pendulum 0.003 rad from hanging: y follows x by that."""
    model = cartesian_pendulum(angle=3e-3)
    lin = fl.linearize(model, independent=["x", "vx"])
    row = lin.full_states.index_of("y")
    T = lin.T.copy()
    T[row] *= 1.001
    found = fl.verify(model, replace(lin, T=T), horizon=0.2)
    assert {c.worst for c in found.failed} == {"y"}


@pytest.mark.parametrize("part", [1.0, 1e-3])
def test_a_drift_that_is_a_little_wrong_fails(part: float) -> None:
    model = OdeModel("drifting", {"x": "1 - k*x"}, parameters={"k": 1e-3}, start={"x": 0.0})
    lin = fl.linearize(model)
    assert "drift" in {c.kind for c in fl.verify(model, replace(lin, f0=(1 + part) * lin.f0), horizon=1.0).failed}
