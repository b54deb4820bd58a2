"""Points that cannot be reached, of models that cannot be evaluated everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, ConstraintError, Evaluation, Model, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import predict_states, project, pseudo_inverse
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray
from fmilin.systems import slider_crank


class Refusing(FunctionModel):
    """A bead on y = sqrt(x), which like an FMU refuses to be evaluated where there is no root."""

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return what the model returns, but not everywhere."""
        if x[0] < 0:
            raise NumericalError("There is no root of a negative number.")
        return super().evaluate(t, x, u)


def bead(constraint: str) -> Model:
    model = Refusing("bead", {"x": 0.25, "y": 0.5}, lambda t, x, u: np.array([1.0, 0.5 / np.sqrt(abs(x[0]))]))
    return model.with_constraints([Constraint.from_text(constraint)])


def test_steps_into_the_forbidden_region_are_shortened() -> None:
    point = fl.operating_point(bead("y^2 - x"), {"y": 0.01})
    np.testing.assert_allclose(point.states, [1e-4, 0.01], rtol=1e-12)


def test_a_point_is_not_evaluated_twice() -> None:
    model, visits = bead("y^2 - x"), []
    evaluate = model.evaluate

    def counting(t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        visits.append(x.tobytes())
        return evaluate(t, x, u)

    model.evaluate = counting  # type: ignore[method-assign]
    fl.operating_point(model, {"y": 0.4})
    assert len(visits) == len(set(visits)) > 0


def test_a_point_that_does_not_exist_is_refused_with_its_residuals() -> None:
    with pytest.raises(ConstraintError, match=r"cannot be satisfied with y held: .* is off by 1\b"):
        fl.operating_point(bead("x + y^2"), {"y": 1.0})


def free(names: str, constraint: str) -> Invariants:
    """The manifold of one constraint on positions; how the states move does not matter."""
    states = dict.fromkeys(names.split(), 0.0)
    model = FunctionModel("free", states, lambda t, x, u: np.zeros(len(x)), constraints=[constraint])
    return Invariants(PointEvaluator(model), model.start.inputs, {}, np.ones(len(states)), moving=False)


def test_the_nearest_point_of_a_plane_and_of_a_circle() -> None:
    plane = project(free("x y z", "x + 2*y + 2*z - 9"), 0.0, np.zeros(3))
    np.testing.assert_allclose(plane, [1.0, 2.0, 2.0], rtol=1e-14)
    circle = project(free("x y", "x^2 + y^2 - 25"), 0.0, np.array([0.6, 0.8]))
    np.testing.assert_allclose(circle, [3.0, 4.0], rtol=1e-14)


def test_held_states_do_not_move() -> None:
    nearest = project(free("x y z", "x + 2*y + 2*z - 9"), 0.0, np.array([3.0, 0.0, 0.0]), pinned=[0])
    np.testing.assert_allclose(nearest, [3.0, 1.5, 1.5], rtol=1e-14)


def test_where_a_gradient_vanishes_only_what_must_move_does() -> None:
    """From the axis of a cylinder every point of the circle around it is as near; height and speed stay."""
    cylinder = free("x y z v", "x^2 + y^2 - 1")
    start = np.array([0.0, 0.0, 5.0, -2.0])
    nearest = project(cylinder, 0.0, start)
    assert nearest[0] ** 2 + nearest[1] ** 2 == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(nearest[2:], start[2:], atol=1e-12)
    held = project(cylinder, 0.0, start, pinned=[0])
    np.testing.assert_allclose(np.abs(held), [0.0, 1.0, 5.0, 2.0], atol=1e-12)
    with pytest.raises(ConstraintError, match="off by -1"):
        project(cylinder, 0.0, start, restart=False)


def test_from_the_middle_of_an_ellipse_the_nearest_point_is_on_the_short_axis() -> None:
    nearest = project(free("x y", "x^2/4 + y^2 - 1"), 0.0, np.zeros(2))
    np.testing.assert_allclose(np.abs(nearest), [0.0, 1.0], atol=0.1)


def test_what_the_tangent_predicts() -> None:
    """On a circle at 45 degrees, x + dx asks for y - dx; on a line in space the rest shares it as its columns do."""
    at = np.array([np.sqrt(0.5), np.sqrt(0.5)])
    ahead = predict_states(free("x y", "x^2 + y^2 - 1"), 0.0, at, [0], np.array([0.1, 0.0]))
    np.testing.assert_allclose(ahead, [at[0] + 0.1, at[1] - 0.1], rtol=1e-14)
    plane = predict_states(free("x y z", "x + y + 2*z"), 0.0, np.zeros(3), [0], np.array([5.0, 0.0, 0.0]))
    np.testing.assert_allclose(plane, [5.0, -1.0, -2.0], rtol=1e-14)


def test_the_pseudo_inverse_leaves_small_singular_values_out() -> None:
    matrix = np.diag([2.0, 1.0, 1e-12])[:, :2]
    np.testing.assert_allclose(pseudo_inverse(matrix, 1e-9), np.linalg.pinv(matrix), atol=1e-15)
    np.testing.assert_allclose(pseudo_inverse(np.diag([2.0, 1e-12]), 1e-9), np.diag([0.5, 0.0]))
    assert pseudo_inverse(np.zeros((0, 3)), 1e-9).shape == (3, 0)  # no constraint is left


def test_a_whole_step_leads_on_where_no_part_of_it_helps() -> None:
    """Of random starts of a slider-crank one of forty needs that."""
    model = slider_crank()
    invariants = build_frame(model, model.start).parametrization.invariants
    start = np.array([-2.042034, 1.406716, 0.111634, -0.049408, 0.060942, 0.288618])
    states = project(invariants, 0.0, start, [], restart=False)
    assert np.abs(invariants.values(0.0, states)).max() < 1e-12
