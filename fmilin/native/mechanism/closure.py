"""Gaps and slips of loops, wheels and skates from positions and velocities alone.

To stay on the manifold, Newton's iterations ask for the residuals of the constraints many times. These take the
kinematics of the mechanism, no accelerations: a third of the cost of an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.native.mechanism.elements import Sensor
from fmilin.native.mechanism.kinematics import accelerations, displacement_of, motion, velocities
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.system import Columns, Solution, System
from fmilin.native.mechanism.tree import Tree
from fmilin.native.native_engine import Quantity

__all__ = ["Closure"]


class Closure:
    """What the constraints of a mechanism observe, without its dynamics.

    ``entries``: gaps and slips, in any order.
    """

    def __init__(self, system: System, entries: Sequence[Quantity]) -> None:
        self.system = system
        # Gaps first, then slips: the number of a gap is that of its constraint, and those on positions come first.
        first = {"gap": 0, "slip": system.m_q}
        sources = [entry.source for entry in entries if not isinstance(entry.source, Sensor)]
        self._order = np.array([first[kind] + number for kind, number in sources], dtype=np.intp)

    @classmethod
    def of(cls, system: System, entries: Sequence[Quantity]) -> Closure | None:
        """Return the closure, or None when something else is observed, too, an acceleration, say."""
        return cls(system, entries) if all(_is_closure(entry) for entry in entries) else None

    def values(self, q: Array, v: Array) -> Array:
        """Return the observed values at q (..., n_q), v (..., n), shape (..., their number)."""
        system = self.system
        at = velocities(system.tree, q, v)
        now = system.markers.motion(at)
        W = system.rows.motion(now).W[..., system.places, :]
        slips = system.rows.slips(W, at.V, v, system.places)
        slips = slips if system.bends is None else system.bends.slips(slips, q, v)
        return np.concatenate((system.gaps_at(now, q), slips), axis=-1)[..., self._order]

    def values_and_gradient(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the observed values (..., k) and their gradients for (q, v), shape (..., k, N), without dynamics."""
        system, tree, m_q = self.system, self.system.tree, self.system.m_q
        at = velocities(tree, q, v)
        now = system.markers.motion(at)
        wrenches = system.rows.motion(now)
        G = system.rows.jacobian(wrenches.W[..., system.places, :], at.S, system.places)
        G = G if system.bends is None else system.bends.jacobian(G, q)
        slips = (G @ v[..., None])[..., 0]
        gradient = np.zeros((*q.shape[:-1], m_q + G.shape[-2], tree.n_q + tree.n))
        gradient[..., :m_q, : tree.n_q] = _along_coordinates(tree, q, G[..., :m_q, :])
        gradient[..., m_q:, tree.n_q :] = G
        if v.any():
            moving = motion(tree, at, accelerations(tree, at, v, system.gravity))
            slots = system.derivatives.slots(now)
            rate_q = system.derivatives.columns(moving, now, slots, wrenches).rate_q[..., system.places, :]
            rate_q = rate_q if system.bends is None else system.bends.rate_columns(rate_q, q, v)
            gradient[..., m_q:, : tree.n_q] = _along_coordinates(tree, q, rate_q)
        values = np.concatenate((system.gaps_at(now, q), slips), axis=-1)
        return values[..., self._order], self._with_activations(gradient[..., self._order, :])

    def gradient(self, solution: Solution, columns: Columns) -> Array:
        """Return the gradients of the observed values for (q, v) at a solution, shape (..., their number, N)."""
        tree, state, m_q = self.system.tree, solution.state, self.system.m_q
        to_displacement = displacement_of(tree, state.q, np.eye(tree.n_q))
        gaps = state.G[..., :m_q, :] @ to_displacement
        upper = np.concatenate((gaps, np.zeros((*gaps.shape[:-1], tree.n))), axis=-1)
        slips = np.concatenate((columns.rate_q @ to_displacement, state.G), axis=-1)
        return self._with_activations(np.concatenate((upper, slips), axis=-2)[..., self._order, :])

    def _with_activations(self, gradient: Array) -> Array:
        """Return gradients for (q, v, activations): these move nothing."""
        count = len(self.system.activation_names)
        return np.concatenate((gradient, np.zeros((*gradient.shape[:-1], count))), axis=-1) if count else gradient


def _along_coordinates(tree: Tree, q: Array, columns: Array) -> Array:
    """Return slopes along displacements (..., k, n) as slopes along coordinates, shape (..., k, n_q)."""
    if len(tree.balls):
        along: Array = columns @ displacement_of(tree, q, np.eye(tree.n_q))
        return along
    found = np.empty((*columns.shape[:-1], tree.n_q))
    found[..., tree.screw_coordinates] = columns[..., tree.screw_speeds]
    return found


def _is_closure(entry: Quantity) -> bool:
    return not isinstance(entry.source, Sensor) and entry.source[0] in ("gap", "slip")
