"""Time responses of linear models with delays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.delay_response_record import TimeResponse
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.numerics.method_of_steps import PiecewiseInput, solve_delay_system
from fmilin.signals import FloatArray

SAMPLE_COUNT = 401
DECAY_TIME_CONSTANTS = 7.0  # of the rightmost eigenvalue that a step is followed for by default
MIN_DELAY_MULTIPLE, MAX_PERIODS = 5.0, 60.0  # of the sum of the delays, and of periods or such sums


def compute_step_response(
    model: DelayedLinearModel,
    input: str | None = None,  # noqa: A002 - the word of python-control and MATLAB
    *,
    amplitude: float = 1.0,
    stop_time: float | None = None,
    times: FloatArray | None = None,
) -> TimeResponse:
    """Return the response to a step of one input at the first time."""
    name = input
    if name is None:
        if len(model.inputs) != 1:
            raise UsageError(
                f"Name one of the inputs for a step: {', '.join(model.inputs.names) or 'this model has no inputs'}."
            )
        name = model.inputs.names[0]
    j = model.inputs.index_of(name, "an input of the linear model")
    if times is None:
        stop = choose_stop_time(model) if stop_time is None else stop_time
        if not (np.isfinite(stop) and stop > 0):
            raise UsageError(f"A step cannot be followed for {stop:g} s: give a positive time.")
        times = np.linspace(0.0, stop, SAMPLE_COUNT)
    t = _require_times(times)
    starts = np.zeros((1, len(model.inputs)))
    starts[0, j] = amplitude
    return _respond(model, PiecewiseInput(t[:1], starts, np.zeros_like(starts)), t, rate=False)


def compute_time_response(
    model: DelayedLinearModel,
    times: FloatArray,
    inputs: Mapping[str, FloatArray],
    *,
    hold: str = "zero",
    rate: bool = True,
) -> TimeResponse:
    """Return the response to inputs that are constant or linear between times."""
    t = _require_times(times)
    if hold not in {"zero", "first"}:
        raise UsageError(f"hold='{hold}' is not possible: inputs are constant ('zero') or linear ('first') in between.")
    values = np.zeros((len(t), len(model.inputs)))
    for name, series in inputs.items():
        array = np.asarray(series, dtype=np.float64)
        if array.shape not in {(), t.shape} or not np.isfinite(array).all():
            raise UsageError(f"The input '{name}' needs one finite value for each of the {len(t)} times.")
        values[:, model.inputs.index_of(name, "an input of the linear model")] = array
    rates = np.zeros_like(values)
    if hold == "first":
        rates[:-1] = np.diff(values, axis=0) / np.diff(t)[:, None]
    return _respond(model, _drop_repeated(PiecewiseInput(t, values, rates)), t, rate=rate)


def _drop_repeated(inputs: PiecewiseInput) -> PiecewiseInput:
    """Return the same inputs without instants at which nothing changes: each costs a step for each sum of delays."""
    t, values, rates = inputs.times, inputs.starts, inputs.rates
    expected = values[:-1] + np.diff(t)[:, None] * rates[:-1]
    changes = (expected != values[1:]).any(axis=1) | (rates[:-1] != rates[1:]).any(axis=1)
    breaks = np.append(True, changes)
    return PiecewiseInput(t[breaks], values[breaks], rates[breaks])


def _require_times(times: FloatArray) -> FloatArray:
    t = np.asarray(times, dtype=np.float64)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
        raise UsageError("The times of a response must be at least two increasing finite numbers.")
    return t


def _respond(model: DelayedLinearModel, inputs: PiecewiseInput, times: FloatArray, *, rate: bool) -> TimeResponse:
    own_rate = model.f0 if rate else np.zeros(len(model.states))
    solution = solve_delay_system(model.form, inputs, own_rate, times)
    return TimeResponse(times, solution.states, solution.outputs, model.states, model.outputs, solution.error)


def choose_stop_time(model: DelayedLinearModel) -> float:
    """Return how long a step is followed: as long as the rightmost modes need, within reason."""
    total = float(np.sum(list(model.delays.values())))
    values = model.eigenvalues(4)
    moving = values[np.abs(values) > 1e-9 * np.abs(values).max(initial=0.0)]
    if not len(moving):
        return MIN_DELAY_MULTIPLE * total or 1.0
    rightmost = complex(moving[np.argmax(moving.real)])
    slowest = DECAY_TIME_CONSTANTS / max(abs(rightmost.real), 1e-12 * abs(rightmost))
    longest = MAX_PERIODS * max(total, 1.0 / abs(rightmost))
    return max(MIN_DELAY_MULTIPLE * total, min(slowest, longest))
