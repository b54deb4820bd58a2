"""The models of engines: inputs and outputs to choose, constraints, copies, parameters, start values.

The module is longer than others because one class has ten capabilities, each of a few lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.library_errors import explain_library_errors
from fmilin.constraints.declared import Constraint, Constraints
from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError
from fmilin.manifold.point_by_point import EvaluationWithDerivatives, compute_tangents
from fmilin.model.capabilities import (
    HasBatchDerivatives,
    HasCompiledDerivatives,
    HasCompiledEvaluation,
    HasConstraintGradient,
    HasConstraintResiduals,
    HasContacts,
    HasDirectionalDerivatives,
    HasExactJacobian,
    HasGraph,
    HasInputLimits,
    HasRemarksAtPoints,
    HasSecondOrderForm,
)
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import (
    UNCHANGED,
    Changes,
    Copy,
    Evaluation,
    ExactSlopes,
    Model,
    OperatingPoint,
    TangentBatch,
)
from fmilin.models.compiled_evaluations import CompiledEvaluations
from fmilin.models.contacts import contact_remarks, parse_feet
from fmilin.models.native_engine import (
    AdjustableEngine,
    Engine,
    InputSelection,
    InterfaceChoice,
    NativeEngine,
    PointDerivatives,
    Quantity,
)
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.models.compiled_graph import GraphCompilation
    from fmilin.models.discrete import DiscreteModels


class NativeModel(
    Model,
    HasBatchDerivatives,
    HasCompiledDerivatives,
    HasCompiledEvaluation,
    HasConstraintGradient,
    HasConstraintResiduals,
    HasContacts,
    HasDirectionalDerivatives,
    HasExactJacobian,
    HasGraph,
    HasInputLimits,
    HasRemarksAtPoints,
    HasSecondOrderForm,
):
    """The model of a :class:`NativeEngine`."""

    engine: NativeEngine[Any]
    _visits: CompiledEvaluations | None = (
        None  # of a view for much work, :meth:`compiled_for`; else the engine evaluates
    )

    def __init__(self, engine: NativeEngine[Any]) -> None:
        self._set_up(engine, InterfaceChoice())

    def _set_up(self, engine: NativeEngine[Any], choice: InterfaceChoice) -> None:
        self.engine, self._choice = engine, choice
        self.info, self.batches = engine.info, engine.batches
        self.start_points = engine.start_points
        self.parameters = engine.parameters if isinstance(engine, AdjustableEngine) else {}
        # The author's recommendation belongs to the constraints that came with the equations.
        self.independent = tuple(engine.independent) if choice.constraints is None else ()
        self.independent_by_default |= engine.independent_by_default
        self._input_selection = InputSelection(engine.inputs, choice.inputs)
        self._input_indices, self._full = self._input_selection.indices, self._input_selection.complete
        self.inputs = engine.inputs.select(self._input_indices)
        names = engine.outputs if choice.outputs is None else choice.outputs
        self._chosen = [self._quantity(name) for name in names]
        self.outputs = Signals(quantity.signal for quantity in self._chosen)
        self._last = (float("nan"), b"", b""), np.empty(0)  # a point (t, x, u), and what constraints observe there
        self._at_points: dict[int, NativeModel] = {}  # of :meth:`seen_at`, by the engine, which it keeps alive
        with explain_library_errors(f"the equations of '{engine.info.name}'"):
            self._require_right()

    def _require_right(self) -> None:
        """Bind the constraints and make the functions, so that what is wrong is said now."""
        _ = self._selection

    @classmethod
    def _of(cls, engine: NativeEngine[Any], choice: InterfaceChoice) -> Self:
        model = cls.__new__(cls)
        model._set_up(engine, choice)
        return model

    def _replace_choice(self, engine: NativeEngine[Any] | None = None, **choice: Any) -> Self:
        return self._of(engine or self.engine, replace(self._choice, **choice))

    def adopt_choice(self, other: NativeModel) -> Self:
        """Return the same model with the inputs, outputs and changed parameters of another one of its equations."""
        return self._of(self.engine, replace(other._choice, constraints=self._choice.constraints))

    @cached_property
    def _has_own_constraints(self) -> bool:
        """Whether the constraints are those that came with the equations, even if declared again."""
        chosen = self._choice.constraints
        return chosen is None or chosen == tuple(self.engine.constraints)

    @cached_property
    def output_turns(self) -> tuple[float | None, ...]:
        """Turns of the outputs that the graph shows to wrap, or that the engine names."""
        turns = tuple(quantity.signal.turn for quantity in self._chosen)
        if not (self.engine.compilable and self.engine.may_wrap) or len(self.copies) == len(turns):
            return turns
        from fmilin.codegen.turns import find_turns

        system = self.in_graph()
        if system is None:
            return turns
        return tuple(turn or known_turn for turn, known_turn in zip(find_turns(system), turns, strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the engine."""
        return tuple(self.engine.notes)

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        """Whether time stands nowhere in the equations."""
        return self.engine.autonomous

    @property
    def freedoms_known(self) -> bool:  # type: ignore[override]
        """Whether the degrees of freedom are known, according to the engine."""
        return self.engine.freedoms_known

    # Made when needed: the names of thousands of states take time.

    @cached_property
    def states(self) -> Signals:  # type: ignore[override]
        """The engine's states."""
        return self.engine.states

    @cached_property
    def start(self) -> OperatingPoint:  # type: ignore[override]
        """Where the model starts, with the parameters that were changed."""
        values, names = (self.states.starts, self.inputs.starts), (self.states.names, self.inputs.names)
        return OperatingPoint(0.0, *values, dict(self._choice.parameters), names=names)

    @cached_property
    def copies(self) -> Mapping[int, Copy]:  # type: ignore[override]
        """Outputs that are a state or an input."""
        copies: dict[int, Copy] = {}
        for i, quantity in enumerate(self._chosen):
            match quantity.source:
                case ("state", index):
                    copies[i] = Copy("state", index)
                case ("input", index) if index in self._input_indices:
                    copies[i] = Copy("input", self._input_indices.index(index))
        return copies

    @cached_property
    def constraints(self) -> Constraints:  # type: ignore[override]
        """The engine's own, or those that were chosen instead; inputs left out count as parameters."""
        engine, chosen = self.engine, self._choice.constraints
        fixed_inputs = {s.name: s.start for i, s in enumerate(engine.inputs) if i not in self._input_indices}
        return Constraints(
            engine.constraints if chosen is None else chosen,
            self.states,
            self.inputs,
            parameters={**engine.parameters, **fixed_inputs},
            other=lambda name: None if engine.quantity(name) is None else name,
            offered=engine.available,
        )

    @cached_property
    def _selection(self) -> Any:
        """The chosen quantities and those that constraints observe, as the engine prepares them."""
        return self.engine.select(self._chosen, self._observed)

    @property
    def _observed(self) -> list[Quantity]:
        return [self._quantity(name) for name in self._list_observed_names()]

    def _list_observed_names(self) -> Sequence[str]:
        return self.constraints.observed

    @cached_property
    def _bends(self) -> bool:
        """Whether the derivatives of the constraints depend on what they observe."""
        constraints = self.constraints
        rows = zip(constraints.rows, constraints.analytic, strict=True)
        return any(not analytic and not row.expression.is_variable for row, analytic in rows)

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point, in one evaluation to the engine."""
        full = self._full(u)
        compiled = None if self._visits is None else self._visits.at(t, x, full)
        rates, outputs, z = compiled or self.engine.evaluate(self._selection, t, x, full)
        if z.size and self._bends:
            self._last = (t, x.tobytes(), u.tobytes()), z
        return Evaluation(rates, outputs, self._residuals(t, x, u, z))

    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the same at many points, together: by compiled code if there is some by now, or by the engine."""
        compiled = self._evaluate_compiled(t, x, u)
        if compiled is not None:
            return compiled
        if not self.engine.batches or not len(x):
            return super().evaluate_points(t, x, u)
        rates, outputs, z = self.engine.evaluate_points(self._selection, t, x, self._full(u))
        return Evaluation(rates, outputs, self._residuals(t, x, u, z))

    def _evaluate_compiled(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
        """Return the values at many points by compiled code of the graph; None without, or if not good at a point."""
        if not (self.engine.compilable and self.has_compiled_derivatives()):
            return None
        from fmilin.models.batch_graph import values_of_graph

        return values_of_graph(self, t, x, u)

    def compile_for_evaluations(self, evaluations: int) -> Self:
        """Return the model that evaluates single points by compiled code as soon as that pays."""
        visits = self.engine.compile_evaluations(self._chosen, self._observed)
        if visits is None:
            return self
        visits.expect(evaluations)
        view = copy(self)
        view._visits = visits
        return view

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives along the columns of (dx, du), residuals included; None without any."""
        full, du_full = self._full(u), self._input_selection.complete_directions(du)
        slopes = self.engine.differentiate(self._selection, t, x, full, dx, du_full)
        if slopes is None:
            return None
        rates, outputs, dz = slopes
        return Evaluation(rates, outputs, self._differentiate_residuals((t, x, u), dx, du, dz))

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals alone, where rates need not be computed for them; else None."""
        z: FloatArray | None
        if not self._list_observed_names():
            z = np.empty((*x.shape[:-1], 0))
        elif self._visits is not None and x.ndim == 1 and (visit := self._visits.at(t, x, self._full(u))) is not None:
            z = visit[2]  # all of it takes less than the constraints alone uncompiled
        elif (z := self.engine.observe(self._selection, t, x, self._full(u))) is None:
            return None
        return self._residuals(t, x, u, z)

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return residuals and their gradient from quantities that need no dynamics, or None."""
        compiled = None
        if self._visits is not None and x.ndim == 1 and self._list_observed_names():
            compiled = self._visits.gradient(x)
        observed = compiled or self.engine.differentiate_observed(self._selection, t, x, self._full(u))
        if observed is None:
            return None
        z, dz = observed
        return self._residuals(t, x, u, z), self.constraints.gradient((t, x, u, z), dz)

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the engine's derivatives with dependent states eliminated; None where it does not have all of them."""
        if self.engine.compilable and self.engine.evaluation_seconds:
            self._compilation.count_linearization()
        if not (self.engine.has_all_derivatives and self._has_own_constraints):
            return None
        n, k = len(x), len(u)
        slopes = self.products(t, x, u, np.eye(n, n + k), np.eye(n + k)[n:])
        if slopes is None or not all(np.isfinite(a).all() for a in (slopes.derivatives, slopes.residuals)):
            return None
        return PointDerivatives(self.evaluate(t, x, u), slopes, smooth=self.engine.smooth)

    @cached_property
    def _compilation(self) -> GraphCompilation:
        """The compiler of the equations' graph, which runs when that pays."""
        from fmilin.models.compiled_graph import GraphCompilation

        return GraphCompilation(self, self.engine.evaluation_seconds)

    def tangents(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes = UNCHANGED
    ) -> TangentBatch | None:
        """Return values and derivatives at many points from the graph of the equations, or together from the engine."""
        from fmilin.models.batch_graph import tangents_of_graph

        tangents = tangents_of_graph(self, t, x, u, independent, parameters)
        return self._tangents_of_engine(t, x, u, independent) if tangents is None and not parameters else tangents

    def _tangents_of_engine(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int]
    ) -> TangentBatch | None:
        if not self.engine.batches or self.constraints.hidden or self.constraints.prescribing:
            return None
        full = self._full(u)
        answer = self.engine.differentiate_points(self._selection, t, x, full)
        if answer is None:
            return None
        (rates, outputs, z), slopes = answer
        n = x.shape[1]
        chosen = self._input_selection.complete_directions(np.eye(u.shape[1]))
        rate_slopes, output_slopes, dz = (np.concatenate((s[..., :n], s[..., n:] @ chosen), axis=2) for s in slopes)
        directions = np.eye(n + u.shape[1])
        residual_slopes = [
            self.constraints.along((*point, z_k), np.concatenate((directions, dz_k)))
            for *point, z_k, dz_k in zip(t.tolist(), x, u, z, dz, strict=True)
        ]
        values = Evaluation(rates, outputs, self._residuals(t, x, u, z))
        derivatives = Evaluation(rate_slopes, output_slopes, np.array(residual_slopes))
        return compute_tangents(EvaluationWithDerivatives(values, derivatives), self.states, x, independent)

    def reach_manifold(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], sizes: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]] | None:
        """Return points of the manifold by compiled code of the constraints; None without."""
        from fmilin.models.batch_graph import reach_by_graph

        return reach_by_graph(self, t, x, u, independent, sizes)

    def differentiate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
        """Return derivatives along all states and inputs by compiled code of the graph; None without."""
        from fmilin.models.batch_graph import derivatives_of_graph

        return derivatives_of_graph(self, t, x, u)

    def has_compiled_derivatives(self) -> bool:
        """Return whether compiled code answers :meth:`tangents` by now."""
        from fmilin.models.batch_graph import is_compiled

        return is_compiled(self)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations of motion taken apart, also where they are singular; None when they are not known."""
        form = self.engine.second_order_form(self._selection, t, x, self._full(u))
        return None if form is None else form.with_inputs(self._input_indices)

    def has_graph(self) -> bool:
        """Return whether the engine has a graph."""
        return self.engine.compilable

    def in_graph(self) -> ImplicitSystem | None:
        """Return the equations as a graph; inputs left out are parameters. None when there are only numbers."""
        system = self.engine.in_graph(self._chosen, self._observed)
        return None if system is None else system.with_inputs(self._input_indices)

    @implemented_in("fmilin.models.discrete:discrete_along")
    def discrete_along(
        self,
        points: Sequence[OperatingPoint],
        dt: float,
        *,
        independent: Sequence[str] | None = None,
        integrator: str = "rk4",
        steps: int = 1,
        threads: int = 1,
    ) -> DiscreteModels:
        """Return A_k, B_k, c_k of y_(k+1) = A_k y_k + B_k u_k + c_k, as :func:`fmilin.models.discrete.discrete_along`.

        >>> from fmilin.systems import cartesian_pendulum
        >>> pendulum = cartesian_pendulum(length=1.0, gravity=4.0)
        >>> sampled = pendulum.discrete_along([pendulum.start] * 5, 0.01)
        >>> sampled.states, sampled.A.shape
        (('x', 'vx'), (5, 2, 2))
        """
        ...

    @kinds_checked
    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the model with chosen inputs and outputs; inputs left out stay at their start values."""
        chosen: dict[str, Any] = {}
        if inputs is not None:
            what = f"an input of '{self.info.name}'"
            chosen["inputs"] = tuple(self.engine.inputs.index_of(name, what) for name in inputs)
        if outputs is not None:
            chosen["outputs"] = tuple(outputs)
        return self._replace_choice(**chosen)

    @kinds_checked
    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same model with these constraints declared instead of its own."""
        return self._replace_choice(constraints=tuple(constraints))

    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return how held feet stand at a point."""
        if not self.engine.contacts:
            return ()
        return contact_remarks(self.engine.contacts, self.contact_forces(point.time, point.states, point.inputs))

    def may_have_point_remarks(self) -> bool:
        """Return whether feet are held."""
        return bool(self.engine.contacts)

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> Mapping[str, FloatArray]:
        """Return force and torque on each held foot."""
        return self.engine.contact_forces(t, x, self._full(u)) if self.engine.contacts else {}

    @kinds_checked
    def with_held(self, feet: Sequence[str], point: OperatingPoint | None = None) -> Self:
        """Return the same model with feet held on the ground; see :meth:`HasContacts.with_held`."""
        fixed_feet = parse_feet(feet)
        if not fixed_feet:
            return self
        point = self.start if point is None else point
        engine = self.engine.held(fixed_feet, point.time, point.states, self._full(point.inputs))
        if self._choice.constraints is None:
            return self._replace_choice(engine)
        before = {c.name for c in self.engine.constraints}
        more = [c for c in engine.constraints if c.name not in before]
        return self._replace_choice(engine, constraints=(*self._choice.constraints, *more))

    @kinds_checked
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same model with other parameter values. States and inputs keep their start values."""
        engine = self.engine
        if not isinstance(engine, AdjustableEngine):
            super().with_parameters(values)  # rejects changes of what does not exist
            return self
        if not values:
            return self
        engine.require_parameters(values)
        new = {name: float(value) for name, value in values.items()}
        return self._replace_choice(engine.with_parameters(new), parameters={**self._choice.parameters, **new})

    def resolve_limits(self, point: OperatingPoint) -> NativeModel:
        """Return the model of the engine as it is seen at a point; the same object for the same engine."""
        engine = self.engine.resolve_limits(point.time, point.states, self._full(point.inputs))
        if engine is self.engine:
            return self
        if id(engine) not in self._at_points:
            self._at_points[id(engine)] = self._replace_choice(engine)
        return self._at_points[id(engine)]

    def is_at_input_limits(self) -> bool:
        """Return whether the engine is one of a point with inputs at limits."""
        return self.engine.names_limits

    def close(self) -> None:
        """Give back what the engine holds."""
        self.engine.close()

    def _quantity(self, name: str) -> Quantity:
        quantity = self.engine.quantity(name)
        if quantity is None:
            names = self.engine.available
            raise UnknownNameError.among(name, names, f"an output or another quantity of '{self.info.name}'")
        return quantity

    def _residuals(self, t: float | FloatArray, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        return self.constraints.residuals(t, x, u, z)

    def _differentiate_residuals(
        self, point: tuple[float, FloatArray, FloatArray], dx: FloatArray, du: FloatArray, dz: FloatArray
    ) -> FloatArray:
        """Return the derivatives of the residuals along the columns of dx, du, and dz (nz, k)."""
        return self.constraints.along((*point, self._observe(*point)), np.concatenate((dx, du, dz)))

    def _observe(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return what constraints observe where their derivatives depend on it; mostly from the last evaluation."""
        if not self._bends:
            return np.zeros(len(self.constraints.observed))
        if self._last[0] != (t, x.tobytes(), u.tobytes()):
            self.evaluate(t, x, u)
        return self._last[1]


class EngineModel(NativeModel):
    """The model of an :class:`Engine`."""

    engine: Engine

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The engine, which all views share."""
        return (self.engine,)
