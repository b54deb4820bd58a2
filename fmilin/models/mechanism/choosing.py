"""Which states of a mechanism are kept: named, recommended, or found by pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from fmilin.errors import UsageError
from fmilin.manifold.selection import DOUBTFUL
from fmilin.models.mechanism.kinematics import displacement_of
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.system import Solution
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.models.mechanism.model import Mechanism

__all__ = ["Choice", "choose", "position_gradient"]


@dataclass(frozen=True)
class Choice:
    """Which positions and velocities are kept, by number among q and v."""

    q: tuple[int, ...]
    v: tuple[int, ...]


def choose(model: Mechanism, x: FloatArray, u: FloatArray, independent: Sequence[str] | None) -> Choice:
    """Return the states to keep: those that are named, or recommended, or found by pivoting.

    Raises
    ------
    UsageError, UnknownNameError
        When the named states are unknown or too few or many.
    """
    tree = model.system.tree
    solution = model.solution(x, u)
    p_q = tree.n_q - len(model.independence.position) - len(tree.balls)
    p_v = tree.n - len(model.independence.all)
    named = independent if independent is not None else model.independent
    if not named:
        q = _pivoted(position_gradient(model, solution), ())
        preferred = tuple(tree.speeds_at(q))
        return Choice(q, _pivoted(solution.state.G[model.independence.all], preferred))
    places = [model.states.index_of(name, "a state of the mechanism") for name in named]
    q = tuple(i for i in places if i < tree.n_q)
    v = tuple(i - tree.n_q for i in places if i >= tree.n_q)
    if not v and len(q) == p_q == p_v:
        v = tuple(tree.speeds_at(q))
    if (len(set(q)), len(set(v))) != (p_q, p_v) or len(set(places)) != len(places):
        raise UsageError(
            f"{len(q)} positions and {len(v)} velocities were named as independent, but '{model.info.name}' has "
            f"{p_q} and {p_v} independent ones."
        )
    return Choice(q, v)


def _pivoted(H: FloatArray, preferred: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers of independent coordinates under the constraints with gradient H (m, n)."""
    m, n = H.shape
    if not m:
        return tuple(range(n))
    null = np.linalg.svd(H)[2][m:]
    if preferred and len(preferred) == n - m and np.linalg.cond(null[:, list(preferred)]) < DOUBTFUL:
        return tuple(sorted(preferred))
    _, _, order = linalg.qr(null, mode="economic", pivoting=True)
    return tuple(sorted(int(i) for i in order[: n - m]))


def position_gradient(model: Mechanism, solution: Solution) -> Array:
    """Return the gradient of the independent constraints on q, lengths of quaternions last, shape (..., m, n_q)."""
    tree, state = model.system.tree, solution.state
    all_q = np.broadcast_to(np.eye(tree.n_q), (*state.q.shape[:-1], tree.n_q, tree.n_q))
    H = state.G[..., model.independence.position, :] @ displacement_of(tree, state.q, all_q)
    lengths = np.zeros((*state.q.shape[:-1], len(tree.balls), tree.n_q))
    rows = np.arange(len(tree.balls))[:, None]
    lengths[..., rows, tree.ball_coordinates] = state.q[..., tree.ball_coordinates]
    return np.concatenate((H, lengths), axis=-2)
