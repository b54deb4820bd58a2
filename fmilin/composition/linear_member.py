"""Members of connected systems: linear models, systems of python-control, and regulators that sample and hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import UsageError
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, Named, build_matrices
from fmilin.linear_model.model import LinearizationPoint, LinearModel
from fmilin.model.capabilities import HasDerivativeErrors, HasDirectionalDerivatives, HasDiscreteStates
from fmilin.model.interface import Evaluation, Model, ModelInfo, OperatingPoint
from fmilin.model.stepping import Hybrid, Passage
from fmilin.models.native_engine import Engine, Quantity
from fmilin.models.native_model import EngineModel
from fmilin.signals import FloatArray, Signal, Signals, original_name, wrap_differences
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.support.kinds import kinds_checked
from fmilin.tolerances import ROUNDING_TOLERANCE

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem


class LinearEngine(Engine):
    """``x' = f0 + A (x - x0) + B (u - u0)``, quantities ``g0 + C (x - x0) + D (u - u0)``; x0, u0, g0 are the starts."""

    compilable = True

    def __init__(
        self,
        info: ModelInfo,
        signals: tuple[Signals, Signals, Signals],
        matrices: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        rates: FloatArray,
        outputs: Sequence[str],
    ) -> None:
        self.info = info
        self.states, self.inputs, self.quantities = signals
        self.matrices, self.rates, self.outputs = matrices, rates, tuple(outputs)
        A, B, C, D = matrices
        self.J = np.block([[A, B], [C, D]])
        self._base = np.concatenate((rates, self.quantities.starts))
        self._at = np.concatenate((self.states.starts, self.inputs.starts))
        self.errors: FloatArray | None = None
        """Of [[A, B], [C, D]], in absolute values, where they are more than rounding."""

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates and quantities."""
        values = self._base + self.J @ (np.concatenate((x, u)) - self._at)
        return values[: len(x)], values[len(x) :]

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the matrices times the directions."""
        changes = self.J @ np.concatenate((dx, du))
        return changes[: len(x)], changes[len(x) :]

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem:
        """Return the equations as a graph."""
        import casadi as ca

        from fmilin.codegen.implicit import ImplicitSystem

        n, k = len(self.states), len(self.inputs)
        x, u = ca.SX.sym("x", n), ca.SX.sym("u", k)
        values = ca.DM(self._base) + ca.mtimes(ca.sparsify(ca.DM(self.J)), ca.vertcat(x, u) - ca.DM(self._at))
        expressions = ca.vertcat(values, x, u)
        first = {"rate": 0, "quantity": n, "state": len(self._base), "input": len(self._base) + n}

        def node(quantity: Quantity) -> Any:
            kind, i = quantity.source
            return expressions[first[kind] + i]

        nothing = ca.SX(0, 1)
        return ImplicitSystem(
            name=self.info.name,
            time=ca.SX.sym("time"),
            states=x,
            inputs=u,
            parameters=nothing,
            unknowns=nothing,
            unknown_names=(),
            matrix=ca.SX(0, 0),
            right_hand_side=nothing,
            derivatives=ca.densify(values[:n]) if n else nothing,
            outputs=ca.vertcat(nothing, *map(node, outputs)),
            further={q.signal.name: node(q) for q in observed},
            state_signals=self.states,
            input_signals=self.inputs,
            output_signals=Signals(q.signal for q in outputs),
            parameter_signals=Signals(),
            parameter_values=np.empty(0),
        )


class LinearMember(EngineModel, HasDerivativeErrors):
    """The model of a :class:`LinearEngine`; the errors of the linear model are kept."""

    engine: LinearEngine

    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        """Return the errors of the matrices along the directions."""
        errors = self.engine.errors
        if errors is None:
            return None
        n, k = len(self.states), dx.shape[1]
        inputs = np.zeros((len(self.engine.inputs), k))
        inputs[self._input_indices] = du
        changes = errors @ np.abs(np.concatenate((dx, inputs)))
        rows = {"rate": 0, "quantity": n}
        outputs = np.zeros((len(self.outputs), k))
        for i, quantity in enumerate(self._chosen):
            kind, index = quantity.source
            if kind in rows:
                outputs[i] = changes[rows[kind] + index]
        return Evaluation(changes[:n], outputs, np.zeros((len(self.constraints), k)))


