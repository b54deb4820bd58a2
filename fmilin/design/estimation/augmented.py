"""A model with parameters, biases of sensors and noise of inputs as further states, which only noise moves.

Equations with a graph are differentiated by them exactly; an FMU's parameters become inputs of it. Noise that is held
over each sample is a state that is added to its input, and that a filter renews at the beginning of each sample: so it
reaches rates and outputs as the input does, with its correlation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.errors import UnknownNameError, UsageError
from fmilin.model.capabilities import has_graph, read_graph, read_products, read_tangents
from fmilin.model.interface import Model
from fmilin.models.native_engine import NativeEngine, Quantity, Values, list_available_quantities
from fmilin.models.native_model import NativeModel
from fmilin.signals import FloatArray, Signal, Signals

BIAS = ".bias"


def augment_model(model: Model, names: Sequence[str]) -> Model:
    """Return the model with parameters, and with ``OUTPUT.bias`` of its outputs, as further states.

    Raises UsageError or UnknownNameError when a name is given twice, or is neither a parameter nor the bias of an
    output; when the source has its parameters fixed.
    """
    if not names:
        return model
    outputs, parameters = [n[: -len(BIAS)] for n in names if n.endswith(BIAS)], [n for n in names if n[-5:] != BIAS]
    if len(set(names)) != len(names):
        raise UsageError(f"A parameter or bias is named twice in {', '.join(names)}.")
    for name in outputs:
        model.outputs.index_of(name, "a measured output, which could have a bias")
    if parameters and not (has_graph(model) or model.moves_parameters):
        raise UsageError(
            f"The parameters of '{model.info.name}' are fixed once it is loaded: {', '.join(parameters)} cannot be "
            "estimated. Estimate those of an FMU, or of a model of equations."
        )
    values = _values(model, parameters)
    return NativeModel(_AugmentedEngine(model, values, outputs))


def add_noise_states(model: Model, inputs: Sequence[str]) -> Model:
    """Return the model with ``INPUT.noise`` as further states, the last ones, which are added to the inputs."""
    return NativeModel(_AugmentedEngine(model, {}, (), inputs)) if inputs else model


def _values(model: Model, names: Sequence[str]) -> dict[str, float]:
    """Return the parameters' values."""
    if names and not has_graph(model):
        view = model.with_interface([*model.inputs.names, *names])
        return dict(zip(names, view.start.inputs[len(model.inputs) :].tolist(), strict=True))
    for name in names:
        if name not in model.parameters:
            raise UnknownNameError.among(name, model.parameters, f"a parameter of '{model.info.name}'")
    return {name: float(model.parameters[name]) for name in names}


@dataclass(frozen=True)
class SelectedRows:
    """Where outputs and observed quantities stand among all that is available."""

    outputs: list[int]
    observed: list[int]


