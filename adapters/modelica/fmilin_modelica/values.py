"""Values of Modelica expressions: numbers, CasADi scalars, arrays of both (numpy, dtype object), records as tuples.

Scalars are expanded: an entry of an array that is zero or constant stays a number, so that what multiplies it vanishes
from the graph. What CasADi finds constant becomes a number again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import ModelError

__all__ = ["array_of", "binary", "branch", "builtin", "dot", "is_symbolic", "negated", "shape_of", "tidy"]

Value = Any  # bool | int | float | str | casadi.SX | numpy.ndarray | tuple
SX = ca.SX


def is_symbolic(value: Value) -> bool:
    """Whether a scalar is an expression, no number."""
    return isinstance(value, SX)


def tidy(value: Value) -> Value:
    """Return a constant expression as a number; everything else as it is."""
    return float(value) if isinstance(value, SX) and value.is_constant() else value


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the dimensions: () of a scalar."""
    return value.shape if isinstance(value, np.ndarray) else ()


def array_of(items: Sequence[Value]) -> np.ndarray[Any, Any]:
    """Return an array of scalars, arrays of one shape, or records."""
    inner = shape_of(items[0]) if items else ()
    out = np.empty((len(items), *inner), object)
    for k, item in enumerate(items):
        out[k] = item
    return out


def _each(function: Callable[..., Value], *values: Value) -> Value:
    """Apply a function of scalars to each entry, a scalar standing for all entries."""
    shapes = [shape_of(value) for value in values]
    shape = max(shapes, key=len)
    if not shape:
        return function(*values)
    parts = [value.reshape(-1) if isinstance(value, np.ndarray) else [value] * math.prod(shape) for value in values]
    out = np.empty(math.prod(shape), object)
    for k, items in enumerate(zip(*parts, strict=True)):
        out[k] = function(*items)
    return out.reshape(shape)


def _plain(value: Value) -> bool:
    return not isinstance(value, SX)


def _compute(plain: Callable[..., Value], graph: Callable[..., Any], *values: Value) -> Value:
    """Return a function of numbers; beyond its domain infinite or not a number, as the function of symbols is.

    A branch that is not taken may contain such a value, ``if h > 0 then sqrt(h) else 0``: no error, then.
    """
    try:
        result = plain(*values)
    except (ValueError, ArithmeticError):
        return float(graph(*(ca.DM(float(value)) for value in values)))
    return float("nan") if isinstance(result, complex) else result


def _power(a: Value, b: Value) -> Value:
    if _plain(a) and _plain(b):
        return _compute(lambda x, y: float(x) ** y, ca.power, a, b)
    if _plain(b) and float(b) == 2.0:
        return a * a
    return tidy(ca.power(a, int(b) if _plain(b) and float(b).is_integer() else b))


def _times(a: Value, b: Value) -> Value:
    if _plain(a) and _plain(b):
        return a * b  # not a number where one is 0 and the other one infinite
    if (_plain(a) and a == 0) or (_plain(b) and b == 0):
        return 0.0
    return tidy(a * b)


def _logical(plain: Callable[[Any, Any], bool], graph: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    return lambda a, b: bool(plain(a, b)) if _plain(a) and _plain(b) else tidy(graph(a, b))


def _and(a: Value, b: Value) -> Value:
    if _plain(a):
        return b if a else False
    return (a if b else False) if _plain(b) else ca.logic_and(a, b)


def _or(a: Value, b: Value) -> Value:
    if _plain(a):
        return True if a else b
    return (True if b else a) if _plain(b) else ca.logic_or(a, b)


_SCALAR: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b if _plain(a) and _plain(b) else tidy(a + b),
    "subtract": lambda a, b: a - b if _plain(a) and _plain(b) else tidy(a - b),
    "multiply": _times,
    "divide": lambda a, b: tidy(
        _compute(operator.truediv, operator.truediv, a, b) if _plain(a) and _plain(b) else a / b
    ),
    "power": _power,
    "equal": _logical(operator.eq, ca.eq),
    "not_equal": _logical(operator.ne, ca.ne),
    "less": _logical(operator.lt, ca.lt),
    "less_equal": _logical(operator.le, ca.le),
    "greater": _logical(operator.gt, ca.gt),
    "greater_equal": _logical(operator.ge, ca.ge),
    "and": _and,
    "or": _or,
}


