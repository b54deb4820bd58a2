"""A way to get a linear model: a tool, how it opens a model of some size, and the matrix that its answer holds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.signals import FloatArray

__all__ = ["TOOLS", "Tool", "Way"]

Open = Callable[[int, Path], AbstractContextManager[Callable[[], Any]]]
"""(size, folder with the files) -> context of a call that gives the numbers."""


@dataclass(frozen=True)
class Tool:
    """A package that is compared with, and how it is installed."""

    name: str
    module: str
    install: str

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("fmilin", "fmilin", "pip install fmilin"),
        Tool("FMPy", "fmpy", "pip install fmpy"),
        Tool("PyFMI", "pyfmi", "conda install -c conda-forge pyfmi"),
        Tool("CasADi", "casadi", "pip install casadi"),
        Tool("Pinocchio", "pinocchio", "pip install pin"),
        Tool("MuJoCo", "mujoco", "pip install mujoco"),
        Tool("Drake", "pydrake", "pip install drake"),
        Tool("python-control", "control", "pip install control"),
        Tool("SciPy", "scipy", "pip install scipy"),
    )
}


@dataclass(frozen=True)
class Way:
    """How one tool does the work."""

    tool: Tool
    open: Open
    matrix: Callable[[Any], FloatArray] = np.asarray
    """Of what the call returns, in the form in which all ways of a task are compared."""
    remark: str = ""
