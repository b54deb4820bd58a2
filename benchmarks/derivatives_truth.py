"""A known to 20 digits: the same equations in 50-digit arithmetic, differenced with steps of 1e-15.

From the symbols of a native model: f with its linear system solved by LU decomposition, the constraints with
hidden ones as g_t + g_x f, and Psi by a Newton iteration with a matrix of double precision. Which states are
kept and which constraints are independent is taken from the linear model under test; no derivative is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import sympy
from numpy.typing import NDArray

from fmilin.manifold.verified_frame import build_frame
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.models import SymbolicModel

DIGITS = 50
STEP = mpmath.mpf(10) ** -15


class InManyDigits:
    """f, h and Psi of a native model at its start point, in 50 digits."""

    def __init__(self, model: SymbolicModel, independent: Sequence[str]) -> None:
        frame = build_frame(model, model.start, named=independent)
        self.H = frame.parametrization.gradient.H[frame.parametrization.rows]
        self.rows = frame.parametrization.rows
        self.kept = [model.states.index_of(name) for name in independent]
        self.solved = [i for i in range(len(model.states)) if i not in self.kept]
        self.x0 = [mpmath.mpf(v) for v in model.start.states.tolist()]
        system = model.system
        values = [*system.parameters.values(), *model.start.inputs.tolist(), model.start.time]
        self.fixed = [mpmath.mpf(float(v)) for v in values]
        known = [*system.states, *system.parameters, *system.inputs, system.time]
        self.w_count = m = len(system.unknowns)
        between = [symbol for symbol, _ in system.intermediate]
        self._between = [_function([*known, *between[:i]], [e]) for i, (_, e) in enumerate(system.intermediate)]
        matrix, right_hand_side = _linear(system)
        entries = [matrix.get((i, j), sympy.Integer(0)) for i in range(m) for j in range(m)]
        self._linear = _function([*known, *between], [*entries, *right_hand_side])
        self._rates = _function([*known, *between, *system.unknowns], system.derivatives)
        symbols = {str(s): s for s in known}
        rows = model.constraints.rows
        g = [row.expression.to_sympy(symbols) for row in rows]
        hidden = [g[i] for i, row in enumerate(rows) if row.needs_rate]
        self._declared = _function(known, g)
        self._slopes = _function(known, [sympy.diff(e, s) for e in hidden for s in (*system.states, system.time)])
        with mpmath.workdps(DIGITS):
            self.x0 = self.psi([self.x0[i] for i in self.kept])

    def f(self, x: list[Any]) -> list[Any]:
        arguments = [*x, *self.fixed]
        for quantity in self._between:
            arguments += quantity(*arguments)
        m = self.w_count
        entries = self._linear(*arguments)
        w: list[Any] = []
        if m:
            W = mpmath.matrix([entries[i * m : (i + 1) * m] for i in range(m)])
            w = list(mpmath.lu_solve(W, mpmath.matrix(entries[m * m :])))
        return list(self._rates(*arguments, *w))

    def h(self, x: list[Any]) -> list[Any]:
        arguments = [*x, *self.fixed]
        g, slopes = list(self._declared(*arguments)), list(self._slopes(*arguments))
        if slopes:
            rates, n = [*self.f(x), mpmath.mpf(1)], len(x) + 1
            g += [mpmath.fdot(slopes[k : k + n], rates) for k in range(0, len(slopes), n)]
        return [g[i] for i in self.rows]

    def psi(self, y: list[Any]) -> list[Any]:
        """Return the point with the kept states ``y``, by Newton's iteration with the matrix at the start."""
        x = list(self.x0)
        for i, value in zip(self.kept, y, strict=True):
            x[i] = value
        if not self.rows:
            return x
        inverse = mpmath.matrix(np.linalg.inv(self.H[:, self.solved]).tolist())
        for _ in range(60):
            step = inverse * mpmath.matrix(self.h(x))
            for i, s in zip(self.solved, step, strict=True):
                x[i] -= s
            if mpmath.norm(step, mpmath.inf) < mpmath.mpf(10) ** (8 - DIGITS):
                return x
        raise ArithmeticError("Newton's iteration in 50 digits does not converge")

    def jacobian(self) -> NDArray[np.float64]:
        """Return A, shape (P, P), correct to the last digit of a double."""
        y0 = [self.x0[i] for i in self.kept]
        columns = []
        for j in range(len(y0)):
            ahead, behind = list(y0), list(y0)
            ahead[j] += STEP
            behind[j] -= STEP
            rates = [self.f(self.psi(y)) for y in (ahead, behind)]
            columns.append([float((rates[0][i] - rates[1][i]) / (2 * STEP)) for i in self.kept])
        return np.array(columns).T.reshape(len(y0), len(y0))


def true_jacobian(model: SymbolicModel, independent: Sequence[str]) -> NDArray[np.float64]:
    """Return A of a native model at its start in the coordinates ``independent``, shape (P, P)."""
    with mpmath.workdps(DIGITS):
        return InManyDigits(model, independent).jacobian()


def _linear(system: SymbolicSystem) -> tuple[dict[tuple[int, int], Any], list[Any]]:
    """Return W and r of W w = r, with the multipliers' G and Gdot v written out."""
    W, r = dict(system.matrix), list(system.right_hand_side)
    if system.laws is None:
        return W, r
    velocities, driven, n = system.laws.velocities, system.laws.driven, len(system.laws.velocities)
    along = {system.time: sympy.Integer(1), **velocities, **driven}
    for k, (law, level) in enumerate(system.laws.laws, start=n):
        rate = law if level != "position" else sum(sympy.diff(law, s) * rate for s, rate in along.items())
        for j, v in enumerate(velocities.values()):
            W[k, j] = W[j, k] = sympy.diff(rate, v)
        r[k] -= sum(sympy.diff(rate, s) * factor for s, factor in along.items())
    return W, r


def _function(arguments: Sequence[Any], expressions: Sequence[Any]) -> Any:
    """Return the expressions as one function in mpmath's arithmetic."""
    return sympy.lambdify(list(arguments), list(expressions), modules="mpmath", cse=True)
