"""Equality constraints of MuJoCo as ideal ones: the gap and its Jacobian.

:mod:`fmilin_mujoco.loops` has all of them at once, with the accelerations that keep them closed.
MuJoCo itself holds them by springs and dampers of its own choice (solref, solimp). Here they are g(q) = 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import mujoco
import numpy as np

from fmilin.errors import ModelError
from fmilin.signals import FloatArray
from fmilin_mujoco.names import name_of

__all__ = ["ROUNDING", "Connect", "Coupling", "Equality", "Weld", "equalities", "factors_of_tendon", "held_to_world"]

SITE = mujoco.mjtObj.mjOBJ_SITE
ROUNDING = 1e-13
"""The fraction of its terms below which a sum counts as zero: a row across a plane, for example."""


class Equality(ABC):
    """g(q) = 0, with dg/dt = G v.

    Attributes
    ----------
    name : str
    units : tuple of str
        Of each row.
    """

    name: str
    units: tuple[str, ...]

    @abstractmethod
    def rows(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return g (m,) and G (m, nv), at the positions in ``data``."""


class _Anchors:
    """A point fixed in each of two bodies; differences between the first and the second."""

    def __init__(self, model: Any, bodies: tuple[int, int], points: tuple[FloatArray, FloatArray]) -> None:
        self.model, self.bodies, self.points = model, bodies, points

    def position(self, data: Any, side: int) -> FloatArray:
        """Return where the point is in the world."""
        body = self.bodies[side]
        return np.asarray(data.xpos[body] + data.xmat[body].reshape(3, 3) @ self.points[side])

    def gap(self, data: Any) -> FloatArray:
        """Return p_1 - p_2."""
        return self.position(data, 0) - self.position(data, 1)

    def jacobians(self, data: Any, side: int) -> tuple[FloatArray, FloatArray]:
        """Return the translational and the rotational Jacobian of one side."""
        J_p, J_r = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        if self.bodies[side]:
            mujoco.mj_jac(self.model, data, J_p, J_r, self.position(data, side), self.bodies[side])
        return J_p, J_r

    def between(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return the differences of both Jacobians; what only rounding leaves of equal terms is zero."""
        (P, R), (p, r) = self.jacobians(data, 0), self.jacobians(data, 1)
        return without_rounding(P - p, _largest(P, p)), without_rounding(R - r, _largest(R, r))


class Connect(Equality):
    """Two points stay together: g = p_1 - p_2 in the world's axes."""

    units = ("m", "m", "m")

    def __init__(self, name: str, anchors: _Anchors) -> None:
        self.name, self.anchors = name, anchors

    def rows(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return g and G."""
        return self.anchors.gap(data), self.anchors.between(data)[0]


class Weld(Equality):
    """Two frames stay together: p_1 = p_2, and twice the vector part of e = conj(q_2) q_1 ``turned`` is zero.

    With w = w_1 - w_2 in the world's axes, e' = conj(q_2) (w/2) q_1 turned.
    """

    units = ("m", "m", "m", "1", "1", "1")

    def __init__(self, name: str, anchors: _Anchors, turned: FloatArray) -> None:
        self.name, self.anchors, self.turned = name, anchors, turned

    def rows(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return g and G."""
        q_1, q_2 = self._sides(data)
        J_p, J_r = self.anchors.between(data)
        g = np.concatenate((self.anchors.gap(data), 2.0 * _product(q_2, q_1)[1:]))
        return g, np.vstack((J_p, without_rounding(_turn(q_1, q_2) @ J_r, _largest(J_r))))

    def _sides(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return q_1 turned, and conj(q_2)."""
        first, second = self.anchors.bodies
        return _product(data.xquat[first], self.turned), _conjugate(data.xquat[second])


Factors = dict[int, float]
"""Of joints with one degree of freedom, by number: a joint alone, or a tendon over joints."""


class Coupling(Equality):
    """A joint, or a tendon over joints, follows another: L_1 = c_0 + c_1 L_2 + .. + c_4 L_2^4.

    Both count from the reference positions, L = sum factor (q - q_0).
    """

    def __init__(self, name: str, model: Any, sides: tuple[Factors, Factors], coefficients: FloatArray) -> None:
        self.name, self.model, self.sides = name, model, sides
        self.polynomial = np.polynomial.Polynomial(coefficients if sides[1] else coefficients[:1])
        slides = {bool(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE) for joint in sides[0]}
        self.units = ("m" if slides == {True} else "rad" if slides == {False} else "1",)

    def rows(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """Return g = L_1 - P(L_2) and G."""
        (first, along_first), (second, along_second) = (self.along(side) for side in (0, 1))
        apart = data.qpos - self.model.qpos0
        s = float(second @ apart)
        slope = float(self.polynomial.deriv()(s))
        return np.array([first @ apart - self.polynomial(s)]), (along_first - slope * along_second)[None]

    def along(self, side: int) -> tuple[FloatArray, FloatArray]:
        """Return the factors of all positions (nq,) and of all velocities (nv,) in L_1 or L_2."""
        of_positions, of_velocities = np.zeros(self.model.nq), np.zeros(self.model.nv)
        for joint, factor in self.sides[side].items():
            of_positions[self.model.jnt_qposadr[joint]] += factor
            of_velocities[self.model.jnt_dofadr[joint]] += factor
        return of_positions, of_velocities


def held_to_world(model: Any, data: Any, body: int, p: FloatArray) -> _Anchors:
    """Return a point of a body, p (3,) in the world, and where it is now."""
    of_body = data.xmat[body].reshape(3, 3).T @ (p - data.xpos[body])
    return _Anchors(model, (body, 0), (of_body, p.copy()))


def equalities(model: Any) -> list[Equality]:
    """Return the active equality constraints of a model.

    Raises
    ------
    ModelError
        When there is one that cannot be made ideal; with its name.
    """
    equalities = []
    for i in range(model.neq):
        if not model.eq_active0[i]:
            continue
        name = name_of(model, mujoco.mjtObj.mjOBJ_EQUALITY, i, "equality")
        kind = mujoco.mjtEq(model.eq_type[i])
        make = _MAKERS.get(kind)
        if make is None:
            word = kind.name.removeprefix("mjEQ_").lower()
            raise ModelError(
                f"The equality constraint '{name}' is of the kind '{word}', which cannot be made ideal here: connect, "
                'weld, joint and tendon can. Set active="false" on it, or replace it by one of these.'
            )
        equalities.append(make(model, i, name))
    return equalities


def _connect(model: Any, i: int, name: str) -> Equality:
    ids = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
    if model.eq_objtype[i] == SITE:
        return Connect(name, _of_sites(model, ids))
    data = model.eq_data[i]
    return Connect(name, _Anchors(model, ids, (data[0:3].copy(), data[3:6].copy())))


def _weld(model: Any, i: int, name: str) -> Equality:
    ids, data = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])), model.eq_data[i]
    if model.eq_objtype[i] == SITE:
        turned = _product(model.site_quat[ids[0]], _conjugate(model.site_quat[ids[1]]))
        return Weld(name, _of_sites(model, ids), turned)
    return Weld(name, _Anchors(model, ids, (data[3:6].copy(), data[0:3].copy())), data[6:10].copy())


def _of_sites(model: Any, sites: tuple[int, int]) -> _Anchors:
    bodies = (int(model.site_bodyid[sites[0]]), int(model.site_bodyid[sites[1]]))
    return _Anchors(model, bodies, (model.site_pos[sites[0]].copy(), model.site_pos[sites[1]].copy()))


def _joint(model: Any, i: int, name: str) -> Equality:
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    sides = {first: 1.0}, {second: 1.0} if second >= 0 else {}
    return Coupling(name, model, sides, model.eq_data[i][:5].copy())


def _tendon(model: Any, i: int, name: str) -> Equality:
    first, second = (factors_of_tendon(model, int(t), name) for t in (model.eq_obj1id[i], model.eq_obj2id[i]))
    return Coupling(name, model, (first, second), model.eq_data[i][:5].copy())


def factors_of_tendon(model: Any, tendon: int, equality: str) -> Factors:
    """Return the factors of joints in the length of a tendon over joints; none for the number -1.

    Raises
    ------
    ModelError
        When the tendon runs along sites or geoms.
    """
    if tendon < 0:
        return {}
    start = int(model.tendon_adr[tendon])
    factors: Factors = {}
    for w in range(start, start + int(model.tendon_num[tendon])):
        if model.wrap_type[w] != mujoco.mjtWrap.mjWRAP_JOINT:
            name = name_of(model, mujoco.mjtObj.mjOBJ_TENDON, tendon, "tendon")
            raise ModelError(
                f"The equality constraint '{equality}' holds the tendon '{name}', which runs along points: those over "
                'joints can be made ideal. Set active="false" on it, or connect points instead.'
            )
        joint = int(model.wrap_objid[w])
        factors[joint] = factors.get(joint, 0.0) + float(model.wrap_prm[w])
    return factors


_MAKERS = {
    mujoco.mjtEq.mjEQ_CONNECT: _connect,
    mujoco.mjtEq.mjEQ_WELD: _weld,
    mujoco.mjtEq.mjEQ_JOINT: _joint,
    mujoco.mjtEq.mjEQ_TENDON: _tendon,
}


def without_rounding(terms: FloatArray, size: float) -> FloatArray:
    """Return rows (m, n) that were summed from terms of some size; zero where only rounding is left of a row."""
    rows = np.abs(terms).max(axis=1, keepdims=True, initial=0.0)
    return np.where(rows > ROUNDING * size, terms, 0.0)


def _largest(*arrays: FloatArray) -> float:
    return max(float(np.abs(a).max(initial=0.0)) for a in arrays)


def _product(a: Any, b: Any) -> FloatArray:
    """Return the product of two quaternions."""
    product = np.zeros(4)
    mujoco.mju_mulQuat(product, np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    return product


def _turn(q_1: FloatArray, q_2: FloatArray) -> FloatArray:
    """Return the matrix that takes w to the vector part of q_2 w q_1."""
    return np.array([_product(_product(q_2, axis), q_1)[1:] for axis in np.eye(4)[1:]]).T


def _conjugate(q: Any) -> FloatArray:
    return np.asarray(q * np.array([1.0, -1.0, -1.0, -1.0]))
