"""The instructions of a CasADi function as C statements, in functions short enough for compilers.

As one function, as CasADi prints it, they take gcc three times as long (15.7 and 5 s for the bicycle's Jacobians).
"""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from fmilin.errors import ModelError

WIDTH = 116


def c_string(text: str) -> str:
    """Return ``text`` as a C string literal in UTF-8."""
    plain = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode("utf-8")]
    return '"' + "".join(plain) + '"'


def wrap_items(items: Iterable[str]) -> str:
    """Return items with commas, in lines of readable length."""
    return textwrap.fill(", ".join(items), WIDTH, break_long_words=False, break_on_hyphens=False)


def indent_statement(line: str, first: str, continuation: str) -> str:
    """Return a statement in lines of readable length."""
    if len(first) + len(line) <= WIDTH:
        return f"{first}{line}\n"
    words = textwrap.TextWrapper(
        WIDTH, first, continuation, break_long_words=False, break_on_hyphens=False
    )  # 1e-05 is one
    return words.fill(line) + "\n"


Function = Any  # casadi.Function: casadi ships no types
MAX_STATEMENTS_PER_FUNCTION = 200  # compilers take more than proportional time for long functions
MAX_INLINE_CHARACTERS = (
    60  # characters of an operand that is written where it is used instead of a statement of its own
)

_OPERATIONS: Mapping[int, str] = {
    ca.OP_ASSIGN: "{0}", ca.OP_LIFT: "{0}",
    ca.OP_ADD: "({0} + {1})", ca.OP_SUB: "({0} - {1})", ca.OP_MUL: "({0} * {1})", ca.OP_DIV: "({0} / {1})",
    ca.OP_NEG: "(-{0})", ca.OP_TWICE: "(2.0 * {0})", ca.OP_INV: "(1.0 / {0})", ca.OP_SQ: "({0} * {0})",
    ca.OP_SQRT: "sqrt({0})", ca.OP_POW: "pow({0}, {1})", ca.OP_CONSTPOW: "pow({0}, {1})",
    ca.OP_EXP: "exp({0})", ca.OP_EXPM1: "expm1({0})", ca.OP_LOG: "log({0})", ca.OP_LOG1P: "log1p({0})",
    ca.OP_SIN: "sin({0})", ca.OP_COS: "cos({0})", ca.OP_TAN: "tan({0})",
    ca.OP_ASIN: "asin({0})", ca.OP_ACOS: "acos({0})", ca.OP_ATAN: "atan({0})", ca.OP_ATAN2: "atan2({0}, {1})",
    ca.OP_SINH: "sinh({0})", ca.OP_COSH: "cosh({0})", ca.OP_TANH: "tanh({0})",
    ca.OP_ASINH: "asinh({0})", ca.OP_ACOSH: "acosh({0})", ca.OP_ATANH: "atanh({0})",
    ca.OP_HYPOT: "hypot({0}, {1})", ca.OP_ERF: "erf({0})", ca.OP_FABS: "fabs({0})",
    ca.OP_SIGN: "({0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0})", ca.OP_COPYSIGN: "copysign({0}, {1})",
    ca.OP_FLOOR: "floor({0})", ca.OP_CEIL: "ceil({0})", ca.OP_FMOD: "fmod({0}, {1})",
    ca.OP_REMAINDER: "remainder({0}, {1})", ca.OP_FMIN: "fmin({0}, {1})", ca.OP_FMAX: "fmax({0}, {1})",
    ca.OP_LT: "({0} < {1})", ca.OP_LE: "({0} <= {1})", ca.OP_EQ: "({0} == {1})", ca.OP_NE: "({0} != {1})",
    ca.OP_NOT: "(!{0})", ca.OP_AND: "({0} && {1})", ca.OP_OR: "({0} || {1})",
    ca.OP_IF_ELSE_ZERO: "({0} ? {1} : 0.0)",
}  # fmt: skip


class _ConstantText(str):
    """The C text of a number."""

    __slots__ = ()


@dataclass(slots=True)
class _Statement:
    """An operation on numbers of earlier instructions and C text, or what is assigned to a target."""

    number: int
    stage: int
    operation: int
    operands: tuple[int | str, ...]
    target: str = ""
    piece: int = -1


