"""Mechanisms from files: which kind of file it is, and what lies beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fmilin.errors import ModelError
from fmilin.models.mechanism.description import MechanismDescription
from fmilin.models.mechanism.places import Places
from fmilin.models.mechanism.toml_file import Parts, description_of, read_parts
from fmilin.models.mechanism.urdf_file import beside, read_urdf_description, robot_in

__all__ = ["Source", "read_mechanism_file"]


@dataclass(frozen=True)
class Source:
    """A mechanism as a file describes it.

    Parameters
    ----------
    description : MechanismDescription
    places : Places
        Where its parts stand, for messages.
    remarks : tuple of str
        What the file says and a linear model cannot contain.
    """

    description: MechanismDescription
    places: Places
    remarks: tuple[str, ...] = ()


def read_mechanism_file(path: Path, additions: Path | None = None) -> Source:
    """Read a ``.toml`` or ``.urdf`` file.

    Parameters
    ----------
    path : Path
    additions : Path, optional
        A TOML file with the loops and whatever else a URDF file lacks; ``STEM.fmilin.toml`` beside it when left out.

    Raises
    ------
    ModelError
        When a file cannot be read or something in it is wrong; with the line and the part.
    """
    if path.suffix.lower() == ".urdf":
        extra = beside(path) if additions is None else additions
        parts = None if extra is None else read_parts(extra)
        if parts is not None and "urdf" in parts.content:
            what = f"this file is read for '{path.name}' and names a URDF file itself: remove 'urdf', or open this file"
            raise parts.places.wrong(parts.lines.find(("urdf",)), what)
        return _with_robot(path, parts)
    if additions is not None:
        raise ModelError(f"'{path}' is no URDF file: write everything into it, instead of into '{additions}'.")
    parts = read_parts(path)
    robot = robot_in(parts)
    if robot is not None:
        return _with_robot(robot, parts)
    return Source(description_of(parts), parts.places)


def _with_robot(path: Path, parts: Parts | None) -> Source:
    description, places, remarks = read_urdf_description(path, parts)
    return Source(description, places, tuple(remarks))
