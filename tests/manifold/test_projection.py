"""Points that cannot be reached, of models that cannot be evaluated everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, ConstraintError, Evaluation, Model, NumericalError
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray


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
    model, asked = bead("y^2 - x"), []
    evaluate = model.evaluate

    def counting(t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        asked.append(x.tobytes())
        return evaluate(t, x, u)

    model.evaluate = counting  # type: ignore[method-assign]
    fl.operating_point(model, {"y": 0.4})
    assert len(asked) == len(set(asked)) > 0


def test_a_point_that_does_not_exist_is_said_with_what_is_left() -> None:
    with pytest.raises(ConstraintError, match=r"cannot be satisfied with y held: .* is off by 1\b"):
        fl.operating_point(bead("x + y^2"), {"y": 1.0})
