"""The linear models of the textbook as blocks of python-control that ``fl.connect`` joins: integrators and gains."""

from __future__ import annotations

from collections.abc import Sequence

import control

import fmilin as fl
from tests.textbook.cells import Cell, Coordinate
from tests.textbook.models import MODELS

__all__ = ["control_blocks"]

Wire = tuple[str, str, float]


def _sum(count: int, factors: Sequence[float]) -> control.StateSpace:
    """Return a block with inputs a, b, c, ... and their weighted sum ``out``."""
    return control.ss([], [], [], [list(factors)], inputs=list("abcd")[:count], outputs=["out"])


def control_blocks(name: str) -> Cell:
    """Return the model as integrators 1/s behind weighted sums, in feedback."""
    textbook = MODELS[name]
    p = textbook.parameters
    if name == "rl_circuit":
        members = {"coil": _sum(2, [1.0, -p["R"]]), "i": _lag(0.0, 1 / p["L"])}
        wires: list[Wire] = [("i.y", "coil.b", 1.0), ("coil.out", "i.u", 1.0)]
        return _cell(name, members, wires, {"v": "coil.a"}, {"current": "i.y", "coil": "coil.out"}, {"i": "i.x"})
    if name == "mass_spring_damper":
        forces = _sum(3, [1 / p["m"], -p["k"] / p["m"], -p["c"] / p["m"]])
        members = {"forces": forces, "v": _lag(0.0, 1.0), "x": _lag(0.0, 1.0)}
        wires = [
            ("forces.out", "v.u", 1.0),
            ("v.y", "x.u", 1.0),
            ("x.y", "forces.b", 1.0),
            ("v.y", "forces.c", 1.0),
        ]
        outputs = {"position": "x.y", "acceleration": "forces.out"}
        return _cell(name, members, wires, {"F": "forces.a"}, outputs, {"x": "x.x", "v": "v.x"})
    if name == "output_that_is_a_state":
        return _cell(
            name, {"lag": _lag(-1 / p["T"], p["k"] / p["T"])}, [], {"u": "lag.u"}, {"y": "lag.y"}, {"y": "lag.x"}
        )
    if name == "sampled_pi_loop":
        return Cell(
            fl.connect({"lag": _lag(-p["a"], p["b"])}, inputs={"u": "lag.u"}, outputs={"y": "lag.y"}),
            {"x": Coordinate("lag.x", {"x": 1.0}, 0.0)},
        )
    if name == "zero_parameter":
        members = {"current": _sum(2, [1 / p["R"], -p["K"] / p["R"]]), "w": _lag(0.0, p["K"] / p["J"])}
        wires = [("w.y", "current.b", 1.0), ("current.out", "w.u", 1.0)]
        return _cell(name, members, wires, {"U": "current.a"}, {"speed": "w.y", "current": "current.out"}, {"w": "w.x"})
    if name == "dc_motor":
        members = {
            "i": _lag(-p["R"] / p["L"], 1 / p["L"]),
            "voltage": _sum(2, [1.0, -p["K"]]),
            "w": _lag(-p["b"] / p["J"], p["K"] / p["J"]),
            "phi": _lag(0.0, 1.0),
        }
        wires = [
            ("voltage.out", "i.u", 1.0),
            ("i.y", "w.u", 1.0),
            ("w.y", "voltage.b", 1.0),
            ("w.y", "phi.u", 1.0),
        ]
        states = {"phi": "phi.x", "w": "w.x", "i": "i.x"}
        return _cell(name, members, wires, {"U": "voltage.a"}, {"phi": "phi.y"}, states)
    raise KeyError(name)


def _lag(pole: float, gain: float) -> control.StateSpace:
    """Return x' = pole x + gain u with the output y = x."""
    return control.ss([[pole]], [[gain]], [[1.0]], [[0.0]], inputs=["u"], outputs=["y"], states=["x"])


def _cell(
    name: str,
    members: dict[str, control.StateSpace],
    wires: list[Wire],
    inputs: dict[str, str],
    outputs: dict[str, str],
    states: dict[str, str],
) -> Cell:
    """Return the connected blocks, at the textbook's point."""
    textbook = MODELS[name]
    system = fl.connect(members, wires, inputs=inputs, outputs=outputs)
    start = {states[state]: value for state, value in textbook.states.items()} | dict(textbook.inputs)
    coordinates = {state: Coordinate(states[state], {state: 1.0}, value) for state, value in textbook.states.items()}
    return Cell(system, coordinates, start=start)
