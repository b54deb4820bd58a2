"""Arithmetic over a model's variables, as users write it: ``"x^2 + y^2 - L^2"``, ``"pin.x - rod.length*cos(q[1])"``.

The text is never evaluated as Python. Tokens are recognized here, variable names are replaced by
placeholders, Python's own parser builds a syntax tree of what remains, and only the nodes of a
whitelist become a sympy expression, one by one.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fmilin.errors import UsageError

__all__ = ["CONSTANTS", "FUNCTIONS", "Expression", "ExpressionError", "name_in_expression", "parse"]

FUNCTIONS: Mapping[str, int] = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sinh": 1, "cosh": 1, "tanh": 1,
    "exp": 1, "log": 1, "sqrt": 1, "abs": 1, "min": 2, "max": 2,
}  # fmt: skip
"""The functions of the grammar and how many arguments they take (``min`` and ``max``: that many or more)."""

CONSTANTS = ("pi",)

LONGEST_TEXT = 20_000
DEEPEST_NESTING = 200
DEEPEST_TREE = 500

_NAME = r"[^\W\d]\w*(?:\[[\d,\s]*\])?"
_TOKENS = re.compile(
    rf"""(?P<space>\s+)
    | (?P<quoted>`[^`]+`)
    | (?P<derivative>der\(\s*(?:`[^`]+`|{_NAME}(?:\.{_NAME})*)\s*\))
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>{_NAME}(?:\.{_NAME})*)
    | (?P<operator>\*\*|[-+*/^(),])""",
    re.VERBOSE,
)
_PLAIN_NAME = re.compile(rf"(?:der\({_NAME}(?:\.{_NAME})*\)|{_NAME}(?:\.{_NAME})*)")


class ExpressionError(UsageError):
    """The text is no arithmetic of this grammar.

    Parameters
    ----------
    message : str
        The paragraph for the reader.
    text : str
        The whole expression.
    position : int
        Where it stops making sense, counted from 0.
    """

    def __init__(self, message: str, *, text: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.text = text
        self.position = position


@dataclass(frozen=True)
class Expression:
    """An expression over named variables.

    Parameters
    ----------
    text : str
        As written.
    names : tuple of str
        The variables in it, in order of appearance.
    build : callable
        Takes ``{name: sympy expression}`` and returns the sympy expression.
    """

    text: str
    names: tuple[str, ...]
    build: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)

    def to_sympy(self, symbols: Mapping[str, Any]) -> Any:
        """Return the sympy expression, with ``symbols[name]`` for every variable."""
        return self.build(symbols)

    @property
    def is_variable(self) -> bool:
        """Whether the expression is just one variable."""
        return len(self.names) == 1 and _unquoted(self.text.strip()) == self.names[0]

    @classmethod
    def variable(cls, name: str) -> Expression:
        """Return the expression that is the variable ``name``, whatever characters the name has."""
        return cls(name_in_expression(name), (name,), lambda symbols: symbols[name])

    @classmethod
    def from_sympy(cls, expression: Any, names: Mapping[Any, str]) -> Expression:
        """Return a sympy expression as an Expression; ``names`` maps its symbols to variable names."""
        symbols = sorted(expression.free_symbols, key=lambda s: names[s])
        used = {s: names[s] for s in symbols}

        def build(replacements: Mapping[str, Any]) -> Any:
            return expression.xreplace({s: replacements[n] for s, n in used.items()})

        text = str(expression).replace("**", "^")
        return cls(text, tuple(used.values()), build)


def parse(text: str) -> Expression:
    """Parse the arithmetic grammar of the command line.

    Names are chains of identifiers with integer indices (``pin.x``, ``q[1]``, ``der(v)``); any other
    name goes in backquotes. ``+ - * / ^ **``, numbers, parentheses, ``pi`` and the functions of
    :data:`FUNCTIONS` are the whole grammar.

    Parameters
    ----------
    text : str
        The expression.

    Returns
    -------
    Expression

    Raises
    ------
    ExpressionError
        When the text is no such arithmetic; the message shows where.

    Examples
    --------
    >>> parse("x^2 + pin.y**2 - `strange name`").names
    ('x', 'pin.y', 'strange name')
    """
    if not text.strip():
        raise ExpressionError("The expression is empty.", text=text)
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(
            f"The expression has {len(text)} characters; {LONGEST_TEXT} are the limit. Split it.", text=text
        )
    source, names = _with_placeholders(text)
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        position = (getattr(error, "offset", None) or 1) - 1
        raise _refusal(text, min(position, len(text)), "this is no complete arithmetic expression") from None
    _check(tree, text, len(names))
    order = tuple(dict.fromkeys(names))
    return Expression(text, order, lambda symbols: _Builder(names, symbols).build(tree))


def name_in_expression(name: str) -> str:
    """Return ``name`` as it has to be written inside an expression: in backquotes where it must be."""
    plain = _PLAIN_NAME.fullmatch(name) and not re.search(r"\s", name) and name not in (*FUNCTIONS, *CONSTANTS)
    return name if plain else f"`{name}`"


def _with_placeholders(text: str) -> tuple[str, list[str]]:
    """Replace every variable by an identifier of equal meaning for Python's parser; return the names by number."""
    source: list[str] = []
    names: list[str] = []
    depth = position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise _refusal(text, position, f"{text[position]!r} does not belong to arithmetic")
        kind, token = match.lastgroup, match.group()
        if kind == "operator":
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth > DEEPEST_NESTING:
                raise _refusal(text, position, f"parentheses nest deeper than {DEEPEST_NESTING}")
            source.append("**" if token == "^" else token)
        elif kind == "number":
            source.append(_decimal(token))
        elif kind == "name" and (token in FUNCTIONS or token in CONSTANTS):
            source.append(token)
        elif kind in ("name", "quoted", "derivative"):
            names.append(_unquoted(token))
            source.append(f"_{len(names) - 1}")
        source.append(" ")
        position = match.end()
    return "".join(source).strip(), names


