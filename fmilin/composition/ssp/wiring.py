"""From a flat system and its open members to the arguments of :func:`fmilin.connect`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from fmilin.composition.ssp.flattening import Flat, Node, format_node
from fmilin.composition.ssp.reading import Connector, SspConnection
from fmilin.composition.system import SystemDeclaration
from fmilin.composition.system_declaration import (
    Affine,
    Feed,
    SystemOutput,
    Value,
    WireLink,
    elements,
    get_signal,
    resolve_inputs,
    resolve_outputs,
)
from fmilin.errors import FmilinError, ModelError, UsageError
from fmilin.model.interface import Model
from fmilin.signals import Signal


def build_declaration(flat: Flat, members: Mapping[str, Model]) -> SystemDeclaration:
    """Return the members and all that joins them."""
    wiring = _SystemWiring(flat, members, notes=list(flat.notes))
    try:
        for node in [node for node in flat.drivers if node[0] in members]:
            wiring.join(node)
        name = flat.structure.name or flat.structure.system.name
        return SystemDeclaration(
            name, members, wiring.links, wiring.feeds(), wiring.collect_outputs(), notes=wiring.notes
        )
    except UsageError as error:
        raise ModelError(str(error)) from None


@dataclass
class _SystemWiring:
    flat: Flat
    members: Mapping[str, Model]
    links: list[WireLink] = field(default_factory=list)
    fed: dict[str, list[tuple[tuple[str, str], Affine]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def get_unit(self, node: Node) -> str:
        """Return the unit of a member's variable as its FMU tells it; empty where it tells none."""
        model = self.members[node[0]]
        if model.inputs.has(node[1]):
            return model.inputs[model.inputs.positions[node[1]]].unit
        try:
            return get_signal(model, node).unit
        except FmilinError:
            return ""

    def join(self, node: Node) -> None:
        """Add what feeds a connector of a member: a link, or an input of the system."""
        origin = self.flat.origin(node, self.get_unit)
        if origin is None:
            return
        (path, variable), change = origin
        name, model = node[0], self.members[node[0]]
        targets = elements(node[1], model.inputs.positions)
        if not all(model.inputs.has(t) for t in targets):
            if node not in self.flat.connectors or self.flat.connectors[node].kind == "input":
                self.notes.append(
                    f"The connection to '{name}.{node[1]}' is left out: the FMU has no continuous input of that name. "
                    "It keeps its start value."
                )
            return
        if path not in self.members:
            self.fed.setdefault(variable, []).extend(((name, target), change) for target in targets)
            return
        sources = _scalars(self.members[path], variable)
        if len(sources) != len(targets):
            raise ModelError(
                f"'{path}.{variable}' has {len(sources)} elements, and '{name}.{node[1]}', which it feeds, "
                f"{len(targets)}: connected arrays must have the same size."
            )
        self.links += [WireLink((path, a), (name, b), change) for a, b in zip(sources, targets, strict=True)]

    def feeds(self) -> list[Feed]:
        """Return the inputs of the system: its connectors, or all that nothing feeds where it has none."""
        connectors = [c for (path, _), c in self.flat.connectors.items() if path == "" and c.kind == "input"]
        if not connectors:
            free_inputs = resolve_inputs(self.members, self.links, None)
            return [
                feed for feed in free_inputs if not any(target in self.flat.held_drivers for target, _ in feed.targets)
            ]
        feeds = []
        for connector in connectors:
            targets = self.fed.get(connector.name, [])
            signal = Signal(connector.name, connector.unit)
            if targets:
                (member, variable), change = targets[0]
                first = self.members[member].inputs[self.members[member].inputs.positions[variable]]
                start = (first.start - change.offset) / change.factor if change.factor else 0.0
                signal = Signal(connector.name, connector.unit or first.unit, None, start, first.description)
            bound = self.flat.values.get(("", connector.name))
            if bound is not None and not isinstance(bound[0], str):
                signal = signal.with_start(float(bound[0]))
            feeds.append(Feed(signal, tuple(targets)))
        return feeds

    def collect_outputs(self) -> list[SystemOutput]:
        """Return the outputs of the system: its connectors, or all outputs of its members where it has none."""
        connectors = [c for (path, _), c in self.flat.connectors.items() if path == "" and c.kind == "output"]
        if not connectors:
            return resolve_outputs(self.members, None)
        outputs = []
        for connector in connectors:
            origin = self.flat.origin(("", connector.name), self.get_unit)
            if ("", connector.name) in self.flat.held_drivers:
                source, _ = self.flat.trace_held_value(("", connector.name))
                self.notes.append(
                    f"The output '{connector.name}' of the system is left out: '{format_node(source)}' changes at "
                    "events only, and is held."
                )
                continue
            if origin is None or origin[0][0] not in self.members:
                self.notes.append(f"The output '{connector.name}' of the system is left out: no component feeds it.")
                continue
            (member, variable), change = origin
            names = _scalars(self.members[member], variable)
            for name in names:
                label = connector.name + (name[len(variable) :] if len(names) > 1 else "")
                outputs.append(SystemOutput(label, (member, name), change, connector.unit or None))
        return outputs


