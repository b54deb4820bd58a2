"""Robots of description files (URDF, SDFormat) as mechanisms, with what a TOML file next to them adds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, UnknownNameError, join_first
from fmilin.models.mechanism.mechanism_description import Input, MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Bushing, Coupling, JointForce, PointSpring, Sensor
from fmilin.models.mechanism.part import Vector
from fmilin.models.mechanism.parts import SPEEDS, TRIANGLE_INEQUALITY_TOLERANCE, Body, Joint, Loop, beyond_triangle
from fmilin.models.mechanism.source_lines import SourceLines
from fmilin.models.mechanism.toml_file import Parts, offset_in_radians, with_settings
from fmilin.models.mechanism.urdf_elements import Inertial, UrdfLink
from fmilin.support.files import is_file
from fmilin.tolerances import NEGATIVE_INERTIA

MAX_LISTED_NAMES = 8  # so many names are listed in a diagnostic
MAX_JOINTS = 1000  # twice as many states; their eigenvalues take a quarter of a minute
FLOATING = "floating_base"  # name of the joint of a base that floats


@dataclass
class RobotRemarks:
    """Collects what there is to say of a robot's file."""

    massless: list[str] = field(default_factory=list)  # links with a mass of 0
    # by which part of it the largest moment of a link exceeds the sum of the others
    beyond: dict[str, float] = field(default_factory=dict)
    negative: dict[str, float] = field(default_factory=dict)  # the negative moment of a link, in kg m2
    rubbing: list[str] = field(default_factory=list)  # joints with dry friction
    further: list[str] = field(default_factory=list)  # sentences of the format

    def sentences(self) -> list[str]:
        """Return the diagnostics, one of each kind."""
        sentences = []
        if self.rubbing:
            sentences.append(
                f"The dry friction of {', '.join(self.rubbing)} is left out: it has no derivative at zero speed. "
                "Damping is included."
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
        return [*sentences, *self.further]


@dataclass(frozen=True, kw_only=True)
class Robot:
    """The contents of a robot's file, before a TOML file adds to it."""

    name: str
    format: str  # as messages name it: "URDF"
    ground: str
    bodies: Sequence[Body]
    joints: Sequence[Joint]
    loops: Sequence[Loop] = ()
    couplings: Sequence[Coupling] = ()
    bushings: Sequence[Bushing] = ()
    springs: Sequence[PointSpring] = ()
    gravity: Vector | None = None  # the default where the file has none


def find_additions(path: Path) -> Path | None:
    """Return the file ``STEM.fmilin.toml`` next to a robot's file, if there is one."""
    additions = path.with_name(f"{path.stem}.fmilin.toml")
    return additions if is_file(additions) else None


def describe_robot(robot: Robot, parts: Parts, source: SourceLines, remarks: RobotRemarks) -> MechanismDescription:
    """Return the mechanism of a robot with the ``parts`` of a TOML file.

    Without ``[[input]]`` tables every joint with one degree of freedom that follows no other has an input
    ``JOINT.force`` or ``JOINT.torque``, and without ``[[sensor]]`` tables its position is an output.
    """
    content, more = parts.content, dict(parts.fields)
    bodies = [*robot.bodies, *more.pop("bodies", ())]
    joints = apply_joint_settings(robot, parts)
    joints = [*_add_coupled_joints(joints, robot.couplings), *more.pop("joints", ())]
    more["loops"] = [*robot.loops, *more.get("loops", ())]
    more["springs"] = [*robot.springs, *more.get("springs", ())]
    more["bushings"] = [*robot.bushings, *more.get("bushings", ())]
    if "independent" not in content:
        more["independent"] = _leaders(joints, robot.couplings, more)
    more["couplings"] = [*robot.couplings, *convert_coupling_offsets(more.get("couplings", ()), robot.joints, content)]
    followers = {coupling.joint for coupling in robot.couplings}
    if "input" not in content:
        more["inputs"] = _inputs([joint for joint in joints if joint.name not in followers])
    if "sensor" not in content:
        more["sensors"] = list_position_sensors(joints)
    if robot.gravity is not None:
        more["gravity"] = robot.gravity
    more |= {key: content[key] for key in ("gravity", "independent") if key in content}
    with source.add_location():
        return MechanismDescription(
            content.get("name") or robot.name,
            bodies,
            joints,
            **more,
            ground=robot.ground,
            remarks=remarks.sentences(),
        )


def find_unused_name(name: str, used: Sequence[str]) -> str:
    """Return a name that is not used: ``name``, or ``name_2``, ..."""
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(used) + 3))) if n not in used)


