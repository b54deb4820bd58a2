"""Which states must rest in a steady motion: the independent ones that are not listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import linalg

from fmilin.ground.errors import FmilinError, ModelCrashError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import decide_rank, scaled
from fmilin.model.interface import Model
from fmilin.points.unknowns import Place

__all__ = ["change_of_rates", "independent_states", "invariants_at", "recommended"]

STEP = 2e-3
"""How far along the motion its change is measured, in sizes of the fastest state."""


def change_of_rates(place: Place, f: FloatArray, scales: FloatArray) -> FloatArray:
    """Return df/dt = f_t + f_x f along the motion, shape (N,): central differences with Richardson's extrapolation.

    The line x + s f leaves the manifold by O(s^2), equally on both sides, which a central difference does not see.
    """
    size = float(np.max(np.abs(f) / scales, initial=0.0))
    s = STEP / max(size, 1e-3)

    def rates(s: float) -> FloatArray:
        return place.model.evaluate(place.time + s, place.states + s * f, place.inputs).derivatives

    near, far = (rates(s) - rates(-s)) / (2 * s), (rates(2 * s) - rates(-2 * s)) / (4 * s)
    change: FloatArray = near + (near - far) / 3
    return change


def invariants_at(place: Place, pairs: Mapping[int, int]) -> Invariants:
    """Return the invariants of the model at a place."""
    return Invariants(place.model, place.inputs, pairs, place.model.states.scales(place.states))


def independent_states(place: Place, pairs: Mapping[int, int], listed: Sequence[int]) -> list[int]:
    """Return states that determine the others near a point of the manifold, chosen for a steady motion.

    An independent state that is not listed will have to rest; a dependent one goes where the constraints take it.
    So what moves at the guess without being listed is dependent if it can be (the rolling disk's u4 and u6, which turn
    with its spin), then what is listed, and the rest as conditioning wants it; what the model's author recommends is
    dependent last. QR with column pivoting on H, scaled: pivots are the dependent states.
    """
    model, x = place.model, place.states
    n = len(x)
    if not len(model.constraints):
        return list(range(n))
    invariants = invariants_at(place, pairs)
    gradient = invariants.gradient(place.time, x)
    Hs, _ = scaled(np.nan_to_num(gradient.H), gradient.scales, gradient.reference, gradient.error)
    weights = 1e-3 + _movement(place, invariants.scales)
    weights[list(listed)] = 1e-2
    weights[recommended(model, pairs)] *= 1e-2
    order = linalg.qr(Hs * weights, mode="r", pivoting=True)[1]
    dependent = {int(i) for i in order[: decide_rank(Hs, RANK).rank]}
    return [i for i in range(n) if i not in dependent]


def _movement(place: Place, scales: FloatArray) -> FloatArray:
    """Return how much each state moves, and changes its rate, between 0 and 2; zeros where that cannot be said."""
    try:
        f = place.model.evaluate(place.time, place.states, place.inputs).derivatives
        parts = [np.abs(f) / scales, np.abs(change_of_rates(place, f, scales)) / scales]
    except ModelCrashError:
        raise
    except FmilinError:
        return np.zeros(len(scales))
    largest = [float(np.max(part, initial=0.0)) for part in parts]
    if not np.isfinite(largest).all():
        return np.zeros(len(scales))
    movement = np.zeros(len(scales))
    for part, size in zip(parts, largest, strict=True):
        movement += part / size if size > 0 else 0.0
    return movement


def recommended(model: Model, pairs: Mapping[int, int]) -> list[int]:
    """Return the states that the model's author recommends to keep, velocities of positions included."""
    chosen = [model.states.positions[name] for name in model.independent if model.states.has(name)]
    return [*chosen, *(pairs[i] for i in chosen if i in pairs)]
