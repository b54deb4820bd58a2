"""An FMU as a :class:`~fmilin.Model`.

The file is longer than others because one class has all capabilities of an FMU, each of a few lines that aim the same
buffers at a point and read them back: apart from each other they would share every attribute.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.diagnostics import Remark
from fmilin.errors import ModelError, UnknownNameError, UsageError
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.buffers import Buffers
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.fmu_tables import find_tables
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.sensitivities import Sensitivities, declared_structure
from fmilin.fmi.read.session import Session
from fmilin.fmi.read.settings import Value, is_parameter, require_tunable
from fmilin.fmi.read.start_report import report_start_values
from fmilin.fmi.read.values import ConstraintResiduals, DiscreteValues, ParameterValues, changed_parameters
from fmilin.manifold import point_by_point
from fmilin.manifold.point_by_point import EvaluationWithDerivatives
from fmilin.model.capabilities import (
    HasBatchDerivatives,
    HasConstraintGradient,
    HasConstraintResiduals,
    HasDirectionalDerivatives,
    HasDiscreteStates,
    HasEvents,
    HasParameterSignals,
    HasRemarksAtPoints,
    HasSparseDerivatives,
    ReportsStart,
    StartValue,
)
from fmilin.model.interface import UNCHANGED, Changes, Copy, Evaluation, Model, ModelInfo, OperatingPoint, TangentBatch
from fmilin.model.point_derivatives import HasPointDerivatives, ValuesWithJacobian
from fmilin.model.ranges import find_extrapolated
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.model.stepping import Hybrid, Passage
from fmilin.options import FmuOptions
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.deprecation import DeprecatedAlias

if TYPE_CHECKING:
    from fmilin.fmi.read.sparse_sensitivities import SparseSensitivities

P = ParamSpec("P")
R = TypeVar("R")


def _in_turn(method: Callable[P, R]) -> Callable[P, R]:
    """Let threads that use one FMU take turns: its one instance is set, and then asked."""

    @wraps(method)
    def waiting(*arguments: P.args, **options: P.kwargs) -> R:
        with arguments[0]._session.lock:  # type: ignore[attr-defined]
            return method(*arguments, **options)

    return waiting


class _Interface(NamedTuple):
    """The chosen inputs and outputs, by the names that the user gave them."""

    inputs: tuple[tuple[str, ScalarVariable], ...]
    outputs: tuple[tuple[str, ScalarVariable], ...]


PARAMETER_VARIABILITIES = ("fixed", "tunable")


class FmuModel(
    Model,
    Hybrid,
    HasBatchDerivatives,
    HasConstraintGradient,
    HasConstraintResiduals,
    HasDirectionalDerivatives,
    HasDiscreteStates,
    HasEvents,
    HasParameterSignals,
    HasPointDerivatives,
    HasRemarksAtPoints,
    HasSparseDerivatives,
    ReportsStart,
):
    """A view of a running FMU: its states, chosen inputs and outputs, and constraints.

    All views share one instance of the FMU: closing the model that was loaded closes them all, closing (or forgetting)
    another one does when it is the last. Threads take turns. ``notes`` may grow while the model is used.
    """

    moves_parameters = batches = views_are_stable = True
    session_class: ClassVar[type[Session]] = Session

    def describe_parameters(self) -> Mapping[str, Signal]:
        """Return parameters with their units, by name, as the description of the FMU declares them."""
        variables = self._session.layout.description.variables
        return {v.name: Signal(v.name, v.unit) for v in variables if v.variability in PARAMETER_VARIABILITIES}

    def report_start(self) -> tuple[StartValue, ...]:
        """Return the declared start value of each state, or the one that was set, and what became of it."""
        session = self._session
        return tuple(report_start_values(session.layout, session.settings, session.start_states))

    @classmethod
    def opened(
        cls,
        source: FmuFile | Path | str,
        *,
        parameters: Mapping[str, Value] | None = None,
        settings: Mapping[str, float] | None = None,
        time: float | None = None,
        constraints: Sequence[Constraint] = (),
        independent: tuple[str, ...] = (),
        notes: Sequence[str] = (),
    ) -> Self:
        """Load and initialize an FMU; return its first view. States and inputs of ``settings`` are left to points."""
        fmu = source if isinstance(source, FmuFile) else FmuFile(Path(source))
        session = cls.session_class(fmu, parameters or {}, time, settings or {})
        session.notes += notes
        how = {"parameters": parameters, "settings": settings, "time": time, "notes": tuple(notes)}
        session.reopening = partial(_open_again, cls, (fmu.absolute, fmu.options), how)
        try:
            expressions = [e for c in constraints for e in (c.expression, c.rate) if e is not None]
            hidden, layout = {e.names[0] for e in expressions if e.is_variable}, session.layout
            inputs = tuple((s.name, s) for s in layout.inputs)
            every_output = [*layout.outputs, *layout.negative_outputs]
            outputs = tuple((s.name, s) for s in every_output if s.name not in hidden)
            return cls(session, _Interface(inputs, outputs), constraints, independent)
        except BaseException:
            session.close()
            raise

    def __init__(
        self, session: Session, interface: _Interface, constraints: Sequence[Constraint], independent: tuple[str, ...]
    ) -> None:
        self._session = session
        self._interface = interface
        self._closed = False
        self._release = weakref.finalize(self, session.release, session.lease())
        layout, count = session.layout, len(session.layout.inputs)
        self._tuned = tuple(s for _, s in interface.inputs if is_parameter(layout, s))
        positions = {s.key: count + i for i, s in enumerate(self._tuned)}
        chosen = [positions[s.key] if s.key in positions else _index(layout, s) for _, s in interface.inputs]
        self._input_positions: NDArray[np.intp] = np.array(chosen, dtype=np.intp)
        self._base_inputs = np.concatenate((session.start_inputs, [session.number(s) for s in self._tuned]))
        about = layout.description
        self.info = ModelInfo(about.model_name, about.token, about.tool, about.fmi_version)
        self.states = session.states
        self.inputs = Signals(
            layout.signal(s, name=name, start=float(self._base_inputs[i]))
            for (name, s), i in zip(interface.inputs, chosen, strict=True)
        )
        turns = [session.turns.get(s.name) for _, s in interface.outputs]
        self.outputs = Signals(layout.signal(s, name=name) for name, s in interface.outputs).with_turns(turns)
        self.independent = independent
        self.constraints = Constraints(
            constraints,
            self.states,
            self.inputs,
            parameters=ParameterValues(session),
            other=self._canonical,
            offered=layout.description.by_name,
        )
        outputs = [s for _, s in interface.outputs]
        observed = [layout.require(name, "a variable of the model") for name in self.constraints.observed]
        self._further = _without_role(layout, outputs), _without_role(layout, observed)
        self._buffers = self._make_buffers(most=session.most_points)
        first, end = 1 + self._buffers.n, 1 + self._buffers.n + self._buffers.k
        self._all_inputs = chosen == list(range(self._buffers.k))
        self._input_rows = slice(first, end) if self._all_inputs else first + self._input_positions  # of the buffers
        self._output_positions = self._positions(outputs)
        self._output_signs = np.array([s.sign for s in outputs])
        self._observed_positions = self._positions(observed)
        self._buffers.values[self._observed_positions] = np.nan  # not read yet
        self._residuals = ConstraintResiduals(
            self.constraints, self._buffers, self._input_positions, self._observed_positions
        )
        rates = any((role := layout.role(s)) is not None and role.kind == "derivative" for s in observed)
        self._reads_alone: bool | None = False if rates else None if observed else True
        """Whether what constraints contain can be read without the derivatives; None: not known yet."""
        self._sensitivities: Sensitivities | None = None
        self._sparse_sensitivities: SparseSensitivities | None = None
        self._seeks_sparse = True  # until it turns out that this FMU has no sparse derivatives
        self._discrete: DiscreteValues | None = None
        self.copies = self._find_copies()
        self._tables = find_tables(layout)
        start = session.start_states.copy(), self._base_inputs[self._input_positions], changed_parameters(session)
        self.start = OperatingPoint(session.start_time, *start, names=(self.states.names, self.inputs.names))

    @cached_property
    def structure(self) -> NDArray[np.bool_] | None:  # type: ignore[override]
        """The dependencies of derivatives that the FMU declares; None with tuned parameters, which it never covers."""
        outputs = [s for _, s in self._interface.outputs]
        return None if self._tuned else declared_structure(self._session.layout, outputs, self._input_positions)

    def _make_buffers(self, *, most: int) -> Buffers:
        """Return memory for the numbers of up to ``most`` points."""
        return Buffers(self._session.layout, self._session.arena, *self._further, self._tuned, most=most)

    @property
    def description(self) -> ModelDescription:
        """The model description of the FMU."""
        return self._session.layout.description

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on defects and omissions of the FMU, one sentence each."""
        return (*self._session.notes, *self._session.notes_of_now)

    @_in_turn
    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return which inputs of tables are outside of their data at a point, where the FMU declares these."""
        if not self._tables:
            return ()
        self.evaluate(point.time, point.states, point.inputs)
        readings = [table.read(self._session.number) for table in self._tables]
        return find_extrapolated(reading for reading in readings if reading is not None)

    def may_have_point_remarks(self) -> bool:
        """Return whether the FMU has tables."""
        return bool(self._tables)

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The FMU's instance, which all views share."""
        return (self._session,)

    @_in_turn
    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """See :meth:`fmilin.Model.evaluate`; outputs and constraints that are states are what the model made of x."""
        buffers = self._aim(t, x, u)
        self._session.visit(buffers)
        return Evaluation(buffers.rates.copy(), self._outputs(buffers.values), self._residuals.values())

    @_in_turn
    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        """See :meth:`fmilin.Model.evaluate_points`; many points are one message to the FMU's process."""
        most = len(self._buffers.rows)
        if not len(t) or most < 2 or self._tuned:
            return super().evaluate_points(t, x, u)
        if len(t) <= most:
            return self._evaluate_rows(t, x, u)
        parts = [slice(begin, begin + most) for begin in range(0, len(t), most)]
        answers = [self._evaluate_rows(t[part], x[part], u[part]) for part in parts]
        return Evaluation.concatenate(answers)

    def _aim_rows(self, t: FloatArray, x: FloatArray, u: FloatArray) -> FloatArray:
        """Write points into the first rows of the buffers and return these."""
        buffers = self._aim(float(t[0]), x[0], u[0])
        rows, n = buffers.rows[: len(t)], buffers.n
        rows[:, 0], rows[:, 1 : 1 + n] = t, x
        rows[:, 1 + n : 1 + n + buffers.k] = self._base_inputs
        rows[:, self._input_rows] = u
        return rows

    def _evaluate_rows(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        rows = self._aim_rows(t, x, u)
        self._session.visit_points(self._buffers, len(t))
        answers = rows.copy()
        rows[0] = rows[-1]  # where the FMU stands
        return self._read_answers(answers)

    def _read_answers(self, answers: FloatArray) -> Evaluation:
        """Return rates, outputs and residuals at many points, given in the layout of the buffers."""
        n, k = self._buffers.n, self._buffers.k
        rates = answers[:, 1 + n + k : 1 + 2 * n + k]
        outputs = answers.take(self._output_positions, axis=1) * self._output_signs
        return Evaluation(rates, outputs, self._residuals.of_points(answers))

    def _outputs(self, values: FloatArray) -> FloatArray:
        """Return the outputs of numbers, or changes (size, k), that stand as in the buffers."""
        signs = self._output_signs if values.ndim == 1 else self._output_signs[:, None]
        return np.asarray(values.take(self._output_positions, axis=0) * signs)

    @_in_turn
    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals, without asking for derivatives or outputs; see :meth:`fmilin.Model`."""
        if self._reads_alone is False:
            return None
        if x.ndim > 1:
            return self._read_residuals_of_points(t, x, u)
        buffers = self._aim(t, x, u)
        before = buffers.values[self._observed_positions]
        self._session.visit(buffers, "observed")
        # Some code computes its variables only with the derivatives, against the standard: this is found out once.
        if self._reads_alone is None:
            self._compare_readings(before)
        return self._residuals.values()

    def _read_residuals_of_points(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals at many points; those of the first show whether they can be read alone."""
        most = len(self._buffers.rows)
        if self._reads_alone is None or self._tuned or min(len(x), most) < 2:
            residuals = [self.constraint_residuals(t, *point) for point in zip(x, u, strict=True)]
            return None if any(h is None for h in residuals) else np.array(residuals)
        parts = [slice(begin, begin + most) for begin in range(0, len(x), most)]
        times = np.full(len(x), t)
        return np.concatenate([self._observe_rows(times[part], x[part], u[part]) for part in parts])

    def _observe_rows(self, t: FloatArray, x: FloatArray, u: FloatArray) -> FloatArray:
        rows = self._aim_rows(t, x, u)
        self._session.visit_points(self._buffers, len(t), "observed")
        residuals = self._residuals.of_points(rows)
        rows[0] = rows[-1]  # where the FMU stands
        return residuals

    @_in_turn
    @np.errstate(invalid="ignore", over="ignore")
    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return the FMU's own directional derivatives: None without any, NaN along parameters that are inputs."""
        if self._closed or not self._session.directional:
            return None
        buffers = self._aim(t, x, u)
        if self._sensitivities is None:
            self._sensitivities = Sensitivities(self._session, buffers)
        n, first = buffers.n, 1 + buffers.n + buffers.k
        changes = np.zeros((buffers.values.size, dx.shape[1]))
        changes[1 : 1 + n] = dx
        changes[self._input_rows] = du
        if self._tuned:
            unknown = changes[first - len(self._tuned) : first].any(axis=0)
            changes[:, unknown] = 0.0
        if (values := self._sensitivities.along(changes)) is None:
            return None
        residuals = self._residuals.along(values, changes)
        slopes = changes[first : first + n], self._outputs(changes), residuals
        return Evaluation(*(np.where(unknown, np.nan, s) for s in slopes)) if self._tuned else Evaluation(*slopes)

    @_in_turn
    @np.errstate(invalid="ignore", over="ignore")
    def sparse_derivatives(self, t: float, x: FloatArray, u: FloatArray) -> SparseJacobian | None:
        """Return the FMU's own derivatives in sparse matrices, where it declares which there are."""
        if self._closed or self._tuned or not self._seeks_sparse or not self._session.directional:
            return None
        buffers = self._aim(t, x, u)
        if self._sparse_sensitivities is None:
            from fmilin.fmi.read.sparse_sensitivities import find_sparse_sensitivities

            signs = self._output_signs
            self._sparse_sensitivities = find_sparse_sensitivities(
                self._session, buffers, self._output_positions, signs, self._input_positions
            )
        derivatives = None if self._sparse_sensitivities is None else self._sparse_sensitivities.read()
        self._seeks_sparse = derivatives is not None
        return derivatives

    @_in_turn
    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the residuals and their gradient at many points; None at one alone: it has products."""
        if x.ndim == 1 or self.constraints.hidden or not self._session.directional:
            return None
        answer = self._differentiate_points(np.full(len(x), t), x, u)
        if answer is None or not np.isfinite(answer.derivatives.residuals).all():
            return None
        return answer.values.residuals, answer.derivatives.residuals[..., : x.shape[1]]

    @_in_turn
    def tangents(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes = UNCHANGED
    ) -> TangentBatch | None:
        """Return derivatives along the independent states at many points; see ``HasBatchDerivatives``."""
        if parameters or self.constraints.hidden or self.constraints.prescribing or not self._session.directional:
            return None
        answer = self._differentiate_points(t, x, u)
        return None if answer is None else point_by_point.compute_tangents(answer, self.states, x, independent)

    def _differentiate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> EvaluationWithDerivatives | None:
        """Return what the FMU says at points, with derivatives along all states and inputs; None where it has none."""
        if len(t) == 1 and not (self._tuned or self._closed):
            return self._differentiate_one(float(t[0]), x[0], u[0])
        return self._differentiate_together(t, x, u) or point_by_point.differentiate_each(self, t, x, u)

    @np.errstate(invalid="ignore", over="ignore")
    def _differentiate_one(self, t: float, x: FloatArray, u: FloatArray) -> EvaluationWithDerivatives | None:
        """Return the same at one point: the FMU is evaluated there before it is asked for products."""
        buffers = self._aim(t, x, u)
        if self._sensitivities is None:
            self._sensitivities = Sensitivities(self._session, buffers)
        changes = np.zeros((1, buffers.values.size, len(x) + len(u)))
        changes[0, : len(self._unit_directions)] = self._unit_directions
        values = self._sensitivities.along(changes[0])
        if values is None:
            return None
        answers = values[None].copy()
        return EvaluationWithDerivatives(self._read_answers(answers), self._read_changes(answers, changes))

    @_in_turn
    @np.errstate(invalid="ignore", over="ignore")
    def differentiate_point(self, t: float, x: FloatArray, u: FloatArray) -> ValuesWithJacobian | None:
        """Return rates and outputs with the FMU's own derivatives along all states and inputs, from one message."""
        if self._closed or self._tuned or not self._all_inputs or not self._session.directional:
            return None
        buffers = self._aim(t, x, u)
        if self._sensitivities is None or len(self.constraints):
            return None
        J = self._sensitivities.read_all(self._output_positions, self._output_signs)
        if J is None:
            return None
        values = self._sensitivities.values
        first = 1 + buffers.n + buffers.k
        return ValuesWithJacobian(values[first : first + buffers.n].copy(), self._outputs(values), J)

    @np.errstate(invalid="ignore", over="ignore")
    def _differentiate_together(self, t: FloatArray, x: FloatArray, u: FloatArray) -> EvaluationWithDerivatives | None:
        """Return the same in one message for many points; None where it must be asked for singly."""
        if self._closed or self._tuned or len(t) < 2:
            return None
        n, k = len(self.states), len(self.inputs)
        if self._sensitivities is None or not self._sensitivities.most_points:
            self.products(float(t[0]), x[0], u[0], np.eye(n, n + k), np.eye(k, n + k, n))
        most = 0 if self._sensitivities is None else self._sensitivities.most_points
        if most < 2:
            return None
        parts: list[EvaluationWithDerivatives] = []
        for begin in range(0, len(t), most):
            part = slice(begin, begin + most)
            answer = self._differentiate_rows(self._aim_rows(t[part], x[part], u[part]))
            if answer is None:
                return None
            parts.append(answer)
        values, derivatives = zip(*parts, strict=True)
        return EvaluationWithDerivatives(Evaluation.concatenate(values), Evaluation.concatenate(derivatives))

    def _differentiate_rows(self, rows: FloatArray) -> EvaluationWithDerivatives | None:
        """Return what the FMU says at the points of the buffers' first rows, with derivatives."""
        n, k = len(self.states), len(self.inputs)
        J = None if self._sensitivities is None else self._sensitivities.differentiate_points(len(rows))
        if J is None:
            return None
        answers = rows.copy()
        rows[0] = rows[-1]  # where the FMU stands
        directions = self._unit_directions
        changes = np.empty((len(rows), rows.shape[1], n + k))
        changes[:, : len(directions)] = directions
        np.matmul(J, directions[1:], out=changes[:, len(directions) :])
        return EvaluationWithDerivatives(self._read_answers(answers), self._read_changes(answers, changes))

    @cached_property
    def _unit_directions(self) -> FloatArray:
        """Those along all states and inputs, as changes (1 + n + k, N + nu) of the first numbers of the buffers."""
        n, k = len(self.states), len(self.inputs)
        directions = np.zeros((1 + self._buffers.n + self._buffers.k, n + k))
        directions[1 : 1 + n] = np.eye(n, n + k)
        directions[self._input_rows] = np.eye(k, n + k, n)
        return directions

    def _read_changes(self, answers: FloatArray, changes: FloatArray) -> Evaluation:
        """Return derivatives of rates, outputs and residuals at many points from those of all numbers there."""
        first = 1 + self._buffers.n + self._buffers.k
        outputs = changes.take(self._output_positions, axis=1) * self._output_signs[:, None]
        residuals = self._residuals.along_points(answers, changes)
        return Evaluation(changes[:, first : first + len(self.states)], outputs, residuals)

    @_in_turn
    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the FMU's event indicators; empty for an FMU without any."""
        return self._session.event_indicators(self._aim(t, x, u)) if self._session.indicators else np.empty(0)

    @_in_turn
    def restart(self) -> None:
        """Return to the mode in which the FMU starts; see :meth:`fmilin.model.stepping.Hybrid.restart`."""
        self._session.restart()

    @_in_turn
    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out the FMU's event iteration at a point; see :meth:`fmilin.model.stepping.Hybrid.pass_event`."""
        buffers = self._aim(t, x, u)
        terminates = self._session.pass_event(buffers)
        return Passage(buffers.x.copy(), terminates=terminates)

    @_in_turn
    def complete_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Tell the FMU that a step was accepted; see :meth:`fmilin.model.stepping.Hybrid.complete_step`."""
        buffers = self._aim(t, x, u)
        wants_event, terminates = self._session.complete_step(buffers)
        return Passage(buffers.x.copy(), wants_event, terminates)

    def next_event_time(self) -> float | None:
        """Return when the FMU's next time event is due; see :meth:`fmilin.model.stepping.Hybrid.next_event_time`."""
        return self._session.next_event_time

    @property
    def remembers_mode(self) -> bool:
        """Whether the FMU is still in its mode; see :attr:`fmilin.model.stepping.Hybrid.remembers_mode`."""
        return self._session.remembers_mode

    def discrete_states(self) -> Mapping[str, str]:
        """Return discrete-time variables and inputs that are not numbers, as they are in the present mode."""
        if self._closed:
            return {}
        if self._discrete is None:
            self._discrete = DiscreteValues(self._session)
        return self._discrete.read()

    @_in_turn
    def read_value(self, name: str) -> float | bool | str:
        """Return the present value of a scalar variable of any type, as Python has it."""
        variables = self.description.by_name
        if name not in variables:
            raise UnknownNameError.among(name, variables, "a variable of the model")
        variable = variables[name]
        value: float | bool | str = self._session.instance.values(variable, 1)[0]
        return bool(value) if variable.type == "Boolean" else value

    value_of = DeprecatedAlias("read_value")

    @_in_turn
    def read_back(self) -> OperatingPoint:
        """Return the point that the model really holds since the last :meth:`evaluate`."""
        buffers = self._buffers
        self._session.instance.read_back(buffers)
        inputs = buffers.u[self._input_positions]
        return OperatingPoint(buffers.time, buffers.x.copy(), inputs, self.start.parameters)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return a view with chosen inputs and outputs; see :meth:`fmilin.Model.with_interface`."""
        old = self._interface
        interface = _Interface(
            old.inputs if inputs is None else tuple((name, self._input(name)) for name in inputs),
            old.outputs if outputs is None else tuple((name, self._output(name)) for name in outputs),
        )
        keys = [s.key for _, s in interface.inputs]
        if len(set(keys)) != len(keys):
            raise UsageError(f"The same input is named twice among {', '.join(name for name, _ in interface.inputs)}.")
        return type(self)(self._session, interface, self.constraints.declared, self.independent)

    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return a view with these constraints; see :meth:`fmilin.Model.with_constraints`."""
        return type(self)(self._session, self._interface, constraints, self.independent)

    def __copy__(self) -> Self:
        """Return a view of the same instance: ``copy`` would open it anew, as ``pickle`` does."""
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        return view

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[object, ...]]:
        """Write the path of the FMU and how it was opened: a copy that is read opens the FMU anew."""
        interface = tuple(tuple(name for name, _ in part) for part in self._interface)
        return self._session.reopening, (tuple(self.constraints.declared), self.independent, interface)

    @_in_turn
    def close(self) -> None:
        """Terminate and unload the FMU and remove its files, if this is the loaded model or the last view."""
        self._closed = True
        detached = self._release.detach()
        if detached is not None:
            _, release, (token,), _ = detached
            release(token, explicitly=True)

    def _aim(self, t: float, x: FloatArray, u: FloatArray) -> Buffers:
        """Write the point into the buffers and return them."""
        if self._closed:
            raise ModelError(f"'{self.description.source}' was closed; load it again.")
        buffers = self._buffers
        buffers.time = t
        buffers.x[...] = x
        if not self._all_inputs:
            buffers.u[:] = self._base_inputs
        buffers.values[self._input_rows] = u
        if self._tuned or self._session.tuning.changed:
            self._session.tune(self._tuned, buffers.u[len(buffers.u) - len(self._tuned) :])
        return buffers

    def _compare_readings(self, before: FloatArray) -> None:
        """Read what constraints contain once more, after the derivatives: only another answer than before decides."""
        buffers, positions = self._buffers, self._observed_positions
        alone = buffers.values[positions]
        self._session.visit(buffers)
        now = buffers.values[positions]
        if not np.array_equal(alone, now, equal_nan=True):
            self._reads_alone = False
        elif not np.isnan(before).any() and not np.array_equal(before, now):
            self._reads_alone = True

    def _positions(self, scalars: Iterable[ScalarVariable]) -> NDArray[np.intp]:
        return np.array([self._buffers.position(s) for s in scalars], dtype=np.intp)

    def _find_copies(self) -> dict[int, Copy]:
        copies = {}
        positions = {int(p): i for i, p in enumerate(self._input_positions)}
        for i, (_, scalar) in enumerate(self._interface.outputs):
            role = None if scalar.sign < 0.0 else self._session.layout.role(scalar)
            if role is not None and role.kind == "state":
                copies[i] = Copy("state", role.position)
            elif role is not None and role.kind == "input" and role.position in positions:
                copies[i] = Copy("input", positions[role.position])
        return copies

    def _input(self, name: str) -> ScalarVariable:
        layout = self._session.layout
        scalar = layout.find(name)
        role = layout.role(scalar) if scalar else None
        if scalar is not None and is_parameter(layout, scalar):
            require_tunable(self.description, scalar, only_tunable=self._session.only_tunable)
        elif scalar is None or role is None or role.kind != "input":
            names = [*layout.signals(layout.inputs).positions, *ParameterValues(self._session)]
            raise UnknownNameError.among(name, names, "a continuous input or a parameter of the model")
        return scalar

    def _output(self, name: str) -> ScalarVariable:
        layout = self._session.layout
        scalar = layout.find_negative(name) or layout.require(name, "a variable of the model")
        if not layout.is_signal(scalar.variable):
            v = scalar.variable
            raise UnknownNameError(
                f"'{name}' cannot be an output of a linear model: it is not a continuous variable (causality "
                f"{v.causality}, variability {v.variability}, type {v.type}).",
                name=name,
            )
        return scalar

    def _canonical(self, name: str) -> str | None:
        """Return the model's own name of a variable that a constraint may observe."""
        layout = self._session.layout
        scalar = layout.find(name)
        if scalar is None or not scalar.variable.is_float or scalar.variable.causality == "independent":
            return None
        return layout.names(scalar)[0]


open_fmu = FmuModel.opened


def _open_again(
    kind: type[FmuModel],
    file: tuple[Path, FmuOptions],
    how: Mapping[str, Any],
    constraints: Sequence[Constraint],
    independent: tuple[str, ...],
    interface: tuple[Sequence[str], Sequence[str]],
) -> FmuModel:
    """Return a view like one that was pickled, of a new instance of the FMU."""
    model = kind.opened(FmuFile(*file), constraints=constraints, independent=independent, **how)
    return model.with_interface(*interface)


def _index(layout: ScalarLayout, scalar: ScalarVariable) -> int:
    role = layout.role(scalar)
    assert role is not None  # noqa: S101 - only inputs come here
    return role.position


def _without_role(layout: ScalarLayout, scalars: Sequence[ScalarVariable]) -> list[ScalarVariable]:
    """Return those that have to be read one by one: neither states, inputs, derivatives nor time."""
    return [s for s in scalars if layout.role(s) is None and s.variable.causality != "independent"]
