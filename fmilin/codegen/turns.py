"""Which outputs of a graph wrap: sums of ``c atan2(...)`` and of smooth terms jump by a turn of 2 pi c."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isclose
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem

SX = Any  # casadi.SX: casadi ships no types

MAX_TERMS = 10_000  # of one output: longer sums are not searched
MAX_NODES = 100  # of a factor, which consists of numbers and parameters
MULTIPLE = 1e-9  # relative deviation of a jump from a multiple of the smallest one. Looser: other jumps count as turns
ROUNDING_FUNCTIONS = (ca.OP_FLOOR, ca.OP_CEIL)
LINEAR_OPERATIONS = (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_MUL, ca.OP_DIV)
REMAINDERS = (ca.OP_FMOD, ca.OP_REMAINDER)
SUMS_AND_PRODUCTS = (ca.OP_ADD, ca.OP_MUL, ca.OP_DIV, ca.OP_TWICE)  # of what is not negative are not, either
NONNEGATIVE_FUNCTIONS = (ca.OP_SQ, ca.OP_SQRT, ca.OP_FABS, ca.OP_EXP, ca.OP_COSH)
TURNS = (2 * np.pi, 360.0, 1.0)
WHOLE_TURNS = (2 * np.pi, 360.0)  # jumps of floor() and of remainders that are those of an angle


def find_turns(system: ImplicitSystem) -> list[float | None]:
    """Return for each output by how much it jumps where it wraps; None for one that does not wrap."""
    parameters = dict(zip(_hashes(system.parameters), system.parameter_values.tolist(), strict=True))
    return [find_turn(output, parameters) for output in system.outputs.elements()]


def _hashes(symbols: SX) -> list[int]:
    return [symbol.element_hash() for symbol in symbols.elements()]


def find_turn(output: SX, parameters: dict[int, float]) -> float | None:
    """Return the jump of which all jumps of a sum are multiples; ``parameters`` are numbers by hashes of symbols.

    It is a multiple of 2 pi, 360 or 1: other jumps are not turns of an angle in a usual unit, as that of a force with
    0.05*atan2(v, w).
    """
    jumps = sorted(_list_jumps(output, parameters))
    if not jumps or not _is_multiple(jumps[0], TURNS):
        return None
    return jumps[0] if all(_is_multiple(jump, jumps[:1]) for jump in jumps) else None


def _is_multiple(jump: float, turns: Sequence[float]) -> bool:
    """Whether a jump is a whole number of one of the turns, to MULTIPLE."""
    ratios = [jump / turn for turn in turns]
    return any(np.isfinite(r) and round(r) > 0 and isclose(r, round(r), rel_tol=MULTIPLE) for r in ratios)


def _list_jumps(output: SX, parameters: dict[int, float]) -> Iterator[float]:
    """Yield the jumps of the terms of a sum."""
    terms: list[tuple[SX, float]] = [(output, 1.0)]
    for _ in range(MAX_TERMS):
        if not terms:
            return
        node, factor = terms.pop()
        if node.is_leaf():
            continue
        if node.op() in LINEAR_OPERATIONS:
            terms += _split_linear(node, factor, parameters)
        else:
            yield from _jumps_of_function(node, factor, parameters)


def _split_linear(node: SX, factor: float, parameters: dict[int, float]) -> list[tuple[SX, float]]:
    """Return the terms, with their factors, of a sum or of a product with a constant; nothing for smooth products.

    The jump of a product that is not smooth has no constant size: it is infinite here, a multiple of nothing.
    """
    first, operation = node.dep(0), node.op()
    if operation == ca.OP_NEG:
        return [(first, -factor)]
    if operation == ca.OP_TWICE:
        return [(first, 2 * factor)]
    second = node.dep(1)
    if operation in (ca.OP_ADD, ca.OP_SUB):
        return [(first, factor), (second, factor if operation == ca.OP_ADD else -factor)]
    constant = _compute_constant(second, parameters)
    if operation == ca.OP_DIV:
        return [(first, factor / constant)] if constant else _mark_jumps(node)
    if constant is not None:
        return [(first, factor * constant)]
    constant = _compute_constant(first, parameters)
    return _mark_jumps(node) if constant is None else [(second, factor * constant)]


def _mark_jumps(node: SX) -> list[tuple[SX, float]]:
    """Return the functions that wrap inside of a product, with infinite factors."""
    functions: list[tuple[SX, float]] = []
    pending, looked_at = [node], set[int]()
    while pending and len(looked_at) < MAX_TERMS:
        part = pending.pop()
        key = part.element_hash()
        if key in looked_at or part.is_leaf():
            continue
        looked_at.add(key)
        if part.op() == ca.OP_ATAN2:
            functions.append((part, np.inf))
        pending += [part.dep(i) for i in range(part.n_dep())]
    return functions


def _jumps_of_function(node: SX, factor: float, parameters: dict[int, float]) -> Iterator[float]:
    """Yield the jump of a function that wraps, times a factor."""
    operation = node.op()
    if operation == ca.OP_ATAN2:
        is_constant = None not in [_compute_constant(node.dep(i), parameters) for i in range(2)]
        if not is_constant and not _is_nonnegative(node.dep(1), parameters):
            yield 2 * np.pi * abs(factor)
    elif operation in ROUNDING_FUNCTIONS:
        yield from _jump_of_angle(factor)
    elif operation in REMAINDERS:
        divisor = _compute_constant(node.dep(1), parameters)
        if divisor is not None:
            yield from _jump_of_angle(factor * divisor)


def _jump_of_angle(jump: float) -> Iterator[float]:
    """Yield a jump that is a turn of an angle; others are quantization."""
    if any(isclose(abs(jump), turn, rel_tol=MULTIPLE) for turn in WHOLE_TURNS):
        yield abs(jump)


def _is_nonnegative(node: SX, parameters: dict[int, float]) -> bool:
    """Whether an expression is never negative by its form: atan2(y, x) jumps where x is negative only."""
    pending = [node]
    for _ in range(MAX_NODES):
        if not pending:
            return True
        part = pending.pop()
        constant = _compute_constant(part, parameters)
        if constant is not None:
            if not constant >= 0:
                return False
        elif part.is_leaf():
            return False
        elif part.op() in SUMS_AND_PRODUCTS:
            pending += [part.dep(i) for i in range(part.n_dep())]
        elif part.op() not in NONNEGATIVE_FUNCTIONS:
            return False
    return False


def _compute_constant(node: SX, parameters: dict[int, float]) -> float | None:
    """Return the value of an expression of numbers and parameters; None where something else stands in it."""
    if node.is_constant():
        return float(node)
    symbols: dict[int, SX] = {}
    pending = [node]
    for _ in range(MAX_NODES):
        if not pending:
            break
        part = pending.pop()
        if part.is_symbolic():
            key = part.element_hash()
            if key not in parameters:
                return None
            symbols[key] = part
        elif not part.is_constant():
            pending += [part.dep(i) for i in range(part.n_dep())]
    if pending:
        return None
    values = [parameters[key] for key in symbols]
    function = ca.Function("constant", list(symbols.values()), [node])
    results = function.call([ca.DM(value) for value in values])
    return float(results[0])
