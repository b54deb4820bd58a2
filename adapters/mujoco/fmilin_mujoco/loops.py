"""All equality constraints of a model at once: gaps, their gradients, and how these change as the model moves.

MuJoCo keeps the screws of all degrees of freedom (``cdof``, about the centre of mass of their tree): a point at r from
there moves with l + w x r. Everything here is sums of these over the degrees of freedom that move a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import mujoco
import numpy as np

from fmilin.signals import FloatArray
from fmilin_mujoco.equalities import ROUNDING, Connect, Coupling, Equality, Weld
from fmilin_mujoco.names import quaternion_places

__all__ = ["Loops", "Posture"]

AHEAD, BEHIND = np.array([1, 2, 0]), np.array([2, 0, 1])
IMAGINARY = np.array([1.0, -1.0, -1.0, -1.0])


@dataclass(frozen=True)
class Posture:
    """What MuJoCo has computed at a point."""

    qpos: FloatArray
    xpos: FloatArray
    xmat: FloatArray
    xquat: FloatArray
    subtree_com: FloatArray
    cdof: FloatArray

    @classmethod
    def of(cls, data: Any) -> Posture:
        """Return it as a view of ``data``."""
        return cls(*(getattr(data, name) for name in NAMES))


NAMES = tuple(field.name for field in fields(Posture))


class Ends(NamedTuple):
    """Ends of all ties at one point: places (2n, 3), also from the tree's centre; Jacobians (2n, nv, 3); turning."""

    p: FloatArray
    r: FloatArray
    J: FloatArray
    T: FloatArray


