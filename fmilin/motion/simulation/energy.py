"""The energy of a model along its motion: recorded, and where wanted kept as one more invariant."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fmilin.ground.errors import ConstraintError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.invariants import Invariants
from fmilin.model.constraints.declared import Constraint
from fmilin.model.constraints.expressions import Expression, parse
from fmilin.model.counting import CountedModel
from fmilin.model.interface import Model, OperatingPoint

__all__ = ["Energy"]


class Energy:
    """An expression over the variables of a model, and how far it is from its first value.

    Shapes: scales (N,). ``text``: an expression, or the name of a variable. ``pairs``: states whose derivative is
    another state. ``size``: the largest slope met so far: what a difference is compared with.
    """

    def __init__(
        self, model: Model, text: str, start: OperatingPoint, *, pairs: Mapping[int, int], scales: FloatArray
    ) -> None:
        declared = model.constraints.declared
        self._row = len(declared)
        expression = _formula(model, text)

        def view(level: float) -> CountedModel:
            row = Constraint(expression.minus(level), name="energy", level="velocity")
            try:
                return CountedModel(model.with_constraints([*declared, row]))
            except ConstraintError as error:
                raise UsageError(f"The energy '{text}' cannot be computed. {error}") from None

        first = view(0.0).evaluate(start.time, start.states, start.inputs).residuals[self._row]
        self._first = float(first)
        self.model = view(self._first)
        self._invariants = Invariants(self.model, start.inputs, pairs, scales)
        self._scales = scales
        self.size = abs(self._first)

    def value(self, t: float, x: FloatArray, u: FloatArray) -> float:
        """Return the energy at a point, in the units of the expression."""
        return self._first + self.excess(t, x, u)

    def excess(self, t: float, x: FloatArray, u: FloatArray) -> float:
        """Return how much more it is than at the start."""
        return float(self._invariants.values(t, x, u)[self._row])

    def slope(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return its gradient with the states, shape (N,)."""
        row: FloatArray = self._invariants.gradient(t, x, u).H[self._row]
        self.size = max(self.size, float(np.linalg.norm(row * self._scales)))
        return row


def _formula(model: Model, text: str) -> Expression:
    """Return the expression; where it is a variable whose formula the model knows, that formula."""
    expression = parse(text)
    formula = model.formula(expression.names[0]) if expression.is_variable else None
    return formula or expression
