"""Small changes of what Python code means: another sign, comparison, constant or order, and statements left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "mutants"]

COMPARED = {ast.Lt: ("<", ">="), ast.LtE: ("<=", ">"), ast.Eq: ("==", "!="), ast.Is: ("is", "is not")}
COMPARED |= {ast.Gt: (">", "<="), ast.GtE: (">=", "<"), ast.NotEq: ("!=", "=="), ast.IsNot: ("is not", "is")}
COMPARED |= {ast.In: ("in", "not in"), ast.NotIn: ("not in", "in")}
CALLED = {"min": "max", "minimum": "maximum", "any": "all", "argmin": "argmax", "floor": "ceil", "sin": "cos"}
CALLED |= {new: old for old, new in CALLED.items()}
UNSEEN = ("annotation", "returns", "decorator_list", "bases", "exc", "type_params")
"""Parts of the syntax tree that mean nothing for numbers."""

FINE = 0.01
"""Of smaller constants, which are tolerances, none decides by a factor of two."""


@dataclass(frozen=True)
class Mutant:
    """The bytes of a source from ``start`` to ``end`` replaced, in the statement that begins at the first of lines."""

    path: str
    lines: range
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[-1]}: {' '.join(self.before.split())} -> {self.after}"


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield the changes of meaning of one file."""
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for node, first in _meant(ast.parse(source), 1):
        for place, after in _changes(node):
            start = begins[place.lineno - 1] + place.col_offset
            end = begins[(place.end_lineno or place.lineno) - 1] + (place.end_col_offset or 0)
            before = source[start:end].decode()
            same = {"".join(text.split()) for text in (before, f"({before})")}
            if "".join(after.split()) not in same:
                yield Mutant(path, range(first, place.lineno + 1), start, end, before, after)


def _meant(node: ast.AST, first: int) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes that may change, each with the first line of its statement."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    exported = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    checked = isinstance(node, ast.keyword) and node.arg == "strict"
    if docstring or exported or checked or isinstance(node, (ast.JoinedStr, ast.Assert)):
        return
    first = node.lineno if isinstance(node, ast.stmt) else first
    yield node, first
    for name, field in ast.iter_fields(node):
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST) and name not in UNSEEN:
                yield from _meant(child, first)


def _changes(node: Any) -> Iterator[tuple[Any, str]]:  # noqa: C901 - one case for each kind
    """Yield what may change in a node, and into what."""
    match node:
        case ast.Compare(left, [op], [right]):
            (sign, opposite), one, other = COMPARED[type(op)], f"({ast.unparse(left)})", f"({ast.unparse(right)})"
            yield node, f"{one} {opposite} {other}"
            if sign[0] in "<>" and (one.startswith("(len(") or other[1:-1].isdecimal()):
                yield node, f"{one} {sign[0] if sign[1:] else sign + '='} {other}"
        case ast.BinOp(left, ast.Add() | ast.Sub() as op, right):
            yield node, f"({ast.unparse(left)} {'-' if isinstance(op, ast.Add) else '+'} ({ast.unparse(right)}))"
            yield node, f"({ast.unparse(left)})"
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.Pow() | ast.BitAnd() | ast.BitOr() as op, right):
            yield node, f"({ast.unparse(left)})"
            if isinstance(op, (ast.Mult, ast.BitAnd, ast.BitOr)):
                yield node, f"({ast.unparse(right)})"
        case ast.BoolOp(op, [one, *others]):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({ast.unparse(v)})' for v in node.values)})"
            yield node, f"({ast.unparse(one)})"
            yield node, f"({ast.unparse(others[-1])})"
        case ast.UnaryOp(_, operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.If(test) | ast.IfExp(test) | ast.While(test) if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
            yield test, f"not ({ast.unparse(test)})"
        case ast.Constant(bool() as value):
            yield node, str(not value)
        case ast.Constant(int() | float() as value):
            new = [value + 1, *[2 * value] * (abs(value) > FINE), *[0] * (value != 0)]
            yield from ((node, repr(other)) for other in dict.fromkeys(new))
        case ast.Slice(lower, upper, None) if lower or upper:
            one, other = ("" if side is None else ast.unparse(side) for side in (lower, upper))
            yield from ((node, f"{new}") for new in (f"{one}:", f":{other}", f"{one or 0} + 1:{other}"))
        case ast.Call(function, [*rest, one, other]) if ast.unparse(function).rpartition(".")[2] not in CALLED:
            if not {type(one), type(other)} & {ast.Starred, ast.Constant}:
                yield node, ast.unparse(ast.Call(function, [*rest, other, one], node.keywords))
        case ast.Return(ast.expr()):
            yield node, "return None"
        case ast.Name("min" | "max" | "any" | "all" as name):
            yield node, CALLED[name]
        case ast.Attribute(_, name) if name in CALLED:
            yield node, ast.unparse(node)[: -len(name)] + CALLED[name]
        case ast.Assign([ast.Subscript() | ast.Attribute()]) | ast.Expr() | ast.AugAssign() | ast.Raise():
            yield node, "pass"
        case ast.Continue() | ast.Break():
            yield node, "pass"
