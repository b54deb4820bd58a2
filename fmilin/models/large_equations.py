"""Lagrange's equations of a large symbolic model at one point: sparse matrices, sparse factors, sparse projection."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from scipy.sparse import csc_array

from fmilin.codegen.implicit import cse_option, jacobian
from fmilin.codegen.system_functions import SystemFunctions
from fmilin.constraints.declared import Constraints
from fmilin.models.sparse.manifold import SparseManifold
from fmilin.numerics.factors import Factors, regular_factors
from fmilin.signals import FloatArray

__all__ = ["LargeEquations", "SparseFunctions"]

Sparse = Any  # scipy.sparse.csc_array


class SparseFunctions(SystemFunctions):
    """The functions of a large system: W and all Jacobians are sparse, W is factorized as such."""

    def equations(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W and r as arrays."""
        W, r = self._equations(t, x, u, p)
        return W.toarray(), r[:, 0]

    def partials(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the partial derivatives as arrays."""
        e_s, _, _, c_s, c_w = (matrix.toarray() for matrix in self._partials(*point, w))
        return e_s, c_s, c_w

    def solver(self, W: Sparse, t: float = 0.0) -> Factors:
        """Return the factors of W."""
        return regular_factors(W, f"The equations of '{self.system.name}'")

    @cached_property
    def _equations(self) -> Any:
        return sparse_function(self._arguments, [self.system.matrix, self.system.right_hand_side])

    @cached_property
    def _partials(self) -> Any:
        s = self.system
        of_values = [jacobian(e, v) for e in (s.derivatives, s.outputs) for v in (s.motion, s.unknowns)]
        return sparse_function([*s.arguments, s.unknowns], [s.motion_slopes, *of_values])

    @cached_property
    def turning(self) -> Any:
        """(t, x, u, p) -> d(G v)/dq, of Lagrange's equations."""
        s, n = self.system, len(self.system.state_signals) // 2
        return sparse_function(s.arguments, [jacobian(ca.mtimes(s.matrix[n:, :n], s.states[n:]), s.states[:n])])


class LargeEquations(SparseManifold):
    """:class:`~fmilin.model.equation_forms.SparseEquations` of a model; its constraints are free of time and inputs."""

    def __init__(
        self,
        functions: SparseFunctions,
        constraints: Constraints,
        p: FloatArray,
        inputs: Callable[[FloatArray], FloatArray],
        input_columns: Sequence[int],  # the inputs of the equations that are the model's, too
    ) -> None:
        super().__init__(functions.system.state_signals)
        self._functions, self._constraints, self._p, self._inputs = functions, constraints, p, inputs
        self._columns = [*range(2 * self.n), *(2 * self.n + i for i in input_columns)]

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Sparse, FloatArray]:
        """Return W and r."""
        W, r = self._functions._equations(t, x, self._inputs(u), self._p)
        return W, r[:, 0]

    def solver(self, W: Sparse) -> Any:
        """Return the factors of W."""
        return self._functions.solver(W)

    def slopes(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> Sparse:
        """Return the partial derivatives of r - W w."""
        return self._functions._partials(t, x, self._inputs(u), self._p, w)[0][:, self._columns]

    def turning(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        """Return d(G v)/dq."""
        return self._functions.turning(t, x, self._inputs(u), self._p)[0]

    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v)."""
        return self._constraints.residuals(t, x, u, np.empty(0))

    def _gradient(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        return self.matrix(t, x, u)[0][self.n :, : self.n].tocsc()


def sparse_function(arguments: Sequence[Any], results: Sequence[Any]) -> Callable[..., list[Any]]:
    """Return a function with sparse matrices as results; columns without zeros are arrays, shape (k, 1)."""
    function = ca.Function("f", list(arguments), list(results), cse_option(*results))

    def evaluate(*values: FloatArray | float) -> list[Any]:
        matrices = function(*values)
        return [_sparse(m) for m in (matrices if isinstance(matrices, tuple) else (matrices,))]

    return evaluate


def _sparse(matrix: Any) -> Any:
    """Return CasADi's numbers, which lie column by column, too."""
    if matrix.is_column() and matrix.is_dense():
        return matrix.full()
    pattern = matrix.sparsity()
    values = np.array(matrix.nonzeros(), dtype=np.float64)
    return csc_array((values, np.array(pattern.row()), np.array(pattern.colind())), shape=matrix.shape)
