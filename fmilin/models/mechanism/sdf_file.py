"""Mechanisms from SDFormat files: joints form a tree and loops, models without a joint to the world float."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import PointSpring
from fmilin.models.mechanism.part import ORIGIN, Placement
from fmilin.models.mechanism.parts import Body, Joint, JointType, Loop
from fmilin.models.mechanism.robot_file import (
    FLOATING,
    MAX_JOINTS,
    Robot,
    RobotRemarks,
    describe_robot,
    find_least_moment,
    make_body,
)
from fmilin.models.mechanism.sdf_connection import SdfConnection
from fmilin.models.mechanism.sdf_couplings import find_gears, find_mimics, fix_joints
from fmilin.models.mechanism.sdf_elements import SdfAxis, SdfJoint, SdfLink, SdfNotes
from fmilin.models.mechanism.sdf_frames import WORLD, SdfFrames, SdfScope
from fmilin.models.mechanism.sdf_reader import SdfReader
from fmilin.models.mechanism.source_lines import Lines, SourceLines
from fmilin.models.mechanism.spanning_tree import SpanningTree, find_spanning_tree
from fmilin.models.mechanism.toml_file import Parts
from fmilin.models.mechanism.urdf_elements import Inertial, UrdfLink

TYPES: dict[str, JointType] = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "screw": "helical",
    "universal": "universal",
    "ball": "spherical",
}
DEFAULT_INERTIAL = Inertial(1.0, ORIGIN, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0))  # of a link without <inertial>
MAX_COSINE_OF_RIGHT_ANGLE = 1e-9  # axes of a larger scalar product are not perpendicular


def read_sdf_description(
    path: Path, parts: Parts | None = None, *, floating_base: bool = False, fixed_joints: Collection[str] = ()
) -> tuple[MechanismDescription, SourceLines]:
    """Read a mechanism from an SDFormat file, with ``parts`` that a TOML file adds, and where it describes them.

    The ground is the world. The first link of a model that is not a joint's child, and that no joint connects with the
    world, is on a free joint ``floating_base``; ``fixed_joints`` fixes it where it stands, and other joints at zero.
    A link that is the child of two joints closes a loop. Inputs and outputs are as for URDF.
    """
    return _SdfBuilder(path, parts or Parts({}, {}, SourceLines(path), Lines({}))).build(
        fixed_joints, floating_base=floating_base
    )


class _SdfBuilder:
    """Makes a mechanism of one file."""

    def __init__(self, path: Path, parts: Parts) -> None:
        self.path, self.parts = path, parts
        reader = SdfReader()
        self.file = reader.read(path)
        self.notes: SdfNotes = reader.notes
        self.remarks = RobotRemarks()
        self.frames = SdfFrames(self.file)
        self.massless: list[Body] = []  # between the two axes of a joint
        named: dict[str, list[int]] = {}
        lines = [(name, link.line) for name, (link, _) in self.frames.links.items()]
        lines += [(name, joint.line) for name, (joint, _) in self.frames.joints.items()]
        for name, line in lines:
            if line.file == path:
                named.setdefault(name, []).append(line.number)
        self.source = SourceLines(path, named, parts.source)

    def build(self, fixed_joints: Collection[str], *, floating_base: bool) -> tuple[MechanismDescription, SourceLines]:
        """Return the mechanism and where it is described."""
        content, source, frames = self.parts.content, self.source, self.frames
        if not frames.links:
            raise source.wrong(None, "there is no <link> in it")
        if content.get("ground", WORLD) != WORLD:
            raise self.parts.wrong(("ground",), f"the ground of '{self.path.name}' is the world, '{WORLD}'")
        connections = self._connect()
        moving = sum(connection.type != "fixed" for connection in connections)
        if moving > MAX_JOINTS:
            raise source.wrong(
                None, f"it has {moving} moving joints, and {MAX_JOINTS} is the largest number that is read"
            )
        bodies = [*self._make_bodies(), *self.massless]
        tree = find_spanning_tree(WORLD, [body.name for body in bodies], [c.edge for c in connections])
        if (floating_base or content.get("floating_base")) and not tree.roots:
            raise source.wrong(None, "its joints connect everything with the world, so no base can float")
        joints = self._make_joints(connections, tree)
        hinges = [c for i, c in enumerate(connections) if i not in tree.loops]
        couplings = [*find_mimics(frames, joints), *find_gears(frames, hinges)]
        closures = [connections[i].to_loop() for i in tree.loops]
        springs, loops = self._connect_points()
        joints, couplings = fix_joints(joints, couplings, fixed_joints)
        self.remarks.further += self.notes.sentences()
        robot = Robot(
            name=self.file.top.name,
            format="SDFormat",
            ground=WORLD,
            bodies=bodies,
            joints=joints,
            loops=[*(loop for loop, _ in closures), *loops],
            couplings=couplings,
            springs=springs,
            bushings=[bushing for _, bushings in closures for bushing in bushings],
            gravity=self.file.gravity,
        )
        return describe_robot(robot, self.parts, source, self.remarks), source

    def _make_bodies(self) -> list[Body]:
        """Return the links as bodies, without mass where they cannot move."""
        links = self.frames.links.items()
        inertials = {name: UrdfLink(name, link.line.number, self._find_inertial(name, link, scope))
                     for name, (link, scope) in links}  # fmt: skip
        least = find_least_moment(list(inertials.values()))
        bodies = []
        for name, (link, _) in links:
            source = SourceLines(link.line.file)
            body = make_body(inertials[name], source, least, self.remarks)
            bodies.append(body if link.has_weight else replace(body, gravity_compensation=1.0))
        return bodies

    def _find_inertial(self, name: str, link: SdfLink, scope: SdfScope) -> Inertial | None:
        if scope.is_static:
            return None
        if link.inertial is None:
            self.notes.without_inertial.append(f"{name} (line {link.line.number})")
        return link.inertial or DEFAULT_INERTIAL

    def _connect(self) -> list[SdfConnection]:
        """Return all joints but gearboxes, in order, and fixed ones for links of static models."""
        connections: list[SdfConnection] = []
        for name, (link, scope) in self.frames.links.items():
            if scope.is_static:
                joint = SdfJoint(name, "fixed", link.line, WORLD, link.name, link.pose, (), 0.0, 1.0, "", 0.0)
                placement = self.frames.place(name)
                connections.append(SdfConnection(f"{name}.static", joint, "fixed", WORLD, name, placement, ORIGIN))
        for name, (joint, scope) in self.frames.joints.items():
            if joint.type != "gearbox":
                connections += self._connect_one(name, joint, scope)
        return connections

    def _connect_one(self, name: str, joint: SdfJoint, scope: SdfScope) -> list[SdfConnection]:
        """Return a joint in its place: none between bodies that stand still, two for axes that are oblique."""
        frames = self.frames
        parent, child = (frames.find_body(frames.find(end, scope, joint.line)) for end in (joint.parent, joint.child))
        if parent == child:
            raise joint.line.wrong(f"the joint '{name}' connects '{parent}' with itself")
        if all(end == WORLD or frames.links[end][1].is_static for end in (parent, child)):
            if joint.type != "fixed":
                where = f"the joint '{name}' between links that are static"
                self.notes.left_out[where] = f"{where} (line {joint.line.number})"
            return []
        frame = frames.find_joint_frame(name)
        ends = frames.place_relative(frame, parent), frames.place_relative(frame, child)
        if joint.type == "planar":
            at = [frames.place_relative(frames.find(end, scope, joint.line), body)
                  for end, body in ((joint.parent, parent), (joint.child, child))]  # fmt: skip
            damping = tuple(axis.damping for axis in joint.axes)
            z_and_x = ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
            return [SdfConnection(name, joint, "planar", parent, child, at[0], at[1], z_and_x, damping)]
        if joint.type == "fixed":
            return [SdfConnection(name, joint, "fixed", parent, child, *ends)]
        needed = 2 if joint.type in ("universal", "revolute2") else 0 if joint.type == "ball" else 1
        if len(joint.axes) < needed:
            missing = ("axis", "axis2")[len(joint.axes)]
            raise joint.line.wrong(f"the joint '{name}' of the type '{joint.type}' has no <{missing}>")
        self._note_axes(name, joint.axes[: max(needed, 1)])
        axes = tuple(frames.turn_axis(axis, name) for axis in joint.axes[:needed])
        values = [tuple(getattr(axis, key) for axis in joint.axes[:needed]) for key in ("damping", "stiffness", "rest")]
        if joint.type == "ball":  # one damper for all three speeds, as Drake has it
            values[0] = (joint.axes[0].damping,) * 3 if joint.axes else ()
            if joint.axes and joint.axes[0].stiffness:
                raise joint.line.wrong(f"the spring of the ball '{name}' is not read")
        elif needed == 2 and abs(np.dot(axes[0], axes[1])) > MAX_COSINE_OF_RIGHT_ANGLE:
            if joint.type == "universal":
                raise joint.line.wrong(f"the two axes of the universal joint '{name}' are not perpendicular")
            return self._split(SdfConnection(name, joint, "revolute", parent, child, *ends, axes, *values))
        kind = TYPES["universal" if joint.type == "revolute2" else joint.type]
        return [SdfConnection(name, joint, kind, parent, child, *ends, axes, *values)]

    def _split(self, both: SdfConnection) -> list[SdfConnection]:
        """Return two revolute joints about oblique axes, and the massless frame between them."""
        middle = f"{both.name}.between"
        self.massless.append(Body(middle, None))
        parts, joint = [], replace(both.joint, armature=0.0)
        for i, (parent, child, on_parent, on_child) in enumerate(
            ((both.parent, middle, both.on_parent, ORIGIN), (middle, both.child, ORIGIN, both.on_child))
        ):
            values: Any = [(value[i],) for value in (both.axes, both.damping, both.stiffness, both.rest)]
            name = f"{both.name}.axis{'' if not i else 2}"
            parts.append(SdfConnection(name, joint, "revolute", parent, child, on_parent, on_child, *values))
        return parts

    def _note_axes(self, name: str, axes: Sequence[SdfAxis]) -> None:
        if any(axis.friction for axis in axes):
            self.remarks.rubbing.append(name)
        if any(axis.lower >= axis.upper for axis in axes):
            self.notes.locked.append(name)

    def _connect_points(self) -> tuple[list[PointSpring], list[Loop]]:
        """Return the springs between points of two bodies, and the balls that hold points together."""
        springs, loops = [], []
        for name, (pair, scope) in self.frames.pairs.items():
            first, second = (self.frames.find_body(self.frames.find(end, scope, pair.line)) for end in pair.links)
            with pair.line.add_location():
                if pair.spring is not None:
                    length, stiffness, damping = pair.spring
                    springs.append(PointSpring(name, first, second, *pair.points, stiffness, length, damping))
                else:
                    at_first, at_second = (Placement(point) for point in pair.points)
                    loops.append(Loop(name, "spherical", first, second, at_first, at_second))
        return springs, loops

    def _make_joints(self, connections: Sequence[SdfConnection], tree: SpanningTree) -> list[Joint]:
        """Return the joints of the tree: free ones first, then all in the order of the file."""
        joints = []
        names = self._name_floating(tree.roots, {connection.name for connection in connections})
        for root, name in zip(tree.roots, names, strict=True):
            placement = self.frames.place(root) if root in self.frames.links else ORIGIN
            position = (*placement.position, *placement.quaternion)
            joints.append(Joint(name, "free", WORLD, root, position=position))
        for i, connection in enumerate(connections):
            if i not in tree.loops:
                is_reversed = i in tree.reversed
                joints.append(connection.to_joint(is_reversed=is_reversed))
                if is_reversed and connection.type == "spherical":
                    self.notes.left_out[connection.name] = (
                        f"the direction of the ball '{connection.name}': its rotation is that of its parent in its "
                        "child, which is nearer to the world"
                    )
        return joints

    def _name_floating(self, roots: Sequence[str], used: set[str]) -> list[str]:
        """Return a name for each free joint: of the model around the link where there are several, else of the link."""
        models = [root.rpartition("::")[0] for root in roots]
        names = []
        for root, model in zip(roots, models, strict=True):
            name = FLOATING
            if len(roots) > 1:
                name = f"{model if model and models.count(model) == 1 else root}::{FLOATING}"
            while name in used:
                name += "_2"
            names.append(name)
        return names
