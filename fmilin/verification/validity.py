"""Whether the linear response is right to first order, and up to which amplitude it is so within 5 %.

The deviation of one that is right to first order shrinks with the square of the amplitude. With N(a) the nonlinear
response to the amplitude a and a L the linear one,

    D(a) = (N(a) - a L) / a = c1 + c2 a + c3 a^2 + ...

c1 is what is wrong with the linear model: zero for a right one. Three amplitudes a, a/2, a/4 give it by
Richardson's extrapolation, c1 = (D(a) - 6 D(a/2) + 8 D(a/4)) / 3.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fmilin.linear_model.verification import Trace, Validity
from fmilin.signals import FloatArray
from fmilin.tolerances import MAX_VERIFIED_DERIVATIVE_ERROR, MIN_OWN_RESPONSE_FRACTION, MIN_RESPONSE_FRACTION
from fmilin.verification.relaxation import Deviation, Excitation, Relaxation, ResponseError

FIRST_DEVIATION_SIZE = 1e-2  # size of the deviations at the first amplitude tried, in sizes of the states
NONLINEAR_DEVIATION_RATIO = 3e-3  # relative deviation at the largest amplitude above which a smaller one is tried
TRIES = 8
NOISE_FACTOR = (
    60.0  # times the noise of a signal over the amplitude, that c1 may hold: some four times, taken fifteenfold
)
ROUNDING_DEVIATION_RATIO = (
    5e-8  # A deviation below this part of the response may be rounding: nothing is said of its order
)


@dataclass(frozen=True, eq=False)
class SignalSizes:
    """The sizes by which deviations are divided."""

    # (ns,), of y, x and out: the largest linear response to any excitation of a natural size, or the signal's own
    # natural size where that response is less than a thousandth of it
    signals: FloatArray
    counts: np.ndarray  # (ns,), coordinates and outputs that respond: those that validity is judged by
    names: tuple[str, ...]  # ns of them
    units: tuple[str, ...]  # ns of them
    noise: FloatArray  # (ns,), of the values of signals at the point, in sizes of signals: their rounding


@dataclass(frozen=True, eq=False)
class ExcitationComparison:
    """One excitation of both models."""

    excitation: Excitation
    linear: FloatArray  # (nt, ns), the response to amplitude one
    relaxation: Relaxation
    sizes: SignalSizes

    @property
    def times(self) -> FloatArray:
        """When responses are compared, in seconds."""
        return self.relaxation.times

    def find_largest(self, signals: slice | np.ndarray) -> float:
        """Return the largest linear response of some signals to amplitude one, in their sizes; one without any."""
        size = float(np.max(np.abs(self.linear[:, signals]) / self.sizes.signals[signals], initial=0.0))
        return size if size > 1e-12 else 1.0

    def own_responses(self, least: float = MIN_OWN_RESPONSE_FRACTION) -> FloatArray:
        """Return by what the deviation of each signal is judged, (ns,): its own largest linear response, in its size.

        A signal that hardly responds to this excitation, by less than a part ``least`` of the largest response of any,
        is compared with that one, as the second-order part of its motion is all that there is.
        """
        responses = np.max(np.abs(self.linear), axis=0, initial=0.0) / self.sizes.signals
        largest = self.find_largest(self.sizes.counts)
        return np.asarray(np.where(responses > least * largest, responses, largest))

    @property
    def effect(self) -> float:
        """The size of the motion at amplitude one, in sizes of the states; 0 when the states do not move."""
        reduced = self.relaxation.reduced
        p, n = len(reduced.y0), len(reduced.x0)
        sizes = np.concatenate((reduced.y_sizes, reduced.x_sizes))
        return float(np.max(np.abs(self.linear[:, : p + n]) / sizes, initial=0.0))

    def deviation(
        self, amplitude: float, *, sweeps: int = 1, close: float = 0.0, first: FloatArray | None = None
    ) -> FloatArray:
        """Return D(a), in sizes of the signals, shape (nt, ns); ``first`` is a guess of it."""
        # One sweep is enough for small amplitudes: what it leaves out is the deviation of the deviation.
        response = self.response(amplitude, sweeps=sweeps, close=close, first=first)
        return response.values / amplitude / self.sizes.signals

    def response(self, amplitude: float, *, sweeps: int, close: float, first: FloatArray | None) -> Deviation:
        """Return the deviation as it is, and whether it settled; ``first`` is a guess of D(a)."""
        guess = None if first is None else amplitude * first * self.sizes.signals
        return self.relaxation.deviation(
            self.excitation, self.linear, amplitude, sweeps=sweeps, close=close, first=guess
        )


@dataclass(frozen=True, slots=True)
class SlopeCheck:
    """The comparison of derivatives at small amplitudes."""

    amplitude: float  # a
    error: float  # the largest |c1|, relative to the largest linear response
    order: float  # log2 of the ratio of the deviations a D at a and a/2; NaN where they are rounding
    worst: int  # the signal with that error
    relative: float  # the largest |D(a)| of a signal that counts, relative to its own largest linear response
    deviation: FloatArray  # (nt, ns), D(a)


def compare_slopes(comparison: ExcitationComparison, natural: float) -> SlopeCheck:
    """Compare both responses at amplitudes small relative to ``natural``, a size of the excited coordinate or input."""
    effect = comparison.effect
    a = FIRST_DEVIATION_SIZE / effect if effect > 0 else FIRST_DEVIATION_SIZE * natural
    a = float(2.0 ** np.round(np.log2(a)))
    largest, previous = comparison.find_largest(slice(None)), np.inf
    least = (
        NOISE_FACTOR * float(np.max(comparison.sizes.noise, initial=0.0)) / (MAX_VERIFIED_DERIVATIVE_ERROR * largest)
    )
    D1 = comparison.deviation(a)
    for _ in range(TRIES):
        relative = float(np.max(np.abs(D1), initial=0.0)) / largest
        if relative <= NONLINEAR_DEVIATION_RATIO or relative > 0.5 * previous or a <= least:
            break
        a *= float(
            2.0 ** np.floor(np.log2(max(0.5 * NONLINEAR_DEVIATION_RATIO / relative, 2.0**-4, min(least / a, 0.5))))
        )
        previous = relative
        D1 = comparison.deviation(a)
    D2 = comparison.deviation(a / 2)
    c1 = np.max(np.abs(D1 - 6 * D2 + 8 * comparison.deviation(a / 4)) / 3, axis=0, initial=0.0)
    c1 = np.maximum(c1 - NOISE_FACTOR * comparison.sizes.noise / a, 0.0)
    E1, E2 = float(np.max(np.abs(D1), initial=0.0)), float(np.max(np.abs(D2), initial=0.0)) / 2
    order = np.nan if ROUNDING_DEVIATION_RATIO * largest > E2 else float(np.log2(E1 / E2))
    counts = comparison.sizes.counts
    relative = float(np.max(np.abs(D1[:, counts]) / comparison.own_responses()[counts], initial=0.0))
    relative_errors = c1 / comparison.own_responses(MIN_RESPONSE_FRACTION)
    error = float(np.max(relative_errors, initial=0.0))
    worst = int(np.argmax(relative_errors)) if relative_errors.size else 0
    return SlopeCheck(a, error, order, worst, relative, D1)


ACCEPTED_DEVIATION_RATIO = 0.05  # deviation over the linear response of the same signal
MAX_DEVIATION_SIZE = 100.0  # deviations of the states, in their sizes, at which the search ends
MAX_SWEEPS = 6  # at most, for one amplitude, in one of several rounds
ROUNDS = 4
MARCHING_SWEEP_COUNT = 4  # sweeps that cost as much as following the motion step by step
SETTLED_CHANGE_TOLERANCE = 0.01  # change of the deviation, relative to itself, at which it is known well enough
LIMIT_BRACKET_FRACTION = (
    0.9  # the limit is found when the deviation lies between this fraction of what is accepted and all of it
)
STEPS = 24


class _ValiditySearch:
    """The relative deviation by amplitude, both signs first, then the worse one, and what was found on the way."""

    def __init__(self, comparison: ExcitationComparison, check: SlopeCheck, end: float) -> None:
        self._comparison = comparison
        self._last, self._power = (check.amplitude, check.deviation), 1
        if np.isfinite(check.order):
            self._power = int(np.clip(np.round(check.order), 2, 5)) - 1
        self._end = end
        self._responses = comparison.own_responses()[comparison.sizes.counts]
        self.sign = 0.0
        self.limited_by = ""
        self.deviations: dict[float, FloatArray] = {}

    def worse(self, amplitude: float) -> float:
        """Return the deviation for the worse of both signs, which is kept."""
        deviations = {sign: (self.relative(amplitude, sign), self.limited_by) for sign in (-1.0, 1.0)}
        self.sign = max(deviations, key=lambda sign: deviations[sign][0])
        value, self.limited_by = deviations[self.sign]
        return value

    def relative(self, amplitude: float, sign: float) -> float:
        """Return the largest deviation of a signal that counts over its own largest response; inf beyond the end."""
        sizes = self._comparison.sizes
        try:
            D = self._deviation(sign * amplitude)
            D = np.abs(D)[:, sizes.counts]
        except ResponseError as error:
            self.limited_by = str(error)
            return np.inf
        if not D.size:
            return 0.0
        D /= self._responses
        if D.max() <= 1.0:  # what has left the response says nothing of others
            self._last = (sign * amplitude, self.deviations[sign * amplitude])
        self.limited_by = [n for n, counts in zip(sizes.names, sizes.counts, strict=True) if counts][
            int(D.max(axis=0).argmax())
        ]
        return float(D.max())

    def _deviation(self, amplitude: float) -> FloatArray:
        """Return D(a), beginning with the last one, as it grows with a power of the amplitude."""
        before, D = self._last
        ratio = abs(amplitude / before)
        sign = np.sign(amplitude / before) ** self._power
        guess: FloatArray = sign * ratio**self._power * D
        for _ in range(ROUNDS):
            sweeps = int(np.clip(self._comparison.relaxation.affordable(self._end), 2, MAX_SWEEPS))
            response = self._comparison.response(amplitude, sweeps=sweeps, close=SETTLED_CHANGE_TOLERANCE, first=guess)
            guess = response.values / amplitude / self._comparison.sizes.signals
            if response.settled or self.is_over:
                break
        self.deviations[amplitude] = guess
        return guess

    @property
    def is_over(self) -> bool:
        """Whether the search has used up its evaluations."""
        return self._comparison.relaxation.affordable(self._end) < 2


def find_validity(
    comparison: ExcitationComparison, check: SlopeCheck, end: float
) -> tuple[Validity, Mapping[float, FloatArray]]:
    """Return the largest amplitude with a deviation of 5 % or less, and the deviations examined, by amplitude."""
    search = _ValiditySearch(comparison, check, end)
    return _limit(comparison, check, search), search.deviations


def _limit(comparison: ExcitationComparison, check: SlopeCheck, search: _ValiditySearch) -> Validity:
    farthest = (
        MAX_DEVIATION_SIZE / comparison.effect if comparison.effect > 0 else MAX_DEVIATION_SIZE * 1e3 * check.amplitude
    )
    low, low_value, high, limiting = check.amplitude, max(check.relative, 1e-15), np.inf, ""
    power = max(check.order - 1.0, 0.5) if np.isfinite(check.order) else 1.0
    for _ in range(STEPS):
        if high <= low * 1.02:
            break
        if search.is_over:
            return Validity(low, at_least=True, motion=comparison.effect * low)
        guess = min(_guess(low, low_value, high, power), farthest)
        value = search.relative(guess, search.sign) if search.sign else search.worse(guess)
        if value > ACCEPTED_DEVIATION_RATIO:
            high, limiting = guess, search.limited_by
            continue
        if guess >= farthest:
            return Validity(farthest, at_least=True, motion=comparison.effect * farthest)
        if value > low_value:
            power = float(np.clip(np.log(value / low_value) / np.log(guess / low), 0.25, 6.0))
        low, low_value = guess, max(value, 1e-15)
        if value >= LIMIT_BRACKET_FRACTION * ACCEPTED_DEVIATION_RATIO:
            limiting = search.limited_by
            if search.is_over or search.relative(guess, -search.sign) <= ACCEPTED_DEVIATION_RATIO:
                break
            # The other sign, better at first, is the worse one here.
            search.sign, high, limiting = -search.sign, guess, search.limited_by
            low, low_value = check.amplitude, max(check.relative, 1e-15)
    return Validity(low, limited_by=limiting, motion=comparison.effect * low)


def _guess(low: float, low_value: float, high: float, power: float) -> float:
    """Return where the deviation should be just below what is accepted, kept well inside a known bracket."""
    guess = low * float(min((0.97 * ACCEPTED_DEVIATION_RATIO / low_value) ** (1 / power), 1000.0))
    if high < np.inf and not low * 1.01 < guess < high / 1.01:
        return float(np.sqrt(low * high))
    return guess


def compute_trace(
    comparison: ExcitationComparison, amplitude: float, deviations: Mapping[float, FloatArray], *, sweeps: int
) -> Trace | None:
    """Return the strongest response at an amplitude, if any; ``sweeps`` left over examine four times the amplitude."""
    sizes = comparison.sizes
    strengths = np.where(sizes.counts, np.max(np.abs(comparison.linear), axis=0, initial=0.0) / sizes.signals, -1.0)
    if not strengths.size or strengths.max() < 0:
        return None
    reduced = comparison.relaxation.reduced
    first = len(reduced.y0) + len(reduced.x0)
    well = (
        strengths[first:].max(initial=0.0) > 0.3 * strengths.max()
    )  # an output if one responds well, else a coordinate
    i = first + int(np.argmax(strengths[first:])) if well else int(np.argmax(strengths))
    try:
        D = deviations.get(amplitude)
        D = comparison.deviation(amplitude, sweeps=MAX_SWEEPS, close=SETTLED_CHANGE_TOLERANCE) if D is None else D
    except ResponseError:
        return None
    nonlinear = amplitude * (comparison.linear[:, i] + D[:, i] * sizes.signals[i])
    farther: FloatArray | None = None
    with suppress(ResponseError):
        if sweeps >= MARCHING_SWEEP_COUNT:
            farther = comparison.relaxation.integrate_response(comparison.excitation, 4 * amplitude)[:, i] / 4
    signal, linear = (sizes.names[i], sizes.units[i]), amplitude * comparison.linear[:, i]
    return Trace(*signal, amplitude, comparison.times, linear, nonlinear, farther)
