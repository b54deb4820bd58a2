"""The response of a linear model, for comparison with the nonlinear model that it was made from."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.composition.linear_member import from_linear
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.simulation.inputs import Inputs, InputTable
from fmilin.simulation.method import Method
from fmilin.simulation.run import RunRequest, simulate_at_times
from fmilin.simulation.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class ResponseComparison:
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
) -> ResponseComparison:
    """Let a linear model run from the same start, with the same inputs and method, and put both side by side."""
    if linear.sample_time > 0:
        raise UsageError(
            f"The linear model is sampled (every {linear.sample_time:g} s): only a continuous one can be integrated."
        )
    _require_same_model(trajectory, linear)
    names = (*linear.full_states.names, *trajectory.input_signals.names)
    first = {name: float(trajectory[name][0]) for name in names}
    of_both = (trajectory.output_signals, trajectory.state_signals)
    candidates = dict.fromkeys((*linear.outputs.names, *linear.full_states.names))
    shared = [name for name in candidates if any(signals.has(name) for signals in of_both)]
    system = from_linear(linear).with_interface(outputs=shared)
    u = np.array([first[name] for name in linear.inputs.names])
    start = OperatingPoint(float(trajectory.times[0]), _compute_coordinates(linear, first), u)
    rows = _last_of_each_time(trajectory.times)
    times = trajectory.times[rows]
    motion = simulate_at_times(system, start, times, RunRequest(_select_inputs(linear, inputs), "none", method))
    theirs = _last_of_each_time(motion.times)  # of a jump of the inputs there are two samples
    nonlinear = np.column_stack([trajectory[name][rows] for name in shared])
    return ResponseComparison(times, system.outputs, nonlinear, motion.outputs[theirs])


def _compute_coordinates(linear: LinearModel, values: Mapping[str, float]) -> FloatArray:
    """Return y from all states and inputs: read off where coordinates are among them, else by least squares."""
    if all(name in values for name in linear.states.names):
        return np.array([values[name] for name in linear.states.names])
    x0 = np.array([linear.point.states[n] for n in linear.full_states.names])
    dx = np.array([values[name] for name in linear.full_states.names]) - x0
    dx -= linear.T_u @ (np.array([values[name] for name in linear.inputs.names]) - linear.u0)
    scales = linear.full_states.scales(x0)
    y: FloatArray = linear.y0 + np.linalg.lstsq(linear.T / scales[:, None], dx / scales, rcond=None)[0]
    return y


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
                "does not have. Compare models of the same plant."
            )


def _last_of_each_time(times: FloatArray) -> NDArray[np.intp]:
    """Return the rows to examine: of an event the one after it."""
    return np.array([k for k in range(len(times)) if k + 1 == len(times) or times[k + 1] > times[k]], dtype=np.intp)


def _select_inputs(linear: LinearModel, inputs: Inputs | None) -> Inputs | None:
    """Return the part of the inputs that the linear model has."""
    if inputs is None:
        return None
    if isinstance(inputs, InputTable):
        taken = [i for i, name in enumerate(inputs.names) if linear.inputs.has(name)]
        return InputTable(inputs.times, tuple(inputs.names[i] for i in taken), inputs.values[:, taken])
    if callable(inputs):
        raise UsageError("To compare with a linear model give the inputs by name, or as a table.")
    return {name: value for name, value in inputs.items() if linear.inputs.has(name)}
