"""Frames of SDFormat files: where links, joints, models and named frames stand, and to which link they belong.

The rules are those of the proposal "Pose frame semantics" of SDFormat 1.7: the pose of a link, a frame or a model is in
the frame of the model around it, that of a joint in the frame of its child, that of an attached frame in what it is
attached to, unless ``relative_to`` names another frame of the same model or of a model inside (``arm::hand``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.errors import UnknownNameError
from fmilin.models.mechanism.part import ORIGIN, Placement, Vector, unit
from fmilin.models.mechanism.sdf_elements import (
    SdfAxis,
    SdfFile,
    SdfFrame,
    SdfJoint,
    SdfLine,
    SdfLink,
    SdfModel,
    SdfPointPair,
    SdfPose,
)

SdfElement = SdfLink | SdfFrame | SdfJoint | SdfModel
WORLD = "world"
MODEL = "__model__"
JOINT = "__joint__"  # in the name of the frame of a joint that is called as a link


@dataclass(frozen=True, slots=True)
class SdfScope:
    """The names inside a model or a world: a name is ``prefix`` and what the file calls it there."""

    prefix: str
    frame: str  # full name of the model's own frame, or the world
    is_static: bool


@dataclass(frozen=True, slots=True)
class _SdfEntry:
    """A frame with what its pose and its body depend on."""

    scope: SdfScope  # in which its names are to be found
    element: SdfElement
    inner: SdfScope | None = None  # of a model


class SdfFrames:
    """All frames of a file by their full names, models inside a model before ``::``."""

    def __init__(self, file: SdfFile) -> None:
        self.links: dict[str, tuple[SdfLink, SdfScope]] = {}
        self.joints: dict[str, tuple[SdfJoint, SdfScope]] = {}
        self.pairs: dict[str, tuple[SdfPointPair, SdfScope]] = {}
        self._entries: dict[str, _SdfEntry] = {}
        self._joint_frames: dict[str, str] = {}  # of joints that are called as a link
        self._poses: dict[str, Placement] = {WORLD: ORIGIN}
        self._open: list[str] = []  # frames that are being placed
        outside = SdfScope("", WORLD, is_static=False)
        if file.is_world:
            self._add_contents(file.top, outside)
        else:
            inner = SdfScope("", MODEL, is_static=file.top.static)
            self._entries[MODEL] = _SdfEntry(outside, file.top, inner)
            self._add_contents(file.top, inner)

    def _add_contents(self, model: SdfModel, scope: SdfScope) -> None:
        self.pairs |= {scope.prefix + pair.name: (pair, scope) for pair in model.pairs}
        elements: list[SdfElement] = [*model.links, *model.frames, *model.joints, *model.models]
        for element in elements:
            name = scope.prefix + element.name
            if isinstance(element, SdfJoint) and name in self.links and name not in self.joints:
                self._joint_frames[name] = name = f"{name}::{JOINT}"  # up to 1.6 it may be called as a link
            if name in self._entries or element.name in (WORLD, MODEL):
                raise element.line.wrong(
                    f"the name '{name}' is used twice or reserved: give each link, frame, joint and model its own"
                )
            if isinstance(element, SdfModel):
                inner = SdfScope(f"{name}::", name, is_static=scope.is_static or element.static)
                self._entries[name] = _SdfEntry(scope, element, inner)
                self._add_contents(element, inner)
                continue
            self._entries[name] = _SdfEntry(scope, element)
            if isinstance(element, SdfLink):
                self.links[name] = element, scope
            elif isinstance(element, SdfJoint):
                self.joints[name.removesuffix(f"::{JOINT}")] = element, scope

    def find(self, name: str, scope: SdfScope, line: SdfLine) -> str:
        """Return the full name of what a file calls ``name`` in a scope."""
        if name == WORLD:
            return WORLD
        if name == MODEL:
            return scope.frame
        full = scope.prefix + name
        if full not in self._entries:  # files that were flattened have frames of the name MODEL::__model__
            full = full.removesuffix(f"::{MODEL}")
        if full not in self._entries:
            names = [other.removeprefix(scope.prefix) for other in self._entries if other.startswith(scope.prefix)]
            raise line.wrong(str(UnknownNameError.among(name, names, "a link, a frame, a joint or a model there")))
        return full

    def find_joint_frame(self, joint: str) -> str:
        """Return the full name of the frame of a joint."""
        return self._joint_frames.get(joint, joint)

    def place(self, name: str) -> Placement:
        """Return where a frame stands in the world, all joints at zero."""
        if name not in self._poses:
            entry = self._entries[name]
            line = entry.element.line
            if name in self._open:
                raise line.wrong(f"the pose of '{name}' is relative to itself")
            self._open.append(name)
            base = self.place(self._find_base(name))
            self._open.pop()
            self._poses[name] = base.then(self._locate(name))
        return self._poses[name]

    def place_relative(self, name: str, base: str) -> Placement:
        """Return where a frame stands in another one, all joints at zero."""
        return ORIGIN if name == base else self.place(base).invert().then(self.place(name))

    def turn_axis(self, axis: SdfAxis, joint: str) -> Vector:
        """Return an axis of a joint in the joint's frame, of length 1."""
        if not axis.expressed_in:
            return unit(axis.xyz, "An axis")
        element, scope = self.joints[joint]
        frame = self.find(axis.expressed_in, scope, element.line)
        return unit(self.place(self.find_joint_frame(joint)).R.T @ self.place(frame).R @ np.array(axis.xyz), "An axis")

    def find_body(self, name: str) -> str:
        """Return the link that a frame belongs to, or the world."""
        visited: list[str] = []
        while name != WORLD:
            entry = self._entries[name]
            element, scope = entry.element, entry.scope
            if name in visited:
                raise element.line.wrong(f"the frame '{name}' is attached to itself")
            visited.append(name)
            if isinstance(element, SdfLink):
                return name
            if isinstance(element, SdfJoint):
                name = self.find(element.child, scope, element.line)
            elif isinstance(element, SdfFrame):
                name = self.find(element.attached_to or MODEL, scope, element.line)
            else:
                name = self._find_canonical_link(element, entry.inner or scope)
        return WORLD

    def _find_canonical_link(self, model: SdfModel, inner: SdfScope) -> str:
        if model.canonical_link:
            return self.find(model.canonical_link, inner, model.line)
        candidates: list[SdfLink | SdfModel] = [*model.links, *model.models]
        if not candidates:
            raise model.line.wrong(f"the model '{model.name}' has no link, so nothing can be attached to it")
        return inner.prefix + candidates[0].name

    def _find_base(self, name: str) -> str:
        """Return the frame in which the pose of another one is."""
        entry = self._entries[name]
        element = entry.element
        pose: SdfPose = element.pose
        default = MODEL
        if isinstance(element, SdfJoint):
            default = element.child
        elif isinstance(element, SdfFrame):
            default = element.attached_to or MODEL
        return self.find(pose.relative_to or default, entry.scope, element.line)

    def _locate(self, name: str) -> Placement:
        """Return a frame in that of its pose: a model by where its placement frame is to be."""
        entry = self._entries[name]
        placement = entry.element.pose.placement
        if not isinstance(entry.element, SdfModel | SdfFrame) or not entry.element.placement_frame:
            return placement
        within, frame = ORIGIN, self.find(entry.element.placement_frame, entry.inner or entry.scope, entry.element.line)
        for _ in range(len(self._entries)):
            if frame == name:
                return placement.then(within.invert())
            if frame == WORLD:
                break
            within, frame = self._locate(frame).then(within), self._find_base(frame)
        raise entry.element.line.wrong(f"the placement frame of '{name}' does not depend on the model's frame")
