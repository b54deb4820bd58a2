"""Wires of connected systems by name, and systems in which some are cut.

A wire bears the name of the input at which it ends; the name of an output means all wires that begin there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fmilin.composition.hybrid_system import build_system
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import (
    NO_CHANGE,
    Feed,
    SystemOutput,
    WireLink,
    get_signal,
    in_member,
    qualify,
    split,
)
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signal


@dataclass(frozen=True)
class NamedWire:
    """The wires that a name denotes: links from one output, or a wire inside a member that is a system itself."""

    name: str
    links: tuple[WireLink, ...] = ()
    inside: tuple[str, str] | None = None  # the member, and the wire's name in it
    at_source: bool = False  # whether the value meant is that of the output, not what an input makes of it


class CutSystem(NamedTuple):
    """A connected system in which each of some wires has become an input of its name, and what it brings an output."""

    model: ConnectedModel
    point: OperatingPoint


def name_wire_output(wire: str) -> str:
    """Return the name of the output that is what a wire brings."""
    return f"brought by the wire to {wire}"


def find_wire(model: ConnectedModel, name: str) -> NamedWire:
    """Return the wire of a name."""
    wires = _wires(model)
    if name in wires:
        return wires[name]
    try:
        member, variable = split(name, model.members)
        inputs = model.members[member].inputs
    except UnknownNameError:
        raise UnknownNameError.among(name, wires, f"a wire of '{model.info.name}'") from None
    if not inputs.has(variable):
        raise UnknownNameError.among(name, wires, f"a wire of '{model.info.name}'")
    canonical = qualify(member, inputs[inputs.positions[variable]].name)
    if canonical in wires:
        return wires[canonical]
    raise UsageError(
        f"No wire ends at '{name}': no output feeds this input, so no loop passes through it. Name a connected input: "
        f"{', '.join(wires) or 'this system has no wires'}."
    )


def _wires(model: ConnectedModel) -> dict[str, NamedWire]:
    from_source: dict[str, list[WireLink]] = {}
    for link in model.declaration.links:
        from_source.setdefault(qualify(*link.source), []).append(link)
    wires = {name: NamedWire(name, tuple(links), at_source=True) for name, links in from_source.items()}
    wires |= {(target := qualify(*k.target)): NamedWire(target, (k,)) for k in model.declaration.links}
    for member, member_model in model.members.items():
        if isinstance(member_model, ConnectedModel):
            names = ((name, qualify(member, name)) for name in _wires(member_model))
            wires |= {full: NamedWire(full, inside=(member, name)) for name, full in names if full not in wires}
    return wires


def cut_wires(model: ConnectedModel, point: OperatingPoint, names: Sequence[str]) -> CutSystem:
    """Return a system at a point with wires cut: they are inputs behind its own, what they bring outputs."""
    wires = [find_wire(model, name) for name in names]
    targets = [qualify(*link.target) for wire in wires for link in wire.links]
    if twice := sorted({n for several in (targets, names) for n in several if several.count(n) > 1}):
        raise UsageError(f"The wire to '{twice[0]}' is named twice among {', '.join(names)}. Name each wire only once.")
    try:
        changed, values = _cut(model, point, wires)
    except NumericalError as error:
        raise NumericalError(
            f"With the wire to {', '.join(names)} cut the system has no solution: {error}", variable=error.variable
        ) from None
    return CutSystem(changed, replace(point, inputs=np.concatenate((point.inputs, values))))


def _cut(model: ConnectedModel, point: OperatingPoint, wires: Sequence[NamedWire]) -> tuple[ConnectedModel, FloatArray]:
    """Return the system with wires cut, and what they carry."""
    d = model.declaration
    members, feeds, outputs = dict(d.members), list(d.feeds), list(d.outputs)
    links = [link for link in d.links if not any(link in wire.links for wire in wires)]
    for wire in wires:
        is_direct = wire.inside is None
        feed, brought = _own_wire(model, point, wire) if is_direct else _inner_wire(model, point, wire, members)
        feeds.append(feed)
        outputs.append(brought)
    chosen_before = list(range(len(d.feeds)) if d.chosen is None else d.chosen)
    chosen = [*chosen_before, *range(len(d.feeds), len(feeds))]
    changed = SystemDeclaration(d.name, members, links, feeds, outputs, d.constraints, chosen, d.notes)
    return build_system(changed), np.array([feed.signal.start for feed in feeds[len(d.feeds) :]])


def _own_wire(model: ConnectedModel, point: OperatingPoint, wire: NamedWire) -> tuple[Feed, SystemOutput]:
    """Return the input and the output that a wire becomes."""
    at = model.coupling.settle(point.time, point.states, point.inputs)
    first = wire.links[0]
    if wire.at_source:
        value, change = at.outputs[model._taps[first.source]], NO_CHANGE
        unit = get_signal(model.members[first.source[0]], first.source).unit
    else:
        value, change = at.inputs[model.coupling.wires.names.index(qualify(*first.target))], first.change
        inputs = model.members[first.target[0]].inputs
        unit = inputs[inputs.positions[first.target[1]]].unit
    ends = tuple((link.target, link.change if wire.at_source else NO_CHANGE) for link in wire.links)
    feed = Feed(Signal(wire.name, unit, start=float(value)), ends)
    return feed, SystemOutput(name_wire_output(wire.name), first.source, change, unit)


def _inner_wire(
    model: ConnectedModel, point: OperatingPoint, wire: NamedWire, members: dict[str, Model]
) -> tuple[Feed, SystemOutput]:
    """Cut a wire inside a member, which is replaced among ``members``."""
    assert wire.inside is not None  # noqa: S101 - _cut has looked
    member, inner_name = wire.inside
    x, v = model.coupling.compute_member_points(point.time, point.states, point.inputs)[
        list(model.members).index(member)
    ]
    inner = members[member]
    assert isinstance(inner, ConnectedModel)  # noqa: S101 - _wires has looked
    of_cuts = inner.start.inputs[len(v) :]  # of wires in it that were cut before
    with in_member(member):
        at = OperatingPoint(point.time, x, np.concatenate((v, of_cuts)), {})
        changed, (value,) = _cut(inner, at, [find_wire(inner, inner_name)])
    members[member] = changed
    feed = Feed(Signal(wire.name, changed.inputs[-1].unit, start=float(value)), (((member, inner_name), NO_CHANGE),))
    return feed, SystemOutput(name_wire_output(wire.name), (member, name_wire_output(inner_name)))
