"""The URDF files of the package ``example-robot-data``, where it is installed; Pinocchio is the oracle."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError
from fmilin.models.mechanism import Mechanism
from fmilin.models.mechanism.parts import SPEEDS

FOLDER = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
FILES = sorted(FOLDER.rglob("*.urdf"))
REFUSED = {
    "icub.urdf": "leaves der(neck_yaw.v), der(neck_roll.v) undetermined",  # a head without inertia, at zero positions
    "romeo.urdf": "moves no mass or inertia",
    "romeo_laas_small.urdf": "negative principal moment",
    "ur3.urdf": "there is no <link> in it",
}

pytestmark = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_robot_is_linearized_or_refused_for_a_reason(path: Path) -> None:
    if path.name in REFUSED:
        with pytest.raises(FmilinError) as caught:
            fl.linearize(fl.load(path))
        assert REFUSED[path.name] in str(caught.value)
        return
    model = fl.load(path)
    assert isinstance(model, Mechanism)
    if len(model.states):
        pin = pytest.importorskip("pinocchio")
        found, expected = _slopes(model, pin, pin.buildModelFromUrdf(str(path)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    else:
        assert fl.linearize(model).A.shape == (0, 0)


def _slopes(model: Mechanism, pin: Any, robot: Any) -> tuple[Any, Any]:
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
