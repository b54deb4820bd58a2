"""Slopes by a model's own products: the smallest models, and errors that the model tells itself."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts


def decaying(states: int) -> Parts:
    """x_i' = -(i + 2) x_i."""
    A = -np.diag(np.arange(states) + 2.0)
    return Parts(
        [f"x{i}" for i in range(states)],
        [1.0] * states,
        lambda t, x, u: A @ x,
        jacobians=lambda t, x, u: (A, np.zeros((states, 0))),
    )


@pytest.mark.parametrize("states", [0, 1, 2])
def test_the_smallest_models(states: int) -> None:
    linear = fl.linearize(FunctionModel(decaying(states)))
    np.testing.assert_array_equal(linear.A, -np.diag(np.arange(states) + 2.0))
    assert linear.method.derivatives == "exact"


class Doubtful(FunctionModel):
    """Knows of its products that they are wrong by up to 1 %, as of an identified model."""

    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        products = self.products(t, x, u, dx, du)
        assert products is not None
        return Evaluation(0.01 * np.abs(products.derivatives), np.abs(products.outputs), np.abs(products.residuals))


def test_errors_that_a_model_tells_of_its_products_are_those_of_the_slopes() -> None:
    linear = fl.linearize(Doubtful(decaying(2)))
    np.testing.assert_array_equal(linear.A, [[-2.0, 0.0], [0.0, -3.0]])
    np.testing.assert_allclose(linear.accuracy.A, 0.01, rtol=1e-6)
