"""Nodes of a graph as a function of NumPy arrays: at one point in microseconds, or at many points at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError
from fmilin.ground.signals import FloatArray
from fmilin.numerics.codegen.buffered import Buffered
from fmilin.numerics.codegen.native import Backend, CompilationBudget, Native
from fmilin.numerics.codegen.nodes import sharing

__all__ = ["Evaluator"]

SX = Any  # casadi.SX: casadi ships no types

SMALL = 400
"""Entries of a matrix up to which its zeros are computed, too: that is quicker than putting the others in place."""


class _Memory(NamedTuple):
    """Room for one call: s, z, and what computes z from s."""

    s: FloatArray
    z: FloatArray
    run: Callable[[], None]
    owner: object
    """Kept alive as long as ``run`` may be called."""


class _Result(NamedTuple):
    """A matrix: where its nonzeros lie among all results, and where they belong, row by row."""

    nonzeros: slice
    shape: tuple[int, int]
    cells: NDArray[np.intp] | None
    """None where they are all entries, column by column."""


class Evaluator:
    """A function of some columns of symbols whose results are matrices.

    The numbers come from CasADi's virtual machine, which answers at once, and from compiled C when so many points were
    asked for that it pays (:class:`~fmilin.numerics.codegen.native.Backend`). May be called from several threads.

    ``results``: matrices over these symbols. Entries outside their sparsity are zero. ``function``: one column, all
    arguments, to one column, the nonzeros of all results.

    >>> x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    >>> f = Evaluator([x, p], [p * x, ca.jacobian(p * x[0], x)])
    >>> f(np.array([1.0, 2.0]), np.array([3.0]))
    [array([[3.],
           [6.]]), array([[3., 0.]])]
    """

    def __init__(self, arguments: Sequence[SX], results: Sequence[SX], backend: Backend | None = None) -> None:
        self._backend = backend or Backend()
        self._compiler = self._backend.compiler
        self._places = _slices([a.numel() for a in arguments])
        results = [ca.densify(r) if r.numel() <= SMALL else r for r in results]
        self._results = [_result(*pair) for pair in zip(results, _slices([r.nnz() for r in results]), strict=True)]
        nonzeros = ca.vertcat(ca.SX(0, 1), *(node for r in results for node in r.nonzeros()))
        self.function = ca.Function("f", [ca.vertcat(ca.SX(0, 1), *arguments)], [nonzeros], sharing(nonzeros))
        self._budget = CompilationBudget(self.function.n_instructions())
        self._free: list[_Memory] = []
        self._native: Native | None = None
        if self._backend.kind == "c":
            self._native = Native(self.function, self._backend.compiler)

    @property
    def kind(self) -> str:
        """What computes at present: ``"casadi"`` or ``"c"``."""
        return "casadi" if self._native is None else "c"

    def __call__(self, *vectors: FloatArray | float) -> list[FloatArray]:
        """Return the matrices at one point.

        ``*vectors``: one for each argument, of its length; or a number.
        """
        self._count(1)
        memory = self._memory()
        for place, vector in zip(self._places, vectors, strict=True):
            memory.s[place] = vector
        memory.run()
        z = memory.z.copy()
        self._free.append(memory)
        found = []
        for place, shape, cells in self._results:
            if cells is None:
                found.append(z[place].reshape(shape, order="F"))
            else:
                matrix = np.zeros(shape)
                matrix.put(cells, z[place])
                found.append(matrix)
        return found

    def at_points(self, *vectors: FloatArray | float) -> list[FloatArray]:
        """Return the matrices at many points, shapes (k, rows, columns).

        ``*vectors`` (k, length): one for each argument; (length,) and numbers stand for the same at all points.
        """
        k = max((len(v) for v in vectors if isinstance(v, np.ndarray) and v.ndim > 1), default=1)
        s, z = np.empty((k, self.function.nnz_in(0))), np.empty((k, self.function.nnz_out(0)))
        for place, vector in zip(self._places, vectors, strict=True):
            s[:, place] = vector
        self._count(k)
        if self._native is None:
            self._interpret(s, z)
        else:
            self._native(s, z)
        found = []
        for place, shape, cells in self._results:
            if cells is None:
                found.append(np.swapaxes(z[:, place].reshape(k, *shape[::-1]), 1, 2))
            else:
                stack = np.zeros((k, shape[0] * shape[1]))
                stack[:, cells] = z[:, place]
                found.append(stack.reshape(k, *shape))
        return found

    def _count(self, points: int) -> None:
        """Change over to compiled C when so many points make it worth while, and there is a compiler."""
        if self._native is None and self._budget.is_spent_by(points) and self._backend.kind == "auto":
            self._backend = Backend("casadi")  # asked once
            try:
                self._native = Native(self.function, self._compiler)
                self._free = []
            except (ModelError, OSError) as error:  # no compiler, or a folder from which nothing may be loaded
                logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)

    def _memory(self) -> _Memory:
        """Return room that no other thread uses; it is given back to ``_free``."""
        try:
            return self._free.pop()
        except IndexError:
            return self._more_memory()

    def _more_memory(self) -> _Memory:
        if self._native is None:
            buffered = Buffered(self.function)
            return _Memory(buffered.arguments[0], buffered.results[0], buffered.run, buffered)
        s, z = np.zeros((1, self.function.nnz_in(0))), np.zeros((1, self.function.nnz_out(0)))
        return _Memory(s[0], z[0], self._native.bound(s, z), self._native)

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
