"""Pinocchio's constraintDynamics of Andrews' squeezer, with three loops of points: the acceleration of beta."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.scoreboard.peers.common import tell
from benchmarks.scoreboard.rows.squeezer import ANGLES, BODIES, JOINTS, TIPS

robot, number = pin.Model(), {"ground": 0}
robot.gravity = pin.Motion.Zero()
for name, parent, child, (x, y), _angle in JOINTS:
    number[child] = robot.addJoint(number[parent], pin.JointModelRZ(), pin.SE3(np.eye(3), np.array([x, y, 0])), name)
    _body, mass, (cx, cy), inertia = next(body for body in BODIES if body[0] == child)
    about_centre = pin.Inertia(mass, np.array([cx, cy, 0.0]), inertia * np.eye(3))
    robot.appendBodyToJoint(number[child], about_centre, pin.SE3.Identity())
q = np.array([ANGLES[robot.names[j]] for j in range(1, robot.njoints)])
data = robot.createData()
pin.forwardKinematics(robot, data, q)

end, anchor = np.array([0.02, -0.018, 0.0]), np.array([0.014, 0.072, 0.0])
along = data.oMi[number["K3"]].act(end) - anchor
force = -4530 * (1 - 0.07785 / np.linalg.norm(along)) * along
turned = data.oMi[number["K3"]].rotation.T @ force
torque = pin.computeJointJacobian(robot, data, q, number["K3"]).T @ np.concatenate((turned, np.cross(end, turned)))
torque[robot.idx_vs[number["K1"]]] += 0.033

models, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
for body, (x, y) in TIPS.items():
    first, second = (pin.SE3(np.eye(3), np.array([*at, 0.0])) for at in ((-0.028, 0.0), (x, y)))
    sides = (number["K2"], first, number[body], second)
    models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, robot, *sides, pin.LOCAL))
    found.append(models[-1].createData())
pin.initConstraintDynamics(robot, data, models, found)
settings = pin.ProximalSettings(1e-14, 1e-12, 100)
pin.constraintDynamics(robot, data, q, np.zeros(robot.nv), torque, models, found, settings)
tell("pin", data.ddq[robot.idx_vs[number["K1"]]], "Pinocchio")
