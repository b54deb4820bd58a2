"""Rows of equations as numbers at the start: values, derivatives, points at which all rows vanish."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from scipy import linalg

from fmilin.codegen.graph_rounding import matrix_without_rounding
from fmilin.errors import NumericalError
from fmilin.models.dae.semi_explicit import DifferentiatedRow, JetDerivatives, SemiExplicit, stack_column
from fmilin.numerics.factors import MAX_DENSE_ROWS, Factors, regular_factors
from fmilin.numerics.newton import BoolArray, IntArray, NewtonRules, follow_zeros
from fmilin.signals import FloatArray

SX = Any
Unknown = tuple[int, int]  # which of w, and how often differentiated

ITERATIONS = 100  # start values may be far away, and steps are limited
NEWTON_STEP_TOLERANCE = 1e-13  # the last step, in sizes of the unknowns
# a step that no longer shrinks: redundant rows and double roots reach the root of rounding only
STALLED_STEP_TOLERANCE = 1e-8
START_RULES = NewtonRules(iterations=ITERATIONS, trust_radius=np.inf, shortest_part=1e-6)
UNKNOWN_WEIGHT = 1e3  # how much easier unknowns move than states
MAX_STEP_SIZE = 0.5  # sizes of the states in a step
DEPENDENT_ROW_TOLERANCE = 1e-10  # of the largest singular value of scaled rows
QUADRATIC_CONVERGENCE_SIZE = (
    1e-3  # sizes: below this, steps shrink by more than QUADRATIC_CONVERGENCE_RATIO where nothing is redundant
)
QUADRATIC_CONVERGENCE_RATIO = 0.2
# Up to which singular values of scaled rows are zero: at a point that Newton's method reached quadratically, and at one
# that it reached slowly, where rows are redundant and the point has half of the digits.
REGULAR_POINT_ERROR, SINGULAR_POINT_ERROR = 1e-9, 1e-5
LATERAL_START_SIZE = 0.9  # sizes of the unknowns, from a guess without a slope


def reciprocal_condition(J: Any) -> float:
    """Return that of a square matrix, sparse or not, scaled; zero where it is singular."""
    try:
        return float(np.min(regular_factors(J, "the equations").rcond, initial=1.0))
    except NumericalError:
        return 0.0


def convert_to_numbers(J: Any) -> Any:
    """Return a matrix of CasADi's numbers, sparse where it is large."""
    if J.shape[0] <= MAX_DENSE_ROWS:
        return J.full()
    from scipy.sparse import csc_array

    pattern = J.sparsity()
    return csc_array((np.array(J.nonzeros()), np.array(pattern.row()), np.array(pattern.colind())), shape=J.shape)


def without_singular_entries(J: Any) -> Any:
    """Return a matrix, sparse or not, with zeros in the place of NaN and infinity."""
    if isinstance(J, np.ndarray):
        return np.where(np.isfinite(J), J, 0.0)
    J.data = np.where(np.isfinite(J.data), J.data, 0.0)
    return J


@dataclass(frozen=True)
class ConsistentPoint:
    """States and unknowns at which all rows vanish."""

    x: FloatArray
    w: FloatArray
    zero: float  # up to which a singular value of scaled rows may be zero: it is not exact where rows are redundant


class ConsistentPoints:
    """Points at which rows vanish; their functions are built once for all of them."""

    def __init__(
        self, form: SemiExplicit, motion: JetDerivatives, rows: Sequence[DifferentiatedRow], unknowns: Sequence[Unknown]
    ) -> None:
        self._form, self._motion = form, motion
        self._rows, self._unknowns = rows, unknowns
        self._nearest_start: list[ConsistentPoint | None] = []  # the result of the search, once it has run

    @cached_property
    def numbers(self) -> Rows:
        """All rows."""
        return Rows(self._form, self._motion, [row.value for row in self._rows], self._unknowns)

    @cached_property
    def _lower(self) -> Rows | None:
        """Rows that have a derivative among the rows; None without any."""
        has_rate = {(row.i, row.order - 1) for row in self._rows}
        lower = [row.value for row in self._rows if row.is_true and (row.i, row.order) in has_rate]
        return Rows(self._form, self._motion, lower, self._unknowns) if lower else None

    def find(self, moved: float = 0.0) -> ConsistentPoint | None:
        """Return a point near the start, or about ``moved`` sizes from it along the manifold; None without one."""
        if moved:
            base = self.find()
            return None if base is None else self._find_consistent_point(*self.numbers.displace(base, moved))
        if not self._nearest_start:
            self._nearest_start.append(self._find_consistent_point(self.numbers.x, self.numbers.w))
        return self._nearest_start[0]

    def _find_consistent_point(self, x: FloatArray, w: FloatArray) -> ConsistentPoint | None:
        slow = False
        # First the states, from rows that are differentiated further; then, with these, the unknowns in all rows.
        if self._lower is not None:
            if (solution := self._lower.consistent(x, w)) is not None:
                x, w, slow = solution
            if (solution := self.numbers.nearest(x, w, np.zeros(len(x)))) is not None:
                return ConsistentPoint(
                    *solution[:2], SINGULAR_POINT_ERROR if slow or solution[2] else REGULAR_POINT_ERROR
                )
        solution = self.numbers.consistent(x, w)
        return (
            None
            if solution is None
            else ConsistentPoint(*solution[:2], SINGULAR_POINT_ERROR if slow or solution[2] else REGULAR_POINT_ERROR)
        )


