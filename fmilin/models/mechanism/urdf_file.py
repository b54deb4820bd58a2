"""Mechanisms from URDF files, which describe trees; a TOML file beside them closes loops and adds what URDF lacks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, UnknownNameError, join_first
from fmilin.models.mechanism.description import Input, MechanismDescription
from fmilin.models.mechanism.elements import Coupling, JointForce, Sensor
from fmilin.models.mechanism.parts import SPEEDS, TRIANGLE_INEQUALITY_TOLERANCE, Body, Joint, JointType, beyond_triangle
from fmilin.models.mechanism.sources import Lines, SourceLines
from fmilin.models.mechanism.toml_file import Parts, offset_in_radians, with_settings
from fmilin.models.mechanism.urdf_elements import Inertial, UrdfJoint, UrdfLink, UrdfTree, read_urdf
from fmilin.support.files import is_file
from fmilin.tolerances import NEGATIVE_INERTIA

MAX_LISTED_NAMES = 8  # so many names are listed in a remark


@dataclass
class UrdfRemarks:
    """Collects what there is to say."""

    massless: list[str] = field(default_factory=list)  # links with a mass of 0
    # by which part of it the largest moment of a link exceeds the sum of the others
    beyond: dict[str, float] = field(default_factory=dict)
    negative: dict[str, float] = field(default_factory=dict)  # the negative moment of a link, in kg m2
    astray: list[str] = field(default_factory=list)  # sentences about joints that mimic what is not there

    def sentences(self, tree: UrdfTree) -> list[str]:
        """Return the diagnostics, one of each kind."""
        sentences = []
        if rubbing := [joint.name for joint in tree.joints if joint.friction]:
            sentences.append(
                f"The dry friction of {', '.join(rubbing)} is left out: it has no derivative at zero speed. Damping "
                "is included."
            )
        if self.massless:
            sentences.append(
                f"Massless frames, because their mass is 0: the links {join_first(self.massless, MAX_LISTED_NAMES)}."
            )
        if self.beyond:
            each = [f"{name} ({part:.2g} of its largest)" for name, part in self.beyond.items()]
            sentences.append(
                "No body can have these inertias, in which one principal moment exceeds the sum of the other two: "
                f"{join_first(each, MAX_LISTED_NAMES)}. They are used unchanged."
            )
        if self.negative:
            each = [f"{name} ({moment:.2g} kg m2)" for name, moment in self.negative.items()]
            sentences.append(
                "No body can have these inertias, with a negative principal moment: "
                f"{join_first(each, MAX_LISTED_NAMES)}. They are used unchanged, because they are negligible beside "
                "the largest in the file."
            )
        if self.astray:
            sentences.append(" ".join(self.astray[:MAX_LISTED_NAMES]))
        if tree.unknown:
            sentences.append(f"Ignored, because URDF does not define it: {join_first(tree.unknown, MAX_LISTED_NAMES)}.")
        if tree.mended:
            sentences.append(f"Read, although it is not valid URDF: {join_first(tree.mended, MAX_LISTED_NAMES)}.")
        return sentences


GROUND, FLOATING = "ground", "floating_base"  # names of the ground and of the joint of a base that floats
TYPES: dict[str, JointType] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}


def find_additions(path: Path) -> Path | None:
    """Return the file ``STEM.fmilin.toml`` beside a URDF file, if there is one."""
    additions = path.with_name(f"{path.stem}.fmilin.toml")
    return additions if is_file(additions) else None


def find_robot_file(parts: Parts) -> Path | None:
    """Return the URDF file that a mechanism file names, relative to it."""
    named = parts.content.get("urdf")
    return None if named is None else parts.source.file.parent / named


MAX_JOINTS = 1000  # twice as many states, whose eigenvalues take a quarter of a minute


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
    tree, content, more = read_urdf(path).with_world().with_fixed(fixed_joints), parts.content, dict(parts.fields)
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
    ground = (content.get("ground") or _choose_unused_name(GROUND, tree.links)) if floating else root.name
    if not floating and content.get("ground", root.name) != root.name:
        raise parts.wrong(("ground",), f"the ground of '{path.name}' is its root link '{root.name}'")
    remarks = UrdfRemarks()
    least = -NEGATIVE_INERTIA * max((_moments(link.inertial)[2] for link in tree.links if link.inertial), default=0.0)
    bodies = [_body(link, source, least, remarks) for link in tree.links if floating or link is not root]
    bodies += more.pop("bodies", ())
    joints = [_joint(joint, source) for joint in tree.joints]
    if floating:
        joints.insert(0, Joint(_choose_unused_name(FLOATING, tree.joints), "free", ground, root.name))
    joints = _set(joints, parts)
    couplings = _couplings(tree, joints, source, remarks)
    joints = [*_add_coupled_joints(joints, couplings), *more.pop("joints", ())]
    if "independent" not in content:
        more["independent"] = _leaders(joints, couplings, parts)
    more["couplings"] = [*couplings, *_further(more.get("couplings", ()), tree, content)]
    followers = {coupling.joint for coupling in couplings}
    if "input" not in content:
        more["inputs"] = _inputs([joint for joint in joints if joint.name not in followers])
    if "sensor" not in content:
        more["sensors"] = _sensors(joints)
    with source.add_location():
        description = MechanismDescription(
            content.get("name") or tree.name,
            bodies,
            joints,
            **more,
            ground=ground,
            remarks=remarks.sentences(tree),
            **{key: content[key] for key in ("gravity", "independent") if key in content},
        )
    return description, source


def _choose_unused_name(name: str, parts: Sequence[UrdfLink | UrdfJoint]) -> str:
    """Return a name that none of the links or joints has: ``name``, or ``name_2``, ..."""
    used = {part.name for part in parts}
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(used) + 3))) if n not in used)


def _root(tree: UrdfTree, source: SourceLines) -> UrdfLink:
    """Return the one link that is no joint's child."""
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