class Loops:
    """The equality constraints g(q) = 0 of a model, with dg/dt = G v.

    Parameters
    ----------
    model : mujoco.MjModel
    equalities : sequence of Equality
        Their order is that of the rows.
    """

    def __init__(self, model: Any, equalities: Sequence[Equality]) -> None:
        firsts = np.cumsum([0, *(len(e.units) for e in equalities)])
        self.count, self._nv = int(firsts[-1]), model.nv
        tied = [(e, p) for e, p in zip(equalities, firsts, strict=False) if isinstance(e, Connect | Weld)]
        welds = [(i, e, p) for i, (e, p) in enumerate(tied) if isinstance(e, Weld)]
        joints = [(e, p) for e, p in zip(equalities, firsts, strict=False) if isinstance(e, Coupling)]
        self._points = np.array([p + np.arange(3) for _, p in tied], dtype=int).reshape(-1, 3)
        self._turns = np.array([p + np.arange(3, 6) for *_, p in welds], dtype=int).reshape(-1, 3)
        self._joints = np.array([p for _, p in joints], dtype=int)
        self._n, self._welds = len(tied), np.array([i for i, *_ in welds], dtype=int)
        self._turned = np.array([e.turned for _, e, _ in welds]).reshape(-1, 4)
        # The first sides of all, then the second ones.
        self._bodies = np.array([e.anchors.bodies[side] for side in (0, 1) for e, _ in tied], dtype=int)
        self._anchors = np.array([e.anchors.points[side] for side in (0, 1) for e, _ in tied]).reshape(-1, 3)
        self._roots = model.body_rootid[self._bodies]
        self._moves = np.array([_movers(model, body) for body in self._bodies]).reshape(len(self._bodies), model.nv)
        carries = _carriers(model)
        self._balls = [dof for _, _, dof in quaternion_places(model)]
        self._carried = (self._moves[:, :, None] * carries).transpose(0, 2, 1)
        self._carried = self._carried.reshape(len(self._bodies) * model.nv, model.nv)
        self._set_couplings(model, [e for e, _ in joints])

    def _set_couplings(self, model: Any, couplings: Sequence[Coupling]) -> None:
        sides = [[e.along(side) for e in couplings] for side in (0, 1)]
        # factors of positions and of velocities in the lengths that follow and lead, (k, nq) and (k, nv)
        self._of_q = [np.array([q for q, _ in side]).reshape(len(side), model.nq) for side in sides]
        self._of_v = [np.array([v for _, v in side]).reshape(len(side), model.nv) for side in sides]
        self._reference = model.qpos0.copy()
        terms = np.zeros((3, len(couplings), 5))  # the polynomials and two derivatives of them
        for i, e in enumerate(couplings):
            terms[0, i, : len(e.polynomial.coef)] = e.polynomial.coef
        for k in (1, 2):
            terms[k, :, :-1] = terms[k - 1, :, 1:] * np.arange(1, 5)
        self._terms = terms

    def both(self, at: Posture, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rows and changes at one point, what they share computed once."""
        ends = self._ends(at)
        return *self.rows(at, ends), self.changes(at, v, ends)

    def rows(self, at: Posture, ends: Ends | None = None) -> tuple[FloatArray, FloatArray]:
        """Return g (m,) and G (m, nv) at one point, velocities not used."""
        g, G, n = np.zeros(self.count), np.zeros((self.count, self._nv)), self._n
        p, _, J, T = ends or self._ends(at)
        if n:
            g[self._points] = p[:n] - p[n:]
            G[self._points] = _between(J, n).transpose(0, 2, 1)
        if len(self._welds):
            R = self._moves[:, :, None] * at.cdof[:, :3]
            sides = np.concatenate((R[self._welds], R[n + self._welds]))
            W = T[:, 1:, 1:] @ _between(sides, len(self._welds)).transpose(0, 2, 1)
            size = np.abs(sides).reshape(2, len(self._welds), -1).max(axis=(0, 2))[:, None, None]
            g[self._turns] = 2.0 * T[:, 1:, 0]
            G[self._turns] = np.where(np.abs(W).max(axis=2, keepdims=True) > ROUNDING * size, W, 0.0)
        if len(self._joints):
            value, slope, _ = self._polynomials(at)
            g[self._joints] = self._of_q[0] @ (at.qpos - self._reference) - value
            G[self._joints] = self._of_v[0] - slope[:, None] * self._of_v[1]
        return g, G

    def changes(self, at: Posture, v: FloatArray, ends: Ends | None = None) -> FloatArray:
        """Return how G v changes along each freedom, v held, at one point, shape (m, nv)."""
        slopes, n, nv = np.zeros((self.count, self._nv)), self._n, self._nv
        if not v.any():
            return slopes
        _, r, J, T = ends or self._ends(at)
        if n:
            w, line = at.cdof[:, :3], at.cdof[:, 3:]
            twist = (self._carried @ (at.cdof * v[:, None])).reshape(-1, nv, 6)
            turn = _cross(w, twist[..., :3])
            spin = (self._moves @ (w * v[:, None]))[:, None]
            moved = _cross(w, twist[..., 3:]) + _cross(line, twist[..., :3]) + _cross(turn, r[:, None])
            slopes[self._points] = _between(moved + _cross(spin, J), n).transpose(0, 2, 1)
        if len(self._welds):
            k = self._welds
            both = spin[k] - spin[n + k]
            R = self._moves[:, :, None] * w
            inner = np.concatenate(
                (-(both * (R[k] - R[n + k])).sum(axis=2, keepdims=True), _cross(both, R[k] + R[n + k])), axis=2
            )
            inner = 0.5 * inner
            inner[..., 1:] += turn[k] - turn[n + k]
            slopes[self._turns] = T[:, 1:] @ inner.transpose(0, 2, 1)
        if len(self._joints):
            leading = self._of_v[1]
            slopes[self._joints] = -(self._polynomials(at)[2] * (leading @ v))[:, None] * leading
        return slopes

    def turning(self, v: FloatArray) -> FloatArray:
        """Return W (nv, nv): moving along v and then along freedom j differs from the reverse by a motion along W_j."""
        W = np.zeros((self._nv, self._nv))
        for i in self._balls:
            x, y, z = v[i : i + 3]
            W[i : i + 3, i : i + 3] = ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0))
        return W

    def bends(self, at: Posture, multipliers: FloatArray) -> FloatArray:
        """Return how G' lambda changes along each freedom, lambda held, at one point, shape (nv, nv).

        Freedom j turns the axis of i, which it carries, with all that hangs on it: w_j x J_i; else w_i x J_j.
        """
        n, k, w = self._n, self._welds, at.cdof[:, :3]
        _, _, J, T = self._ends(at)
        carried = self._carried.reshape(-1, self._nv, self._nv)  # (.., j, i)
        turned = _cross(np.concatenate((multipliers[self._points], -multipliers[self._points]))[:, None], w)
        P = turned @ J.transpose(0, 2, 1)
        turning = (self._moves[:, :, None] - carried.transpose(0, 2, 1)) * P
        slopes: FloatArray = turning.sum(axis=0) + (carried * P).sum(axis=0).T
        if len(k):
            tau = (multipliers[self._turns][:, None] @ T[:, 1:])[:, 0]
            apart, both = (self._moves[k] + sign * self._moves[n + k] for sign in (-1, 1))
            apart, both = apart[:, :, None] * w, both[:, :, None] * w
            slopes -= 0.5 * (tau[:, :1, None] * apart @ apart.transpose(0, 2, 1)).sum(axis=0)
            slopes += 0.5 * (_cross(tau[:, None, 1:], apart) @ both.transpose(0, 2, 1)).sum(axis=0)
            turns = (carried[k] - carried[n + k]) * (_cross(tau[:, None, 1:], w) @ w.T)
            slopes += turns.sum(axis=0).T
        if len(self._joints):
            leading = self._of_v[1]
            slopes -= leading.T @ ((multipliers[self._joints] * self._polynomials(at)[2])[:, None] * leading)
        return slopes

    def _reach(self, at: Posture) -> tuple[FloatArray, FloatArray]:
        """Return the ends of all ties in the world, and from the centre of mass of their tree."""
        turned = at.xmat.reshape(*at.xmat.shape[:-1], 3, 3)[..., self._bodies, :, :] @ self._anchors[:, :, None]
        p = at.xpos[..., self._bodies, :] + turned[..., 0]
        return p, p - at.subtree_com[..., self._roots, :]

    def _ends(self, at: Posture) -> Ends:
        p, r = self._reach(at)
        J = self._moves[:, :, None] * (at.cdof[:, 3:] + _cross(at.cdof[:, :3], r[:, None]))
        return Ends(p, r, J, self._turning(at) if len(self._welds) else np.empty((0, 4, 4)))

    def _turning(self, at: Posture) -> FloatArray:
        """Return the matrices of w -> conj(q_2) w q_1 turned, shape (.., welds, 4, 4)."""
        first, second = self._bodies[self._welds], self._bodies[self._n + self._welds]
        q_1 = (_by_left(at.xquat[..., first, :]) @ self._turned[:, :, None])[..., 0]
        return np.asarray(_by_left(at.xquat[..., second, :] * IMAGINARY) @ _by_right(q_1))

    def _polynomials(self, at: Posture) -> FloatArray:
        """Return values and two derivatives where the leading joints stand, shape (3, .., couplings)."""
        s = (at.qpos - self._reference) @ self._of_q[1].T
        powers = s[..., None] ** np.arange(5)
        return np.array([(powers * terms).sum(axis=-1) for terms in self._terms])


def _movers(model: Any, body: int) -> FloatArray:
    """Return 1 for each freedom that moves a body."""
    moving = np.zeros(model.nv)
    while body:
        start = int(model.body_dofadr[body])
        moving[start : start + int(model.body_dofnum[body])] = 1.0
        body = int(model.body_parentid[body])
    return moving


def _carriers(model: Any) -> FloatArray:
    """Return 1 at (i, j) where a motion along freedom j carries the axis of freedom i, as its own quaternion does."""
    together = np.zeros((model.nv, model.nv))
    for i in range(model.nv):
        j = int(model.dof_parentid[i])
        while j >= 0:
            together[i, j] = 1.0
            j = int(model.dof_parentid[j])
    for joint, kind in enumerate(model.jnt_type):
        start = int(model.jnt_dofadr[joint])
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            together[start : start + 3, start : start + 3] = 1.0
        elif kind == mujoco.mjtJoint.mjJNT_FREE:
            together[start : start + 3, start : start + 3] = 0.0  # along the axes of the world
            together[start + 3 : start + 6, start + 3 : start + 6] = 1.0
    return together


def _between(ends: FloatArray, n: int) -> FloatArray:
    """Return first minus second ends (n, nv, 3); components of which only rounding is left are zero."""
    differences = ends[:n] - ends[n:]
    size = np.abs(ends).reshape(2, n, -1).max(axis=(0, 2), initial=0.0)[:, None, None]
    return np.where(np.abs(differences).max(axis=1, keepdims=True) > ROUNDING * size, differences, 0.0)


def _cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a x b; ``numpy.cross`` takes many times as long for small arrays."""
    return np.asarray(a.take(AHEAD, -1) * b.take(BEHIND, -1) - a.take(BEHIND, -1) * b.take(AHEAD, -1))


def _by_left(q: FloatArray) -> FloatArray:
    """Return the matrices of p -> q p."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack((w, -x, -y, -z, x, w, -z, y, y, z, w, -x, z, -y, x, w), axis=-1).reshape(*q.shape, 4)


def _by_right(q: FloatArray) -> FloatArray:
    """Return the matrices of p -> p q."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack((w, -x, -y, -z, x, w, z, -y, y, -z, w, x, z, y, -x, w), axis=-1).reshape(*q.shape, 4)