def _decimal(token: str) -> str:
    """Write an integer without the leading zeros that Python's parser refuses."""
    return (token.lstrip("0") or "0") if token.isdigit() else token


def _unquoted(token: str) -> str:
    """Return the variable's own name: backquotes and the spaces around indices removed."""
    if token.startswith("`") and token.endswith("`"):
        return token[1:-1]
    if token.startswith("der("):
        return f"der({_unquoted(token[4:-1].strip())})"
    return re.sub(r"\s", "", token)


def _refusal(text: str, position: int, why: str) -> ExpressionError:
    shown = text if len(text) <= 200 else text[max(0, position - 60) : position + 60]
    return ExpressionError(
        f"Cannot read the expression '{shown}' at character {position + 1}: {why}. Allowed are variable names "
        f"(in backquotes if they have unusual characters), numbers, + - * / ^, parentheses, pi and "
        f"{', '.join(FUNCTIONS)}.",
        text=text,
        position=position,
    )


def _check(node: ast.expr, text: str, count: int, depth: int = 0) -> None:
    """Let only the whitelist pass: one place that decides what an expression may contain."""
    if depth > DEEPEST_TREE:
        raise _refusal(text, 0, "it nests too deeply")
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow(), right=right):
            children = [left, right]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
            children = [operand]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            variadic = name in ("min", "max")
            if len(args) != FUNCTIONS[name] and not (variadic and len(args) > 1):
                wanted = f"{FUNCTIONS[name]}{' or more' if variadic else ''}"
                raise _refusal(text, 0, f"{name} takes {wanted} argument(s), not {len(args)}")
            children = list(args)
        case ast.Constant(value=value) if type(value) in (int, float):
            if abs(value) > sys.float_info.max:  # type: ignore[arg-type]
                raise _refusal(text, 0, "it contains a number that is too large")
            children = []
        case ast.Name(id=name) if name in CONSTANTS or re.fullmatch(r"_\d+", name):
            children = []
        case _:
            raise _refusal(
                text, 0, "it contains something that is no arithmetic, or an operator or function is misplaced"
            )
    for child in children:
        _check(child, text, count, depth + 1)


class _Builder:
    """From a checked syntax tree to a sympy expression."""

    def __init__(self, names: list[str], symbols: Mapping[str, Any]) -> None:
        self.names = names
        self.symbols = symbols

    def build(self, node: ast.expr) -> Any:
        """Return the sympy expression of ``node``; a constant part that is no real number (``1/0``) is NaN."""
        import sympy

        built = self._built(node)
        return sympy.nan if built.is_number and not _is_finite(built) else built

    def _built(self, node: ast.expr) -> Any:
        import sympy

        match node:
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self.build(left), self.build(right)
                match op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.Div():
                        return a / b
                    case _:
                        return _power(a, b)
            case ast.UnaryOp(op=op, operand=operand):
                return -self.build(operand) if isinstance(op, ast.USub) else self.build(operand)
            case ast.Call(func=ast.Name(id=name), args=args):
                function = {"abs": "Abs", "min": "Min", "max": "Max"}.get(name, name)
                built = [self.build(a) for a in args]
                return sympy.nan if sympy.nan in built else getattr(sympy, function)(*built)
            case ast.Constant(value=value):
                return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value, 17)
            case ast.Name(id="pi"):
                return sympy.pi
            case ast.Name(id=name):
                return self.symbols[self.names[int(name[1:])]]
            case _:  # pragma: no cover - _check lets nothing else pass
                raise AssertionError(type(node))


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(float(number))
    except (TypeError, ValueError, OverflowError):  # imaginary, undefined, or too large even to be written down
        return False


def _power(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent``; two numbers make a double, so that ``9^9^9^9`` cannot exhaust the memory."""
    import sympy

    if not (base.is_number and exponent.is_number):
        return sympy.Pow(base, exponent)
    try:
        return sympy.Float(float(base) ** float(exponent), 17)
    except (OverflowError, ZeroDivisionError, TypeError):
        return sympy.nan
