"""The linearization procedure of Peterson et al., in their letters; all matrices of numbers are batches over k points.

    M~ (dq'; du') = A~ (dq; du) + B~ dr,   dq = C_0 dq_i,   du = C_1 dq + C_2 du_i
    A' = M~^-1 [(A~_q + A~_u C_1) C_0, A~_u C_2],   B' = M~^-1 B~,   A = P'^T A',   B = P'^T B'

The table of definitions as in the thesis (the paper's M~uqd and its further terms in A~uqc .. A~uud are misprints):
M~uqd = grad_q' f_3, A~uqc = -grad_q f_a, A~uuc = -grad_u f_a, A~uqd = -grad_q (f_2 + f_3), A~uud = -grad_u f_3.
Inputs that enter constraints (prescribed motions) move the dependent states at once: dq = C_0 dq_i + D_0 dr,
du = C_1 dq + C_2 du_i + D_2 dr, which adds A~ (D_0; C_1 D_0 + D_2) to B~. With G_c = grad_q f_c, G_v = grad_q f_v and
B = grad_u f_v the dependent coordinates and speeds follow as

    C_0 = [I - P_qd (G_c P_qd)^-1 G_c] P_qi,   C_1 = -P_ud (B P_ud)^-1 G_v,   C_2 = [I - P_ud (B P_ud)^-1 B] P_ui

For small systems, where a formula says more than numbers, the same is done in symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models.kane.kane_form import KaneForm
from fmilin.models.kane.kane_functions import Expansion
from fmilin.models.labels import Expr, Name
from fmilin.numerics.factors import inverses, norms
from fmilin.signals import FloatArray, Signals


@dataclass(frozen=True, slots=True)
class Partition:
    """Positions of the independent and dependent coordinates in q, and speeds in u."""

    q_i: tuple[int, ...]
    q_d: tuple[int, ...]
    u_i: tuple[int, ...]
    u_d: tuple[int, ...]

    @classmethod
    def from_independent(cls, q_i: Sequence[int], u_i: Sequence[int], n: int, o: int) -> Partition:
        """Return the partition with these independent coordinates out of n, and speeds out of o."""
        return cls(
            tuple(q_i),
            tuple(i for i in range(n) if i not in set(q_i)),
            tuple(u_i),
            tuple(i for i in range(o) if i not in set(u_i)),
        )

    @classmethod
    def from_names(cls, independent: Sequence[str], form: KaneForm, states: Signals, model: str) -> Partition:
        """Return the partition that keeps the named states."""
        n, o = len(form.q), len(form.u)
        if isinstance(independent, str):
            raise UsageError(
                "'independent' must be a sequence of names: write independent=['...'] even for a single one."
            )
        indices = [states.index_of(name, "a state of the model") for name in independent]
        q_i, u_i = [i for i in indices if i < n], [i - n for i in indices if i >= n]
        required_counts = (n - len(form.f_c), o - len(form.velocity))
        if (len(set(q_i)), len(set(u_i))) != required_counts or len(indices) != form.order:
            raise UsageError(
                f"{len(q_i)} coordinates and {len(u_i)} speeds were named as independent, but '{model}' has "
                f"{required_counts[0]} and {required_counts[1]}: {n} coordinates under {len(form.f_c)} configuration "
                f"constraints, {o} speeds under {len(form.velocity)} velocity constraints."
            )
        return cls.from_independent(q_i, u_i, n, o)

    @property
    def states(self) -> tuple[int, ...]:
        """Positions of the independent states in (q, u)."""
        n = len(self.q_i) + len(self.q_d)
        return (*self.q_i, *(n + i for i in self.u_i))


@dataclass(frozen=True, slots=True)
class Dependence:
    """dq = C_0 dq_i + D_0 dr and du = C_1 dq + C_2 du_i + D_2 dr; D_0 and D_2 belong to prescribed motions."""

    C_0: FloatArray
    C_1: FloatArray
    C_2: FloatArray
    D_0: FloatArray
    D_2: FloatArray
    condition_number: FloatArray  # (k,), the larger of |G_c| |(G_c P_qd)^-1| and |B| |(B P_ud)^-1|, 1-norms, scaled


def dependence(
    form: KaneForm, J: FloatArray, inputs: list[int], partition: Partition, scales: FloatArray
) -> Dependence:
    """Return C_0, C_1 and C_2 from J (k, rows, columns); NaN, and an infinite condition number, where none exist."""
    q_i, q_d, u_i, u_d = (list(p) for p in (partition.q_i, partition.q_d, partition.u_i, partition.u_d))
    k, n, o, first = len(J), len(form.q), len(form.u), len(form.f_c)
    q, u = slice(1, 1 + n), slice(1 + 2 * n, 1 + 2 * n + o)
    of_c, of_v = J[:, :first], J[:, first : first + len(form.velocity)]
    G_c, G_v, B = of_c[:, :, q], of_v[:, :, q], of_v[:, :, u]
    c, c_condition = _inverses(G_c, q_d, scales[:n])
    v, v_condition = _inverses(B, u_d, scales[n:])
    C_0, C_1, C_2 = np.zeros((k, n, len(q_i))), np.zeros((k, o, n)), np.zeros((k, o, len(u_i)))
    D_0, D_2 = np.zeros((k, n, len(inputs))), np.zeros((k, o, len(inputs)))
    C_0[:, q_i, range(len(q_i))] = 1.0
    C_2[:, u_i, range(len(u_i))] = 1.0
    C_0[:, q_d], D_0[:, q_d] = -(c @ G_c[:, :, q_i]), -(c @ of_c[:, :, inputs])
    C_1[:, u_d], C_2[:, u_d], D_2[:, u_d] = -(v @ G_v), -(v @ B[:, :, u_i]), -(v @ of_v[:, :, inputs])
    return Dependence(C_0, C_1, C_2, D_0, D_2, np.maximum(c_condition, v_condition))


def _inverses(G: FloatArray, dependent: list[int], scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (G P_d)^-1 and |G| |(G P_d)^-1| in the 1-norm, rows and columns scaled; NaN and infinity when singular."""
    if not dependent:
        return np.zeros((len(G), 0, 0)), np.ones(len(G))
    scaled = G * scales
    sizes = np.abs(scaled).max(axis=2, keepdims=True)
    scaled = scaled / np.where(sizes > 0, sizes, 1.0)
    inverse = inverses(scaled[:, :, dependent])
    with np.errstate(all="ignore"):
        condition = norms(scaled) * norms(inverse)
        inverse = inverse * scales[dependent, None] / np.where(sizes > 0, sizes, np.nan).transpose(0, 2, 1)
    exists = np.isfinite(condition)
    return np.where(exists[:, None, None], inverse, np.nan), np.where(exists, condition, np.inf)


