"""Descriptions with other numbers: parameters that may be changed by name, and limits of controls that are opened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Actuator
from fmilin.native.mechanism.parts import Body, Joint, Loop
from fmilin.native.mechanism.placement import Placement
from fmilin.native.mechanism.system import State, System
from fmilin.native.native_engine import limit_remarks, side_of

FIELDS = {
    "bodies": ("mass", "center", "inertia"),
    "joints": ("stiffness", "rest", "damping", "placement", "child_placement"),
    "springs": ("stiffness", "length", "damping", "first_point", "second_point"),
    "loops": ("length", "first_placement", "second_placement"),
    "wheels": ("radius", "tube"),
}
GEOMETRIC = (".placement.", ".child_placement.")  # of joints; what loops and wheels have is so, too
AXES = ("x", "y", "z")
MOMENTS = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}  # elements of the matrix
MASSIVE = (".mass", ".inertia.xx", ".inertia.yy", ".inertia.zz")  # without these nothing may be left that resists


def parameters_of(description: MechanismDescription) -> dict[str, float]:
    """Return values by name: ``BODY.mass``, ``BODY.inertia.xy``, ``JOINT.damping[1]``, ``JOINT.placement.x``, ..."""
    values = {f"gravity.{axis}": value for axis, value in zip(AXES, description.gravity, strict=True)}
    for group, fields in FIELDS.items():
        for part in getattr(description, group):
            for what in fields:
                values |= _spelled(part, what)
    return values


def _spelled(part: Any, what: str) -> dict[str, float]:
    """Return the numbers of a field of a part by name; none where it has no such number."""
    value, name = getattr(part, what), f"{part.name}.{what}"
    if isinstance(part, Body) and part.mass is None:
        return {}
    if value is None or (isinstance(part, Loop) and what == "length" and part.type != "rod"):
        return {}
    if what == "inertia":
        return {f"{name}.{moment}": value[i][j] for moment, (i, j) in MOMENTS.items()}
    if isinstance(value, int | float):
        return {name: float(value)}
    if isinstance(part, Joint) and not isinstance(value, Placement):
        return {name if len(value) == 1 else f"{name}[{i + 1}]": v for i, v in enumerate(value)}
    return {f"{name}.{axis}": v for axis, v in zip(AXES, getattr(value, "position", value), strict=True)}


def is_geometric(description: MechanismDescription, names: Iterable[str]) -> bool:
    """Whether constraints depend on a parameter: where joints and loops are, lengths of rods, radii of wheels."""
    bound = tuple(f"{part.name}." for part in (*description.loops, *description.wheels))
    return any(name.startswith(bound) or any(part in name for part in GEOMETRIC) for name in names)


def changed(description: MechanismDescription, values: Mapping[str, float]) -> MechanismDescription:
    """Return the description with other values; names are those that it has, and are not checked again."""
    other = copy(description)
    gravity = (values.get(f"gravity.{axis}", g) for axis, g in zip(AXES, description.gravity, strict=True))
    object.__setattr__(other, "gravity", tuple(gravity))
    for group, fields in FIELDS.items():
        parts = [_changed_part(part, fields, values) for part in getattr(description, group)]
        object.__setattr__(other, group, tuple(parts))
    joints = {joint.name: joint for joint in other.joints}
    object.__setattr__(other, "ordered_joints", tuple(joints[j.name] for j in description.ordered_joints))
    return other


def _changed_part(part: Any, fields: tuple[str, ...], values: Mapping[str, float]) -> Any:
    if not any(name.startswith(f"{part.name}.") for name in values):
        return part
    changes: dict[str, Any] = {}
    for what in fields:
        if set(own := _spelled(part, what)).intersection(values):
            old, numbers = getattr(part, what), tuple(values.get(name, value) for name, value in own.items())
            changes[what] = numbers[0] if isinstance(old, int | float) else numbers
            if isinstance(old, Placement):
                x, y, z = numbers
                changes[what] = Placement((x, y, z), old.rotation)
    return replace(part, **changes) if changes else part


At = tuple[tuple[str, str], ...]  # actuators whose control stands at a limit, and which


def at_limits(system: System, state: State) -> tuple[At, tuple[str, ...]]:
    """Return which controls stand at a limit, and what a user should know of limits at a state."""
    d, drives = system.description, state.drives
    if drives is None:
        return (), ()
    at, standing, beyond, pushed = [], [], [], []
    actuators = [(i, a) for i, a in enumerate(d.inputs) if isinstance(a, Actuator)]
    for k, (i, a) in enumerate(actuators):
        if a.control_limits:
            value = float(state.u[i])
            side = side_of(value, *a.control_limits)
            if side == "beyond":
                low, high = a.control_limits
                beyond.append(f"{a.name} ({value:.6g} is outside {low:.6g} .. {high:.6g})")
            elif side != "inside":
                at.append((a.name, side))
                standing.append(f"{a.name} ({value:.6g})")
        force = float(drives.F[len(drives.F) - len(actuators) + k])
        if a.force_limits and side_of(force, *a.force_limits) != "inside":
            pushed.append(f"{a.name} (force {force:.6g})")
    for joint in d.joints:
        for speed in system.tree.speeds_of[joint.name] if joint.drive_limits else ():
            force = float(drives.driven[speed])
            if side_of(force, *joint.drive_limits) != "inside":
                pushed.append(f"the joint {joint.name} (force {force:.6g})")
    return tuple(at), limit_remarks(beyond, standing, pushed)


def opened(description: MechanismDescription, at: At, remarks: tuple[str, ...]) -> MechanismDescription:
    """Return the description with limits that controls may cross where they stand at them, and remarks."""
    sides = dict(at)
    inputs = [
        replace(i, control_limits=_open(i.control_limits, sides[i.name]))
        if isinstance(i, Actuator) and i.name in sides
        else i
        for i in description.inputs
    ]
    return replace(description, inputs=inputs, remarks=(*description.remarks, *remarks))


def _open(limits: tuple[float, float], side: str) -> tuple[float, float]:
    inf = float("inf")
    return (-inf, limits[1]) if side == "lower" else (limits[0], inf)
