"""Numeric Lagrange's equations as a Model: values, exact directional derivatives, batches, the form taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.model.constraints.declared import Constraint, Constraints
from fmilin.model.interface import ModelInfo, SecondOrderForm
from fmilin.model.sparse import SparseForm
from fmilin.native.native_engine import NativeEngine, Quantity, QuantityEvaluator, offered
from fmilin.native.native_model import NativeModel
from fmilin.native.sparse.equations import NumericEquations, Pattern
from fmilin.numerics.saddle_point.factors import Factors
from fmilin.numerics.saddle_point.sparse import LARGEST_DENSE, regular_factors


class SaddlePoint:
    """[[M, G'], [G, 0]] (v'; lambda) = (b1; b2), M (n, n) and G (m, n), for one pattern and any number of points."""

    def __init__(self, M: Pattern, G: Pattern, subject: str) -> None:
        n, m = self._n, _ = M.shape[0], G.shape[0]
        single = np.flatnonzero(np.bincount(G.rows, minlength=m)[G.rows] == 1)
        self._single = single, G.rows[single], G.columns[single]
        self._subject = subject
        self.pattern = Pattern.joined([(M, 0, 0), (G.T, 0, n), (G, n, 0)], (n + m, n + m))

    def factorized(self, mass: FloatArray, jacobian: FloatArray) -> SaddleFactors:
        """Return the factors at one point, from the values of M and G."""
        values = np.concatenate((mass, jacobian, jacobian))
        is_small = self.pattern.shape[0] <= LARGEST_DENSE
        W = self.pattern.dense(values) if is_small else self.pattern.sparse(values)
        positions, rows, columns = self._single
        return SaddleFactors(
            regular_factors(W, self._subject, estimate=is_small), columns, self._n + rows, jacobian[positions]
        )


@dataclass(frozen=True)
class SaddleFactors:
    """The factorized matrix; a coordinate held by a constraint gets a = 0, not 1e-17: rounding is no motion."""

    factors: Factors
    # columns, rows: coordinates that a constraint determines alone, and the places of these constraints in the
    # right-hand side
    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    entries: FloatArray  # their entries of G

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (v'; lambda) for a right-hand side of shape (n + m,) or (n + m, k)."""
        w = self.factors.solve(right)
        w[self.columns] = (right[self.rows].T / self.entries).T
        return w


LARGEST_FORM = 2000  # coordinates up to which matrices of all states are made dense


@dataclass(frozen=True)
class SolvedPoint:
    """One point, solved: positions, velocities, accelerations and multipliers."""

    q: FloatArray
    v: FloatArray
    a: FloatArray
    multipliers: FloatArray


class NumericModel(NativeModel):
    """A Model with states (q, v) of numeric equations; names and constraints are made late: 80,000 take long."""

    engine: _SparseEngine

    def __init__(self, equations: NumericEquations) -> None:
        super().__init__(_SparseEngine(equations))

    @property
    def equations(self) -> NumericEquations:
        """The equations."""
        return self.engine.equations

    @cached_property
    def constraints(self) -> Constraints:  # type: ignore[override]
        """The equations' own, or those that were chosen instead."""
        self.engine.require_dense("What the general procedures need")
        return super().constraints

    sparse = True

    def sparse_form(self, t: float, x: FloatArray, u: FloatArray) -> SparseForm:
        """Return the equations of motion taken apart at a point."""
        from scipy.sparse import csc_array

        del t
        eq, s = self.equations, self.engine.solved(x, self._full(u))[0]
        e, (bend_q, bend_v) = eq.slopes(s.q, s.v, s.a, s.multipliers), self.engine.acceleration_slopes(s)
        return SparseForm(
            residuals=eq.residuals(s.q),
            accelerations=s.a,
            multipliers=s.multipliers,
            M=eq.pattern_M.sparse(eq.mass(s.q)),
            G=eq.pattern_G.sparse(eq.jacobian(s.q)),
            force_positions=eq.pattern_e_q.sparse(e.e_q),
            force_velocities=eq.pattern_e_v.sparse(e.e_v),
            force_inputs=csc_array(eq.input_matrix[:, self._input_indices]),
            rate_positions=eq.pattern_G.sparse(eq.rate_slopes(s.q, s.v)),
            bend_positions=eq.pattern_G.sparse(bend_q),
            bend_velocities=eq.pattern_G.sparse(bend_v),
        )

    # -- its own constraints need no expressions ---------------------------------------------------

    def _require_right(self) -> None:
        if not self._has_own_constraints:
            super()._require_right()

    def _observed_names(self) -> Sequence[str]:
        return () if self._has_own_constraints else super()._observed_names()

    def _residuals(self, t: float, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        if not self._has_own_constraints:
            return super()._residuals(t, x, u, z)
        eq, q = self.equations, x[..., : self.equations.n]
        return np.array([eq.residuals(row) for row in q]) if x.ndim > 1 else eq.residuals(q)

    def _residual_slopes(
        self, point: tuple[float, FloatArray, FloatArray], dx: FloatArray, du: FloatArray, dz: FloatArray
    ) -> FloatArray:
        if not self._has_own_constraints:
            return super()._residual_slopes(point, dx, du, dz)
        eq, n = self.equations, self.equations.n
        slopes: FloatArray = eq.pattern_G.sparse(eq.jacobian(point[1][:n])) @ dx[:n]
        return slopes


class _SparseEngine(NativeEngine):
    """Lagrange's equations as numbers, solved by sparse factors."""

    batches = True

    def __init__(self, equations: NumericEquations) -> None:
        self.equations = eq = equations
        self._saddle = SaddlePoint(eq.pattern_M, eq.pattern_G, f"The equations of '{eq.name}'")
        self.info, self.inputs = ModelInfo(eq.name), Signals(eq.inputs)
        self.outputs, self.independent, self.parameters = tuple(eq.outputs), eq.independent, eq.parameters
        self._declared = {n: Quantity(signal, n) for n, signal in {**eq.further, **eq.outputs}.items()}

    @cached_property
    def states(self) -> Signals:  # type: ignore[override]  # made when first asked for
        """The coordinates, then their velocities."""
        return Signals([*self.equations.coordinates(), *self.equations.velocities()])

    @cached_property
    def constraints(self) -> Sequence[Constraint]:  # type: ignore[override]
        """The equations' own."""
        return tuple(self.equations.declared())

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """Outputs, states, inputs, rates, further quantities, and the multipliers ``lambda[k]``."""
        multipliers = (Quantity(Signal(f"lambda[{k + 1}]"), ("multiplier", k)) for k in range(self.equations.m))
        return offered(self.states, self.inputs, self._declared.values(), multipliers)

    def quantity(self, name: str) -> Quantity | None:
        """Return a quantity; what is declared needs no names of states."""
        return self._declared.get(name) or super().quantity(name)

    def evaluator(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> QuantityEvaluator:
        """Return what computes these quantities."""
        return _SparseEvaluator(self, outputs, observed)

    def solved(self, x: FloatArray, u: FloatArray) -> tuple[SolvedPoint, SaddleFactors]:
        """Return a point solved for accelerations and multipliers, and what solves for their slopes."""
        eq, n = self.equations, self.equations.n
        q, v = x[:n], x[n:]
        factors = self._saddle.factorized(eq.mass(q), eq.jacobian(q))
        w = factors.solve(np.concatenate((eq.forces(q, v) + eq.input_matrix @ u, -eq.bend(q, v))))
        if not np.isfinite(w).all():
            raise NumericalError("The accelerations are no numbers at this point: choose another with --set.")
        return SolvedPoint(q, v, w[:n], w[n:]), factors

    def acceleration_slopes(self, s: SolvedPoint) -> tuple[FloatArray, FloatArray]:
        """Return the values of gamma_q = d(G a + b)/dq, a held, and of gamma_v = db/dv, on ``pattern_G``."""
        eq = self.equations
        return eq.rate_slopes(s.q, s.a) + eq.bend_slopes(s.q, s.v), 2.0 * eq.rate_slopes(s.q, s.v)

    def require_dense(self, what: str) -> None:
        """Refuse what would need dense matrices of too many coordinates."""
        if self.equations.n > LARGEST_FORM:
            raise UsageError(
                f"{what} of '{self.info.name}' would be a full matrix of {2 * self.equations.n} states. Ask for "
                "a few eigenvalues instead, with 'fmilin spectrum' or fmilin.formulations.sparse: all stays sparse."
            )


class _SparseEvaluator(QuantityEvaluator):
    """Quantities at a solved point: entries of (q, v, a, lambda, u), or what the equations compute."""

    def __init__(self, engine: _SparseEngine, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        self._engine, self._outputs, self._observed = engine, outputs, observed

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rates, outputs and observed quantities at a point, or at many one after the other."""
        if x.ndim == 2:
            visits = [
                self.visit(t, row, entry)
                for row, entry in zip(x, np.broadcast_to(u, (len(x), u.shape[-1])), strict=True)
            ]
            rates, outputs, z = (np.array(part) for part in zip(*visits, strict=True))
            return rates, outputs, z
        s = self._engine.solved(x, u)[0]
        rates = np.concatenate((s.v, s.a))
        parts = {"state": x, "rate": rates, "multiplier": s.multipliers, "input": u}
        outputs, z = (np.array([self._value(q, s, parts) for q in some]) for some in (self._outputs, self._observed))
        return rates, outputs, z

    def _value(self, quantity: Quantity, s: SolvedPoint, parts: Mapping[str, FloatArray]) -> float:
        match quantity.source:
            case (kind, i):
                return float(parts[kind][i])
        return self._engine.equations.output(quantity.source, s.q, s.v).value

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the exact derivatives along the columns of dx (N, k) and du (nu, k).

        With e = f - M a - G' lambda at held a and lambda, differentiating the equations of motion,

            [[M, G'], [G, 0]] (da; dlambda) = (e_q dq + e_v dv + B du; -((G a)_q + b_q) dq - b_v dv).
        """
        del t
        eq, n = self._engine.equations, self._engine.equations.n
        s, factors = self._engine.solved(x, u)
        dq, dv = dx[:n], dx[n:]
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        upper = eq.pattern_e_q.sparse(e.e_q) @ dq + eq.pattern_e_v.sparse(e.e_v) @ dv + eq.input_matrix @ du
        gamma_q, gamma_v = (eq.pattern_G.sparse(values) for values in self._engine.acceleration_slopes(s))
        lower = gamma_q @ dq + gamma_v @ dv
        w = factors.solve(np.vstack((upper, -lower)))
        moved = _Directions(dx, du, w[:n], w[n:])
        return np.vstack((dv, w[:n])), self._slopes(self._outputs, s, moved), self._slopes(self._observed, s, moved)

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm:
        """Return the equations taken apart as dense matrices."""
        del t
        eq, n, m, k = self._engine.equations, self._engine.equations.n, self._engine.equations.m, len(u)
        self._engine.require_dense("The dense form of the equations")
        s = self._engine.solved(x, u)[0]
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        sizes = (2 * n, k, n, m)

        def along(*groups: int) -> FloatArray:
            """Return the slopes of the outputs along each entry of some of (x, u, v', lambda)."""
            count = sum(sizes[g] for g in groups)
            moved, first = [np.zeros((size, count)) for size in sizes], 0
            for g in groups:
                np.fill_diagonal(moved[g][:, first:], 1.0)
                first += sizes[g]
            return self._slopes(self._outputs, s, _Directions(*moved))

        return SecondOrderForm(
            positions=np.arange(n),
            velocities=np.arange(n, 2 * n),
            M=eq.pattern_M.dense(eq.mass(s.q)),
            G=eq.pattern_G.dense(eq.jacobian(s.q)),
            multipliers=s.multipliers,
            accelerations=s.a,
            force_states=np.hstack((eq.pattern_e_q.dense(e.e_q), eq.pattern_e_v.dense(e.e_v))),
            force_inputs=eq.input_matrix,
            output_states=along(0),
            output_inputs=along(1),
            output_unknowns=along(2, 3),
            bend=lambda direction: eq.bend(s.q, direction),
            constraint_states=np.hstack([eq.pattern_G.dense(values) for values in self._engine.acceleration_slopes(s)]),
            constraint_inputs=np.zeros((m, k)),
        )

    def _slopes(self, quantities: Sequence[Quantity], s: SolvedPoint, moved: _Directions) -> FloatArray:
        """Return one row per quantity, shape (len(quantities), k)."""
        rows = [self._slope(quantity, s, moved) for quantity in quantities]
        return np.array(rows, dtype=np.float64).reshape(len(quantities), moved.a.shape[1])

    def _slope(self, quantity: Quantity, s: SolvedPoint, moved: _Directions) -> FloatArray:
        """Return the slope of a quantity along every direction, shape (k,)."""
        n = len(s.q)
        match quantity.source:
            case ("rate", i) if i < n:  # the rate of a coordinate is its velocity
                row: FloatArray = moved.x[n + i]
            case ("rate", i):
                row = moved.a[i - n]
            case (kind, i):
                row = {"state": moved.x, "input": moved.u, "multiplier": moved.multipliers}[kind][i]
            case name:
                out = self._engine.equations.output(name, s.q, s.v)
                row = out.by_q @ moved.x[:n] + out.by_v @ moved.x[n:]
        return row


@dataclass(frozen=True)
class _Directions:
    """Directions, in columns: of the states, the inputs, the accelerations and the multipliers."""

    x: FloatArray
    u: FloatArray
    a: FloatArray
    multipliers: FloatArray
