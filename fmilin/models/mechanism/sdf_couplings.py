"""Couplings between joints of SDFormat files: mimic and gearboxes, and joints that are fixed at zero."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fmilin.errors import ModelError, UnknownNameError
from fmilin.models.mechanism.mechanism_elements import Coupling
from fmilin.models.mechanism.part import Placement
from fmilin.models.mechanism.parts import SPEEDS, Joint
from fmilin.models.mechanism.sdf_connection import SdfConnection
from fmilin.models.mechanism.sdf_frames import SdfFrames

MAX_COSINE_ERROR = 1e-9  # axes of which the cosine differs by more from 1 are not parallel


def find_mimics(frames: SdfFrames, joints: Sequence[Joint]) -> list[Coupling]:
    """Return a coupling for each joint that mimics another one."""
    by_name = {joint.name: joint for joint in joints}
    couplings = []
    for name, (joint, scope) in frames.joints.items():
        for axis in joint.axes:
            mimic = axis.mimic
            if mimic is None or joint.type == "fixed":
                continue
            leader = frames.find(mimic.joint, scope, joint.line)
            where = f"the joint '{name}' mimics '{leader}'"
            for end in (name, leader):
                if end not in by_name or len(SPEEDS[by_name[end].type]) != 1 or mimic.second:
                    raise joint.line.wrong(
                        f"{where}: both must be joints with one degree of freedom that do not close a loop"
                    )
            with joint.line.add_location():
                couplings.append(Coupling(f"{name}.mimic", name, leader, mimic.multiplier, mimic.offset))
    return couplings


def find_gears(frames: SdfFrames, connections: Sequence[SdfConnection]) -> list[Coupling]:
    """Return a coupling for each gearbox, between the two joints of the tree to its reference body.

    The second angle is -gearbox_ratio times the first; both are measured from the reference body, to the parent
    about the axis and to the child about the second axis.
    """
    couplings = []
    for name, (joint, scope) in frames.joints.items():
        if joint.type != "gearbox":
            continue
        if len(joint.axes) < 2 or not joint.gear_reference:
            raise joint.line.wrong(f"the gearbox '{name}' needs <gearbox_reference_body>, <axis> and <axis2>")
        reference = frames.find_body(frames.find(joint.gear_reference, scope, joint.line))
        hinges, factors = [], []
        for end, axis in zip((joint.parent, joint.child), joint.axes, strict=True):
            body = frames.find_body(frames.find(end, scope, joint.line))
            hinge = next((c for c in connections if {c.parent, c.child} == {reference, body}), None)
            if hinge is None or hinge.type not in ("revolute", "helical"):
                raise joint.line.wrong(
                    f"the gearbox '{name}' needs a revolute joint between '{body}' and its reference body '{reference}'"
                )
            along = frames.place(frames.find_joint_frame(name)).R @ np.array(frames.turn_axis(axis, name))
            about = frames.place(hinge.parent).R @ hinge.on_parent.R @ np.array(hinge.axes[0])
            cosine = float(np.dot(along, about))
            if 1 - abs(cosine) > MAX_COSINE_ERROR:
                raise joint.line.wrong(
                    f"an axis of the gearbox '{name}' is not parallel to that of the joint '{hinge.name}'"
                )
            hinges.append(hinge.name)
            factors.append(np.sign(cosine) * (1.0 if hinge.child == body else -1.0))
        ratio = float(-joint.gear_ratio * factors[0] * factors[1])
        with joint.line.add_location():
            couplings.append(Coupling(name, hinges[1], hinges[0], ratio))
    return couplings


def fix_joints(
    joints: Sequence[Joint], couplings: Sequence[Coupling], names: Collection[str]
) -> tuple[list[Joint], list[Coupling]]:
    """Return the joints with some fixed at zero, free ones where they stand, and those that they are coupled with."""
    joint_names = {joint.name for joint in joints}
    for name in names:
        if name not in joint_names:
            raise UnknownNameError.among(name, joint_names, "a joint of the SDFormat file that could be fixed")
    fixed, before = set(names), set[str]()
    while fixed != before:
        before = set(fixed)
        for coupling in couplings:
            if {coupling.joint, coupling.leader} & fixed:
                fixed |= {coupling.joint, coupling.leader}
    offsets = {coupling.joint: coupling.offset for coupling in couplings}
    changed = [_fix_joint(j, offsets.get(j.name, 0.0)) if j.name in fixed else j for j in joints]
    return changed, [coupling for coupling in couplings if coupling.joint not in fixed]


def _fix_joint(joint: Joint, q: float) -> Joint:
    placement = joint.placement
    if joint.type == "free":
        placement = placement.then(Placement.from_quaternion(joint.position[:3], joint.position[3:]))
    elif q:
        shift = {"prismatic": q, "helical": joint.pitch * q}.get(joint.type, 0.0)
        angle = 0.0 if joint.type == "prismatic" else q
        placement = placement.then(Placement.from_axis(shift * np.array(joint.axis), joint.axis, angle))
    try:
        return Joint(joint.name, "fixed", joint.parent, joint.child, placement, joint.child_placement)
    except ModelError as error:
        error.add_note(f"This is about the joint '{joint.name}', which is fixed.")
        raise
