"""Which files are MuJoCo's, and what to say when MuJoCo cannot read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.ground.errors import ModelError
from fmilin.loading.adapters import Adapter

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin_mujoco.engine import MujocoEngine

__all__ = ["MujocoAdapter"]

_LOOKED_INTO = 65536


class MujocoAdapter(Adapter):
    """Reads MJCF, and URDF when it is asked for by name."""

    suffixes = (".xml", ".mjcf", ".urdf")
    description = "MuJoCo models with ideal equality constraints"
    package = "mujoco"
    oldest = (3, 2)  # the first with the rates of Jacobians (mj_jacDot)
    options = ("keyframe",)

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

        Raises
        ------
        ModelError
            When MuJoCo rejects the file, with its words, or a constraint in it cannot be made ideal.
        UsageError
            When there is no such keyframe.
        """
        from fmilin_mujoco.choice import chosen_model

        return chosen_model(self._engine_of(path, options))

    def load_by_name(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the model of the engine: a file that is written as ``mujoco:scene.xml``; otherwise as above."""
        from fmilin.native.engine import EngineModel

        return EngineModel(self._engine_of(path, options))

    def _engine_of(self, path: Path, options: Mapping[str, Any]) -> MujocoEngine:
        self.engine()
        from fmilin_mujoco.engine import MujocoEngine
        from fmilin_mujoco.keyframes import start_of
        from fmilin_mujoco.urdf import compiled

        try:
            model, remarks = compiled(path)
        except Exception as error:
            words = " ".join(str(error).split())
            raise ModelError(
                f"MuJoCo cannot read '{path}': {words}. Open it with MuJoCo's own viewer (python -m mujoco.viewer) to "
                "see it there, correct it, and try again."
            ) from error
        engine = MujocoEngine(model, path.stem, start_of(model, options.get("keyframe")))
        engine.notes = [*remarks, *engine.notes]
        return engine