@dataclass(frozen=True, slots=True)
class Matrices:
    """The linear model x_i' = A x_i + B r of the independent states, and all states from them."""

    partition: Partition  # which states are independent
    condition_number: float  # |G_c| |(G_c P_qd)^-1| or |B| |(B P_ud)^-1|, whichever is larger, scaled
    C_0: FloatArray  # (n, n - l), of dq = C_0 dq_i
    # C_1, C_2: (o, n) and (o, o - m), of du = C_1 dq + C_2 du_i
    C_1: FloatArray
    C_2: FloatArray
    P_prime: FloatArray  # shape (n + o, P)
    # A_prime, B_prime: (n + o + k, P) and (n + o + k, s), the rows of all rates, multipliers included; what
    # accelerometers see
    A_prime: FloatArray
    B_prime: FloatArray
    A: FloatArray  # (P, P), P'^T A'
    B: FloatArray  # (P, s), P'^T B'
    # T, T_u: (n + o, P) and (n + o, s), of (dq; du) = T dx_i + T_u dr; T_u is zero unless inputs prescribe a motion
    T: FloatArray
    T_u: FloatArray
    rates: FloatArray  # (n + o,), q' and u' at the point

    @property
    def f0(self) -> FloatArray:
        """The rates of the independent states at the point, shape (P,)."""
        return self.rates[list(self.partition.states)]


