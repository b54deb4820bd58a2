"""Whether a point is an equilibrium: by the Newton step that is left to one, beside the unknowns, and not by its rates.

For T' = (283 - T)/1e7 rates are small everywhere, for x' = exp(-x) somewhere, and forces of 3 MN that balance to twelve
digits leave a rate of 1e-9. Steps go along what the rates determine: where an integrator stands is its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import BALANCED_EXACTLY, DETERMINED, EQUILIBRIUM, RANK, ROUNDING
from fmilin.numerics.balanced import balanced

UNTOLD = 1e-13  # of a size per second: rates that may be rounding of terms which no slope shows
MEASURED = 1e-3  # of a size: the longest steps over which slopes are measured, whose errors tell the noise of rates
SEEN = 10.0  # times its error, that an entry of the slopes is no zero


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """The step that removes rates to first order, in sizes of the unknowns."""

    step: FloatArray  # (n,)
    noise: FloatArray  # (n,), of the step: rounding of the rates
    balances: bool  # whether it removes all of them

    def is_within(self, limit: float) -> bool:
        """Whether an equilibrium lies so near."""
        return self.balances and bool((np.abs(self.step) <= limit + self.noise).all())


def newton_step(rates: FloatArray, sizes: FloatArray, slopes: FloatArray, errors: FloatArray) -> NewtonStep:
    """Return the Newton step from rates (N,) with slopes and errors (N, n) along unknowns in their sizes."""
    terms = np.abs(slopes)
    most, noise = terms.max(axis=1, initial=0.0), _noise(sizes, slopes, errors)
    if (np.abs(rates) <= noise).all():
        return NewtonStep(np.zeros(slopes.shape[1]), np.zeros(slopes.shape[1]), balances=True)
    form = balanced(np.where(terms > SEEN * errors + ROUNDING * most[:, None], slopes, 0.0))
    blurred = float(np.linalg.norm(form.rows[:, None] * errors * form.columns))
    P = form.inverse(form.rank(max(RANK, blurred / max(float(form.sigma.max(initial=0.0)), 1e-300))))
    step = -P @ rates
    return NewtonStep(step, np.abs(P) @ noise, bool((np.abs(rates + slopes @ step) <= noise).all()))


def is_equilibrium(rates: FloatArray, sizes: FloatArray, slopes: FloatArray, errors: FloatArray, states: int) -> bool:
    """Whether an equilibrium is so near to a point that it is one.

    ``slopes`` and ``errors`` (N, n) are along unknowns in their sizes, the first ``states`` of them coordinates: these
    may be as far as a trim leaves them, where rates are small. Else all stand for what they are, to rounding.
    """
    if not np.isfinite(slopes).all():
        return False
    slow = bool((np.abs(rates) <= EQUILIBRIUM * sizes).all())
    if slow and newton_step(rates, sizes, slopes[:, :states], errors[:, :states]).is_within(DETERMINED / 2):
        return True
    noise = _noise(sizes, slopes, errors)
    rows = 1.0 / np.maximum(np.abs(slopes).sum(axis=1), noise)
    step = np.linalg.lstsq(slopes * rows[:, None], -rates * rows, rcond=RANK)[0]
    return bool((np.abs(step) <= BALANCED_EXACTLY).all() and (np.abs(rates + slopes @ step) <= noise).all())


def _noise(sizes: FloatArray, slopes: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the rates that say nothing, shape (N,)."""
    rounding = np.maximum(UNTOLD * sizes, ROUNDING * np.abs(slopes).sum(axis=1))
    noise: FloatArray = np.maximum(rounding, MEASURED * errors.max(axis=1, initial=0.0))
    return noise
