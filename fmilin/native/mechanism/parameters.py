"""Numbers of a description that may be changed by name: masses, springs, dampers, lengths, gravity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.parts import Joint

__all__ = ["changed", "geometric", "parameters_of"]

FIELDS = {
    "bodies": ("mass",),
    "springs": ("stiffness", "length", "damping"),
    "loops": ("length",),
    "wheels": ("radius", "tube"),
}
JOINT_FIELDS = ("stiffness", "rest", "damping")
AXES = ("x", "y", "z")


def parameters_of(description: MechanismDescription) -> dict[str, float]:
    """Return the values by name: ``BODY.mass``, ``SPRING.stiffness``, ``JOINT.damping``, ``gravity.z``, ...

    Joints with several freedoms have one of each for every freedom, ``JOINT.damping[1]``, ...
    """
    found = {f"gravity.{axis}": value for axis, value in zip(AXES, description.gravity, strict=True)}
    for group, fields in FIELDS.items():
        for part in getattr(description, group):
            found |= {
                f"{part.name}.{what}": float(value)
                for what in fields
                if (value := getattr(part, what)) is not None and not (group == "loops" and part.type != "rod")
            }
    for joint in description.joints:
        for what in JOINT_FIELDS:
            values = getattr(joint, what)
            found |= {_numbered(f"{joint.name}.{what}", i, len(values)): value for i, value in enumerate(values)}
    return found


def geometric(description: MechanismDescription) -> set[str]:
    """Return the names of the parameters that constraints depend on: lengths of rods, radii of wheels."""
    rods = {f"{loop.name}.length" for loop in description.loops if loop.type == "rod"}
    return rods | {f"{wheel.name}.{what}" for wheel in description.wheels for what in FIELDS["wheels"]}


def changed(description: MechanismDescription, values: Mapping[str, float]) -> MechanismDescription:
    """Return the description with other values."""
    known = parameters_of(description)
    new = known | {name: float(value) for name, value in values.items()}
    changes: dict[str, Any] = {"gravity": tuple(new[f"gravity.{axis}"] for axis in AXES)}
    for group, fields in FIELDS.items():
        changes[group] = [
            replace(part, **{what: new[name] for what in fields if (name := f"{part.name}.{what}") in new})
            for part in getattr(description, group)
        ]
    changes["joints"] = [replace(joint, **_springs(joint, new)) for joint in description.joints]
    return replace(description, **changes)


def _springs(joint: Joint, new: Mapping[str, float]) -> dict[str, Any]:
    found = {}
    for what in JOINT_FIELDS:
        count = len(getattr(joint, what))
        found[what] = [new[_numbered(f"{joint.name}.{what}", i, count)] for i in range(count)]
    return {what: values for what, values in found.items() if values}


def _numbered(name: str, index: int, count: int) -> str:
    return name if count == 1 else f"{name}[{index + 1}]"
