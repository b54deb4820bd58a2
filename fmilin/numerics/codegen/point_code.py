"""Rates and outputs of a system at one point in one call of compiled code, W w = r solved on the way."""

from __future__ import annotations

import ctypes
from functools import partial
from importlib.resources import files

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.numerics.codegen.c99 import generate
from fmilin.numerics.codegen.compilation import compiler_seconds
from fmilin.numerics.codegen.compiler import Compiler, is_built, loaded_library
from fmilin.numerics.codegen.implicit import ImplicitSystem

_UNIT = "values.c"


class PointCode:
    """The C code of a system as FMUs have it, printed but not yet compiled; its parameters keep their values."""

    def __init__(self, system: ImplicitSystem, compiler: Compiler | None = None) -> None:
        self._compiler = compiler or Compiler()
        code = generate(system, derivatives=False)
        runtime = files("fmilin.numerics.codegen") / "runtime"
        self._sources = {**code.sources, _UNIT: (runtime / _UNIT).read_text(encoding="utf-8")}
        self._system, self._instructions = system, code.instructions

    @property
    def price(self) -> float:
        """Seconds that :meth:`compiled` takes: nothing to speak of where the same code was compiled before."""
        return 0.0 if is_built(self._sources, _UNIT, self._compiler) else compiler_seconds(self._instructions)

    def compiled(self) -> PointValues:
        """Return the compiled code."""
        return PointValues(self._system, loaded_library(self._sources, _UNIT, self._compiler, ctypes.PyDLL))


class PointValues:
    """Compiled rates and outputs; thread-safe, as room for a call is taken and given back under the interpreter."""

    def __init__(self, system: ImplicitSystem, library: ctypes.PyDLL) -> None:
        library.work_size.restype = ctypes.c_size_t
        library.run.argtypes, library.run.restype = [ctypes.c_void_p] * 3, ctypes.c_int
        self._library, self._parameters = library, system.parameter_values
        n, k = len(system.state_signals), len(system.input_signals)
        self._x, self._u = slice(1, 1 + n), slice(1 + n, 1 + n + k)
        self._size = system.derivatives.numel() + system.outputs.numel()
        self._free: list[tuple[FloatArray, FloatArray, partial[int], FloatArray]] = []

    def __call__(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return rates, then outputs, shape (N + ny,); None where W is singular, nearly so, or holds no numbers."""
        try:
            room = self._free.pop()
        except IndexError:  # another thread has it
            room = self._room()
        s, z, run = room[:3]
        s[0], s[self._x], s[self._u] = t, x, u
        refused = run()
        values = None if refused else z.copy()
        self._free.append(room)
        return values

    def _room(self) -> tuple[FloatArray, FloatArray, partial[int], FloatArray]:
        """Return (t, x, u, p), the results, what computes these, and the room for it, which stays as long as that."""
        s, z = np.zeros(self._u.stop + len(self._parameters)), np.zeros(max(self._size, 1))
        work = np.zeros(self._library.work_size() // 8 + 1)
        s[self._u.stop :] = self._parameters
        z = z[: self._size]
        return s, z, partial(self._library.run, s.ctypes.data, z.ctypes.data, work.ctypes.data), work