def from_linear(linear: LinearModel) -> EngineModel:
    """Return a continuous linear model as a model: all its states, dependent ones too, may be outputs."""
    point, state_names = linear.point, set(linear.states.names)
    further = [
        i for i, s in enumerate(linear.full_states) if s.name not in state_names and not linear.outputs.has(s.name)
    ]
    states = Signals(s.with_start(float(v)) for s, v in zip(linear.states, linear.y0, strict=True))
    inputs = Signals(s.with_start(point.inputs.get(s.name, s.start)) for s in linear.inputs)
    hidden = linear.full_states.select(further)
    output_signals = [s.with_start(point.outputs.get(s.name, s.start)) for s in linear.outputs]
    quantities = Signals([*output_signals, *(s.with_start(point.states.get(s.name, s.start)) for s in hidden)])
    C, D = linear.C, linear.D
    if further:
        C, D = np.vstack((C, linear.T[further])), np.vstack((D, linear.T_u[further]))
    matrices = (linear.A, linear.B, C, D)
    engine = LinearEngine(linear.model, (states, inputs, quantities), matrices, linear.f0, linear.outputs.names)
    engine.notes = tuple(str(w) for w in linear.warnings if not w.is_information)
    error = linear.errors
    T = error.T[further] if further else np.zeros((0, len(states)))
    T_u = np.zeros((len(further), len(inputs)))
    errors = np.block([[error.A, error.B], [np.vstack((error.C, T)), np.vstack((error.D, T_u))]])
    if (errors > ROUNDING_TOLERANCE * np.abs(engine.J)).any():
        engine.errors = errors
    return LinearMember(engine)


def linear_from_control(name: str, system: Any) -> LinearModel:
    """Return a linear system of python-control, continuous or sampled, as a linear model at rest at zero."""
    import control

    if isinstance(system, control.TransferFunction):
        system = control.tf2ss(system) if system.ninputs == system.noutputs == 1 else control.ss(system)
    if not isinstance(system, control.StateSpace):
        raise UsageError(
            f"The member '{name}' is a {type(system).__name__}: members must be models (fmilin.load), linear models, "
            "or linear systems of python-control."
        )
    if system.dt is True:
        raise UsageError(f"The member '{name}' is sampled, but has no sample time: give it a dt in seconds.")
    states, inputs, outputs = (
        Signals(Signal(original_name(label)) for label in labels)
        for labels in (system.state_labels, system.input_labels, system.output_labels)
    )
    A, B, C, D = (np.asarray(m, dtype=np.float64) for m in (system.A, system.B, system.C, system.D))
    info = ModelInfo(name, tool="python-control")
    return at_rest(info, (states, inputs, outputs), (A, B, C, D), float(system.dt or 0.0))


def at_rest(
    info: ModelInfo, signals: tuple[Signals, Signals, Signals], matrices: tuple[FloatArray, ...], sample_time: float
) -> LinearModel:
    """Return the linear model of matrices with states, inputs and outputs, at rest at zero."""
    (states, inputs, outputs), (A, B, C, D) = signals, matrices
    n, k, p = len(states), len(inputs), len(outputs)
    named = Named(info, inputs, outputs)
    coordinates = IndependentCoordinates(states, states, np.zeros(n), np.eye(n), np.zeros((n, n)), "named")
    exact = LinearMatrices.with_relative_error(0.0, (A, B.reshape(n, k), C.reshape(p, n), D.reshape(p, k)), np.zeros(n))
    rest = LinearizationPoint(0.0, *(dict.fromkeys(s.names, 0.0) for s in (states, inputs, outputs)))
    return build_matrices(named, coordinates, exact, rest, ("exact", 0, 0), sample_time=sample_time)


def with_outputs(linear: LinearModel, rows: Sequence[int]) -> LinearModel:
    """Return a linear model with some of its outputs."""
    chosen = np.array(rows, dtype=np.intp)
    errors = replace(linear.errors, C=linear.errors.C[chosen], D=linear.errors.D[chosen])
    return replace(linear, C=linear.C[chosen], D=linear.D[chosen], outputs=linear.outputs.select(rows), errors=errors)


