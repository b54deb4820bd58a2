"""The URDF files of ``example-robot-data`` with a base that floats: slopes of accelerations against Pinocchio's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.models.mechanism import Mechanism
from tests.models.mechanism.example_robots import FILES

pin: Any = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")

REFUSED = ("romeo.urdf", "romeo_laas_small.urdf", "ur3.urdf")
LESS_WELL = {"icub.urdf": 1e-8}  # a small head high above the ground: see test_example_robots


def turned(e: Any, angle: Any) -> Any:
    """Return how a quaternion e changes with a small turn in axes of the body."""
    s, r = e[0], e[1:]
    return 0.5 * np.concatenate(([-r @ angle], s * angle + np.cross(r, angle)))


def slopes_of_both(model: Mechanism, robot: Any) -> tuple[Any, Any]:
    """Return the slopes of all accelerations at a moving point along motions of positions and velocities.

    Positions of the base move in the ground's axes, its turns and velocities are in those of the body; accelerations
    are ours: those of the base in the ground's axes.
    """
    joints = [joint for joint in model.description.joints if joint.type != "fixed"][1:]
    leads = {coupling.joint: coupling for coupling in model.description.couplings}
    free = [joint.name for joint in joints if joint.name not in leads]
    n, random = len(free), np.random.default_rng(7)
    K, c = np.zeros((len(joints), n)), np.zeros(len(joints))  # all joints follow the free ones
    for i, joint in enumerate(joints):
        coupling = leads.get(joint.name)
        K[i, free.index(coupling.leader if coupling else joint.name)] = coupling.ratio if coupling else 1.0
        c[i] = coupling.offset if coupling else 0.0
    N, q, v, u = n + 6, *(random.uniform(-r, r, k) for r, k in ((0.7, n), (1.0, n), (1.0, len(model.inputs))))
    p, e, b, w = (random.uniform(-1, 1, k) for k in (3, 4, 3, 3))
    e /= np.linalg.norm(e)
    R = pin.Quaternion(*e).toRotationMatrix()
    columns = []
    for move in np.eye(2 * N):
        dp, turn, dq, db, dw, dv = np.split(move, (3, 6, N, N + 3, N + 6))
        columns.append(np.concatenate((dp, turned(e, turn), K @ dq, R @ (db + np.cross(turn, b)), dw, K @ dv)))
    x, dx = np.concatenate((p, e, K @ q + c, R @ b, w, K @ v)), np.stack(columns, axis=1)
    ours = model.products(0.0, x, u, dx, np.zeros((len(u), 2 * N)))
    assert ours is not None

    S, P = np.zeros((robot.nv, N)), np.zeros((robot.nv, len(joints)))
    S[:6, :6] = np.eye(6)
    for k, joint in enumerate(joints):
        P[robot.joints[robot.getJointId(joint.name)].idx_v, k] = 1.0
    S[:, 6:] = P @ K
    q_pin = pin.integrate(robot, pin.neutral(robot), P @ (K @ q + c))
    q_pin[:7] = *p, *e[1:], e[0]
    v_pin, data = S @ np.concatenate((b, w, v)), robot.createData()
    M = np.triu(pin.crba(robot, data, q_pin))
    M = S.T @ (M + np.triu(M, 1).T) @ S
    damping = np.zeros((N, N))
    damping[6:, 6:] = K.T @ np.diag([joint.damping[0] for joint in joints]) @ K
    tau = np.concatenate((np.zeros(6), u)) - damping @ np.concatenate((b, w, v))
    a = np.linalg.solve(M, tau - S.T @ pin.nonLinearEffects(robot, data, q_pin, v_pin))
    by_q, by_v, _ = pin.computeRNEADerivatives(robot, data, q_pin, v_pin, S @ a)
    J = -np.linalg.solve(M, np.hstack((S.T @ by_q @ S, S.T @ by_v @ S + damping)))
    J[:, :3] = J[:, :3] @ R.T
    turns, velocities, rates = (np.eye(2 * N)[i : i + 3] for i in (3, N, N + 3))
    point = a[:3] + np.cross(w, b)
    J[:3] = R @ (J[:3] - pin.skew(point) @ turns - pin.skew(b) @ rates + pin.skew(w) @ velocities)
    kept = [*range(6), *(6 + i for i, joint in enumerate(joints) if joint.name in free)]
    return ours.derivatives[7 + len(joints) :][kept], J


@pytest.mark.parametrize("path", [p for p in FILES if p.name not in REFUSED], ids=lambda path: path.stem)
def test_a_robot_whose_base_floats(path: Path) -> None:
    model = fl.load(path, options={"floating_base": True})
    assert isinstance(model, Mechanism)
    ours, expected = slopes_of_both(model, pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=LESS_WELL.get(path.name, 1e-10) * np.abs(expected).max())
