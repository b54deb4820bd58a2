"""Facts of a model as a whole that are verified at one point, and not again at others.

:mod:`fmilin.linearization.verified_facts` keeps it from one call to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmilin.ground.signals import FloatArray


@dataclass(slots=True)
class VerifiedFacts:
    """What was verified of a model; None where nothing is yet."""

    # what the model held (:meth:`fmilin.Model.discrete_states`) when this was verified
    mode: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[int, int] | None = None  # states whose derivative is another state
    moving: bool | None = None  # whether constraints depend on time
    # how many constraints are independent near a point, once the motion was verified to keep them there
    rank: int | None = None
    rates: FloatArray | None = None  # (N,), the largest rates that were seen when that was checked
    # (N + ny,), error of a quick difference over the size of its row, once all products agreed with differences
    precision: FloatArray | None = None
    procedure: bool = False  # whether the slopes of the model's exact procedure agreed with a difference
