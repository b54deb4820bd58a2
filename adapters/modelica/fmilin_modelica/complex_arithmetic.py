"""Sums, products and functions of complex numbers as texts of two real expressions.

Elementwise operators and functions apply to arrays as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

__all__ = [
    "FUNCTIONS",
    "NotExpandedError",
    "Value",
    "apply_function",
    "combine",
    "group",
    "negate",
    "scale",
    "write_parts",
]

FUNCTIONS = {"real", "imag", "conj", "abs", "'abs'", "arg", "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh"}

_REFERENCE = re.compile(r"[\w.]+(?:\[[\w, ]*\][\w.]*)*")  # or a number


class NotExpandedError(Exception):
    """An expression that this module does not write out."""


@dataclass(frozen=True)
class Value:
    """The text of a real value, or of the two parts of a complex one; ``rank`` is its number of dimensions."""

    real: str
    imaginary: str | None = None
    rank: int = 0
    is_atom: bool = False
    is_changed: bool = False

    @property
    def is_complex(self) -> bool:
        """Whether the value has an imaginary part."""
        return self.imaginary is not None

    @property
    def parts(self) -> tuple[str, str]:
        """The real and the imaginary part; that of a real value is "0"."""
        return self.real, "0" if self.imaginary is None else self.imaginary


def write_parts(value: Value) -> tuple[str, str]:
    """Return the parts of a value of which both have its shape: an array has no part "0"."""
    real, imaginary = value.parts
    if value.rank:
        real, imaginary = (
            f"0*({imaginary})" if real == "0" and imaginary != "0" else real,
            f"0*({real})" if imaginary == "0" and real != "0" else imaginary,
        )
    return real, imaginary


def group(text: str, *, is_atom: bool = False) -> str:
    """Return a text in parentheses, where an operator next to it needs them."""
    return text if is_atom or _is_atom(text) else f"({text})"


def _is_atom(text: str) -> bool:
    """Whether a text is a number, a reference, or in parentheses as a whole."""
    if _REFERENCE.fullmatch(text):
        return True
    depths = accumulate((sign == "(") - (sign == ")") for sign in text[1:-1])
    return text.startswith("(") and text.endswith(")") and min(depths, default=0) >= 0


def _multiply(a: str, b: str, operator: str = "*") -> str:
    if "0" in {a, b}:
        return "0"
    if a == "1":
        return b
    if b == "1":
        return a
    return f"{group(a)}{operator}{group(b)}"


def _add(a: str, b: str) -> str:
    if a == "0":
        return b
    return a if b == "0" else f"{a} + {group(b) if b.startswith('-') else b}"


def _subtract(a: str, b: str) -> str:
    if b == "0":
        return a
    return f"-{group(b)}" if a == "0" else f"{a} - {group(b)}"


def _square_sum(a: str, b: str, rank: int) -> str:
    power = ".^2" if rank else "^2"
    squares = [f"{group(part)}{power}" for part in (a, b) if part != "0"]
    return " + ".join(squares) or "0"


def _divide(a: Value, b: Value, operator: str) -> Value:
    (x, y), (u, v) = a.parts, b.parts
    division = "./" if b.rank else "/"
    if v == "0":
        parts = ["0" if part == "0" else f"{group(part)}{operator}{group(u)}" for part in (x, y)]
        return Value(parts[0], parts[1], max(a.rank, b.rank))
    product = ".*" if b.rank else "*"
    size = _square_sum(u, v, b.rank)
    parts = [
        _add(_multiply(x, u, product), _multiply(y, v, product)),
        _subtract(_multiply(y, u, product), _multiply(x, v, product)),
    ]
    parts = ["0" if part == "0" else f"({part}){division}({size})" for part in parts]
    return Value(parts[0], parts[1], max(a.rank, b.rank))


def _times(a: Value, b: Value, operator: str) -> Value:
    (x, y), (u, v) = a.parts, b.parts
    rank = max(a.rank, b.rank) if operator == ".*" or 0 in {a.rank, b.rank} else a.rank + b.rank - 2
    sign = -1 if operator == ".*" or (a.rank, b.rank) != (1, 1) or not (a.is_complex and b.is_complex) else 1
    products = [_multiply(x, u, operator), _multiply(y, v, operator), _multiply(x, v, operator)]
    products.append(_multiply(y, u, operator))
    if sign < 0:
        return Value(_subtract(products[0], products[1]), _add(products[2], products[3]), rank)
    return Value(_add(products[0], products[1]), _subtract(products[2], products[3]), rank)  # 'scalarProduct'


def apply_function(name: str, z: Value) -> Value:
    """Return the value of a function of ``Modelica.ComplexMath``."""
    x, y = z.parts
    times = ".*" if z.rank else "*"
    simple = {
        "real": Value(x, None, z.rank),
        "imag": Value(y, None, z.rank),
        "conj": Value(x, _subtract("0", y), z.rank),
    }
    if name in simple:
        return simple[name]
    x, y = write_parts(z)
    if name in {"abs", "'abs'"}:
        return Value(f"sqrt({_square_sum(x, y, z.rank)})", None, z.rank, is_atom=True)
    if name == "arg":
        return Value(f"atan2({y}, {x})", None, z.rank, is_atom=True)
    if name == "log":
        return Value(f"0.5*log({_square_sum(x, y, z.rank)})", f"atan2({y}, {x})", z.rank)
    if name == "sqrt":
        size, angle = f"({_square_sum(x, y, z.rank)})", f"atan2({y}, {x})"
        root = f"{size}{'.^' if z.rank else '^'}0.25"
        return Value(f"{root}{times}cos({angle}/2)", f"{root}{times}sin({angle}/2)", z.rank)
    if name == "exp":
        size = "1" if x == "0" else f"exp({x})"
        return Value(_multiply(size, f"cos({y})", times), _multiply(size, f"sin({y})", times), z.rank)
    first = {"sin": ("sin", "cosh"), "cos": ("cos", "cosh"), "sinh": ("sinh", "cos"), "cosh": ("cosh", "cos")}[name]
    second = {"sin": ("cos", "sinh"), "cos": ("sin", "sinh"), "sinh": ("cosh", "sin"), "cosh": ("sinh", "sin")}[name]
    imaginary = f"{second[0]}({x}){times}{second[1]}({y})"
    return Value(f"{first[0]}({x}){times}{first[1]}({y})", f"-({imaginary})" if name == "cos" else imaginary, z.rank)


def combine(operator: str, a: Value, b: Value) -> Value:
    """Return the value of an operator between values of which one is complex."""
    if operator in {"+", ".+", "-", ".-"}:
        merge = _add if "+" in operator else _subtract
        (x, y), (u, v) = a.parts, b.parts
        return Value(merge(x, u), merge(y, v), max(a.rank, b.rank), is_changed=True)
    if operator in {"*", ".*"}:
        value = _times(a, b, operator)
    elif operator in {"/", "./"}:
        value = _divide(a, b, operator)
    elif operator == "^" and b.real == "2" and not a.rank:
        value = _times(a, a, "*")
    else:
        raise NotExpandedError
    return Value(*value.parts, value.rank, is_changed=True)


def negate(a: Value) -> Value:
    """Return a complex value with the other sign."""
    real, imaginary = (_subtract("0", part) for part in a.parts)
    return Value(real, imaginary, a.rank, is_changed=True)


def scale(factor: str, part: str, rank: int) -> str:
    """Return the text of a product of real values."""
    return _multiply(factor, part, ".*" if rank else "*")