class Rows:
    """Rows r(x, w) with w the unknowns, at the start values of time, inputs and parameters."""

    def __init__(
        self, form: SemiExplicit, motion: JetDerivatives, rows: Sequence[SX], unknowns: Sequence[Unknown]
    ) -> None:
        graph, (u, inputs) = form.graph, motion.inputs()
        w = stack_column([motion.jet(j, s) for j, s in unknowns])
        column = stack_column(rows)
        absent = [key for key in motion.list_jets(column) if key not in set(unknowns)]
        # Derivatives beyond the unknowns drop out of the combinations that count: see fmilin.models.dae.deficient.
        if absent:
            column = ca.substitute(column, stack_column([motion.jet(*k) for k in absent]), ca.SX.zeros(len(absent)))
        arguments = [graph.x, w, graph.time, u, graph.p]
        n = graph.x.numel()
        slopes = ca.jacobian(column, ca.vertcat(graph.x, w))  # one differentiation is cheaper than two
        results = [column, ca.sparsify(slopes[:, :n]), ca.sparsify(slopes[:, n:])]
        self._function: Any = ca.Function("rows", arguments, results)
        self.count = int(self._function.n_instructions())
        self._arguments, self._column, self._u = arguments, column, u
        self._fixed_arguments = 0.0, inputs.starts, graph.values
        self.name = graph.name
        self.x = graph.states.starts
        self.w = np.array([motion.guess(j, s) for j, s in unknowns])
        self.sizes = graph.states.scales(self.x), np.array([motion.size(j) for j, _ in unknowns])
        self.fixed = np.isin(graph.states.names, list(graph.fixed))

    def values(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return r."""
        return np.asarray(self._function(x, w, *self._fixed_arguments)[0].full().ravel(), dtype=np.float64)

    @cached_property
    def _by_w(self) -> Any:
        """Function of dr/dw alone."""
        by_w = ca.sparsify(ca.jacobian(self._column, self._arguments[1]))
        return ca.Function("slopes", self._arguments, [by_w])

    def gradients(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dr/dx and dr/dw."""
        _, by_x, by_w = self._function(x, w, *self._fixed_arguments)
        return by_x.full(), by_w.full()

    def input_gradient(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return dr/du."""
        by_u = ca.Function("by_inputs", self._arguments, [ca.jacobian(self._column, self._u)])
        return np.asarray(by_u(x, w, *self._fixed_arguments).full(), dtype=np.float64)

    def matrix(self, x: FloatArray, w: FloatArray) -> Any:
        """Return dr/dw, sparse where it is large."""
        return convert_to_numbers(self._function(x, w, *self._fixed_arguments)[2])

    def matrix_without_rounding(self, x: FloatArray, w: FloatArray) -> Any:
        """Return dr/dw with zeros for entries that are rounding of their terms: no row of them may be scaled to 1."""
        # Bounds of rounding are computed for dense matrices.
        if self._function.size_out(2)[0] > MAX_DENSE_ROWS:
            return self.matrix(x, w)
        return matrix_without_rounding(self._by_w, x, w, *self._fixed_arguments)

    def displace(self, base: ConsistentPoint, moved: float) -> tuple[FloatArray, FloatArray]:
        """Return what is ``moved`` in a random direction along which no row changes to first order."""
        n, sizes = len(base.x), np.concatenate(self.sizes)
        J = np.hstack(self.gradients(base.x, base.w)) * sizes
        norms = np.linalg.norm(J, axis=1, keepdims=True)
        tangent = linalg.null_space(J / np.where(norms > 0, norms, 1.0), rcond=base.zero)
        step = tangent @ (tangent.T @ np.random.default_rng(7).uniform(-1, 1, len(sizes)))
        longest = np.abs(step).max(initial=0.0)
        step *= sizes * (moved / longest if longest > 0 else 0.0)
        return base.x + step[:n], base.w + step[n:]

    def _size(self, dw: FloatArray, w: FloatArray) -> float:
        return float(np.max(np.abs(dw) / np.maximum(np.abs(w), self.sizes[1]), initial=0.0))

    def consistent(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, bool] | None:
        """Return :meth:`nearest` with fixed states as they are, where that is possible."""
        ways = [np.where(self.fixed, 0.0, 1.0), np.ones(len(x))] if self.fixed.any() else [np.ones(len(x))]
        return next((solution for free in ways if (solution := self.nearest(x, w, free)) is not None), None)

    def nearest(self, x: FloatArray, w: FloatArray, free: FloatArray) -> tuple[FloatArray, FloatArray, bool] | None:
        """Return near (x, w) where rows vanish, x moved as ``free`` (N,) says, and whether slowly; None without."""
        n, sizes = len(x), np.concatenate((self.sizes[0] * free, UNKNOWN_WEIGHT * self.sizes[1]))
        previous, was_slow = np.inf, False
        for _ in range(ITERATIONS):
            r, J = self.values(x, w), np.hstack(self.gradients(x, w)) * sizes
            if not (np.isfinite(J).all() and np.isfinite(r).all()):
                return None
            norms = np.linalg.norm(J, axis=1)
            norms = np.where(norms > 0, norms, 1.0)
            step = sizes * np.linalg.lstsq(J / norms[:, None], -r / norms, rcond=DEPENDENT_ROW_TOLERANCE)[0]
            size = float(np.max(np.abs(step[:n]) / self.sizes[0], initial=0.0))
            step *= min(1.0, MAX_STEP_SIZE / size) if size > 0 else 1.0
            x, w = x + step[:n], w + step[n:]
            last = max(size, float(np.max(np.abs(step[n:]) / np.maximum(np.abs(w), self.sizes[1]), initial=0.0)))
            if last <= NEWTON_STEP_TOLERANCE or previous / 2 < last <= STALLED_STEP_TOLERANCE:
                residual = np.abs(self.values(x, w)) / norms
                slow = QUADRATIC_CONVERGENCE_RATIO * previous < last and not last <= NEWTON_STEP_TOLERANCE
                return (x, w, slow or was_slow) if np.max(residual, initial=0.0) <= STALLED_STEP_TOLERANCE else None
            was_slow = QUADRATIC_CONVERGENCE_RATIO * previous < last <= QUADRATIC_CONVERGENCE_SIZE
            previous = last
        return None

    def solve_from_both_sides(self, equations: Sequence[str]) -> FloatArray | None:
        """Return :meth:`solved` from both sides of a guess where derivatives vanish, as those of q |q| do at q = 0."""
        J, sizes, solutions = self.matrix(self.x, self.w), self.sizes[1], list[FloatArray]()
        # No derivatives vanish without a number, as those of sqrt at 0: the error of the first search says more.
        if not (isinstance(J, np.ndarray) and J.size and np.isfinite(J).all()):
            return None
        missing = linalg.null_space(J * sizes, rcond=DEPENDENT_ROW_TOLERANCE).sum(axis=1)
        for side in (LATERAL_START_SIZE, -LATERAL_START_SIZE) if missing.any() else ():
            with suppress(NumericalError):
                solutions.append(self.solve_unknowns(equations, self.w + side * sizes * missing))
        if len(solutions) > 1 and self._size(solutions[1] - solutions[0], solutions[0]) > STALLED_STEP_TOLERANCE:
            raise NumericalError(
                f"The equations of '{self.name}' have two solutions near the start values of algebraic variables, and "
                "the derivatives do not decide between them: give start values nearer to one (start=...)."
            )
        return solutions[0] if solutions else None

    def solve_unknowns(self, equations: Sequence[str], w: FloatArray | None = None) -> FloatArray:
        """Return the unknowns at the start values of the states, from as many rows; NumericalError without a solution.

        Newton's method stays near the path that leads from the guess: :func:`fmilin.numerics.newton.follow_zeros`.
        """
        system = StartSystem(self, self.x)
        result = follow_zeros(system, (self.w if w is None else w)[None], START_RULES)
        if result.has_converged[0]:
            return np.asarray(result.z[0])
        r = result.r[0]
        worst = int(np.argmax(np.nan_to_num(np.abs(r), nan=np.inf)))
        raise NumericalError(
            f"No values of the algebraic variables of '{self.name}' were found at the start: '{equations[worst]}' is "
            f"left with a residual of {abs(r[worst]):.3g}. Give start values near the solution, of states and "
            "algebraic variables (start=...), or check that a solution exists."
        )


class StartSystem:
    """The rows at held states, for Newton's method: sparse factors, and steps in sizes of the unknowns."""

    def __init__(self, rows: Rows, x: FloatArray) -> None:
        self._rows, self._x = rows, x
        self._factors: Factors | None = None
        self._sizes = rows.sizes[1]

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the unknowns: they have no bounds."""
        return z

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals (1, m)."""
        return np.array([self._rows.values(self._x, row) for row in z]).reshape(len(z), -1)

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Factorize the Jacobian; False where it is singular."""
        self._factors = None
        for row in z:
            with suppress(NumericalError):
                # sqrt(x^2 + y^2) has no derivative where machines and phasors start, at zero: its argument is kept.
                J = without_singular_entries(self._rows.matrix(self._x, row))
                self._factors = regular_factors(J, "the equations", estimate=False)
            self._sizes = np.maximum(np.abs(row), self._rows.sizes[1])
        return np.full(len(points), self._factors is not None)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the corrections (1, n); NaN without factors."""
        if self._factors is None:
            return np.full((len(r), len(self._sizes)), np.nan)
        return np.array([-self._factors.solve(row) for row in r]).reshape(len(r), len(self._sizes))

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest component of each step, in sizes of the unknowns."""
        return np.asarray(np.max(np.abs(step) / self._sizes, axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where the step that would follow is short."""
        return np.asarray(self.measure(points, self.correct(points, r)) <= STALLED_STEP_TOLERANCE)
