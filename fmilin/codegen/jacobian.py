"""Partial derivatives of a symbolic system, entry by entry: only what is not zero is ever written down."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.codegen.system import SymbolicSystem

__all__ = ["Entries", "SystemPartials", "matrix_entries", "partials_of", "sparse_jacobian"]

Symbol = Any  # sympy.Symbol
Expr = Any  # sympy.Expr


@dataclass(frozen=True)
class Entries:
    """The nonzero entries of a matrix of expressions.

    Parameters
    ----------
    shape : tuple of int
        Rows and columns of the matrix.
    rows, columns : tuple of int
        Where the entries stand.
    expressions : tuple of sympy.Expr
        What they are.
    """

    shape: tuple[int, int]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    expressions: tuple[Expr, ...]

    @classmethod
    def collect(cls, shape: tuple[int, int], entries: Iterable[tuple[int, int, Expr]]) -> Entries:
        """Gather ``(row, column, expression)`` triples."""
        triples = list(entries)
        return cls(shape, tuple(e[0] for e in triples), tuple(e[1] for e in triples), tuple(e[2] for e in triples))


@dataclass(frozen=True)
class SystemPartials:
    """First derivatives of a system x' = f(s, w), c(s, w), e(s, w) = r(s) - W(s) w, with s = (x, u).

    Implicit differentiation of W w = r gives dw = W^-1 e_s ds, with w held while e is differentiated; then
    dx' = f_s ds + f_w dw and dc = c_s ds + c_w dw.
    """

    e_s: Entries
    """Shape (nw, N + nu)."""
    f_s: Entries
    """Shape (N, N + nu)."""
    f_w: Entries
    """Shape (N, nw)."""
    c_s: Entries
    """Shape (ny, N + nu)."""
    c_w: Entries
    """Shape (ny, nw)."""


def sparse_jacobian(expressions: Sequence[Expr], symbols: Sequence[Symbol]) -> Entries:
    """Return d expressions / d symbols without its zeros.

    Raises
    ------
    UsageError
        When sympy knows no derivative of a function in the expressions.
    """
    column = {symbol: j for j, symbol in enumerate(symbols)}
    found: list[tuple[int, int, Expr]] = []
    for i, expression in enumerate(expressions):
        places = sorted(column[s] for s in expression.free_symbols if s in column)
        for j in places:
            slope = expression.diff(symbols[j])
            if slope != 0:
                found.append((i, j, slope))
    _refuse_unevaluated(found, expressions, symbols)
    return Entries.collect((len(expressions), len(symbols)), found)


def matrix_entries(matrix: Sequence[Sequence[Expr]], columns: int) -> Entries:
    """Return the entries of ``matrix``, (rows, ``columns``), that are not zero."""
    found = ((i, j, entry) for i, row in enumerate(matrix) for j, entry in enumerate(row) if entry != 0)
    return Entries.collect((len(matrix), columns), found)


def partials_of(system: SymbolicSystem) -> SystemPartials:
    """Return the first derivatives of ``system`` with respect to states, inputs and unknowns.

    Raises
    ------
    UsageError
        When sympy knows no derivative of a function in the system.
    """
    import sympy

    s = (*system.states, *system.inputs)
    w = system.unknowns
    e = [
        sympy.Add(r, *(-W_ij * w_j for W_ij, w_j in zip(row, w, strict=True) if W_ij != 0))
        for r, row in zip(system.right_hand_side, system.matrix, strict=True)
    ]
    return SystemPartials(
        e_s=sparse_jacobian(e, s),
        f_s=sparse_jacobian(system.derivatives, s),
        f_w=sparse_jacobian(system.derivatives, w),
        c_s=sparse_jacobian(system.outputs, s),
        c_w=sparse_jacobian(system.outputs, w),
    )


def _refuse_unevaluated(
    found: Sequence[tuple[int, int, Expr]], expressions: Sequence[Expr], symbols: Sequence[Symbol]
) -> None:
    import sympy

    for i, j, slope in found:
        if slope.has(sympy.Derivative, sympy.Subs):
            raise UsageError(
                f"The expression '{expressions[i]}' has no derivative with respect to '{symbols[j]}' that sympy can "
                f"write down. Replace the function in it by one that is differentiable."
            )
