"""The joints as products of elementary motions, and the screw S(q) and its rate of a whole joint.

Spencer (thesis), A.2.3 and A.2.7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.parts import Joint
from fmilin.models.mechanism.placement import Numbers, skew
from fmilin.models.mechanism.screws import Ad, ad

__all__ = ["Ball", "Screw", "Step", "joint_screw", "joint_transformation", "quaternion_rate", "rotation", "steps_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Screw:
    """Turns about ``w`` (unit or zero) while it moves along ``v``: e^(S q) with S = (w, v), v parallel to w."""

    w: tuple[float, float, float]
    v: tuple[float, float, float]

    @property
    def screws(self) -> Floats:
        """S, shape (1, 6)."""
        return np.array([[*self.w, *self.v]])

    @property
    def turn(self) -> Floats:
        """E_1, E_2, E_3 with e^(S q) = 1 + E_1 sin q + E_2 (1 - cos q) + E_3 q (A.1.3), shape (3, 4, 4)."""
        E = np.zeros((3, 4, 4))
        E[0, :3, :3] = skew(self.w)
        E[1, :3, :3] = skew(self.w) @ skew(self.w)
        E[2, :3, 3] = self.v
        return E


@dataclass(frozen=True)
class Ball:
    """Turns by a unit quaternion; the three freedoms are the angular velocity in axes of what turns."""

    @property
    def screws(self) -> Floats:
        """S, shape (3, 6)."""
        return np.eye(3, 6)


Step = Screw | Ball | None


def steps_of(joint: Joint) -> list[Screw | Ball]:
    """Return the elementary motions of a joint, from the parent outwards."""
    zero = (0.0, 0.0, 0.0)
    a, b = joint.axis, joint.second_axis or zero
    c = np.cross(a, b)
    along = (joint.pitch * a[0], joint.pitch * a[1], joint.pitch * a[2])
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    steps: dict[str, list[Screw | Ball]] = {
        "revolute": [Screw(a, zero)],
        "prismatic": [Screw(zero, a)],
        "helical": [Screw(a, along)],
        "cylindrical": [Screw(a, zero), Screw(zero, a)],
        "universal": [Screw(a, zero), Screw(b, zero)],
        "spherical": [Ball()],
        "planar": [Screw(zero, b), Screw(zero, (float(c[0]), float(c[1]), float(c[2]))), Screw(a, zero)],
        "fixed": [],
        "free": [Screw(zero, x), Screw(zero, y), Screw(zero, z), Ball()],
    }
    return steps[joint.type]


def rotation(e: Numbers) -> Floats:
    """Return the rotation R(e) of a quaternion that need not be of unit length, shape (3, 3)."""
    e = np.asarray(e)
    return np.asarray(
        ((e[0] ** 2 - e[1:] @ e[1:]) * np.eye(3) + 2 * np.outer(e[1:], e[1:]) + 2 * e[0] * skew(e[1:])) / (e @ e)
    )


def quaternion_rate(e: Numbers) -> Floats:
    """Return E with e' = E w, w in axes of what turns, shape (4, 3). E keeps the length of e."""
    e0, e1, e2, e3 = e
    return np.array([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) / 2


def joint_transformation(joint: Joint, q: Numbers) -> Floats:
    """Return what the coordinates q do between the two frames of a joint, shape (4, 4)."""
    X = np.eye(4)
    rest = list(q)
    for step in steps_of(joint):
        X, rest = X @ _motion(step, rest), rest[4 if isinstance(step, Ball) else 1 :]
    return X


def joint_screw(joint: Joint, q: Numbers, v: Numbers) -> tuple[Floats, Floats]:
    """Return S(q) and its rate Sdot(q, v) of a joint, in the joint's frame on the child (A.2.7).

    S v is the relative velocity f^-1 f'. Each elementary motion beyond turns the screws before it:
    S_k <- Ad_(f^-1) S_k, and Sdot_k <- Ad_(f^-1) Sdot_k - ad_(S_j v_j) Ad_(f^-1) S_k.

    Parameters
    ----------
    joint : Joint
    q, v : sequences of floats

    Returns
    -------
    S, Sdot : array, shape (6, n)
    """
    S, Sdot = np.zeros((6, 0)), np.zeros((6, 0))
    rest, speeds = list(q), list(v)
    for step in steps_of(joint):
        own = step.screws.T
        count = own.shape[1]
        back = Ad(np.linalg.inv(_motion(step, rest)))
        turned = back @ S
        Sdot = np.hstack((back @ Sdot - ad(own @ np.array(speeds[:count])) @ turned, np.zeros((6, count))))
        S = np.hstack((turned, own))
        rest, speeds = rest[4 if isinstance(step, Ball) else 1 :], speeds[count:]
    return S, Sdot


def _motion(step: Screw | Ball, q: Numbers) -> Floats:
    X = np.eye(4)
    if isinstance(step, Ball):
        X[:3, :3] = rotation(q[:4])
        return X
    E = step.turn
    return np.asarray(X + E[0] * np.sin(q[0]) + E[1] * (1 - np.cos(q[0])) + E[2] * q[0])
