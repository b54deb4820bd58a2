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

Where a model starts on its manifold is remembered, too. Nothing else is remembered of models with event indicators, nor
anything from one mode of a model with events to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.manifold.operating_points import operating_point
from fmilin.manifold.verification import VerifiedFacts
from fmilin.model.interface import Evaluation, Model, OperatingPoint

_Start = tuple[OperatingPoint, dict[str, str], OperatingPoint]
"""Start values and mode of a model, and the point that was assembled from them."""

_starts: WeakKeyDictionary[Model, _Start] = WeakKeyDictionary()
_facts: WeakKeyDictionary[Model, VerifiedFacts] = WeakKeyDictionary()


def verified_facts_of(model: Model, point: OperatingPoint, base: Evaluation) -> VerifiedFacts:
    """Return what is known of a model, to be added to; nothing where its evaluation at the point contradicts it."""
    mode = dict(model.discrete_states())
    if len(model.event_indicators(point.time, point.states, point.inputs)):
        return VerifiedFacts(mode)
    try:
        facts = _facts.get(model)
    except TypeError:  # a model of somebody's own that has no hash or takes no weak references
        return VerifiedFacts(mode)
    if facts is None or facts.mode != mode or not _still_pairs(facts.pairs, point, base):
        facts = _facts[model] = VerifiedFacts(mode)
    return facts


def start_of(model: Model) -> OperatingPoint:
    """Return the point of the manifold where a model starts; assembled anew when start values or mode have changed."""
    mode, start = dict(model.discrete_states()), model.start
    try:
        entry = _starts.get(model)
        if entry is None or not _same(entry[0], start) or entry[1] != mode:
            copied = OperatingPoint(start.time, start.states.copy(), start.inputs.copy(), start.parameters)
            entry = _starts[model] = (copied, mode, operating_point(model))
    except TypeError:  # as above
        return operating_point(model)
    return entry[2]


def _same(a: OperatingPoint, b: OperatingPoint) -> bool:
    return a.time == b.time and np.array_equal(a.states, b.states) and np.array_equal(a.inputs, b.inputs)


def _still_pairs(pairs: Mapping[int, int] | None, point: OperatingPoint, base: Evaluation) -> bool:
    return np.array_equal(base.derivatives[list(pairs)], point.states[list(pairs.values())]) if pairs else True
