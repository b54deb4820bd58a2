"""LAPACK as SciPy brings it, without the rest of ``scipy.linalg``.

``import scipy.linalg`` also imports the compatibility layer for other array libraries, with ``numpy.f2py`` and
``numpy.testing``: 150 ms, a quarter of a command that linearizes an FMU. The routines themselves lie in one extension
module, which is loaded here in 3 ms under its own name, so that a later import of ``scipy.linalg`` uses it, too.
Where it is not found under that name, in a SciPy to come, ``scipy.linalg.lapack`` is imported as documented.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

_EXTENSION = "scipy.linalg._flapack"


def _load_extension() -> ModuleType | None:
    """Load the extension module with the routines; None where it cannot be loaded by itself."""
    if os.name == "nt":  # the folder of its libraries is made known by SciPy itself
        return None
    package = find_spec("scipy")  # imports nothing
    folders = [] if package is None else list(package.submodule_search_locations or ())
    spec = PathFinder.find_spec(_EXTENSION, [str(Path(folder, "linalg")) for folder in folders])
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    sys.modules[_EXTENSION] = module
    return module


if TYPE_CHECKING or "scipy.linalg" in sys.modules:
    from scipy.linalg import lapack
else:
    lapack = _load_extension()
    if lapack is None:
        from scipy.linalg import lapack

__all__ = ["lapack"]
