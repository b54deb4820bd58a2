"""Gaps and slips of loops, wheels and skates from positions and velocities alone.

To stay on the manifold, Newton's iterations ask for the residuals of the constraints many times. These take the
kinematics of the mechanism, no accelerations: a third of the cost of an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.models.mechanism.elements import Sensor
from fmilin.models.mechanism.kinematics import displacement_of, velocities
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.system import Columns, Solution, System
from fmilin.models.native_engine import Quantity

__all__ = ["Closure"]


class Closure:
    """What the constraints of a mechanism observe, without its dynamics.

    Parameters
    ----------
    system : System
        Finished.
    entries : sequence of Quantity
        Gaps and slips, in any order.
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
        slips = (W * system.rows.relative(at.V, system.places)).sum(axis=-1)
        return np.concatenate((system.g(now.p, now.e), slips), axis=-1)[..., self._order]

    def gradient(self, solution: Solution, columns: Columns) -> Array:
        """Return the gradients of the observed values for (q, v) at a solution, shape (..., their number, N)."""
        tree, state, m_q = self.system.tree, solution.state, self.system.m_q
        to_displacement = displacement_of(tree, state.q, np.eye(tree.n_q))
        gaps = state.G[..., :m_q, :] @ to_displacement
        upper = np.concatenate((gaps, np.zeros((*gaps.shape[:-1], tree.n))), axis=-1)
        slips = np.concatenate((columns.rate_q @ to_displacement, state.G), axis=-1)
        return np.concatenate((upper, slips), axis=-2)[..., self._order, :]


def _is_closure(entry: Quantity) -> bool:
    return not isinstance(entry.source, Sensor) and entry.source[0] in ("gap", "slip")
