"""Numeric Lagrange's equations at one point as the sparse matrices that trimming and linearizing solve with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmilin.models.sparse.equations import NumericEquations, Pattern
from fmilin.models.sparse.manifold import SparseManifold
from fmilin.numerics.factors import regular_factors
from fmilin.signals import FloatArray, Signals


class NumericSparseEquations(SparseManifold):
    """:class:`~fmilin.model.equations.SparseEquations` of :class:`~fmilin.models.sparse.NumericEquations`."""

    def __init__(
        self,
        equations: NumericEquations,
        signals: Signals,
        inputs: Callable[[FloatArray], FloatArray],
        columns: list[int],  # the inputs of the equations that are the model's, too
    ) -> None:
        super().__init__(signals)
        self._equations, self._inputs, self._columns = equations, inputs, columns
        n, m, G = equations.n, equations.m, equations.pattern_G
        self._saddle = Pattern.joined([(equations.pattern_M, 0, 0), (G.T, 0, n), (G, n, 0)], (n + m, n + m))

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Any, FloatArray]:
        """Return W and r."""
        equations, q, v = self._equations, x[: self.n], x[self.n :]
        jacobian = equations.jacobian(q)
        W = self._saddle.sparse(np.concatenate((equations.mass(q), jacobian, jacobian)))
        forces = equations.forces(q, v) + equations.input_matrix @ self._inputs(u)
        return W, np.concatenate((forces, -equations.bend(q, v)))

    def solver(self, W: Any) -> Any:
        """Return the factors of W."""
        return regular_factors(W, f"The equations of '{self._equations.name}'")

    def slopes(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> Any:
        """Return the partial derivatives of r - W w."""
        from scipy import sparse

        equations, n, q, v, a = self._equations, self.n, x[: self.n], x[self.n :], w[: self.n]
        values = equations.slopes(q, v, a, w[n:])
        upper = [equations.pattern_e_q.sparse(values.e_q), equations.pattern_e_v.sparse(values.e_v)]
        by_q = equations.rate_slopes(q, a) + equations.bend_slopes(q, v)
        by_v = 2.0 * equations.rate_slopes(q, v)
        lower = [equations.pattern_G.sparse(-by_q), equations.pattern_G.sparse(-by_v)]
        forces = sparse.csc_array(equations.input_matrix[:, self._columns])
        nothing = sparse.csc_array((equations.m, len(self._columns)))
        return sparse.block_array([[*upper, forces], [*lower, nothing]], format="csc")

    def turning(self, t: float, x: FloatArray, u: FloatArray) -> Any:
        """Return d(G v)/dq."""
        return self._equations.pattern_G.sparse(self._equations.rate_slopes(x[: self.n], x[self.n :]))

    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v)."""
        q, v = x[: self.n], x[self.n :]
        return np.concatenate((self._equations.residuals(q), self._gradient(t, x, u) @ v))

    def _gradient(self, t: float, x: FloatArray, u: FloatArray) -> Any:
        return self._equations.pattern_G.sparse(self._equations.jacobian(x[: self.n]))
