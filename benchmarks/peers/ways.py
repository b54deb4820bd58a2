"""A way to get a linear model: a tool, how it opens a model of some size, and the matrix that its answer holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.signals import FloatArray

__all__ = ["TOOLS", "Tool", "Way", "shorten_error"]

LONGEST_MESSAGE = 60
Open = Callable[[int, Path], AbstractContextManager[Callable[[], Any]]]
"""(size, folder with the files) -> context of a call that gives the numbers."""


@dataclass(frozen=True)
class Tool:
    """A package that is compared with, and how it is installed."""

    name: str
    module: str
    package: str
    """As it is registered where it is installed."""
    install: str

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None

    def describe(self) -> str:
        """Return the name with the version, or how the tool is installed."""
        if not self.is_installed:
            return f"{self.name} is not installed ({self.install})"
        try:
            return f"{self.name} {version(self.package)}"
        except PackageNotFoundError:
            return f"{self.name}, version unknown"


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("fmilin", "fmilin", "fmilin", "pip install fmilin"),
        Tool("FMPy", "fmpy", "FMPy", "pip install fmpy"),
        Tool("PyFMI", "pyfmi", "PyFMI", "conda install -c conda-forge pyfmi"),
        Tool("CasADi", "casadi", "casadi", "pip install casadi"),
        Tool("Pinocchio", "pinocchio", "pin", "pip install pin"),
        Tool("MuJoCo", "mujoco", "mujoco", "pip install mujoco"),
        Tool("Drake", "pydrake", "drake", "pip install drake"),
        Tool("python-control", "control", "control", "pip install control"),
        Tool("SciPy", "scipy", "scipy", "pip install scipy"),
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


def shorten_error(error: Exception) -> str:
    """Return the kind of an error and the first words of its message, without folders."""
    message = re.sub(r"\S*/", "", str(error)).strip() or "no message"
    return f"{type(error).__name__}: {message.splitlines()[0][:LONGEST_MESSAGE]}"
