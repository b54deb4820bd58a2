"""Second ways of courses over time: trajectories, filtered data, statistics of runs, exponents, measured responses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, keep_worst
from fmilin.errors import ModelError
from fmilin.model.stepping import Hybrid
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_TRAJECTORY_TOLERANCE

if TYPE_CHECKING:
    from fmilin.design.estimation.consistency import Filtered
    from fmilin.design.frequency_response import FrequencyResponse
    from fmilin.design.monte_carlo import MonteCarlo
    from fmilin.lyapunov import LyapunovExponents
    from fmilin.model.interface import Model
    from fmilin.simulation.trajectory import Trajectory

MAX_SAMPLES = 200
COARSE_RULE_ERROR_RATIO = (
    0.1  # times the difference of two rules, one of which has an error smaller by two orders of the step
)
# Largest difference of the two rules, relative to the change of the states. Larger: Simpson's rule itself is off.
MAX_QUADRATURE_ERROR_RATIO = 0.1
INTERPOLATION_ERROR_FRACTION = (
    0.1  # part of the difference of a line and a cubic through samples of an input, by which it may leave both
)
UNCHECKED_INPUTS = "inputs at single samples: they may jump there"


def audit_trajectory(trajectory: Trajectory, model: Model | None) -> Audit:
    """Return the audit of a trajectory: outputs by the model, and steps of the states by its rates."""
    unchecked = [
        "drift and energy: the run computed them",
        "events, switches and statistics: a record of the run",
        UNCHECKED_INPUTS,
    ]
    if model is None:
        unchecked.insert(0, "times, states, inputs and outputs: give the model (model=)")
        return Audit("trajectory", "", (), tuple(unchecked))
    if trajectory.parameters:
        model = model.with_parameters(dict(trajectory.parameters))
    if model.states.names != trajectory.state_signals.names or model.inputs.names != trajectory.input_signals.names:
        unchecked.insert(0, "times, states, inputs and outputs: they are not those of this model")
        return Audit("trajectory", model.info.name, (), tuple(unchecked))
    if isinstance(model, Hybrid) and trajectory.events:
        unchecked.insert(0, "times, states, inputs and outputs: events changed the mode of the model during the run")
        return Audit("trajectory", model.info.name, (), tuple(unchecked))
    view = model.with_interface(None, trajectory.output_signals.names)
    steps, are_coarse = _compare_steps(trajectory, view)
    if are_coarse:
        unchecked.insert(0, "steps of the states between distant samples: give a shorter step=")
    return Audit("trajectory", model.info.name, (*_compare_outputs(trajectory, view), *steps), tuple(unchecked))


def _choose_samples(count: int, extremes: FloatArray) -> list[int]:
    """Return samples that are compared: some of them equally spaced, and those where a signal is largest."""
    spaced = np.linspace(0, count - 1, min(count, MAX_SAMPLES)).astype(int)
    largest = np.abs(extremes).argmax(axis=0) if extremes.size else np.empty(0, int)
    return sorted(set(spaced.tolist()) | set(largest.tolist()))


def _compare_outputs(trajectory: Trajectory, model: Model) -> Iterator[AuditRow]:
    """Compare outputs at samples with the model's."""
    values = np.hstack([trajectory.outputs, trajectory.states])
    sizes = np.abs(trajectory.outputs).max(axis=0, initial=0.0)
    comparisons = []
    samples = _choose_samples(len(trajectory), values)
    at_samples = model.evaluate_points(
        trajectory.times[samples], trajectory.states[samples], trajectory.inputs[samples]
    )
    for k, outputs in zip(samples, at_samples.outputs, strict=True):
        comparisons += [
            compare(f"outputs: {name} at {trajectory.times[k]:.6g} s", float(stated), float(second),
                    "evaluation of the model", 1e-7 * max(float(size), 1e-9))
            for name, stated, second, size in zip(
                trajectory.output_signals.names, trajectory.outputs[k], outputs, sizes, strict=True
            )
        ]  # fmt: skip
    yield from keep_worst(comparisons)


def _compare_steps(trajectory: Trajectory, model: Model) -> tuple[list[AuditRow], bool]:
    """Compare steps of the states with Simpson's rule over the rates, at the middle by Hermite's interpolation.

    Between samples the inputs are held at either end, or move from one to the other along a line or a cubic: the
    nearest of these counts. The difference from the trapezoidal rule says how coarse the samples are: steps that are
    too coarse are left out, which the second value says.
    """
    if not len(model.states):
        return [], False
    are_coarse = False
    sizes = model.states.scales(np.abs(trajectory.states).max(axis=0))
    chosen = _choose_samples(len(trajectory), trajectory.states)
    ends = sorted({k for j in chosen for k in (j, j + 1) if 0 < k < len(trajectory)})
    events = np.array([event.time for event in trajectory.events])
    comparisons = []
    for k in ends:
        start, end = float(trajectory.times[k - 1]), float(trajectory.times[k])
        if end <= start or ((events >= start) & (events <= end)).any():
            continue
        courses = _list_input_courses(trajectory.inputs, k)
        try:
            candidates = [_measure_step(trajectory, model, k, course) for course in courses]
        except ModelError:  # at the middle, which is not a point of the motion
            continue
        defect, coarse = min(candidates, key=lambda pair: float((np.abs(pair[0]) / sizes).max(initial=0.0)))
        changes = np.abs(trajectory.states[k] - trajectory.states[k - 1])
        if (
            np.abs(coarse)
            > COARSE_RULE_ERROR_RATIO * MAX_QUADRATURE_ERROR_RATIO * (changes + sizes * AUDIT_TRAJECTORY_TOLERANCE)
        ).any():
            are_coarse = True
            continue
        if len(candidates) > 1:  # between samples an input is a curve, of which a line and a cubic are known
            coarse = np.abs(coarse) + INTERPOLATION_ERROR_FRACTION * np.abs(candidates[0][0] - candidates[-1][0])
        i = int(np.argmax(np.abs(defect) / (sizes * AUDIT_TRAJECTORY_TOLERANCE + np.abs(coarse))))
        tolerance = AUDIT_TRAJECTORY_TOLERANCE * float(sizes[i]) + abs(float(coarse[i]))
        quantity = f"states, times, inputs: step of {model.states.names[i]} to {end:.6g} s"
        comparisons.append(compare(quantity, 0.0, float(defect[i]), "Simpson's rule over the rates", tolerance))
    return list(keep_worst(comparisons)), are_coarse