class _AugmentedEngine(NativeEngine[SelectedRows]):
    """The states of a model, then parameters, then biases, then noise of inputs."""

    def __init__(
        self, model: Model, parameters: Mapping[str, float], biased: Sequence[str], noisy: Sequence[str] = ()
    ) -> None:
        self.model, self.choose_coordinates, self.info = model, list(parameters), model.info
        self.noisy = [model.inputs.index_of(name, "an input of the model") for name in noisy]
        self.biased = [model.outputs.index_of(name) for name in biased]
        graph = read_graph(model) if has_graph(model) else None
        signals = (
            model.with_interface([*model.inputs.names, *self.choose_coordinates]).inputs
            if graph is None
            else graph.parameter_signals
        )
        further = [replace(signals[signals.index_of(name)], start=value) for name, value in parameters.items()]
        further += [Signal(f"{model.outputs[i].name}{BIAS}", model.outputs[i].unit) for i in self.biased]
        further += [Signal(f"{model.inputs[i].name}.noise", model.inputs[i].unit) for i in self.noisy]
        starts = zip(model.states, model.start.states.tolist(), strict=True)
        self.states = Signals([*(replace(s, start=x) for s, x in starts), *further])
        self.inputs, self.outputs = model.inputs, model.outputs.names
        self.constraints = model.constraints.declared
        self.parameters = {n: v for n, v in model.constraints.parameters.items() if n not in self.choose_coordinates}
        self.independent, self.compilable = (), has_graph(model)
        self.batches = model.batches and not self.compilable

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """The outputs, what constraints observe, and states."""
        names = [*self.model.constraints.observed, *self.outputs]
        quantities = [Quantity(Signal(name), ("model", i)) for i, name in enumerate(names)]
        for i, signal in enumerate(self.model.wrapped_outputs, len(self.model.constraints.observed)):
            quantities[i] = Quantity(signal, ("model", i))
        return list_available_quantities(self.states, self.inputs, quantities)

    @cached_property
    def system(self) -> ImplicitSystem | None:
        """The graph, with all that is available as outputs."""
        observed, n = self.model.constraints.observed, len(self.choose_coordinates)
        graph = read_graph(self.model) if self.compilable else None
        if graph is None:
            return None
        names = graph.parameter_signals.names
        taken = [names.index(name) for name in self.choose_coordinates]
        remaining = [i for i in range(len(names)) if i not in taken]
        bias = ca.SX.sym("bias", len(self.biased))
        outputs = ca.vertcat(ca.SX(0, 1), *(graph.further[name] for name in observed), graph.outputs)
        for k, i in enumerate(self.biased):
            outputs[len(observed) + i] += bias[k]
        noise = ca.SX.sym("noise", len(self.noisy))
        matrix, right_hand_side, derivatives = graph.matrix, graph.right_hand_side, graph.derivatives
        if self.noisy:
            applied = ca.SX(graph.inputs)
            for k, i in enumerate(self.noisy):
                applied[i] += noise[k]
            parts = [matrix, right_hand_side, derivatives, outputs]
            matrix, right_hand_side, derivatives, outputs = ca.substitute(parts, [graph.inputs], [applied])
        count = n + len(self.biased) + len(self.noisy)
        guess = graph.guess
        if guess is not None:
            further = [guess.parameters[taken], np.zeros(count - n)]
            guess = replace(
                guess, states=np.concatenate((guess.states, *further)), parameters=guess.parameters[remaining]
            )
        return replace(
            graph,
            states=ca.vertcat(graph.states, *(graph.parameters[i] for i in taken), bias, noise),
            parameters=ca.vertcat(ca.SX(0, 1), *(graph.parameters[i] for i in remaining)),
            matrix=matrix,
            right_hand_side=right_hand_side,
            derivatives=ca.vertcat(derivatives, ca.SX(count, 1)),
            outputs=outputs,
            guess=guess,
            state_signals=self.states,
            parameter_signals=graph.parameter_signals.select(remaining),
            parameter_values=graph.parameter_values[remaining],
            slopes=None,
        )

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem | None:
        """Return the equations as a graph."""
        if self.system is None:
            return None
        rows = [q.source[1] for q in outputs]
        further = {q.signal.name: self.system.outputs[q.source[1]] for q in observed}
        chosen = ca.vertcat(ca.SX(0, 1), *(self.system.outputs[i] for i in rows))
        return replace(self.system, outputs=chosen, output_signals=Signals(q.signal for q in outputs), further=further)

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> SelectedRows:
        """Return the rows of these quantities among those that constraints observe and the outputs."""
        return SelectedRows([q.source[1] for q in outputs], [q.source[1] for q in observed])

    def evaluate(self, selection: SelectedRows, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates, outputs and observed quantities."""
        functions = self._functions
        if functions is not None:
            rates, z = functions.values(t, x, u, functions.system.parameter_values)
            return rates, z[selection.outputs], z[selection.observed]
        states, parameters, bias, noise = np.split(x, self._sizes)
        inputs = u.copy()
        inputs[self.noisy] += noise
        at = self._with_moved_parameters.evaluate(t, states, np.concatenate((inputs, parameters)))
        rates = np.concatenate((at.derivatives, np.zeros(len(x) - len(states))))
        z = at.outputs.copy()
        z[self._biased_rows] += bias
        return rates, z[selection.outputs], z[selection.observed]

    def evaluate_points(self, selection: SelectedRows, t: FloatArray, x: FloatArray, u: FloatArray) -> Values:
        """Return the same at many points, together where the model evaluates points together."""
        if not self.batches:
            return super().evaluate_points(selection, t, x, u)
        states, inputs, bias = self._split(x, u)
        at = self._with_moved_parameters.evaluate_points(t, states, inputs)
        return self._extend(selection, at.derivatives, at.outputs, bias)

    def differentiate_points(
        self, selection: SelectedRows, t: FloatArray, x: FloatArray, u: FloatArray
    ) -> tuple[Values, Values] | None:
        """Return all three at many points with derivatives, where the model computes these together; else None."""
        states, inputs, bias = self._split(x, u)
        n, nu = states.shape[1], u.shape[1]
        at = read_tangents(self._with_moved_parameters, t, states, inputs, range(n))
        if at is None:
            return None

        def arrange(slopes: FloatArray) -> FloatArray:
            """Return columns for states, parameters, biases, noise and inputs."""
            columns = np.arange(slopes.shape[2])
            moving = (
                columns[:n],
                columns[n + nu :],
                columns[n + np.array(self.noisy, dtype=np.intp)],
                columns[n : n + nu],
            )
            along_states, along_parameters, along_noise, along_inputs = (slopes[..., part] for part in moving)
            nothing = np.zeros((*slopes.shape[:2], len(self.biased)))
            return np.concatenate((along_states, along_parameters, nothing, along_noise, along_inputs), axis=2)

        values = self._extend(selection, at.rates, at.values, bias)
        rates, outputs = arrange(at.derivatives), arrange(at.outputs)
        first = int(self._sizes[1])
        outputs[:, self._biased_rows, first : first + len(self.biased)] = np.eye(len(self.biased))
        further = np.zeros((len(x), x.shape[1] - n, rates.shape[2]))
        rates = np.concatenate((rates, further), axis=1)
        return values, (rates, outputs[:, selection.outputs], outputs[:, selection.observed])

    def _split(self, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the model's states, its inputs with noise and parameters, and biases, at points."""
        states, parameters, bias, noise = np.split(x, self._sizes, axis=1)
        inputs = np.hstack((u, parameters))
        inputs[:, self.noisy] += noise
        return states, inputs, bias

    def _extend(self, selection: SelectedRows, rates: FloatArray, outputs: FloatArray, bias: FloatArray) -> Values:
        """Return rates of all states, outputs and observed quantities, from those of the model at points."""
        constant = np.zeros((len(rates), len(self.states) - rates.shape[1]))
        z = outputs.copy()
        z[:, self._biased_rows] += bias
        return np.hstack((rates, constant)), z[:, selection.outputs], z[:, selection.observed]

    def differentiate(
        self, selection: SelectedRows, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values | None:
        """Return the derivatives of all three; None where the model has none."""
        functions = self._functions
        if functions is not None:
            rates, z = functions.products((t, x, u, functions.system.parameter_values), dx, du)
            return rates, z[selection.outputs], z[selection.observed]
        states, parameters, _, noise = np.split(x, self._sizes)
        ds, dp, db, dn = np.split(dx, self._sizes)
        inputs, moved = u.copy(), du.copy()
        inputs[self.noisy] += noise
        moved[self.noisy] += dn
        point = t, states, np.concatenate((inputs, parameters))
        at = read_products(self._with_moved_parameters, *point, ds, np.concatenate((moved, dp)))
        if at is None:
            return None
        rates = np.concatenate((at.derivatives, np.zeros((len(x) - len(states), dx.shape[1]))))
        z = at.outputs.copy()
        z[self._biased_rows] += db
        return rates, z[selection.outputs], z[selection.observed]

    @cached_property
    def _functions(self) -> SystemFunctions | None:
        """The graph as functions; None without a graph."""
        return None if self.system is None else SystemFunctions(self.system)

    @cached_property
    def _with_moved_parameters(self) -> Model:
        """The model with its own inputs and the parameters as inputs, and all available quantities as outputs."""
        inputs = [*self.model.inputs.names, *self.choose_coordinates] if self.choose_coordinates else None
        return self.model.with_interface(inputs, [*self.model.constraints.observed, *self.outputs])

    @cached_property
    def _sizes(self) -> NDArray[np.intp]:
        """Where parameters, biases and noise begin among the states."""
        return np.cumsum([len(self.model.states), len(self.choose_coordinates), len(self.biased)])

    @cached_property
    def _biased_rows(self) -> list[int]:
        return [len(self.model.constraints.observed) + i for i in self.biased]
