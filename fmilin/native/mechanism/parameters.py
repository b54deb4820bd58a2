"""Descriptions with other numbers: parameters that may be changed by name, and limits of controls that are opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.elements import Actuator
from fmilin.native.mechanism.parts import Body, Joint
from fmilin.native.mechanism.system import State, System
from fmilin.native.native_engine import limit_remarks, side_of

FIELDS = {
    "bodies": ("mass",),
    "springs": ("stiffness", "length", "damping"),
    "loops": ("length",),
    "wheels": ("radius", "tube"),
}
JOINT_FIELDS = ("stiffness", "rest", "damping")
AXES = ("x", "y", "z")
MOMENTS = ("xx", "yy", "zz")
MASSIVE = (".mass", *(f".inertia.{moment}" for moment in MOMENTS))  # without these nothing may be left that resists


def parameters_of(description: MechanismDescription) -> dict[str, float]:
    """Return values by name: ``BODY.mass``, ``BODY.center.x``, ``BODY.inertia.xx``, ``JOINT.damping[1]``, ..."""
    values = {f"gravity.{axis}": value for axis, value in zip(AXES, description.gravity, strict=True)}
    for group, fields in FIELDS.items():
        for part in getattr(description, group):
            values |= {
                f"{part.name}.{what}": float(value)
                for what in fields
                if (value := getattr(part, what)) is not None and not (group == "loops" and part.type != "rod")
            }
    for joint in description.joints:
        for what in JOINT_FIELDS:
            numbers = getattr(joint, what)
            values |= {_numbered(f"{joint.name}.{what}", i, len(numbers)): value for i, value in enumerate(numbers)}
    for body in description.bodies:
        if body.mass is not None:
            values |= {f"{body.name}.center.{axis}": float(c) for axis, c in zip(AXES, body.center, strict=True)}
            values |= {f"{body.name}.inertia.{what}": float(body.J[i, i]) for i, what in enumerate(MOMENTS)}
    return values


def geometric(description: MechanismDescription) -> set[str]:
    """Return the names of the parameters that constraints depend on: lengths of rods, radii of wheels."""
    rods = {f"{loop.name}.length" for loop in description.loops if loop.type == "rod"}
    return rods | {f"{wheel.name}.{what}" for wheel in description.wheels for what in FIELDS["wheels"]}


def changed(description: MechanismDescription, values: Mapping[str, float]) -> MechanismDescription:
    """Return the description with other values."""
    new = parameters_of(description) | {name: float(value) for name, value in values.items()}
    changes: dict[str, Any] = {"gravity": tuple(new[f"gravity.{axis}"] for axis in AXES)}
    for group, fields in FIELDS.items():
        changes[group] = [
            replace(part, **own)
            if (own := {what: new[name] for what in fields if (name := f"{part.name}.{what}") in values})
            else part
            for part in getattr(description, group)
        ]
    moved = {
        name[: name.rindex(f".{what}.")] for name in values for what in ("center", "inertia") if f".{what}." in name
    }
    changes["bodies"] = [replace(b, **_spread(b, new)) if b.name in moved else b for b in changes["bodies"]]
    sprung = {name.partition("[")[0].rpartition(".")[0] for name in values}
    changes["joints"] = [replace(j, **_springs(j, new)) if j.name in sprung else j for j in description.joints]
    return replace(description, **changes)


def _spread(body: Body, new: Mapping[str, float]) -> dict[str, Any]:
    moments, products = (new[f"{body.name}.inertia.{what}"] for what in MOMENTS), body.J[[0, 0, 1], [1, 2, 2]].tolist()
    return {"center": tuple(new[f"{body.name}.center.{axis}"] for axis in AXES), "inertia": (*moments, *products)}


def _springs(joint: Joint, new: Mapping[str, float]) -> dict[str, Any]:
    changes = {}
    for what in JOINT_FIELDS:
        count = len(getattr(joint, what))
        changes[what] = [new[_numbered(f"{joint.name}.{what}", i, count)] for i in range(count)]
    return {what: values for what, values in changes.items() if values}


def _numbered(name: str, index: int, count: int) -> str:
    return name if count == 1 else f"{name}[{index + 1}]"


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