def eliminate(
    form: KaneForm, expansion: Expansion, inputs: list[int], partition: Partition, C: Dependence
) -> list[Matrices]:
    """Return A', B', A and B at each point, for a partition with its C_0, C_1 and C_2."""
    n, o = len(form.q), len(form.u)
    J = expansion.J[:, len(form.f_c) + len(form.velocity) :]
    A_q, A_u = -J[:, :, 1 : 1 + n], -J[:, :, 1 + 2 * n : 1 + 2 * n + o]
    C_10 = C.C_1 @ C.C_0
    D_u = C.C_1 @ C.D_0 + C.D_2
    p, width = len(partition.states), len(partition.q_i)
    tilde = np.concatenate((A_q @ C.C_0 + A_u @ C_10, A_u @ C.C_2, A_q @ C.D_0 + A_u @ D_u - J[:, :, inputs]), axis=2)
    primes = expansion.solve(tilde)
    T = np.zeros((len(J), n + o, p))
    T[:, :n, :width], T[:, n:, :width], T[:, n:, width:] = C.C_0, C_10, C.C_2
    T_u = np.concatenate((C.D_0, D_u), axis=1)
    states = list(partition.states)
    P_prime = np.zeros((n + o, p))
    P_prime[states, range(p)] = 1.0
    independent = primes[:, states]
    stacks = (
        *(C.condition_number.tolist(), C.C_0, C.C_1, C.C_2, np.broadcast_to(P_prime, T.shape)),
        *(primes[:, :, :p], primes[:, :, p:], independent[:, :, :p], independent[:, :, p:]),
        *(T, T_u, expansion.rates),
    )
    return [Matrices(partition, *matrices) for matrices in zip(*stacks, strict=True)]


Matrix = Any  # sympy.Matrix
MAX_OPERATIONS = 10_000  # operations in all equations beyond which symbols are no help any more


@dataclass(frozen=True)
class SymbolicLinearization:
    """x_i' = A x_i + B r in symbols."""

    # A, B: shapes (P, P) and (P, s)
    A: Matrix
    B: Matrix
    # A_prime, B_prime: the rows of all rates, dependent states and multipliers included
    A_prime: Matrix
    B_prime: Matrix
    T: Matrix  # (n + o, P), all states from the independent ones
    # states, inputs: the independent states in the order of A, and r
    states: tuple[Any, ...]
    inputs: tuple[Any, ...]

    def latex(self) -> str:
        """Return the equation as LaTeX, in deviations from the point."""
        x = sympy.latex(sympy.Matrix(self.states)) if self.states else "x"
        text = rf"\frac{{d}}{{dt}}\,\delta{x} = {sympy.latex(self.A)}\,\delta{x}"
        if self.inputs:
            text += rf" + {sympy.latex(self.B)}\,\delta{sympy.latex(sympy.Matrix(self.inputs))}"
        return text


def linearize_symbolic(
    form: KaneForm, system: str, values: Mapping[Name, Any], partition: Partition, *, simplify: bool
) -> SymbolicLinearization:
    """Return A and B of ``system`` in symbols; see :meth:`fmilin.models.kane.KaneModel.linearize_symbolic`."""
    _require_small(form, system)
    at = _substitution(form, values)
    tidy = sympy.simplify if simplify else (lambda e: e)
    rates = _rates(form, at, tidy)

    def gradient(expressions: Sequence[Expr], symbols: Sequence[Any]) -> Matrix:
        """Return the gradient at the point."""
        column = sympy.Matrix(len(expressions), 1, list(expressions))
        J = column.jacobian(symbols) if expressions and symbols else sympy.zeros(len(expressions), len(symbols))
        return J.xreplace(rates).xreplace(at).applyfunc(tidy)

    C_0, C_1, C_2, D_0, D_2 = _dependence(form, partition, gradient)
    rows = [row.expression for row in (*form.kinematics, *form.acceleration, *form.dynamics)]
    M, A_q, A_u = gradient(rows, form.unknowns), -gradient(rows, form.q), -gradient(rows, form.u)
    A_tilde = ((A_q + A_u * C_1) * C_0).row_join(A_u * C_2)
    B_tilde = -gradient(rows, form.inputs) + A_q * D_0 + A_u * (C_1 * D_0 + D_2)
    A_prime, B_prime = _solve_symbolically(M, A_tilde).applyfunc(tidy), _solve_symbolically(M, B_tilde).applyfunc(tidy)
    states = list(partition.states)
    lower = (C_1 * C_0).row_join(C_2)
    T = C_0.row_join(sympy.zeros(len(form.q), C_2.cols)).col_join(lower).applyfunc(tidy)
    return SymbolicLinearization(
        A=A_prime.extract(states, list(range(A_prime.cols))),
        B=B_prime.extract(states, list(range(B_prime.cols))),
        A_prime=A_prime,
        B_prime=B_prime,
        T=T,
        states=tuple(form.states[i] for i in states),
        inputs=form.inputs,
    )


