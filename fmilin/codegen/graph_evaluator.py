"""Nodes of a graph as a function of NumPy arrays, at one point or many: interpreted at first, compiled when it pays."""

import ctypes
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.compiler import CompilationBudget, Compiler, load_library
from fmilin.codegen.implicit import cse_option
from fmilin.codegen.statements import Statements
from fmilin.errors import ModelError, UsageError
from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types
Function = Any  # casadi.Function
_KINDS = ("auto", "c", "casadi")
MAX_DENSE_SIZE = (
    400  # entries of a matrix up to which its zeros are computed, too: that is quicker than scattering the others
)


@dataclass(frozen=True, slots=True)
class Backend:
    """The choice of the code that computes the numbers."""

    # ``"auto"``: CasADi's virtual machine, which answers at once, and compiled C as soon as it pays
    # (:class:`CompilationBudget`) if there is a compiler
    kind: Literal["auto", "c", "casadi"] = "auto"
    compiler: Compiler = field(default_factory=Compiler)

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise UsageError(f"'{self.kind}' is not a backend: the backends are {', '.join(_KINDS)}.")


class Native:
    """A compiled function of one dense column: fills z (k, nz) from points s (k, ns), contiguous; thread-safe."""

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
        self._run = load_library({"functions.c": source}, "functions.c", compiler, ctypes.PyDLL).run
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


class _WorkMemory(NamedTuple):
    """Memory for one call: s, z, and the function that computes z from s."""

    s: FloatArray
    z: FloatArray
    run: Callable[[], None]
    owner: object  # kept alive as long as ``run`` may be called


class _Result(NamedTuple):
    """A matrix: where its nonzeros lie among all results, and where they belong, row by row."""

    nonzeros: slice
    shape: tuple[int, int]
    cells: NDArray[np.intp] | None  # none where they are all entries, column by column


class Evaluator:
    """A function of columns of symbols with matrices as results, by virtual machine or compiled C; thread-safe."""

    def __init__(self, arguments: Sequence[SX], results: Sequence[SX], backend: Backend | None = None) -> None:
        self._backend = backend or Backend()
        self._compiler = self._backend.compiler
        self._slices = _slices([a.numel() for a in arguments])
        results = [ca.densify(r) if r.numel() <= MAX_DENSE_SIZE else r for r in results]
        self._results = [_result(*pair) for pair in zip(results, _slices([r.nnz() for r in results]), strict=True)]
        nonzeros = ca.vertcat(ca.SX(0, 1), *(node for r in results for node in r.nonzeros()))
        self.function = ca.Function("f", [ca.vertcat(ca.SX(0, 1), *arguments)], [nonzeros], cse_option(nonzeros))
        self._budget = CompilationBudget.of_graph(self.function.n_instructions())
        self._free: list[_WorkMemory] = []
        self._native: Native | None = None
        if self._backend.kind == "c":
            self._native = Native(self.function, self._backend.compiler)

    @property
    def kind(self) -> str:
        """The code in use: ``"casadi"`` or ``"c"``."""
        return "casadi" if self._native is None else "c"

    def __call__(self, *vectors: FloatArray | float) -> list[FloatArray]:
        """Return the matrices at one point, for a vector (or a number) for each argument."""
        if self._native is None and self._backend.kind == "auto":
            self._count(1)
        memory = self._memory()
        for part, vector in zip(self._slices, vectors, strict=True):
            memory.s[part] = vector
        memory.run()
        z = memory.z.copy()
        self._free.append(memory)
        matrices = []
        for part, shape, cells in self._results:
            if cells is None:
                matrices.append(z[part].reshape(shape[::-1]).T)
            else:
                matrix = np.zeros(shape)
                matrix.put(cells, z[part])
                matrices.append(matrix)
        return matrices

    def at_points(self, *vectors: FloatArray | float) -> list[FloatArray]:
        """Return the matrices, (k, rows, columns), at points (k, length) of each argument; one vector serves all k."""
        k = max((len(v) for v in vectors if isinstance(v, np.ndarray) and v.ndim > 1), default=1)
        s, z = np.empty((k, self.function.nnz_in(0))), np.empty((k, self.function.nnz_out(0)))
        for part, vector in zip(self._slices, vectors, strict=True):
            s[:, part] = vector
        self._count(k)
        if self._native is None:
            self._interpret(s, z)
        else:
            self._native(s, z)
        matrices = []
        for part, shape, cells in self._results:
            if cells is None:
                matrices.append(np.swapaxes(z[:, part].reshape(k, *shape[::-1]), 1, 2))
            else:
                stack = np.zeros((k, shape[0] * shape[1]))
                stack[:, cells] = z[:, part]
                matrices.append(stack.reshape(k, *shape))
        return matrices

    def _count(self, points: int) -> None:
        """Change over to compiled C when so many points make it worth while, and there is a compiler."""
        if self._native is None and self._budget.count_toward_compilation(points) and self._backend.kind == "auto":
            self._backend = Backend("casadi")  # tried once
            try:
                self._native = Native(self.function, self._compiler)
                self._free = []
            except (ModelError, OSError) as error:  # no compiler, or a folder from which nothing may be loaded
                logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)

    def _memory(self) -> _WorkMemory:
        """Return memory that no other thread uses; it is given back to ``_free``."""
        try:
            return self._free.pop()
        except IndexError:  # all is in use
            pass
        s, z = np.zeros(self.function.nnz_in(0)), np.zeros(self.function.nnz_out(0))
        if self._native is not None:
            return _WorkMemory(s, z, self._native.bound(s[None], z[None]), self._native)
        function: Any = self.function
        buffer, run = function.buffer()
        if s.size:  # an empty array has no address to hand over
            buffer.set_arg(0, s.data)
        if z.size:
            buffer.set_res(0, z.data)
        return _WorkMemory(s, z, run, buffer)

    def _interpret(self, s: FloatArray, z: FloatArray) -> None:
        """Fill z (k, nz) for points s (k, ns)."""
        memory = self._memory()
        for i, point in enumerate(s):  # a map() over 64 points and more saves half a microsecond, and costs 500
            memory.s[:] = point
            memory.run()
            z[i] = memory.z
        self._free.append(memory)


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in pairwise(ends)]


def _result(matrix: SX, nonzeros: slice) -> _Result:
    shape = (matrix.size1(), matrix.size2())
    if matrix.is_dense():
        return _Result(nonzeros, shape, None)
    rows, columns = (np.array(indices, dtype=np.intp) for indices in matrix.sparsity().get_triplet())
    return _Result(nonzeros, shape, rows * shape[1] + columns)
