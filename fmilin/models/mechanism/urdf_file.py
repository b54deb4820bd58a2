"""Mechanisms from URDF files, which describe trees; a TOML file next to them closes loops and adds what URDF lacks."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from fmilin.errors import ModelError, UnknownNameError, join_first
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Coupling
from fmilin.models.mechanism.parts import SPEEDS, Joint, JointType
from fmilin.models.mechanism.robot_file import (
    FLOATING,
    MAX_JOINTS,
    MAX_LISTED_NAMES,
    Robot,
    RobotRemarks,
    describe_robot,
    find_least_moment,
    find_unused_name,
    make_body,
)
from fmilin.models.mechanism.source_lines import Lines, SourceLines
from fmilin.models.mechanism.toml_file import Parts
from fmilin.models.mechanism.urdf_elements import UrdfJoint, UrdfLink, UrdfTree, read_urdf

GROUND = "ground"  # the name of the ground below a base that floats
TYPES: dict[str, JointType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}


def read_urdf_description(
    path: Path, parts: Parts | None = None, *, floating_base: bool = False, fixed_joints: Collection[str] = ()
) -> tuple[MechanismDescription, SourceLines]:
    """Read a mechanism from a URDF file, with ``parts`` that a TOML file adds, and where it describes them.

    The root link is the ground, or a body on a free joint ``floating_base``. Links without mass are frames. A joint
    that mimics another one is coupled to it, unless it is fixed, as those in ``fixed_joints`` are at zero. Without
    ``[[input]]`` tables every other joint with one degree of freedom has an input ``JOINT.force`` or ``JOINT.torque``,
    and without ``[[sensor]]`` tables its position is an output. Diagnostics say what was left out or is doubtful.
    """
    parts = parts or Parts({}, {}, SourceLines(path), Lines({}))
    tree, content = read_urdf(path).with_world().with_fixed(fixed_joints), parts.content
    named: dict[str, list[int]] = {}
    elements: list[UrdfLink | UrdfJoint] = [*tree.links, *tree.joints]
    for part in elements:
        named.setdefault(part.name, []).append(part.line)
    source = SourceLines(path, named, parts.source)
    moving = sum(joint.type != "fixed" for joint in tree.joints)
    if moving > MAX_JOINTS:
        raise source.wrong(None, f"it has {moving} moving joints, and {MAX_JOINTS} is the largest number that is read")
    root = _root(tree, source)
    floating = floating_base or content.get("floating_base", False)
    ground = root.name
    if floating:
        ground = content.get("ground") or find_unused_name(GROUND, [link.name for link in tree.links])
    elif content.get("ground", root.name) != root.name:
        raise parts.wrong(("ground",), f"the ground of '{path.name}' is its root link '{root.name}'")
    remarks = RobotRemarks(rubbing=[joint.name for joint in tree.joints if joint.friction])
    least = find_least_moment(tree.links)
    bodies = [make_body(link, source, least, remarks) for link in tree.links if floating or link is not root]
    joints = [_joint(joint, source) for joint in tree.joints]
    if floating:
        free = find_unused_name(FLOATING, [joint.name for joint in tree.joints])
        joints.insert(0, Joint(free, "free", ground, root.name))
    astray: list[str] = []  # sentences about joints that mimic what is not there
    couplings = _couplings(tree, joints, source, astray)
    if astray:
        remarks.further.append(" ".join(astray[:MAX_LISTED_NAMES]))
    if tree.unknown:
        unknown = join_first(tree.unknown, MAX_LISTED_NAMES)
        remarks.further.append(f"Ignored, because URDF does not define it: {unknown}.")
    if tree.mended:
        mended = join_first(tree.mended, MAX_LISTED_NAMES)
        remarks.further.append(f"Read, although it is not valid URDF: {mended}.")
    robot = Robot(name=tree.name, format="URDF", ground=ground, bodies=bodies, joints=joints, couplings=couplings)
    return describe_robot(robot, parts, source, remarks), source


def _root(tree: UrdfTree, source: SourceLines) -> UrdfLink:
    """Return the one link that is not a joint's child."""
    if not tree.links:
        raise source.wrong(None, "there is no <link> in it")
    links = {link.name for link in tree.links}
    for joint in tree.joints:
        for end in (joint.parent, joint.child):
            if end not in links:
                error = UnknownNameError.among(end, links, f"a link, in the joint '{joint.name}'")
                raise source.wrong(joint.line, str(error))
    children = {joint.child for joint in tree.joints}
    roots = [link for link in tree.links if link.name not in children]
    if len(roots) == 1:
        return roots[0]
    if not roots:
        raise source.wrong(None, "every link is the child of a joint, so the joints form a cycle: URDF describes "
                           "trees, so make one of the joints a [[loop]] of a TOML file")  # fmt: skip
    listed = join_first((f"'{link.name}' (line {link.line})" for link in roots), 4)
    raise source.wrong(roots[1].line, f"{len(roots)} links are not the child of a joint: {listed}. One is the ground; "
                       "connect the others")  # fmt: skip


def _joint(joint: UrdfJoint, source: SourceLines) -> Joint:
    kind = TYPES[joint.type]
    damping: Any = 0.0
    if joint.damping and SPEEDS[kind]:
        if len(SPEEDS[kind]) != 1:
            raise source.wrong(joint.line, f"the joint '{joint.name}' of type '{joint.type}' has a damping: give one "
                               "value for each speed in a [[joint_setting]] of a TOML file")  # fmt: skip
        damping = joint.damping
    axis = joint.axis if len(SPEEDS[kind]) in (1, 3) else (1.0, 0.0, 0.0)  # others may have a zero there
    try:
        return Joint(joint.name, kind, joint.parent, joint.child, joint.origin, axis=axis,
                     damping=damping)  # fmt: skip
    except ModelError as error:
        raise source.wrong(joint.line, str(error)) from None


def _couplings(tree: UrdfTree, joints: list[Joint], source: SourceLines, astray: list[str]) -> list[Coupling]:
    """Return a coupling for each joint that mimics another one; nothing for fixed ones."""
    by_name = {joint.name: joint for joint in joints}
    couplings = []
    for joint in tree.joints:
        mimic = joint.mimic
        if mimic is None or not SPEEDS[by_name[joint.name].type]:
            continue
        where = f"the joint '{joint.name}' mimics"
        if mimic.joint not in by_name:
            error = UnknownNameError.among(mimic.joint, by_name, f"a joint, though {where} it")
            astray.append(f"{error} (Line {joint.line}; it moves freely.)")
            continue
        for name in (joint.name, mimic.joint):
            if len(SPEEDS[by_name[name].type]) != 1:
                raise source.wrong(joint.line, f"{where} '{mimic.joint}', but '{name}' is of the type "
                                   f"'{by_name[name].type}': both must have one degree of freedom")  # fmt: skip
        with source.add_location():
            couplings.append(Coupling(f"{joint.name}.mimic", joint.name, mimic.joint, mimic.multiplier, mimic.offset))
    return couplings
