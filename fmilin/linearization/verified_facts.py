"""What was found to be true of a model as a whole, kept from one linearization of it to the next.

The first linearization looks at everything. What it finds out about the model rather than about the point is
remembered for as long as the model lives, so that a call at another point pays for what the point decides:

- which states are the rates of others; looked at again, bitwise, at the point itself;
- that the motion keeps the constraints also beside the point, how many of them are independent there, and that none
  is a conserved quantity; H f = 0, H f_u = 0 and the rank are looked at at every point, and a point with another
  rank or a violation is looked at as the first one was;
- that every column of the model's exact products agrees with a difference; at every further point one direction
  through all columns is compared, and where it disagrees or bends every column is;
- that the slopes of the model's exact procedure agree with a difference along one direction through all columns. Where
  its equations can have a kink that is looked at again at every point.

Nothing is remembered of models with event indicators, nor from one mode of a model with events to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.manifold.facts import VerifiedFacts
from fmilin.model.interface import Evaluation, Model, OperatingPoint

__all__ = ["verified_facts_of"]

_known: WeakKeyDictionary[Model, VerifiedFacts] = WeakKeyDictionary()


def verified_facts_of(model: Model, point: OperatingPoint, base: Evaluation) -> VerifiedFacts:
    """Return what is known of a model, to be added to; nothing where the point contradicts it.

    Parameters
    ----------
    model : Model
    point : OperatingPoint
    base : Evaluation
        Of the model at the point.
    """
    mode = dict(model.held())
    if len(model.event_indicators(point.time, point.states, point.inputs)):
        return VerifiedFacts(mode)
    try:
        known = _known.get(model)
    except TypeError:  # a model of somebody's own that has no hash or takes no weak references
        return VerifiedFacts(mode)
    if known is None or known.mode != mode or not _still_pairs(known.pairs, point, base):
        known = _known[model] = VerifiedFacts(mode)
    return known


def _still_pairs(pairs: Mapping[int, int] | None, point: OperatingPoint, base: Evaluation) -> bool:
    if not pairs:
        return True
    return np.array_equal(base.derivatives[list(pairs)], point.states[list(pairs.values())])
