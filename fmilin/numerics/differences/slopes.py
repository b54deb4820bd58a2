"""What differencing is told and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray

__all__ = ["Differences", "EventCrossingError", "Line", "Slopes", "Terms"]

Line = Callable[[int, float], FloatArray]
"""(column j, displacement s along it) -> value, shape (r,)."""

Terms = Callable[[FloatArray], FloatArray]
"""The largest scaled slope of each row (r,) -> the size of the terms that each row sums, shape (r,)."""


class EventCrossingError(NumericalError):
    """A displaced point lies beyond a state event of the model."""


@dataclass(frozen=True, slots=True)
class Differences:
    """How to difference.

    Parameters
    ----------
    order : {2, 4}
        2: plain central differences, two evaluations a column. 4: Richardson, four.
    relative_step : float or None
        Of the column's scale; None: chosen from the measured noise.
    retries : int
        How often a column may be measured again with a better step.
    side : {"left", "right"} or None
        One-sided slopes, for points at a kink or event; None: central.
    """

    order: Literal[2, 4] = 4
    relative_step: float | None = None
    retries: int = 5
    side: Literal["left", "right"] | None = None


@dataclass(frozen=True, slots=True)
class Slopes:
    """A Jacobian and how far it can be trusted."""

    J: FloatArray  # shape (r, k)
    error: FloatArray  # (r, k), estimated absolute error of each entry
    # (r, k), right slope minus left slope where they differ; 0 where the function is smooth or nothing is known
    jump: FloatArray
    bend: FloatArray  # (r, k), |S(h)| / h beyond rounding: large values ask for a closer look
    # of entries that hold near the point only: the step at which they do no longer, and the slope beyond
    narrow: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
