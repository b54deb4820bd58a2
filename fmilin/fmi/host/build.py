"""The host program: the one of the package, the one that FMILIN_HOST names, or one compiled from the sources beside."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from fmilin.codegen.compiler import built_program
from fmilin.errors import ModelError

FOLDER = Path(__file__).parent
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden")
LIBRARIES = ("-ldl", "-lpthread", "-lm") if sys.platform == "linux" else ()
"""Mathematical functions and threads are there for FMUs that use them and do not say so, as in a Python process."""

NAME = "fmilin-host.exe" if sys.platform == "win32" else "fmilin-host"


def host_program() -> Path:
    """Return the program.

    Raises
    ------
    ModelError
        Where FMILIN_HOST names none, or it has to be compiled and cannot be.
    """
    named = os.environ.get("FMILIN_HOST")
    if named:
        if not os.access(named, os.X_OK):
            raise ModelError(f"The environment variable FMILIN_HOST names '{named}', which is not a program.")
        return Path(named).absolute()
    packaged = FOLDER / NAME
    return packaged if packaged.is_file() else _compiled()


@cache
def _compiled() -> Path:
    sources = {path.name: path.read_bytes() for path in FOLDER.glob("*.[ch]")}
    units = sorted(name for name in sources if name.endswith(".c"))
    return built_program(sources, units, FLAGS, LIBRARIES, NAME)