FIRST_SAMPLE_DELAY = 1e-9
"""The first sample, in sample times after the start: what is due at the start itself is not passed as an event."""
SIMULTANEOUS_TIME_TOLERANCE = 1e-6  # times closer than this, in sample times, are the same


class Law(Protocol):
    """The control law that a regulator evaluates at its samples."""

    def restart(self) -> None:
        """Go back to before the first sample."""

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs that the inputs ``read`` at t ask for."""

    def update_states(self, outputs: FloatArray) -> None:
        """Update the states of the law by the outputs that the actuators apply: the answer, or its limits."""


@runtime_checkable
class PureLaw(Law, Protocol):
    """A law of which the answer can be known before it is given."""

    @property
    def structure(self) -> NDArray[np.bool_]:
        """Which outputs depend on which inputs at a sample."""
        ...

    def compute_outputs(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs that the inputs ``read`` at t ask for, without moving on."""
        ...


@dataclass(frozen=True)
class ActuatorLimits:
    """The limits and the delay between a regulator and the plant."""

    lower: FloatArray | None = None  # (outputs,), limits
    upper: FloatArray | None = None  # (outputs,), limits
    delay: float = 0.0  # from a sample to its effect, in seconds


@dataclass(frozen=True)
class SamplingTimes:
    """When samples are taken: every ``step`` seconds from ``start``."""

    step: float
    start: float = 0.0


@dataclass
class _SamplingState:
    """The data retained from one sample to the next; shared by all views."""

    held_outputs: FloatArray
    samples: int = 0
    coming: list[tuple[float, FloatArray]] = field(default_factory=list)


class HeldMember(Model, Hybrid, HasDirectionalDerivatives, HasDiscreteStates):
    """A law between its samples: no continuous states, outputs held, at their start values before the first sample."""

    def __init__(
        self,
        info: ModelInfo,
        law: Law,
        schedule: SamplingTimes,
        inputs: Signals,
        outputs: Signals,
        *,
        actuator: ActuatorLimits | None = None,
    ) -> None:
        self.info, self.law, self.schedule = info, law, schedule
        self.actuator = ActuatorLimits() if actuator is None else actuator
        self.states, self.inputs, self._all_outputs = Signals(), inputs, outputs
        self.constraints = Constraints((), self.states, self.inputs)
        self.start = OperatingPoint(schedule.start, np.empty(0), inputs.starts)
        self._mode = _SamplingState(outputs.starts)
        self._show(range(len(outputs)))

    def _show(self, outputs: Sequence[int]) -> None:
        self._output_indices, self.outputs = list(outputs), self._all_outputs.select(outputs)
        self.structure = np.zeros((len(outputs), len(self.inputs)), dtype=bool)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say that outputs are held."""
        return (
            f"It is sampled every {self.schedule.step:g} s, and its outputs are held in this linear model: "
            "fl.sampled_loop(system) is the closed loop from sample to sample.",
        )

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the outputs that are held."""
        return Evaluation(np.empty(0), self._mode.held_outputs[self._output_indices], np.empty(0))

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return zeros: what is held follows nothing."""
        k = dx.shape[1]
        return Evaluation(np.zeros((0, k)), np.zeros((len(self.outputs), k)), np.zeros((0, k)))

    def discrete_states(self) -> Mapping[str, str]:
        """Return the outputs, by name."""
        return {s.name: f"{v:.6g}" for s, v in zip(self._all_outputs, self._mode.held_outputs, strict=True)}

    def restart(self) -> None:
        """Go back to before the first sample."""
        self.law.restart()
        mode = self._mode
        mode.held_outputs, mode.samples, mode.coming = self._all_outputs.starts, 0, []

    def next_event_time(self) -> float:
        """Return when the next sample is taken, or an earlier one takes effect."""
        coming = self._mode.coming
        return min(self._next_sample(), coming[0][0]) if coming else self._next_sample()

    def _next_sample(self) -> float:
        return self.schedule.start + self.schedule.step * (self._mode.samples or FIRST_SAMPLE_DELAY)

    def is_due(self, t: float) -> bool:
        """Return whether a sample is taken at a time."""
        return abs(t - self._next_sample()) <= SIMULTANEOUS_TIME_TOLERANCE * self.schedule.step

    def peek(self, t: float, u: FloatArray) -> FloatArray:
        """Return what the outputs of this view will be after a sample at a time, if they take effect at once."""
        if not isinstance(self.law, PureLaw) or self.actuator != ActuatorLimits():
            outputs: FloatArray = self._mode.held_outputs[self._output_indices]
            return outputs
        answer: FloatArray = self.law.compute_outputs(t, u)[self._output_indices]
        return answer

    def answer_structure(self) -> NDArray[np.bool_]:
        """Return which outputs of this view depend on which inputs at a sample."""
        if isinstance(self.law, PureLaw):
            return self.law.structure[self._output_indices]
        return np.ones((len(self.outputs), len(self.inputs)), dtype=bool)

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Take a sample if one is due, and let take effect what is."""
        mode, near = self._mode, SIMULTANEOUS_TIME_TOLERANCE * self.schedule.step
        if self.is_due(t):
            answer = np.asarray(self.law.answer(t, u), dtype=np.float64).reshape(len(self._all_outputs))
            limited = np.clip(answer, self.actuator.lower, self.actuator.upper)
            self.law.update_states(limited)
            mode.coming.append((t + self.actuator.delay, limited))
            mode.samples += 1
        while mode.coming and mode.coming[0][0] <= t + near:
            mode.held_outputs = mode.coming.pop(0)[1]
        return Passage(x)

    @kinds_checked
    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the same regulator with chosen outputs; it needs all its inputs."""
        if inputs is not None and list(inputs) != list(self.inputs.names):
            raise UsageError(f"The sampled regulator '{self.info.name}' requires all its inputs: leave none out.")
        if outputs is None:
            return self
        what = f"an output of '{self.info.name}'"
        view = copy(self)
        view._show([self._all_outputs.index_of(name, what) for name in outputs])
        return view

    @kinds_checked
    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same: it has no states that constraints could be about."""
        if constraints:
            raise UsageError(f"The sampled regulator '{self.info.name}' has no continuous states to constrain.")
        return self


