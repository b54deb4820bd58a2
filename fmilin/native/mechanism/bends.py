"""Couplings of joints that are no straight lines: q = Q(q_leader), what powers of the leader add to each equation.

    g = q - Q(s),   G v = v - Q' s',   Gdot v = -Q'' s'^2,

s the leader's coordinate. Offset and ratio are constants of the rows; the terms here are those of second and higher
powers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.loop_constraints import LoopConstraint
from fmilin.native.mechanism.screws import Array
from fmilin.native.mechanism.tree import Tree

__all__ = ["Bends", "bends_of"]


@dataclass(frozen=True)
class Bends:
    """Powers of leaders as constant arrays."""

    of: NDArray[np.intp]  # (k,), the constraints
    coordinate: NDArray[np.intp]  # (k,), of the leaders
    freedom: NDArray[np.intp]  # (k,), of the leaders
    powers: NDArray[np.float64]  # (k, n), factors of s^2, s^3, ... in Q

    def _term(self, q: Array, derivative: int) -> Array:
        """Return a derivative of -Q, shape (..., k)."""
        s, found = q[..., self.coordinate], 0.0
        for i, factors in enumerate(self.powers.T):
            power = i + 2
            if derivative > power:
                continue
            scale = float(np.prod(range(power - derivative + 1, power + 1)))
            found = found - scale * factors * s ** (power - derivative)
        return found + 0.0 * s

    def gaps(self, gaps: Array, q: Array) -> Array:
        """Return gaps (..., m_q) with these terms."""
        return _added(gaps, (self.of,), self._term(q, 0))

    def jacobian(self, G: Array, q: Array) -> Array:
        """Return G (..., m, n) with these terms."""
        return _added(G, (self.of, self.freedom), self._term(q, 1))

    def slips(self, slips: Array, q: Array, v: Array) -> Array:
        """Return G v (..., m) with these terms."""
        return _added(slips, (self.of,), self._term(q, 1) * v[..., self.freedom])

    def drift(self, c: Array, q: Array, v: Array) -> Array:
        """Return Gdot v (..., m) with these terms."""
        return _added(c, (self.of,), self._term(q, 2) * v[..., self.freedom] ** 2)

    def rate_columns(self, rate_q: Array, q: Array, v: Array) -> Array:
        """Return d(G v)/dtheta (..., m, n) with these terms."""
        return _added(rate_q, (self.of, self.freedom), self._term(q, 2) * v[..., self.freedom])

    def columns(self, c_q: Array, c_v: Array, at: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        """Return d(G vdot + Gdot v) by theta and v, each (..., m, n), at q, v and vdot."""
        q, v, v_dot = at
        speed = v[..., self.freedom]
        by_q = self._term(q, 2) * v_dot[..., self.freedom] + self._term(q, 3) * speed**2
        place = (self.of, self.freedom)
        return _added(c_q, place, by_q), _added(c_v, place, 2 * self._term(q, 2) * speed)

    def loads(self, rho_q: Array, q: Array, multipliers: Array) -> Array:
        """Return d(G' lambda)/dtheta (..., n, n), lambda held, added to what there is."""
        return _added(rho_q, (self.freedom, self.freedom), self._term(q, 2) * multipliers[..., self.of])


def bends_of(constraints: Sequence[LoopConstraint], tree: Tree) -> Bends | None:
    """Return the powers among the constraints; None without any."""
    bent = [(i, c) for i, c in enumerate(constraints) if any(c.powers)]
    if not bent:
        return None
    leaders = [c.terms[-1][0] for _, c in bent]
    most = max(len(c.powers) for _, c in bent)
    return Bends(
        of=np.array([i for i, _ in bent], dtype=np.intp),
        coordinate=np.array([tree.coordinates_of[name][0] for name in leaders], dtype=np.intp),
        freedom=np.array([tree.speeds_of[name][0] for name in leaders], dtype=np.intp),
        powers=np.array([[*c.powers, *[0.0] * (most - len(c.powers))] for _, c in bent]),
    )


def _added(a: Array, place: tuple[NDArray[np.intp], ...], terms: Array) -> Array:
    """Return an array with terms (..., k) added at places (k) of its last axes; several may go to one."""
    axes = len(place)
    stack = np.broadcast_shapes(a.shape[: a.ndim - axes], terms.shape[:-1])
    found = np.broadcast_to(a, (*stack, *a.shape[a.ndim - axes :])).astype(np.result_type(a, terms))
    for k, at in enumerate(zip(*place, strict=True)):
        found[(..., *at)] = found[(..., *at)] + terms[..., k]
    return found
