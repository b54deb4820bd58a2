"""Arithmetic over a model's variables, as users write it: ``"x^2 + y^2 - L^2"``, ``"pin.x - rod.length*cos(q[1])"``.

The text is never evaluated as Python: of the syntax tree that Python's parser builds of it, only the nodes of a
whitelist become steps of a computation, which a graph or sympy then carries out.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple, Protocol

from fmilin.errors import UsageError
from fmilin.support.dataclass import dataclass

FUNCTIONS: Mapping[str, int] = {
    "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sinh": 1, "cosh": 1, "tanh": 1,
    "exp": 1, "log": 1, "sqrt": 1, "abs": 1, "min": 2, "max": 2,
}  # fmt: skip
"""The functions of the grammar and how many arguments they take (``min`` and ``max``: that many or more)."""

CONSTANTS = ("pi",)

_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^",
}  # fmt: skip

_FOLDED: Mapping[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": math.pow,
}  # fmt: skip
"""Operators between numbers."""

LONGEST_TEXT = 20_000
MAX_NESTING = 200
MAX_TREE_DEPTH = 500
MAX_STEPS = 5000  # of a computation: about three seconds until it and its two derivatives can be evaluated
MAX_EXPONENT = 1000
"""Factors that a power may have: in exact arithmetic ``(3*x)^999999999`` is a number of 477 million digits."""

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


class Arithmetic(Protocol):
    """The target of an expression's translation: sympy's expressions, CasADi's nodes."""

    def number(self, value: float) -> Any:
        """Return a number."""

    def operation(self, name: str, operands: Sequence[Any]) -> Any:
        """Return the result of an operator or function; NaN for a constant part that is not a real number (``1/0``)."""

    def sympy(self, expression: Any, values: Mapping[Any, Any]) -> Any:
        """Return what the sympy ``expression`` means where its symbols have these ``values``."""

    def rate(self, value: Any, rates: Sequence[tuple[Any, Any]]) -> Any:
        """Return the sum of d ``value``/d x times x' over the pairs (x, x')."""


