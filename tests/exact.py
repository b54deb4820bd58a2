"""What a test relies on a model to have, where the interface says that it may have none."""

from __future__ import annotations

from fmilin import Evaluation, Model
from fmilin.model.capabilities import read_products, read_second_order_form
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.signals import FloatArray

__all__ = ["form_of", "products_of"]


def products_of(model: Model, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
    """Return exact directional derivatives."""
    found = read_products(model, t, x, u, dx, du)
    assert found is not None
    return found


def form_of(model: Model) -> SecondOrderForm:
    """Return the second-order form where the model starts."""
    found = read_second_order_form(model, 0.0, model.start.states, model.start.inputs)
    assert found is not None
    return found
