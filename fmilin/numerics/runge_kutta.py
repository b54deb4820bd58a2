"""One step of the classical Runge-Kutta method."""

from __future__ import annotations

from collections.abc import Callable

from fmilin.ground.signals import FloatArray

Rates = Callable[[float, FloatArray], FloatArray]


def runge_kutta_step(f: Rates, t: float, y: FloatArray, h: float, k1: FloatArray) -> FloatArray:
    """Return y(t + h) by the classical Runge-Kutta method; ``k1``: f(t, y)."""
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