class ExpressionError(UsageError):
    """The text does not follow this grammar from ``position``, counted from 0, on."""

    def __init__(self, message: str, *, text: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.text = text
        self.position = position


class Step(NamedTuple):
    """One step of computing an expression."""

    operation: str
    """``"variable"``, ``"number"``, ``"sympy"``, ``"rate"``, an operator, ``"negative"`` or a function's name."""
    operands: tuple[int, ...] = ()  # numbers of earlier steps
    value: Any = None
    """The variable's name; the number; a sympy expression; for a rate what the derivative of each variable is."""


@dataclass(frozen=True)
class Expression:
    """An expression over named variables."""

    written: str | None  # its text; None where it came from sympy
    names: tuple[str, ...]  # the variables in it, in order of appearance
    # how it is computed, its value last; what appears twice is computed once
    steps: tuple[Step, ...] = field(repr=False, hash=False)

    @cached_property
    def text(self) -> str:
        """As written, or as sympy prints it: of a large model's constraint that takes a while."""
        if self.written is not None:
            return self.written
        if self.steps[-1].operation == "rate":
            return f"der({replace(self, steps=self.steps[:-1]).text})"
        return str(self.steps[-1].value[0]).replace("**", "^")

    def built(self, arithmetic: Arithmetic, variables: Mapping[str, Any]) -> Any:
        """Return what the expression is in an ``arithmetic``, with ``variables[name]`` for every variable."""
        values: list[Any] = []
        for operation, operands, value in self.steps:
            match operation:
                case "variable":
                    values.append(variables[value])
                case "number":
                    values.append(arithmetic.number(value))
                case "sympy":
                    meanings = {symbol: variables[name] for symbol, name in value[1].items()}
                    values.append(arithmetic.sympy(value[0], meanings))
                case "rate":
                    pairs = [(variables[name], variables[rate]) for name, rate in value.items()]
                    values.append(arithmetic.rate(values[operands[0]], pairs))
                case _:
                    values.append(arithmetic.operation(operation, [values[i] for i in operands]))
        return values[-1]

    def to_sympy(self, symbols: Mapping[str, Any]) -> Any:
        """Return the sympy expression, with ``symbols[name]`` for every variable."""
        from fmilin.constraints.in_sympy import InSympy

        return self.built(InSympy(), symbols)

    @property
    def is_variable(self) -> bool:
        """Whether the expression is just one variable."""
        return len(self.steps) == 1 and self.steps[0].operation == "variable"

    @classmethod
    def variable(cls, name: str) -> Expression:
        """Return the expression that is the variable ``name``, whatever characters the name has."""
        return cls(name_in_expression(name), (name,), (Step("variable", value=name),))

    @classmethod
    def from_sympy(cls, expression: Any, names: Mapping[Any, str]) -> Expression:
        """Return a sympy expression as an Expression; ``names`` maps its symbols to variable names."""
        used = {s: names[s] for s in sorted(expression.free_symbols, key=lambda s: names[s])}
        if expression in used:
            return cls(str(expression), tuple(used.values()), (Step("variable", value=used[expression]),))
        return cls(None, tuple(used.values()), (Step("sympy", value=(expression, used)),))

    def renamed(self, new: Callable[[str], str]) -> Expression:
        """Return the same expression over variables of other names."""
        steps = tuple(_rename_step(step, new) for step in self.steps)
        written = None if self.written is None else _rewritten(self.written, new)
        return Expression(written, tuple(map(new, self.names)), steps)

    def minus(self, number: float) -> Expression:
        """Return the expression less a number."""
        last = len(self.steps)
        steps = (*self.steps, Step("number", value=number), Step("-", (last - 1, last)))
        return Expression(f"({self.text}) - ({number!r})", self.names, steps)

    def center_angles(self, values: Mapping[str, float]) -> Expression:
        """Return the expression with each ``atan2`` continued beyond the half turn, around its value at these values.

        Only those are changed that are beyond a quarter of a turn there: the others stay as they are written.
        """
        if not any(step.operation == "atan2" for step in self.steps):
            return self
        import sympy

        numbers = {name: sympy.Float(value) for name, value in values.items() if name in self.names}
        steps: list[Step] = []
        new_positions: list[int] = []  # where the values of the old steps are
        for number, step in enumerate(self.steps):
            moved = step._replace(operands=tuple(new_positions[i] for i in step.operands))
            steps.append(moved)
            if step.operation == "atan2":
                angle = float(replace(self, steps=self.steps[: number + 1]).to_sympy(numbers))
                if abs(angle) > math.pi / 2:
                    steps.pop()
                    _add_centered_angle(steps, moved.operands, angle)
            new_positions.append(len(steps) - 1)
        return replace(self, steps=tuple(steps))

    def rate(self, rates: Mapping[str, str]) -> Expression:
        """Return the time derivative: ``rates`` names the derivative of every variable that moves."""
        moving = {name: rates[name] for name in self.names if name in rates}
        steps = (*self.steps, Step("rate", (len(self.steps) - 1,), moving))
        written = None if self.written is None else f"der({self.written})"
        return Expression(written, tuple(dict.fromkeys((*self.names, *moving.values()))), steps)


def parse(text: str) -> Expression:
    """Parse the arithmetic of the command line; other names than ``pin.x``, ``q[1]``, ``der(v)`` go in backquotes."""
    if not text.strip():
        raise ExpressionError("The expression of the constraint is empty.", text=text)
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(
            f"The expression has {len(text)} characters; the limit is {LONGEST_TEXT}. Split it.", text=text
        )
    source, names = _with_placeholders(text)
    try:
        tree = ast.parse(source, mode="eval").body
    except (RecursionError, MemoryError):
        raise _expression_error(text, 0, "it is too long or nests too deeply") from None
    except (SyntaxError, ValueError) as error:
        position = (getattr(error, "offset", None) or 1) - 1
        raise _expression_error(
            text, min(position, len(text)), "this is not a complete arithmetic expression"
        ) from None
    steps = _Steps(text, names)
    steps.add(tree)
    return Expression(text, tuple(dict.fromkeys(names)), tuple(steps.steps))


def _add_centered_angle(steps: list[Step], operands: tuple[int, ...], angle: float) -> None:
    """Add the steps of ``angle + atan2(y cos - x sin, x cos + y sin)`` with the cosine and the sine of the angle."""
    y, x = operands
    cosine = len(steps)
    steps += [Step("number", value=math.cos(angle)), Step("number", value=math.sin(angle))]
    sine = cosine + 1
    products = len(steps)
    steps += [Step("*", (y, cosine)), Step("*", (x, sine)), Step("*", (x, cosine)), Step("*", (y, sine))]
    sums = len(steps)
    steps += [Step("-", (products, products + 1)), Step("+", (products + 2, products + 3))]
    steps.append(Step("atan2", (sums, sums + 1)))
    steps.append(Step("number", value=angle))
    steps.append(Step("+", (len(steps) - 2, len(steps) - 1)))


def _rename_step(step: Step, new: Callable[[str], str]) -> Step:
    match step.operation:
        case "variable":
            return step._replace(value=new(step.value))
        case "sympy":
            expression, names = step.value
            return step._replace(value=(expression, {symbol: new(name) for symbol, name in names.items()}))
        case "rate":
            return step._replace(value={new(name): new(rate) for name, rate in step.value.items()})
    return step


def _rewritten(text: str, new: Callable[[str], str]) -> str:
    """Return the text of an expression with every variable replaced."""

    def replace_name(match: re.Match[str]) -> str:
        token = match.group()
        is_name = match.lastgroup in ("name", "quoted", "derivative") and token not in (*FUNCTIONS, *CONSTANTS)
        return name_in_expression(new(_unquote(token))) if is_name else token

    return _TOKENS.sub(replace_name, text)


def add_driving_inputs(inputs: Sequence[str], quantity: Expression) -> Expression:
    """Return a variable that says which inputs move it, as they prescribe a motion."""
    named = " + ".join(map(name_in_expression, inputs))
    return parse(f"{name_in_expression(quantity.names[0])} + 0*({named})") if inputs else quantity


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
            raise _expression_error(text, position, f"{text[position]!r} is not part of arithmetic")
        kind, token = match.lastgroup, match.group()
        if kind == "operator":
            depth += {"(": 1, ")": -1}.get(token, 0)
            if depth > MAX_NESTING:
                raise _expression_error(text, position, f"parentheses nest deeper than {MAX_NESTING}")
            source.append("**" if token == "^" else token)
        elif kind == "number":
            source.append((token.lstrip("0") or "0") if token.isdigit() else token)
        elif kind == "name" and (token in FUNCTIONS or token in CONSTANTS):
            source.append(token)
        elif token == "delay" and text[match.end() :].lstrip().startswith("("):
            raise _expression_error(
                text, position, "delay(x, T) stands in equations of OdeModel, DaeModel and LagrangeModel only"
            )
        elif kind in ("name", "quoted", "derivative"):
            names.append(_unquote(token))
            source.append(f"_{len(names) - 1}")
        source.append(" ")
        position = match.end()
    return "".join(source).strip(), names


def _unquote(token: str) -> str:
    """Return the variable's own name: backquotes and the spaces around indices removed."""
    if token.startswith("`") and token.endswith("`"):
        return token[1:-1]
    return f"der({_unquote(token[4:-1].strip())})" if token.startswith("der(") else re.sub(r"\s", "", token)


def _expression_error(text: str, position: int, why: str) -> ExpressionError:
    excerpt = text if len(text) <= 200 else text[max(0, position - 60) : position + 60]
    message = (
        f"Cannot read the expression '{excerpt}' at character {position + 1}: {why}. Allowed are variable names "
        f"(in backquotes if they have unusual characters), numbers, + - * / ^, parentheses, pi and "
        f"{', '.join(FUNCTIONS)}."
    )
    return ExpressionError(message, text=text, position=position)


class _Steps:
    """The steps of a syntax tree, equal ones taken once, and the limits of what an expression may contain."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.steps: dict[Step, int] = {}
        self._text, self._names = text, names
        self._constants: list[float | None] = []
        self._powers: list[float] = []

    def add(self, node: ast.expr, depth: int = 0) -> int:
        """Add the steps of ``node``; return the number of the last one."""
        if depth > MAX_TREE_DEPTH:
            raise _expression_error(self._text, 0, "it nests too deeply")
        value: Any = None
        children: list[ast.expr] = []
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                operation, children = _OPERATORS[type(op)], [left, right]
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.add(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                operation, children = "negative", [operand]
            case ast.Call(func=ast.Name(id=operation), args=children, keywords=[]) if operation in FUNCTIONS:
                self._check_arguments(operation, len(children))
            case ast.Constant(value=value) if type(value) in (int, float):
                operation = "number"
                if abs(value) > sys.float_info.max:  # type: ignore[arg-type]
                    raise _expression_error(self._text, 0, "it contains a number that is too large")
            case ast.Name(id=name) if name in CONSTANTS:
                operation = name
            case ast.Name(id=name) if re.fullmatch(r"_\d+", name):
                operation, value = "variable", self._names[int(name[1:])]
            case _:
                what = "it contains something other than arithmetic, or an operator or function is misplaced"
                raise _expression_error(self._text, 0, what)
        step = Step(operation, tuple(map(self.add, children, repeat(depth + 1))), value)
        if step not in self.steps:
            self._measure(step)
        if len(self.steps) > MAX_STEPS:
            raise _expression_error(self._text, 0, f"it has more than {MAX_STEPS} operations")
        return self.steps.setdefault(step, len(self.steps))

    def _measure(self, step: Step) -> None:
        """Note what a constant step is worth and how many factors its powers have; reject too many: ((x^99)^99)^99."""
        constants, powers = [self._constants[i] for i in step.operands], [self._powers[i] for i in step.operands]
        constant: float | None = None
        power = 1.0
        match step.operation:
            case "number":
                constant, power = float(step.value), 0.0
            case "pi":
                constant, power = math.pi, 0.0
            case "negative":
                constant, power = None if constants[0] is None else -constants[0], powers[0]
            case "+" | "-":
                power = max(powers)
            case "*" | "/":
                power = sum(powers)
            case "^" if constants[1] is not None:
                power = max(powers[0], 1.0) * abs(constants[1])
        if len(constants) == 2 and step.operation in _FOLDED and None not in constants:
            constant, power = math.nan, 0.0
            with suppress(ArithmeticError, ValueError):
                constant = _FOLDED[step.operation](*constants)
        if not power <= MAX_EXPONENT:
            raise _expression_error(self._text, 0, f"its powers have more than {MAX_EXPONENT} factors")
        self._constants.append(constant)
        self._powers.append(power)

    def _check_arguments(self, function: str, argument_count: int) -> None:
        variadic = function in ("min", "max")
        if argument_count != FUNCTIONS[function] and not (variadic and argument_count > 1):
            expected_count = f"{FUNCTIONS[function]}{' or more' if variadic else ''}"
            raise _expression_error(
                self._text, 0, f"{function} takes {expected_count} argument(s), not {argument_count}"
            )
