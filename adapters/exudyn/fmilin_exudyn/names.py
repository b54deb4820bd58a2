"""Names of coordinates, loads, constraints and sensors of a system of Exudyn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import exudyn as exu
import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signal

COORDINATES: dict[str, tuple[tuple[str, str], ...]] = {
    "Point": (("x", "m"), ("y", "m"), ("z", "m")),
    "Point2D": (("x", "m"), ("y", "m")),
    "RigidBody2D": (("x", "m"), ("y", "m"), ("phi", "rad")),
    "RigidBodyEP": (("x", "m"), ("y", "m"), ("z", "m"), ("e0", "1"), ("e1", "1"), ("e2", "1"), ("e3", "1")),
    "RigidBodyRxyz": (("x", "m"), ("y", "m"), ("z", "m"), ("rx", "rad"), ("ry", "rad"), ("rz", "rad")),
}
"""Names and units of the coordinates of nodes, as Exudyn's manual has them; others are numbered."""
LIE_GROUPS = ("RigidBodyRotVecLG", "RigidBodyRotVecDataLG")
VECTOR_LOADS = {"ForceVector": "N", "TorqueVector": "N.m"}


def list_names(count: int, kind: str, name_at: Any) -> list[str]:
    """Return names of items, each once: those that occur twice are followed by their numbers."""
    names = [str(name_at(i)["name"]) or f"{kind}{i}" for i in range(count)]
    return [name if names.count(name) == 1 else f"{name}#{i}" for i, name in enumerate(names)]


class Coordinates(NamedTuple):
    """The coordinates of a system: displacements from the reference configuration."""

    positions: list[Signal]  # in the order of Exudyn's ODE2 coordinates
    velocities: list[Signal]
    first_order: list[Signal]  # ODE1 coordinates


def name_coordinates(mbs: Any) -> Coordinates:
    """Return the coordinates with their initial values.

    Raises
    ------
    ModelError
        When rates of coordinates are not their velocities, as on a Lie group.
    """
    data, initial = mbs.systemData, exu.ConfigurationType.Initial
    q, v = data.GetODE2Coordinates(initial), data.GetODE2Coordinates_t(initial)
    z = data.GetODE1Coordinates(initial)
    positions = [Signal(f"q{i}", "", start=float(q[i])) for i in range(len(q))]
    velocities = [Signal(f"v{i}", "", start=float(v[i])) for i in range(len(v))]
    first_order = [Signal(f"z{i}", "", start=float(z[i])) for i in range(len(z))]
    bodies = _name_nodes(mbs)
    for i in range(data.NumberOfNodes()):
        node, body = mbs.GetNode(i), bodies[i]
        kind = str(node["nodeType"])
        if kind in LIE_GROUPS:
            raise ModelError(
                f"The node '{node['name']}' of Exudyn has coordinates of a Lie group ({kind}), of which the rates are "
                "not the velocities. Use Euler parameters: nodeType=exudyn.NodeType.RotationEulerParameters."
            )
        for k, index in enumerate(data.GetNodeLTGODE2(i)):
            known = COORDINATES.get(kind, ())
            coordinate, unit = known[k] if k < len(known) else (f"q{k}", "")
            velocity = f"v{k}" if k >= len(known) else f"v{coordinate}"
            positions[index] = Signal(f"{body}.{coordinate}", unit, start=float(q[index]))
            speed = f"{unit.replace('1', '')}/s".removeprefix("/") if unit else ""
            velocities[index] = Signal(f"{body}.{velocity}", "1/s" if speed == "s" else speed, start=float(v[index]))
        for k, index in enumerate(data.GetNodeLTGODE1(i)):
            first_order[index] = Signal(f"{body}.z{k}", "", start=float(z[index]))
    return Coordinates(positions, velocities, first_order)


def _name_nodes(mbs: Any) -> list[str]:
    """Return a name of each node: that of its body, where one body has it."""
    data = mbs.systemData
    names = list_names(data.NumberOfNodes(), "node", mbs.GetNode)
    objects = list_names(data.NumberOfObjects(), "object", mbs.GetObject)
    of_nodes: dict[int, list[str]] = {}
    for i, name in enumerate(objects):
        content = mbs.GetObject(i)
        if "nodeNumber" in content and "markerNumbers" not in content:
            of_nodes.setdefault(int(content["nodeNumber"]), []).append(name)
    return [of_nodes[i][0] if len(of_nodes.get(i, ())) == 1 else name for i, name in enumerate(names)]


class Load(NamedTuple):
    """An input: one component of a load."""

    number: int
    component: int  # of a vector; -1 of a scalar
    signal: Signal


def name_loads(mbs: Any) -> list[Load]:
    """Return forces and torques that are numbers, each component an input; gravity is not one."""
    loads: list[Load] = []
    count = mbs.systemData.NumberOfLoads()
    for i, name in enumerate(list_names(count, "load", mbs.GetLoad)):
        content = mbs.GetLoad(i)
        kind = str(content["loadType"])
        if kind == "Coordinate" and not content["loadUserFunction"]:
            loads.append(Load(i, -1, Signal(name, "N", start=float(content["load"]))))
        elif kind in VECTOR_LOADS and not content["loadVectorUserFunction"]:
            values = np.asarray(content["loadVector"], dtype=np.float64).tolist()
            loads += [
                Load(i, k, Signal(f"{name}.{axis}", VECTOR_LOADS[kind], start=value))
                for k, (axis, value) in enumerate(zip("xyz", values, strict=True))
            ]
    return loads


def name_constraints(mbs: Any, rows: NDArray[np.intp]) -> list[str]:
    """Return names of algebraic equations by their numbers: that of the joint, or of the node with unit length."""
    data = mbs.systemData
    names = {int(row): f"equation{row}" for row in rows}
    for i, name in enumerate(list_names(data.NumberOfObjects(), "object", mbs.GetObject)):
        own = data.GetObjectLTGAE(i)
        names |= {int(row): f"{name}[{k + 1}]" for k, row in enumerate(own) if int(row) in names}
    for i, body in enumerate(_name_nodes(mbs)):  # of a body that has its node's equation, too
        names |= {int(row): f"{body}.length" for row in data.GetNodeLTGAE(i) if int(row) in names}
    return [names[int(row)] for row in rows]


class Sensor(NamedTuple):
    """A quantity: one number of a sensor."""

    number: int
    component: int
    signal: Signal


def name_sensors(mbs: Any) -> Iterator[Sensor]:
    """Yield the numbers of all sensors."""
    count = mbs.systemData.NumberOfSensors()
    for i, name in enumerate(list_names(count, "sensor", mbs.GetSensor)):
        size = len(read_sensor(mbs, i))
        for k in range(size):
            yield Sensor(i, k, Signal(name if size == 1 else f"{name}[{k + 1}]"))


def read_sensor(mbs: Any, number: int) -> FloatArray:
    """Return the numbers of a sensor at the current coordinates."""
    return np.atleast_1d(np.asarray(mbs.GetSensorValues(number), dtype=np.float64))
