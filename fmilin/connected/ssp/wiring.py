"""From a flat system and its open members to what :func:`fmilin.connect` would be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmilin.connected.declaration import Feed, Link, Wanted, inputs_of, outputs_of, signal_of
from fmilin.connected.names import elements
from fmilin.connected.ssp.flattening import Flat, Node
from fmilin.connected.system import Declaration
from fmilin.connected.units import Affine
from fmilin.ground.errors import FmilinError, ModelError, UsageError
from fmilin.ground.signals import Signal
from fmilin.model.interface import Model

__all__ = ["declaration_of"]


def declaration_of(flat: Flat, members: Mapping[str, Model]) -> Declaration:
    """Return the members and all that joins them."""
    wiring = _Wiring(flat, members, notes=list(flat.notes))
    try:
        for node in [node for node in flat.drivers if node[0] in members]:
            wiring.join(node)
        return Declaration(
            flat.structure.name or flat.structure.system.name,
            members,
            wiring.links,
            wiring.feeds(),
            wiring.wanted(),
            notes=wiring.notes,
        )
    except UsageError as error:
        raise ModelError(str(error)) from None


@dataclass
class _Wiring:
    flat: Flat
    members: Mapping[str, Model]
    links: list[Link] = field(default_factory=list)
    fed: dict[str, list[tuple[tuple[str, str], Affine]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def unit_of(self, node: Node) -> str:
        """Return the unit of a member's variable as its FMU tells it; empty where it tells none."""
        model = self.members[node[0]]
        if model.inputs.has(node[1]):
            return model.inputs[model.inputs.positions[node[1]]].unit
        try:
            return signal_of(model, node).unit
        except FmilinError:
            return ""

    def join(self, node: Node) -> None:
        """Add what feeds a connector of a member: a link, or an input of the system."""
        found = self.flat.origin(node, self.unit_of)
        if found is None:
            return
        (path, variable), change = found
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
                f"{len(targets)}: connected arrays have the same size."
            )
        self.links += [Link((path, a), (name, b), change) for a, b in zip(sources, targets, strict=True)]

    def feeds(self) -> list[Feed]:
        """Return the inputs of the system: its connectors, or all that nothing feeds where it has none."""
        own = [c for (path, _), c in self.flat.connectors.items() if path == "" and c.kind == "input"]
        if not own:
            return inputs_of(self.members, self.links, None)
        feeds = []
        for connector in own:
            targets = self.fed.get(connector.name, [])
            signal = Signal(connector.name, connector.unit)
            if targets:
                (member, variable), change = targets[0]
                first = self.members[member].inputs[self.members[member].inputs.positions[variable]]
                start = (first.start - change.offset) / change.factor if change.factor else 0.0
                signal = Signal(connector.name, connector.unit or first.unit, None, start, first.description)
            bound = self.flat.values.get(("", connector.name))
            if bound is not None and not isinstance(bound[0], str):
                signal = signal.starting_at(float(bound[0]))
            feeds.append(Feed(signal, tuple(targets)))
        return feeds

    def wanted(self) -> list[Wanted]:
        """Return the outputs of the system: its connectors, or all outputs of its members where it has none."""
        own = [c for (path, _), c in self.flat.connectors.items() if path == "" and c.kind == "output"]
        if not own:
            return outputs_of(self.members, None)
        wanted = []
        for connector in own:
            found = self.flat.origin(("", connector.name), self.unit_of)
            if found is None or found[0][0] not in self.members:
                self.notes.append(f"The output '{connector.name}' of the system is left out: no component feeds it.")
                continue
            (member, variable), change = found
            names = _scalars(self.members[member], variable)
            for name in names:
                label = connector.name + (name[len(variable) :] if len(names) > 1 else "")
                wanted.append(Wanted(label, (member, name), change, connector.unit or None))
        return wanted


def _scalars(model: Model, name: str) -> list[str]:
    return elements(name, [*model.outputs.positions, *model.states.positions])