class Statements:
    """Print stages of a computation as C functions called in order, each instruction in the first stage that needs it.

    ``stages``: for each, the results that it assigns, by number, and what to. ``array``: where in C values live
    that more than one piece needs. A number type other than ``double`` has ``ALL``, which makes one of a constant.
    """

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Sequence[str]],
        stages: Mapping[str, Mapping[int, Sequence[str]]],
        *,
        arguments: Sequence[str],
        array: str,
        number: str = "double",
    ) -> None:
        self._stages, self._declared, self._array = tuple(stages), ", ".join(arguments), array
        self._number = number
        self._passed = ", ".join(a.split()[-1].lstrip("*") for a in arguments)
        targets = {result: (k, texts) for k, stage in enumerate(stages.values()) for result, texts in stage.items()}
        self._code = _instructions(function, inputs, targets, len(stages))
        self._assign_stages()
        self._pieces = list(self._split())
        uses: Counter[int] = Counter()  # in the piece that makes it
        stored: set[int] = set()  # in other pieces
        for i in self._code:
            for k in _list_operands(i) if i.piece >= 0 else ():
                if self._code[k].piece == i.piece:
                    uses[k] += _OPERATIONS[i.operation].count("{0}")
                else:
                    stored.add(k)
        self._uses, self._stored_at = uses, {k: n for n, k in enumerate(sorted(stored))}

    @property
    def stored(self) -> int:
        """How many numbers the array holds."""
        return len(self._stored_at)

    @property
    def instructions(self) -> int:
        """How many instructions the functions have together."""
        return len(self._code)

    def functions(self) -> Iterator[str]:
        """Yield the C functions."""
        for stage, name in enumerate(self._stages):
            pieces = [piece for piece in self._pieces if piece[0].stage == stage]
            names = [name] if len(pieces) == 1 else [f"{name}_{k}" for k in range(len(pieces))]
            for piece_name, piece in zip(names, pieces, strict=True):
                yield self._function(piece_name, self._body(piece))
            if len(pieces) != 1:
                calls = [f"{piece_name}({self._passed});" for piece_name in names]
                yield self._function(name, calls or [f"(void){a};" for a in self._passed.split(", ")])

    def _assign_stages(self) -> None:
        """Move each instruction to the first stage that needs it; what none needs goes."""
        for i in reversed(self._code):
            for k in _list_operands(i):
                self._code[k].stage = min(self._code[k].stage, i.stage)

    def _split(self) -> Iterator[list[_Statement]]:
        number = 0
        for stage in range(len(self._stages)):
            members = [i for i in self._code if i.stage == stage]
            for start in range(0, len(members), MAX_STATEMENTS_PER_FUNCTION):
                piece = members[start : start + MAX_STATEMENTS_PER_FUNCTION]
                for i in piece:
                    i.piece = number
                number += 1
                yield piece

    def _body(self, piece: Sequence[_Statement]) -> list[str]:
        lines = []
        texts: dict[int, str] = {}
        for i in piece:
            k = i.number
            text = _OPERATIONS[i.operation].format(*(self._operand(o, texts) for o in i.operands))
            if i.target:
                is_integer = isinstance(i.operands[0], _ConstantText) and self._number != "double"
                lines.append(f"{i.target} = {f'ALL({text})' if is_integer else _bare(text)};")
            elif self._uses[k] == 1 and k not in self._stored_at and len(text) <= MAX_INLINE_CHARACTERS:
                texts[k] = text
            else:
                texts[k] = f"c{k}"
                stored = f"{self._array}[{self._stored_at[k]}] = " if k in self._stored_at else ""
                lines.append((f"const {self._number} c{k} = " if self._uses[k] else "") + f"{stored}{_bare(text)};")
        return lines

    def _operand(self, operand: int | str, texts: Mapping[int, str]) -> str:
        if isinstance(operand, str):
            return operand
        return texts[operand] if operand in texts else f"{self._array}[{self._stored_at[operand]}]"

    def _function(self, name: str, lines: Iterable[str]) -> str:
        body = "".join(indent_statement(line, "    ", "        ") for line in lines)
        return f"PIECE {name}({self._declared})\n{{\n{body}}}\n"


def _instructions(
    function: Function, inputs: Sequence[Sequence[str]], targets: Mapping[int, tuple[int, Sequence[str]]], latest: int
) -> list[_Statement]:
    """Return what a function does, with the results that are wanted as targets."""
    register_contents: dict[int, int | str] = {}  # what is in each register: an instruction's number, or text
    code: list[_Statement] = []
    for k in range(function.n_instructions()):
        operation, into = function.instruction_id(k), function.instruction_output(k)
        if operation == ca.OP_CONST:
            register_contents[into[0]] = _ConstantText(_write_c_number(function.instruction_constant(k)))
        elif operation == ca.OP_INPUT:
            argument, entry = function.instruction_input(k)
            register_contents[into[0]] = inputs[argument][entry]
        elif operation == ca.OP_OUTPUT:
            stage, texts = targets[into[0]]
            value = register_contents[function.instruction_input(k)[0]]
            code.append(_Statement(len(code), stage, ca.OP_ASSIGN, (value,), texts[into[1]]))
        elif operation not in _OPERATIONS:
            raise ModelError(f"There is no C code for an operation in the equations (CasADi's number {operation}).")
        else:
            operands = tuple(register_contents[register] for register in function.instruction_input(k))
            register_contents[into[0]] = len(code)
            code.append(_Statement(len(code), latest, operation, operands))
    return code


def _list_operands(i: _Statement) -> Iterator[int]:
    """Yield the instructions that produce the arguments of an instruction."""
    return (k for k in i.operands if isinstance(k, int))


def _bare(text: str) -> str:
    """Return text without the parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for position, symbol in enumerate(text):
        depth += (symbol == "(") - (symbol == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def _write_c_number(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return repr(value) if math.copysign(1.0, value) > 0 else f"({value!r})"
