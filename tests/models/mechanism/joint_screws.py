"""The screw S(q) of a whole joint and its rate, put together from its elementary motions: oracles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism import Joint
from fmilin.models.mechanism.part import Numbers, skew
from fmilin.models.mechanism.tree import Ball, Screw, ad, list_steps
from tests.models.mechanism.recursion import Ad

__all__ = ["joint_screw", "joint_transformation", "quaternion_rate", "rotation"]

Floats = NDArray[np.float64]


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
    for step in list_steps(joint):
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
    for step in list_steps(joint):
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
