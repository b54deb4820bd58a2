"""Motions that repeat, in which A changes, and steady motions, along which it stays the same or only turns."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin, sqrt, tan

import numpy as np
import sympy as sm

import fmilin as fl
from fmilin.models import LagrangeModel, OdeModel
from fmilin.systems import bicycle, four_bar, rolling_disk, slider_crank
from fmilin.systems.disk import steady_yaw_rates
from tests.by_hand import FunctionModel, Parts

__all__ = ["PERIODIC", "STEADY", "conical", "rotor_driven_by_time", "two_bladed_rotor"]


def two_bladed_rotor(azimuth: float = 0.0) -> fl.Model:
    """A hub on a spring that moves sideways, with two blades on lag hinges at 6 rad/s; neutral, by Floquet."""
    x, ps, *z = sm.symbols("x ps z1 z2")
    q = [x, ps, *z]
    v = sm.symbols([f"v_{s}" for s in q])

    def rate(e: sm.Expr) -> sm.Expr:
        return sum(sm.diff(e, a) * b for a, b in zip(q, v, strict=True))

    T, V = 50 * v[0] ** 2 / 2 + 1e3 * v[1] ** 2 / 2, 4e3 * x**2 / 2
    for k in range(2):
        a = ps + sm.pi * k
        px, py = x + 0.3 * sm.cos(a) + 5 * sm.cos(a + z[k]), 0.3 * sm.sin(a) + 5 * sm.sin(a + z[k])
        T += 5 * (rate(px) ** 2 + rate(py) ** 2) / 2
        V += 2e3 * z[k] ** 2 / 2
    L = T - V
    M = [[sm.diff(T, a, b) for b in v] for a in v]
    F = [sm.diff(L, a) - rate(sm.diff(L, b)) for a, b in zip(q, v, strict=True)]
    start = {"v_ps": 6.0, "ps": azimuth}
    return LagrangeModel("rotor", {str(a): str(b) for a, b in zip(q, v, strict=True)}, M, F, start=start)


def rotor_driven_by_time() -> fl.Model:
    """The same rotor whose azimuth is 6 time: nothing moves at its rest, and A changes all the same."""
    t, x, *z = sm.symbols("time x z1 z2")
    q = [x, *z]
    v = sm.symbols([f"v_{s}" for s in q])

    def rate(e: sm.Expr) -> sm.Expr:
        return sm.diff(e, t) + sum(sm.diff(e, a) * b for a, b in zip(q, v, strict=True))

    L = 50 * v[0] ** 2 / 2 - 4e3 * x**2 / 2
    for k in range(2):
        a = 6 * t + sm.pi * k
        px, py = x + 0.3 * sm.cos(a) + 5 * sm.cos(a + z[k]), 0.3 * sm.sin(a) + 5 * sm.sin(a + z[k])
        L += 5 * (rate(px) ** 2 + rate(py) ** 2) / 2 - 2e3 * z[k] ** 2 / 2
    M = [[sm.diff(L, a, b) for b in v] for a in v]
    F = [sm.diff(L, a) - rate(sm.diff(L, b)) for a, b in zip(q, v, strict=True)]
    return LagrangeModel("rotor", {str(a): str(b) for a, b in zip(q, v, strict=True)}, M, F)


def conical(turned: float = 0.0) -> fl.Model:
    """A pendulum of 1 m on a string, 0.5 rad from the vertical, going round: x, y, z, vx, vy, vz."""
    angle = 0.5
    speed = sqrt(9.81 * sin(angle) * tan(angle))

    def rates(_t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        r, v = s[:3], s[3:]
        g = np.array([0.0, 0.0, -9.81])
        return np.concatenate((v, g - (r @ g + v @ v) / (r @ r) * r))

    along, across = np.array([cos(turned), sin(turned)]), np.array([-sin(turned), cos(turned)])
    start = [*(sin(angle) * along), -cos(angle), *(speed * across), 0.0]
    return FunctionModel(Parts(["x", "y", "z", "vx", "vy", "vz"], start, rates, constraints=["x^2 + y^2 + z^2 - 1"]))


def _ode(equations: dict[str, str], start: dict[str, float], constraints: tuple[str, ...] = ()) -> fl.Model:
    return OdeModel("motion", equations, start=start, constraints=[fl.Constraint.from_text(c) for c in constraints])


def _turning(model: fl.Model, **values: float) -> tuple[fl.Model, fl.OperatingPoint]:
    return model, fl.operating_point(model, values)


def _started(model: fl.Model) -> tuple[fl.Model, fl.OperatingPoint]:
    return model, fl.operating_point(model)


def _disk(speed: float, lean: float = 0.0) -> fl.Model:
    return rolling_disk(speed, lean=lean, yaw_rate=steady_yaw_rates(speed, lean)[0] if lean else None)


def _crank() -> tuple[fl.Model, fl.OperatingPoint]:
    model = slider_crank()
    speed = next(name for name in model.states.names if name.endswith(".v"))
    return model, fl.operating_point(model, {speed: 20.0})


Made = Callable[[], tuple[fl.Model, fl.OperatingPoint]]

_SPIN = {"psi": "w", "w": "0"}

PERIODIC: dict[str, Made] = {
    "rotor with two blades": lambda: _started(two_bladed_rotor()),
    "the same, further on": lambda: _started(two_bladed_rotor(0.7)),
    "the same, driven by time": lambda: _started(rotor_driven_by_time()),
    "swing that time pumps": lambda: _started(_ode({"x": "v", "v": "-(1 + 0.05*cos(2*time))*x"}, {"x": 0.0, "v": 0.0})),
    "blade in forward flight": lambda: _started(
        _ode(
            {**_SPIN, "flap": "v", "v": "-(1 + 0.3*sin(psi))*v*w - (1.1 + 0.4*cos(psi) + 0.1*sin(2*psi))*w^2*flap"},
            {"w": 30.0},
        )
    ),
    "gears whose mesh yields": lambda: _started(
        _ode({**_SPIN, "gap": "v", "v": "-0.1*v - (100 + 20*cos(12*psi))*gap"}, {"w": 5.0})
    ),
    "swing that is pumped": lambda: _started(
        _ode({**_SPIN, "x": "v", "v": "-(1 + 0.05*cos(psi))*x"}, {"w": 2.0, "psi": 1.0})
    ),
    "pendulum on its way": lambda: _started(_ode({"q": "v", "v": "-9.81*sin(q)"}, {"q": 1.0, "v": 0.5})),
    "pendulum that goes over": lambda: _started(_ode({"q": "v", "v": "-9.81*sin(q)"}, {"q": 1.0, "v": 9.0})),
    "Van der Pol's cycle": lambda: _started(_ode({"x": "v", "v": "(1 - x^2)*v - x"}, {"x": 1.0, "v": 2.15})),
    "Duffing's spring": lambda: _started(_ode({"x": "v", "v": "-x - x^3"}, {"x": 1.0, "v": 1.0})),
    "crank slider at speed": _crank,
    "four-bar at speed": lambda: _turning(four_bar(), phi=1.0, w=8.0),
    "rotor with two blades, tied to a scale": lambda: _started(
        _ode(
            {**_SPIN, "x": "v", "v": "-(4 + cos(2*psi))*x", "s": "2*v"},
            {"w": 3.0},
            ("s - 2*x",),
        )
    ),
}
"""Motions by name: A changes along them."""

STEADY: dict[str, Made] = {
    "disk, straight on": lambda: _started(_disk(2.5)),
    "disk in a turn": lambda: _started(_disk(2.5, 0.3)),
    "bicycle": lambda: _started(bicycle(speed=4.6)),
    "conical pendulum, in x and y": lambda: _started(conical(0.3)),
    "shaft of two stiffnesses": lambda: _started(
        _ode(
            {
                **_SPIN,
                "x": "vx",
                "y": "vy",
                "vx": "-(4 + cos(2*psi))*x - sin(2*psi)*y",
                "vy": "-sin(2*psi)*x - (4 - cos(2*psi))*y",
            },
            {"w": 3.0},
        )
    ),
    "round shaft": lambda: _started(_ode({**_SPIN, "x": "v", "v": "-4*x - 0.1*w*v"}, {"w": 3.0})),
    "car in a turn": lambda: _started(
        _ode(
            {
                "x": "20*cos(psi) - v*sin(psi)",
                "y": "20*sin(psi) + v*cos(psi)",
                "psi": "r",
                "v": "-8*v - 18*r + 6",
                "r": "v - 9*r + 3 + 0*psi",
            },
            {"v": 0.0, "r": 1 / 3, "psi": 0.4},
        )
    ),
    "train": lambda: _started(_ode({"s": "v", "v": "4 - 0.01*v^2"}, {"v": 20.0, "s": 1e4})),
    "satellite on its circle": lambda: _started(
        _ode({"r": "v", "phi": "w", "v": "r*w^2 - 1/r^2", "w": "-2*v*w/r"}, {"r": 1.0, "w": 1.0})
    ),
    "stone that falls": lambda: _started(_ode({"h": "v", "v": "-9.81"}, {"h": 3.0, "v": -2.0})),
    "gears that mesh evenly": lambda: _started(_ode({**_SPIN, "gap": "v", "v": "-0.1*v - 100*gap"}, {"w": 5.0})),
    "governor": lambda: _started(
        _ode(
            {"phi": "w", "w": "0", "q": "v", "v": "w^2*sin(q)*cos(q) - 9.81*sin(q)"},
            {"w": sqrt(9.81 / cos(0.6)), "q": 0.6},
        )
    ),
}
"""Motions by name: A is the same along them, or only turns with them."""
