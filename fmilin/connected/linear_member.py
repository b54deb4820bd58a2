"""Linear models as members: a LinearModel, or a system of python-control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals, original_name
from fmilin.ground.tolerances import ROUNDING
from fmilin.linear_model.builder import IndependentCoordinates, Named, Slopes, built
from fmilin.linear_model.model import LinearModel, Point
from fmilin.model.interface import Evaluation, ModelInfo
from fmilin.native.engine import Engine, EngineModel
from fmilin.native.native_engine import Quantity

if TYPE_CHECKING:
    from fmilin.numerics.codegen.implicit import ImplicitSystem


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

        from fmilin.numerics.codegen.implicit import ImplicitSystem

        n, k = len(self.states), len(self.inputs)
        x, u = ca.SX.sym("x", n), ca.SX.sym("u", k)
        values = ca.DM(self._base) + ca.mtimes(ca.sparsify(ca.DM(self.J)), ca.vertcat(x, u) - ca.DM(self._at))
        every = ca.vertcat(values, x, u)
        first = {"rate": 0, "quantity": n, "state": len(self._base), "input": len(self._base) + n}

        def node(quantity: Quantity) -> Any:
            kind, i = quantity.source
            return every[first[kind] + i]

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


class LinearMember(EngineModel):
    """The model of a :class:`LinearEngine`, whose own errors travel on."""

    engine: LinearEngine

    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        """Return the errors of the matrices along the directions."""
        errors = self.engine.errors
        if errors is None:
            return None
        del t, x, u
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
    point, own = linear.point, set(linear.states.names)
    further = [i for i, s in enumerate(linear.full_states) if s.name not in own and not linear.outputs.has(s.name)]
    states = Signals(s.starting_at(float(v)) for s, v in zip(linear.states, linear.y0, strict=True))
    inputs = Signals(s.starting_at(point.inputs.get(s.name, s.start)) for s in linear.inputs)
    hidden = linear.full_states.select(further)
    shown = [s.starting_at(point.outputs.get(s.name, s.start)) for s in linear.outputs]
    quantities = Signals([*shown, *(s.starting_at(point.states.get(s.name, s.start)) for s in hidden)])
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
    if (errors > ROUNDING * np.abs(engine.J)).any():
        engine.errors = errors
    return LinearMember(engine)


def linear_from_control(name: str, system: Any) -> LinearModel:
    """Return a linear system of python-control, continuous or sampled, as a linear model at rest at zero."""
    import control

    if isinstance(system, control.TransferFunction):
        system = control.tf2ss(system) if system.ninputs == system.noutputs == 1 else control.ss(system)
    if not isinstance(system, control.StateSpace):
        raise UsageError(
            f"The member '{name}' is a {type(system).__name__}: members are models (fmilin.load), linear models, or "
            "linear systems of python-control."
        )
    if system.dt is True:
        raise UsageError(f"The member '{name}' is sampled without saying how often: give it a dt in seconds.")
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
    own = Named(info, inputs, outputs)
    coordinates = IndependentCoordinates(states, states, np.zeros(n), np.eye(n), np.zeros((n, n)), "named")
    exact = Slopes.known_to(0.0, (A, B.reshape(n, k), C.reshape(p, n), D.reshape(p, k)), np.zeros(n))
    rest = Point(0.0, *(dict.fromkeys(s.names, 0.0) for s in (states, inputs, outputs)))
    return built(own, coordinates, exact, rest, ("exact", 0, 0), sample_time=sample_time)


def with_outputs(linear: LinearModel, rows: Sequence[int]) -> LinearModel:
    """Return a linear model with some of its outputs."""
    chosen = np.array(rows, dtype=np.intp)
    return replace(linear, C=linear.C[chosen], D=linear.D[chosen], outputs=linear.outputs.select(rows))
