"""Many points at once: each satisfies all constraints, or is refused as one alone is."""

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


@pytest.mark.parametrize("apart", [1e-6, 1e-5, 1e-3])
def test_a_constraint_that_depends_on_others_at_the_start_only_holds_at_all_points_or_they_are_refused(
    apart: float,
) -> None:
    """Both parabolas touch at the start; Newton's steps for the first bring the second nearer, but not onto itself."""
    model = at_rest(["x^2 - 1 - y", f"x^2 - 1 - y + {apart}*y^2"], {"x": 1.0, "y": 0.0})
    with pytest.raises(fl.ConstraintError, match=r"Point 2 of 2 \(y = 0.5\): The constraints cannot be satisfied"):
        fl.operating_points(model, {"y": [0.0, 0.5]})


@pytest.mark.parametrize("angle", [3e-9, 1e-8, 1e-7, 1e-6])
def test_constraints_that_are_nearly_parallel_are_solved_to_the_end(angle: float) -> None:
    model = at_rest(["x - y", f"x - y + {angle}*(z^3 - x)"], {"x": 1.0, "y": 1.0, "z": 1.0})
    x = np.linspace(1.0, 1.5, 5)
    points = fl.operating_points(model, {"x": x})
    np.testing.assert_allclose(
        [point.states[2] for point in points], np.cbrt(x), atol=max(1e-7, 1e-15 / angle)
    )  # rounding of a residual
