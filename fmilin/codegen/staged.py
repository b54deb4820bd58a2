"""Stages of one computation as fast functions of many points: generated C, or Python where there is no compiler.

The statements of a :class:`~fmilin.codegen.program.Program`, values and derivatives together, are printed once.
Each stage computes a list of atoms and may rely on what the stages before it have computed, so that numbers
that come from outside (solutions of linear systems) can be put in between. All points go through a stage together.
"""

from __future__ import annotations

import ctypes
import logging
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fmilin.codegen.c99_writer import Writer
from fmilin.codegen.compiler import Compiler, compile_library, find_compiler, library_suffix
from fmilin.codegen.program import Atom, Program
from fmilin.codegen.python_writer import PythonFunction
from fmilin.errors import ModelError, UsageError
from fmilin.signals import FloatArray

__all__ = ["HEADER", "Backend", "Staged", "Visit", "leaf_names", "loaded", "staged"]

FEW = 200
"""Up to so many statements Python is quick enough and no compiler is started."""

_BACKENDS = ("auto", "c", "numpy")


@dataclass(frozen=True, slots=True)
class Backend:
    """What computes the numbers.

    Parameters
    ----------
    kind : {"auto", "c", "numpy"}
        ``"auto"``: C for more than a few statements if there is a compiler, else Python with NumPy.
    compiler : Compiler
        Optimization beyond ``-O1`` costs more time than it gains in straight-line code.
    """

    kind: Literal["auto", "c", "numpy"] = "auto"
    compiler: Compiler = field(default_factory=lambda: Compiler(flags=("-O1",)))

    def __post_init__(self) -> None:
        if self.kind not in _BACKENDS:
            raise UsageError(f"'{self.kind}' computes nothing: the backends are {', '.join(_BACKENDS)}.")


class Visit(ABC):
    """One run through the stages, at k points.

    Attributes
    ----------
    leaves : array, shape (k, ns)
        To be filled in before a stage that needs them is run.
    """

    leaves: FloatArray

    @abstractmethod
    def run(self, stage: str) -> FloatArray:
        """Return what ``stage`` computes, shape (k, atoms). Stages are run in their order, each at most once."""


class Staged(ABC):
    """Compiled stages; :meth:`visit` may be called from several threads.

    Attributes
    ----------
    kind : {"c", "numpy"}
    """

    kind: str

    @abstractmethod
    def visit(self, points: int = 1) -> Visit:
        """Begin a run."""


def leaf_names(symbols: Sequence[Any]) -> dict[Any, str]:
    """Return how a program for :func:`staged` calls its leaves, the entries of the vector in their order."""
    return {symbol: f"m->s[{i}]" for i, symbol in enumerate(symbols)}


def staged(program: Program, stages: Mapping[str, Sequence[Atom]], backend: Backend) -> Staged:
    """Return stages as functions.

    Parameters
    ----------
    program : Program
        Its leaves have the names of :func:`leaf_names`.
    stages : mapping of str to sequence of Atom
        In the order in which they will be run.
    backend : Backend

    Raises
    ------
    ModelError
        When C is demanded and there is no compiler, or a function has no C code.
    """
    if backend.kind == "numpy":
        return _PythonStages(program, stages)
    if backend.kind == "auto" and len(program.statements) <= FEW:
        return _PythonStages(program, stages)
    if backend.kind == "auto" and not backend.compiler.command:
        try:
            find_compiler()
        except ModelError as error:
            logging.getLogger(__name__).info("%s The equations are evaluated by NumPy, which is slower.", error)
            return _PythonStages(program, stages)
    return _CStages(program, stages, backend.compiler)


# ---------------------------------------------------------------------- C

HEADER = """#include <math.h>
#ifdef __GNUC__
#define PIECE static __attribute__((noinline)) void
#else
#define PIECE static void
#endif
#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif
"""


class _CStages(Staged):
    kind = "c"

    def __init__(self, program: Program, stages: Mapping[str, Sequence[Atom]], compiler: Compiler) -> None:
        self.places: dict[str, slice] = {}
        assignments: dict[str, list[tuple[str, Atom]]] = {}
        size = 0
        for name, atoms in stages.items():
            assignments[name] = [(f"m->z[{size + i}]", atom) for i, atom in enumerate(atoms)]
            self.places[name] = slice(size, size + len(atoms))
            size += len(atoms)
        writer = Writer(program, assignments)
        functions = "\n".join(writer.functions())
        ns, nv = len(program.leaves), len(writer.stored)
        self.sizes = (ns, nv, size)
        struct = f"typedef struct {{ double s[{ns + 1}]; double v[{nv + 1}]; double z[{size + 1}]; }} Model;\n"
        loop = "for (long i = 0; i < count; i++)"
        doors = "\n".join(
            f"OUT void run_{k}(Model *m, long count) {{ {loop} {name}(m + i); }}" for k, name in enumerate(stages)
        )
        library = loaded(f"{HEADER}{struct}{functions}\n{doors}\n", compiler)
        self.functions = {}
        for k, name in enumerate(stages):
            function = getattr(library, f"run_{k}")
            function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_long], None
            self.functions[name] = function

    def visit(self, points: int = 1) -> Visit:
        return _CVisit(self, points)


class _CVisit(Visit):
    __slots__ = ("_address", "_memory", "_stages", "_z", "leaves")

    def __init__(self, stages: _CStages, points: int) -> None:
        ns, nv, nz = stages.sizes
        self._stages = stages
        self._memory = np.empty((points, ns + nv + nz + 3))  # one struct after the other
        self.leaves = self._memory[:, :ns]
        self._z = self._memory[:, ns + nv + 2 :]
        self._address = self._memory.ctypes.data

    def run(self, stage: str) -> FloatArray:
        self._stages.functions[stage](self._address, len(self._memory))
        return self._z[:, self._stages.places[stage]]


def loaded(source: str, compiler: Compiler) -> ctypes.PyDLL:
    """Compile and load; the file is not needed any more once it is mapped (where the system lets it go)."""
    folder = tempfile.mkdtemp(prefix="fmilin-stages-")
    try:
        path = Path(folder) / f"stages{library_suffix()}"
        compile_library({"stages.c": source.encode()}, "stages.c", path, compiler)
        return ctypes.PyDLL(str(path))  # keeps the interpreter's lock: the calls take microseconds
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------- Python


class _PythonStages(Staged):
    kind = "numpy"

    def __init__(self, program: Program, stages: Mapping[str, Sequence[Atom]]) -> None:
        self.size = len(program.leaves)
        self.functions = {name: PythonFunction(program, atoms) for name, atoms in stages.items()}

    def visit(self, points: int = 1) -> Visit:
        return _PythonVisit(self, points)


class _PythonVisit(Visit):
    __slots__ = ("_stages", "leaves")

    def __init__(self, stages: _PythonStages, points: int) -> None:
        self._stages = stages
        self.leaves = np.empty((points, stages.size))

    def run(self, stage: str) -> FloatArray:
        function = self._stages.functions[stage]
        if len(self.leaves) == 1:
            return function(self.leaves[0])[None]
        values: FloatArray = function.batch(self.leaves.T).T
        return values
