"""A joint of an SDFormat file between two bodies, as a joint of a mechanism's tree or as what closes a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.models.mechanism.mechanism_elements import Bushing
from fmilin.models.mechanism.part import Placement, Vector, vector
from fmilin.models.mechanism.parts import SPEEDS, Joint, JointType, Loop, LoopType
from fmilin.models.mechanism.sdf_elements import SdfJoint
from fmilin.models.mechanism.spanning_tree import GraphEdge

LOOP_TYPES: dict[JointType, LoopType] = {
    "fixed": "fixed",
    "revolute": "revolute",
    "prismatic": "prismatic",
    "helical": "helical",
    "universal": "universal",
    "spherical": "spherical",
}


@dataclass(frozen=True, slots=True)
class SdfConnection:
    """A joint between two bodies in its place, not yet of the tree or of a loop."""

    name: str
    joint: SdfJoint
    type: JointType
    parent: str
    child: str
    on_parent: Placement
    on_child: Placement
    axes: tuple[Vector, ...] = ()  # in the joint's frame
    damping: tuple[float, ...] = ()  # of each speed
    stiffness: tuple[float, ...] = ()
    rest: tuple[float, ...] = ()

    @property
    def edge(self) -> GraphEdge:
        """Its edge: fixed joints and those with a spring or a damper are left out of loops where possible."""
        easy = self.type in ("fixed", "planar") or any(self.damping) or any(self.stiffness) or self.joint.armature
        return GraphEdge(self.parent, self.child, 0 if easy else 1)

    def to_joint(self, *, is_reversed: bool) -> Joint:
        """Return a joint of the tree; a reversed one carries the parent, with the same position and speed."""
        settings: dict[str, Any] = {}
        axes, values = self.axes, (self.damping, self.stiffness, self.rest)
        ends = self.parent, self.child, self.on_parent, self.on_child
        if is_reversed and self.type == "planar":
            raise self.joint.line.wrong(
                f"the child of the planar joint '{self.name}' is nearer to the world than its parent: exchange them"
            )
        if is_reversed:
            ends = self.child, self.parent, self.on_child, self.on_parent
            x = [vector(-np.array(axis), "An axis") for axis in self.axes]
            axes = tuple(reversed(x))
            values = tuple(tuple(reversed(value)) for value in values)  # type: ignore[assignment]
            if self.type == "universal":
                settings["names"] = tuple(f"{self.name}.{c}" for c in ("q2", "q1", "v2", "v1"))
        if axes:
            settings["axis"] = axes[0]
        if len(axes) > 1:
            settings["second_axis"] = axes[1]
        if self.type == "helical":
            settings["pitch"] = self.joint.pitch
        if len(SPEEDS[self.type]) == 1:
            settings["armature"] = self.joint.armature
        damping, stiffness, rest = values
        settings |= {"damping": damping or 0.0, "stiffness": stiffness or 0.0, "rest": rest or 0.0}
        with self.joint.line.add_location():
            return Joint(self.name, self.type, *ends, **settings)

    def to_loop(self) -> tuple[Loop, list[Bushing]]:
        """Return the loop that it closes, and its damper as a bushing between the same frames."""
        name, line = self.name, self.joint.line
        if self.type not in LOOP_TYPES:
            raise line.wrong(
                f"the joint '{name}' of the type '{self.type}' closes a loop, which is not supported for this type"
            )
        where = f"the joint '{name}' closes a loop, as do others with springs, dampers or rotors"
        if any(self.stiffness) or self.joint.armature:
            raise line.wrong(
                f"{where}: its spring or rotor is not supported there: move it to another joint of the loop"
            )
        settings: dict[str, Any] = {}
        if self.axes:
            settings["axis"] = self.axes[0]
        if len(self.axes) > 1:
            settings["second_axis"] = self.axes[1]
        if self.type == "helical":
            settings["pitch"] = self.joint.pitch
        frames: dict[str, Any] = {"first_placement": self.on_parent, "second_placement": self.on_child}
        with line.add_location():
            loop = Loop(name, LOOP_TYPES[self.type], self.parent, self.child, **frames, **settings)
        if not any(self.damping):
            return loop, []
        matrix = np.zeros((6, 6))
        if self.type == "spherical":
            matrix[3:, 3:] = self.damping[0] * np.eye(3)
        elif self.type in ("revolute", "prismatic"):
            start = 0 if self.type == "prismatic" else 3
            axis = np.array(self.axes[0])
            matrix[start : start + 3, start : start + 3] = self.damping[0] * np.outer(axis, axis)
        else:
            raise line.wrong(f"{where}: the damper of its {self.type} joint is not read there")
        return loop, [Bushing(f"{name}.damper", self.parent, self.child, **frames, damping=matrix)]
