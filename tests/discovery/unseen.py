"""Two systems that were written down after the search was finished, and not used to build it."""

from __future__ import annotations

import numpy as np

from fmilin import Model
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray

WHEEL, HALF_TRACK = 0.1, 0.25


def wheeled_robot() -> Model:
    """A robot on two driven wheels, 10 states: no slip sideways and none at either wheel; it turns as the wheels do.

    Kept of the speeds: vy cos(theta) - vx sin(theta), vx cos(theta) + vy sin(theta) - r (left + right) / 2, and
    omega - r (right - left) / (2 b), which is the rate of theta - r (phi_r - phi_l) / (2 b).
    """

    def rates(_t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        theta, vx, vy, omega, left, right = x[2], *x[5:]
        s, c, r, b = np.sin(theta), np.cos(theta), WHEEL, HALF_TRACK
        G = np.array([[-s, c, 0, 0, 0], [c, s, 0, -r / 2, -r / 2], [0, 0, 1, r / (2 * b), -r / (2 * b)]])
        gamma = np.array([omega * (vx * c + vy * s), -omega * (vy * c - vx * s), 0.0])
        M = np.array([8.0, 8.0, 0.6, 0.02, 0.02])
        F = np.array([-0.5 * vx, -0.5 * vy, 0.0, u[0] - 0.01 * left, u[1] - 0.01 * right])
        W = G / M
        a = (F - G.T @ np.linalg.solve(W @ G.T, W @ F - gamma)) / M
        return np.concatenate((x[5:], a))

    names = ["x", "y", "theta", "phi_l", "phi_r", "vx", "vy", "omega", "left", "right"]
    start = dict.fromkeys(names, 0.0) | {"vx": 0.4, "left": 4.0, "right": 4.0}
    return FunctionModel("wheeled_robot", start, rates, inputs=["torque_l", "torque_r"])


def hoist() -> Model:
    """A load on a rope of 2 m in space under a trolley on rails, 8 states: (x - s)^2 + y^2 + z^2 = 4."""

    def rates(_t: float, q: FloatArray, u: FloatArray) -> FloatArray:
        d = np.array([q[1] - q[0], q[2], q[3]])
        d_dot = np.array([q[5] - q[4], q[6], q[7]])
        G = np.array([[-d[0], *d]])
        M = np.array([3.0, 1.5, 1.5, 1.5])
        F = np.array([u[0] - 2.0 * q[4], -0.1 * q[5], -0.1 * q[6], -1.5 * 9.81 - 0.1 * q[7]])
        W = G / M
        a = (F - G.T @ np.linalg.solve(W @ G.T, W @ F + d_dot @ d_dot)) / M
        return np.concatenate((q[4:], a))

    names = ["s", "x", "y", "z", "vs", "vx", "vy", "vz"]
    start = dict.fromkeys(names, 0.0) | {"s": 0.7, "x": 0.7, "y": 1.2, "z": -1.6}
    return FunctionModel("hoist", start, rates, inputs=["force"])
