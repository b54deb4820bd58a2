"""Expressions as a straight-line program in which every subexpression is computed once, with its derivatives.

Each operation becomes one statement whose arguments are numbers and symbols only. Equal statements are
one statement (hash-consing), whether they come from a value or from a derivative, so that the cost of
everything here is proportional to the size of the result. Derivatives are carried forward through the
statements with their sparsity, rule by rule: Griewank and Walther, Evaluating Derivatives, chapters 3
and 7. No expression is ever expanded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from fmilin.errors import ModelError

__all__ = ["Atom", "Program"]

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr
Atom = Any  # a symbol of the program or a number

_CONSTANT_BY_PIECES = (sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling)
_NOT_ARITHMETIC = (sympy.Derivative, sympy.Integral, sympy.Subs, sympy.core.function.AppliedUndef)


class Program:
    """A growing list of statements ``symbol = operation(atoms)``.

    Parameters
    ----------
    leaves : mapping of Symbol to str
        The symbols that expressions may contain, and how each is written in the language of the
        program (``m->x[3]``). Their order is the order of the bits of :meth:`reach`.

    Attributes
    ----------
    statements : dict of Symbol to Expr
        In an order in which they can be computed.
    """

    def __init__(self, leaves: Mapping[Symbol, str]) -> None:
        self.leaves = {symbol: sympy.Symbol(text, real=True) for symbol, text in leaves.items()}
        self.statements: dict[Symbol, Expr] = {}
        self._seen: dict[Expr, Atom] = {}
        self._symbols: dict[Expr, Symbol] = {}
        self._reach: dict[Symbol, int] = {leaf: 1 << i for i, leaf in enumerate(self.leaves.values())}

    def add(self, expression: Expr) -> Atom:
        """Return the atom that holds the value of ``expression``, a sympy expression over the leaves.

        Raises
        ------
        ModelError
            When the expression contains an unknown symbol or something that is no arithmetic.
        """
        expression = sympy.sympify(expression, strict=True)
        atom = self._seen.get(expression)
        if atom is None:
            atom = self._seen[expression] = self._translate(expression)
        return atom

    def define(self, symbol: Symbol, expression: Expr) -> None:
        """Let expressions contain ``symbol``, which stands for another expression."""
        self._seen[symbol] = self.add(expression)

    def reach(self, atom: Atom) -> int:
        """Return the set of leaves on which ``atom`` depends, one bit for each."""
        return self._reach.get(atom, 0)

    def product(self, *atoms: Atom) -> Atom:
        """Return the atom that holds the product of atoms."""
        return self._state(sympy.Mul(*atoms))

    def total(self, atoms: Iterable[Atom]) -> Atom:
        """Return the atom that holds the sum of atoms."""
        return self._state(sympy.Add(*atoms))

    def gradients(self, atoms: Sequence[Atom], wanted: Sequence[Symbol]) -> list[dict[int, Atom]]:
        """Return for each of ``atoms`` its non-zero partial derivatives, by position in ``wanted``.

        Parameters
        ----------
        atoms : sequence of Atom
            What :meth:`add` returned.
        wanted : sequence of Symbol
            The leaves, as they were given to the program.
        """
        leaves = [self.leaves[symbol] for symbol in wanted]
        mask = sum(self._reach[leaf] for leaf in leaves)
        known: dict[Symbol, dict[int, Atom]] = {leaf: {i: sympy.S.One} for i, leaf in enumerate(leaves)}
        for symbol in self.needed_by(atoms):
            if self._reach[symbol] & mask:
                known[symbol] = self._gradient(self.statements[symbol], known)
        return [known.get(atom, {}) for atom in atoms]

    def needed_by(self, atoms: Iterable[Atom], done: frozenset[Symbol] | set[Symbol] = frozenset()) -> list[Symbol]:
        """Return the symbols of the statements that ``atoms`` need, in order, those in ``done`` left out."""
        needed: set[Symbol] = set()
        stack = [atom for atom in atoms if atom in self.statements]
        while stack:
            symbol = stack.pop()
            if symbol in needed or symbol in done:
                continue
            needed.add(symbol)
            stack.extend(a for a in self.statements[symbol].free_symbols if a in self.statements)
        return sorted(needed, key=_number)

    def _translate(self, e: Expr) -> Atom:
        """Turn one node of a sympy tree into a statement, its children first."""
        if e.is_Symbol:
            if e not in self.leaves:
                raise ModelError(
                    f"The symbol '{e}' appears in the equations but is neither time, a state, an input, an unknown "
                    f"nor a parameter. Give it a value as a parameter."
                )
            return self.leaves[e]
        if e.is_number and not isinstance(e, sympy.Piecewise):  # stops at the first symbol, unlike free_symbols
            return _number_of(e)
        if isinstance(e, _NOT_ARITHMETIC) or not isinstance(e, sympy.Expr):
            raise ModelError(f"'{_short(e)}' is no arithmetic of plain symbols, so no code can be made from it.")
        if e.is_Add:
            return self._state(sympy.Add(*(self._term(a) for a in e.args)))
        if isinstance(e, sympy.Piecewise):
            branches = [(self.add(value), self._condition(c)) for value, c in e.args]
            return self._state(_piecewise(branches))
        if isinstance(e, sympy.Mod):
            a, b = e.args
            return self.add(a - b * sympy.floor(a / b))
        if isinstance(e, sympy.DiracDelta):
            return sympy.S.Zero
        return self._state(e.func(*(self.add(a) for a in e.args)))

    def _term(self, e: Expr) -> Expr:
        """Return a summand: a number times an atom."""
        coefficient, rest = e.as_coeff_Mul()
        return coefficient * self.add(rest)

    def _condition(self, c: Any) -> Any:
        if isinstance(c, BooleanAtom):
            return c
        if isinstance(c, BooleanFunction):
            return c.func(*(self._condition(a) for a in c.args))
        return c.func(*(self.add(a) for a in c.args))

    def _state(self, operation: Expr) -> Atom:
        """Return the symbol of the statement with this operation over atoms; a new one where there is none."""
        if operation.is_Symbol:
            return operation
        if not operation.free_symbols:
            return _number_of(operation)
        symbol = self._symbols.get(operation)
        if symbol is None:
            symbol = sympy.Symbol(f"c{len(self.statements)}", real=True)
            self._symbols[operation] = symbol
            self.statements[symbol] = operation
            reach = 0
            for argument in operation.free_symbols:
                reach |= self._reach[argument]
            self._reach[symbol] = reach
        return symbol

    def _gradient(self, operation: Expr, known: Mapping[Symbol, dict[int, Atom]]) -> dict[int, Atom]:
        """Return the chain rule for one statement: the sum of partial times gradient over its arguments."""
        if isinstance(operation, sympy.Piecewise):
            return self._gradient_by_pieces(operation, known)
        summands: dict[int, list[Expr]] = {}
        for argument, partial in self._partials(operation, known):
            for i, slope in known[argument].items():
                product = self.product(partial, slope) if not partial.is_Number else partial * slope
                summands.setdefault(i, []).append(product)
        gradient = {i: self.total(terms) for i, terms in summands.items()}
        return {i: atom for i, atom in sorted(gradient.items()) if atom != 0}

    def _gradient_by_pieces(self, operation: Expr, known: Mapping[Symbol, dict[int, Atom]]) -> dict[int, Atom]:
        pieces = [(known.get(value, {}), condition) for value, condition in operation.args]
        columns = sorted({i for slopes, _ in pieces for i in slopes})
        return {i: self._state(_piecewise([(s.get(i, sympy.S.Zero), c) for s, c in pieces])) for i in columns}

    def _partials(self, operation: Expr, wanted: Mapping[Symbol, object]) -> list[tuple[Symbol, Atom]]:
        """Return the non-zero partial derivatives of one statement for those of its arguments that are ``wanted``."""
        if isinstance(operation, _CONSTANT_BY_PIECES):
            return []
        if operation.is_Add:
            terms = [a.as_coeff_Mul() for a in operation.args if not a.is_Number]
            return [(symbol, coefficient) for coefficient, symbol in terms if symbol in wanted]
        arguments = [a for a in sorted(operation.free_symbols, key=_number) if a in wanted]
        partials = [(a, self._partial(operation, a)) for a in arguments]
        return [(a, partial) for a, partial in partials if partial != 0]

    def _partial(self, operation: Expr, argument: Symbol) -> Atom:
        if operation.is_Mul and argument in operation.args:
            return self.product(*(f for f in operation.args if f != argument))
        partial = operation.diff(argument)
        if partial.has(*_NOT_ARITHMETIC):
            raise ModelError(
                f"The function '{type(operation).__name__}' has no known derivative, so exact directional "
                f"derivatives cannot be made. Build without them, or write it with other functions."
            )
        return self._add_flat(partial)

    def _add_flat(self, expression: Expr) -> Atom:
        """Add an expression over symbols of the program, as the rules of differentiation leave them."""
        if expression.is_Symbol:
            return expression
        if not expression.free_symbols:
            return _number_of(expression)
        if isinstance(expression, sympy.DiracDelta):
            return sympy.S.Zero
        return self._state(expression.func(*(self._add_flat(a) for a in expression.args)))


def _piecewise(branches: list[tuple[Atom, Any]]) -> Expr:
    """Return a case distinction that has a value in every case: NaN where the author gave none."""
    if branches[-1][1] != sympy.true:
        branches = [*branches, (sympy.nan, sympy.true)]
    return sympy.Piecewise(*branches, evaluate=False)


def _number_of(e: Expr) -> Atom:
    """Return a number as an Integer, a Rational or a double."""
    if e.is_Rational or e in (sympy.nan, sympy.oo, -sympy.oo):
        return e
    try:
        return sympy.Float(float(e.evalf(20)), 17)
    except (TypeError, ValueError, AttributeError):
        raise ModelError(f"'{_short(e)}' in the equations is no real number.") from None


def _number(symbol: Symbol) -> tuple[int, int, str]:
    """Return what sorts symbols: leaves by name, then statements by age."""
    name = symbol.name
    return (1, int(name[1:]), "") if name[1:].isdigit() and name[0] == "c" else (0, 0, name)


def _short(e: Any) -> str:
    text = str(e)
    return text if len(text) <= 80 else text[:77] + "..."