def _scalars(model: Model, name: str) -> list[str]:
    return elements(name, [*model.outputs.positions, *model.states.positions])


ValueOf = Callable[[Node], Value | None]
"""From a connector of a component that is open to its present value; None where the component cannot tell."""

_DISCRETE = "discrete value"
_UNREADABLE = {"String", "Binary", "Clock"}


def in_order(flat: Flat) -> list[str]:
    """Return the paths of all components, first those with values at which others are held; else as in the file."""
    before: dict[str, set[str]] = {path: set() for path in flat.placed}
    for path, needed in before.items():
        for node in flat.list_held_nodes(path):
            (source, _), *_ = flat.trace_held_value(node)
            if source in flat.placed and source != path:
                needed.add(source)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return list(flat.placed)


def compute_held_values(flat: Flat, path: str, value_of: ValueOf) -> tuple[dict[str, Value], list[str]]:
    """Return values for inputs of the component at ``path``, by variable; and notes of what is held or is not."""
    values: dict[str, Value] = {}
    notes = []
    for node in flat.list_held_nodes(path):
        source, wires = flat.trace_held_value(node)
        kind = _kind(flat, [source, node])
        value = None if kind in _UNREADABLE else _source_value(flat, source, value_of)
        carries = f"carries a {kind}, no real number"
        if kind == _DISCRETE:
            carries = "carries a discrete-time number, which changes at events only"
        connection = f"The connection '{format_node(source)}' -> '{format_node(node)}' {carries}"
        if value is None:
            notes.append(f"{connection}. '{format_node(node)}' keeps its start value.")
            continue
        for target, wire, where in wires:
            value = _transmit_value(value, wire, flat.connectors.get(source), flat.connectors.get(target), where)
            source = target
        values[node[1]] = value
        value_text = str(value).lower() if isinstance(value, bool) else value
        notes.append(f"{connection}: '{format_node(node)}' is held at {value_text}, the value where the system starts.")
    return values, notes


def _kind(flat: Flat, nodes: list[Node]) -> str:
    types = [flat.connectors[n].type for n in nodes if n in flat.connectors]
    return next((t for t in types if t and t != "Real"), _DISCRETE)


def _source_value(flat: Flat, source: Node, value_of: ValueOf) -> Value | None:
    if source[0] in flat.placed:
        return value_of(source)
    bound = flat.values.get(source)
    return None if bound is None else bound[0]


def _transmit_value(
    value: Value, wire: SspConnection, source: Connector | None, target: Connector | None, where: str
) -> Value:
    """Return what arrives at the end of one connection."""
    return _map_value(value, wire, source, target, where) if wire.table else wire.change.of(value)


def _map_value(
    value: Value, wire: SspConnection, source: Connector | None, target: Connector | None, where: str
) -> Value:
    names = {} if source is None else {number: name for name, number in source.items.items()}
    text = str(value).lower() if isinstance(value, bool) else str(value)
    key = names.get(value, text) if isinstance(value, int) else text
    mapped = wire.table.get(key, wire.table.get(text))
    if mapped is None:
        entries = ", ".join(wire.table)
        raise ModelError(
            f"{where}: the transformation has no entry for '{key}', the value where the system starts. "
            f"It has: {entries}. Add it."
        )
    if target is not None and mapped in target.items:
        return target.items[mapped]
    if mapped in ("true", "false"):
        return mapped == "true"
    try:
        return int(mapped)
    except ValueError:
        return mapped
