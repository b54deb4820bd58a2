"""The statements of a program as a Python function: on floats, and on NumPy arrays, complex ones included."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from types import CodeType
from typing import Any

import numpy as np
from sympy.printing.codeprinter import PrintMethodNotImplementedError
from sympy.printing.numpy import NumPyPrinter

from fmilin.codegen.program import Atom, Program
from fmilin.errors import ModelError
from fmilin.signals import FloatArray

__all__ = ["PythonFunction"]


class PythonFunction:
    """Atoms of a program, computed by one function of the vector of its leaves.

    Python's ``math`` is quick on single numbers but raises outside a function's domain; the same code with
    NumPy's functions then returns NaN where that is so.

    Parameters
    ----------
    program : Program
        Its leaves have the names ``m->s[0]``, ``m->s[1]``, ... of :func:`fmilin.codegen.staged.leaf_names`.
    atoms : sequence of Atom
        What is returned.
    """

    def __init__(self, program: Program, atoms: Sequence[Atom]) -> None:
        self._program, self._atoms = program, tuple(atoms)

    def __call__(self, leaves: FloatArray) -> FloatArray:
        """Return the values of the atoms, shape (nz,), for leaves (ns,)."""
        if not self._atoms:
            return np.empty(0)
        try:
            return np.array(self._on_floats(leaves.tolist()), dtype=np.float64)
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            values: FloatArray = self.batch(leaves[:, None])[:, 0]
            return values

    def batch(self, leaves: Any) -> Any:
        """Return the values of the atoms, shape (nz, k), for leaves (ns, k), real or complex."""
        with np.errstate(all="ignore"):
            rows = self._on_arrays(leaves)
        result = np.empty((len(self._atoms), leaves.shape[1]), dtype=leaves.dtype)
        for i, row in enumerate(rows):
            result[i] = row
        return result

    @cached_property
    def _code(self) -> CodeType:
        printer = _Printer({"fully_qualified_modules": False})
        statements = self._program.statements
        lines = [f" {s.name} = {_text(printer, statements[s])}" for s in self._program.needed_by(self._atoms)]
        results = ", ".join(printer.doprint(atom) for atom in self._atoms)
        return compile("\n".join(["def function(s):", *lines, f" return [{results}]"]), "<stage>", "exec")

    @cached_property
    def _on_floats(self) -> Callable[[list[float]], list[float]]:
        return self._function({**vars(np), **_FAST})

    @cached_property
    def _on_arrays(self) -> Callable[[Any], list[Any]]:
        return self._function(vars(np))

    def _function(self, names: Mapping[str, Any]) -> Callable[..., list[Any]]:
        namespace = {**names, "reduce": reduce}  # for min and max
        exec(self._code, namespace)  # noqa: S102 - printed from checked expressions, never text of a user
        function: Callable[..., list[Any]] = namespace["function"]
        return function


def _text(printer: NumPyPrinter, operation: Any) -> str:
    try:
        return str(printer.doprint(operation))
    except PrintMethodNotImplementedError:
        raise ModelError(
            f"There is no NumPy code for the function '{type(operation).__name__}', which appears in the equations. "
            "Write it with elementary functions."
        ) from None


class _Printer(NumPyPrinter):  # type: ignore[misc]
    """Writes a leaf ``m->s[3]`` as ``s[3]``, and divisions as divisions."""

    def _print_Symbol(self, symbol: Any) -> str:
        return str(symbol.name).removeprefix("m->")

    def _print_Float(self, number: Any) -> str:
        return repr(float(number))

    def _print_Heaviside(self, step: Any) -> str:
        return f"heaviside({self._print(step.args[0])}, 0.5)"


_FAST: Mapping[str, Callable[..., float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "arcsin": math.asin, "arccos": math.acos, "arctan": math.atan, "arctan2": math.atan2, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "abs": abs,
}  # fmt: skip
