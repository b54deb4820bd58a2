"""Does the model's motion keep the constraints that it is about to be held to? Asked once, before the first step."""

from __future__ import annotations

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INVARIANT, INVARIANT_MEASURED
from fmilin.manifold.verification import require_kept
from fmilin.motion.simulation.plant import Plant
from fmilin.motion.simulation.projector import Projector

__all__ = ["require_invariance"]

BESIDE = 1e-3
"""How far beside the start the motion is checked, too, in sizes of the states."""

SAMPLES = 3


def require_invariance(plant: Plant, t: float, x: FloatArray) -> None:
    """Check that h stays zero along f at the start and beside it, relative to the size of its terms.

    Unlike the check of :func:`fmilin.linearize` this one needs no regular point: the largest change of a row
    over all points is compared with the largest size of its terms.
    """
    if not len(plant.invariants):
        return
    drift, size = np.zeros(len(plant.invariants)), np.zeros(len(plant.invariants))
    measured = False
    for point in [x, *_beside(plant, t, x)]:
        f = plant.f(t, point)
        if not np.isfinite(f).all():
            continue
        gradient = plant.gradient(t, point)
        measured = measured or not gradient.is_exact
        drift = np.fmax(drift, np.abs(gradient.H @ f + _own_change(plant, t, point)))
        fastest = float(np.max(np.abs(f) / plant.scales, initial=0.0))
        size = np.fmax(size, np.abs(gradient.H) @ np.abs(f) + 1e-3 * fastest * gradient.reference)
    tolerance = INVARIANT_MEASURED if measured else INVARIANT
    relative = np.where(size > 0, drift / np.where(size > 0, size, 1.0), 0.0)
    require_kept(plant.invariants.names, relative, tolerance)


def _own_change(plant: Plant, t: float, x: FloatArray) -> FloatArray:
    """Return how h changes with time and inputs while the states stand still, shape (m,); mostly exactly 0."""
    step = 1e-5 * max(abs(t), 1.0)
    change: FloatArray = (plant.h(t + step, x) - plant.h(t - step, x)) / (2 * step)
    return change


def _beside(plant: Plant, t: float, x: FloatArray) -> list[FloatArray]:
    """Return points of the manifold close to x; fewer where the model or the projection cannot go."""
    random = np.random.default_rng(1972)
    project = Projector(plant)
    points = []
    for _ in range(SAMPLES):
        try:
            points.append(project(t, x + BESIDE * plant.scales * random.uniform(-1.0, 1.0, len(x))))
        except FmilinError:
            continue
    return points