def dot(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Value:
    """Return the product of vectors and matrices as Modelica's ``*`` has it."""
    if a.ndim == 1 and b.ndim == 1:
        total: Value = 0.0
        for p, q in zip(a, b, strict=True):
            total = _SCALAR["add"](total, _times(p, q))
        return total
    if a.ndim == 1:
        return array_of([dot(a, b[:, k]) for k in range(b.shape[1])])
    if b.ndim == 1:
        return array_of([dot(a[k], b) for k in range(a.shape[0])])
    out = np.empty((a.shape[0], b.shape[1]), object)
    for i, k in np.ndindex(out.shape):
        out[i, k] = dot(a[i], b[:, k])
    return out


def binary(name: str, a: Value, b: Value) -> Value:
    """Return ``a OPERATOR b`` for scalars and arrays."""
    entrywise = name.startswith("elementwise_")
    name = name.removeprefix("elementwise_")
    both = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if name == "multiply" and both and not entrywise:
        return dot(a, b)
    if name == "power" and isinstance(a, np.ndarray) and not entrywise:
        out: Value = builtin("identity", [a.shape[0]])
        for _ in range(int(b)):
            out = dot(out, a)
        return out
    if name == "add" and isinstance(a, str):
        return str(a) + str(b)
    return _each(_SCALAR[name], a, b)


def negated(value: Value, *, logical: bool = False) -> Value:
    """Return ``-value``, or ``not value``."""
    if logical:
        return _each(lambda v: not v if _plain(v) else ca.logic_not(v), value)
    return _each(lambda v: -v, value)


def branch(condition: Value, this: Value, other: Value) -> Value:
    """Return ``if condition then this else other`` where the condition is an expression."""
    if isinstance(this, tuple):
        return tuple(branch(condition, a, b) for a, b in zip(this, other, strict=True))

    def chosen(a: Value, b: Value) -> Value:
        if a is b or (_plain(a) and _plain(b) and a == b):
            return a
        if isinstance(a, str) or isinstance(b, str):
            raise ModelError("a text that depends on the state")
        return ca.if_else(condition, a, b)

    return _each(chosen, this, other)


_FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "log10", "sqrt")
_ROUNDED = {"floor": math.floor, "ceil": math.ceil, "integer": math.floor}
_ROUNDED_SX = {"floor": ca.floor, "ceil": ca.ceil, "integer": ca.floor}


def _function(name: str) -> Callable[[Value], Value]:
    plain, graph = getattr(math, name), getattr(ca, name)
    return lambda a: _compute(plain, graph, a) if _plain(a) else graph(a)


def quotient(name: str, a: Value, b: Value) -> Value:
    """Return ``div``, ``mod`` or ``rem`` of scalars, which jump where a/b passes an integer."""
    if _plain(a) and _plain(b):
        ratio = _SCALAR["divide"](a, b)
        if not math.isfinite(ratio):
            return float("nan")
        whole = math.floor(ratio) if name == "mod" else math.trunc(ratio)
    else:
        ratio = a / b
        whole = ca.floor(ratio) if name == "mod" else ca.if_else(ratio >= 0, ca.floor(ratio), ca.ceil(ratio))
    return whole if name == "div" else a - whole * b


def _round(name: str, value: Value) -> Value:
    """Return ``floor``, ``ceil`` or ``integer`` of a scalar; what is not finite stays as it is."""
    if not _plain(value):
        return _ROUNDED_SX[name](value)
    return _ROUNDED[name](value) if math.isfinite(value) else value


def _extreme(name: str, a: Value, b: Value) -> Value:
    if _plain(a) and _plain(b):
        return max(a, b) if name == "max" else min(a, b)
    return ca.fmax(a, b) if name == "max" else ca.fmin(a, b)


def _promoted(value: Value, rank: int) -> np.ndarray[Any, Any]:
    array = value if isinstance(value, np.ndarray) else array_of([value]).reshape(())
    return array.reshape(array.shape + (1,) * (rank - array.ndim))


def _sum(items: np.ndarray[Any, Any]) -> Value:
    total: Value = 0.0
    for item in items.reshape(-1):
        total = _SCALAR["add"](total, item)
    return total


