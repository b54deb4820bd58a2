"""What the engines make of the same linkages by themselves: linear models of everything that they let move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from fmilin_mujoco import soft_linearization
from fmilin_pinocchio import with_loops
from numpy.typing import NDArray

import fmilin as fl
from fmilin import Model, OperatingPoint
from fmilin.models.mechanism import Loop

__all__ = ["all_states", "of_mujoco", "of_pinocchio"]

Spectrum = NDArray[np.complex128]

PROXIMAL = (1e-13, 1e-10, 30)
"""Accuracy, regularization and iterations of Pinocchio's constraint solver: plane loops have redundant rows."""


def all_states(model: Model, point: OperatingPoint) -> Spectrum:
    """Return the spectrum of the Jacobian of all states, as for an FMU in a tool that knows no constraints."""
    return fl.linearize(model.with_constraints([]), point).eigenvalues()


def of_mujoco(file: Path, angles: Mapping[str, float]) -> Spectrum:
    """Return the spectrum of mjd_transitionFD, which has springs as constraints."""
    return soft_linearization(file, qpos=list(angles.values()))  # joints in the order of the file


def of_pinocchio(file: Path, angles: Mapping[str, float], loops: Sequence[Loop], *, welded: bool) -> Spectrum:
    """Return the spectrum of computeConstraintDynamicsDerivatives over all velocities.

    Not welded, a loop is a 3D constraint between the points that are one; welded, it is a joint of its own with half of
    the second body behind it, and a 6D constraint, as the adapter has it.
    """
    robot = pin.buildModelFromUrdf(str(file))
    if welded:
        robot, welds = with_loops(robot, loops)
        sides = [(weld.joints, weld.placements) for weld in welds]
    else:
        sides = [_points(robot, loop) for loop in loops]
    q = _closed(robot, angles, loops, sides)
    kind = pin.ContactType.CONTACT_6D if welded else pin.ContactType.CONTACT_3D
    models, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for (j1, j2), (P1, P2) in sides:
        models.append(pin.RigidConstraintModel(kind, robot, j1, P1, j2, P2, pin.LOCAL))
        found.append(models[-1].createData())
    data, settings = robot.createData(), pin.ProximalSettings(*PROXIMAL)
    rest = np.zeros(robot.nv)
    pin.initConstraintDynamics(robot, data, models, found)
    pin.constraintDynamics(robot, data, q, rest, rest, models, found, settings)
    pin.computeConstraintDynamicsDerivatives(robot, data, models, found, settings)
    unit = np.eye(robot.nv)
    A = np.block([[0 * unit, unit], [data.ddq_dq, data.ddq_dv]])
    return np.linalg.eigvals(A).astype(np.complex128)


def _points(robot: Any, loop: Loop) -> tuple[tuple[int, int], tuple[Any, Any]]:
    """Return the joints that carry the two ends of a loop, and the ends seen from there."""
    joints, places = [], []
    for body, seen in ((loop.first, loop.first_placement), (loop.second, loop.second_placement)):
        frame = robot.frames[robot.getFrameId(body)]
        joints.append(int(frame.parentJoint))
        places.append(frame.placement * pin.SE3(np.array(seen.rotation), np.array(seen.position)))
    return (joints[0], joints[1]), (places[0], places[1])


def _closed(
    robot: Any, angles: Mapping[str, float], loops: Sequence[Loop], sides: Sequence[Any]
) -> NDArray[np.float64]:
    """Return q with these angles; the loops' own joints, where there are any, turned so that the welds are closed."""
    q = pin.neutral(robot)
    for j in range(1, robot.njoints):
        q[robot.idx_qs[j]] = angles.get(robot.names[j], q[robot.idx_qs[j]])
    data = robot.createData()
    pin.forwardKinematics(robot, data, q)
    for loop, ((j1, j2), (P1, P2)) in zip(loops, sides, strict=True):
        if robot.names[j1] == loop.name:
            R = (data.oMi[j1] * P1).rotation.T @ (data.oMi[j2] * P2).rotation
            turn = pin.Quaternion(R).coeffs() if loop.type == "spherical" else [np.dot(loop.axis, pin.log3(R))]
            q[robot.idx_qs[j1] : robot.idx_qs[j1] + robot.nqs[j1]] = turn
    return np.asarray(q, dtype=np.float64)
