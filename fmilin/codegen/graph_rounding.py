"""Which values of a graph are rounding: a running error analysis along the instructions of a CasADi function.

The bound of a value is what rounding of the data and of every operation can have made of it, in units of eps, to
first order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.3). A sum is bounded by the sum of
the moduli of its terms. CasADi folds constants when a graph is built, after which 0.1 + 0.2 - 0.3 is a number like
any other: :func:`lift_constants` makes symbols of them first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.tolerances import COEFFICIENT_ROUNDING_FACTOR, EPS

SX = Any  # casadi.SX: casadi ships no types
Function = Any  # casadi.Function

MAX_INSTRUCTIONS = 300_000  # of a function with computed bounds: about half a second


def lift_constants(column: SX, symbols: SX) -> tuple[SX, SX, FloatArray]:
    """Return a column over ``symbols`` with a symbol for every constant that is not an integer, these, their values.

    Exponents stay numbers: the derivative of a power of a constant exponent is simpler.
    """
    function = ca.Function("lift", [symbols], [column])
    inputs = symbols.elements()
    work: dict[int, SX] = {}
    numbers: dict[int, float] = {}  # the constants among the work values
    lifted: dict[float, SX] = {}
    results = [ca.SX(0)] * column.numel()
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        operands, into = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            results[into[1]] = work[operands[0]]
            continue
        if operation == ca.OP_CONST:
            number = numbers[into[0]] = float(function.instruction_constant(k))
            if number.is_integer() or not math.isfinite(number):
                work[into[0]] = ca.SX(number)
                continue
            if number not in lifted:
                lifted[number] = ca.SX.sym(f"constant {len(lifted) + 1}")
            work[into[0]] = lifted[number]
            continue
        if operation == ca.OP_INPUT:
            result = inputs[operands[1]]
        elif operation == ca.OP_CONSTPOW:
            result = ca.power(work[operands[0]], numbers[operands[1]])
        elif len(operands) == 2:
            result = ca.SX.binary(operation, work[operands[0]], work[operands[1]])
        else:
            result = ca.SX.unary(operation, work[operands[0]])
        work[into[0]] = result
        numbers.pop(into[0], None)
    used = {s.__hash__() for s in ca.symvar(ca.vertcat(ca.SX(0, 1), *results))}
    used_symbols = {number: symbol for number, symbol in lifted.items() if symbol.__hash__() in used}
    constants = ca.vertcat(ca.SX(0, 1), *used_symbols.values())
    return ca.densify(ca.vertcat(ca.SX(0, 1), *results)), constants, np.array(list(used_symbols), dtype=np.float64)


Unary = tuple[Callable[[float], float], Callable[[float], float]]  # a function and its derivative


_SMOOTH: Mapping[int, Unary] = {
    ca.OP_ASSIGN: (lambda a: a, lambda _: 1.0),
    ca.OP_LIFT: (lambda a: a, lambda _: 1.0),
    ca.OP_NEG: (lambda a: -a, lambda _: 1.0),
    ca.OP_TWICE: (lambda a: 2 * a, lambda _: 2.0),
    ca.OP_SQ: (lambda a: a * a, lambda a: 2 * a),
    ca.OP_INV: (lambda a: 1 / a, lambda a: 1 / a**2),
    ca.OP_SQRT: (math.sqrt, lambda a: 0.5 / math.sqrt(a)),
    ca.OP_EXP: (math.exp, math.exp),
    ca.OP_EXPM1: (math.expm1, math.exp),
    ca.OP_LOG: (math.log, lambda a: 1 / a),
    ca.OP_LOG1P: (math.log1p, lambda a: 1 / (1 + a)),
    ca.OP_SIN: (math.sin, math.cos),
    ca.OP_COS: (math.cos, math.sin),
    ca.OP_TAN: (math.tan, lambda a: 1 + math.tan(a) ** 2),
    ca.OP_ASIN: (math.asin, lambda a: 1 / math.sqrt(1 - a * a)),
    ca.OP_ACOS: (math.acos, lambda a: 1 / math.sqrt(1 - a * a)),
    ca.OP_ATAN: (math.atan, lambda a: 1 / (1 + a * a)),
    ca.OP_SINH: (math.sinh, math.cosh),
    ca.OP_COSH: (math.cosh, math.sinh),
    ca.OP_TANH: (math.tanh, lambda a: 1 - math.tanh(a) ** 2),
    ca.OP_ASINH: (math.asinh, lambda a: 1 / math.sqrt(a * a + 1)),
    ca.OP_ACOSH: (math.acosh, lambda a: 1 / math.sqrt(a * a - 1)),
    ca.OP_ATANH: (math.atanh, lambda a: 1 / (1 - a * a)),
    ca.OP_ERF: (math.erf, lambda a: 2 / math.sqrt(math.pi) * math.exp(-a * a)),
}  # fmt: skip
_EXACT = (ca.OP_ASSIGN, ca.OP_LIFT, ca.OP_NEG, ca.OP_TWICE)  # operations that do not round
_CHOICES: Mapping[int, Callable[[float], float]] = {
    ca.OP_SIGN: lambda a: float((a > 0) - (a < 0)),
    ca.OP_FLOOR: math.floor,
    ca.OP_CEIL: math.ceil,
    ca.OP_NOT: lambda a: float(not a),
}
_COMPARISONS: Mapping[int, Callable[[float, float], float]] = {
    ca.OP_LT: lambda a, b: float(a < b),
    ca.OP_LE: lambda a, b: float(a <= b),
    ca.OP_EQ: lambda a, b: float(a == b),
    ca.OP_NE: lambda a, b: float(a != b),
    ca.OP_AND: lambda a, b: float(bool(a and b)),
    ca.OP_OR: lambda a, b: float(bool(a or b)),
}
_NOTHING = (math.nan, math.nan)
Bounded = tuple[float, float]  # a value and its bound


def _binary(operation: int, a: Bounded, b: Bounded) -> Bounded:
    (x, dx), (y, dy) = a, b
    if operation in (ca.OP_ADD, ca.OP_SUB):
        value = x + y if operation == ca.OP_ADD else x - y
        return value, dx + dy + abs(value)
    if operation == ca.OP_MUL:
        return x * y, abs(x) * dy + abs(y) * dx + abs(x * y)
    if operation == ca.OP_DIV:
        return x / y, (dx + abs(x / y) * dy) / abs(y) + abs(x / y)
    if operation in (ca.OP_POW, ca.OP_CONSTPOW):
        value = math.pow(x, y)
        by_y = abs(value * math.log(abs(x))) * dy if dy and x else 0.0
        by_x = abs(y * math.pow(x, y - 1)) * dx if dx and y else 0.0
        return value, by_x + by_y + abs(value)
    if operation == ca.OP_ATAN2:
        size = x * x + y * y
        return math.atan2(x, y), (abs(y) * dx + abs(x) * dy) / size + abs(math.atan2(x, y))
    if operation in (ca.OP_FMIN, ca.OP_FMAX):
        return (a if x <= y else b) if operation == ca.OP_FMIN else (a if x >= y else b)
    if operation == ca.OP_IF_ELSE_ZERO:
        return b if x else (0.0, 0.0)
    if operation == ca.OP_COPYSIGN:
        return math.copysign(x, y), dx
    # An operation without a bound has NaN for one: the value counts as what it is.
    return (_COMPARISONS[operation](x, y), 0.0) if operation in _COMPARISONS else _NOTHING


def _unary(operation: int, a: Bounded) -> Bounded:
    x, dx = a
    if operation == ca.OP_FABS:
        return abs(x), dx
    if operation in _CHOICES:
        return _CHOICES[operation](x), 0.0
    if operation not in _SMOOTH:
        return _NOTHING
    function, derivative = _SMOOTH[operation]
    value = function(x)
    carried = abs(derivative(x)) * dx if dx else 0.0
    return value, carried if operation in _EXACT else carried + abs(value)


def compute_bounds(function: Function, *arguments: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Return the nonzeros of a function's first result, and bounds of their rounding errors in units of eps.

    Arguments that are integers are exact, the others are rounded numbers themselves. NaN where there is no bound.
    """
    inputs = [np.atleast_1d(np.asarray(a, dtype=np.float64)).ravel().tolist() for a in arguments]
    work: list[Bounded] = [_NOTHING] * function.sz_w()
    count = function.nnz_out(0)
    values, bounds = np.full(count, np.nan), np.full(count, np.nan)
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        operands, into = function.instruction_input(k), function.instruction_output(k)
        if operation == ca.OP_OUTPUT:
            if into[0] == 0:
                values[into[1]], bounds[into[1]] = work[operands[0]]
            continue
        if operation == ca.OP_INPUT:
            value = inputs[operands[0]][operands[1]]
        elif operation == ca.OP_CONST:
            value = float(function.instruction_constant(k))
        else:
            try:
                parts = [work[i] for i in operands]
                work[into[0]] = _binary(operation, *parts) if len(parts) == 2 else _unary(operation, *parts)
            except (ValueError, ZeroDivisionError, OverflowError):  # outside of the domain
                work[into[0]] = _NOTHING
            continue
        work[into[0]] = value, 0.0 if value.is_integer() else abs(value)
    return values, bounds


def find_rounding(values: FloatArray, bounds: FloatArray) -> NDArray[np.bool_]:
    """Return which values are no more than rounding of what they were computed from; exact zeros are, too."""
    with np.errstate(invalid="ignore"):
        small: NDArray[np.bool_] = np.abs(values) <= COEFFICIENT_ROUNDING_FACTOR * EPS * bounds
    return np.asarray(small | (values == 0.0), dtype=np.bool_)


def matrix_without_rounding(function: Function, *arguments: Any) -> FloatArray:
    """Return the first result of a function as a matrix, its entries that are rounding as zeros."""
    matrix = function(*arguments)
    matrix = matrix[0] if isinstance(matrix, Sequence | tuple) else matrix
    full: FloatArray = matrix.full()
    if function.n_instructions() > MAX_INSTRUCTIONS:
        return full
    rounding = find_rounding(*compute_bounds(function, *arguments))
    rows, columns = matrix.sparsity().get_triplet()
    full[np.array(rows, dtype=np.intp)[rounding], np.array(columns, dtype=np.intp)[rounding]] = 0.0
    return full
