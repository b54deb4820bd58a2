"""Verify a linear model against the nonlinear one it was made from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError, NumericalError, UsageError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.linear_model.verification import Channel, Validity, Verification
from fmilin.model.interface import Model
from fmilin.model.locks import one_at_a_time
from fmilin.model.stepping import Stepped
from fmilin.signals import FloatArray
from fmilin.tolerances import (
    MAX_VERIFIED_DERIVATIVE_ERROR,
    MIN_RESPONSE_FRACTION,
    SAME_POINT_TOLERANCE,
    VERIFIED_DERIVATIVE_TOLERANCE,
)
from fmilin.verification.between_delays import COMPARED_BETWEEN_DELAYS, cut_open
from fmilin.verification.drift import DeviationIntegrator, at_rest, drift_channel, measure_noise
from fmilin.verification.map_responses import MapResponses, count_samples, list_map_excitations
from fmilin.verification.reduced import ReducedModel, reduce_model
from fmilin.verification.relaxation import (
    Excitation,
    Relaxation,
    ResponseError,
    choose_horizon,
    excitations,
    fastest_period,
    slowest_period,
)
from fmilin.verification.validity import ExcitationComparison, SignalSizes, compare_slopes, compute_trace, find_validity

MAX_EVALUATIONS, EVALUATIONS_PER_SIGNAL = 5000, 200
"""Evaluations of the nonlinear model: in all, and in addition for each state and input. Evaluations that the verdict
needs are always made; limits of validity are searched for with the remaining ones.
"""

CHANNEL_BUDGET_FRACTION, DRIFT_BUDGET_FRACTION = 0.9, 0.7
"""Part of them for responses to excitations; the motion of a point that is not an equilibrium takes its own."""

PREFERRED_NODE_COUNT, MIN_NODE_COUNT, MAX_NODE_COUNT = 24, 12, 400
"""Intervals between evaluations on the way of a response: wanted at least, put up with, and at most."""

PER_PERIOD = 8.0  # of them in a period of the fastest mode that swings
SWEEP_COUNT = 11  # along each response, for the verdict and the limit
MAX_RESPONSE_EVALUATIONS = 1_000_000
"""For all responses together: about a quarter of an hour of a model that takes a millisecond."""

AMPLIFICATION_TIMES = 8  # times at which it is asked by how much the linear model amplifies
FORECAST_CHANNEL_COUNT = 1  # channels after which the number of evaluations for all of them is estimated


@one_at_a_time
def verify(
    model: Model,
    linear: LinearModel,
    *,
    horizon: float | None = None,
    progress: Callable[[float], None] = lambda _: None,
    stop: Callable[[], bool] = lambda: False,
) -> Verification:
    """Return a comparison of a linear model with the nonlinear one on the manifold, channel by channel.

    Channels are an offset of each independent coordinate, a step of each input, sines of each input around the
    model's own frequencies, the values at the point and, where the point is not an equilibrium, the undisturbed motion.
    A channel passes when the deviation from the nonlinear response shrinks with the square of the amplitude (a wrong
    linear model shrinks with the amplitude itself); then the amplitude is searched for up to which coordinates and
    outputs stay right, each within 5 % of its own largest response in that channel. Signals that respond with less
    than a hundredth of the largest response, or a thousandth of it at small amplitudes, are compared with that one.

    Away from equilibria the nonlinear model is frozen: its motion at the point, f0, is subtracted. The linear
    model's A, B, C, D and T mean just that.

    Sampled models (:class:`fmilin.models.DiscreteModel`, FMUs with discrete states) are compared sample by sample with
    their linear models; their increment at a point that is not a fixed point is subtracted in the same way.

    Models with delays are compared between these: a delayed signal is excited like an input, and what is delayed is an
    output. The delays are exact in both.

    Parameters
    ----------
    model : Model
    linear : LinearModel
        Made from the model, at any point.
    horizon : float, optional
        How long responses are followed, in seconds; by default two periods of the slowest mode, fewer where the
        model is unstable or has much faster modes, too.
    progress : callable, optional
        Takes the fraction done after each channel.
    stop : callable, optional
        Asked after each channel; once it says yes, the rest is left out, with a diagnostic ``interrupted``.

    Raises
    ------
    UsageError
        When ``linear`` is not a linear model of ``model``, was sampled afterwards, or has too many channels.
    ConstraintError
        When the point of ``linear`` violates the constraints of ``model``.
    NumericalError
        When ``linear`` treats more states as independent than the constraints leave.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> from fmilin.verification.procedure import verify
    >>> model = cartesian_pendulum()
    >>> verify(model, fl.linearize(model)).passed
    True
    """
    if isinstance(model, Stepped):
        raise UsageError(
            f"'{model.info.name}' is a co-simulation FMU, which fmilin does not integrate. Its linear model is "
            "compared with held-out responses when it is made: see the note in the result."
        )
    if horizon is not None and not (np.isfinite(horizon) and horizon > 0):
        raise UsageError(f"The horizon must be a positive number of seconds, not {horizon:g}.")
    if isinstance(linear, DelayedLinearModel):
        between, core = cut_open(model, linear)
        verification = verify(between, core, horizon=horizon, progress=progress, stop=stop)
        return replace(verification, remarks=(COMPARED_BETWEEN_DELAYS, *verification.remarks))
    shortened = False
    while True:
        try:
            return _verify(model, linear, horizon, progress, stop)
        except _LostInRoundingError as lost:
            if horizon is not None and not shortened:
                raise UsageError(
                    f"Over {lost.duration:.3g} s rounding of the model hides the response of the linear model: no "
                    "amplitude is both small enough and measurable. Choose a shorter time, "
                    f"horizon={lost.duration / 8:.2g}."
                ) from None
            horizon, shortened = lost.duration / 8, True


class _LostInRoundingError(FmilinError):
    """The responses are too long to tell a wrong linear model from rounding."""

    def __init__(self, duration: float) -> None:
        super().__init__(f"Over {duration:.3g} s rounding hides the response.")
        self.duration = duration


def _verify(
    model: Model,
    linear: LinearModel,
    horizon: float | None,
    progress: Callable[[float], None],
    stop: Callable[[], bool],
) -> Verification:
    reduced = reduce_model(model, linear)
    if linear.sample_time > 0:
        return _verify_map(reduced, linear, horizon, progress, stop)
    duration = horizon if horizon is not None else choose_horizon(linear, reduced.y_sizes)
    rates = linear.eigenvalues().real if len(linear.states) else np.zeros(0)
    integrator = DeviationIntegrator(reduced, float(-np.min(rates, initial=0.0)))
    rests = at_rest(linear, reduced.y_sizes)
    budget = (MAX_EVALUATIONS + EVALUATIONS_PER_SIGNAL * (len(model.states) + len(linear.inputs))) * (
        CHANNEL_BUDGET_FRACTION if rests else DRIFT_BUDGET_FRACTION
    )
    all_excitations = excitations(linear, duration)
    before = reduced.evaluations  # an evaluation takes several where a model needs them to find the states
    with contextlib.suppress(NumericalError, ModelError):
        reduced.evaluate(reduced.y0 + 1e-3 * reduced.y_sizes, reduced.u0)
    cost = float(max(reduced.evaluations - before, 1))
    nodes, resolved = _nodes(linear, duration, budget / (SWEEP_COUNT * cost * max(len(all_excitations), 1)))
    if horizon is None and resolved < 1.0:
        duration *= resolved
        all_excitations = excitations(linear, duration)
    relaxation = Relaxation(reduced, linear, duration, nodes, cost)
    responses = [relaxation.linear_response(excitation) for excitation in all_excitations]
    sizes = _sizes(reduced, linear, all_excitations, responses, integrator.output_noise)
    comparisons = [
        ExcitationComparison(excitation, response, relaxation, sizes)
        for excitation, response in zip(all_excitations, responses, strict=True)
    ]
    channels = [_point_channel(reduced, linear)]
    channels += _compare_channels(comparisons, linear, integrator.noise, budget, progress, stop)
    if len(channels) == len(all_excitations) + 1 and not rests:
        channels.append(drift_channel(linear, integrator, duration))
    omitted = len(all_excitations) + 1 + (not rests) - len(channels)
    remarks = (*reduced.remarks, *_remarks(linear, duration, omitted))
    return Verification(tuple(channels), duration, reduced.evaluations, reduced.model.info, remarks)


def _verify_map(
    reduced: ReducedModel,
    linear: LinearModel,
    horizon: float | None,
    progress: Callable[[float], None],
    stop: Callable[[], bool],
) -> Verification:
    """Compare the map with its linear model, sample by sample."""
    samples = count_samples(linear, horizon)
    all_excitations = list_map_excitations(linear, samples)
    before = reduced.evaluations
    with contextlib.suppress(NumericalError, ModelError):
        reduced.evaluate(reduced.y0 + 1e-3 * reduced.y_sizes, reduced.u0)
    responses = MapResponses(reduced, linear, samples, float(max(reduced.evaluations - before, 1)))
    increment_noise, output_noise = measure_noise(reduced)
    linear_responses = [responses.linear_response(excitation) for excitation in all_excitations]
    sizes = _sizes(reduced, linear, all_excitations, linear_responses, output_noise)
    comparisons = [
        ExcitationComparison(excitation, response, responses, sizes)
        for excitation, response in zip(all_excitations, linear_responses, strict=True)
    ]
    budget = CHANNEL_BUDGET_FRACTION * (
        MAX_EVALUATIONS + EVALUATIONS_PER_SIGNAL * (len(reduced.x0) + len(linear.inputs))
    )
    noise = increment_noise / linear.sample_time
    channels = [_point_channel(reduced, linear)]
    channels += _compare_channels(comparisons, linear, noise, budget, progress, stop)
    duration = samples * linear.sample_time
    remarks = [*reduced.remarks]
    omitted = len(all_excitations) + 1 - len(channels)
    if omitted:
        remarks.append(Remark("interrupted", f"The comparison was interrupted before these channels: {omitted}."))
    return Verification(tuple(channels), duration, reduced.evaluations, reduced.model.info, tuple(remarks))


def _compare_channels(
    comparisons: Sequence[ExcitationComparison],
    linear: LinearModel,
    noise: FloatArray,
    budget: float,
    progress: Callable[[float], None],
    stop: Callable[[], bool],
) -> list[Channel]:
    """Return the channels of all excitations, or of those before ``stop``."""
    channels: list[Channel] = []
    count = len(comparisons)
    for done, comparison in enumerate(comparisons):
        evaluations = comparison.relaxation.reduced.evaluations
        end = evaluations + (budget - evaluations) / (count - done)
        if done >= FORECAST_CHANNEL_COUNT:
            _require_affordable(evaluations / done, count, float(comparison.times[-1]))
        channels.append(_channel(comparison, linear, noise, end))
        progress((done + 1) / count)
        if stop():
            break
    return channels


def _nodes(linear: LinearModel, duration: float, affordable: float) -> tuple[int, float]:
    """Return in how many intervals the nonlinear model is evaluated, and the part of the duration that they resolve."""
    period = fastest_period(linear)
    preferred = max(PREFERRED_NODE_COUNT, PER_PERIOD * duration / period if period > 0 else 0.0)
    nodes = int(np.clip(np.ceil(min(preferred, max(affordable, MIN_NODE_COUNT))), MIN_NODE_COUNT, MAX_NODE_COUNT))
    return nodes, min(1.0, 2 * nodes / preferred)


def _require_affordable(each: float, channels: int, duration: float) -> None:
    """Reject what would take hours, after the first responses."""
    if each * channels <= MAX_RESPONSE_EVALUATIONS:
        return
    affordable = 0.5 * duration * MAX_RESPONSE_EVALUATIONS / (each * channels)
    raise UsageError(
        f"Following the {channels} channels for {duration:.3g} s each would need about {each * channels:.2g} "
        f"evaluations of the nonlinear model; the limit is {MAX_RESPONSE_EVALUATIONS:.2g}. Choose a shorter time, "
        f"horizon={affordable:.1g}, or verify a smaller model of the same kind, with fewer elements or inputs."
    )


def _remarks(linear: LinearModel, duration: float, omitted: int) -> Iterator[Remark]:
    """Say what was left out, and where the responses are too short to show the slowest modes."""
    if omitted:
        yield Remark("interrupted", f"The comparison was interrupted before these channels: {omitted}.")
    period = slowest_period(linear)
    if duration < 0.5 * period:
        yield Remark(
            "horizon",
            f"The responses were followed for {duration:.3g} s, {duration / period:.2g} of the slowest mode's period: "
            "much faster modes, or the number of channels, make longer ones expensive. Only the beginning of slow "
            "motions was compared; follow them longer with horizon=.",
        )


def _channel(comparison: ExcitationComparison, linear: LinearModel, noise: FloatArray, end: float) -> Channel:
    excitation, sizes = comparison.excitation, comparison.sizes
    signal = (linear.states if excitation.kind == "offset" else linear.inputs)[excitation.index]
    natural = _natural(comparison.relaxation.reduced, excitation)
    frequency = excitation.frequency if excitation.kind == "sine" else None
    allowed = _tolerance(linear, comparison, noise)
    try:
        check = compare_slopes(comparison, natural)
    except ResponseError as error:
        nothing = (0.0, np.inf, np.nan)
        return Channel(excitation.kind, signal.name, signal.unit, frequency, *nothing, allowed, str(error))
    if check.error > allowed:
        rounding = _rounding(comparison, noise) / check.amplitude
        if rounding > MAX_VERIFIED_DERIVATIVE_ERROR:
            raise _LostInRoundingError(float(comparison.times[-1]))
        allowed = min(allowed + rounding, MAX_VERIFIED_DERIVATIVE_ERROR)
    validity: Validity | None = None
    deviations: Mapping[float, FloatArray] = {}
    if check.error <= allowed:
        validity, deviations = find_validity(comparison, check, end)
    amplitude = check.amplitude if validity is None else validity.limit
    more = validity is not None and not validity.at_least
    trace = compute_trace(
        comparison, amplitude, deviations, sweeps=comparison.relaxation.affordable(end) if more else 0
    )
    worst, checked = sizes.names[check.worst] if sizes.names else "", (check.amplitude, check.error, check.order)
    return Channel(excitation.kind, signal.name, signal.unit, frequency, *checked, allowed, worst, validity, trace)


def _tolerance(linear: LinearModel, comparison: ExcitationComparison, noise: FloatArray) -> float:
    """Return what a slope error may be: more where the matrices are less accurate, or the model is noisy."""
    matrices = max(getattr(linear.accuracy, name) for name in "ABCDT")
    noisy = float(np.max(noise, initial=0.0)) * 1e3 * comparison.times[-1]
    return float(min(VERIFIED_DERIVATIVE_TOLERANCE + 100 * matrices + 100 * noisy, MAX_VERIFIED_DERIVATIVE_ERROR))


def _rounding(comparison: ExcitationComparison, noise: FloatArray) -> float:
    """Return what rounding of the rates makes of a slope error at amplitude one, at most."""
    # The linear model follows it; the extrapolation from three amplitudes takes it some ten times, as the smallest is a
    # quarter of the first, and three are for what the sizes of rows hide.
    sizes, effect = comparison.relaxation.reduced.y_sizes, comparison.effect
    if not effect or not len(sizes):
        return 0.0
    powers = comparison.relaxation.compute_gains(AMPLIFICATION_TIMES, sizes)
    gain = max(1.0, *(float(np.abs(power).sum(axis=1).max()) for power in powers))
    return 30 * float(np.max(noise, initial=0.0)) * float(comparison.times[-1]) * gain / effect


def _natural(reduced: ReducedModel, excitation: Excitation) -> float:
    return float((reduced.y_sizes if excitation.kind == "offset" else reduced.u_sizes)[excitation.index])


def _sizes(
    reduced: ReducedModel,
    linear: LinearModel,
    all_excitations: Sequence[Excitation],
    responses: Sequence[FloatArray],
    output_noise: FloatArray,
) -> SignalSizes:
    """Return the size of each signal: its largest linear response to excitations of natural sizes."""
    p, n, ny = len(reduced.y0), len(reduced.x0), len(reduced.out0)
    largest = np.zeros(p + n + ny)
    for excitation, response in zip(all_excitations, responses, strict=True):
        natural = _natural(reduced, excitation)
        largest = np.maximum(largest, natural * np.max(np.abs(response), axis=0, initial=0.0))
    visible = (linear.C, linear.errors.C), (linear.D, linear.errors.D)
    C, D = (np.where(np.abs(matrix) > 10 * error, np.abs(matrix), 0.0) for matrix, error in visible)
    outputs = C @ reduced.y_sizes + D @ reduced.u_sizes
    outputs = np.where(outputs > 1e-9 * reduced.out_sizes, outputs, reduced.out_sizes)
    natural_sizes = np.concatenate((reduced.y_sizes, reduced.x_sizes, outputs))
    responds = largest > MIN_RESPONSE_FRACTION * natural_sizes
    counts = responds.copy()
    counts[p : p + n] = False
    signals = [*linear.states, *linear.full_states, *linear.outputs]
    names, units = (tuple(getattr(signal, part) for signal in signals) for part in ("name", "unit"))
    sizes = np.where(responds, largest, natural_sizes)
    noise = np.concatenate((np.spacing(np.abs(reduced.y0)), np.spacing(np.abs(reduced.x0)), output_noise))
    return SignalSizes(sizes, counts, names, units, noise / sizes)


def verify_linear_model(linear: LinearModel, model: Model, *, horizon: float | None = None) -> Verification:
    """Return :func:`verify` of a linear model, which comes first."""
    return verify(model, linear, horizon=horizon)


def _point_channel(reduced: ReducedModel, linear: LinearModel) -> Channel:
    """Compare y0, f0 and the outputs at the point with what the nonlinear model says."""
    point_outputs = linear.point.outputs
    declared = [point_outputs.get(n, value) for n, value in zip(linear.outputs.names, reduced.out0, strict=True)]
    speed = np.maximum(np.abs(reduced.f0), 1e-3 * reduced.y_sizes)
    # Modes and other forms of the states count from wherever they like: y0 is not a value of the model.
    are_states = all(linear.full_states.has(name) for name in linear.states.names)
    counts = are_states or linear.method.coordinates in ("named", "tangent")
    gaps = counts * np.abs(linear.y0 - reduced.y0), np.abs(linear.f0 - reduced.f0), np.abs(declared - reduced.out0)
    sizes = reduced.y_sizes, speed, reduced.out_sizes
    errors = np.concatenate([gap / size for gap, size in zip(gaps, sizes, strict=True)])
    names = (*linear.states.names, *(f"der({n})" for n in linear.states.names), *linear.outputs.names)
    error = float(np.max(errors, initial=0.0))
    worst = names[int(np.argmax(errors))] if names else ""
    return Channel("point", "", "", None, 0.0, error, np.nan, SAME_POINT_TOLERANCE, worst)
