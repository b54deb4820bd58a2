"""What was given stays as it is while other states are set, as far as the constraints allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import DOUBTFUL
from fmilin.manifold.rank import singular_values
from fmilin.model.interface import Model

AS_GIVEN = 1e-3  # of a size: a smaller change of what was given is its rounding


def kept_besides(model: Model, Hs: FloatArray, held: Sequence[int]) -> list[int]:
    """Return the states that keep their values beside the held ones; Hs (m, N) is the scaled gradient at the start."""
    free, kept = np.ones(Hs.shape[1], dtype=bool), []
    free[list(held)] = False
    rank = _rank(Hs[:, free])
    for name in model.kept([model.states.names[i] for i in held]):
        free[i := model.states.positions[name]] = False
        if _rank(Hs[:, free]) == rank:
            kept.append(i)
        else:
            free[i] = True
    return kept


def _rank(Hs: FloatArray) -> int:
    """Return how many constraints the states can follow easily."""
    sigma = singular_values(Hs) if min(Hs.shape) else np.zeros(0)
    return int(np.count_nonzero(sigma * DOUBTFUL > np.max(sigma, initial=0.0)))


def let_go(model: Model, held: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Return the states that were given, and cannot be kept beside the held ones."""
    candidates = model.kept([model.states.names[i] for i in held]).items()
    told = [model.states.positions[name] for name, was_given in candidates if was_given]
    return [i for i in told if i not in kept]


def moved_remarks(model: Model, given: FloatArray, became: FloatArray, states: Sequence[int]) -> tuple[Remark, ...]:
    """Return the remark on states that were given and moved."""
    sizes = model.states.scales(given)
    moved = [i for i in states if abs(became[i] - given[i]) > AS_GIVEN * sizes[i]]
    listed = "; ".join(f"given {model.states.names[i]} = {given[i]:.6g}, became {became[i]:.6g}" for i in moved)
    return (Remark("moved", f"To keep what was set, start values had to move: {listed}."),) if moved else ()
