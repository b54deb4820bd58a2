"""The general form as functions: constraints, rates, the gradients of all equations at a point; and a check of them.

The order at a point is that of the equations: q' from the kinematic ones, then u' and lambda from f_a and f_2 + f_3 +
f_4, then every gradient with these values held. One graph of CasADi holds the blocks of the equations

    f_0 + f_1        = K q' + k                    n rows
    (f_a, f_2 + ...) = W (u'; lambda) + b          o + k rows
    (f_c, f_v)                                     l + m rows

and the gradients of all rows, with the columns (t, q, q', u, r). Constraints need not be derivatives of each other
letter by letter: where f_c = 0 and f_v = 0 the motion must keep f_c, and the accelerations that f_a allows must keep
f_v, which is tested at points near the start.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.expression_graph import Graph
from fmilin.codegen.graph_evaluator import Backend, Evaluator
from fmilin.errors import ConstraintError, join_first
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.models.declaration import Symbol, der
from fmilin.models.kane.kane_form import KaneForm, LinearRow
from fmilin.numerics.factors import DenseFactors, require_regular
from fmilin.signals import FloatArray
from fmilin.tolerances import INVARIANT_TOLERANCE

SX = Any  # casadi.SX: casadi ships no types


def _gradients(rows: SX, columns: SX) -> SX:
    return ca.sparsify(ca.jacobian(rows, columns))


@dataclass(frozen=True, slots=True)
class Numerics:
    """How the numbers are computed."""

    # CasADi's virtual machine, C, or by default the one at first and the other as soon as that pays
    backend: Backend = field(default_factory=Backend)


@dataclass(frozen=True)
class Expansion:
    """The equations at k points, with the gradients of the rows of (f_c, f_v, f_0 + f_1, f_a, f_2 + f_3 + f_4)."""

    rates: FloatArray  # (k, n + o), q' and u'
    multipliers: FloatArray  # shape (k, multipliers)
    J: FloatArray  # shape (k, l + m + n + o + multipliers, 1 + 2 n + o + s)
    solve: Callable[[FloatArray], FloatArray]  # M~^-1 b for b (k, n + o + multipliers, columns)


class KaneFunctions:
    """The functions of a form, of one graph; their ``arguments`` are points (t, q, u, r, p) or batches of them."""

    def __init__(self, form: KaneForm, numerics: Numerics) -> None:
        self.form, self.numerics, self._graph = form, numerics, Graph()
        self.symbols = (form.time, *form.states, *form.inputs, *form.parameters)
        unknowns, n, o = (*form.u_dot, *form.multipliers), len(form.q), len(form.u)
        self._arguments, self._q_dot, self._w = map(self._graph.declare, (self.symbols, form.q_dot, unknowns))
        u, r = self._arguments[1 + n : 1 + n + o], self._arguments[1 + n + o : 1 + n + o + len(form.inputs)]
        self._columns = ca.vertcat(self._arguments[: 1 + n], self._q_dot, u, r)
        V, v = self._separate_coefficients(form.velocity, form.u)
        blocks = [
            ca.vertcat(self._graph.column(form.f_c), V @ u + v),
            *self._separate_coefficients(form.kinematics, form.q_dot),
            *self._separate_coefficients((*form.acceleration, *form.dynamics), unknowns),
        ]
        self._f_c_and_f_v, self._K, self._k, self._W, self._b = ca.cse(blocks)
        explicit = self._K.is_constant() and np.array_equal(np.array(ca.DM(self._K)), np.eye(n))
        self._kinematics_are_explicit = bool(explicit)

    def _separate_coefficients(self, rows: Sequence[LinearRow], symbols: Sequence[Symbol]) -> tuple[SX, SX]:
        """Return the coefficients of ``symbols`` in the rows, and the rest of the rows."""
        columns = {w: j for j, w in enumerate(symbols)}
        coefficients = {
            (i, columns[w]): c for i, row in enumerate(rows) for w, c in row.coefficients.items() if w in columns
        }
        matrix = self._graph.matrix(coefficients, (len(rows), len(symbols)))
        return matrix, self._graph.column([row.rest for row in rows])

    def at(self, arguments: FloatArray) -> Expansion:
        """Return the expansion at k points, shape (k, known)."""
        form, n, o = self.form, len(self.form.q), len(self.form.u)
        H, _ = _stacks(self._constraints, arguments)
        K, k = _stacks(self._kinematics, arguments)
        M_qq = None if self._kinematics_are_explicit else _factors(K, form.q_dot, "kinematic")
        q_dot = (-k if M_qq is None else M_qq.solve(-k))[:, :, 0]
        W, b = _stacks(self._dynamics, arguments, q_dot)
        M_uu = _factors(W, (*form.u_dot, *form.multipliers), "dynamic")
        w = M_uu.solve(-b)[:, :, 0]
        (J,) = _stacks(self._gradients, arguments, q_dot, w)
        lower = J[:, n:, 1 + n : 1 + 2 * n]  # [M~uqc; M~uqd]

        def solve(right: FloatArray) -> FloatArray:
            x = right[:, :n] if M_qq is None else M_qq.solve(right[:, :n])
            return np.concatenate((x, M_uu.solve(right[:, n:] - lower @ x)), axis=1)

        rates = np.concatenate((q_dot, w[:, :o]), axis=1)
        J = np.concatenate((H, J), axis=1)
        return Expansion(rates, w[:, o:], J, solve)

    def constraints(self, arguments: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f_c and f_v, shape (l + m,), and their gradients for (t, q, q', u, r), at one point."""
        H, values = self._constraints(arguments)
        return values[:, 0], H

    def coordinate_rates(self, arguments: FloatArray) -> FloatArray:
        """Return q' at one point, shape (n,), NaN where the kinematic equations do not determine it."""
        K, k = self._kinematics(arguments)
        factors = DenseFactors(K)
        return np.full(len(k), np.nan) if factors.is_singular else -factors.solve(k[:, 0])

    def acceleration_constraints(self, arguments: FloatArray, q_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return M~uuc, shape (m, o), and the rest of f_a, shape (m,), at one point with its q'."""
        m, o = len(self.form.acceleration), len(self.form.u)
        W, b = self._dynamics(arguments, q_dot)
        return W[:m, :o], b[:m, 0]

    @cached_property
    def _constraints(self) -> Evaluator:
        rows = self._f_c_and_f_v
        return self._evaluator([self._arguments], _gradients(rows, self._columns), rows)

    @cached_property
    def _kinematics(self) -> Evaluator:
        return self._evaluator([self._arguments], self._K, self._k)

    @cached_property
    def _dynamics(self) -> Evaluator:
        return self._evaluator([self._arguments, self._q_dot], self._W, self._b)

    @cached_property
    def _gradients(self) -> Evaluator:
        rows = ca.vertcat(self._K @ self._q_dot + self._k, self._W @ self._w + self._b)
        return self._evaluator([self._arguments, self._q_dot, self._w], _gradients(rows, self._columns))

    def _evaluator(self, arguments: list[Any], *results: Any) -> Evaluator:
        return Evaluator(arguments, results, self.numerics.backend)


def _stacks(function: Evaluator, *arguments: FloatArray) -> list[FloatArray]:
    """Return the matrices at all points, with the points along the first axis."""
    if len(arguments[0]) == 1:
        return [matrix[None] for matrix in function(*(a[0] for a in arguments))]
    return function.at_points(*arguments)


def _factors(W: FloatArray, symbols: Sequence[Symbol], which: str) -> DenseFactors:
    factors = DenseFactors(W)
    require_regular(factors, f"The {which} equations", symbols)
    return factors


SAMPLES = 4
RADIUS = 0.1  # how far from the start, in sizes of the states

ITERATIONS = 30


def check_constraints(functions: KaneFunctions, system: SymbolicSystem) -> None:
    """Raise when f_c, f_v and f_a contradict each other; say nothing where no consistent point is near the start."""
    if not functions.form.f_c and not functions.form.velocity:
        return
    for arguments, q_dot in _points(functions, system):
        _check(functions, arguments, q_dot, system.name)


def _points(functions: KaneFunctions, system: SymbolicSystem) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield consistent points near the start, with q'."""
    random = np.random.default_rng(2014)
    x0, r0 = system.state_signals.starts, system.input_signals.starts
    scales = system.state_signals.scales(x0)
    p = np.array(list(system.parameters.values()), dtype=np.float64)
    for k in range(SAMPLES):
        x = x0 + (RADIUS / 2**k) * scales * random.uniform(-1.0, 1.0, len(x0))
        r = r0 + (RADIUS / 2**k) * random.uniform(-1.0, 1.0, len(r0))
        arguments = np.concatenate(([random.uniform(0.0, 0.1)], x, r, p))
        if _project(functions, arguments, scales):
            q_dot = functions.coordinate_rates(arguments)
            if np.isfinite(q_dot).all():
                yield arguments, q_dot


def _project(functions: KaneFunctions, arguments: FloatArray, scales: FloatArray) -> bool:
    """Move to the nearest point with f_c = 0 and f_v = 0, first q, then u; return whether there is one."""
    n, o, first_v = len(functions.form.q), len(functions.form.u), len(functions.form.f_c)
    for span, columns, rows, D in (
        (slice(1, 1 + n), slice(1, 1 + n), slice(0, first_v), scales[:n]),
        (slice(1 + n, 1 + n + o), slice(1 + 2 * n, 1 + 2 * n + o), slice(first_v, None), scales[n:]),
    ):
        for _ in range(ITERATIONS):
            values, G = functions.constraints(arguments)
            if not (np.isfinite(values).all() and np.isfinite(G).all()):
                return False
            step = D * (np.linalg.pinv(G[rows, columns] * D, rcond=1e-10) @ values[rows])
            arguments[span] -= step
            if np.max(np.abs(step) / D, initial=0.0) < 1e-13:
                break
        else:
            return False
    return True


def _check(functions: KaneFunctions, arguments: FloatArray, q_dot: FloatArray, name: str) -> None:
    form = functions.form
    n, o, first_v, inputs = len(form.q), len(form.u), len(form.f_c), list(form.inputs)
    _, G = functions.constraints(arguments)
    r = arguments[1 + n + o : 1 + n + o + len(inputs)]
    r_dot = [r[inputs.index(der(a))] if der(a) in inputs else 0.0 for a in inputs]
    moving = np.concatenate(([1.0], q_dot, np.zeros(n + o), r_dot))  # how (t, q, q', u, r) change, u' left out
    drift = G @ moving
    size = np.abs(G) @ np.abs(moving) + 1e-3 * np.abs(G).sum(axis=1)
    if bad := _residuals(form.configuration_names, drift[:first_v], size[:first_v]):
        raise ConstraintError(
            f"The velocity constraints of '{name}' do not keep the configuration constraints: at a point with f_c = 0 "
            f"and f_v = 0, {_list_residuals(bad)}. f_v must include the time derivative of each f_c (or equivalent "
            "equations), written in the speeds u.",
            residuals=bad,
        )
    B, (M, rest) = G[first_v:, 1 + 2 * n : 1 + 2 * n + o], functions.acceleration_constraints(arguments, q_dot)
    if not (np.isfinite(M).all() and np.isfinite(rest).all()):
        return
    u_dot = -np.linalg.pinv(M, rcond=1e-10) @ rest
    free = np.eye(o) - np.linalg.pinv(M, rcond=1e-10) @ M
    missed = np.abs(B @ u_dot + drift[first_v:]) + np.abs(B @ free).sum(axis=1)
    largest = np.abs(B) @ (np.abs(u_dot) + 1.0) + size[first_v:]
    if bad := _residuals([row.name for row in form.velocity], missed, largest):
        raise ConstraintError(
            f"The acceleration constraints of '{name}' are not the time derivatives of the velocity constraints: for "
            f"accelerations with f_a = 0, {_list_residuals(bad)}. Leave f_a out, and it is derived from f_v.",
            residuals=bad,
        )


def _residuals(names: list[str] | tuple[str, ...], values: FloatArray, sizes: FloatArray) -> dict[str, float]:
    relative = np.abs(values) / np.where(sizes > 0, sizes, 1.0)
    return {
        f"d/dt {name}": float(v) for name, v, q in zip(names, values, relative, strict=True) if q > INVARIANT_TOLERANCE
    }


def _list_residuals(bad: dict[str, float]) -> str:
    return join_first((f"{name} is {value:.3g} instead of 0" for name, value in bad.items()), 6, "; ")
