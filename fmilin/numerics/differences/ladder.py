"""F at steps of eighteen decades along one column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray

__all__ = ["RATIO", "Ladder", "ladder_of"]

RATIO = 4.0

LARGEST, SMALLEST = 1.0, 2.0**-54
"""Steps, in sizes of the variable; where the variable is not zero, none is smaller than :data:`LOST` of it."""

LOST = 2.0**-50


@dataclass(frozen=True, slots=True)
class Ladder:
    """F at steps +-h along one column, largest first; K rungs."""

    h: FloatArray  # shape (K,)
    ahead: FloatArray  # shape (K, r)
    behind: FloatArray  # shape (K, r)
    base: FloatArray  # shape (r,)
    scale: float  # the size of the variable

    @property
    def D(self) -> FloatArray:
        """Central differences, shape (K, r)."""
        found: FloatArray = (self.ahead - self.behind) / (2 * self.h[:, None])
        return found


def ladder_of(line: Callable[[float], FloatArray], base: FloatArray, scale: float, value: float) -> Ladder | None:
    """Climb down one column; None where it cannot be evaluated at three steps at least.

    ``line``: s -> F, shape (r,). ``base`` (r,): F at s = 0. ``scale``: the size of the variable. ``value``: what it is
    at the point.
    """
    h, least = LARGEST * scale, max(SMALLEST * scale, LOST * abs(value))
    steps, ahead, behind = [], [], []
    h = float(2.0 ** np.round(np.log2(h)))
    while h >= least:
        try:
            pair = line(h), line(-h)
            usable = bool(np.isfinite(pair).all())
        except (ModelError, NumericalError):
            usable = False
        if usable:
            steps.append(h)
            ahead.append(pair[0])
            behind.append(pair[1])
        else:  # what lies beyond an event or the border of the domain says nothing about the point
            steps, ahead, behind = [], [], []
        h /= RATIO
    if len(steps) < 6:
        return None
    return Ladder(np.array(steps), np.array(ahead), np.array(behind), base, scale)
