"""Orbits of constrained models against their reduced equations: an angle, integrated and corrected by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin.models import DaeModel
from fmilin.signals import FloatArray
from fmilin.systems import four_bar

Acceleration = Callable[[float, float, float], tuple[float, float, float]]


def correct_orbit(acceleration: Acceleration, start: list[float], period: float) -> tuple[FloatArray, FloatArray]:
    """Return the start of a forced orbit of an angle, and its monodromy matrix, by Newton's method.

    ``acceleration`` takes the time, the angle and its rate; it returns the acceleration and its derivatives by both.
    """

    def rates(t: float, z: FloatArray) -> FloatArray:
        a, by_angle, by_rate = acceleration(t, z[0], z[1])
        slopes = np.array([[0.0, 1.0], [by_angle, by_rate]])
        return np.concatenate(([z[1], a], (slopes @ z[2:].reshape(2, 2)).ravel()))

    x = np.array(start)
    for _ in range(3):
        end = solve_ivp(rates, (0.0, period), [*x, 1.0, 0.0, 0.0, 1.0], method="DOP853", rtol=1e-13, atol=1e-14).y[
            :, -1
        ]
        M = end[2:].reshape(2, 2)
        x = x - np.linalg.solve(M - np.eye(2), end[:2] - x)
    return x, M


def require_multipliers(floquet: fl.Floquet, M: FloatArray) -> None:
    expected = np.linalg.eigvals(M)
    for multiplier, error in zip(floquet.multipliers, floquet.multiplier_errors, strict=True):
        assert np.abs(expected - multiplier).min() <= 3 * max(error, 1e-11)


def test_a_driven_four_bar_linkage_moves_as_its_reduced_equation_says() -> None:
    """The equation of the angle is in the description of ``four_bar``; N = 1."""
    period, k, l0, c = 2 * np.pi / 3, 25.0, np.sqrt(2.0), 2.0

    def torque(t: float) -> float:
        return 0.5 * float(np.cos(3.0 * t))

    torque.knots = []  # type: ignore[attr-defined]

    def acceleration(t: float, q: float, w: float) -> tuple[float, float, float]:
        half = q / 2
        spring = k * (2 * np.cos(half) - l0) * np.sin(half)
        moment = torque(t) - 2 * 9.81 * np.cos(q) + spring - c * np.sin(half) ** 2 * w
        by_spring = k * (np.cos(half) * (2 * np.cos(half) - l0) / 2 - np.sin(half) ** 2)
        by_angle = 2 * 9.81 * np.sin(q) + by_spring - c * np.sin(half) * np.cos(half) * w
        return 3 / 5 * moment, 3 / 5 * by_angle, -3 / 5 * c * np.sin(half) ** 2

    model = four_bar(damping=c)
    orbit = fl.periodic_orbit(model, period=period, inputs={"torque": torque})
    start = dict(zip(model.states.names, orbit.start.states.tolist(), strict=True))
    x, M = correct_orbit(acceleration, [start["phi"], start["w"]], period)
    assert [start["phi"], start["w"]] == pytest.approx(x, abs=1e-10)
    require_multipliers(fl.linearize_periodic(model, orbit, points=32).floquet(), M)


def test_a_shaken_pendulum_of_index_three_moves_as_its_angle_does() -> None:
    period, g, d = 2 * np.pi / 2.5, 9.81, 0.3

    def acceleration(t: float, q: float, w: float) -> tuple[float, float, float]:
        push = 2 * np.cos(2.5 * t)
        return push * np.cos(q) - d * w - g * np.sin(q), -push * np.sin(q) - g * np.cos(q), -d

    equations = ["der(x) = vx", "der(y) = vy", f"der(vx) = -F*x - {d}*vx + 2*cos(2.5*time)",
                 f"der(vy) = -F*y - {d}*vy - {g}", "x^2 + y^2 = 1"]  # fmt: skip
    model = DaeModel("pendulum", equations, start={"x": 0.0, "y": -1.0, "vx": 0.0})
    orbit = fl.periodic_orbit(model, period=period)
    s = dict(zip(model.states.names, orbit.start.states.tolist(), strict=True))
    angle = [float(np.arctan2(s["x"], -s["y"])), s["x"] * s["vy"] - s["y"] * s["vx"]]
    x, M = correct_orbit(acceleration, angle, period)
    assert angle == pytest.approx(x, abs=1e-10)
    require_multipliers(fl.linearize_periodic(model, orbit, points=32).floquet(), M)
