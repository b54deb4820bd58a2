"""Filters on models that step from sample to sample by themselves: maps, and co-simulation FMUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fmilin.design.angles import Wrapped, choose_turns
from fmilin.design.estimation.corrections import Belief
from fmilin.design.estimation.estimator import KINDS, Estimator, Settings
from fmilin.design.estimation.filter_motion import triangular
from fmilin.design.estimation.step_motion import StepMotion
from fmilin.design.measurement import factor_covariance, initial_factor, measurement_covariance, process_directions
from fmilin.errors import UsageError
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray, RealArrayLike, Signals, limits_by_name

SAMPLE_TIME_TOLERANCE = 1e-9  # of a sample
REPETITION_TOLERANCE = 1e-3  # of a step: a step that begins at declared states may differ by the solver's error
NEGLIGIBLE_STEP_SIZE = 1e-6  # in sizes of the states


class NoiseOfSteps(NamedTuple):
    """The noise of inputs, held over each sample, that of measurements, and the initial covariance."""

    process: Mapping[str, float] | RealArrayLike
    measurement: Mapping[str, float] | RealArrayLike
    initial: Mapping[str, float] | RealArrayLike | None


def require_no_choices_of_rates(model: Model, kind: str, choices: Mapping[str, object]) -> None:
    """Reject what has a meaning for models of rates alone."""
    named = [f"{name}=" for name, value in choices.items() if value]
    if kind == "mhe":
        named.append("kind='mhe'")
    if named:
        raise UsageError(
            f"'{model.info.name}' steps by itself: {', '.join(named)} is for models of rates. Leave it out."
        )


def read_sensor_ends(outputs: Signals, limits: Mapping[str, tuple[float, float]]) -> FloatArray:
    """Return the limits of sensors, shape (2, m)."""
    ends = np.tile([[-np.inf], [np.inf]], (1, len(outputs)))
    for name, pair in limits_by_name(limits).items():
        ends[:, outputs.index_of(name, "a measured output")] = pair
    return ends


def build_step_filter(
    source: tuple[Model, Sequence[str] | None, OperatingPoint | None],
    sample_time: float,
    kind: str,
    noise: NoiseOfSteps,
    sensors: tuple[Mapping[str, tuple[float, float]], int, Wrapped],
) -> Estimator:
    """Return a filter; ``source``: model, measured outputs and point, ``sensors``: limits, lag, outputs that wrap."""
    model, outputs, point = source
    limits, lag, wrapped_outputs = sensors
    model = model if outputs is None else model.with_interface(None, outputs)
    if point is None:
        point = model.start if isinstance(model, Stepped) else operating_point(model)
    if not len(model.outputs):
        raise UsageError(f"A filter needs measurements: name the measured outputs of '{model.info.name}' (outputs=).")
    _require_fitting(model, sample_time, noise)
    if isinstance(model, Stepped):
        _require_repeating(model, model, point, kind, sample_time)
    R = measurement_covariance(model.outputs, noise.measurement)
    measured = choose_turns(model.wrapped_outputs, wrapped_outputs)
    directions = process_directions(model, noise.process, (), holds_noise=True)[1]
    noisy = np.flatnonzero(directions.any(axis=1)).tolist()
    covariance = (directions @ directions.T)[np.ix_(noisy, noisy)]
    renewed = triangular(factor_covariance(covariance, len(noisy), "The variance of the process noise").T)
    motion = StepMotion(model, point, noisy, renewed, sample_time)
    N, k = len(model.states), len(noisy)
    S = np.zeros((N + k, N + k))
    S[:N, :N] = initial_factor(model.states, np.eye(N), list(range(N)), noise.initial or {})
    S[N:, N:] = renewed
    start = Belief(point.time, np.concatenate((point.states, np.zeros(k))), S)
    ends, observes = read_sensor_ends(model.outputs, limits), wrapped_outputs is None
    settings = Settings(sample_time, R, ends, lag, point.inputs, KINDS[kind](), model, measured, observes)
    return Estimator(model, kind, motion, start, settings)


def _require_fitting(model: Model, sample_time: float, noise: NoiseOfSteps) -> None:
    """Reject models with constraints, other sample times and what would need a steady covariance."""
    name = model.info.name
    if len(model.constraints):
        raise UsageError(f"The states of '{name}' are constrained: filters on models that step need independent ones.")
    if model.map_period and abs(model.map_period - sample_time) > SAMPLE_TIME_TOLERANCE * sample_time:
        raise UsageError(
            f"'{name}' is sampled every {model.map_period:g} s, and sample_time={sample_time:g} s is not that. For "
            "several samples at once use model.iterate(count)."
        )
    if noise.initial is None:
        raise UsageError(
            f"'{name}' steps by itself: no steady covariance is computed of it. Give initial_covariance= by state."
        )


def _require_repeating(model: Model, stepped: Stepped, point: OperatingPoint, kind: str, sample_time: float) -> None:
    """Reject FMUs that a filter cannot move, and those of which a step depends on more than states and inputs.

    Every step begins at the time of the point: two steps in a row are compared with two that begin anew.
    """
    name = model.info.name
    if kind in ("ekf", "iekf"):
        raise UsageError(f"'{name}' brings its own solver, and its steps have no derivatives: take kind='ukf'.")
    if reason := stepped.why_not_settable(point):
        raise UsageError(
            f"The states of the co-simulation FMU '{name}' cannot be set, so no filter can move them: {reason} Take "
            "fl.design.kalman_filter on its linear model."
        )
    both = stepped.respond(point, np.tile(point.inputs, (2, 1)), sample_time).states
    again = stepped.respond(replace(point, states=both[0]), point.inputs[None], sample_time).states[0]
    allowed = REPETITION_TOLERANCE * np.abs(both[1] - both[0])
    allowed += NEGLIGIBLE_STEP_SIZE * model.states.scales(point.states)
    worst = int(np.argmax(np.abs(again - both[1]) - allowed))
    if abs(again[worst] - both[1][worst]) > allowed[worst]:
        raise UsageError(
            f"A step of the co-simulation FMU '{name}' depends on more than its states and inputs (on time, or on what "
            f"it does not declare): '{model.states.names[worst]}' arrives at {both[1][worst]:.9g} or at "
            f"{again[worst]:.9g}. Take fl.design.kalman_filter on its linear model."
        )
