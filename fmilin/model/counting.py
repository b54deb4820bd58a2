"""A model that counts its visits, and one that does not make the same visit twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.model.constraints.declared import Constraint
from fmilin.model.interface import Evaluation, ExactSlopes, Model, OperatingPoint, SecondOrderForm

if TYPE_CHECKING:
    from fmilin.model.constraints.expressions import Expression
    from fmilin.numerics.codegen.implicit import ImplicitSystem

__all__ = ["CountedModel", "RememberingModel"]

_Key = tuple[float, bytes, bytes]

REMEMBERED = 2_000_000
"""Numbers that are remembered at most."""


class CountedModel(Model):
    """Passes every request on and counts it: ``evaluations``, and ``directions`` of exact products."""

    def __init__(self, source: Model) -> None:
        self.source = source
        self.info, self.states, self.inputs, self.outputs = source.info, source.states, source.inputs, source.outputs
        self.constraints, self.start, self.copies = source.constraints, source.start, source.copies
        self.independent, self.structure = source.independent, source.structure
        self.independent_by_default = source.independent_by_default
        self.parameters, self.batches, self.compilable = source.parameters, source.batches, source.compilable
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

    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        """Pass on."""
        return self.source.product_errors(t, x, u, dx, du)

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Pass on; one visit."""
        found = self.source.exact_slopes(t, x, u)
        self.evaluations += 0 if found is None else 1
        return found

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Pass on and count the points."""
        found = self.source.constraint_residuals(t, x, u)
        self.evaluations += 0 if found is None else x.size // max(x.shape[-1], 1)
        return found

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Pass on and count."""
        found = self.source.constraint_gradient(t, x, u)
        self.evaluations += 0 if found is None else 1
        return found

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Pass on."""
        return self.source.second_order_form(t, x, u)

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the source, as they are now."""
        return self.source.notes

    def remarks_at(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Pass on."""
        return self.source.remarks_at(point)

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> Mapping[str, FloatArray]:
        """Pass on."""
        return self.source.contact_forces(t, x, u)

    def in_graph(self) -> ImplicitSystem | None:
        """Pass on."""
        return self.source.in_graph()

    def formula(self, name: str) -> Expression | None:
        """Pass on."""
        return self.source.formula(name)

    def stabilized(self, alpha: float, beta: float) -> Model | None:
        """Pass on; the count starts anew."""
        found = self.source.stabilized(alpha, beta)
        return None if found is None else CountedModel(found)

    def discrete_states(self) -> Mapping[str, str]:
        """Pass on."""
        return self.source.discrete_states()

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


class RememberingModel(CountedModel):
    """Knows what the model said at the points that were visited: each is visited once, however often it is asked for.

    For the duration of one task, and for one mode of a model with events.
    """

    def __init__(self, source: Model) -> None:
        super().__init__(source)
        self._most = max(64, REMEMBERED // (len(source.states) + len(source.outputs) + 1))
        self._seen: dict[_Key, Evaluation] = {}
        self._residuals: dict[_Key, FloatArray | None] = {}
        self._procedures: dict[_Key, ExactSlopes | None] = {}
        self._gradients: dict[_Key, tuple[FloatArray, FloatArray] | None] = {}

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return what is known of the point, or visit it."""
        key = (t, x.tobytes(), u.tobytes())
        found = self._seen.get(key)
        if found is None:
            found = super().evaluate(t, x, u)
            if len(self._seen) < self._most:
                self._seen[key] = found
        return found

    def evaluate_again(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Visit a point even if it is known: a model with memory says something else."""
        return super().evaluate(t, x, u)

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the procedure at the point; what it says of the point itself is known then, too."""
        key = (t, x.tobytes(), u.tobytes())
        if key not in self._procedures:
            found = self._procedures[key] = super().exact_slopes(t, x, u)
            if found is not None:
                self._seen[key] = found.values
        return self._procedures[key]

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals from what is known of the point, or visit it; batches are not remembered."""
        if x.ndim > 1:
            return super().constraint_residuals(t, x, u)
        key = (t, x.tobytes(), u.tobytes())
        if key in self._seen:
            return self._seen[key].residuals
        if key not in self._residuals:
            self._residuals[key] = super().constraint_residuals(t, x, u)
        return self._residuals[key]

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return what is known of the point, or visit it; the residuals are known then, too."""
        key = (t, x.tobytes(), u.tobytes())
        if key not in self._gradients:
            procedure = self._procedures.get(key)
            if procedure is not None and procedure.constraint_gradient is not None:
                return procedure.values.residuals, procedure.constraint_gradient
            found = self._gradients[key] = super().constraint_gradient(t, x, u)
            if found is not None:
                self._residuals[key] = found[0]
        return self._gradients[key]
