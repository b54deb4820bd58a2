"""Numeric Lagrange's equations as a Model: values, exact directional derivatives, batches, the form taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.errors import NumericalError, UsageError
from fmilin.model.capabilities import HasSparseEquations, HasSparseForm
from fmilin.model.equation_forms import SecondOrderForm, SparseEquations
from fmilin.model.interface import ModelInfo
from fmilin.models.native_engine import InputSelection, NativeEngine, Quantity, Values, list_available_quantities
from fmilin.models.native_model import NativeModel
from fmilin.models.sparse.manifold import SparseManifold
from fmilin.models.sparse.numeric_equations import NumericEquations, Pattern
from fmilin.numerics.factors import MAX_DENSE_ROWS, regular_factors
from fmilin.signals import FloatArray, Signal, Signals

MIN_SPARSE_SIZE = 60  # coordinates and multipliers from which sparse matrices are quicker than one evaluation a column
MAX_DENSE_COORDINATES = 2000  # coordinates up to which matrices of all states are made dense


@dataclass(frozen=True)
class SolvedPoint:
    """One point, solved: positions, velocities, accelerations and multipliers."""

    q: FloatArray
    v: FloatArray
    a: FloatArray
    multipliers: FloatArray
    solve: Callable[[FloatArray], FloatArray]  # (v'; lambda) for a right-hand side of shape (n + m,) or (n + m, k)


class NumericModel(NativeModel, HasSparseForm, HasSparseEquations):
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

    def sparse_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm:
        """Return the equations of motion taken apart at a point, in sparse matrices and without outputs."""
        from scipy.sparse import csc_array

        form = self.engine.second_order_form(self._selection, t, x, self._full(u), dense=False)
        inputs: Any = csc_array(form.force_inputs[:, self._input_indices])
        return replace(form, force_inputs=inputs)

    def sparse_equations(self) -> SparseEquations | None:
        """Return the equations in sparse matrices, of a model that is not small and has its own constraints."""
        is_small = self.equations.n + self.equations.m < MIN_SPARSE_SIZE
        return self._pointwise if self._has_own_constraints and not is_small else None

    @cached_property
    def _pointwise(self) -> NumericSparseEquations:
        return NumericSparseEquations(self.engine, self._input_selection)

    # Its own constraints need no expressions.

    def _require_right(self) -> None:
        if not self._has_own_constraints:
            super()._require_right()

    def _list_observed_names(self) -> Sequence[str]:
        return () if self._has_own_constraints else super()._list_observed_names()

    def _residuals(self, t: float | FloatArray, x: FloatArray, u: FloatArray, z: FloatArray) -> FloatArray:
        if not self._has_own_constraints:
            return super()._residuals(t, x, u, z)
        eq, q = self.equations, x[..., : self.equations.n]
        return np.array([eq.residuals(row) for row in q]) if x.ndim > 1 else eq.residuals(q)

    def _differentiate_residuals(
        self, point: tuple[float, FloatArray, FloatArray], dx: FloatArray, du: FloatArray, dz: FloatArray
    ) -> FloatArray:
        if not self._has_own_constraints:
            return super()._differentiate_residuals(point, dx, du, dz)
        eq, n = self.equations, self.equations.n
        slopes: FloatArray = eq.pattern_G.sparse(eq.jacobian(point[1][:n])) @ dx[:n]
        return slopes


@dataclass(frozen=True, slots=True)
class SparseQuantities:
    """Outputs and observed quantities: entries of (q, v, a, lambda, u), or what the equations compute."""

    outputs: Sequence[Quantity]
    observed: Sequence[Quantity]


class _SparseEngine(NativeEngine[SparseQuantities]):
    """Lagrange's equations as numbers, solved by sparse factors."""

    batches = True

    def __init__(self, equations: NumericEquations) -> None:
        self.equations = eq = equations
        n, m, G = eq.n, eq.m, eq.pattern_G
        self.saddle = Pattern.from_blocks([(eq.pattern_M, 0, 0), (G.T, 0, n), (G, n, 0)], (n + m, n + m))
        self._single = np.flatnonzero(np.bincount(G.rows, minlength=m)[G.rows] == 1)
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
        return list_available_quantities(self.states, self.inputs, self._declared.values(), multipliers)

    def quantity(self, name: str) -> Quantity | None:
        """Return a quantity; what is declared needs no names of states."""
        return self._declared.get(name) or super().quantity(name)

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> SparseQuantities:
        """Return the quantities as they are: there is nothing to prepare."""
        return SparseQuantities(outputs, observed)

    def solve_point(self, x: FloatArray, u: FloatArray) -> SolvedPoint:
        """Return a point solved for accelerations and multipliers, and what solves for their derivatives."""
        eq, n = self.equations, self.equations.n
        q, v = x[:n], x[n:]
        solve = self._solver(eq.mass(q), eq.jacobian(q))
        w = solve(self.right_hand_side(x, u))
        if not np.isfinite(w).all():
            raise NumericalError(
                "The accelerations are not finite at this point. Choose another: "
                "fl.operating_point(model, {'NAME': VALUE})."
            )
        return SolvedPoint(q, v, w[:n], w[n:], solve)

    def saddle_values(self, mass: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Return the values of [[M, G'], [G, 0]] on ``saddle``."""
        return np.concatenate((mass, jacobian, jacobian))

    def right_hand_side(self, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (f, -b), shape (n + m,), with all inputs."""
        eq, q, v = self.equations, x[: self.equations.n], x[self.equations.n :]
        return np.concatenate((eq.forces(q, v) + eq.input_matrix @ u, -eq.bend(q, v)))

    def _solver(self, mass: FloatArray, jacobian: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Return what solves [[M, G'], [G, 0]] w = b; what a constraint determines alone gets a = 0, not 1e-17."""
        values, is_small = self.saddle_values(mass, jacobian), self.saddle.shape[0] <= MAX_DENSE_ROWS
        W = self.saddle.dense(values) if is_small else self.saddle.sparse(values)
        factors = regular_factors(W, f"The equations of '{self.info.name}'", estimate=is_small)
        G, entries = self.equations.pattern_G, jacobian[self._single]

        def solve(right: FloatArray) -> FloatArray:
            w = factors.solve(right)
            w[G.columns[self._single]] = (right[self.equations.n + G.rows[self._single]].T / entries).T
            return w

        return solve

    def acceleration_slopes(self, s: SolvedPoint) -> tuple[FloatArray, FloatArray]:
        """Return the values of gamma_q = d(G a + b)/dq, a held, and of gamma_v = db/dv, on ``pattern_G``."""
        eq = self.equations
        return eq.rate_slopes(s.q, s.a) + eq.bend_slopes(s.q, s.v), 2.0 * eq.rate_slopes(s.q, s.v)

    def require_dense(self, what: str) -> None:
        """Reject what would need dense matrices of too many coordinates."""
        if self.equations.n > MAX_DENSE_COORDINATES:
            raise UsageError(
                f"{what} of '{self.info.name}' would be a full matrix of {2 * self.equations.n} states. Compute a few "
                "eigenvalues instead, with fmilin.formulations.sparse."
            )

    def evaluate(self, selection: SparseQuantities, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates, outputs and observed quantities at a point."""
        s = self.solve_point(x, u)
        rates = np.concatenate((s.v, s.a))
        parts = {"state": x, "rate": rates, "multiplier": s.multipliers, "input": u}
        outputs = np.array([self._value(quantity, s, parts) for quantity in selection.outputs])
        z = np.array([self._value(quantity, s, parts) for quantity in selection.observed])
        return rates, outputs, z

    def _value(self, quantity: Quantity, s: SolvedPoint, parts: Mapping[str, FloatArray]) -> float:
        match quantity.source:
            case (kind, i):
                return float(parts[kind][i])
        return self.equations.output(quantity.source, s.q, s.v).value

    def differentiate(
        self, selection: SparseQuantities, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values:
        """Return the exact derivatives along the columns of dx (N, k) and du (nu, k).

        With e = f - M a - G' lambda at held a and lambda, differentiating the equations of motion,

            [[M, G'], [G, 0]] (da; dlambda) = (e_q dq + e_v dv + B du; -((G a)_q + b_q) dq - b_v dv).
        """
        eq, n = self.equations, self.equations.n
        s = self.solve_point(x, u)
        dq, dv = dx[:n], dx[n:]
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        upper = eq.pattern_e_q.sparse(e.e_q) @ dq + eq.pattern_e_v.sparse(e.e_v) @ dv + eq.input_matrix @ du
        gamma_q, gamma_v = (eq.pattern_G.sparse(values) for values in self.acceleration_slopes(s))
        w = s.solve(np.vstack((upper, -(gamma_q @ dq + gamma_v @ dv))))
        moved = np.vstack((dx, du, w))
        outputs = self._gradient(selection.outputs, s, len(u)) @ moved
        z = self._gradient(selection.observed, s, len(u)) @ moved
        return np.vstack((dv, w[:n])), outputs, z

    def second_order_form(
        self, selection: SparseQuantities, t: float, x: FloatArray, u: FloatArray, *, dense: bool = True
    ) -> SecondOrderForm:
        """Return the equations taken apart as dense matrices, or as sparse ones without outputs."""
        from scipy import sparse

        eq, n, m, k = self.equations, self.equations.n, self.equations.m, len(u)
        made, joined = (Pattern.dense, np.hstack) if dense else (Pattern.sparse, partial(sparse.hstack, format="csc"))
        if dense:
            self.require_dense("The dense form of the equations")
        s = self.solve_point(x, u)
        e = eq.slopes(s.q, s.v, s.a, s.multipliers)
        gradient = self._gradient(selection.outputs if dense else (), s, k).toarray()
        by_x, by_u, by_w = np.split(gradient, [2 * n, 2 * n + k], axis=1)
        return SecondOrderForm(
            positions=np.arange(n),
            velocities=np.arange(n, 2 * n),
            M=made(eq.pattern_M, eq.mass(s.q)),
            G=made(eq.pattern_G, eq.jacobian(s.q)),
            multipliers=s.multipliers,
            accelerations=s.a,
            force_states=joined((made(eq.pattern_e_q, e.e_q), made(eq.pattern_e_v, e.e_v))),
            force_inputs=eq.input_matrix,
            output_states=by_x,
            output_inputs=by_u,
            output_unknowns=by_w,
            bend=lambda direction: eq.bend(s.q, direction),
            constraint_states=joined([made(eq.pattern_G, values) for values in self.acceleration_slopes(s)]),
            constraint_inputs=np.zeros((m, k)),
        )

    def _gradient(self, quantities: Sequence[Quantity], s: SolvedPoint, nu: int) -> Any:
        """Return the derivatives of quantities by (x, u, v', lambda), a sparse array of shape (k, 3n + nu + m)."""
        from scipy.sparse import lil_array

        n, m = len(s.q), len(s.multipliers)
        first = {"state": 0, "input": 2 * n, "multiplier": 3 * n + nu}
        slopes = lil_array((len(quantities), 3 * n + nu + m))
        for row, quantity in enumerate(quantities):
            match quantity.source:
                case ("rate", i):  # the rate of a coordinate is its velocity
                    slopes[row, n + i if i < n else n + nu + i] = 1.0
                case (kind, i):
                    slopes[row, first[kind] + i] = 1.0
                case name:
                    out = self.equations.output(name, s.q, s.v)
                    slopes[row, : 2 * n] = np.concatenate((out.by_q, out.by_v))
        return slopes.tocsr()


class NumericSparseEquations(SparseManifold):
    """:class:`~fmilin.model.equation_forms.SparseEquations` of :class:`~fmilin.models.sparse.NumericEquations`."""

    def __init__(self, engine: _SparseEngine, inputs: InputSelection) -> None:
        super().__init__(engine.states)
        self._engine, self._equations, self._inputs = engine, engine.equations, inputs

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Any, FloatArray]:
        """Return W and r."""
        q = x[: self.n]
        W = self._engine.saddle.sparse(self._engine.saddle_values(self._equations.mass(q), self._equations.jacobian(q)))
        return W, self._engine.right_hand_side(x, self._inputs.complete(u))

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
        forces = sparse.csc_array(equations.input_matrix[:, self._inputs.indices])
        nothing = sparse.csc_array((equations.m, len(self._inputs.indices)))
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
