"""The statements of a program as C functions."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy
from sympy.printing.c import C99CodePrinter
from sympy.printing.codeprinter import PrintMethodNotImplementedError

from fmilin.codegen.program import Atom, Program
from fmilin.errors import ModelError

__all__ = ["Assignment", "Writer", "c_string", "wrapped"]

Symbol = Any  # sympy.Symbol: sympy ships no types
Expr = Any  # sympy.Expr

Assignment = tuple[str, Atom]
"""A place in the struct, as C text, and what goes there."""

STATEMENTS_PER_FUNCTION = 200
"""Compilers take more than proportional time for long functions."""

DEEPEST_INLINING = 6


class Writer:
    """Print stages of a computation, each statement in the first stage that needs it.

    Parameters
    ----------
    program : Program
    stages : mapping of str to sequence of Assignment
        The name of a function and what it assigns. A stage may rely on those before it.

    Attributes
    ----------
    stored : dict of Symbol to int
        Results that more than one function needs, and their places in ``m->v``.
    """

    def __init__(self, program: Program, stages: Mapping[str, Sequence[Assignment]]) -> None:
        self._program = program
        self._pieces = {name: list(pieces) for name, pieces in _split(program, stages)}
        homes = {s: piece for pieces in self._pieces.values() for piece in pieces for s in piece.statements}
        uses: Counter[Symbol] = Counter()
        abroad: set[Symbol] = set()
        for piece in (p for pieces in self._pieces.values() for p in pieces):
            for symbol, times in piece.uses(program):
                uses[symbol] += times
                if homes[symbol] is not piece:
                    abroad.add(symbol)
        self.stored: dict[Symbol, int] = {s: k for k, s in enumerate(s for s in homes if s in abroad)}
        self._inlined = self._choose_inlined(homes, uses)

    def functions(self) -> Iterator[str]:
        """Yield the C functions, all with the argument ``Model *m``.

        Raises
        ------
        ModelError
            When an operation has no C code.
        """
        for name, pieces in self._pieces.items():
            names = [name] if len(pieces) == 1 else [f"{name}_{k}" for k in range(len(pieces))]
            for piece_name, piece in zip(names, pieces, strict=True):
                yield _function(piece_name, self._body(piece))
            if len(pieces) != 1:
                yield _function(name, [f"{piece_name}(m);" for piece_name in names] or ["(void)m;"])

    def _body(self, piece: _Piece) -> list[str]:
        inlined = {s: self._program.statements[s] for s in piece.statements if s in self._inlined}
        elsewhere = {s: f"m->v[{k}]" for s, k in self.stored.items() if s not in piece.statements}
        printer = _printer(inlined, elsewhere)
        lines = []
        for symbol in piece.statements:
            if symbol not in inlined:
                target = f"m->v[{self.stored[symbol]}] = " if symbol in self.stored else ""
                only_stored = symbol in self.stored and symbol not in piece.used_here(self._program)
                declared = "" if only_stored else f"const double {symbol.name} = "
                lines.append(f"{declared}{target}{_text(printer, self._program.statements[symbol])};")
        for target, atom in piece.assignments:
            lines.append(f"{target} = {_text(printer, inlined.get(atom, atom))};")
        return lines

    def _choose_inlined(self, homes: Mapping[Symbol, _Piece], uses: Counter[Symbol]) -> set[Symbol]:
        """Return the statements that are written where their value is used, once."""
        inlined: set[Symbol] = set()
        depth: dict[Symbol, int] = {}
        for symbol in homes:
            arguments = self._program.statements[symbol].free_symbols
            depth[symbol] = 1 + max((depth[a] for a in arguments if a in inlined), default=0)
            if uses[symbol] == 1 and symbol not in self.stored and depth[symbol] < DEEPEST_INLINING:
                inlined.add(symbol)
        return inlined


class _Piece:
    """What becomes one C function."""

    def __init__(self, statements: Sequence[Symbol], assignments: Sequence[Assignment] = ()) -> None:
        self.statements = dict.fromkeys(statements)
        self.assignments = list(assignments)
        self._used: set[Symbol] | None = None

    def uses(self, program: Program) -> Iterator[tuple[Symbol, int]]:
        """Yield the statements whose values are used here, and how often."""
        for symbol in self.statements:
            operation = program.statements[symbol]
            for argument in operation.free_symbols:
                if argument in program.statements:
                    yield argument, _times_written(operation, argument)
        for _, atom in self.assignments:
            if atom in program.statements:
                yield atom, 1

    def used_here(self, program: Program) -> set[Symbol]:
        if self._used is None:
            self._used = {symbol for symbol, _ in self.uses(program)}
        return self._used


def c_string(text: str) -> str:
    """Return ``text`` as a C string literal in UTF-8."""
    plain = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode("utf-8")]
    return '"' + "".join(plain) + '"'


def wrapped(items: Iterable[str]) -> str:
    """Return items with commas, in lines of readable length."""
    return textwrap.fill(", ".join(items), 116, break_long_words=False, break_on_hyphens=False)


def _split(program: Program, stages: Mapping[str, Sequence[Assignment]]) -> Iterator[tuple[str, Iterable[_Piece]]]:
    done: set[Symbol] = set()
    for name, assignments in stages.items():
        statements = program.needed_by((atom for _, atom in assignments), done)
        done.update(statements)
        starts = range(0, len(statements), STATEMENTS_PER_FUNCTION)
        pieces = [_Piece(statements[k : k + STATEMENTS_PER_FUNCTION]) for k in starts]
        homes = {symbol: piece for piece in pieces for symbol in piece.statements}
        elsewhere = [assignment for assignment in assignments if assignment[1] not in homes]
        for target, atom in assignments:
            if atom in homes:
                homes[atom].assignments.append((target, atom))
        starts = range(0, len(elsewhere), STATEMENTS_PER_FUNCTION)
        pieces.extend(_Piece((), elsewhere[k : k + STATEMENTS_PER_FUNCTION]) for k in starts)
        yield name, pieces


def _times_written(operation: Expr, argument: Symbol) -> int:
    """Return 1 where the C text of an operation contains this argument once; powers and cases repeat it."""
    if isinstance(operation, sympy.sign | sympy.Heaviside | sympy.Piecewise):
        return 2
    return 1 if operation.is_Add or (argument in operation.args and not operation.is_Pow) else 2


def _function(name: str, lines: Sequence[str]) -> str:
    body = "\n".join(
        textwrap.fill(line, 116, initial_indent="    ", subsequent_indent="        ", break_long_words=False,
                      break_on_hyphens=False)
        for line in lines
    )  # fmt: skip
    return f"PIECE {name}(Model *m)\n{{\n{body}\n}}\n"


def _text(printer: Any, expression: Expr) -> str:
    try:
        return str(printer._print(expression))
    except PrintMethodNotImplementedError:
        raise ModelError(
            f"There is no C code for the function '{type(expression).__name__}', which appears in the equations. "
            f"Write it with elementary functions."
        ) from None


def _printer(inlined: Mapping[Symbol, Expr], elsewhere: Mapping[Symbol, str]) -> Any:
    class Printer(C99CodePrinter):  # type: ignore[misc]
        def _print_Symbol(self, symbol: Symbol) -> str:
            operation = inlined.get(symbol)
            if operation is None:
                return elsewhere.get(symbol, symbol.name)
            text = self._print(operation)
            return f"({text})" if operation.is_Add or operation.is_Mul or operation.is_Pow else text

        def _print_Float(self, number: Expr) -> str:
            return repr(float(number))

        def _print_Integer(self, number: Expr) -> str:
            return str(number.p) if abs(number.p) < 2**31 else repr(float(number))

        def _print_Pow(self, power: Expr) -> str:
            base, exponent = power.args
            if exponent.is_Rational and exponent.q <= 2 and abs(exponent.p) <= 5:
                whole, half = divmod(abs(exponent.p), exponent.q)
                text = self._print(base)
                factors = "*".join([text] * whole + [f"sqrt({text})"] * half)
                return f"({factors})" if exponent.p > 0 else f"(1.0/({factors}))"
            if exponent.is_Rational and exponent.q > 2:  # no cbrt: a negative base has no real power
                return f"pow({self._print(base)}, {self._print(exponent)})"
            return str(super()._print_Pow(power))

        def _print_Heaviside(self, step: Expr) -> str:
            x = self._print(step.args[0])
            return f"({x} > 0.0 ? 1.0 : ({x} < 0.0 ? 0.0 : 0.5))"

    return Printer({"strict": True})
