"""Inputs that move nothing when they are pushed a little: stuck, or not connected."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts


def pushed(force: float, threshold: float) -> FunctionModel:
    """x' = -x + force (|u| beyond the threshold), y = x."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([-s[0] + force * np.sign(u[0]) * max(abs(u[0]) - threshold, 0.0)])

    return FunctionModel(Parts(["x"], [0.0], rates, ["u"], ["x"], lambda t, s, u: s))


@pytest.mark.parametrize("threshold", [0.02, 0.5, 20.0])
def test_a_threshold_between_a_small_push_and_thirty_sizes_is_seen(threshold: float) -> None:
    model = pushed(1.0, threshold)
    with pytest.raises(fl.NumericalError, match="Small changes of u have no effect"):
        fl.linearize(model)
    kept = fl.linearize(model, keep_inaccurate=True)
    assert "no-response" in [w.kind for w in kept.warnings]


@pytest.mark.parametrize(("force", "threshold"), [(0.0, 0.1), (1.0, 50.0)], ids=["not connected", "too far off"])
def test_what_never_moves_is_silent_and_not_stuck(force: float, threshold: float) -> None:
    found = fl.linearize(pushed(force, threshold))
    assert "no-response" in [w.kind for w in found.warnings]


class Switching(FunctionModel):
    """An input that moves nothing, but passes a switch when it is pushed far enough."""

    threshold = 0.5

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([abs(u[0]) - self.threshold])


@pytest.mark.parametrize(("threshold", "stuck"), [(0.5, True), (1e6, False)])
def test_a_push_that_passes_a_switch_would_move_the_model_there(threshold: float, stuck: bool) -> None:
    model = Switching(pushed(0.0, 0.1).parts)
    model.threshold = threshold
    if stuck:
        with pytest.raises(fl.NumericalError, match="Small changes of u have no effect"):
            fl.linearize(model)
    else:
        assert "no-response" in [w.kind for w in fl.linearize(model).warnings]
