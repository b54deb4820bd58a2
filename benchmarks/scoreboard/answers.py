"""What is asked of a model: most often one of its eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy.optimize import brentq

import fmilin as fl
from fmilin.model.interface import Model

__all__ = ["crossing", "derivative", "eigenvalues", "fastest", "nearest", "rightmost", "slowest"]

ZERO = 1e-4
"""Below, an eigenvalue is one of the zeros of coordinates along the ground or about an axle."""


def eigenvalues(model: Model, at: Mapping[str, float] | None = None) -> np.ndarray:
    """Return the eigenvalues at the model's start, or at a point with these values."""
    point = fl.operating_point(model, dict(at or {}))
    found: np.ndarray = fl.linearize(model, point).eigenvalues()
    return found


def fastest(model: Model) -> complex:
    """Return the eigenvalue with the largest imaginary part."""
    return _pick(eigenvalues(model), lambda s: s.imag)


def slowest(model: Model) -> complex:
    """Return the eigenvalue with the smallest imaginary part among those that swing."""
    return _pick(np.array([s for s in eigenvalues(model) if s.imag > ZERO]), lambda s: -s.imag)


def rightmost(model: Model, at: Mapping[str, float] | None = None) -> complex:
    """Return the eigenvalue that grows fastest, the one with a positive imaginary part of a pair."""
    return _pick(eigenvalues(model, at), lambda s: (round(s.real, 6), s.imag))


def nearest(number: complex) -> Callable[[Model], complex]:
    """Return the question for the eigenvalue that is nearest to a number."""
    return lambda model: _pick(eigenvalues(model), lambda s: -abs(s - number))


def derivative(state: str) -> Callable[[Model], complex]:
    """Return the question for the derivative of a state at the model's start."""

    def answer(model: Model) -> complex:
        at = model.evaluate(model.start.time, model.start.states, model.start.inputs)
        return complex(at.derivatives[model.states.names.index(state)])

    return answer


def crossing(growth: Callable[[float], float], low: float, high: float) -> complex:
    """Return where a growth rate passes zero."""
    return complex(brentq(growth, low, high, xtol=1e-13, rtol=1e-13))


def _pick(values: np.ndarray, key: Callable[[complex], object]) -> complex:
    return max((complex(s) for s in values), key=key)  # type: ignore[arg-type]
