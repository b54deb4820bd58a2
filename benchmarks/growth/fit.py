"""Exponents by least squares, and the sizes at which a limit is reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["PowerLaw", "fit_power_law", "largest_size"]

UPPER = 3
"""How many of the largest sizes are fitted: below, what does not grow hides what grows."""


@dataclass(frozen=True)
class PowerLaw:
    """value = exp(offset) size^exponent."""

    exponent: float
    offset: float

    def size_at(self, value: float) -> float:
        """Return the size at which the value is reached; infinite where it does not grow."""
        if self.exponent <= 0:
            return np.inf
        return float(np.exp(min((np.log(value) - self.offset) / self.exponent, 700.0)))


def fit_power_law(sizes: Sequence[float], values: Sequence[float], upper: int = UPPER) -> PowerLaw | None:
    """Fit the ``upper`` largest sizes; None for fewer than two points."""
    chosen = np.argsort(sizes)[-upper:]
    if len(chosen) < 2:
        return None
    exponent, offset = np.polyfit(np.log(np.asarray(sizes)[chosen]), np.log(np.asarray(values)[chosen]), 1)
    return PowerLaw(float(exponent), float(offset))


def largest_size(sizes: Sequence[float], values: Sequence[float], limit: float) -> tuple[float, bool] | None:
    """Return the size at which ``limit`` is reached, and whether it is beyond what was measured.

    Between measured sizes the values are interpolated as power laws; beyond them the fit is extrapolated.
    """
    over = [i for i, value in enumerate(values) if value > limit]
    if over and over[0] > 0:
        i = over[0]
        law = fit_power_law(sizes[i - 1 : i + 1], values[i - 1 : i + 1])
        return None if law is None else (law.size_at(limit), False)
    law = fit_power_law(sizes, values)
    return None if law is None else (law.size_at(limit), True)
