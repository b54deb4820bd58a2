"""Runs of sampled models: the map, applied sample after sample."""

from __future__ import annotations

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.simulation.inputs import Inputs, input_course
from fmilin.simulation.trajectory import Statistics, Trajectory

WHOLE_SAMPLE_TOLERANCE = 1e-6  # of a sample, by which a step may differ from a multiple of it
MAX_SAMPLES = 10_000_000


def run_map(
    model: Model, start: OperatingPoint, stop_time: float, step: float | None, inputs: Inputs | None
) -> Trajectory:
    """Return the samples of a sampled model from a point on, every ``step`` seconds, by default all.

    Inputs are read at the samples and held. A constraint that the map does not keep is seen in ``drift``.
    """
    h = model.map_period
    stride = 1 if step is None else round(step / h)
    if step is not None and (stride < 1 or abs(stride * h - step) > WHOLE_SAMPLE_TOLERANCE * h):
        raise UsageError(f"The step {step:g} s is not a multiple of the sample time {h:g} s of '{model.info.name}'.")
    span = (stop_time - start.time) / h
    if not (np.isfinite(span) and 0 <= span <= MAX_SAMPLES):
        raise UsageError(
            f"The stop time {stop_time:g} s is not possible: at most {MAX_SAMPLES} samples of {h:g} s from "
            f"{start.time:g} s on can be run."
        )
    count = int(span + WHOLE_SAMPLE_TOLERANCE)
    course = input_course(model.inputs, start.inputs, inputs)
    times = np.asarray(start.time + h * np.arange(count + 1), dtype=np.float64)
    x, states, commands, outputs, residuals = start.states, [], [], [], []
    for k, t in enumerate(times.tolist()):
        u = course.piece(t, t)(t)
        answer = model.evaluate(t, x, u)
        if k % stride == 0:
            states.append(x)
            commands.append(u)
            outputs.append(answer.outputs)
            residuals.append(answer.residuals)
        x = x + answer.derivatives
        if k < count and not np.isfinite(x).all():
            name = model.states.names[int(np.argmin(np.isfinite(x)))]
            raise NumericalError(
                f"'{name}' is infinite {k + 1} samples after the start, at t = {t + h:.9g} s: the map leads away. "
                "Start elsewhere, or stop before.",
                variable=name,
            )
    return Trajectory(
        times=times[::stride],
        states=np.array(states),
        inputs=np.array(commands),
        outputs=np.array(outputs),
        state_signals=model.states,
        input_signals=model.inputs,
        output_signals=model.wrapped_outputs,
        drift=np.array(residuals),
        invariants=model.constraints.names,
        energy=np.empty(0),
        stabilization="none",
        method="map",
        switches=(),
        events=(),
        statistics=Statistics(count, count + 1, 0),
        parameters=tuple(start.parameters.items()),
        model_name=model.info.name,
    )
