"""The textbook's models as functions of Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fmilin import Signal, Signals
from fmilin.models import FunctionModel
from tests.textbook.cells import Cell
from tests.textbook.models import MODELS
from tests.textbook.native import first_order, start_of

__all__ = ["function_model"]


def function_model(name: str) -> Cell:
    """Return the model as functions of Python, differenced where they are not analytic."""
    textbook = MODELS[name]
    p = dict(textbook.parameters)
    declared = _functions(p)
    key = name.removesuffix("_inside").removesuffix("_outside").removesuffix("_hanging").removesuffix("_upright")
    rates, outputs, more = declared["ball" if name.startswith("ball_at") or name.startswith("ball_in") else key]
    dependent = first_order(name).get("dependent", {})
    values = start_of(textbook, **dependent)
    order = more.pop("states", [state for state in first_order(name)["equations"] if state in values])
    inputs = first_order(name).get("inputs", list(textbook.inputs))
    states = {state: values.get(state, 0.0) for state in order}
    entries = Signals(Signal(entry, start=values.get(entry, 0.0)) for entry in inputs)
    return Cell(FunctionModel(name, states, rates, inputs=entries, outputs=outputs, **more))


def _functions(p: dict[str, float]) -> dict[str, tuple[Callable[..., Any], dict[str, Callable[..., Any]], Any]]:
    """Return rates, outputs and keyword arguments of every model, over its parameters ``p``."""
    sin, cos, sqrt = np.sin, np.cos, np.sqrt

    def cart_pole(t: float, x: Any, u: Any) -> Any:
        _, th, v, w = x
        below = p["M"] + p["m"] * sin(th) ** 2
        force = u[0] + p["m"] * sin(th) * (p["l"] * w**2 - p["g"] * cos(th))
        turn = -u[0] * cos(th) - p["m"] * p["l"] * w**2 * sin(th) * cos(th) + (p["M"] + p["m"]) * p["g"] * sin(th)
        return np.array([v, w, force / below, turn / (p["l"] * below)])

    def body(t: float, x: Any, u: Any) -> Any:
        e, w = x[:4], x[4:]
        inertia = np.array([p["Ix"], p["Iy"], p["Iz"]])
        scalar = -(e[1:] @ w) / 2
        vector = (e[0] * w + np.cross(e[1:], w)) / 2
        return np.concatenate(([scalar], vector, (u - np.cross(w, inertia * w)) / inertia))

    def capacitors(t: float, x: Any, u: Any) -> Any:
        series = p["C1"] * p["C2"] / (p["C1"] + p["C2"])
        rate = x[0] / (p["C3"] + series)
        coil = (u[0] - p["R"] * x[0] - x[3]) / p["L"]
        return np.array([coil, series / p["C1"] * rate, series / p["C2"] * rate, rate])

    def tanks(t: float, x: Any, u: Any) -> Any:
        between, below = p["k"] * sqrt(x[0] - x[1]), p["k"] * sqrt(x[1])
        return np.array([u[0] - between, between - below]) / p["area"]

    def motor(t: float, x: Any, u: Any) -> Any:
        _, w, i = x
        return np.array([w, (p["K"] * i - p["b"] * w) / p["J"], (u[0] - p["R"] * i - p["K"] * w) / p["L"]])

    def pendulum(t: float, x: Any, u: Any) -> Any:
        torque = u[0] - p["m"] * p["g"] * p["l"] * sin(x[0]) - p["c"] * x[1]
        return np.array([x[1], torque / (p["m"] * p["l"] ** 2)])

    def beam(t: float, x: Any, u: Any) -> Any:
        r, a, rv, av = x
        m, g = p["m"], p["g"]
        ball = (m * r * av**2 - m * g * sin(a)) / (7 / 5 * m)
        return np.array([rv, av, ball, (u[0] - 2 * m * r * rv * av - m * g * r * cos(a)) / (p["J"] + m * r**2)])

    def spring(x: Any, u: Any) -> Any:
        return (u[0] - p["k"] * x[0] - p["c"] * x[1]) / p["m"]

    analytic = {"analytic": True}
    return {
        "rl_circuit": (
            lambda t, x, u: (u - p["R"] * x) / p["L"],
            {"current": lambda t, x, u: x[0], "coil": lambda t, x, u: u[0] - p["R"] * x[0]},
            {**analytic},
        ),
        "mass_spring_damper": (
            lambda t, x, u: np.array([x[1], spring(x, u)]),
            {"position": lambda t, x, u: x[0], "acceleration": lambda t, x, u: spring(x, u)},
            {**analytic},
        ),
        "pendulum": (
            pendulum,
            {
                "angle": lambda t, x, u: math.atan2(sin(x[0]), cos(x[0])),
                "height": lambda t, x, u: -p["l"] * cos(x[0]),
            },
            {},
        ),
        "input_with_default": (lambda t, x, u: 1 - u * x, {"discharge": lambda t, x, u: u[0] * x[0]}, {**analytic}),
        "output_that_is_a_state": (
            lambda t, x, u: (p["k"] * u - x) / p["T"],
            {"y": lambda t, x, u: x[0]},
            {**analytic},
        ),
        "zero_parameter": (  # the current is an algebraic variable: its residual is the voltage's balance
            lambda t, x, u: np.array([p["K"] * x[1] / p["J"]]),
            {"speed": lambda t, x, u: x[0], "current": lambda t, x, u: x[1]},
            {
                **analytic,
                "states": ["w", "i"],
                "algebraic": {"i": lambda t, x, u: u[0] - p["R"] * x[1] - p["K"] * x[0]},
            },
        ),
        "two_tanks": (tanks, {"outflow": lambda t, x, u: p["k"] * sqrt(x[1])}, {**analytic}),
        "dc_motor": (motor, {"phi": lambda t, x, u: x[0]}, {**analytic}),
        "cart_pole": (cart_pole, {"x": lambda t, x, u: x[0], "angle": lambda t, x, u: x[1]}, {**analytic}),
        "ball_and_beam": (beam, {"r": lambda t, x, u: x[0], "a": lambda t, x, u: x[1]}, {**analytic}),
        "ball": (
            lambda t, x, u: np.array([x[1], (u[0] + max(0.0, -p["k"] * x[0])) / p["m"] - p["g"]]),
            {"height": lambda t, x, u: x[0]},
            {},
        ),
        "saturated_integrator": (
            lambda t, x, u: np.array([min(max(u[0], -1.0), 1.0)]),
            {"y": lambda t, x, u: 2 * x[0]},
            {},
        ),
        "sampled_pi_loop": (
            lambda t, x, u: -p["a"] * x + p["b"] * u,
            {"y": lambda t, x, u: x[0]},
            {**analytic},
        ),
        "capacitor_loop": (
            capacitors,
            {"voltage": lambda t, x, u: x[3], "middle": lambda t, x, u: x[2]},
            {**analytic, "constraints": ["u1 + u2 - u3"]},
        ),
        "quaternion_body": (
            body,
            {"rate_x": lambda t, x, u: x[4], "rate_z": lambda t, x, u: x[6]},
            {**analytic, "constraints": ["e0^2 + e1^2 + e2^2 + e3^2 - 1"]},
        ),
    }