def _product(items: np.ndarray[Any, Any]) -> Value:
    total: Value = 1.0
    for item in items.reshape(-1):
        total = _times(total, item)
    return total


def _cross(a: Value, b: Value) -> Value:
    minus, times = _SCALAR["subtract"], _times
    return array_of([minus(times(a[i], b[k]), times(a[k], b[i])) for i, k in ((1, 2), (2, 0), (0, 1))])


def _filled(value: Value, sizes: Sequence[Value]) -> np.ndarray[Any, Any]:
    out = np.empty([int(size) for size in sizes], object)
    for index in np.ndindex(out.shape):
        out[index] = value
    return out


def _diagonal(items: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = _filled(0.0, (len(items), len(items)))
    for k, item in enumerate(items):
        out[k, k] = item
    return out


def _skew(a: Value) -> np.ndarray[Any, Any]:
    return array_of([
        array_of([0.0, negated(a[2]), a[1]]),
        array_of([a[2], 0.0, negated(a[0])]),
        array_of([negated(a[1]), a[0], 0.0]),
    ])  # fmt: skip


def _linspace(a: Value, b: Value, count: Value) -> np.ndarray[Any, Any]:
    steps = int(count) - 1
    return array_of([a + (b - a) * (k / steps) for k in range(steps + 1)])


def _size(a: Value, axis: Value = None) -> Value:
    return array_of([int(n) for n in shape_of(a)]) if axis is None else int(shape_of(a)[int(axis) - 1])


_BUILTINS: dict[str, Callable[..., Value]] = {
    "abs": lambda a: _each(lambda v: abs(v) if _plain(v) else ca.fabs(v), a),
    "sign": lambda a: _each(lambda v: (v > 0) - (v < 0) if _plain(v) else ca.sign(v), a),
    "atan2": lambda a, b: _each(lambda v, w: math.atan2(v, w) if _plain(v) and _plain(w) else ca.atan2(v, w), a, b),
    "smooth": lambda _, a: a,
    "no_event": lambda a: a,
    "homotopy": lambda actual, _: actual,
    "cross": _cross,
    "skew": _skew,
    "transpose": lambda a: a.T,
    "outer_product": lambda a, b: array_of([_each(_times, p, b) for p in a]),
    "identity": lambda n: _diagonal(_filled(1.0, (n,))),
    "diagonal": _diagonal,
    "zeros": lambda *sizes: _filled(0.0, sizes),
    "ones": lambda *sizes: _filled(1.0, sizes),
    "fill": lambda value, *sizes: _filled(value, sizes),
    "linspace": _linspace,
    "size": _size,
    "ndims": lambda a: len(shape_of(a)),
    "vector": lambda a: _promoted(a, 1).reshape(-1),
    "scalar": lambda a: _promoted(a, 1).reshape(-1)[0],
    "matrix": lambda a: _promoted(a, 2),
    "sum": _sum,
    "product": _product,
    "symmetric": lambda a: array_of(
        [array_of([a[min(i, k), max(i, k)] for k in range(len(a))]) for i in range(len(a))]
    ),
    **{name: partial(_each, _function(name)) for name in _FUNCTIONS},
}


def builtin(name: str, arguments: Sequence[Value]) -> Value:
    """Return what one of Modelica's own functions gives.

    Raises
    ------
    KeyError
        When this one is not known.
    """
    if name in ("max", "min"):
        items = arguments if len(arguments) == 2 else list(arguments[0].reshape(-1))
        out = items[0]
        for item in items[1:]:
            out = _each(lambda a, b: _extreme(name, a, b), out, item)
        return out
    if name in _ROUNDED:
        return _each(partial(_round, name), arguments[0])
    if name in ("div", "mod", "rem"):
        return _each(lambda a, b: quotient(name, a, b), *arguments)
    if name.startswith(("promoted_cat", "cat")):
        axis = int(name.removeprefix("promoted_").removeprefix("cat")) - 1
        rank = max(axis + 1, *(len(shape_of(value)) for value in arguments))
        if name.startswith("promoted"):
            rank = max(rank, 2)
        return np.concatenate([_promoted(value, rank) for value in arguments], axis=axis)
    return _BUILTINS[name](*arguments)
