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
    """What is known of a model; None where nothing is yet.

    Attributes
    ----------
    mode : mapping of str to str
        What the model held (:meth:`fmilin.Model.discrete_states`) when this was found.
    pairs : mapping of int to int, or None
        States whose derivative is another state.
    moving : bool or None
        Whether constraints depend on time.
    rank : int or None
        How many constraints are independent beside a point; known once the motion was found to keep them there.
    rates : array, shape (N,), or None
        The largest rates that were seen when that was checked.
    precision : array, shape (N + ny,), or None
        Error of a quick difference over the size of its row; known once all products agreed with differences.
    procedure : bool
        Whether the slopes of the model's exact procedure agreed with a difference.
    """

    mode: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[int, int] | None = None
    moving: bool | None = None
    rank: int | None = None
    rates: FloatArray | None = None
    precision: FloatArray | None = None
    procedure: bool = False
