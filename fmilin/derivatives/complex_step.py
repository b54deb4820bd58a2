"""Derivatives by a complex step: exact to rounding, without a single derivative written down.

Im f(x + i h) / h = f'(x) + O(h^2), and h = 1e-100 leaves nothing of the second term (Squire and Trapp, 1998).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from fmilin.codegen.c99_writer import Writer
from fmilin.codegen.compiler import Compiler, find_compiler
from fmilin.codegen.program import Atom, Program
from fmilin.codegen.python_writer import PythonFunction
from fmilin.codegen.staged import HEADER, Backend, loaded
from fmilin.errors import ModelError
from fmilin.signals import FloatArray

__all__ = ["ComplexStep", "is_analytic"]

STEP = 1e-100

_NOT_ANALYTIC = (
    sympy.Abs, sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.Piecewise, sympy.Min, sympy.Max,
    sympy.atan2,
)  # fmt: skip


def is_analytic(program: Program, atoms: Sequence[Atom]) -> bool:
    """Whether the program of these atoms may be evaluated at complex numbers."""
    return not any(isinstance(program.statements[s], _NOT_ANALYTIC) for s in program.needed_by(atoms))


class ComplexStep:
    """The Jacobian of atoms of a program for some of its leaves.

    Parameters
    ----------
    program : Program
        Its leaves have the names of :func:`fmilin.codegen.staged.leaf_names`.
    atoms : sequence of Atom
        m of them.
    columns : sequence of int
        Positions of the leaves to differentiate for.
    backend : Backend
        Complex C99, or NumPy with all columns at once.
    """

    def __init__(self, program: Program, atoms: Sequence[Atom], columns: Sequence[int], backend: Backend) -> None:
        self._atoms, self._columns = list(atoms), list(columns)
        self._size = len(program.leaves)
        self._function: Any = None
        if backend.kind == "c" or (backend.kind == "auto" and _has_compiler(backend.compiler)):
            self._compile(program, backend.compiler)
        else:
            self._python = PythonFunction(program, self._atoms)

    def __call__(self, leaves: FloatArray) -> FloatArray:
        """Return the Jacobian, shape (m, columns), at leaves (ns,)."""
        if self._function is None:
            points = np.repeat(leaves.astype(np.complex128)[:, None], len(self._columns), axis=1)
            points[self._columns, np.arange(len(self._columns))] += 1j * STEP
            slopes: FloatArray = self._python.batch(points).imag / STEP
            return slopes
        memory = np.empty(self._memory, dtype=np.complex128)
        memory[: self._size] = leaves
        J = np.empty((len(self._atoms), len(self._columns)))
        values = memory[-len(self._atoms) :] if self._atoms else memory[:0]
        for k, j in enumerate(self._columns):
            memory[j] = complex(leaves[j], STEP)
            self._function(memory.ctypes.data)
            J[:, k] = values.imag
            memory[j] = leaves[j]
        return J / STEP

    def _compile(self, program: Program, compiler: Compiler) -> None:
        writer = Writer(program, {"rows": [(f"m->z[{i}]", atom) for i, atom in enumerate(self._atoms)]})
        code = "\n".join(writer.functions()).replace("const double ", "const double complex ")
        nv = len(writer.stored) + 1
        z = max(len(self._atoms), 1)
        struct = f"typedef struct {{ double complex s[{self._size}], v[{nv}], z[{z}]; }} Model;"
        head = HEADER.replace("#include <math.h>", "#include <complex.h>\n#include <tgmath.h>")
        source = f"{head}{struct}\n{code}\nOUT void run(Model *m) {{ rows(m); }}\n"
        limited = Compiler(compiler.command, (*compiler.flags, "-fcx-limited-range"), compiler.use_cache)
        self._function = loaded(source, limited).run
        self._function.argtypes, self._function.restype = [ctypes.c_void_p], None
        self._memory = self._size + nv + z


def _has_compiler(compiler: Compiler) -> bool:
    if compiler.command:
        return True
    try:
        find_compiler()
    except ModelError:
        return False
    return True
