"""Mechanisms from URDF files, which describe trees; a TOML file beside them closes loops and adds what URDF lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fmilin.errors import ModelError, UnknownNameError
from fmilin.models.mechanism.description import (
    Body,
    Input,
    Joint,
    JointForce,
    MechanismDescription,
    Placement,
    Sensor,
)
from fmilin.models.mechanism.parts import SPEEDS, JointType
from fmilin.models.mechanism.source_lines import Places
from fmilin.models.mechanism.toml_file import Parts, with_settings
from fmilin.models.mechanism.urdf_elements import Origin, UrdfJoint, UrdfLink, UrdfTree, read_urdf

__all__ = ["beside", "read_urdf_description", "robot_in"]

TYPES: dict[str, JointType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}


def beside(path: Path) -> Path | None:
    """Return the file ``STEM.fmilin.toml`` beside a URDF file, if there is one."""
    found = path.with_name(f"{path.stem}.fmilin.toml")
    return found if found.is_file() else None


def robot_in(parts: Parts) -> Path | None:
    """Return the URDF file that a mechanism file names, relative to it."""
    named = parts.content.get("urdf")
    return None if named is None else parts.places.file.parent / named


def read_urdf_description(path: Path, parts: Parts | None = None) -> tuple[MechanismDescription, Places]:
    """Read a mechanism from a URDF file.

    The root link is the ground. Links without ``<inertial>`` are massless frames. Without ``[[input]]`` tables every
    joint with one freedom has a force or torque ``JOINT.force`` or ``JOINT.torque`` as input, and without
    ``[[sensor]]`` tables its position is an output.

    Parameters
    ----------
    path : Path
    parts : Parts, optional
        What a TOML file adds: loops, springs, inputs, sensors, gravity, values for joints; further bodies and joints.

    Returns
    -------
    MechanismDescription
        Friction, which a linear model does not contain, among its remarks.
    Places
        Where its parts stand in the files, for messages.

    Raises
    ------
    ModelError
        When a file cannot be read or something in it is wrong; with the line and the link or joint.
    """
    tree = read_urdf(path)
    named: dict[str, list[int]] = {}
    elements: list[UrdfLink | UrdfJoint] = [*tree.links, *tree.joints]
    for part in elements:
        named.setdefault(part.name, []).append(part.line)
    places = Places(path, named, None if parts is None else parts.places)
    root = _root(tree, places)
    given = {} if parts is None else parts.content
    if given.get("ground", root.name) != root.name:
        raise parts_wrong(parts, ("ground",), f"the ground of '{path.name}' is its root link '{root.name}'")
    more: dict[str, Any] = {} if parts is None else dict(parts.fields)
    bodies = [*(_body(link, places) for link in tree.links if link is not root), *more.pop("bodies", ())]
    joints = [_joint(joint, places) for joint in tree.joints]
    joints = [*(joints if parts is None else _set(joints, parts)), *more.pop("joints", ())]
    if "input" not in given:
        more["inputs"] = _inputs(joints)
    if "sensor" not in given:
        more["sensors"] = _sensors(joints)
    with places.named():
        description = MechanismDescription(
            given.get("name") or tree.name,
            bodies,
            joints,
            **more,
            ground=root.name,
            remarks=_remarks(tree),
            **{key: given[key] for key in ("gravity", "independent") if key in given},
        )
    return description, places


def parts_wrong(parts: Parts | None, place: tuple[str | int, ...], what: str) -> ModelError:
    """Return the error that something in the TOML file does not fit the URDF file."""
    if parts is None:
        return ModelError(what)
    return parts.places.wrong(parts.lines.find(place), what)


def _root(tree: UrdfTree, places: Places) -> UrdfLink:
    """Return the one link that is no joint's child."""
    if not tree.links:
        raise places.wrong(None, "there is no <link> in it")
    known = {link.name for link in tree.links}
    for joint in tree.joints:
        for end in (joint.parent, joint.child):
            if end not in known:
                error = UnknownNameError.among(end, known, f"a link, in the joint '{joint.name}'")
                raise places.wrong(joint.line, str(error))
    children = {joint.child for joint in tree.joints}
    roots = [link for link in tree.links if link.name not in children]
    if len(roots) == 1:
        return roots[0]
    if not roots:
        raise places.wrong(None, "every link is the child of a joint, so the joints form a circle: URDF describes "
                           "trees, make one of the joints a [[loop]] of a TOML file")  # fmt: skip
    listed = ", ".join(f"'{link.name}' (line {link.line})" for link in roots[:4])
    raise places.wrong(roots[1].line, f"{len(roots)} links are no joint's child, {listed}: one of them is the ground, "
                       "the others are disconnected")  # fmt: skip


def _body(link: UrdfLink, places: Places) -> Body:
    inertial = link.inertial
    if inertial is None:
        return Body(link.name, None)
    if not inertial.mass > 0:
        raise places.wrong(link.line, f"the link '{link.name}' has a mass of {inertial.mass:g} kg: a mass must be "
                           "positive; leave out <inertial> for a frame without mass")  # fmt: skip
    R = _placement(inertial.origin).R
    xx, yy, zz, xy, xz, yz = inertial.inertia
    J = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    try:
        return Body(link.name, inertial.mass, inertial.origin.xyz, (J + J.T) / 2)
    except ModelError as error:
        raise places.wrong(link.line, str(error)) from None


def _joint(joint: UrdfJoint, places: Places) -> Joint:
    kind = TYPES[joint.type]
    damping: Any = 0.0
    if joint.damping:
        if len(SPEEDS[kind]) != 1:
            raise places.wrong(joint.line, f"the joint '{joint.name}' of type '{joint.type}' has a damping: give one "
                               "value for each speed in a [[joint_setting]] of a TOML file")  # fmt: skip
        damping = joint.damping
    try:
        return Joint(joint.name, kind, joint.parent, joint.child, _placement(joint.origin), axis=joint.axis,
                     damping=damping)  # fmt: skip
    except ModelError as error:
        raise places.wrong(joint.line, str(error)) from None


def _placement(origin: Origin) -> Placement:
    return Placement.from_rpy(origin.xyz, origin.rpy)


def _set(joints: list[Joint], parts: Parts) -> list[Joint]:
    """Return the joints with the values of the ``[[joint_setting]]`` tables."""
    positions = {joint.name: i for i, joint in enumerate(joints)}
    changed = list(joints)
    for k, setting in enumerate(parts.content.get("joint_setting", ())):
        name, place = setting["joint"], ("joint_setting", k)
        if name not in positions:
            error = UnknownNameError.among(name, positions, "a joint of the URDF file")
            raise parts_wrong(parts, place, str(error))
        try:
            changed[positions[name]] = with_settings(changed[positions[name]], setting)
        except ModelError as error:
            raise parts_wrong(parts, place, str(error)) from None
    return changed


def _single(joints: list[Joint]) -> list[Joint]:
    return [joint for joint in joints if len(SPEEDS[joint.type]) == 1]


def _inputs(joints: list[Joint]) -> list[Input]:
    return [JointForce(f"{j.name}.{'force' if j.type == 'prismatic' else 'torque'}", j.name) for j in _single(joints)]


def _sensors(joints: list[Joint]) -> list[Sensor]:
    return [Sensor(j.state_names[0][0], "joint_position", j.name) for j in _single(joints)]


def _remarks(tree: UrdfTree) -> list[str]:
    rubbing = [joint.name for joint in tree.joints if joint.friction]
    if not rubbing:
        return []
    return [
        f"The dry friction of {', '.join(rubbing)} is left out: it has no slope at rest. Damping is taken as it is."
    ]
