"""What is just no right linear model any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fmilin as fl
from fmilin.models.ode import OdeModel
from fmilin.systems import cartesian_pendulum


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
