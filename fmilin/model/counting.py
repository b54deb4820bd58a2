"""A model that counts its visits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fmilin.constraints.declared import Constraint
from fmilin.model.interface import Evaluation, Model, SecondOrderForm
from fmilin.signals import FloatArray

__all__ = ["CountedModel"]


class CountedModel(Model):
    """Passes every request on and counts it: ``evaluations``, and ``directions`` of exact products."""

    def __init__(self, source: Model) -> None:
        self.source = source
        self.info, self.states, self.inputs, self.outputs = source.info, source.states, source.inputs, source.outputs
        self.constraints, self.start, self.copies = source.constraints, source.start, source.copies
        self.independent, self.structure = source.independent, source.structure
        self.parameters = source.parameters
        self.evaluations = 0
        self.directions = 0

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Pass on and count."""
        self.evaluations += 1
        return self.source.evaluate(t, x, u)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Pass on and count the directions."""
        result = self.source.products(t, x, u, dx, du)
        self.directions += 0 if result is None else dx.shape[1]
        return result

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Pass on and count."""
        self.evaluations += 1
        return self.source.constraint_residuals(t, x, u)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Pass on."""
        return self.source.second_order_form(t, x, u)

    def symbolic_system(self) -> Any | None:
        """Pass on."""
        return self.source.symbolic_system()

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Pass on; not counted, as it costs no visit of its own."""
        return self.source.event_indicators(t, x, u)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_interface(inputs, outputs))

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_constraints(constraints))

    def with_parameters(self, values: Mapping[str, float]) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_parameters(values))
