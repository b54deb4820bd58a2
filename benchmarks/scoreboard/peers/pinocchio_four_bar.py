"""Pinocchio's computeConstraintDynamicsDerivatives of the four-bar linkage that hangs, its loop 3D: ``... ROW``."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.scoreboard.peers.common import chosen_row, nearest_of, tell

robot, one = pin.Model(), np.array([1.0, 0.0, 0.0])
robot.gravity = pin.Motion(np.array([0, -9.81, 0, 0, 0, 0]))
rod = pin.Inertia(1.0, one / 2, np.diag([0.001, 1 / 12, 1 / 12]))
crank = robot.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "phi")
coupler = robot.addJoint(crank, pin.JointModelRZ(), pin.SE3(np.eye(3), one), "elbow")
rocker = robot.addJoint(0, pin.JointModelRZ(), pin.SE3(np.eye(3), one), "rock")
for joint in (crank, coupler, rocker):
    robot.appendBodyToJoint(joint, rod, pin.SE3.Identity())
end = pin.SE3(np.eye(3), one)
models, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, robot, coupler, end, rocker, end, pin.LOCAL))
found.append(models[0].createData())
data, rest, settings = robot.createData(), np.zeros(robot.nv), pin.ProximalSettings(1e-13, 1e-10, 30)
pin.initConstraintDynamics(robot, data, models, found)
down = np.array([-np.pi / 2, np.pi / 2, -np.pi / 2])
pin.constraintDynamics(robot, data, down, rest, rest, models, found, settings)
pin.computeConstraintDynamicsDerivatives(robot, data, models, found, settings)
unit = np.eye(robot.nv)
A = np.block([[0 * unit, unit], [data.ddq_dq, data.ddq_dv]])
tell("pin", nearest_of(np.linalg.eigvals(A), chosen_row().ROW.value), "Pinocchio")
