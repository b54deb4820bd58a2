"""Does a point satisfy the equations? What is left of each of them, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import ConstraintError, NumericalError, UnknownNameError
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import ON_MANIFOLD, RATES

if TYPE_CHECKING:
    from fmilin.models.kane.model import KaneModel

__all__ = ["require_consistent_point", "residuals_at"]

_TITLES = {"f_0": "f_0 + f_1", "f_2": "f_2 + f_3"}


def residuals_at(model: KaneModel, point: OperatingPoint, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the value of every left-hand side, with the given rates and the others solved for."""
    values, _ = _evaluated(model, point, rates)
    return dict(zip(_names(model), values.tolist(), strict=True))


def require_consistent_point(model: KaneModel, point: OperatingPoint, rates: Mapping[str, float]) -> None:
    """Raise when the point, or a given rate, does not satisfy the equations.

    Raises
    ------
    ConstraintError
        With each residual by name.
    NumericalError
        When an equation is not a number at the point.
    UnknownNameError
        When a rate of something else than a state is given.
    """
    values, sizes = _evaluated(model, point, rates)
    names = _names(model)
    if not (np.isfinite(values).all() and np.isfinite(sizes).all()):
        culprits = np.flatnonzero(~np.isfinite(sizes))
        bad = names[int((culprits if len(culprits) else np.flatnonzero(~np.isfinite(values)))[0])]
        raise NumericalError(f"The equation {bad} of '{model.info.name}' is not a number at the point.", variable=bad)
    count = len(model.form.f_c) + len(model.form.velocity)
    limits = np.where(np.arange(len(values)) < count, ON_MANIFOLD, RATES)
    off = np.abs(values) / np.where(sizes > 0, sizes, 1.0)
    residuals = {n: float(v) for n, v, d, e in zip(names, values, off, limits, strict=True) if not d <= e}
    if residuals:
        listed = "; ".join(f"{name} is {value:.6g} instead of 0" for name, value in list(residuals.items())[:8])
        raise ConstraintError(
            f"The point does not satisfy the equations of '{model.info.name}': {listed}. Let fmilin.operating_point "
            "assemble the states, and leave rates out to have them solved for.",
            residuals=residuals,
        )


def _names(model: KaneModel) -> list[str]:
    form = model.form
    rows = [row.name for block in (form.velocity, form.kinematics, form.acceleration, form.dynamics) for row in block]
    return [*form.configuration_names, *(_title(name) for name in rows)]


def _title(name: str) -> str:
    letter, bracket, rest = name.partition("[")
    return f"({_TITLES[letter]}){bracket}{rest}" if letter in _TITLES else name


def _evaluated(model: KaneModel, point: OperatingPoint, rates: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Return all left-hand sides, and the sizes that they are compared with."""
    functions = model._functions
    known = model._known(point)
    given = _by_position(model, rates)
    values, G = functions.constraints(known)
    n, o = len(model.form.q), len(model.form.u)
    H = np.hstack((G[:, 1 : 1 + n], G[:, 1 + 2 * n : 1 + 2 * n + o]))
    sizes = np.linalg.norm(H * model.states.scales(point.states), axis=1)
    left, terms = functions.left_hand_sides(known, given)
    return np.concatenate((values, left)), np.concatenate((sizes, terms))


def _by_position(model: KaneModel, rates: Mapping[str, float]) -> dict[int, float]:
    names = [f"der({name})" for name in model.states.names]
    found = {}
    for name, value in rates.items():
        if model.states.has(name):
            found[model.states.positions[name]] = float(value)
        elif name in names:
            found[names.index(name)] = float(value)
        else:
            raise UnknownNameError.among(name, [*model.states.names, *names], "a state of the model or its rate")
    return found
