"""Is the linear response right to first order? Its deviation must shrink with the square of the amplitude.

With N(a) the nonlinear response to the amplitude a and a L the linear one,

    D(a) = (N(a) - a L) / a = c1 + c2 a + c3 a^2 + ...

c1 is what is wrong with the linear model: zero for a right one. Three amplitudes a, a/2, a/4 give it by
Richardson's extrapolation, c1 = (D(a) - 6 D(a/2) + 8 D(a/4)) / 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import SLOPES_AT_WORST
from fmilin.motion.verifying.excitation import Excitation
from fmilin.motion.verifying.relaxation import Relaxation

FIRST = 1e-2  # size of the deviations at the first amplitude tried, in sizes of the states
BENT = 3e-3  # relative deviation at the largest amplitude above which a smaller one is tried

TRIES = 8

ROUNDED = 60.0  # times the noise of a signal over the amplitude, that c1 may hold: some four times, taken fifteenfold
MAY_BE_ROUNDING = 5e-8  # A deviation below this part of the response may be rounding: nothing is said of its order


@dataclass(frozen=True, eq=False)
class Sizes:
    """What deviations are divided by."""

    # (ns,), of y, x and out: the largest linear response to any excitation of a natural size, or the signal's own
    # natural size where that response is less than a thousandth of it
    signals: FloatArray
    counts: np.ndarray  # (ns,), coordinates and outputs that respond: those that validity is judged by
    names: tuple[str, ...]  # ns of them
    units: tuple[str, ...]  # ns of them
    noise: FloatArray  # (ns,), of the values of signals at the point, in sizes of signals: their rounding


@dataclass(frozen=True, eq=False)
class Comparison:
    """One excitation of both models."""

    excitation: Excitation
    linear: FloatArray  # (nt, ns), the response to amplitude one
    relaxation: Relaxation
    sizes: Sizes

    @property
    def times(self) -> FloatArray:
        """When responses are compared, in seconds."""
        return self.relaxation.times

    @property
    def largest(self) -> float:
        """The largest linear response of all signals to amplitude one, in their sizes; one when there is none."""
        size = float(np.max(np.abs(self.linear) / self.sizes.signals, initial=0.0))
        return size if size > 1e-12 else 1.0

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
        guess = None if first is None else amplitude * first * self.sizes.signals
        # One sweep is enough for small amplitudes: what it leaves out is the deviation of the deviation.
        response = self.relaxation.deviation(
            self.excitation, self.linear, amplitude, sweeps=sweeps, close=close, first=guess
        )
        D: FloatArray = response.values / amplitude / self.sizes.signals
        return D


@dataclass(frozen=True, slots=True)
class SlopeCheck:
    """What was found at small amplitudes."""

    amplitude: float  # a
    error: float  # the largest |c1|, relative to the largest linear response
    order: float  # log2 of the ratio of the deviations a D at a and a/2; NaN where they are rounding
    worst: int  # the signal with that error
    relative: float  # the largest |D(a)| of the signals that count, relative to their largest linear response
    deviation: FloatArray  # (nt, ns), D(a)


def compare_slopes(comparison: Comparison, natural: float) -> SlopeCheck:
    """Compare both responses at amplitudes small beside ``natural``, a size of the excited coordinate or input."""
    effect = comparison.effect
    a = FIRST / effect if effect > 0 else FIRST * natural
    a = float(2.0 ** np.round(np.log2(a)))
    largest, previous = comparison.largest, np.inf
    least = ROUNDED * float(np.max(comparison.sizes.noise, initial=0.0)) / (SLOPES_AT_WORST * largest)
    D1 = comparison.deviation(a)
    for _ in range(TRIES):
        relative = float(np.max(np.abs(D1), initial=0.0)) / largest
        if relative <= BENT or relative > 0.5 * previous or a <= least:
            break
        a *= float(2.0 ** np.floor(np.log2(max(0.5 * BENT / relative, 2.0**-4, min(least / a, 0.5)))))
        previous = relative
        D1 = comparison.deviation(a)
    D2 = comparison.deviation(a / 2)
    D4 = comparison.deviation(a / 4)
    c1 = np.max(np.abs(D1 - 6 * D2 + 8 * D4) / 3, axis=0, initial=0.0)
    c1 = np.maximum(c1 - ROUNDED * comparison.sizes.noise / a, 0.0)
    E1, E2 = float(np.max(np.abs(D1), initial=0.0)), float(np.max(np.abs(D2), initial=0.0)) / 2
    rounding = MAY_BE_ROUNDING * largest
    order = np.nan if rounding > E2 else float(np.log2(E1 / E2))
    relative = float(np.max(np.abs(D1[:, comparison.sizes.counts]), initial=0.0)) / largest
    return SlopeCheck(
        a, float(np.max(c1, initial=0.0)) / largest, order, int(np.argmax(c1)) if c1.size else 0, relative, D1
    )
