"""What evaluations near a point have shown belongs to the function that evaluated, in any order of the calls."""

from __future__ import annotations

import numpy as np

import fmilin as fl
from fmilin.manifold.differentiation import differentiate
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from tests.by_hand import FunctionModel, Parts


def wrapping_pendulum() -> fl.Model:
    """Return a pendulum that stands upright, with its angle from there as an output, which jumps by a turn there."""

    def rates(_t: float, x: np.ndarray, _u: np.ndarray) -> np.ndarray:
        return np.array([x[1], np.sin(x[0] - np.pi) - x[1]])

    def outputs(_t: float, x: np.ndarray, _u: np.ndarray) -> np.ndarray:
        return np.array([np.arctan2(np.sin(x[0]), np.cos(x[0]))])

    return FunctionModel(Parts(["phi", "w"], [np.pi, 0.0], rates, outputs=["angle"], output=outputs))


def test_derivatives_and_observations_do_not_depend_on_earlier_evaluations() -> None:
    model = wrapping_pendulum()
    point = model.start
    base = model.evaluate(point.time, point.states, point.inputs)
    nearby = Neighbourhood(PointEvaluator(model), build_frame(model, point), point, base)
    first = differentiate(nearby, "differences")
    for displacement in ([3.0, 0.0], [-3.0, 1.0], [6.2, 0.0], [1e-3, 40.0]):
        nearby.at(np.array(displacement))
    again = differentiate(nearby, "differences")
    np.testing.assert_array_equal(again.J, first.J)
    np.testing.assert_array_equal(again.errors, first.errors)
    assert dict(first.observations.turns) == dict(again.observations.turns) == {0: 2 * np.pi}
    assert not nearby.observing().observations.crossed
