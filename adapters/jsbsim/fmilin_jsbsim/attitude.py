"""Attitudes: unit quaternions from the local frame (north, east, down) to the body, and Euler angles."""

from __future__ import annotations

import numpy as np

from fmilin.signals import FloatArray

__all__ = ["angle_rates", "angles_of", "quaternion_of", "quaternion_rates", "rotation"]


def quaternion_of(phi: float, theta: float, psi: float) -> FloatArray:
    """Return the unit quaternion of yaw psi, then pitch theta, then roll phi, in rad, shape (4,).

    >>> quaternion_of(0.0, 0.0, np.pi).round(12)
    array([0., 0., 0., 1.])
    """
    (cx, cy, cz), (sx, sy, sz) = np.cos([phi / 2, theta / 2, psi / 2]), np.sin([phi / 2, theta / 2, psi / 2])
    return np.array(
        [
            cx * cy * cz + sx * sy * sz,
            sx * cy * cz - cx * sy * sz,
            cx * sy * cz + sx * cy * sz,
            cx * cy * sz - sx * sy * cz,
        ]
    )


def rotation(e: FloatArray) -> FloatArray:
    """Return the matrix that takes vectors from the local frame to the body, shape (3, 3); any length of e will do."""
    e0, e1, e2, e3 = e / np.linalg.norm(e)
    return np.array(
        [
            [e0 * e0 + e1 * e1 - e2 * e2 - e3 * e3, 2 * (e1 * e2 + e0 * e3), 2 * (e1 * e3 - e0 * e2)],
            [2 * (e1 * e2 - e0 * e3), e0 * e0 - e1 * e1 + e2 * e2 - e3 * e3, 2 * (e2 * e3 + e0 * e1)],
            [2 * (e1 * e3 + e0 * e2), 2 * (e2 * e3 - e0 * e1), e0 * e0 - e1 * e1 - e2 * e2 + e3 * e3],
        ]
    )


def angles_of(T: FloatArray) -> tuple[float, float, float]:
    """Return phi, theta and psi of a rotation (3, 3), psi from -pi to pi."""
    phi, psi = np.arctan2(T[1, 2], T[2, 2]), np.arctan2(T[0, 1], T[0, 0])
    return float(phi), float(-np.arcsin(np.clip(T[0, 2], -1.0, 1.0))), float(psi)


def quaternion_rates(e: FloatArray, w: FloatArray) -> FloatArray:
    """Return e' = e o (0, w)/2 for the angular velocity w (3,) against the local frame, in axes of the body."""
    e0, e1, e2, e3 = e
    p, q, r = w / 2
    return np.array(
        [-e1 * p - e2 * q - e3 * r, e0 * p - e3 * q + e2 * r, e3 * p + e0 * q - e1 * r, -e2 * p + e1 * q + e0 * r]
    )


def angle_rates(phi: float, theta: float, w: FloatArray) -> FloatArray:
    """Return phi', theta' and psi' for the same w."""
    p, q, r = w
    turning = q * np.sin(phi) + r * np.cos(phi)
    return np.array([p + np.tan(theta) * turning, q * np.cos(phi) - r * np.sin(phi), turning / np.cos(theta)])
