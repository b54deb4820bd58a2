"""Lagrange's equations of a large symbolic model at one point: sparse matrices, sparse factors, sparse projection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.model.sparse_equations import SparseSlopes
from fmilin.models.sparse.saddle_point import LARGEST_DENSE, SparseFactors
from fmilin.signals import FloatArray
from fmilin.tolerances import REACHED

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.constraints.declared import Constraints

__all__ = ["LARGEST_DENSE", "LargeEquations"]

Sparse = Any  # scipy.sparse.csc_array

SINGULAR = 1e-14
"""Reciprocal condition number, of the scaled matrix, below which accelerations are not determined."""

ITERATIONS = 50


class LargeEquations:
    """A :class:`~fmilin.model.sparse_equations.SparseEquations` made of a graph.

    Parameters
    ----------
    system : ImplicitSystem
        Of Lagrange's equations, its constraints free of time and inputs.
    constraints : Constraints
        The m constraints on positions, then their rates.
    p : array, shape (np,)
    """

    def __init__(self, system: ImplicitSystem, constraints: Constraints, p: FloatArray) -> None:
        self._system, self._constraints, self._p = system, constraints, p
        self.n = len(system.state_signals) // 2

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Sparse, FloatArray]:
        """Return W and r."""
        W, r = self._equations(t, x, u, self._p)
        return _sparse(W), r.full().ravel()

    def solver(self, W: Sparse) -> SparseFactors:
        """Return the factors of W."""
        if not np.isfinite(W.data).all():
            raise NumericalError("The equations of motion hold a NaN or an infinity at this point: choose another.")
        factors = SparseFactors(W, "the matrix of the equations of motion")
        if factors.rcond < SINGULAR:
            raise NumericalError(
                f"The equations of '{self._system.name}' have no unique solution: the matrix that multiplies the "
                f"{W.shape[0]} accelerations and multipliers is singular (reciprocal condition number "
                f"{factors.rcond:.1e}). Constraints depend on each other at this point, or a mass is missing: choose "
                "another point, drop the redundant constraints or add the mass.",
                condition_number=1 / factors.rcond if factors.rcond > 0 else float("inf"),
            )
        return factors

    def slopes(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> SparseSlopes:
        """Return the partial derivatives."""
        e_s, c_s, c_w, c = self._slopes(t, x, u, self._p, w)
        return SparseSlopes(_sparse(e_s), _sparse(c_s), _sparse(c_w), c.full().ravel())

    def turning(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        """Return d(G v)/dq."""
        return _sparse(self._turning(t, x, u, self._p))

    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v)."""
        found: FloatArray = self._constraints.residuals(t, x, u, np.empty(0))
        return found

    def distance(self, x: FloatArray, u: FloatArray, t: float) -> float:
        """Return the largest component of the step that would lead back."""
        g = self.residuals(t, x, u)
        if not np.isfinite(g).all():
            return float("inf")
        G, nothing = self._gradient(t, x, u), np.zeros(self.n, dtype=bool)
        steps = [self._step(G, D, h, nothing) / D for D, h in zip(self._sizes(x), np.split(g, 2), strict=True)]
        return float(np.max(np.abs(steps), initial=0.0))

    def projected(self, t: float, x: FloatArray, u: FloatArray, held: Sequence[int]) -> FloatArray:
        """Return the nearest states by Gauss-Newton, positions first; velocities follow linearly."""
        n, x, (D_q, D_v) = self.n, x.copy(), self._sizes(x)
        m, fixed = len(self._constraints) // 2, np.zeros(2 * self.n, dtype=bool)
        fixed[list(held)] = True
        previous = np.inf
        for _ in range(ITERATIONS):
            try:
                step = self._step(self._gradient(t, x, u), D_q, self.residuals(t, x, u)[:m], fixed[:n])
            except NumericalError:  # the held states say too much
                break
            size = float(np.max(np.abs(step / D_q), initial=0.0))
            x[:n] += step * min(1.0, 0.5 / size if size > 0 else 1.0)  # no longer than half the size of a coordinate
            if size <= 1e-15 or (size < 1e-9 and size >= 0.5 * previous) or not np.isfinite(size):
                break
            previous = size
        distance = np.inf
        try:
            for _ in range(2):
                x[n:] += self._step(self._gradient(t, x, u), D_v, self.residuals(t, x, u)[m:], fixed[n:])
            distance = self.distance(x, u, t)
        except NumericalError:  # as above, or the point is singular
            pass
        if distance <= REACHED:
            return x
        names = [self._system.state_signals.names[i] for i in held]
        what = f"with {', '.join(names)} held" if names else "from the start values"
        raise ConstraintError(
            f"The constraints cannot be satisfied {what}: the search ended {distance:.3g} sizes of the states away. "
            "Check the constraints and the values given with --set."
        )

    def _gradient(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        return self.matrix(t, x, u)[0][self.n :, : self.n].tocsc()

    def _sizes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        scales = self._system.state_signals.scales(x)
        return scales[: self.n], scales[self.n :]

    def _step(self, G: Sparse, D: FloatArray, h: FloatArray, fixed: Any) -> FloatArray:
        """Return the smallest dz with G dz = -h and dz zero where ``fixed``, sizes measured in D."""
        from scipy import sparse

        if not np.isfinite(h).all() or not np.isfinite(G.data).all():
            return np.full(len(D), np.nan)
        scaled = (G @ sparse.diags_array(np.where(fixed, 0.0, D))).tocsc()
        saddle = sparse.block_array([[sparse.eye_array(len(D)), scaled.T], [scaled, None]], format="csc")
        factors = SparseFactors(saddle, "the matrix of the constraints with these states held")
        found = factors.solve(np.concatenate((np.zeros(len(D)), -h)))
        step: FloatArray = D * found[: len(D)]
        return step

    @cached_property
    def _equations(self) -> Any:
        s = self._system
        return _function(s.arguments, [s.matrix, s.right_hand_side])

    @cached_property
    def _slopes(self) -> Any:
        from fmilin.codegen.implicit import jacobian

        s = self._system
        results = [s.motion_slopes, jacobian(s.outputs, s.motion), jacobian(s.outputs, s.unknowns), s.outputs]
        return _function([*s.arguments, s.unknowns], results)

    @cached_property
    def _turning(self) -> Any:
        import casadi as ca

        from fmilin.codegen.implicit import jacobian

        s, n = self._system, self.n
        return _function(s.arguments, [jacobian(ca.mtimes(s.matrix[n:, :n], s.states[n:]), s.states[:n])])


def _function(arguments: Sequence[Any], results: Sequence[Any]) -> Any:
    import casadi as ca

    return ca.Function("f", list(arguments), list(results))


def _sparse(matrix: Any) -> Sparse:
    """Return CasADi's numbers, which lie column by column, too."""
    from scipy.sparse import csc_array

    pattern = matrix.sparsity()
    values = np.array(matrix.nonzeros(), dtype=np.float64)
    return csc_array((values, np.array(pattern.row()), np.array(pattern.colind())), shape=matrix.shape)
