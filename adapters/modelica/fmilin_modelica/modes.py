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

from fmilin.errors import UsageError
from fmilin_modelica.aliases import SignedClasses, equal_pair

__all__ = [
    "LOCKED",
    "RELATIVE_VELOCITIES",
    "HeldModeError",
    "Mode",
    "constrain_stuck_rows",
    "describe_modes",
    "group_of",
    "read_held_modes",
    "require_velocity",
    "values_of_mode",
]

LOCKED = "locked"  # the variable of a friction element that is true while it is stuck
RELATIVE_VELOCITIES = ("w_relfric", "v_relfric", "w_rel", "v_rel", "w_a")  # of the elements of the Standard Library
SHOWN_ELEMENTS = 8  # in a note
_MODES = {  # the variable ``mode`` in each of them
    "locked": 0,
    "forward": 1,
    "backward": -1,
    "free": 2,
}
_HELD_WORDS = {
    "locked": "is held locked (its relative velocity is zero)",
    "forward": "is held sliding forward",
    "backward": "is held sliding backward",
    "free": "is held free",
}


class HeldModeError(UsageError):
    """An element that cannot be held in a mode."""


@dataclass(frozen=True)
class Mode:
    """The values that a variable of a state machine keeps."""

    now: float
    before: float  # of pre(variable)
    slides: bool = False  # with a velocity, in its direction


def group_of(name: str) -> str:
    """Return the component of a variable."""
    return name.rpartition(".")[0]


def read_held_modes(given: Mapping[str, str] | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of element and mode of ``["brake=locked"]`` or ``{"brake": "locked"}``.

    Raises
    ------
    UsageError
        When a text is not of this form, a mode is unknown or an element is named twice.
    """
    if isinstance(given, str):
        raise UsageError(
            f"'friction_modes' must be a sequence: write friction_modes=['{given}'] even for a single element."
        )
    texts = [f"{name}={mode}" for name, mode in given.items()] if isinstance(given, Mapping) else given
    modes: dict[str, str] = {}
    for text in texts:
        element, _, mode = (part.strip() for part in str(text).rpartition("="))
        if not element or mode not in _MODES:
            raise UsageError(
                f"The mode '{text}' is not of the form ELEMENT=MODE. Write for example brake=locked; modes are "
                f"{', '.join(_MODES)}."
            )
        if element in modes:
            raise UsageError(f"The modes name '{element}' twice. Keep one of them.")
        modes[element] = mode
    return tuple(modes.items())


def values_of_mode(element: str, mode: str, names: Collection[str]) -> dict[str, Mode]:
    """Return the values of the variables ``names`` of an element, those of its state machine, in a mode.

    After an initialization ``startForward`` is false again, and ``pre(mode)`` says in which direction it slides.
    """
    needed = {"locked": {LOCKED}, "forward": {"startForward"}, "backward": {"startBackward"}, "free": {"free"}}[mode]
    if not needed & set(names):
        raise HeldModeError(
            f"'{element}' has no mode '{mode}': it does not declare '{next(iter(needed))}', as friction elements "
            "of the Modelica Standard Library with this mode do. Hold it in another mode."
        )
    stuck = mode == "locked"
    values = {
        LOCKED: stuck,
        "stuck": stuck,
        "free": mode == "free",
        "startForward": False,
        "startBackward": False,
        "mode": _MODES[mode],
    }
    return {name: Mode(values[name], values[name]) for name in names if name in values}


def require_velocity(element: str, mode: str, name: str, velocity: float) -> None:
    """Raise an error when an element with a relative velocity, the variable ``name``, cannot have a mode."""
    allowed = {"locked": velocity == 0, "forward": velocity >= 0, "backward": velocity <= 0, "free": True}
    if allowed[mode]:
        return
    asked = {"locked": "stands still", "forward": "slides forward", "backward": "slides backward"}
    raise HeldModeError(
        f"'{element}' cannot be held in the mode '{mode}', in which it {asked[mode]}: its relative velocity '{name}' "
        f"is {velocity:g} at the start. Change the start values of the velocities, or hold it in another mode."
    )


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
        Those to be searched.
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


def describe_modes(
    values: Mapping[str, float], unconstrained: Collection[str] = (), held_modes: Mapping[str, str] | None = None
) -> str:
    """Return a note on the modes of friction elements, from the values of their variables; empty without any.

    Elements in ``unconstrained`` are stuck, but their velocity is not a state; ``held_modes`` are chosen by the user.
    """
    held_modes = held_modes or {}
    words = []
    for name, locked in values.items():
        group = group_of(name)
        if not group or name != f"{group}.{LOCKED}":
            continue
        starts = values.get(f"{group}.startForward"), values.get(f"{group}.startBackward")
        if group in held_modes:
            word = _HELD_WORDS[held_modes[group]]
            if held_modes[group] == "locked" and any(starts):
                word = f"{word[:-1]}, though its static friction is too small for that)"
        elif locked and group in unconstrained:
            word = (
                "is stuck (its relative acceleration is zero; its relative velocity is not a state of the model and "
                "not constrained)"
            )
        elif locked:
            word = "is stuck (its relative velocity is held at zero)"
        elif starts[0]:
            word = "slides forward"
        elif starts[1]:
            word = "slides backward"
        else:
            word = "is free"
        words.append(f"'{group}' {word}")
    if not words:
        return ""
    more = f", and {len(words) - SHOWN_ELEMENTS} more" if len(words) > SHOWN_ELEMENTS else ""
    return f"Friction at the start: {', '.join(words[:SHOWN_ELEMENTS])}{more}."
