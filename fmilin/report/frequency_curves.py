"""Frequency responses of pictures: frequencies that show every resonance, decibels, and phases without jumps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.linear_model.delayed import get_form
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.linear_model.modes import convert_to_rates
from fmilin.numerics.feedback import StateSpace, close_loop
from fmilin.signals import FloatArray

Complex = NDArray[np.complex128]
MIN_FREQUENCY_COUNT, MAX_FREQUENCY_COUNT = 800, 20_000
POINTS_PER_RADIAN = 4.0  # of the phase of the delays, so that it can be unwrapped
DELAY_TURN_COUNT = 3.0  # full turns of the longest delay that a diagram shows at least
HALF_TURN_TOLERANCE = 1.0  # degrees: a step this near to a half turn may be one up or one down
FIRST_PHASE = -80.0  # degrees: of those that are the same, the first phase is the nearest: 0, 180 down, -90, 90
MAX_LOGARITHMIC_STEP = 0.1  # between neighbours, of log G: 0.9 dB, or 6 degrees; a larger step is divided
MAX_DIVISION_COUNT = 7  # halvings of a step: near an undamped resonance G has no bound
SLOPE_TOLERANCE = 0.03  # A slope this near to a whole power of the frequency is an asymptote
MAX_EXTRA_DECADES = 4  # beyond the eigenvalues, until the response has its asymptotes
NEGLIGIBLE_EIGENVALUE = 1e-9  # of the largest: smaller ones count as zero
RESONANCE_OFFSETS = np.concatenate((-np.geomspace(10, 0.1, 15), np.geomspace(0.1, 10, 15)))  # in half widths
MIN_RELATIVE_WIDTH = 1e-4  # of a resonance, where frequencies near it are placed


def choose_frequencies(linear: LinearModel) -> FloatArray:
    """Return frequencies in rad/s at which every channel of a linear model is resolved."""
    if isinstance(linear, DelayedLinearModel):
        return _choose_between_delays(linear)
    eigenvalues = np.concatenate((linear.eigenvalues(), _find_closed_eigenvalues(linear)))
    rates = np.asarray(convert_to_rates(eigenvalues, linear.sample_time))
    rates = rates[np.isfinite(rates)]
    sizes = np.abs(rates)
    sizes = sizes[sizes > NEGLIGIBLE_EIGENVALUE * sizes.max(initial=0.0)]
    highest = np.pi / linear.sample_time if linear.sample_time else np.inf
    corners = sizes if len(sizes) else np.array([1.0 if np.isinf(highest) else highest / 10])
    low = 10.0 ** np.floor(np.log10(corners.min()) - 1)
    high = min(10.0 ** np.ceil(np.log10(corners.max()) + 1), highest)
    low, high = _extend_to_asymptotes(linear, min(low, high / 100), high, highest)
    w = np.geomspace(low, high, MIN_FREQUENCY_COUNT)
    resonances = rates[rates.imag > 0]
    widths = np.maximum(np.abs(resonances.real), MIN_RELATIVE_WIDTH * resonances.imag)
    near = (resonances.imag[:, None] + widths[:, None] * RESONANCE_OFFSETS).ravel()
    w = np.unique(np.concatenate((w, near[(near > low) & (near < high)])))
    return _divide_large_steps(linear, w)


def _find_closed_eigenvalues(linear: LinearModel) -> Complex:
    """Return the eigenvalues of a loop when it is closed; none of other models."""
    if all(remark.kind != "loop" for remark in linear.warnings):
        return np.empty(0, np.complex128)
    system = StateSpace(linear.A, linear.B, linear.C, linear.D, linear.sample_time)
    closed = close_loop(system) if len(linear.inputs) == len(linear.outputs) else None
    return np.empty(0, np.complex128) if closed is None else np.linalg.eigvals(closed).astype(np.complex128)


def _choose_between_delays(linear: DelayedLinearModel) -> FloatArray:
    """Return frequencies around the eigenvalues of the core and some turns of the longest delay."""
    poles = np.abs(np.linalg.eigvals(get_form(linear).A)) if len(linear.states) else np.empty(0)
    poles = poles[poles > NEGLIGIBLE_EIGENVALUE * poles.max(initial=0.0)]
    seconds = np.array([value for value in linear.delays.values() if value > 0])
    turns = DELAY_TURN_COUNT * 2 * np.pi / seconds.max() if len(seconds) else 0.0
    corners = [*poles.tolist(), *(1.0 / seconds).tolist()] or [1.0]
    low, high = 0.1 * min(corners), max(10.0 * float(poles.max(initial=0.0)), turns, 10.0 * min(corners))
    count = int(POINTS_PER_RADIAN * high * float(seconds.sum()))
    dense = np.linspace(low, high, min(max(count, MIN_FREQUENCY_COUNT), MAX_FREQUENCY_COUNT))
    return np.unique(np.concatenate((np.geomspace(low, high, MIN_FREQUENCY_COUNT), dense)))


def _extend_to_asymptotes(linear: LinearModel, low: float, high: float, highest: float) -> tuple[float, float]:
    """Return a range at both ends of which the magnitudes are whole powers of the frequency."""
    for _ in range(MAX_EXTRA_DECADES):
        if _has_asymptotes(linear, low):
            break
        low /= 10
    for _ in range(MAX_EXTRA_DECADES):
        if high >= highest or _has_asymptotes(linear, high):
            break
        high = min(10 * high, highest)
    return low, high


def _has_asymptotes(linear: LinearModel, frequency: float) -> bool:
    G = np.abs(_respond(linear, np.array([frequency, 1.01 * frequency])))
    with np.errstate(all="ignore"):
        slopes = np.log(G[..., 1] / G[..., 0]) / np.log(1.01)
    slopes = slopes[np.isfinite(slopes)]
    return bool(np.all(np.abs(slopes - np.round(slopes)) < SLOPE_TOLERANCE))


def _divide_large_steps(linear: LinearModel, w: FloatArray) -> FloatArray:
    """Return frequencies between which no response changes much, except at resonances without damping."""
    G = _respond(linear, w)
    for _ in range(MAX_DIVISION_COUNT):
        with np.errstate(all="ignore"):
            steps = np.abs(np.log(G[..., 1:] / G[..., :-1]))
        large = np.any(np.isfinite(steps) & (steps > MAX_LOGARITHMIC_STEP), axis=(0, 1))
        if not large.any() or len(w) + int(large.sum()) > MAX_FREQUENCY_COUNT:
            break
        between = np.sqrt(w[:-1] * w[1:])[large]
        order = np.argsort(np.concatenate((w, between)), kind="stable")
        w = np.concatenate((w, between))[order]
        G = np.concatenate((G, _respond(linear, between)), axis=-1)[..., order]
    return w


def _respond(linear: LinearModel, w: FloatArray) -> Complex:
    """Return the response at frequencies; NaN where a frequency is an eigenvalue."""
    try:
        return linear.frequency_response(w)
    except np.linalg.LinAlgError:
        G = np.full((len(linear.outputs), len(linear.inputs), len(w)), np.nan, np.complex128)
        for k, frequency in enumerate(w):
            try:
                G[..., k] = linear.frequency_response(np.array([frequency]))[..., 0]
            except np.linalg.LinAlgError:
                continue
        return G


def convert_to_decibels(magnitude: FloatArray) -> FloatArray:
    """Return 20 log10 of magnitudes; NaN where they are zero."""
    with np.errstate(divide="ignore"):
        decibels = 20 * np.log10(magnitude)
    return np.asarray(np.where(np.isfinite(decibels), decibels, np.nan))


def unwrap_phase(response: Complex) -> FloatArray:
    """Return the phase of one channel in degrees without jumps, the first one in (-260, 100]."""
    phase = np.full(len(response), np.nan)
    good = np.isfinite(response) & (response != 0)
    if not good.any():
        return phase
    angles = _unwrap(response[good])
    phase[good] = angles - 360.0 * np.round((angles[0] - FIRST_PHASE) / 360.0)
    return phase


def _unwrap(response: Complex) -> FloatArray:
    """Return angles in degrees, down by 180 over an undamped resonance and up over an undamped zero."""
    steps = np.degrees(np.angle(response[1:] / response[:-1]))
    sizes = np.log(np.abs(response))
    for k in np.flatnonzero(np.abs(steps) > 180.0 - HALF_TURN_TOLERANCE).tolist():
        before, after = max(k - 3, 0), min(k + 4, len(response) - 1)
        is_resonance = sizes[k] + sizes[k + 1] > sizes[before] + sizes[after]
        if is_resonance == (steps[k] > 0):
            steps[k] -= np.copysign(360.0, steps[k])
    return np.concatenate(([np.degrees(np.angle(response[0]))], steps)).cumsum()
