"""The accuracy that a sweep states for a matrix is the largest error of its entries over its largest entry."""

from __future__ import annotations

import numpy as np

import fmilin as fl
from fmilin.models import OdeModel


def test_the_accuracy_of_each_point_is_that_of_its_worst_entry() -> None:
    """Rows and columns of different sizes, the states nearly zero: each entry has an error of its own."""
    rates = {"x": "1000*y - sin(x) + u", "y": "-0.01*x*y - y + 0.001*w"}
    model = OdeModel("scaled", rates, inputs=["u", "w"], outputs={"a": "0.002*x + 0.5*y", "b": "0.001*x*x"})
    family = fl.sweep(model, {"x": np.linspace(1.0, 40.0, 80)})
    assert family.ok.all()
    for linear in family:
        for name in "ABC":
            matrix, errors = getattr(linear, name), getattr(linear.errors, name)
            stated = getattr(linear.accuracy, name)
            np.testing.assert_allclose(stated * np.abs(matrix).max(), errors.max(), rtol=1e-9)
