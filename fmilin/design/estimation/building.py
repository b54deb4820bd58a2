"""``estimator``: a filter on a nonlinear constrained model, from what a person says of it; what it cannot observe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fmilin.design.angles import Wrapped, choose_turns
from fmilin.design.estimation.augmented import add_noise_states, augment_model
from fmilin.design.estimation.charts import CoordinateSplit, RowTerms, choose_chart
from fmilin.design.estimation.corrections import Belief, MovingHorizon
from fmilin.design.estimation.estimator import KINDS, Estimator, Settings
from fmilin.design.estimation.filter_motion import ManifoldStepper, triangular
from fmilin.design.estimation.slopes import make_evaluator
from fmilin.design.estimation.steady_start import refuse_white_feedthrough, steady_factor
from fmilin.design.estimation.step_filters import (
    NoiseOfSteps,
    build_step_filter,
    read_sensor_ends,
    require_no_choices_of_rates,
)
from fmilin.design.estimation.turn_search import search_turns
from fmilin.design.measurement import factor_covariance, initial_factor, measurement_covariance, process_directions
from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.capabilities import read_event_indicators
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Hybrid, Stepped
from fmilin.signals import FloatArray, RealArrayLike, as_numbers
from fmilin.support.deprecation import rename_keywords
from fmilin.support.kinds import kinds_checked

MAX_SUBSTEP_FRACTION = 0.1  # of the fastest mode's time, and of the motion: how long a Runge-Kutta step is
MAX_SUBSTEPS = 1000
STEP_HALVING_TOLERANCE = 1e-6  # how much halving the steps may change a sample, in sizes of the states


@rename_keywords(held="hold_noise")
@kinds_checked
def estimator(  # noqa: PLR0913 - each is a choice of its own, named where it is made
    model: Model,
    point: OperatingPoint | None = None,
    *,
    outputs: Sequence[str] | None = None,
    process_noise: Mapping[str, float] | RealArrayLike,
    measurement_noise: Mapping[str, float] | RealArrayLike,
    sample_time: float,
    kind: str = "ekf",
    initial_covariance: Mapping[str, float] | RealArrayLike | None = None,
    augment: Sequence[str] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
    lag: int = 0,
    horizon: int = 10,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    substeps: int | None = None,
    hold_noise: bool = False,
    wrapped_outputs: Wrapped = None,
) -> Estimator:
    """Return a filter on a nonlinear model, with estimates on the manifold of its constraints.

    Raises UsageError or UnknownNameError when a name is unknown, noise is not positive, a sample is too long for the
    model's fastest mode, or white noise reaches a measured output at once; ConstraintError or NumericalError when the
    point is not on the manifold, or singular, or no steady covariance exists to begin with.

    Parameters
    ----------
    model : Model
        From any source: an FMU, equations, a mechanism, an engine, a connected system.
    point : OperatingPoint, optional
        Where the estimate starts, on the manifold; where the model starts by default.
    outputs : sequence of str, optional
        What is measured; all outputs by default. Any continuous variable may be measured.
    process_noise : mapping of str to float, or array of shape (nu, nu)
        By input: the spectral density of white noise that enters through it (unit squared times seconds), or, with
        ``hold_noise``, the variance of noise that is constant over each sample (unit squared).
    measurement_noise : mapping of str to float, or array of shape (m, m)
        By output: the variance of a sample's noise. Every output needs one.
    sample_time : float, in seconds
    kind : {"ekf", "iekf", "ukf", "enkf", "particle", "mhe"}
        Extended, iterated extended or unscented, each in square roots; ensemble Kalman or bootstrap particle filter,
        of 500 members from a fixed seed (``kf.method.members``); or moving-horizon by CasADi, for equations. Sampled
        models and co-simulation FMUs step by themselves: noise of inputs is held over each sample, and
        ``initial_covariance`` is needed; co-simulation FMUs take the kinds ukf, enkf and particle.
    initial_covariance : mapping of str to float, array of shape (N,) or (P, P), optional
        Variances of states, each a guess by itself, which the manifold joins; or the matrix of the coordinates
        (``kf.states``). Without it, the steady covariance at the point, where there is one.
    augment : sequence of str
        Parameters of the model, and ``OUTPUT.bias`` of measured outputs, to be estimated with the states. Their
        process noise, by the same names, is that of a random walk; without any they are constants.
    limits : mapping of str to (float, float), optional
        Of outputs: a measurement at or beyond a limit is left out: the sensor is saturated.
    lag : int
        How many samples late a measurement may come, for :meth:`Estimator.late`.
    horizon : int
        The number of samples that moving-horizon estimation looks back.
    bounds : mapping of str to (float, float), optional
        Of states, for moving-horizon estimation.
    substeps : int, optional
        Steps of the Runge-Kutta method in a sample; as many as the motion takes by default.
    hold_noise : bool
        Whether noise of inputs is held over each sample. An output that depends on the input itself, as an
        accelerometer, sees the noise of the sample that ends with the measurement, as it sees ``u`` of
        :meth:`Estimator.step`; the correlation is taken into account. The noise of parameters and biases is a random
        walk all the same.
    wrapped_outputs : sequence of str, or mapping of str to float, optional
        Measured angles that wrap, with their turns where the unit does not tell: their innovations are taken into
        (-turn/2, turn/2]. By default those of which the model tells it: ``atan2`` in equations, a jump by a turn
        where a black box is searched for one; and outputs in units of angles that jump by a turn during the run.
        ``[]`` means none.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> kf = fl.design.estimator(
    ...     cartesian_pendulum(angle=0.3), outputs=["x"], process_noise={"F": 0.01},
    ...     measurement_noise={"x": 1e-4}, sample_time=0.02, initial_covariance={"x": 1e-2, "vx": 1e-2})
    >>> x = kf.step([0.0], [0.31])
    >>> bool(abs(x[0] ** 2 + x[1] ** 2 - 1) < 1e-12)
    True
    """
    _require_choices(kind, sample_time, lag=lag, bounds=bounds, substeps=substeps)
    if model.map_period or isinstance(model, Stepped):
        require_no_choices_of_rates(model, kind, {"augment": augment, "substeps": substeps, "bounds": bounds})
        noise_of_steps = NoiseOfSteps(process_noise, measurement_noise, initial_covariance)
        sensors = limits or {}, lag, wrapped_outputs
        return build_step_filter((model, outputs, point), float(sample_time), kind, noise_of_steps, sensors)
    point = operating_point(model) if point is None else point
    remarks = _require_rates(model)
    model = apply_point_parameters(model, point)
    model = model if outputs is None else model.with_interface(None, outputs)
    if not len(model.outputs):
        raise UsageError(f"A filter needs measurements: name the measured outputs of '{model.info.name}' (outputs=).")
    further = len(model.states)
    model = augment_model(model, augment)
    point = point.with_states(np.concatenate((point.states, model.states.starts[further:])))
    R = measurement_covariance(model.outputs, measurement_noise)
    measured = choose_turns(model.wrapped_outputs, wrapped_outputs)
    noise = process_directions(model, process_noise, augment, holds_noise=hold_noise)
    white = noise[0], 0 * noise[1] if hold_noise else noise[1]
    motion = _motion(model, point, white, substeps, sample_time, (further, None, measured.turns))
    if wrapped_outputs is None:
        turns = search_turns(motion, model, point, measured.turns)
        measured = measured.with_turns([turn or None for turn in turns.tolist()])
    T = motion.tangent(point.time, point.states, point.inputs)
    if not hold_noise:
        refuse_white_feedthrough(motion, model, point, R)
    filtered_model, renewed = model, np.zeros((0, 0))
    if hold_noise:
        filtered_model, renewed = _with_held_noise(model, noise[1])
    if initial_covariance is None:
        S = steady_factor(motion, model, point, R, (sample_time, noise[1], hold_noise))
    else:
        S = initial_factor(model.states, T, motion.chart.coordinates, initial_covariance)
    remarks = (*remarks, *warn_unobserved(motion, model, point, R))
    states, k = point.states, len(renewed)
    if k:
        states = np.concatenate((states, np.zeros(k)))
        S = np.block([[S, np.zeros((len(S), k))], [np.zeros((k, len(S))), renewed]])
        X_w = np.vstack((noise[0], np.zeros((k, noise[0].shape[1]))))
        moving = X_w.any(axis=0)
        noise = X_w[:, moving], np.zeros((len(model.inputs), int(moving.sum())))
        further_point = point.with_states(states)
        last = further, renewed, measured.turns
        motion = _motion(filtered_model, further_point, noise, motion.substeps, sample_time, last)
    start = Belief(point.time, states, S)
    method = MovingHorizon(filtered_model, horizon, bounds or {}) if kind == "mhe" else KINDS[kind]()
    ends = read_sensor_ends(model.outputs, limits or {})
    observes = wrapped_outputs is None
    settings = Settings(float(sample_time), R, ends, lag, point.inputs, method, filtered_model, measured, observes)
    return Estimator(model, kind, motion, start, settings, remarks)


def _require_choices(
    kind: str, sample_time: float, *, lag: int, bounds: Mapping[str, tuple[float, float]] | None, substeps: int | None
) -> None:
    """Reject choices that do not exist or do not fit the kind of filter."""
    if kind not in (*KINDS, "mhe"):
        raise UsageError(f"'{kind}' is not a kind of estimator: use {', '.join(KINDS)} or mhe.")
    if kind == "mhe" and lag:
        raise UsageError(
            "Late measurements are possible with ekf, iekf and ukf: leave out lag=, or choose one of these."
        )
    if kind != "mhe" and bounds:
        raise UsageError(f"Bounds of states require kind='mhe', not '{kind}'.")
    if not (np.isfinite(as_numbers(sample_time, "The sample time")) and sample_time > 0):
        raise UsageError(f"A sample time of {sample_time:g} s is not possible: give a positive one, in seconds.")
    if lag < 0 or (substeps is not None and substeps < 1):
        raise UsageError(f"lag={lag} samples, substeps={substeps}: give whole numbers, 0 or more and 1 or more.")


def _with_held_noise(model: Model, directions: FloatArray) -> tuple[Model, FloatArray]:
    """Return the model with the noise of inputs as states, and a factor of the covariance of this noise."""
    noisy = np.flatnonzero(directions.any(axis=1))
    covariance = directions @ directions.T
    factor = factor_covariance(covariance[np.ix_(noisy, noisy)], len(noisy), "The variance of the process noise")
    return add_noise_states(model, [model.inputs.names[i] for i in noisy]), triangular(factor.T)


def _require_rates(model: Model) -> tuple[Remark, ...]:
    """Reject a model with a motion that a filter cannot follow; return notes on what the filter leaves out."""
    if model.constraints.prescribing:
        names = ", ".join(model.inputs.names[i] for i in model.constraints.prescribing)
        raise UsageError(
            f"The inputs {names} prescribe motions, which move states directly. Make these motions states of the "
            "model, or take fl.design.kalman_filter on its linear model, with_prescribed_states()."
        )
    if isinstance(model, Hybrid) and len(
        read_event_indicators(model, model.start.time, model.start.states, model.start.inputs)
    ):
        return (Remark("held", "The model has events, which the filter ignores: it stays in the present mode."),)
    return ()


def _motion(
    model: Model,
    point: OperatingPoint,
    noise: tuple[FloatArray, FloatArray],
    substeps: int | None,
    sample_time: float,
    last: tuple[int, FloatArray | None, FloatArray],
) -> ManifoldStepper:
    """Return the model on its manifold, checked at a point, in states as coordinates.

    ``last``: from which number on states are always coordinates, and the factor of the noise that the last of them
    are, and the turns of the outputs.
    """
    further, renewed, turns = last
    augmenting = range(further, len(model.states))
    frame = build_frame(model, point)
    coordinates = sorted(frame.selection.independent or ())
    dependent = [i for i in range(len(model.states)) if i not in coordinates]
    chart = CoordinateSplit(coordinates, dependent, list(frame.parametrization.rows))
    evaluator, scales = make_evaluator(model, frame.invariants, turns), frame.invariants.scales
    row_terms = RowTerms(frame.invariants, point.time, point.states, point.inputs)
    if set(augmenting) & set(dependent):
        at = point.time, point.states, point.inputs
        chart = choose_chart(evaluator.surface(*at)[1], scales, len(dependent), row_terms.at(*at), augmenting)
    motion = ManifoldStepper(
        evaluator, chart, scales,
        noise=noise, substeps=substeps or 1, row_terms=row_terms, fixed_states=augmenting, renewed=renewed,
    )  # fmt: skip
    if substeps is None:
        motion.substeps = _substeps(motion, point, sample_time)
    return motion


def _substeps(motion: ManifoldStepper, point: OperatingPoint, sample_time: float) -> int:
    """Return how many steps of the Runge-Kutta method a sample takes."""
    t, x, u = point.time, point.states, point.inputs
    T = motion.tangent(t, x, u)
    A = motion.evaluator.along(t, x, u, T)[2][motion.chart.coordinates]
    fastest = float(np.max(np.abs(np.linalg.eigvals(A)), initial=0.0)) * sample_time
    count = max(1, int(np.ceil(fastest / MAX_SUBSTEP_FRACTION)))
    while count <= MAX_SUBSTEPS:
        motion.substeps = count
        once = motion.later(t, x, u, sample_time)
        motion.substeps = 2 * count
        if (
            np.max(np.abs(motion.later(t, x, u, sample_time) - once) / motion.scales, initial=0.0)
            <= STEP_HALVING_TOLERANCE
        ):
            return count
        count *= 2
    raise UsageError(
        f"A sample of {sample_time:g} s would take more than {MAX_SUBSTEPS} Runge-Kutta steps: the fastest mode of "
        f"the model takes {sample_time / fastest:.3g} s. Leave it out of the model, shorten the sample time, or set "
        "the number of steps with substeps=."
    )


OBSERVABILITY_TOLERANCE = 1e-7  # part of the largest singular value of (A - s I; C) below which a mode is not observed
DECAY_RATE_TOLERANCE = 1e-9  # of the fastest mode: a real part below minus this decays
MAX_NAMED_STATES = 4  # states of a direction that are named


def warn_unobserved(motion: ManifoldStepper, model: Model, point: OperatingPoint, R: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic on each mode that does not decay and that no output observes (Popov, Belevitch, Hautus).

    Raises NumericalError when such a mode grows.
    """
    t, x, u = point.time, point.states, point.inputs
    T, coordinates = motion.tangent(t, x, u), motion.chart.coordinates
    _, _, F, C = motion.evaluator.along(t, x, u, T)
    D, A = motion.scales[coordinates], F[coordinates] * motion.scales[coordinates] / motion.scales[coordinates][:, None]
    observed = C * D / np.sqrt(np.diag(R))[:, None]
    size = np.linalg.norm(A, 2) + 1e-300
    observed = observed * size / (np.linalg.norm(observed, 2) + 1e-300)
    remarks: list[Remark] = []
    values = np.linalg.eigvals(A)
    for value in sorted(values[values.imag >= 0], key=lambda s: -s.real):
        if value.real < -DECAY_RATE_TOLERANCE * size:
            break
        *_, small, V = np.linalg.svd(np.vstack((A - value * np.eye(len(A)), observed)))
        if small[-1] > OBSERVABILITY_TOLERANCE * size:
            continue
        direction = np.abs(T @ (V[-1].conj() * D)) / motion.scales
        largest = np.argsort(-direction)[:MAX_NAMED_STATES]
        parts = direction / direction.max()
        names = [f"{model.states.names[i]} ({parts[i]:.2g})" for i in largest if parts[i] > 1e-3]
        s = complex(*(0.0 if abs(part) < OBSERVABILITY_TOLERANCE * size else part for part in (value.real, value.imag)))
        what = f"The mode of s = {s:.4g}" if s.imag else f"The mode of s = {s.real:.4g}"
        text = (
            f"{what} is not observable from {', '.join(model.outputs.names)} at the point: it moves "
            f"{', '.join(names)}, in parts of the sizes of these states. "
        )
        if value.real > OBSERVABILITY_TOLERANCE * size:
            raise NumericalError(
                text + "It grows, and no filter can follow it: measure what it moves, or start at a point where it is "
                "observable."
            )
        remark = Remark(
            "unobserved",
            text + "Its uncertainty stays or grows unless the motion leads to points where it is observable.",
        )
        if remark not in remarks:
            remarks.append(remark)
    return tuple(remarks)
