"""The same procedure in symbols, for systems small enough that a formula says more than numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from fmilin.ground.errors import NumericalError, UnknownNameError, UsageError
from fmilin.native.declaration import Expr, Name
from fmilin.native.kane.form import KaneForm
from fmilin.native.kane.procedure import Partition

Matrix = Any  # sympy.Matrix
LARGEST = 10_000  # operations in all equations beyond which symbols are no help any more


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
    A_prime, B_prime = _solved(M, A_tilde).applyfunc(tidy), _solved(M, B_tilde).applyfunc(tidy)
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
    if size > LARGEST:
        raise UsageError(
            f"The equations of '{name}' have {size} operations; symbolic matrices are made up to {LARGEST}. Use "
            "linearize() or matrices() at the points that matter: they are as exact, and quick."
        )


def _substitution(form: KaneForm, values: Mapping[Name, Any]) -> dict[Any, Any]:
    symbols = {str(s): s for s in (*form.states, *form.inputs, *form.parameters, form.time)}
    substitution = {}
    for name, value in values.items():
        if str(name) not in symbols:
            raise UnknownNameError.among(str(name), symbols, "a state, an input or a parameter of the model")
        expression = sympy.sympify(value)
        own = {s: symbols.get(str(s), sympy.Symbol(str(s), real=True)) for s in expression.free_symbols}
        substitution[symbols[str(name)]] = expression.xreplace(own)
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
        solution = _solved(M.applyfunc(tidy), right.applyfunc(tidy))
        rates |= {w: tidy(solution[i]) for i, w in enumerate(symbols)}
    return rates


def _at(expression: Any, at: Mapping[Any, Any], rates: Mapping[Any, Any]) -> Any:
    return sympy.sympify(expression).xreplace(dict(rates)).xreplace(dict(at))


def _dependence(form: KaneForm, partition: Partition, gradient: Any) -> tuple[Matrix, Matrix, Matrix, Matrix, Matrix]:
    """Return C_0, C_1, C_2, D_0 and D_2."""
    n, o, s = len(form.q), len(form.u), len(form.inputs)
    q_i, q_d, u_i, u_d = (list(p) for p in (partition.q_i, partition.q_d, partition.u_i, partition.u_d))
    C_0, D_0 = sympy.zeros(n, len(q_i)), sympy.zeros(n, s)
    C_1, C_2, D_2 = sympy.zeros(o, n), sympy.zeros(o, len(u_i)), sympy.zeros(o, s)
    for column, i in enumerate(q_i):
        C_0[i, column] = 1
    for column, i in enumerate(u_i):
        C_2[i, column] = 1
    if q_d:
        f_c = list(form.f_c)
        G_d = gradient(f_c, [form.q[i] for i in q_d])
        _fill(C_0, q_d, -_solved(G_d, gradient(f_c, [form.q[i] for i in q_i])))
        _fill(D_0, q_d, -_solved(G_d, gradient(f_c, form.inputs)))
    if u_d:
        f_v = list(form.f_v)
        B_d = gradient(f_v, [form.u[i] for i in u_d])
        _fill(C_1, u_d, -_solved(B_d, gradient(f_v, form.q)))
        _fill(C_2, u_d, -_solved(B_d, gradient(f_v, [form.u[i] for i in u_i])))
        _fill(D_2, u_d, -_solved(B_d, gradient(f_v, form.inputs)))
    return C_0, C_1, C_2, D_0, D_2


def _fill(matrix: Matrix, rows: Sequence[int], block: Matrix) -> None:
    for k, i in enumerate(rows):
        for j in range(matrix.cols):
            matrix[i, j] = block[k, j]


def _solved(M: Matrix, right: Matrix) -> Matrix:
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
