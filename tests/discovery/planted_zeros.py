"""Thirty models with a channel that is zero, each for a reason that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import control

import fmilin as fl
from fmilin import Model
from fmilin.models import LagrangeModel, OdeModel

__all__ = ["PLANTED", "Planted"]


@dataclass(frozen=True)
class Planted:
    make: Callable[[], Model]
    kind: str
    culprit: str  # must be among those that are named
    input: str = "u"
    output: str = "y"


def ode(equations: dict[str, str], output: str, **more: Any) -> Callable[[], Model]:
    inputs = more.pop("inputs", ["u"])
    return lambda: OdeModel("planted", equations, inputs=inputs, outputs={"y": output}, **more)


def system(wires: list[Any], members: Callable[[], dict[str, Any]], **more: Any) -> Callable[[], Model]:
    return lambda: fl.connect(members(), wires, **more)


def gain(k: float = 1.0, dt: float = 0.0) -> control.StateSpace:
    return control.ss([], [], [], [[k]], dt, inputs="u", outputs="y")


def lag(pole: float = -1.0) -> control.StateSpace:
    return control.ss([[pole]], [[1.0]], [[1.0]], [[0.0]], inputs="u", outputs="y")


def chain(*names: str) -> Callable[[], dict[str, Any]]:
    return lambda: {name: lag(-1.0 - i) for i, name in enumerate(names)}


def lagrange(forces: list[str], constraints: list[str], output: str = "x", **start: float) -> Callable[[], Model]:
    coordinates = {"x": "vx", "y": "vy"}
    return lambda: LagrangeModel(
        "planted", coordinates, [["m", 0], [0, "m"]], forces, constraints=constraints, inputs=["u"],
        parameters={"m": 2.0, "k": 3.0}, outputs={"out": output}, start=start,
    )  # fmt: skip


PAIR = {"a": "va", "b": "vb", "va": "-k1*a - d*va + u", "vb": "-k2*b - d*vb - u"}
EQUAL = {"k1": 2.0, "k2": 2.0, "d": 0.3}

PLANTED = {
    # a factor that vanishes at the point
    "valve without pressure": Planted(ode({"h": "-h + u*p"}, "h", inputs=["u", "p"]), "point", "p"),
    "valve without level": Planted(ode({"h": "-h", "z": "-z + u*h"}, "z"), "point", "h"),
    "moment arm of zero": Planted(ode({"q": "w", "w": "-w + u*sin(q)"}, "w"), "point", "q"),
    "square at its bottom": Planted(ode({"x": "-x + u"}, "x^2"), "point", "x"),
    "cosine at its top": Planted(ode({"x": "-x + u"}, "cos(x)"), "point", "x"),
    "a start in time": Planted(ode({"x": "-x + time*u"}, "x"), "point", "time"),
    "two factors": Planted(ode({"a": "-a", "b": "-b", "x": "-x + a*b*u"}, "x"), "point", "b"),
    # parameters that are zero
    "gain of zero": Planted(ode({"x": "-x + k*u"}, "x", parameters={"k": 0.0, "c": 1.0}), "parameter", "k"),
    "coupling of zero": Planted(
        ode({"a": "-a + u", "b": "-b + c*a"}, "b", parameters={"c": 0.0, "e": 0.0}), "parameter", "c"
    ),
    "two gains of zero": Planted(ode({"x": "-x + k*l*u"}, "x", parameters={"k": 0.0, "l": 0.0}), "parameter", "l"),
    "offset of a sensor": Planted(ode({"x": "-x + u"}, "s*x", parameters={"s": 0.0}), "parameter", "s"),
    # limits, dead zones, friction at rest
    "input beyond its limit": Planted(ode({"x": "-x + min(u, 1)"}, "x", start={"u": 2.0}), "limit", "u"),
    "input below its limit": Planted(ode({"x": "-x + max(u, 0)"}, "x", start={"u": -3.0}), "limit", "u"),
    "saturated actuator": Planted(
        ode({"a": "-a + u", "x": "-x + min(a, 1)"}, "x", start={"a": 9.0, "u": 9.0}), "limit", "a"
    ),
    "dead zone": Planted(ode({"x": "-x + max(u - 0.5, 0) + min(u + 0.5, 0)"}, "x"), "dead zone", "u"),
    "friction at rest": Planted(
        ode({"x": "v", "v": "-v + max(abs(u) - 0.9, 0)*u/(abs(u) + 1e-9)"}, "x"), "dead zone", "u"
    ),
    # symmetry
    "odd push, even sensor": Planted(ode(PAIR, "a + b", parameters=EQUAL), "symmetry", "k1"),
    "odd speeds": Planted(ode(PAIR, "va + vb", parameters=EQUAL), "symmetry", "k2"),
    "even push, odd sensor": Planted(
        ode({**PAIR, "vb": "-k2*b - d*vb + u"}, "a - b", parameters=EQUAL), "symmetry", "k1"
    ),
    # held modes
    "sampled law": Planted(
        system([("law.y", "plant.u")], lambda: {"law": gain(dt=0.1), "plant": lag()}), "held", "law", "law.u", "plant.y"
    ),
    "two sampled laws": Planted(
        system(
            [("p.y", "one.u"), ("one.y", "q.u")],
            lambda: {"p": lag(), "q": lag(-3.0), "one": gain(2.0, 0.2)},
        ),
        "held",
        "one",
        "p.u",
        "q.y",
    ),
    "sampled filter": Planted(
        system(
            [("f.y", "plant.u")],
            lambda: {"f": control.ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], 0.1, inputs="u", outputs="y"), "plant": lag()},
        ),
        "held",
        "f",
        "f.u",
        "plant.y",
    ),
    # freedoms that are constrained away
    "held coordinate": Planted(lagrange(["u", "-k*y"], ["x"]), "constraint", "x", "u", "out"),
    "rail across the push": Planted(lagrange(["u", "-k*y"], ["x - 0.5"], x=0.5), "constraint", "x - 0.5", "u", "out"),
    "sensor across the rail": Planted(lagrange(["u", "u"], ["y"], output="y"), "constraint", "y", "u", "out"),
    # no path
    "wire that is missing": Planted(system([], chain("a", "b")), "no path", "b.u", "a.u", "b.y"),
    "wire in a row": Planted(
        system([("a.y", "b.u"), ("c.y", "d.u")], chain("a", "b", "c", "d")), "no path", "c.u", "a.u", "d.y"
    ),
    "wire the wrong way": Planted(
        system([("b.y", "a.u")], chain("a", "b"), inputs={"w": "b.u"}, outputs=["a.y"]), "not zero", "", "w", "a.y"
    ),
    "two equations apart": Planted(ode({"a": "-a + u", "b": "-2*b"}, "b"), "no path", "a"),
    "output of nothing": Planted(ode({"a": "-a + u", "b": "-2*b + 3*z"}, "z", inputs=["u", "z"]), "no path", "a"),
    "input of nothing": Planted(ode({"a": "-a + w"}, "a", inputs=["u", "w"]), "no path", "a"),
}