def _tensor(inertial: Inertial) -> NDArray[np.float64]:
    xx, yy, zz, xy, xz, yz = inertial.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _moments(inertial: Inertial) -> NDArray[np.float64]:
    """Return the principal moments in their order, in kg m2."""
    return np.asarray(np.linalg.eigvalsh(_tensor(inertial)))


def _body(link: UrdfLink, source: SourceLines, least: float, remarks: UrdfRemarks) -> Body:
    """Return the body of a link; no moment of inertia may be below ``least``."""
    inertial = link.inertial
    if inertial is None:
        return Body(link.name, None)
    if inertial.mass < 0:
        raise source.wrong(link.line, f"the link '{link.name}' has a mass of {inertial.mass:g} kg: a mass must not be "
                           "negative; a frame without mass has 0, or no <inertial>")  # fmt: skip
    moments = _moments(inertial)
    if moments[0] < min(least, -TRIANGLE_INEQUALITY_TOLERANCE * abs(moments[2])):
        raise source.wrong(link.line, f"the link '{link.name}' has an inertia with the negative principal moment "
                           f"{moments[0]:.4g} kg m2; the others are {moments[1]:.4g} and {moments[2]:.4g}")  # fmt: skip
    if inertial.mass == 0:
        remarks.massless.append(link.name)
        if not moments.any():
            return Body(link.name, None)
    beyond = beyond_triangle(moments)
    if moments[0] < -TRIANGLE_INEQUALITY_TOLERANCE * abs(moments[2]):
        remarks.negative[link.name] = float(moments[0])
    elif beyond > TRIANGLE_INEQUALITY_TOLERANCE:
        remarks.beyond[link.name] = beyond
    R = inertial.origin.R
    J = R @ _tensor(inertial) @ R.T
    odd = inertial.mass == 0 or link.name in (*remarks.beyond, *remarks.negative)
    try:
        return Body(link.name, inertial.mass, inertial.origin.position, (J + J.T) / 2, any_inertia=odd)
    except ModelError as error:
        raise source.wrong(link.line, str(error)) from None


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


