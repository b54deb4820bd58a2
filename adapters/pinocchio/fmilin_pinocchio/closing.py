"""Loops of Pinocchio models: a body is cut in two halves, and welded together again.

A loop through a pin becomes a joint of the tree with one half of the body behind it, and a 6D constraint that welds
the halves. The motion is that of the loop. 6D constraints are those with sound derivatives; those of 3D ones
between two moving joints are wrong in Pinocchio 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from fmilin.errors import ModelError, UnknownNameError
from fmilin.models.mechanism import Loop, Placement

__all__ = ["Weld", "with_loops"]


@dataclass(frozen=True)
class Weld:
    """Two frames that are one.

    Attributes
    ----------
    name : str
    joints : tuple of int
        The joints that carry the frames.
    placements : tuple of pinocchio.SE3
        The frames, seen from these joints.
    """

    name: str
    joints: tuple[int, int]
    placements: tuple[Any, Any]


@dataclass(frozen=True)
class _Cut:
    """A loop's joint in the tree, with one half of the cut body behind it."""

    parent: int
    placement: Any
    joint: Any
    name: str
    half: Any
    lever: Any
    """The other half's joint, seen from this one."""


def with_loops(robot: Any, loops: Sequence[Loop]) -> tuple[Any, tuple[Weld, ...]]:
    """Return a model with the loops' joints in its tree, and the welds that close them.

    Parameters
    ----------
    robot : pinocchio.Model
    loops : sequence of Loop
        ``fixed``, ``revolute``, ``prismatic`` or ``spherical``.

    Raises
    ------
    ModelError
        For other types of loops, or between two bodies of which neither moves.
    UnknownNameError
        When there is no such body.
    """
    robot = robot.copy()
    cuts: list[_Cut] = []
    ends = []
    for loop in loops:
        first = _frame(robot, loop.first, loop.first_placement)
        second = _frame(robot, loop.second, loop.second_placement)
        if loop.type != "fixed":
            if second[0] == 0:
                first, second = second, first  # what is cut must move
            if second[0] == 0:
                raise ModelError(f"The loop '{loop.name}' connects two bodies that do not move.")
            whole = robot.inertias[second[0]]
            half = pin.Inertia(whole.mass / 2, whole.lever.copy(), whole.inertia / 2)
            robot.inertias[second[0]] = half
            cuts.append(_Cut(first[0], first[1], _joint(loop), loop.name, half, second[1].inverse()))
        ends.append((loop, first, second))
    model, joint_of = _in_order(robot, cuts)
    welds = []
    for loop, first, second in ends:
        near = (
            (joint_of[first[0]], first[1])
            if loop.type == "fixed"
            else (model.getJointId(loop.name), pin.SE3.Identity())
        )
        welds.append(Weld(loop.name, (near[0], joint_of[second[0]]), (near[1], second[1])))
    return model, tuple(welds)


def _in_order(robot: Any, cuts: Sequence[_Cut]) -> tuple[Any, dict[int, int]]:
    """Return the tree with the cuts' joints, numbered depth first as Pinocchio wants it, and the new numbers."""
    model = pin.Model()
    model.name, model.gravity = robot.name, robot.gravity
    joint_of = {0: 0}

    def grow(j: int) -> None:
        for k in range(1, robot.njoints):
            if robot.parents[k] == j:
                added = model.addJoint(joint_of[j], robot.joints[k], robot.jointPlacements[k], robot.names[k])
                joint_of[k] = added
                model.appendBodyToJoint(added, robot.inertias[k], pin.SE3.Identity())
                grow(k)
        for cut in cuts:
            if cut.parent == j:
                added = model.addJoint(joint_of[j], cut.joint, cut.placement, cut.name)
                model.appendBodyToJoint(added, cut.half, cut.lever)

    grow(0)
    for k, added in joint_of.items():
        old, new = (slice(m.idx_vs[i], m.idx_vs[i] + m.nvs[i]) for m, i in ((robot, k), (model, added)))
        for what in ("armature", "damping", "friction"):
            if k:
                getattr(model, what)[new] = getattr(robot, what)[old]
    for frame in robot.frames:
        if frame.type == pin.FrameType.BODY:
            model.addFrame(pin.Frame(frame.name, joint_of[frame.parentJoint], frame.placement, frame.type))
    return model, joint_of


def _joint(loop: Loop) -> Any:
    axis = np.array(loop.axis) / np.linalg.norm(loop.axis)
    if loop.type == "revolute":
        return pin.JointModelRevoluteUnaligned(axis)
    if loop.type == "prismatic":
        return pin.JointModelPrismaticUnaligned(axis)
    if loop.type == "spherical":
        return pin.JointModelSpherical()
    raise ModelError(
        f"The loop '{loop.name}' has the type '{loop.type}', which this adapter does not support: use fixed, "
        "revolute, prismatic or spherical, or fmilin's own mechanisms, which have all types."
    )


def _frame(robot: Any, body: str, placement: Placement) -> tuple[int, Any]:
    """Return the joint that carries a body's frame, and the frame as seen from it."""
    seen = pin.SE3(np.array(placement.rotation), np.array(placement.position))
    if not robot.existFrame(body):
        bodies = [frame.name for frame in robot.frames if frame.type == pin.FrameType.BODY]
        raise UnknownNameError.among(body, bodies, f"a link of '{robot.name}'")
    frame = robot.frames[robot.getFrameId(body)]
    return int(frame.parentJoint), frame.placement * seen
