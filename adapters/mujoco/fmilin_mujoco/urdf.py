"""URDF files for MuJoCo without their meshes: pictures and collisions have no part in the dynamics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mujoco

__all__ = ["compiled", "without_meshes"]

_SHAPE = re.compile(r"<(visual|collision)\b[^>]*?(?:/>|>.*?</\1\s*>)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def without_meshes(text: str) -> tuple[str, int]:
    """Return a URDF file without the shapes that are meshes, and how many there were.

    >>> without_meshes('<link><visual><geometry><mesh filename="a.stl"/></geometry></visual></link>')
    ('<link></link>', 1)
    """
    text = _COMMENT.sub("", text)
    meshes = [m for m in _SHAPE.finditer(text) if "<mesh" in m[0]]
    for mesh in reversed(meshes):
        text = text[: mesh.start()] + text[mesh.end() :]
    return text, len(meshes)


def compiled(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return MuJoCo's model of an MJCF or URDF file, and what was left out of it."""
    if path.suffix.lower() != ".urdf":
        return mujoco.MjModel.from_xml_path(str(path)), ()
    text, count = without_meshes(path.read_text(encoding="utf-8"))
    if not count:
        return mujoco.MjModel.from_xml_path(str(path)), ()
    remark = f"{count} meshes of the URDF file are left out: they have no part in the dynamics."
    return mujoco.MjModel.from_xml_string(text), (remark,)
