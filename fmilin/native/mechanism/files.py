"""Mechanisms from files: which kind of file it is, and what lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from fmilin.ground.errors import ModelError, UsageError
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.source_lines import SourceLines
from fmilin.native.mechanism.toml_file import description_of, read_parts
from fmilin.native.mechanism.urdf_file import additions_of, read_urdf_description, robot_in

Kind = TypeVar("Kind")


def mechanism_from(
    kind: Callable[[MechanismDescription], Kind],
    path: Path,
    additions: Path | None = None,
    *,
    floating_base: bool = False,
    fixed_joints: Collection[str] = (),
) -> Kind:
    """Return the mechanism of a ``.toml`` or ``.urdf`` file, of a ``kind`` that closes the loops of a description."""
    description, source = read_mechanism_file(path, additions, floating_base=floating_base, fixed_joints=fixed_joints)
    with source.named():
        return kind(description)


def read_mechanism_file(
    path: Path, additions: Path | None = None, *, floating_base: bool = False, fixed_joints: Collection[str] = ()
) -> tuple[MechanismDescription, SourceLines]:
    """Read a ``.toml`` or ``.urdf`` file, with the TOML file of ``additions``, and where it describes its parts."""
    if path.suffix.lower() == ".urdf":
        extra = additions_of(path) if additions is None else additions
        parts = None if extra is None else read_parts(extra)
        if parts is not None and "urdf" in parts.content:
            what = f"this file is read for '{path.name}' and names a URDF file itself: remove 'urdf', or open this file"
            raise parts.wrong(("urdf",), what)
        return read_urdf_description(path, parts, floating_base=floating_base, fixed_joints=fixed_joints)
    if additions is not None:
        raise ModelError(f"'{path}' is no URDF file: write everything into it, instead of into '{additions}'.")
    parts = read_parts(path)
    robot = robot_in(parts)
    if robot is not None:
        return read_urdf_description(robot, parts, floating_base=floating_base, fixed_joints=fixed_joints)
    if floating_base:
        raise UsageError(f"'{path}' names no URDF file, whose base could float: give its first body a free joint.")
    if fixed_joints:
        raise UsageError(f"'{path}' names no URDF file: write 'fixed' as the type of a joint that is to be fixed.")
    return description_of(parts), parts.source
