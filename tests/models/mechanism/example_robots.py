"""The robots of the package ``example-robot-data``, and Pinocchio's derivatives of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from fmilin.models.mechanism import Mechanism
from fmilin.models.mechanism.parts import SPEEDS

__all__ = ["FILES", "FOLDER", "slopes_of_both"]

INSTALLED = Path("cmeel.prefix", "share", "example-robot-data", "robots")
"""Below the folder of packages that the robots are installed in."""


def find_robots() -> Path:
    """Return the folder of the robots: of the first of the folders of packages that has one."""
    folders = [Path(folder) / INSTALLED for folder in sys.path]
    return next((folder for folder in folders if folder.is_dir()), folders[-1])


FOLDER = find_robots()
FILES = sorted(FOLDER.rglob("*.urdf"))


def slopes_of_both(model: Mechanism, pin: Any, robot: Any) -> tuple[Any, Any]:
    """Return A at a moving point, ours and that of S' (tau - rnea) = 0 with q = S y + c."""
    d, random = model.description, np.random.default_rng(5)
    leads = {coupling.joint: coupling for coupling in d.couplings}
    joints = [joint for joint in d.joints if SPEEDS[joint.type]]
    free = [joint.name for joint in joints if joint.name not in leads]
    S, c, P = np.zeros((len(joints), len(free))), np.zeros(len(joints)), np.zeros((robot.nv, len(joints)))
    for i, joint in enumerate(joints):
        coupling = leads.get(joint.name)
        S[i, free.index(coupling.leader if coupling else joint.name)] = coupling.ratio if coupling else 1.0
        c[i] = coupling.offset if coupling else 0.0
        P[robot.joints[robot.getJointId(joint.name)].idx_v, i] = 1.0
    y, y_dot, u = (random.uniform(-r, r, len(free)) for r in (0.7, 1.0, 1.0))
    q, v = S @ y + c, S @ y_dot
    point = replace(model.start, states=np.concatenate((q, v)), inputs=u)
    ours = fl.linearize(model, point, independent=[f"{name}.q" for name in free])
    damping = S.T @ np.diag([joint.damping[0] for joint in joints]) @ S
    q, v, S, data = pin.integrate(robot, pin.neutral(robot), P @ q), P @ v, P @ S, robot.createData()
    M = np.triu(pin.crba(robot, data, q))
    M = S.T @ (M + np.triu(M, 1).T) @ S
    acceleration = np.linalg.solve(M, u - damping @ y_dot - S.T @ pin.nonLinearEffects(robot, data, q, v))
    by_q, by_v, _ = pin.computeRNEADerivatives(robot, data, q, v, S @ acceleration)
    k = len(free)
    lower = -np.linalg.solve(M, np.hstack((S.T @ by_q @ S, S.T @ by_v @ S + damping)))
    return ours.A, np.vstack((np.eye(k, 2 * k, k), lower))
