"""Linear models with delays against the nonlinear models, between the delays."""

from __future__ import annotations

from dataclasses import replace

import control
import pytest

import fmilin as fl
from fmilin.models import OdeModel


def tank() -> OdeModel:
    """A level with a nonlinear outflow."""
    return OdeModel("tank", {"h": "(u - h^2)/5"}, inputs=["u"], outputs={"level": "h"}, start={"h": 1.0})


def growth(tau: float = 1.2) -> OdeModel:
    """Hutchinson's delayed logistic equation."""
    equations = {"n": "r*n*(1 - delay(n, tau)/K)"}
    return OdeModel("growth", equations, parameters={"r": 1.0, "tau": tau, "K": 2.0}, start={"n": 1.5})


def verify(model: fl.Model, linear: fl.LinearModel) -> fl.Verification:
    return fl.verify(model, linear, horizon=1.0)


def spoil(linear: fl.LinearModel, matrix: str, factor: float) -> fl.DelayedLinearModel:
    """Return a linear model with delays of which all entries of a matrix between the delays are wrong."""
    assert isinstance(linear, fl.DelayedLinearModel)
    core = replace(linear.core, **{matrix: factor * getattr(linear.core, matrix)})
    return fl.DelayedLinearModel.of_core(core, list(linear.delays), list(linear.delays.values()))


def test_dead_time_before_an_input_and_behind_an_output() -> None:
    model = tank()
    linear = fl.linearize(model, fl.operating_point(model, {"u": 1.0}), delays={"u": 1.5, "level": 0.5})
    result = verify(model, linear)
    assert result.passed
    assert any("compared between their delays" in remark.message for remark in result.remarks)
    assert not verify(model, spoil(linear, "A", 1.01)).passed
    assert not verify(model, spoil(linear, "B", 1.01)).passed
    assert not verify(model, spoil(linear, "C", 1.01)).passed


def test_a_delay_in_the_equations() -> None:
    model = growth()
    linear = fl.linearize(model, fl.trim(model))
    assert verify(model, linear).passed
    assert not verify(model, spoil(linear, "B", 0.99)).passed  # of the delayed population
    with pytest.raises(fl.UsageError, match=r"is 1\.2 s in the linear model and 1\.3 s in the model"):
        fl.verify(growth(1.3), linear)


def test_a_loop_with_delays_on_its_wires() -> None:
    law = control.ss([], [], [], [[-0.4]], inputs="e", outputs="u")
    wires = [("tank.level", "law.e"), ("law.u", "tank.u")]
    delays = {"tank.u": 1.5, "law.e": 0.5}
    loop = fl.connect({"tank": tank(), "law": law}, wires, delays=delays)
    point = fl.operating_point(loop, {"tank.h": 1.1})
    linear = fl.linearize(loop, point)
    assert verify(loop, linear).passed
    undelayed = fl.connect({"tank": tank(), "law": law}, wires)
    by_name = fl.linearize(undelayed, point, delays=delays)
    assert isinstance(by_name, fl.DelayedLinearModel)
    assert by_name.delays == delays
    assert verify(undelayed, by_name).passed
    assert not verify(undelayed, spoil(by_name, "B", 1.01)).passed


def test_an_approximation_by_pade_is_no_linear_model_of_the_model() -> None:
    model = tank()
    linear = fl.linearize(model, fl.operating_point(model, {"u": 1.0}), delays={"u": 1.5})
    assert isinstance(linear, fl.DelayedLinearModel)
    with pytest.raises(fl.FmilinError):
        fl.verify(model, linear.pade(2))
