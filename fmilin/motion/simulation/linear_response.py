"""A linear model in motion, beside the nonlinear one that it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.linear_model.model import LinearModel
from fmilin.model.constraints.declared import Constraint, Constraints
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.motion.simulation.inputs import Inputs, InputTable
from fmilin.motion.simulation.method import Method
from fmilin.motion.simulation.run import RunRequest, simulate_at
from fmilin.motion.simulation.trajectory import Trajectory


class LinearSystem(Model):
    """y' = f0 + A (y - y0) + B (u - u0) as a Model; behind its outputs all N states x0 + T (y - y0) + T_u (u - u0)."""

    def __init__(self, linear: LinearModel) -> None:
        if linear.sample_time > 0:
            raise UsageError(
                f"The linear model is sampled (every {linear.sample_time:g} s): only a continuous one can be "
                "integrated."
            )
        self.linear = linear
        self.info, self.states, self.inputs = linear.model, linear.states, linear.inputs
        further = []
        for state in linear.full_states:
            name = state.name
            while linear.outputs.has(name):  # a state's signal under a name that no output has
                name += "'"
            further.append(Signal(name, state.unit, state.nominal))
        self.outputs = Signals([*linear.outputs, *further])
        self._x0 = np.array([linear.point.states[n] for n in linear.full_states.names])
        self._u0 = linear.u0
        self._g0 = np.array([linear.point.outputs[n] for n in linear.outputs.names])
        self.constraints = Constraints((), self.states, self.inputs)
        self.start = OperatingPoint(linear.point.time, linear.y0.copy(), self._u0)
        self.copies = {}

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return the rates of y, shape (P,), and outputs and states."""
        del t
        linear, dy, du = self.linear, x - self.linear.y0, u - self._u0
        rates = linear.f0 + linear.A @ dy + linear.B @ du
        full = self._x0 + linear.T @ dy + linear.T_u @ du
        outputs = np.concatenate((self._g0 + linear.C @ dy + linear.D @ du, full))
        return Evaluation(rates, outputs, np.empty(0))

    def coordinates_of(self, values: Mapping[str, float]) -> FloatArray:
        """Return y from all states and inputs: read off where coordinates are among them, else by least squares."""
        linear, full = self.linear, self.linear.full_states
        if all(name in values for name in linear.states.names):
            return np.array([values[name] for name in linear.states.names])
        dx = np.array([values[name] for name in full.names]) - self._x0
        dx -= linear.T_u @ (np.array([values[name] for name in linear.inputs.names]) - self._u0)
        scales = full.scales(self._x0)
        dy = np.linalg.lstsq(linear.T / scales[:, None], dx / scales, rcond=None)[0]
        y: FloatArray = linear.y0 + dy
        return y

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Refuse: choose inputs and outputs when linearizing."""
        del inputs, outputs
        raise UsageError("Inputs and outputs of a linear model are chosen when it is made.")

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Refuse: independent coordinates have none."""
        del constraints
        raise UsageError("A linear model in independent coordinates has no constraints.")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The courses of the quantities that a nonlinear and a linear model have in common."""

    times: FloatArray  # shape (K,)
    signals: Signals  # outputs first, then states
    nonlinear: FloatArray  # shape (K, n)
    linear: FloatArray  # shape (K, n)

    @property
    def deviations(self) -> FloatArray:
        """The largest difference of each quantity, shape (n,)."""
        largest: FloatArray = np.max(np.abs(self.linear - self.nonlinear), axis=0, initial=0.0)
        return largest

    @property
    def ranges(self) -> FloatArray:
        """How far each quantity of the nonlinear model gets from its first value, shape (n,)."""
        largest: FloatArray = np.max(np.abs(self.nonlinear - self.nonlinear[:1]), axis=0, initial=0.0)
        return largest


def compare(
    trajectory: Trajectory, linear: LinearModel, *, inputs: Inputs | None = None, method: Method | str = "DOP853"
) -> Comparison:
    """Let a linear model run from the same start, with the same inputs and method, and put both side by side."""
    system = LinearSystem(linear)
    _require_same_model(trajectory, linear)
    names = (*linear.full_states.names, *trajectory.input_signals.names)
    first = {name: float(trajectory[name][0]) for name in names}
    u = np.array([first[name] for name in linear.inputs.names])
    start = OperatingPoint(float(trajectory.times[0]), system.coordinates_of(first), u)
    rows = _last_of_each_time(trajectory.times)
    times = trajectory.times[rows]
    motion = simulate_at(system, start, times, RunRequest(_for(system, inputs), "none", method))
    theirs = _last_of_each_time(motion.times)  # of a jump of the inputs there are two samples
    rows_by_name: dict[str, int] = {}
    for i, name in enumerate((*linear.outputs.names, *linear.full_states.names)):
        if trajectory.state_signals.has(name) or trajectory.output_signals.has(name):
            rows_by_name.setdefault(name, i)
    signals = [replace(system.outputs[i], name=name) for name, i in rows_by_name.items()]
    return Comparison(
        times,
        Signals(signals),
        np.column_stack([trajectory[name][rows] for name in rows_by_name]),
        motion.outputs[theirs][:, list(rows_by_name.values())],
    )


def _require_same_model(trajectory: Trajectory, linear: LinearModel) -> None:
    groups = (
        (linear.full_states, trajectory.state_signals, "state"),
        (linear.inputs, trajectory.input_signals, "input"),
    )
    for theirs, ours, what in groups:
        lacking = [name for name in theirs.names if not ours.has(name)]
        if lacking:
            raise UsageError(
                f"The linear model of '{linear.model.name}' has the {what} '{lacking[0]}', which the simulated model "
                "does not have: they do not belong together."
            )


def _last_of_each_time(times: FloatArray) -> NDArray[np.intp]:
    """Return the rows to look at: of an event the one after it."""
    return np.array([k for k in range(len(times)) if k + 1 == len(times) or times[k + 1] > times[k]], dtype=np.intp)


def _for(system: LinearSystem, inputs: Inputs | None) -> Inputs | None:
    """Return the part of the inputs that the linear model has."""
    if inputs is None:
        return None
    if isinstance(inputs, InputTable):
        taken = [i for i, name in enumerate(inputs.names) if system.inputs.has(name)]
        return InputTable(inputs.times, tuple(inputs.names[i] for i in taken), inputs.values[:, taken])
    if callable(inputs):
        raise UsageError("To compare with a linear model give the inputs by name, or as a table.")
    return {name: value for name, value in inputs.items() if system.inputs.has(name)}
