"""Connections that carry no real number: a linear model holds such values at what they are where the system starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from fmilin.connected.ssp.elements import Connector, Value, Wire
from fmilin.connected.ssp.flattening import Flat, Node, named
from fmilin.connected.units import Affine
from fmilin.ground.errors import ModelError

__all__ = ["HeldValues", "in_order"]

ValueOf = Callable[[Node], Value | None]
"""From a connector of a component that is open to its present value; None where the component cannot tell."""

_UNREADABLE = {"String", "Binary", "Clock"}


def in_order(flat: Flat) -> list[str]:
    """Return the paths of all components, those first whose values others are held at; as in the file otherwise."""
    before: dict[str, set[str]] = {path: set() for path in flat.placed}
    for path, needed in before.items():
        for node in flat.held_of(path):
            (source, _), *_ = flat.held_chain(node)
            if source in flat.placed and source != path:
                needed.add(source)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return list(flat.placed)


@dataclass(frozen=True)
class HeldValues:
    """Values for the inputs of one component."""

    values: Mapping[str, Value]  # by variable
    notes: tuple[str, ...]  # what was held, and what keeps its start value

    @classmethod
    def of(cls, flat: Flat, path: str, value_of: ValueOf) -> HeldValues:
        """Follow the connections to the component at ``path``."""
        values: dict[str, Value] = {}
        notes = []
        for node in flat.held_of(path):
            source, wires = flat.held_chain(node)
            kind = _kind(flat, [source, node])
            found = None if kind in _UNREADABLE else _source_value(flat, source, value_of)
            told = f"The connection '{named(source)}' -> '{named(node)}' carries a {kind}, no real number"
            if found is None:
                notes.append(f"{told}. '{named(node)}' keeps its start value.")
                continue
            for target, wire, where in wires:
                found = _passed(found, wire, flat.connectors.get(source), flat.connectors.get(target), where)
                source = target
            values[node[1]] = found
            shown = str(found).lower() if isinstance(found, bool) else found
            notes.append(f"{told}: '{named(node)}' is held at {shown}, the value where the system starts.")
        return cls(values, tuple(notes))


def _kind(flat: Flat, nodes: list[Node]) -> str:
    types = [flat.connectors[n].type for n in nodes if n in flat.connectors]
    return next((t for t in types if t and t != "Real"), "discrete value")


def _source_value(flat: Flat, source: Node, value_of: ValueOf) -> Value | None:
    if source[0] in flat.placed:
        return value_of(source)
    bound = flat.values.get(source)
    return None if bound is None else bound[0]


def _passed(value: Value, wire: Wire, source: Connector | None, target: Connector | None, where: str) -> Value:
    """Return what arrives at the end of one connection."""
    if wire.table:
        return _mapped(value, wire, source, target, where)
    if isinstance(value, (bool, str)) or wire.change == Affine():
        return value
    return wire.change.factor * value + wire.change.offset


def _mapped(value: Value, wire: Wire, source: Connector | None, target: Connector | None, where: str) -> Value:
    names = {} if source is None else {number: name for name, number in source.items.items()}
    text = str(value).lower() if isinstance(value, bool) else str(value)
    key = names.get(value, text) if isinstance(value, int) else text
    found = wire.table.get(key, wire.table.get(text))
    if found is None:
        known = ", ".join(wire.table)
        raise ModelError(
            f"{where}: the transformation has no entry for '{key}', the value where the system starts. "
            f"It has: {known}. Add it."
        )
    if target is not None and found in target.items:
        return target.items[found]
    if found in ("true", "false"):
        return found == "true"
    try:
        return int(found)
    except ValueError:
        return found
