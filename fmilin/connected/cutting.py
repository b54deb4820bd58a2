"""Wires of a connected system, by the input at which each ends, and the system with some of them cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fmilin.connected.connect import system_of
from fmilin.connected.declaration import NO_CHANGE, Feed, Link, Wanted, signal_of
from fmilin.connected.names import in_member, qualified, split
from fmilin.connected.system import ConnectedModel, Declaration
from fmilin.ground.errors import NumericalError, UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray, Signal
from fmilin.model.interface import Model, OperatingPoint


@dataclass(frozen=True)
class Wire:
    """What a name stands for: links from one output, or a wire inside a member that is a system itself."""

    name: str
    links: tuple[Link, ...] = ()
    inside: tuple[str, str] | None = None  # the member, and the wire's name in it
    at_source: bool = False  # whether the value meant is that of the output, not what an input makes of it


class CutSystem(NamedTuple):
    """A connected system in which each of some wires has become an input of its name, and what it brings an output."""

    model: ConnectedModel
    point: OperatingPoint


def brought_by(wire: str) -> str:
    """Return the name of the output that is what a wire brings."""
    return f"brought by the wire to {wire}"


def wire_of(model: ConnectedModel, name: str) -> Wire:
    """Return the wire of a name."""
    wires = _wires(model)
    if name in wires:
        return wires[name]
    try:
        member, own = split(name, model.members)
        inputs = model.members[member].inputs
    except UnknownNameError:
        raise UnknownNameError.among(name, wires, f"a wire of '{model.info.name}'") from None
    if not inputs.has(own):
        raise UnknownNameError.among(name, wires, f"a wire of '{model.info.name}'")
    canonical = qualified(member, inputs[inputs.positions[own]].name)
    if canonical in wires:
        return wires[canonical]
    raise UsageError(
        f"No wire ends at '{name}': it is an input that no output feeds, so no loop goes through it. Name an input "
        f"that is connected: {', '.join(wires) or 'there is none'}."
    )


def _wires(model: ConnectedModel) -> dict[str, Wire]:
    from_source: dict[str, list[Link]] = {}
    for link in model.declaration.links:
        from_source.setdefault(qualified(*link.source), []).append(link)
    wires = {name: Wire(name, tuple(links), at_source=True) for name, links in from_source.items()}
    wires |= {(target := qualified(*k.target)): Wire(target, (k,)) for k in model.declaration.links}
    for member, own in model.members.items():
        if isinstance(own, ConnectedModel):
            names = ((name, qualified(member, name)) for name in _wires(own))
            wires |= {full: Wire(full, inside=(member, name)) for name, full in names if full not in wires}
    return wires


def cut_at(model: ConnectedModel, point: OperatingPoint, names: Sequence[str]) -> CutSystem:
    """Return a system at a point with wires cut: they are inputs behind its own, what they bring outputs."""
    wires = [wire_of(model, name) for name in names]
    targets = [qualified(*link.target) for wire in wires for link in wire.links]
    if twice := sorted({n for several in (targets, names) for n in several if several.count(n) > 1}):
        raise UsageError(f"The wire to '{twice[0]}' is named twice among {', '.join(names)}. Name each once.")
    try:
        changed, values = _cut(model, point, wires)
    except NumericalError as error:
        raise NumericalError(
            f"With the wire to {', '.join(names)} cut the system has no solution: {error}", variable=error.variable
        ) from None
    return CutSystem(changed, replace(point, inputs=np.concatenate((point.inputs, values))))


def _cut(model: ConnectedModel, point: OperatingPoint, wires: Sequence[Wire]) -> tuple[ConnectedModel, FloatArray]:
    """Return the system with wires cut, and what they carry."""
    d = model.declaration
    members, feeds, wanted = dict(d.members), list(d.feeds), list(d.wanted)
    links = [link for link in d.links if not any(link in wire.links for wire in wires)]
    for wire in wires:
        own = wire.inside is None
        feed, brought = _own_wire(model, point, wire) if own else _inner_wire(model, point, wire, members)
        feeds.append(feed)
        wanted.append(brought)
    kept = list(range(len(d.feeds)) if d.chosen is None else d.chosen)
    chosen = [*kept, *range(len(d.feeds), len(feeds))]
    changed = Declaration(d.name, members, links, feeds, wanted, d.constraints, chosen, d.notes)
    return system_of(changed), np.array([feed.signal.start for feed in feeds[len(d.feeds) :]])


def _own_wire(model: ConnectedModel, point: OperatingPoint, wire: Wire) -> tuple[Feed, Wanted]:
    """Return the input and the output that a wire becomes."""
    at = model.coupling.settle(point.time, point.states, point.inputs)
    first = wire.links[0]
    if wire.at_source:
        value, change = at.outputs[model._taps[first.source]], NO_CHANGE
        unit = signal_of(model.members[first.source[0]], first.source).unit
    else:
        value, change = at.inputs[model.coupling.wires.names.index(qualified(*first.target))], first.change
        inputs = model.members[first.target[0]].inputs
        unit = inputs[inputs.positions[first.target[1]]].unit
    ends = tuple((link.target, link.change if wire.at_source else NO_CHANGE) for link in wire.links)
    feed = Feed(Signal(wire.name, unit, start=float(value)), ends)
    return feed, Wanted(brought_by(wire.name), first.source, change, unit)


def _inner_wire(
    model: ConnectedModel, point: OperatingPoint, wire: Wire, members: dict[str, Model]
) -> tuple[Feed, Wanted]:
    """Cut a wire inside a member, which is replaced among ``members``."""
    assert wire.inside is not None  # noqa: S101 - _cut has looked
    member, own = wire.inside
    x, v = model.coupling.evaluated_members(point.time, point.states, point.inputs)[list(model.members).index(member)]
    inner = members[member]
    assert isinstance(inner, ConnectedModel)  # noqa: S101 - _wires has looked
    of_cuts = inner.start.inputs[len(v) :]  # of wires in it that were cut before
    with in_member(member):
        at = OperatingPoint(point.time, x, np.concatenate((v, of_cuts)), {})
        changed, (value,) = _cut(inner, at, [wire_of(inner, own)])
    members[member] = changed
    feed = Feed(Signal(wire.name, changed.inputs[-1].unit, start=float(value)), (((member, own), NO_CHANGE),))
    return feed, Wanted(brought_by(wire.name), (member, brought_by(own)))
