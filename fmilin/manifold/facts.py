"""What is found to be true of a model as a whole while one point of it is looked at, and need not be asked again.

:mod:`fmilin.linearization.verified_facts` keeps it from one call to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmilin.ground.signals import FloatArray

__all__ = ["VerifiedFacts"]


@dataclass(slots=True)
class VerifiedFacts:
    """What is known of a model; None where nothing is yet."""

    # what the model held (:meth:`fmilin.Model.discrete_states`) when this was found
    mode: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[int, int] | None = None  # states whose derivative is another state
    moving: bool | None = None  # whether constraints depend on time
    # how many constraints are independent beside a point; known once the motion was found to keep them there
    rank: int | None = None
    rates: FloatArray | None = None  # (N,), the largest rates that were seen when that was checked
    # (N + ny,), error of a quick difference over the size of its row; known once all products agreed with differences
    precision: FloatArray | None = None
    procedure: bool = False  # whether the slopes of the model's exact procedure agreed with a difference
