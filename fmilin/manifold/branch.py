"""A point with other values of held states, on the branch of the start: followed, not jumped.

The loops of a mechanism close in several ways. A projection takes the closure that it happens to reach; followed
along the manifold from the start values, in steps that the tangent predicts well, the point stays on the start's own
branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.errors import ConstraintError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import REACHED
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import predicted, project

BENT = 0.25  # how far a point may lie from its prediction, relative to the step: beyond, the step is halved
SHORTEST = 1e-3  # of a step, relative to the whole path

STEPS = 200


def followed(
    invariants: Invariants, t: float, start: FloatArray, target: FloatArray, held: Sequence[int]
) -> tuple[FloatArray | None, float]:
    """Return the point with the held states of ``target`` and 1, or None and the part of the way that was followed."""
    path = np.zeros_like(start)
    path[list(held)] = target[list(held)] - start[list(held)]
    scales = invariants.scales
    x, done, length = start, 0.0, 1.0
    for _ in range(STEPS):
        length = min(length, 1.0 - done)
        ahead = predicted(invariants, t, x, held, length * path)
        ahead[list(held)] = (target if done + length >= 1.0 else start + (done + length) * path)[list(held)]
        try:
            corrected = project(invariants, t, ahead, held, restart=False)
        except (ConstraintError, NumericalError):
            corrected = None
        deviation = np.inf if corrected is None else float(np.max(np.abs(corrected - ahead) / scales))
        if corrected is not None and deviation <= BENT * float(np.max(np.abs(ahead - x) / scales)) + REACHED:
            x, done = corrected, done + length
            if done >= 1.0:
                return x, 1.0
            length *= 2
        elif length <= SHORTEST:
            break
        else:
            length /= 2 if np.isfinite(deviation) else 4
    return None, done
