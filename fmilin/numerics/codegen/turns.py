"""Which outputs of a graph wrap: sums of ``c atan2(...)`` and of smooth terms jump by a turn of 2 pi c."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

if TYPE_CHECKING:
    from fmilin.numerics.codegen.implicit import ImplicitSystem

SX = Any  # casadi.SX: casadi ships no types

MOST_TERMS = 10_000  # of one output: longer sums are not searched
MOST_NODES = 100  # of a factor, which consists of numbers and parameters
MULTIPLE = 1e-9  # relative deviation of a jump from a multiple of the smallest one. Looser: other jumps count as turns
ROUNDING_FUNCTIONS = (ca.OP_FLOOR, ca.OP_CEIL)
LINEAR_OPERATIONS = (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_MUL, ca.OP_DIV)
REMAINDERS = (ca.OP_FMOD, ca.OP_REMAINDER)
WHOLE_TURNS = (2 * np.pi, 360.0)  # jumps of floor() and of remainders that are those of an angle


def find_turns(system: ImplicitSystem) -> list[float | None]:
    """Return for each output by how much it jumps where it wraps; None for one that does not wrap."""
    parameters = dict(zip(_hashes(system.parameters), system.parameter_values.tolist(), strict=True))
    return [find_turn(output, parameters) for output in system.outputs.elements()]


def _hashes(symbols: SX) -> list[int]:
    return [symbol.element_hash() for symbol in symbols.elements()]


def find_turn(output: SX, parameters: dict[int, float]) -> float | None:
    """Return the jump of which all jumps of a sum are multiples; ``parameters`` are numbers by hashes of symbols."""
    jumps = sorted(_list_jumps(output, parameters))
    if not jumps or jumps[0] == 0.0:
        return None
    ratios = [jump / jumps[0] for jump in jumps]
    is_lattice = all(isclose(ratio, round(ratio), rel_tol=MULTIPLE) for ratio in ratios)
    return jumps[0] if is_lattice else None


def _list_jumps(output: SX, parameters: dict[int, float]) -> Iterator[float]:
    """Yield the jumps of the terms of a sum."""
    terms: list[tuple[SX, float]] = [(output, 1.0)]
    for _ in range(MOST_TERMS):
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
    """Return the terms, with their factors, of a sum or of a product with a constant; nothing for other products."""
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
        return [(first, factor / constant)] if constant else []
    if constant is not None:
        return [(first, factor * constant)]
    constant = _compute_constant(first, parameters)
    return [] if constant is None else [(second, factor * constant)]


def _jumps_of_function(node: SX, factor: float, parameters: dict[int, float]) -> Iterator[float]:
    """Yield the jump of a function that wraps, times a factor."""
    operation = node.op()
    if operation == ca.OP_ATAN2:
        arguments = [_compute_constant(node.dep(i), parameters) for i in range(2)]
        if None in arguments:
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


def _compute_constant(node: SX, parameters: dict[int, float]) -> float | None:
    """Return the value of an expression of numbers and parameters; None where something else stands in it."""
    if node.is_constant():
        return float(node)
    symbols: dict[int, SX] = {}
    pending = [node]
    for _ in range(MOST_NODES):
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
