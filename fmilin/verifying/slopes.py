"""Is the linear response right to first order? Its deviation must shrink with the square of the amplitude.

With N(a) the nonlinear response to the amplitude a and a L the linear one,

    D(a) = (N(a) - a L) / a = c1 + c2 a + c3 a^2 + ...

c1 is what is wrong with the linear model: zero for a right one. Three amplitudes a, a/2, a/4 give it by
Richardson's extrapolation, c1 = (D(a) - 6 D(a/2) + 8 D(a/4)) / 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.signals import FloatArray
from fmilin.verifying.excitation import Excitation
from fmilin.verifying.integration import Integrator

__all__ = ["Comparison", "Sizes", "SlopeCheck", "compare_slopes"]

FIRST = 1e-2
"""Size of the deviations at the first amplitude tried, in sizes of the states."""

BENT = 3e-3
"""Relative deviation at the largest amplitude above which a smaller one is tried."""

TRIES = 8

FEW = 4
"""Every fourth sample is enough to compare slopes at."""

INTEGRATED = 1e-9
"""Tolerance of the integration, relative to the size of the response."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """What deviations are divided by.

    Parameters
    ----------
    signals : array, shape (ns,)
        Of y, x and out: the largest linear response to any excitation of a natural size, or the signal's own
        natural size where that response is less than a thousandth of it.
    counts : array of bool, shape (ns,)
        Coordinates and outputs that respond: those that validity is judged by.
    names, units : tuple of str
        ns of them.
    """

    signals: FloatArray
    counts: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One excitation of both models.

    Parameters
    ----------
    excitation : Excitation
    linear : array, shape (nt, ns)
        The response to amplitude one.
    times : array, shape (nt,)
    integrator : Integrator
    sizes : Sizes
    """

    excitation: Excitation
    linear: FloatArray
    times: FloatArray
    integrator: Integrator
    sizes: Sizes

    @property
    def largest(self) -> float:
        """The largest linear response of all signals to amplitude one, in their sizes; one when there is none."""
        size = float(np.max(np.abs(self.linear) / self.sizes.signals, initial=0.0))
        return size if size > 1e-12 else 1.0

    @property
    def effect(self) -> float:
        """The size of the motion at amplitude one, in sizes of the states; 0 when the states do not move."""
        reduced = self.integrator.reduced
        p, n = len(reduced.y0), len(reduced.x0)
        sizes = np.concatenate((reduced.y_sizes, reduced.x_sizes))
        return float(np.max(np.abs(self.linear[:, : p + n]) / sizes, initial=0.0))

    def deviation(self, amplitude: float, *, tolerance: float, every: int) -> FloatArray:
        """Return D(a) at every so many of the times, in sizes of the signals, shape (nt, ns).

        Raises
        ------
        ResponseError
            When the nonlinear model has no response at this amplitude.
        """
        nonlinear = self.nonlinear(amplitude, tolerance=tolerance, every=every)
        D: FloatArray = (nonlinear / amplitude - self.linear[::every]) / self.sizes.signals
        return D

    def nonlinear(self, amplitude: float, *, tolerance: float, every: int = 1) -> FloatArray:
        """Return the nonlinear response, shape (nt, ns).

        Raises
        ------
        ResponseError
            When there is none at this amplitude.
        """
        unit = max(self.effect * abs(amplitude), 1e-12)
        return self.integrator.response(self.excitation, amplitude, self.times[::every], unit=unit, tolerance=tolerance)


@dataclass(frozen=True, slots=True)
class SlopeCheck:
    """What was found at small amplitudes.

    Parameters
    ----------
    amplitude : float
        a.
    error : float
        The largest |c1|, relative to the largest linear response.
    order : float
        log2 of the ratio of the deviations a D at a and a/2; NaN where they are rounding.
    worst : int
        The signal with that error.
    relative : float
        The largest |D(a)| of the signals that count, relative to their largest linear response.
    """

    amplitude: float
    error: float
    order: float
    worst: int
    relative: float


def compare_slopes(comparison: Comparison, natural: float) -> SlopeCheck:
    """Compare both responses at small amplitudes.

    Parameters
    ----------
    comparison : Comparison
    natural : float
        A size of the excited coordinate or input, in its unit.

    Raises
    ------
    ResponseError
        When the nonlinear model has no response even to the smallest amplitude.
    """
    effect = comparison.effect
    a = FIRST / effect if effect > 0 else FIRST * natural
    a = float(2.0 ** np.round(np.log2(a)))
    largest, previous = comparison.largest, np.inf
    D1 = comparison.deviation(a, tolerance=INTEGRATED, every=FEW)
    for _ in range(TRIES):
        relative = float(np.max(np.abs(D1), initial=0.0)) / largest
        if relative <= BENT or relative > 0.5 * previous:
            break
        a *= float(2.0 ** np.floor(np.log2(max(0.5 * BENT / relative, 2.0**-4))))
        previous = relative
        D1 = comparison.deviation(a, tolerance=INTEGRATED, every=FEW)
    D2 = comparison.deviation(a / 2, tolerance=INTEGRATED, every=FEW)
    D4 = comparison.deviation(a / 4, tolerance=INTEGRATED, every=FEW)
    c1 = np.max(np.abs(D1 - 6 * D2 + 8 * D4) / 3, axis=0, initial=0.0)
    E1, E2 = float(np.max(np.abs(D1), initial=0.0)), float(np.max(np.abs(D2), initial=0.0)) / 2
    rounding = 50 * INTEGRATED * largest
    order = np.nan if rounding > E2 else float(np.log2(E1 / E2))
    relative = float(np.max(np.abs(D1[:, comparison.sizes.counts]), initial=0.0)) / largest
    return SlopeCheck(
        a, float(np.max(c1, initial=0.0)) / largest, order, int(np.argmax(c1)) if c1.size else 0, relative
    )
