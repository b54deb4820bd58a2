"""When numbers are computed by compiled C instead of CasADi's virtual machine, and the library that computes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from fmilin.ground.errors import UsageError
from fmilin.ground.files import temporary_folder
from fmilin.ground.signals import FloatArray
from fmilin.numerics.codegen.compiler import Compiler, compiled_library, library_suffix
from fmilin.numerics.codegen.statements import Statements

__all__ = ["Backend", "CompilationBudget", "Native", "library"]

Function = Any  # casadi.Function: casadi ships no types

_KINDS = ("auto", "c", "casadi")

SECONDS_PER_INSTRUCTION = 3e-9
"""What the virtual machine takes; compiled code takes about a fifth."""

COMPILING = 1.3e-4
"""Seconds of a compiler for each instruction."""

STARTING = 0.1
"""Seconds that a compiler takes for nothing."""


@dataclass(frozen=True, slots=True)
class Backend:
    """What computes the numbers."""

    # ``"auto"``: CasADi's virtual machine, which answers at once, and compiled C as soon as it pays
    # (:class:`CompilationBudget`) if there is a compiler
    kind: Literal["auto", "c", "casadi"] = "auto"
    compiler: Compiler = field(default_factory=Compiler)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UsageError(f"'{self.kind}' computes nothing: the backends are {', '.join(_KINDS)}.")


class CompilationBudget:
    """How long a virtual machine is good enough: until it has worked for as long as a compiler would.

    How many evaluations are still to come is not known; compiling at this moment costs at most twice of what would have
    been best (the break-even rule of the ski rental problem).
    """

    def __init__(self, instructions: int) -> None:
        each = max(instructions, 1)
        self._left = (STARTING + each * COMPILING) / (each * SECONDS_PER_INSTRUCTION)

    def is_spent_by(self, points: int) -> bool:
        """Count an evaluation at so many points; return whether it is to be done by compiled code."""
        self._left -= points
        return self._left < 0


class Native:
    """A function of one dense column s with one dense column z as its result, compiled and loaded.

    Called with points s (k, ns), it fills z (k, nz); both are contiguous. From any thread.
    """

    def __init__(self, function: Function, compiler: Compiler) -> None:
        sizes = {"s": function.nnz_in(0), "z": function.nnz_out(0)}
        inputs, results = ([f"{name}[{i}]" for i in range(size)] for name, size in sizes.items())
        statements = Statements(
            function,
            [inputs],
            {"at_point": {0: results}},
            arguments=("const double *restrict s", "double *restrict z", "double *restrict v"),
            array="v",
        )
        functions = "\n".join(statements.functions())
        source = _SOURCE.format(functions=functions, size=max(statements.stored, 1), **sizes)
        self._run = library({"functions.c": source}, "functions.c", compiler, ctypes.PyDLL).run
        self._run.argtypes, self._run.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long], None

    def __call__(self, s: FloatArray, z: FloatArray) -> None:
        """Fill z (k, nz) for s (k, ns)."""
        self._run(s.ctypes.data, z.ctypes.data, len(s))

    def bound(self, s: FloatArray, z: FloatArray) -> Callable[[], None]:
        """Return what does the same without arguments, quicker; s and z must be kept alive."""
        return partial(self._run, s.ctypes.data, z.ctypes.data, len(s))


_SOURCE = """#include <math.h>
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
{functions}
OUT void run(const double *s, double *z, long count)
{{
    double v[{size}];
    for (long i = 0; i < count; i++) at_point(s + i * {s}, z + i * {z}, v);
}}
"""


def library(sources: Mapping[str, str], unit: str, compiler: Compiler, kind: type[ctypes.CDLL]) -> Any:
    """Compile and load; the file is not needed any more once it is mapped (where the system lets it go).

    ``kind``: ``ctypes.PyDLL`` keeps the interpreter's lock, for calls that take microseconds; ``ctypes.CDLL`` gives it
    up.
    """
    with temporary_folder() as folder:
        path = folder / f"functions{library_suffix()}"
        texts = {name: text.encode() for name, text in sources.items()}
        path.write_bytes(compiled_library(texts, unit, compiler))
        return kind(str(path))
