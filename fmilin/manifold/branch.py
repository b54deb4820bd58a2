"""Points with other values of held states, on the branch of the start: followed, not jumped.

The loops of a mechanism close in several ways. A projection takes the closure that it happens to reach; followed
along the manifold from the start values, in steps that the tangent predicts well, a point stays on the start's own
branch. Many points are followed together, each with its own length of step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ConstraintError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import REACHED
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import predicted, project

BENT = 0.25  # how far a point may lie from its prediction, relative to the step: beyond, the step is halved
SHORTEST = 1e-3  # of a step, relative to the whole path

STEPS = 200

Some = NDArray[np.intp]  # numbers of the points that are still on their way
Mask = NDArray[np.bool_]


class Corrected(NamedTuple):
    """Points on the manifold (k, N), where they were reached, and where the branch is given up."""

    x: FloatArray
    reached: Mask
    given_up: Mask


Predict = Callable[[Some, FloatArray, FloatArray], FloatArray]
"""Where the tangent at x (k, N) leads when the held states are moved (k, N), zero but for these, the shortest way."""

Correct = Callable[[Some, FloatArray], Corrected]
"""The points of the manifold nearest to predictions (k, N), held states unmoved."""


def follow(
    predict: Predict, correct: Correct, start: FloatArray, held: list[int], targets: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return states (k, N) with the held ones at targets (k, h), NaN where the branch ends, and how far it led."""
    path = targets - start[held]
    x, done, length = np.tile(start, (len(targets), 1)), np.zeros(len(targets)), np.ones(len(targets))
    for _ in range(STEPS):
        some = np.flatnonzero((done < 1.0) & (length > 0.0))
        if not len(some):
            break
        step = np.minimum(length[some], 1.0 - done[some])
        further = np.where(done[some] + step >= 1.0, 1.0, done[some] + step)
        moved = np.zeros((len(some), len(start)))
        moved[:, held] = step[:, None] * path[some]
        ahead = predict(some, x[some], moved)
        ahead[:, held] = np.where(further[:, None] == 1.0, targets[some], start[held] + further[:, None] * path[some])
        corrected, reached, given_up = correct(some, ahead)
        deviation = np.max(np.abs(corrected - ahead) / sizes[some], axis=1)
        good = reached & (deviation <= BENT * np.max(np.abs(ahead - x[some]) / sizes[some], axis=1) + REACHED)
        x[some[good]], done[some[good]] = corrected[good], further[good]
        shorter = np.where(step <= SHORTEST, 0.0, step / np.where(reached, 2.0, 4.0))
        length[some] = np.where(good, 2.0 * step, shorter)
        length[some[given_up]] = done[some[given_up]] = 0.0
    return np.where((done >= 1.0)[:, None], x, np.nan), done


def followed(
    invariants: Invariants, t: float, start: FloatArray, target: FloatArray, held: Sequence[int]
) -> tuple[FloatArray | None, float]:
    """Return the point with the held states of ``target`` and 1, or None and the part of the way that was followed."""
    fixed = list(held)

    def predict(_: Some, x: FloatArray, moved: FloatArray) -> FloatArray:
        return predicted(invariants, t, x[0], fixed, moved[0])[None]

    def correct(_: Some, ahead: FloatArray) -> Corrected:
        try:
            corrected = project(invariants, t, ahead[0], fixed, restart=False)
        except (ConstraintError, NumericalError):
            return Corrected(ahead, np.array([False]), np.array([False]))
        return Corrected(corrected[None], np.array([True]), np.array([False]))

    states, done = follow(predict, correct, start, fixed, target[None, fixed], invariants.scales[None])
    return (states[0] if done[0] >= 1.0 else None), float(done[0])
