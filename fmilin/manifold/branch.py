"""A point with other values of held states, on the branch of the start: walked there, not jumped.

The loops of a mechanism close in several ways. A projection takes the way that it happens to reach; walked along the
manifold from the start values in steps that the tangent predicts well, the point stays on the start's own branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.errors import ConstraintError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import REACHED
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import predicted, project

__all__ = ["followed"]

BENT = 0.25
"""How far a point may lie beside its prediction, relative to the step: beyond, the step is halved."""

SHORTEST = 1e-3
"""Of a step, relative to the whole way."""

STEPS = 200


def followed(
    invariants: Invariants, t: float, start: FloatArray, target: FloatArray, held: Sequence[int]
) -> tuple[FloatArray | None, float]:
    """Return the point with the held states of ``target``, and which part of the way there was followed.

    Shapes: start (N,), on the manifold. ``target`` (N,): only its held states count. Returns None and a fraction below
    1 where the branch ends or bends too sharply.
    """
    way = np.zeros_like(start)
    way[list(held)] = target[list(held)] - start[list(held)]
    scales = invariants.scales
    x, done, length = start, 0.0, 1.0
    for _ in range(STEPS):
        length = min(length, 1.0 - done)
        ahead = predicted(invariants, t, x, held, length * way)
        ahead[list(held)] = (target if done + length >= 1.0 else start + (done + length) * way)[list(held)]
        try:
            there = project(invariants, t, ahead, held, beside=False)
        except (ConstraintError, NumericalError):
            there = None
        beside = np.inf if there is None else float(np.max(np.abs(there - ahead) / scales))
        if there is not None and beside <= BENT * float(np.max(np.abs(ahead - x) / scales)) + REACHED:
            x, done = there, done + length
            if done >= 1.0:
                return x, 1.0
            length *= 2
        elif length <= SHORTEST:
            break
        else:
            length /= 2 if np.isfinite(beside) else 4
    return None, done
