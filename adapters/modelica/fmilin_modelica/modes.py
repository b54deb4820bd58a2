"""Friction: whether an element slides or is stuck at the start, and the equations of an element that is stuck.

Libraries write friction as a state machine: ``locked``, ``startForward``, ``mode`` follow from ``pre(mode)``. Nothing
is held of an element that slides: its equations follow the sign of the velocity. One that is stuck has the equation
``a = 0`` for its relative acceleration, and every neighbouring velocity belongs to another branch: its mode is held,
and the equation becomes the constraint ``w = 0`` of which it is the derivative. Events are iterated as at an
initialization: an element with too little static friction begins to slide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from fmilin_modelica.aliases import SignedClasses, equal_pair

__all__ = ["LOCKED", "Mode", "constrain_stuck_rows", "describe_modes", "group_of"]

LOCKED = "locked"  # the variable of a friction element that is true while it is stuck
SHOWN_ELEMENTS = 8  # in a note


@dataclass(frozen=True)
class Mode:
    """The values that a variable of a state machine keeps."""

    now: float
    before: float  # of pre(variable)


def group_of(name: str) -> str:
    """Return the component of a variable."""
    return name.rpartition(".")[0]


def _strip_factors(expression: Any, parameters: Collection[int]) -> Any:
    """Return ``a`` of ``-a``, ``J*a``, ``a/J``: what is zero where the expression is; parameters of it are not zero."""
    while not expression.is_symbolic():
        parts = [expression.dep(k) for k in range(expression.n_dep())]
        if expression.op() in (ca.OP_MUL, ca.OP_DIV):
            parts = [part for part in parts if not all(s.__hash__() in parameters for s in ca.symvar(part))]
        if len(parts) != 1:
            return expression
        expression = parts[0]
    return expression


def constrain_stuck_rows(
    residuals: Sequence[Any], rows: Iterable[int], derivatives: Mapping[int, Any], parameters: Collection[int] = ()
) -> tuple[list[Any], list[int]]:
    """Return residuals in which ``a = 0`` became ``w = 0`` where ``a`` is the derivative of a state, and these rows.

    Parameters
    ----------
    residuals : sequence of SX
    rows : iterable of int
        Those to look at.
    derivatives : mapping of int to SX
        The state of each symbol ``der(w)``, by the symbol's hash.
    parameters : collection of int
        Hashes of the symbols of parameters.
    """
    classes = SignedClasses()
    for residual in residuals:
        pair = equal_pair(residual)
        if pair is not None:
            classes.join(*pair)
    states: dict[int, Any] = {}
    for symbol, state in derivatives.items():
        states.setdefault(classes.root_of(symbol)[0], state)
    constrained = list(residuals)
    changed = []
    for row in rows:
        expression = _strip_factors(residuals[row], parameters)
        if not expression.is_symbolic():
            continue
        state = states.get(classes.root_of(expression.__hash__())[0])
        if state is not None:
            constrained[row] = state
            changed.append(row)
    return constrained, changed


def describe_modes(values: Mapping[str, float], unconstrained: Collection[str] = ()) -> str:
    """Return a note on the modes of friction elements, from the values of their variables; empty without any.

    Elements in ``unconstrained`` are stuck, but their velocity is not a state.
    """
    words = []
    for name, locked in values.items():
        group = group_of(name)
        if not group or name != f"{group}.{LOCKED}":
            continue
        if locked and group in unconstrained:
            word = (
                "is stuck (its relative acceleration is zero; its relative velocity is not a state of the model and "
                "not constrained)"
            )
        elif locked:
            word = "is stuck (its relative velocity is held at zero)"
        elif values.get(f"{group}.startForward"):
            word = "slides forward"
        elif values.get(f"{group}.startBackward"):
            word = "slides backward"
        else:
            word = "is free"
        words.append(f"'{group}' {word}")
    if not words:
        return ""
    more = f", and {len(words) - SHOWN_ELEMENTS} more" if len(words) > SHOWN_ELEMENTS else ""
    return f"Friction at the start: {', '.join(words[:SHOWN_ELEMENTS])}{more}."
