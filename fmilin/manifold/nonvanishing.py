"""Constraints must not vanish identically: with one that does, the unconstrained model would come out.

``sin(x)^2 + cos(x)^2 - 1`` says nothing. Expressions are computed together with the size of the terms that they sum, at
a few points at random: one that is rounding at all of them is zero.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmilin.constraints.expressions import Expression
from fmilin.errors import ConstraintError, ModelError, NumericalError, quote_first
from fmilin.manifold.invariants import Invariants
from fmilin.signals import FloatArray
from fmilin.tolerances import CANCELLATION_TOLERANCE, ROUNDING_TOLERANCE


class _SizedRows(NamedTuple):
    """A number and the size of the terms that it was summed from."""

    value: float
    size: float


class _Sizes:
    """Floating-point numbers that remember what they were summed from."""

    def number(self, value: float) -> _SizedRows:
        return _SizedRows(float(value), abs(float(value)))

    def operation(self, name: str, operands: Sequence[_SizedRows]) -> _SizedRows:
        values, sizes = [o.value for o in operands], [o.size for o in operands]
        try:
            value = float(_OPERATIONS[name](*values) if name in _OPERATIONS else getattr(math, name)(*values))
            size = _size(name, value, values, sizes)
        except OverflowError:  # exp(1000)
            return _SizedRows(math.inf, math.inf)
        except (ArithmeticError, ValueError, TypeError):  # 1/0, sqrt(-1), (-1)^0.5
            return _SizedRows(math.nan, math.nan)
        return _SizedRows(value, size)

    def sympy(self, expression: Any, values: Mapping[Any, _SizedRows]) -> _SizedRows:
        terms = expression.as_ordered_terms() if expression.is_Add else [expression]
        numbers = {symbol: number.value for symbol, number in values.items()}
        try:
            parts = [float(term.evalf(subs=numbers)) for term in terms]
        except (ArithmeticError, TypeError, ValueError):
            return _SizedRows(math.nan, math.nan)
        return _SizedRows(math.fsum(parts), math.fsum(map(abs, parts)))

    def rate(self, value: _SizedRows, rates: Sequence[tuple[_SizedRows, _SizedRows]]) -> _SizedRows:
        return _SizedRows(math.nan, math.nan)  # the derivative of an expression that is tested itself


_OPERATIONS: Mapping[str, Callable[..., float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": math.pow,
    "negative": operator.neg, "pi": lambda: math.pi, "abs": abs, "min": min, "max": max,
}  # fmt: skip


def _size(name: str, value: float, values: Sequence[float], sizes: Sequence[float]) -> float:
    match name:
        case "*":
            return sizes[0] * sizes[1]
        case "/":
            return sizes[0] / abs(values[1]) * (sizes[1] / abs(values[1]))
        case _:
            return abs(value) + sum(sizes)


def vanishes(expression: Expression, points: Sequence[Mapping[str, float]]) -> bool:
    """Return whether an expression is zero up to rounding at all random points where it is defined, two at least."""
    numbers = [expression.built(_Sizes(), {n: _SizedRows(v, abs(v)) for n, v in point.items()}) for point in points]
    defined = [x for x in numbers if not (math.isnan(x.value) or math.isnan(x.size))]
    return len(defined) > 1 and all(abs(x.value) <= CANCELLATION_TOLERANCE * x.size < math.inf for x in defined)


DISPLACEMENT_SIZES = (1e-2, 0.3, 3.0)  # in sizes of the states: x^400 is nothing where x is small
NONVANISHING_RESIDUAL_RATIO = 1e-6  # residuals above this part of the largest number in them, anywhere, do not vanish
FLAT_GRADIENT_TOLERANCE = (
    1e-8  # smaller gradients of computed residuals, over the sizes of states, are examined farther off
)


def require_nonvanishing(invariants: Invariants, t: float, x: FloatArray) -> None:
    """Reject constraints that vanish identically; only a gradient close to zero takes evaluations."""
    empty = [*_written(invariants, t, x), *_computed(invariants, t, x)]
    if not empty:
        return
    constraints = invariants.model.constraints
    if len(empty) < len(constraints.rows):  # a model's own residuals are lists: a plane loop has a gap across the plane
        empty = [i for i in empty if not constraints.rows[i].expression.is_variable]
    if not empty:
        return
    names = quote_first((invariants.model.constraints.names[i] for i in empty), 6)
    raise ConstraintError(
        f"{names} {'vanishes' if len(empty) == 1 else 'vanish'} identically for all states, as 'x - x' does, so all "
        "states would count as independent. Write the relation between the states, such as the gap of a loop, or "
        "leave it out.",
        residuals={invariants.model.constraints.names[i]: 0.0 for i in empty},
    )


def _directions(invariants: Invariants, x: FloatArray) -> list[FloatArray]:
    random = np.random.default_rng(1789)
    signs = random.choice([-1.0, 1.0], len(x))
    return [x + size * invariants.scales * signs * random.uniform(0.5, 1.0, len(x)) for size in DISPLACEMENT_SIZES]


def _written(invariants: Invariants, t: float, x: FloatArray) -> list[int]:
    """Return the rows that are expressions over states, inputs and parameters and vanish."""
    model, constraints = invariants.model, invariants.model.constraints
    rows = np.flatnonzero(constraints.analytic)
    if not len(rows):
        return []
    displaced = _directions(invariants, x)
    unknown = np.zeros(len(constraints.observed))
    sizes = [np.abs(constraints.residuals(t, s, invariants.inputs, unknown)[rows]) for s in displaced]
    steps = (constraints.rows[i].expression.steps for i in rows)
    written = np.array([max((abs(float(s.value)) for s in t if s.operation == "number"), default=0.0) for t in steps])
    # At least 1, the size of sines and cosines.
    largest = np.maximum(written, max(1.0, *(float(np.abs(s).max(initial=0.0)) for s in displaced)))
    small = np.max(np.nan_to_num(sizes, nan=0.0), axis=0) <= NONVANISHING_RESIDUAL_RATIO * largest
    if not small.any():
        return []
    inputs = dict(zip(model.inputs.names, invariants.inputs.tolist(), strict=True))
    values = []
    for s in displaced:
        states = dict(zip(model.states.names, s.tolist(), strict=True))
        values.append({"time": t, **constraints.parameters, **inputs, **states})
    return [int(i) for i in rows[small] if vanishes(constraints.rows[i].expression, values)]


def _computed(invariants: Invariants, t: float, x: FloatArray) -> list[int]:
    """Return the rows that the model computes and that stay zero near the point where their gradient is zero."""
    constraints = invariants.model.constraints
    rows = np.flatnonzero(~constraints.analytic)
    if not len(rows):
        return []
    size = float(invariants.scales.max())  # variables that a model computes itself have no sizes
    try:
        H = invariants.gradient(t, x).H[rows]
    except (ModelError, NumericalError):  # start values may be none of the model's; its point is verified again
        return []
    rows = rows[np.linalg.norm(H * invariants.scales, axis=1) <= FLAT_GRADIENT_TOLERANCE * size]
    limit, visible_points = ROUNDING_TOLERANCE * size, 0
    for s in _directions(invariants, x) if len(rows) else []:
        try:
            g = invariants.evaluator.evaluate(t, s, invariants.inputs).residuals[rows]
        except (ModelError, NumericalError):
            continue
        visible_points += 1
        rows = rows[np.abs(g) <= limit]
    # At a single point a constraint may be zero by chance.
    return [int(i) for i in rows] if visible_points > 1 else []
