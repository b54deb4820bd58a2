"""Does a point satisfy the equations? What is left of each of them, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import NumericalError, UnknownNameError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.tolerances import ON_MANIFOLD, RATES
from fmilin.manifold.projection import not_on_manifold
from fmilin.native.kane.form import KaneForm
from fmilin.native.kane.functions import KaneFunctions

__all__ = ["PointToCheck", "require_consistent_point", "residuals_at"]

_TITLES = {"f_0": "f_0 + f_1", "f_2": "f_2 + f_3"}


@dataclass(frozen=True, slots=True)
class PointToCheck:
    """A point of a system, and the rates that it is meant to have."""

    functions: KaneFunctions
    states: Signals
    known: FloatArray  # (t, q, u, r, p)
    rates: Mapping[str, float]  # rates of states by the states' names or their own; those not given are solved for


def residuals_at(point: PointToCheck) -> dict[str, float]:
    """Return the value of every left-hand side, with the given rates and the others solved for."""
    values, _ = _evaluated(point)
    return dict(zip(_names(point.functions.form), values.tolist(), strict=True))


def require_consistent_point(point: PointToCheck, system: str) -> None:
    """Raise when the point, or a given rate, does not satisfy the equations of ``system``."""
    form = point.functions.form
    values, sizes = _evaluated(point)
    names = _names(form)
    if not (np.isfinite(values).all() and np.isfinite(sizes).all()):
        culprits = np.flatnonzero(~np.isfinite(sizes))
        bad = names[int((culprits if len(culprits) else np.flatnonzero(~np.isfinite(values)))[0])]
        raise NumericalError(f"The equation {bad} of '{system}' is not a number at the point.", variable=bad)
    count = len(form.f_c) + len(form.velocity)
    limits = np.where(np.arange(len(values)) < count, ON_MANIFOLD, RATES)
    off = np.abs(values) / np.where(sizes > 0, sizes, 1.0)
    residuals = {n: float(v) for n, v, d, e in zip(names, values, off, limits, strict=True) if not d <= e}
    if residuals:
        raise not_on_manifold(
            residuals,
            otherwise=f"The point does not satisfy the equations of '{system}'",
            advice="Let fmilin.operating_point assemble the states, and leave rates out to have them solved for.",
        )


def _names(form: KaneForm) -> list[str]:
    rows = [row.name for block in (form.velocity, form.kinematics, form.acceleration, form.dynamics) for row in block]
    return [*form.configuration_names, *(_title(name) for name in rows)]


def _title(name: str) -> str:
    letter, bracket, rest = name.partition("[")
    return f"({_TITLES[letter]}){bracket}{rest}" if letter in _TITLES else name


def _evaluated(point: PointToCheck) -> tuple[FloatArray, FloatArray]:
    """Return all left-hand sides, and the sizes that they are compared with."""
    functions = point.functions
    given = _by_position(point.states, point.rates)
    values, G = functions.constraints(point.known)
    n, o = len(functions.form.q), len(functions.form.u)
    H = np.hstack((G[:, 1 : 1 + n], G[:, 1 + 2 * n : 1 + 2 * n + o]))
    sizes = np.linalg.norm(H * point.states.scales(point.known[1 : 1 + n + o]), axis=1)
    left, terms = functions.left_hand_sides(point.known, given)
    return np.concatenate((values, left)), np.concatenate((sizes, terms))


def _by_position(states: Signals, rates: Mapping[str, float]) -> dict[int, float]:
    names = [f"der({name})" for name in states.names]
    found = {}
    for name, value in rates.items():
        if states.has(name):
            found[states.positions[name]] = float(value)
        elif name in names:
            found[names.index(name)] = float(value)
        else:
            raise UnknownNameError.among(name, [*states.names, *names], "a state of the model or its rate")
    return found
