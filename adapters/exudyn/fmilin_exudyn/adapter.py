"""Systems that a Python program builds with Exudyn: ``fl.load("model.py:mbs")``, or ``from_system(mbs)``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fmilin
from fmilin import Model
from fmilin.adapters import Adapter

if TYPE_CHECKING:
    from fmilin.adapters import EngineModel

__all__ = ["ExudynAdapter", "from_system"]

SYSTEM = "mbs"
"""The name that Exudyn's documentation gives to a system."""
IMPORTS = re.compile(r"^\s*(?:import|from)\s+exudyn\b", re.MULTILINE)


def from_system(mbs: Any, name: str = "") -> EngineModel:
    """Return the model of a system of Exudyn, with its constraints; it is assembled if it is not.

    >>> import exudyn, fmilin as fl  # doctest: +SKIP
    >>> SC = exudyn.SystemContainer()  # doctest: +SKIP
    >>> mbs = SC.AddSystem()  # doctest: +SKIP
    >>> ...  # doctest: +SKIP
    >>> fl.linearize(from_system(mbs))  # doctest: +SKIP

    Parameters
    ----------
    mbs : exudyn.MainSystem
        The model computes with it: its current coordinates, times and loads change.
    name : str, optional
        Of the model.

    Raises
    ------
    ModelError
        When Exudyn rejects the system, or coordinates of a node are of a Lie group.
    """
    ExudynAdapter().engine()
    from fmilin.adapters import EngineModel
    from fmilin_exudyn.engine import ExudynEngine

    return EngineModel(ExudynEngine(mbs, name))


class ExudynAdapter(Adapter):
    """Reads Python files that import Exudyn and build a system with the name ``mbs``."""

    suffixes = (".py",)
    description = "multibody systems of Exudyn, built in Python (model.py:mbs)"
    package = "exudyn"
    oldest = (1, 13)

    def claims(self, path: Path) -> bool:
        """Whether the file imports Exudyn."""
        return IMPORTS.search(path.read_text(encoding="utf-8", errors="replace")) is not None

    def load(self, path: Path) -> Model:
        """Return the model of the system ``mbs`` in a file, which is run.

        Raises
        ------
        ModelError
            When the file cannot be run, or Exudyn rejects the system.
        UnknownNameError
            When nothing in the file has that name.
        """
        return fmilin.load(f"{path}:{SYSTEM}")
