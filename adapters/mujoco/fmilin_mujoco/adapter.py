"""Which files are MuJoCo's, and what to say when MuJoCo cannot read them.

URDF files are read without their meshes: pictures and collisions have no part in the dynamics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
from lxml import etree

from fmilin.adapters import Adapter
from fmilin.errors import ModelError, UsageError

if TYPE_CHECKING:
    from fmilin import Model
    from fmilin.models.mechanism import MechanismDescription
    from fmilin_mujoco.engine import MujocoEngine

__all__ = ["MujocoAdapter", "compiled", "describe_file", "without_meshes"]


_LOOKED_INTO = 65536
WAYS = ("engine", "mechanism")


class MujocoAdapter(Adapter):
    """Reads MJCF, and URDF when it is asked for by name."""

    suffixes = (".xml", ".mjcf", ".urdf")
    description = "MuJoCo models with ideal equality constraints"
    package = "mujoco"
    oldest = (3, 2)  # the first with the rates of Jacobians (mj_jacDot)
    options = ("keyframe", "roll", "way")

    def claims(self, path: Path) -> bool:
        """Whether the file's root is ``<mujoco>``."""
        with path.open("rb") as file:
            text = file.read(_LOOKED_INTO).decode("utf-8", "replace")
        root = re.search(r"<\s*([A-Za-z_][\w.-]*)", re.sub(r"<!--.*?-->|<\?.*?\?>|<!.*?>", "", text, flags=re.DOTALL))
        return root is not None and root[1] == "mujoco"

    def load(self, path: Path) -> Model:
        """Return the model in an MJCF or URDF file.

        Raises
        ------
        ModelError
            When MuJoCo rejects the file, with its words, or a constraint in it cannot be made ideal.
        """
        return self.load_as(path, {})

    def load_as(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the model in an MJCF or URDF file: as a native mechanism where all of it is understood.

        Parameters
        ----------
        path : Path
        options : mapping
            ``keyframe``: the name of the one at which the model starts; ``home`` or the first when left out.
            ``roll``: bodies that roll on the ground, ``BODY`` or ``BODY:RADIUS``, in the native mechanism.

        Raises
        ------
        ModelError
            When MuJoCo rejects the file, with its words, or a constraint in it cannot be made ideal.
        UsageError
            When there is no such keyframe.
        """
        from fmilin_mujoco.choice import chosen_model, rolling_mechanism
        from fmilin_mujoco.left_out import NotUnderstoodError

        engine = self.read_engine(path, options)
        if not options.get("roll"):
            return chosen_model(engine)
        try:
            return rolling_mechanism(engine, options["roll"])
        except NotUnderstoodError as reason:
            raise ModelError(
                f"'{path}' cannot be a native mechanism, in which bodies roll: {reason}. Leave the option 'roll' out."
            ) from None

    def load_by_name(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the model of a file that is written as ``mujoco:scene.xml``, by the ``way`` that is asked for.

        The engine, or ``{"way": "mechanism"}``: the native mechanism with its own derivatives, rejected where there is
        none.
        """
        from fmilin_mujoco.choice import native_mechanism
        from fmilin_mujoco.left_out import NotUnderstoodError
        from fmilin_mujoco.stated import MujocoModel

        way = options.get("way", "engine")
        if way not in WAYS:
            raise UsageError(f"'{way}' is not a way to compute an MJCF model: use {' or '.join(WAYS)}.")
        engine = self.read_engine(path, options)
        try:
            return MujocoModel(engine) if way == "engine" else native_mechanism(engine)
        except NotUnderstoodError as reason:
            raise ModelError(f"'{path}' cannot be a native mechanism: {reason}. Leave the option 'way' out.") from None

    def read_engine(self, path: Path, options: Mapping[str, Any]) -> MujocoEngine:
        """Return the engine of a file at the keyframe of the options."""
        self.engine()
        from fmilin_mujoco.closing import start_of
        from fmilin_mujoco.engine import MujocoEngine

        try:
            model, remarks = compiled(path)
        except ModelError:
            raise
        except Exception as error:
            words = " ".join(str(error).split()).rstrip(".")
            raise ModelError(
                f"MuJoCo cannot read '{path}': {words}. Open it with MuJoCo's own viewer (python -m mujoco.viewer) to "
                "see it there, correct it, and try again."
            ) from error
        engine = MujocoEngine(model, path.stem, start_of(model, options.get("keyframe")))
        engine.notes = [*remarks, *engine.notes]
        return engine


def describe_file(path: Path) -> MechanismDescription:
    """Return an MJCF file as the description of a native mechanism.

    Raises
    ------
    ModelError
        When MuJoCo rejects the file, or something in it cannot be in a native mechanism.
    """
    from fmilin_mujoco.choice import native_mechanism
    from fmilin_mujoco.left_out import NotUnderstoodError

    try:
        return native_mechanism(MujocoAdapter().read_engine(path, {})).description
    except NotUnderstoodError as reason:
        raise ModelError(f"'{path}' cannot be a native mechanism: {reason}.") from None


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


MAX_COPIES = 10_000


def _check_copies(path: Path) -> None:
    """Reject a file of which MuJoCo would make hundreds of thousands of elements, which takes it minutes."""
    content = path.read_bytes()
    if b"<replicate" not in content:
        return
    with suppress(etree.XMLSyntaxError, ValueError):  # which MuJoCo tells
        root, elements = etree.fromstring(content), 0
        for replicate in root.iter("replicate"):
            times = [int(r.get("count", "1")) for r in (replicate, *replicate.iterancestors("replicate"))]
            elements += math.prod(times) * len(replicate)
        if elements > MAX_COPIES:
            raise ModelError(
                f"'{path}': its <replicate> elements create {elements:,} others, more than the limit of "
                f"{MAX_COPIES:,}. Use fewer copies."
            )


def compiled(path: Path) -> tuple[Any, tuple[str, ...]]:
    """Return MuJoCo's model of an MJCF or URDF file, and what was left out of it."""
    if path.suffix.lower() != ".urdf":
        _check_copies(path)
        return mujoco.MjModel.from_xml_path(str(path)), ()
    text, count = without_meshes(path.read_text(encoding="utf-8"))
    if not count:
        return mujoco.MjModel.from_xml_path(str(path)), ()
    remark = f"{count} meshes of the URDF file are left out: they do not affect the dynamics."
    return mujoco.MjModel.from_xml_string(text), (remark,)