def find_least_moment(links: Sequence[UrdfLink]) -> float:
    """Return the moment of inertia of which smaller ones are rejected, in kg m2: negligible relative to the largest."""
    return -NEGATIVE_INERTIA * max((_moments(link.inertial)[2] for link in links if link.inertial), default=0.0)


def _tensor(inertial: Inertial) -> NDArray[np.float64]:
    xx, yy, zz, xy, xz, yz = inertial.inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _moments(inertial: Inertial) -> NDArray[np.float64]:
    """Return the principal moments in their order, in kg m2."""
    return np.asarray(np.linalg.eigvalsh(_tensor(inertial)))


def make_body(link: UrdfLink, source: SourceLines, least: float, remarks: RobotRemarks) -> Body:
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


def apply_joint_settings(robot: Robot, parts: Parts) -> list[Joint]:
    """Return the joints with the values of the ``[[joint_setting]]`` tables."""
    joints = robot.joints
    positions = {joint.name: i for i, joint in enumerate(joints)}
    changed = list(joints)
    for k, setting in enumerate(parts.content.get("joint_setting", ())):
        name, path = setting["joint"], ("joint_setting", k)
        if name not in positions:
            error = UnknownNameError.among(name, positions, f"a joint of the {robot.format} file")
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


def list_position_sensors(joints: list[Joint]) -> list[Sensor]:
    """Return the positions of all joints with one degree of freedom."""
    return [Sensor(j.state_names[0][0], "joint_position", j.name) for j in _single(joints)]


def convert_coupling_offsets(
    couplings: Sequence[Coupling], joints: Sequence[Joint], content: dict[str, Any]
) -> list[Coupling]:
    """Return the couplings of the TOML file, offsets of the robot's joints in rad."""
    if content.get("angle_unit") != "deg":
        return list(couplings)
    types = {joint.name: joint.type for joint in joints}
    return [
        replace(c, offset=offset_in_radians(types[c.joint], c.offset)) if c.joint in types else c for c in couplings
    ]


def _add_coupled_joints(joints: list[Joint], couplings: Sequence[Coupling]) -> list[Joint]:
    """Return the joints with positions and speeds that the couplings ask for."""
    now = {joint.name: joint for joint in joints}
    for _ in couplings:  # one may follow another that follows
        for c in couplings:
            (q,), (v,) = now[c.leader].position, now[c.leader].velocity
            now[c.joint] = replace(now[c.joint], position=c.ratio * q + c.offset, velocity=c.ratio * v)
    followers = {c.joint for c in couplings}
    return [now[joint.name] if joint.name in followers else joint for joint in joints]


def _leaders(joints: list[Joint], couplings: Sequence[Coupling], more: dict[str, Any]) -> list[str]:
    """Return positions to keep: all that follow no other; none where something else decides, or a base floats."""
    has_loops_or_wheels = any(more.get(kind) for kind in ("loops", "couplings", "wheels", "skates"))
    if not couplings or has_loops_or_wheels or any(len(SPEEDS[joint.type]) > 1 for joint in joints):
        return []
    followers = {c.joint for c in couplings}
    return [name for joint in joints if joint.name not in followers for name in joint.state_names[0]]
