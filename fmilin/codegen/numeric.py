"""A symbolic system as NumPy functions: values, and exact directional derivatives.

At one point W w = r is solved by an LU factorization with pivoting. Along directions ds = (dx, du)

    dw  = W^-1 (e_s ds),  e = r - W w with w held
    dx' = f_s ds + f_w dw
    dc  = c_s ds + c_w dw

with all partial derivatives symbolic and evaluated once per point, however many directions there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fmilin.codegen.factorized import Factorized
from fmilin.codegen.jacobian import Entries, matrix_entries, partials_of
from fmilin.codegen.system import SymbolicSystem
from fmilin.errors import NumericalError
from fmilin.signals import FloatArray

__all__ = ["Factors", "NumericSystem"]

Symbol = Any  # sympy.Symbol
_Lists = tuple[list[float], ...]


class Factors(Protocol):
    """A matrix W, taken apart so that W w = r can be solved many times."""

    @property
    def rcond(self) -> float:
        """Reciprocal condition number; NaN where W holds a NaN."""

    @property
    def is_singular(self) -> bool:
        """Whether w is not determined."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return w for r = ``right``, shape (nw,) or (nw, k)."""

    def null_vector(self) -> FloatArray:
        """Return the direction of w, (nw,), that is least determined."""


class NumericSystem:
    """A :class:`SymbolicSystem` that can be evaluated. Functions are compiled when they are first needed.

    Parameters
    ----------
    system : SymbolicSystem
        Its parameter values are not used: every call takes them, in the order of ``system.parameters``.
    factors : callable
        Takes W apart; LU factors with pivoting unless another way suits its structure better.
    """

    def __init__(self, system: SymbolicSystem, factors: Callable[[FloatArray], Factors] = Factorized) -> None:
        self.system = system
        self._factors = factors

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,).

        Parameters
        ----------
        t : float
        x : array, shape (N,)
        u : array, shape (nu,)
        p : array, shape (np,)

        Raises
        ------
        NumericalError
            When W is singular at this point. NaN is returned where a function is outside its domain.
        """
        point = _lists(t, x, u, p)
        _, w = self._solved(point)
        f, c = self._right_sides((*point, w.tolist()))
        return f[:, 0], c[:, 0]

    def unknowns(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return w = W^-1 r, shape (nw,): accelerations and multipliers, in the order of ``system.unknowns``.

        Raises
        ------
        NumericalError
            When W is singular at this point.
        """
        return self._solved(_lists(t, x, u, p))[1]

    def equations(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return W, shape (nw, nw), and r, shape (nw,)."""
        W, r = self._equations(_lists(t, x, u, p))
        return W, r[:, 0]

    def partials(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], w: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return d(r - W w)/ds with w held, and the outputs' d/ds and d/dw, for s = (x, u) and any w.

        Returns
        -------
        tuple of array
            Shapes (nw, N + nu), (ny, N + nu) and (ny, nw).
        """
        e_s, _, _, c_s, c_w = self._partials((*_lists(*point), w.tolist()))
        return e_s, c_s, c_w

    def products(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x', (N, k), and of the outputs, (ny, k), along the columns of (dx, du).

        Parameters
        ----------
        point : tuple
            t, x, u, p as in :meth:`values`.
        dx : array, shape (N, k)
        du : array, shape (nu, k)

        Raises
        ------
        NumericalError
            When W is singular at this point.
        """
        lists = _lists(*point)
        W, w = self._solved(lists)
        e_s, f_s, f_w, c_s, c_w = self._partials((*lists, w.tolist()))
        ds = np.concatenate((dx, du))
        dw = W.solve(e_s @ ds)
        return f_s @ ds + f_w @ dw, c_s @ ds + c_w @ dw

    def _solved(self, point: _Lists) -> tuple[Factors, FloatArray]:
        if not self.system.unknowns:
            return Factorized(np.empty((0, 0))), np.empty(0)
        W, r = self._equations(point)
        factorized = self._factors(W)
        if factorized.is_singular:
            raise self._singular(point, factorized)
        return factorized, factorized.solve(r[:, 0])

    def _singular(self, point: _Lists, factorized: Factors) -> NumericalError:
        direction = np.abs(factorized.null_vector())
        names = [str(s) for s in self.system.unknowns]
        loose = [names[i] for i in np.argsort(-direction, kind="stable") if direction[i] > 1e-6]
        shown = ", ".join(loose[:6]) + (", ..." if len(loose) > 6 else "")
        return NumericalError(
            f"The equations of '{self.system.name}' have no unique solution at time {point[0][0]:g}: the matrix that "
            f"multiplies the {len(names)} accelerations and multipliers is singular (reciprocal condition number "
            f"{factorized.rcond:.1e}) and leaves {shown} undetermined. Constraints depend on each other at this "
            f"point, or a mass is missing: choose another point, drop the redundant constraints or add the mass.",
            condition_number=1.0 / factorized.rcond if factorized.rcond > 0 else float("inf"),
            variable=loose[0],
        )

    @cached_property
    def _equations(self) -> _CompiledMatrices:
        system = self.system
        n = len(system.unknowns)
        return _CompiledMatrices(
            self._arguments[:4], [matrix_entries(system.matrix, n), _column(system.right_hand_side)]
        )

    @cached_property
    def _right_sides(self) -> _CompiledMatrices:
        return _CompiledMatrices(self._arguments, [_column(self.system.derivatives), _column(self.system.outputs)])

    @cached_property
    def _partials(self) -> _CompiledMatrices:
        slopes = partials_of(self.system)
        blocks = [slopes.e_s, slopes.f_s, slopes.f_w, slopes.c_s, slopes.c_w]
        return _CompiledMatrices(self._arguments, blocks)

    @cached_property
    def _arguments(self) -> tuple[Sequence[Symbol], ...]:
        system = self.system
        return ((system.time,), system.states, system.inputs, tuple(system.parameters), system.unknowns)


class _CompiledMatrices:
    """Matrices of expressions, evaluated together; constant entries are filled in beforehand.

    Parameters
    ----------
    groups : sequence of sequence of sympy.Symbol
        The arguments, one list of numbers per group.
    blocks : sequence of Entries
        The matrices.
    """

    def __init__(self, groups: Sequence[Sequence[Symbol]], blocks: Sequence[Entries]) -> None:
        self._templates: list[FloatArray] = []
        self._places: list[tuple[list[int], list[int]]] = []
        expressions: list[Any] = []
        for block in blocks:
            template = np.zeros(block.shape)
            rows: list[int] = []
            columns: list[int] = []
            for i, j, expression in zip(block.rows, block.columns, block.expressions, strict=True):
                if expression.is_number:
                    template[i, j] = float(expression)
                    continue
                rows.append(i)
                columns.append(j)
                expressions.append(expression)
            self._templates.append(template)
            self._places.append((rows, columns))
        self._function = _CompiledList(groups, expressions)

    def __call__(self, arguments: _Lists) -> list[FloatArray]:
        entries = self._function(arguments)
        matrices: list[FloatArray] = []
        done = 0
        for template, (rows, columns) in zip(self._templates, self._places, strict=True):
            matrix = template.copy()
            matrix[rows, columns] = entries[done : done + len(rows)]
            done += len(rows)
            matrices.append(matrix)
        return matrices


class _CompiledList:
    """Expressions as one function with common subexpressions taken out.

    Python's ``math`` is quick on single numbers but raises outside a function's domain; the same
    expressions through NumPy then say which of them is NaN.
    """

    def __init__(self, groups: Sequence[Sequence[Symbol]], expressions: Sequence[Any]) -> None:
        import sympy

        places = [
            (symbol, sympy.Symbol(f"{letter}_{i}", real=True))
            for letter, group in zip("txupw", groups, strict=False)
            for i, symbol in enumerate(group)
        ]
        plain = dict(places)
        self._groups = [[plain[symbol] for symbol in group] for group in groups]
        self._expressions = [expression.xreplace(plain) for expression in expressions]

    def __call__(self, arguments: _Lists) -> FloatArray:
        if not self._expressions:
            return np.empty(0)
        try:
            return np.array(self._by_math(*arguments), dtype=np.float64)
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            with np.errstate(all="ignore"):
                return np.array(self._by_numpy(*(np.array(a) for a in arguments)), dtype=np.float64)

    @cached_property
    def _by_math(self) -> Callable[..., list[float]]:
        return self._compiled("math")

    @cached_property
    def _by_numpy(self) -> Callable[..., list[float]]:
        return self._compiled("numpy")

    def _compiled(self, module: str) -> Callable[..., list[float]]:
        import sympy

        function: Callable[..., list[float]] = sympy.lambdify(
            self._groups, self._expressions, modules=module, cse=True, docstring_limit=0
        )
        return function


def _column(expressions: Sequence[Any]) -> Entries:
    """Return a vector as a matrix of one column."""
    return matrix_entries([(e,) for e in expressions], 1)


def _lists(t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> _Lists:
    return [float(t)], x.tolist(), u.tolist(), p.tolist()