def _require_small(form: KaneForm, name: str) -> None:
    size = sum(int(row.expression.count_ops()) for row in (*form.velocity, *form.kinematics, *form.acceleration))
    size += sum(int(row.expression.count_ops()) for row in form.dynamics)
    if size > MAX_OPERATIONS:
        raise UsageError(
            f"The equations of '{name}' have {size} operations; symbolic matrices are made up to {MAX_OPERATIONS}. "
            "Use linearize() or matrices() at the points of interest: they are as exact, and fast."
        )


def _substitution(form: KaneForm, values: Mapping[Name, Any]) -> dict[Any, Any]:
    symbols = {str(s): s for s in (*form.states, *form.inputs, *form.parameters, form.time)}
    substitution = {}
    for name, value in values.items():
        if str(name) not in symbols:
            raise UnknownNameError.among(str(name), symbols, "a state, an input or a parameter of the model")
        expression = sympy.sympify(value)
        known_symbols = {s: symbols.get(str(s), sympy.Symbol(str(s), real=True)) for s in expression.free_symbols}
        substitution[symbols[str(name)]] = expression.xreplace(known_symbols)
    return substitution


def _rates(form: KaneForm, at: Mapping[Any, Any], tidy: Any) -> dict[Any, Any]:
    """Return q', u' and lambda at the point, in symbols."""
    rates: dict[Any, Any] = {}
    lower = (*form.acceleration, *form.dynamics)
    for rows, symbols in ((form.kinematics, form.q_dot), (lower, (*form.u_dot, *form.multipliers))):
        M = sympy.Matrix(
            len(rows), len(symbols), [_at(row.coefficients.get(w, 0), at, rates) for row in rows for w in symbols]
        )
        right = sympy.Matrix(len(rows), 1, [-_at(row.rest, at, rates) for row in rows])
        solution = _solve_symbolically(M.applyfunc(tidy), right.applyfunc(tidy))
        rates |= {w: tidy(solution[i]) for i, w in enumerate(symbols)}
    return rates


def _at(expression: Any, at: Mapping[Any, Any], rates: Mapping[Any, Any]) -> Any:
    return sympy.sympify(expression).xreplace(dict(rates)).xreplace(dict(at))


def _dependence(form: KaneForm, partition: Partition, gradient: Any) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix]:
    """Return C_0, C_1, C_2, D_0 and D_2."""
    q_i, q_d = (sympy.eye(len(form.q))[:, list(part)] for part in (partition.q_i, partition.q_d))
    u_i, u_d = (sympy.eye(len(form.u))[:, list(part)] for part in (partition.u_i, partition.u_d))
    G_c, D_c = gradient(form.f_c, form.q), gradient(form.f_c, form.inputs)
    G_v, B, D_v = (gradient(form.f_v, symbols) for symbols in (form.q, form.u, form.inputs))
    on_q = -q_d * _solve_symbolically(G_c * q_d, (G_c * q_i).row_join(D_c))
    on_u = -u_d * _solve_symbolically(B * u_d, G_v.row_join(B * u_i).row_join(D_v))
    p, n, o = q_i.cols, len(form.q), u_i.cols
    return q_i + on_q[:, :p], on_u[:, :n], u_i + on_u[:, n : n + o], on_q[:, p:], on_u[:, n + o :]


def _solve_symbolically(M: Matrix, right: Matrix) -> Matrix:
    """Return M^-1 right by elimination, pivots tested for being zero in fact, not in form."""
    if right.cols == 0 or right.rows == 0:
        return sympy.zeros(right.rows, right.cols)
    try:
        return M.LUsolve(right, iszerofunc=lambda e: bool(e == 0 or sympy.simplify(e) == 0))
    except (ValueError, ZeroDivisionError):
        raise NumericalError(
            "A matrix of the procedure is singular at this point: the independent states that were named do not "
            "determine the others, or the rates are not determined. Name others, or choose another point."
        ) from None
