"""A point between constraints that are nearly parallel is the true one, or it is said how far that may be."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint
from fmilin.models import OdeModel


def at_rest(constraints: list[str], start: dict[str, float]) -> OdeModel:
    """Return a model in which nothing moves; constraints at velocity level have no hidden ones."""
    declared = [Constraint.from_text(text, level="velocity") for text in constraints]
    return OdeModel("rest", {name: f"0*{name}" for name in start}, start=start, constraints=declared)


def nearly_parallel(angle: float, start: dict[str, float]) -> OdeModel:
    return at_rest(["x - y", f"x - y + {angle}*(z^3 - x)"], start)


ROUNDING = 1e-15  # of a constraint, over the angle between both


@pytest.mark.parametrize("angle", [1e-11, 1e-10, 3e-9, 1e-7])
def test_a_point_between_nearly_parallel_constraints_is_where_both_hold(angle: float) -> None:
    model = nearly_parallel(angle, {"x": 1.0, "y": 1.0, "z": 1.0})
    point = fl.operating_point(model, {"x": 1.5})
    np.testing.assert_allclose(point.states[2], np.cbrt(1.5), atol=10 * ROUNDING / angle + 1e-12)
    assert not [remark for remark in point.remarks if remark.kind == "position"]


def test_a_linear_model_between_nearly_parallel_constraints_says_that_its_order_is_doubtful() -> None:
    linear = fl.linearize(nearly_parallel(3e-9, {"x": 1.0, "y": 1.0, "z": 1.0}))
    assert any("one counts as redundant" in str(warning) for warning in linear.warnings)


def test_a_point_that_rounding_leaves_open_says_how_far_the_true_one_may_be() -> None:
    point = fl.operating_point(nearly_parallel(1e-13, {"x": 1.0, "y": 1.0, "z": 1.0}), {"x": 1.5})
    (remark,) = [remark for remark in point.remarks if remark.kind == "position"]
    assert "'x - y', 'x - y + 1e-13*(z^3 - x)' are parallel" in remark.message
    assert "z is accurate to +-0.15 only" in remark.message  # (z^3 - x) / (3 z^2) at z = 1 is 0.17, of length one


def test_a_start_that_a_small_gap_moves_far_is_reported() -> None:
    point = fl.operating_point(nearly_parallel(1e-7, {"x": 1.0, "y": 1.0, "z": 0.86}))
    assert abs(point.states[2] ** 3 - point.states[0]) < 1e-7
    (remark,) = [remark for remark in point.remarks if remark.kind == "moved"]
    assert "given z = 0.86, became 0.989756" in remark.message


def test_a_point_of_a_user_that_satisfies_nearly_parallel_constraints_says_how_far_the_true_one_is() -> None:
    model = nearly_parallel(1e-6, {"x": 1.0, "y": 1.0, "z": 1.0})
    point = fl.operating_point(model).with_states(np.array([1.0, 1.0, 1.001]))  # a residual of 3e-9
    linear = fl.linearize(model, point)
    assert any("z is accurate to +-0.00095 only" in str(warning) for warning in linear.warnings)


REDUNDANT = [
    ["2*(x^2 + y^2 - 2) - 3*(z - x*y)"],
    ["(x^2 + y^2 - 2)*(2 + sin(3*z))"],
    ["(z - x*y)*exp(x) + x^2 + y^2 - 2", "x^2 + y^2 - 2"],
]


@pytest.mark.parametrize("redundant", REDUNDANT)
def test_redundant_constraints_are_accepted_without_a_word(redundant: list[str]) -> None:
    model = at_rest(["x^2 + y^2 - 2", "z - x*y", *redundant], {"x": 1.0, "y": 1.0, "z": 1.0})
    alone = fl.operating_point(model, {"x": 1.2})
    together = fl.operating_points(model, {"x": [1.1, 1.2]})[1]
    for point in (alone, together):
        np.testing.assert_allclose(point.states[1], np.sqrt(2 - 1.2**2), rtol=1e-14)
        assert not point.remarks
        linear = fl.linearize(model, point)
        assert len(linear.states) == 1
        assert not any("doubtful" in str(warning) for warning in linear.warnings)