def _set(joints: list[Joint], parts: Parts) -> list[Joint]:
    """Return the joints with the values of the ``[[joint_setting]]`` tables."""
    positions = {joint.name: i for i, joint in enumerate(joints)}
    changed = list(joints)
    for k, setting in enumerate(parts.content.get("joint_setting", ())):
        name, path = setting["joint"], ("joint_setting", k)
        if name not in positions:
            error = UnknownNameError.among(name, positions, "a joint of the URDF file")
            raise parts.wrong(path, str(error))
        try:
            unit = parts.content.get("angle_unit", "rad")
            changed[positions[name]] = with_settings(changed[positions[name]], setting, unit)
        except ModelError as error:
            raise parts.wrong(path, str(error)) from None
    return changed


def _single(joints: list[Joint]) -> list[Joint]:
    return [joint for joint in joints if len(SPEEDS[joint.type]) == 1]


def _inputs(joints: list[Joint]) -> list[Input]:
    return [JointForce(f"{j.name}.{'force' if j.type == 'prismatic' else 'torque'}", j.name) for j in _single(joints)]


def _sensors(joints: list[Joint]) -> list[Sensor]:
    return [Sensor(j.state_names[0][0], "joint_position", j.name) for j in _single(joints)]


def _couplings(tree: UrdfTree, joints: list[Joint], source: SourceLines, remarks: UrdfRemarks) -> list[Coupling]:
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
            remarks.astray.append(f"{error} (Line {joint.line}; it moves freely.)")
            continue
        for name in (joint.name, mimic.joint):
            if len(SPEEDS[by_name[name].type]) != 1:
                raise source.wrong(joint.line, f"{where} '{mimic.joint}', but '{name}' is of the type "
                                   f"'{by_name[name].type}': both must have one degree of freedom")  # fmt: skip
        with source.add_location():
            couplings.append(Coupling(f"{joint.name}.mimic", joint.name, mimic.joint, mimic.multiplier, mimic.offset))
    return couplings


def _further(couplings: Sequence[Coupling], tree: UrdfTree, content: dict[str, Any]) -> list[Coupling]:
    """Return the couplings of the TOML file, offsets of the URDF file's joints in rad."""
    if content.get("angle_unit") != "deg":
        return list(couplings)
    types = {joint.name: TYPES[joint.type] for joint in tree.joints}
    return [
        replace(c, offset=offset_in_radians(types[c.joint], c.offset)) if c.joint in types else c for c in couplings
    ]


def _add_coupled_joints(joints: list[Joint], couplings: list[Coupling]) -> list[Joint]:
    """Return the joints with positions and speeds that the couplings ask for."""
    now = {joint.name: joint for joint in joints}
    for _ in couplings:  # one may follow another that follows
        for c in couplings:
            (q,), (v,) = now[c.leader].position, now[c.leader].velocity
            now[c.joint] = replace(now[c.joint], position=c.ratio * q + c.offset, velocity=c.ratio * v)
    followers = {c.joint for c in couplings}
    return [now[joint.name] if joint.name in followers else joint for joint in joints]


def _leaders(joints: list[Joint], couplings: list[Coupling], parts: Parts) -> list[str]:
    """Return positions to keep: all that follow no other; none where something else decides, or a base floats."""
    has_loops_or_wheels = any(parts.fields.get(kind) for kind in ("loops", "couplings", "wheels", "skates"))
    if not couplings or has_loops_or_wheels or any(len(SPEEDS[joint.type]) > 1 for joint in joints):
        return []
    followers = {c.joint for c in couplings}
    return [name for joint in joints if joint.name not in followers for name in joint.state_names[0]]