class LinearLaw:
    """A sampled linear model, which answers and moves on at each sample."""

    def __init__(self, linear: LinearModel) -> None:
        self.linear = linear
        point = linear.point
        self.inputs = Signals(s.with_start(point.inputs.get(s.name, s.start)) for s in linear.inputs)
        self.outputs = Signals(s.with_start(point.outputs.get(s.name, 0.0)) for s in linear.outputs)
        self._states = linear.y0.copy()

    def restart(self) -> None:
        """Go back to before the first sample."""
        self._states = self.linear.y0.copy()

    @property
    def structure(self) -> NDArray[np.bool_]:
        """Which outputs depend on which inputs at a sample."""
        depends: NDArray[np.bool_] = self.linear.D != 0.0
        return depends

    def compute_outputs(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs."""
        lin = self.linear
        e = wrap_differences(read - self.inputs.starts, self.inputs.turns)
        outputs: FloatArray = self.outputs.starts + lin.C @ (self._states - lin.y0) + lin.D @ e
        return outputs

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the outputs, and move on to the next sample."""
        lin = self.linear
        s, e = self._states - lin.y0, wrap_differences(read - self.inputs.starts, self.inputs.turns)
        outputs = self.compute_outputs(t, read)
        self._states = lin.y0 + lin.f0 + lin.A @ s + lin.B @ e
        return outputs

    def update_states(self, outputs: FloatArray) -> None:
        """Do nothing: a linear system has no limits."""

    applied = DeprecatedAlias("update_states")


class SampledMember(HeldMember):
    """A sampled linear model between its samples."""

    def __init__(self, linear: LinearModel) -> None:
        self.linear = linear
        law, schedule = LinearLaw(linear), SamplingTimes(linear.sample_time, linear.point.time)
        super().__init__(linear.model, law, schedule, law.inputs, law.outputs)

    def to_linear_model(self) -> LinearModel:
        """Return the linear model with the outputs of this view."""
        return with_outputs(self.linear, self._output_indices)
