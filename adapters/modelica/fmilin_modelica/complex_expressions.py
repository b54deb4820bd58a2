"""Expressions with complex numbers, read as two expressions with real ones.

The functions of ``Modelica.ComplexMath`` and the operators of ``Complex`` are written out. The module has some
lines above 400: the parser of an expression is one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fmilin_modelica.complex_arithmetic import (
    FUNCTIONS,
    NotExpandedError,
    Value,
    apply_function,
    combine,
    group,
    negate,
    scale,
    write_parts,
)
from fmilin_modelica.tokens import Token, find_closing, join_tokens, split_list

__all__ = ["Reference", "Types", "parse_expression"]

Reference = Sequence[tuple[str, int]]
"""Parts of a reference, each with the number of dimensions that its subscripts remove."""


class Types(Protocol):
    """What the names of an expression stand for."""

    def find_reference(self, parts: Reference) -> tuple[bool, int]:
        """Return whether a reference is complex, and the number of its dimensions."""

    def is_imaginary_unit(self, parts: Reference) -> bool:
        """Whether a reference is the constant j."""

    def is_constructor(self, function: str) -> bool:
        """Whether a call makes a complex number of two real ones."""

    def returns_complex(self, function: str) -> bool:
        """Whether a function returns a complex number."""

    def inline_function(self, function: str, arguments: Sequence[Sequence[Token]]) -> tuple[list[Token], Types] | None:
        """Return the expression of a function of complex variables; None of other functions."""


_BINARY = [
    {"or"}, {"and"}, {"not"}, {"<", "<=", ">", ">=", "==", "<>"}, {"+", "-", ".+", ".-"}, {"*", "/", ".*", "./"},
    {"^", ".^"},
]  # fmt: skip
_ENDS = {")", "]", "}", ",", ";", "then", "else", "elseif", "loop", "for", "in", "annotation", "if"}


_PARTWISE = {"sum", "fill", "vector", "transpose", "noEvent", "homotopy", "smooth"}
_SCALARS = {"sum", "product", "min", "max", "size", "ndims", "scalar"}


def _find_rank(function: str, values: Sequence[Value]) -> int:
    """Return the number of dimensions of what a function of Modelica returns; others work on each element."""
    if function in _SCALARS:
        return 0
    if function in {"fill", "zeros", "ones"}:
        return len(values) - (function == "fill")
    return 1 if function in {"linspace", "vector"} else max((value.rank for value in values), default=0)


def parse_expression(tokens: Sequence[Token], types: Types) -> Value:
    """Return the value of an expression.

    Raises
    ------
    NotExpandedError
        When it contains complex numbers in a way that is not written out, or is not an expression.
    """
    parser = _Parser(list(tokens), types)
    value = parser.parse(0)
    if parser.place < len(parser.tokens):
        raise NotExpandedError
    return value


class _Parser:
    """Reads an expression by the precedence of its operators."""

    def __init__(self, tokens: list[Token], types: Types) -> None:
        self.tokens = tokens
        self.types = types
        self.indices: list[str] = []
        self.place = 0

    @property
    def word(self) -> str:
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def take(self, word: str) -> None:
        if self.word != word:
            raise NotExpandedError
        self.place += 1

    def parse(self, level: int) -> Value:
        """Read operators of a level of precedence, and those that bind closer."""
        if level == 0 and self.word == "if":
            return self.parse_condition()
        if level == 0:
            return self.parse_range()
        if level == len(_BINARY):
            return self.parse_primary()
        operators = _BINARY[level]
        if self.word in operators and self.word in {"not", "+", "-", ".+", ".-"}:
            value = self.parse_sign(level)
        else:
            value = self.parse(level + 1)
        while self.word in operators and self.word != "not":
            operator = self.word
            self.place += 1
            value = self.combine(operator, value, self.parse(level + 1))
        return value

    def parse_sign(self, level: int) -> Value:
        operator = self.word
        self.place += 1
        value = self.parse(level + 1)
        if operator == "not":
            return replace(value, real=f"not {group(value.real, is_atom=value.is_atom)}", is_atom=False)
        if "-" not in operator:
            return value
        if value.is_complex:
            return negate(value)
        return replace(value, real=f"-{group(value.real, is_atom=value.is_atom)}", is_atom=False)

    def parse_range(self) -> Value:
        first = self.parse(1)
        while self.word == ":":
            self.place += 1
            other = self.parse(1)
            first = Value(f"{first.real}:{other.real}", None, 1, is_changed=first.is_changed or other.is_changed)
        return first

    def combine(self, operator: str, a: Value, b: Value) -> Value:
        is_changed = a.is_changed or b.is_changed
        if not a.is_complex and not b.is_complex:
            left, right = (group(v.real, is_atom=v.is_atom) for v in (a, b))
            rank = max(a.rank, b.rank)
            if operator == "*" and a.rank and b.rank:
                rank = a.rank + b.rank - 2
            spaced = f" {operator} " if operator in {"or", "and", "+", "-"} | _BINARY[3] else operator
            return Value(f"{left}{spaced}{right}", None, rank, is_changed=is_changed)
        return combine(operator, a, b)

    def parse_condition(self) -> Value:
        """Read ``if c then a elseif d then b else e``."""
        branches = []
        self.take("if")
        while True:
            condition = self.parse(0)
            self.take("then")
            branches.append((condition, self.parse(0)))
            if self.word != "elseif":
                break
            self.place += 1
        self.take("else")
        last = self.parse(0)
        values = [value for _, value in branches] + [last]
        is_changed = any(value.is_changed for pair in branches for value in pair) or last.is_changed
        rank = max(value.rank for value in values)
        is_complex = any(value.is_complex for value in values)
        texts = []
        for part in (0, 1) if is_complex else (0,):
            words = "if"
            for condition, value in branches:
                chosen = write_parts(replace(value, rank=rank))[part]
                words += f" {condition.real} then {group(chosen)} elseif"
            texts.append(f"({words.removesuffix(' elseif')} else {group(write_parts(last)[part])})")
        return Value(
            texts[0], texts[1] if is_complex else None, rank, is_atom=True, is_changed=is_changed or is_complex
        )

    def parse_primary(self) -> Value:
        if self.place >= len(self.tokens) or self.word in _ENDS:
            raise NotExpandedError
        token = self.tokens[self.place]
        if token.kind in {"number", "string"} or token.text in {"true", "false", "end", "time"}:
            self.place += 1
            return Value(token.text, is_atom=True)
        if token.text == "(":
            return self.parse_parentheses()
        if token.text == "{":
            return self.parse_array()
        if token.text == "[":
            return self.parse_matrix()
        if token.kind == "name" or token.text == ".":
            return self.parse_reference()
        raise NotExpandedError

    def parse_parentheses(self) -> Value:
        self.take("(")
        value = self.parse(0)
        self.take(")")
        return (
            value if value.is_complex else replace(value, real=group(value.real, is_atom=value.is_atom), is_atom=True)
        )

    def parse_matrix(self) -> Value:
        end = find_closing(self.tokens, self.place)
        words = join_tokens(self.tokens[self.place : end + 1])
        self.place = end + 1
        return Value(words, None, 2, is_atom=True)

    def parse_array(self) -> Value:
        """Read ``{a, b}`` or ``{a[k] for k in 1:n}``."""
        self.take("{")
        values, loop = self.parse_arguments("}")
        self.take("}")
        if any(value.is_complex for value in values):
            real, imaginary = (", ".join(value.parts[part] for value in values) for part in (0, 1))
            return Value(
                f"{{{real}{loop}}}", f"{{{imaginary}{loop}}}", values[0].rank + 1, is_atom=True, is_changed=True
            )
        inner = ", ".join(value.real for value in values)
        is_changed = any(value.is_changed for value in values)
        rank = values[0].rank + 1 if values else 1
        return Value(f"{{{inner}{loop}}}", None, rank, is_atom=True, is_changed=is_changed)

    def parse_arguments(self, closing: str) -> tuple[list[Value], str]:
        """Read values up to a bracket, with the loop behind them: the indices of a loop are real."""
        loop = self.find_loop(closing)
        indices = [
            self.tokens[place].text
            for place in range(loop, len(self.tokens) - 1)
            if loop and self.tokens[place + 1].text == "in" and self.tokens[place].kind == "name"
        ]
        self.indices += indices
        values: list[Value] = []
        while self.word not in {closing, "for"}:
            if values:
                self.take(",")
            values.append(self.parse(0))
        words = ""
        if self.word == "for":
            begin = self.place
            depth = 0
            while depth or self.word != closing:
                if self.place >= len(self.tokens):
                    raise NotExpandedError
                depth += self.word in {"(", "[", "{"}
                depth -= self.word in {")", "]", "}"}
                self.place += 1
            words = f" {join_tokens(self.tokens[begin : self.place])}"
        del self.indices[len(self.indices) - len(indices) :]
        return values, words

    def find_loop(self, closing: str) -> int:
        """Return the place of the ``for`` before the bracket that closes here; 0 without any."""
        place = self.place
        while place < len(self.tokens) and self.tokens[place].text != closing:
            if self.tokens[place].text == "for":
                return place
            place = find_closing(self.tokens, place) + 1 if self.tokens[place].text in {"(", "[", "{"} else place + 1
        return 0

    def parse_reference(self) -> Value:
        """Read a reference or a call."""
        begin = self.place
        parts = []
        if self.word == ".":
            self.place += 1
        while True:
            name = self.word
            self.place += 1
            selected = 0
            if self.word == "[":
                end = find_closing(self.tokens, self.place)
                selected = _count_selected(self.tokens[self.place : end + 1])
                self.place = end + 1
            parts.append((name, selected))
            if self.word != "." or self.place + 1 >= len(self.tokens):
                break
            self.place += 1
        words = join_tokens(self.tokens[begin : self.place])
        if self.word == "(":
            return self.parse_call(words)
        if len(parts) == 1 and name in self.indices:
            return Value(words, is_atom=True)
        if name == "j" and self.types.is_imaginary_unit(parts):
            return Value("0", "1", is_changed=True)
        is_complex, rank = self.types.find_reference(parts)
        if is_complex:
            return Value(f"{words}.re", f"{words}.im", rank, is_atom=True)
        return Value(words, None, rank, is_atom=True)

    def parse_call(self, function: str) -> Value:
        begin = self.place
        name = function.rpartition(".")[2]
        end = find_closing(self.tokens, begin)
        if name == "fromPolar" or self.types.is_constructor(function):
            return self.parse_constructor(name, end)
        if self.find_names(begin, end) or self.tokens[begin + 1].text == "function":
            return self.parse_named_call(function, end)
        inlined = self.types.inline_function(function, split_list(self.tokens[begin + 1 : end]))
        if inlined is not None:
            self.place = end + 1
            return replace(parse_expression(*inlined), is_changed=True)
        self.take("(")
        values, loop = self.parse_arguments(")")
        self.take(")")
        if not any(value.is_complex for value in values):
            if self.types.returns_complex(function):
                raise NotExpandedError
            inner = ", ".join(value.real for value in values)
            is_changed = any(value.is_changed for value in values)
            rank = _find_rank(name, values)
            return Value(f"{function}({inner}{loop})", None, rank, is_atom=True, is_changed=is_changed)
        return self.apply(function, values, loop)

    def apply(self, function: str, values: list[Value], loop: str) -> Value:
        """Return the value of a function of complex numbers."""
        name = function.rpartition(".")[2]
        if name in FUNCTIONS and len(values) == 1:
            return replace(apply_function(name, values[0]), is_changed=True)
        if name in _PARTWISE:
            texts = []
            for part in (0, 1):
                words = [write_parts(v)[part] if v.is_complex else v.real for v in values]
                texts.append(f"{name}({', '.join(words)}{loop})")
            return Value(texts[0], texts[1], _find_rank(name, values), is_atom=True, is_changed=True)
        if self.types.returns_complex(function) or any(value.is_changed for value in values):
            raise NotExpandedError
        names = [v.real.removesuffix(".re") if v.is_complex else v.real for v in values]
        return Value(f"{function}({', '.join(names)})", None, 0, is_atom=True)

    def parse_constructor(self, name: str, end: int) -> Value:
        """Read ``Complex(1, 2)``, ``Complex(1)``, ``fromPolar(len = 1, phi = 2)``."""
        self.take("(")
        values: dict[str, Value] = {}
        names = ["len", "phi"] if name == "fromPolar" else ["re", "im"]
        while self.place < end:
            key = names[min(len(values), 1)]
            if self.place + 1 < len(self.tokens) and self.tokens[self.place + 1].text == "=":
                key = self.word
                self.place += 2
            values[key] = self.parse(0)
            if self.place < end:
                self.take(",")
        self.take(")")
        if set(values) - set(names) or names[0] not in values or any(value.is_complex for value in values.values()):
            raise NotExpandedError
        first, second = (values.get(key, Value("0")) for key in names)
        rank = max(first.rank, second.rank)
        if name != "fromPolar":
            return Value(first.real, second.real, rank, is_changed=True)
        parts = [scale(first.real, f"{f}({second.real})", rank) for f in ("cos", "sin")]
        return Value(parts[0], parts[1], rank, is_changed=True)

    def find_names(self, begin: int, end: int) -> bool:
        """Whether arguments of a call are given by name."""
        depth = 0
        for token in self.tokens[begin : end + 1]:
            depth += token.text in {"(", "[", "{"}
            depth -= token.text in {")", "]", "}"}
            if token.text == "=" and depth == 1:
                return True
        return False

    def parse_named_call(self, function: str, end: int) -> Value:
        """Read ``f(x, n = 2)``: of real numbers, or of complex ones that are variables."""
        if self.types.returns_complex(function):
            raise NotExpandedError
        words = ""
        is_changed = False
        self.take("(")
        while self.place < end:
            begin = self.place
            if self.tokens[self.place + 1].text == "=":
                words += f"{self.word} = "
                self.place += 2
            if self.word == "function" or self.tokens[begin].text == "function":
                raise NotExpandedError
            value = self.parse(0)
            if value.is_complex and value.is_changed:
                raise NotExpandedError
            words += value.real.removesuffix(".re") if value.is_complex else value.real
            is_changed = is_changed or value.is_changed
            if self.place < end:
                self.take(",")
                words += ", "
        self.take(")")
        return Value(f"{function}({words})", None, 0, is_atom=True, is_changed=is_changed)


def _count_selected(tokens: Sequence[Token]) -> int:
    """Return the number of dimensions that subscripts in brackets remove: none by a range."""
    count = depth = 0
    has_range = False
    for token in tokens:
        depth += token.text in {"(", "[", "{"}
        if depth == 1 and token.text in {",", "]"}:
            count += not has_range
            has_range = False
        has_range = has_range or (depth == 1 and token.text == ":")
        depth -= token.text in {")", "]", "}"}
    return count
