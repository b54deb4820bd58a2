"""Which files are JSBSim's, and aircraft that come with it, by name: ``jsbsim:c172x``."""

from __future__ import annotations

import re
from pathlib import Path

from fmilin import Model
from fmilin.adapters import Adapter
from fmilin.errors import UnknownNameError

__all__ = ["JsbsimAdapter"]

_LOOKED_INTO = 65536


class JsbsimAdapter(Adapter):
    """Reads aircraft of JSBSim: files with the root ``<fdm_config>``, and names of those in the package."""

    suffixes = (".xml",)
    description = "JSBSim aircraft, by file or by name (jsbsim:c172x)"
    package = "jsbsim"
    oldest = (1, 2)

    def claims(self, path: Path) -> bool:
        """Whether the file's root is ``<fdm_config>``."""
        with path.open("rb") as file:
            text = file.read(_LOOKED_INTO).decode("utf-8", "replace")
        root = re.search(r"<\s*([A-Za-z_][\w.-]*)", re.sub(r"<!--.*?-->|<\?.*?\?>|<!.*?>", "", text, flags=re.DOTALL))
        return root is not None and root[1] == "fdm_config"

    def file_of(self, name: str) -> Path | None:
        """Return the file of an aircraft that comes with JSBSim; UnknownNameError for an unknown name."""
        from fmilin_jsbsim.simulator import aircraft_files

        files = aircraft_files()
        if name in files or Path(name).suffix or Path(name).exists():
            return files.get(name)
        raise UnknownNameError.among(name, files, "an aircraft that comes with JSBSim")

    def load(self, path: Path) -> Model:
        """Return the aircraft in a file, in flight, its engines running.

        Raises
        ------
        ModelError
            When JSBSim cannot load it.
        """
        self.engine()
        from fmilin.adapters import EngineModel
        from fmilin_jsbsim.engine import JsbsimEngine

        return EngineModel(JsbsimEngine(path))
