"""MJCF files that a mechanism file names (``mjcf = "robot.xml"``): the adapter for MuJoCo reads them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from fmilin.errors import ModelError, UsageError
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.robot_file import (
    Robot,
    apply_joint_settings,
    convert_coupling_offsets,
    list_position_sensors,
)
from fmilin.models.mechanism.source_lines import SourceLines
from fmilin.models.mechanism.toml_file import Parts

ROBOT_GROUP = "fmilin.robots"  # entry points of adapters: functions from a file to a description, by the format's name
REPLACED_FIELDS = ("inputs", "sensors")  # tables of these replace those of the robot; others are added to them


def read_mjcf_description(
    path: Path, parts: Parts | None, *, floating_base: bool, fixed_joints: Collection[str]
) -> tuple[MechanismDescription, SourceLines]:
    """Return the mechanism of an MJCF file with the ``parts`` of a TOML file, and where these stand."""
    if parts is None:
        raise ModelError(f"'{path}' is an MJCF file: open it with fl.load, which needs fmilin-mujoco.")
    if floating_base or parts.content.get("floating_base"):
        raise UsageError(f"'{path}' is an MJCF file: a <freejoint> in it lets its base move. Leave floating_base out.")
    if fixed_joints:
        raise UsageError(f"'{path}' is an MJCF file: a body without a joint in it is fixed. Leave fixed_joints out.")
    return _add_parts(_describe(path), parts), parts.source


def _describe(path: Path) -> MechanismDescription:
    from importlib.metadata import entry_points

    for entry in entry_points(group=ROBOT_GROUP, name="mjcf"):
        description = entry.load()(path)
        if not isinstance(description, MechanismDescription):
            raise ModelError(f"'{entry.value}' returned no description of a mechanism for '{path}'.")
        return description
    raise UsageError(f"'{path}' is an MJCF file, and the adapter that reads it is missing: pip install fmilin-mujoco")


def _add_parts(robot: MechanismDescription, parts: Parts) -> MechanismDescription:
    content = parts.content
    extended = Robot(name=robot.name, format="MJCF", ground=robot.ground, bodies=robot.bodies, joints=robot.joints)
    changed: dict[str, Any] = {"joints": apply_joint_settings(extended, parts)}
    for name, more in parts.fields.items():
        if name in REPLACED_FIELDS:
            if more:
                changed[name] = more
            continue
        if name == "couplings":
            more = convert_coupling_offsets(more, robot.joints, content)  # noqa: PLW2901 - of the same table
        before = changed.get(name, getattr(robot, name))
        changed[name] = [*before, *more]
    if not robot.sensors and not changed.get("sensors"):
        changed["sensors"] = list_position_sensors(changed["joints"])
    changed |= {key: content[key] for key in ("gravity", "independent") if key in content}
    if content.get("name"):
        changed["name"] = content["name"]
    with parts.source.add_location():
        return replace(robot, **changed)
