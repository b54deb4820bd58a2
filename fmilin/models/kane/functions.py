"""The general form as functions: constraints, rates, and the gradients of all equations at a point.

The order at a point is that of the equations: q' from the kinematic ones, then u' and lambda from f_a and
f_2 + f_3 + f_4, then every gradient with these values held, which is what the table of definitions asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fmilin.codegen.factorized import Factorized
from fmilin.errors import NumericalError
from fmilin.models.kane.evaluated import Backend, Evaluated
from fmilin.models.kane.form import KaneForm
from fmilin.models.kane.graph import Entries, KaneGraph
from fmilin.models.kane.stacked import StackedSystems
from fmilin.signals import FloatArray

__all__ = ["Expansion", "KaneFunctions", "Numerics", "OutputFunctions"]

Symbol = Any  # sympy.Symbol: sympy ships no types


@dataclass(frozen=True, slots=True)
class Numerics:
    """How the numbers are computed.

    Parameters
    ----------
    backend : Backend
        CasADi's virtual machine or C.
    """

    backend: Backend = field(default_factory=Backend)


@dataclass(frozen=True)
class Expansion:
    """The equations and their gradients at a stack of k points: everything that the linearization is made of.

    The gradients of the rows of (f_c, f_v, f_0 + f_1, f_a, f_2 + f_3 + f_4) stand in one matrix J whose columns are
    (t, q, q', u, r), at the values of q', u' and lambda that solve the equations.

    Attributes
    ----------
    constraints : array, shape (k, l + m)
        Values of f_c and f_v.
    rates : array, shape (k, n + o)
        q' and u'.
    multipliers : array, shape (k, multipliers)
    J : array, shape (k, l + m + n + o + multipliers, 1 + 2 n + o + s)
    kinematic : array, shape (k, n, n)
        M~qq.
    coefficients : array, shape (k, o + multipliers, o + multipliers)
        [M~uuc, 0; M~uud, M~uld].
    solve : callable
        M~^-1 b for b (k, n + o + multipliers, columns).
    """

    constraints: FloatArray
    rates: FloatArray
    multipliers: FloatArray
    J: FloatArray
    kinematic: FloatArray
    coefficients: FloatArray
    solve: Callable[[FloatArray], FloatArray]

    def __getitem__(self, points: slice) -> Expansion:
        """Return the expansion at some of the points."""
        count = len(self.J)

        def solve(b: FloatArray) -> FloatArray:
            every = np.zeros((count, *b.shape[1:]))
            every[points] = b
            return self.solve(every)[points]

        if points == slice(0, count):
            return self
        return Expansion(
            self.constraints[points],
            self.rates[points],
            self.multipliers[points],
            self.J[points],
            self.kinematic[points],
            self.coefficients[points],
            solve,
        )


class KaneFunctions:
    """Made once for a form; values of inputs and parameters are arguments.

    Points are arrays (t, q, u, r, p), called ``known``, or stacks of them.

    Parameters
    ----------
    form : KaneForm
    numerics : Numerics

    Raises
    ------
    ModelError
        When an equation contains something that is no arithmetic.
    """

    def __init__(self, form: KaneForm, numerics: Numerics) -> None:
        self.form = form
        self.numerics = numerics
        self.graph = KaneGraph(form)

    def at(self, known: FloatArray) -> Expansion:
        """Return the expansion at k points, shape (k, known).

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        form, n, first = self.form, len(self.form.q), self.graph.first_unknown
        points = self._points(known)
        H, constraints = self._constraints(points)
        K, k = self._kinematics(points)
        M_qq = None if self._explicit else StackedSystems(K)
        if M_qq is not None and len(M_qq.singular):
            raise _singular(K[M_qq.singular[0]], form.q_dot, "kinematic")
        q_dot = -k if M_qq is None else M_qq.solve(-k[:, :, None])[:, :, 0]
        points[:, first : first + n] = q_dot
        W, b = self._dynamics(points)
        M_uu = StackedSystems(W)
        if len(M_uu.singular):
            raise _singular(W[M_uu.singular[0]], (*form.u_dot, *form.multipliers), "dynamic")
        w = M_uu.solve(-b[:, :, None])[:, :, 0]
        points[:, first + n :] = w
        J, _ = self._gradients(points)
        lower = J[:, n:, 1 + n : 1 + 2 * n]  # [M~uqc; M~uqd]

        def solve(right: FloatArray) -> FloatArray:
            x = right[:, :n] if M_qq is None else M_qq.solve(right[:, :n])
            return np.concatenate((x, M_uu.solve(right[:, n:] - lower @ x)), axis=1)

        o = len(form.u)
        rates = np.concatenate((q_dot, w[:, :o]), axis=1)
        return Expansion(constraints, rates, w[:, o:], np.concatenate((H, J), axis=1), K, W, solve)

    def solve(self, known: FloatArray) -> FloatArray:
        """Return (q', u', lambda) at one point, shape (n + o + k,).

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        form, n, first = self.form, len(self.form.q), self.graph.first_unknown
        points = self._points(known[None])
        K, k = self._kinematics(points)
        q_dot = -k[0] if self._explicit else _factorized(K[0], form.q_dot, "kinematic").solve(-k[0])
        points[0, first : first + n] = q_dot
        W, b = self._dynamics(points)
        w = _factorized(W[0], (*form.u_dot, *form.multipliers), "dynamic").solve(-b[0])
        return np.concatenate((q_dot, w))

    def constraints(self, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f_c and f_v, shape (l + m,), and their gradients for (t, q, q', u, r), at one point."""
        H, values = self._constraints(self._points(known[None]))
        return values[0], H[0]

    def coordinate_rates(self, known: FloatArray) -> FloatArray:
        """Return q' at one point, shape (n,), NaN where the kinematic equations do not determine it."""
        K, k = self._kinematics(self._points(known[None]))
        factors = Factorized(K[0])
        return np.full(len(k[0]), np.nan) if factors.is_singular else -factors.solve(k[0])

    def acceleration_constraints(self, known: FloatArray, q_dot: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return M~uuc, shape (m, o), and the rest of f_a, shape (m,), at one point with its q'."""
        m, o, first = len(self.form.acceleration), len(self.form.u), self.graph.first_unknown
        points = self._points(known[None])
        points[0, first : first + len(q_dot)] = q_dot
        W, b = self._dynamics(points)
        return W[0, :m, :o], b[0, :m]

    def left_hand_sides(self, known: FloatArray, given: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
        """Return (f_0 + f_1, f_a, f_2 + f_3 + f_4) and the sizes of their terms, each shape (n + o + k,).

        Sizes are NaN in the rows that are not defined at the point, whatever the rates.

        Parameters
        ----------
        known : array
            (t, q, u, r, p).
        given : mapping of int to float
            Entries of (q', u') that are not solved for.
        """
        n, first = len(self.form.q), self.graph.first_unknown
        w = self.solve(known)
        w[list(given)] = list(given.values())
        points = self._points(known[None])
        points[0, first : first + n] = w[:n]
        (K,), (k,) = self._kinematics(points)
        (W,), (b,) = self._dynamics(points)
        left = np.concatenate((K @ w[:n] + k, W @ w[n:] + b))
        known_rates = np.nan_to_num(np.abs(w))
        sizes = np.concatenate((np.abs(K) @ known_rates[:n] + np.abs(k), np.abs(W) @ known_rates[n:] + np.abs(b)))
        return left, sizes

    def _points(self, known: FloatArray) -> FloatArray:
        points = np.zeros((len(known), len(self.graph.symbols)))
        points[:, : self.graph.first_unknown] = known
        return points

    # -- what is evaluated -------------------------------------------------------------------------

    @cached_property
    def _explicit(self) -> bool:
        return self.graph.kinematics_are_explicit

    @cached_property
    def _constraints(self) -> _Pair:
        return self._pair(self.graph.constraint_gradients, self.graph.constraints)

    @cached_property
    def _kinematics(self) -> _Pair:
        return self._pair(self.graph.K, self.graph.k)

    @cached_property
    def _dynamics(self) -> _Pair:
        return self._pair(self.graph.W, self.graph.b)

    @cached_property
    def _gradients(self) -> _Pair:
        return self._pair(self.graph.gradients, self.graph.b[:0])

    def _pair(self, matrix: Any, column: Any) -> _Pair:
        return _Pair(self.graph.point, matrix, column, self.numerics.backend)


class OutputFunctions:
    """Outputs c(t, q, u, r, p, q', u', lambda) and their gradients.

    Parameters
    ----------
    functions : KaneFunctions
    expressions : sequence of Expr
        c, over the symbols of a point.
    """

    def __init__(self, functions: KaneFunctions, expressions: Sequence[Any]) -> None:
        self._functions, self._expressions = functions, tuple(expressions)

    def values(self, point: FloatArray) -> FloatArray:
        """Return c, shape (ny,)."""
        return self._values(point[None])[0]

    def gradients(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return c, and its gradient for all of the point, shape (ny, point)."""
        (J,), (values,) = self._both(point[None])
        return values, J

    @cached_property
    def _nodes(self) -> tuple[Any, Any]:
        return self._functions.graph.outputs(self._expressions)

    @cached_property
    def _values(self) -> Evaluated:
        return Evaluated(self._functions.graph.point, self._nodes[0], self._functions.numerics.backend)

    @cached_property
    def _both(self) -> _Pair:
        column, J = self._nodes
        return _Pair(self._functions.graph.point, J, column, self._functions.numerics.backend)


class _Pair:
    """A sparse matrix and a column of the graph, evaluated together."""

    def __init__(self, point: Any, matrix: Any, column: Any, backend: Backend) -> None:
        import casadi as ca

        self._entries = Entries(matrix)
        self._count = matrix.nnz()
        self._function = Evaluated(point, ca.vertcat(matrix.nz[:], column), backend)

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = self._function(points)
        return self._entries.filled(values[:, : self._count]), values[:, self._count :]


def _factorized(W: FloatArray, symbols: Sequence[Symbol], which: str) -> Factorized:
    factors = Factorized(W)
    if factors.is_singular:
        raise _singular(W, symbols, which)
    return factors


def _singular(W: FloatArray, symbols: Sequence[Symbol], which: str) -> NumericalError:
    factors = Factorized(W)
    direction = np.abs(factors.null_vector())
    loose = [str(symbols[i]) for i in np.argsort(-direction, kind="stable") if direction[i] > 1e-6]
    shown = ", ".join(loose[:6]) + (", ..." if len(loose) > 6 else "")
    return NumericalError(
        f"The {which} equations have no unique solution at this point: the matrix that multiplies "
        f"{len(symbols)} rates is singular (reciprocal condition number {factors.rcond:.1e}) and leaves {shown} "
        "undetermined. Constraints depend on each other here, a mass is missing, or angles meet their "
        "singularity: choose another point, or describe the system with other coordinates.",
        condition_number=1.0 / factors.rcond if factors.rcond > 0 else float("inf"),
        variable=loose[0],
    )