def _list_input_courses(inputs: FloatArray, k: int) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return possible inputs at the beginning, the middle and the end of the step to sample ``k``."""
    before, after = inputs[k - 1], inputs[k]
    line = before, (before + after) / 2, after
    constant_courses = [(before, before, before), (after, after, after)]
    if not 1 < k < len(inputs) - 1:
        return [line, *constant_courses]
    cubic = before, (9 * (before + after) - inputs[k - 2] - inputs[k + 1]) / 16, after
    return [line, *constant_courses, cubic]


def _measure_step(
    trajectory: Trajectory, model: Model, k: int, course: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return by how much a step is off Simpson's rule, and the difference of that from the trapezoidal rule."""
    x, after = trajectory.states[k - 1], trajectory.states[k]
    t, end = float(trajectory.times[k - 1]), float(trajectory.times[k])
    h = end - t
    first = model.evaluate(t, x, course[0]).derivatives
    last = model.evaluate(end, after, course[2]).derivatives
    middle = (x + after) / 2 + h / 8 * (first - last)
    rate = model.evaluate((t + end) / 2, middle, course[1]).derivatives
    simpson = h / 6 * (first + 4 * rate + last)
    return after - x - simpson, COARSE_RULE_ERROR_RATIO * (simpson - h / 2 * (first + last))


def audit_filtered(filtered: Filtered) -> Audit:
    """Return the audit of filtered data: of one output the likelihood from innovations and their deviations."""
    rows: list[AuditRow] = []
    texts = ["times, states, deviations, innovations and whitened: filter the data again"]
    if filtered.innovations.shape[1] == 1:
        measured = np.isfinite(filtered.whitened[:, 0]) & (filtered.whitened[:, 0] != 0)
        innovations, whitened = filtered.innovations[measured, 0], filtered.whitened[measured, 0]
        deviations = np.abs(innovations / whitened)
        second = float((-0.5 * (whitened**2 + math.log(2 * math.pi)) - np.log(deviations)).sum())
        tolerance = 1e-9 * max(abs(second), 1.0)
        way = "normal densities of the innovations"
        if measured.sum() == np.isfinite(filtered.whitened[:, 0]).sum():
            rows.append(compare("log_likelihood", filtered.log_likelihood, second, way, tolerance))
    else:
        texts.append("log_likelihood: covariances of several innovations are not in the result")
    return Audit("filtered data", "", tuple(rows), tuple(texts))


def audit_monte_carlo(study: MonteCarlo) -> Audit:
    """Return the audit of a Monte Carlo study: its runs are not in the result."""
    steps = np.diff(study.times)
    rows = []
    if len(steps):
        spacing = float(study.times[-1] - study.times[0]) / len(steps)
        off = float(np.abs(steps - spacing).max())
        rows.append(compare("times, their spacing", spacing, spacing + off, "equal steps", 1e-9 * abs(spacing)))
    runs = len(next(iter(study.samples.values()), np.empty(0)))
    for name, values in study.measures.items():
        failed = int(np.isnan(values).sum())
        stated = sum(study.failures.values())
        if runs:
            rows.append(compare(f"failures, by {name}", float(stated), float(failed), "runs without a number", 0.0))
    text = "samples, measures and courses: run a sample again with the same function"
    return Audit("Monte Carlo study", "", tuple(rows), (text,))


def audit_exponents(exponents: LyapunovExponents) -> Audit:
    """Return the audit of Lyapunov exponents against their own course."""
    last = exponents.history[-1] if len(exponents.history) else np.full_like(exponents.values, np.nan)
    size = float(np.abs(last).max(initial=0.0)) or 1.0
    rows = [
        compare(f"values[{k}]", float(stated), float(second), "the end of its history", 1e-12 * size)
        for k, (stated, second) in enumerate(zip(exponents.values, last, strict=True))
    ]
    text = "times, history, end and switches: compare two runs of different length"
    return Audit("Lyapunov exponents", "", tuple(rows), (text,))


def audit_frequency_response(response: FrequencyResponse) -> Audit:
    """Return the audit of a measured response: its model and point are not in the result."""
    text = (
        "input, frequencies, amplitudes, response, error and distortion: measure again with another signal "
        "(signal='multisine'), or draw it beside the linear model (response.plot(linear))"
    )
    return Audit("frequency response", response.input.name, (), (text,))
