"""Coordinates that the user gives as expressions, ``"theta = atan2(x, -y)"``: R(x, y) = rho(x) - y (Spencer 2.3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import NumericalError, UnknownNameError, UsageError
from fmilin.ground.signals import Signal, Signals
from fmilin.ground.tolerances import REFUSED
from fmilin.manifold.coordinates import NonlinearCoordinates, conditioning
from fmilin.manifold.selection import Manifold, Selection, select_partition
from fmilin.model.constraints.expressions import Expression, ExpressionError, parse
from fmilin.model.constraints.functions import ExpressionFunctions


@dataclass(frozen=True, slots=True)
class _Coordinate:
    name: str
    unit: str
    expression: Expression


def has_expressions(named: Sequence[str]) -> bool:
    """Whether any of the coordinates is given as ``name = expression``."""
    return any("=" in text for text in named)


def select_expressions(manifold: Manifold, named: Sequence[str], parameters: Mapping[str, float]) -> Selection:
    """Take P coordinates, or those of positions (eq. 2.26), as states or ``name = expression`` with ``parameters``."""
    chosen = [_coordinate(text, manifold.states, parameters) for text in named]
    names = [c.name for c in chosen]
    if len(set(names)) != len(names):
        raise UsageError(f"A coordinate is named twice in {', '.join(names)}.")
    if len(chosen) != manifold.order:
        chosen = _with_rates(manifold, chosen)
    coordinates = _coordinates(manifold, chosen, parameters)
    y0 = coordinates.values(manifold.x0)
    condition = conditioning(coordinates.R, manifold.H, manifold.scales) if np.isfinite(y0).all() else np.inf
    if condition > REFUSED:
        raise NumericalError(
            f"The coordinates {', '.join(names)} are not one-to-one on the manifold at this point: different motions "
            f"give them the same change (condition number {condition:.3g}). "
            f"{', '.join(select_partition(manifold).signals.names)} would do.",
            condition_number=condition,
        )
    texts = [text.partition("=")[2].strip() for text in named] + [""] * (len(chosen) - len(named))
    signals = Signals(
        Signal(c.name, c.unit, start=float(v), description=text) for c, v, text in zip(chosen, y0, texts, strict=True)
    )
    return Selection("named", signals, coordinates, condition)


def expressed(manifold: Manifold, texts: Sequence[str]) -> NonlinearCoordinates:
    """Return as many functions of the states as there are texts, which need not be coordinates together."""
    return _coordinates(manifold, [_coordinate(text, manifold.states, {}) for text in texts], {})


def _coordinates(
    manifold: Manifold, chosen: Sequence[_Coordinate], parameters: Mapping[str, float]
) -> NonlinearCoordinates:
    positions = manifold.states.positions_of_own_names
    used = {n: parameters[n] for c in chosen for n in c.expression.names if n not in positions}
    functions = ExpressionFunctions([c.expression for c in chosen], positions, len(manifold.states), used)
    return NonlinearCoordinates(functions, manifold.x0)


def _coordinate(text: str, states: Signals, parameters: Mapping[str, float]) -> _Coordinate:
    name, _, right = (part.strip() for part in text.partition("="))
    if not right:
        i = states.index_of(name, "a state of the model")
        return _Coordinate(name, states[i].unit, Expression.variable(states[i].name))
    try:
        expression = parse(right)
    except ExpressionError as error:
        raise UsageError(f"In the coordinate '{name}': {error}") from None
    for variable in expression.names:
        if variable not in states.positions_of_own_names and variable not in parameters:
            candidates = [*states.positions_of_own_names, *parameters]
            raise UnknownNameError.among(variable, candidates, f"a state or parameter (in the coordinate '{name}')")
    if states.has(name):
        raise UsageError(f"The coordinate '{name}' has the name of a state: call it something else.")
    return _Coordinate(name, "", expression)


def _with_rates(manifold: Manifold, chosen: list[_Coordinate]) -> list[_Coordinate]:
    """Complete position coordinates by their time derivatives D rho(q) v."""
    p, positions = manifold.order, manifold.states.positions_of_own_names
    paired = all(positions[n] in manifold.pairs for c in chosen for n in c.expression.names if n in positions)
    if 2 * len(chosen) != p or not paired:
        raise UsageError(
            f"{len(chosen)} independent coordinates were given, but the model has {p} at this point"
            + (f" (or {p // 2} of position level)" if manifold.pairs and p % 2 == 0 else "")
            + f". For example: {', '.join(select_partition(manifold).signals.names) or 'none'}."
        )
    names = manifold.states.names
    moving = {names[q]: names[v] for q, v in manifold.pairs.items()}
    rates = []
    for c in chosen:
        plain = c.name in positions
        name = moving[c.name] if plain else f"der({c.name})"
        unit = manifold.states[positions[name]].unit if plain else ""
        rates.append(_Coordinate(name, unit, c.expression.rate(moving)))
    return [*chosen, *rates]
