"""From nested systems to components, and to what finally feeds each of their inputs."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from fmilin.composition.ssp.reading import Binding, Component, Connector, SspConnection, SspSystem, SystemStructure
from fmilin.composition.ssp.ssp_xml import INTEGERS
from fmilin.composition.system_declaration import AbsoluteUnit, Affine, Value, conversion
from fmilin.errors import ModelError

Node = tuple[str, str]  # A connector: the path of its element ("" for the whole system), and its name
_GIVES = {"output", "calculatedParameter", "constant", "local"}
_TAKES = {"input", "parameter", "structuralParameter"}
_NO_NUMBER = {"String", "Binary", "Clock", "Boolean", "Enumeration"} | INTEGERS


@dataclass(frozen=True)
class Placed:
    """A component and where it is."""

    path: str
    component: Component
    structure: SystemStructure


@dataclass(frozen=True)
class _Driver:
    source: Node
    wire: SspConnection
    where: str
    units: Mapping[str, AbsoluteUnit]


@dataclass
class Flat:
    """All components of a system, and its connections one by one."""

    structure: SystemStructure
    placed: dict[str, Placed] = field(default_factory=dict)  # by path
    # of components, systems and entries of signal dictionaries
    connectors: dict[Node, Connector] = field(default_factory=dict)
    drivers: dict[Node, _Driver] = field(default_factory=dict)  # what feeds a node, where something does
    held_drivers: dict[Node, _Driver] = field(
        default_factory=dict
    )  # the same for connections that carry no real number
    # from parameter bindings, the outermost last
    values: dict[Node, tuple[Value, str, Mapping[str, AbsoluteUnit]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    elements: int = 0  # components and systems so far

    def origin(self, node: Node, unit_of: Callable[[Node], str]) -> tuple[Node, Affine] | None:
        """Return the connector, of a component or the whole system, that feeds a node, and by which factor."""
        here, chain = self._chain(node, self.drivers)
        if not chain:
            return None
        change, unit = Affine(), self._unit(here, unit_of)
        for target, driver in chain:
            target_unit = self._unit(target, unit_of)
            if driver.wire.convert_units:
                change = conversion(unit, target_unit, driver.where, driver.units).after(change)
            change = driver.wire.change.after(change)
            unit = target_unit or (unit if driver.wire.convert_units else "")
        return here, change

    def _unit(self, node: Node, unit_of: Callable[[Node], str]) -> str:
        connector = self.connectors.get(node)
        if connector is not None and connector.unit:
            return connector.unit
        return unit_of(node) if node[0] in self.placed else ""

    def list_held_nodes(self, path: str) -> list[Node]:
        """Return the connectors of a component that are fed something that is not a real number."""
        return [node for node in self.held_drivers if node[0] == path]

    def trace_held_value(self, node: Node) -> tuple[Node, list[tuple[Node, SspConnection, str]]]:
        """Return where such a value comes from, and all connections on its way: target, connection, place in a file."""
        here, chain = self._chain(node, self.held_drivers)
        return here, [(target, driver.wire, driver.where) for target, driver in chain]

    def hold(self, sources: Collection[Node]) -> None:
        """Hold what these variables of components feed, through all connections on the way: they change at events."""
        reached, todo = set(sources), True
        while todo:
            new_ends = [end for end, driver in self.drivers.items() if driver.source in reached]
            for end in new_ends:
                self.held_drivers[end] = self.drivers.pop(end)
            reached.update(end for end in new_ends if end[0] not in self.placed)
            todo = bool(new_ends)

    def _chain(self, node: Node, drivers: Mapping[Node, _Driver]) -> tuple[Node, list[tuple[Node, _Driver]]]:
        """Return where a value comes from, and what drives each node on its way."""
        chain: list[tuple[Node, _Driver]] = []
        here, visited = node, {node}
        while here[0] not in self.placed or here == node:
            driver = drivers.get(here)
            if driver is None:
                break
            chain.append((here, driver))
            here = driver.source
            if here in visited:
                raise ModelError(f"{driver.where}: the connections form a cycle. Remove one of them.")
            visited.add(here)
        return here, chain[::-1]

    def list_inputs(self, path: str) -> list[Node]:
        """Return the connectors of a component that take something."""
        return [n for n, c in self.connectors.items() if n[0] == path and c.kind in _TAKES | {"inout", "unspecified"}]


Opened = Callable[[Component, tuple[str, ...]], SystemStructure | None]
MAX_ELEMENTS = 10_000  # five small files that hold ten references each are a hundred thousand


def flatten_system(structure: SystemStructure, file: str, opened: Opened) -> Flat:
    """Return a system without nesting; ``opened`` returns the structure of a component that is a system, else None."""
    flat = Flat(structure)
    _flatten(flat, _Level(structure, (file,)), structure.system, "", (), opened)
    return flat


@dataclass(frozen=True)
class _Level:
    """A file, and those that lead to it, itself the last."""

    structure: SystemStructure
    files: tuple[str, ...]


def _flatten(
    flat: Flat, level: _Level, system: SspSystem, path: str, outer: tuple[tuple[str, SspSystem], ...], opened: Opened
) -> None:
    structure = level.structure
    scopes = (*outer, (path, system))
    flat.elements += len(system.order)
    if flat.elements > MAX_ELEMENTS:
        raise ModelError(
            f"{system.where}: the system has more than {MAX_ELEMENTS} components and systems with all its files, "
            "which is the limit. Split it, and use it only if you trust its source."
        )
    for c in system.connectors.values():
        flat.connectors[(path, c.name)] = c
    for name, entries in system.dictionaries.items():
        for entry, unit in entries.items():
            flat.connectors[(f"{path}:{name}", entry)] = Connector(entry, "inout", "Real", unit, 0)
    for name in system.order:
        if name in system.systems:
            _flatten(flat, level, system.systems[name], _join_path(path, name), scopes, opened)
        elif name in system.components:
            _add_component(flat, level, system.components[name], _join_path(path, name), opened)
    _bind(flat, path, system, structure.units)
    for wire in system.wires:
        _connect(flat, structure, system, scopes, wire)


def _add_component(flat: Flat, level: _Level, component: Component, path: str, opened: Opened) -> None:
    inner = opened(component, level.files)
    if inner is not None:
        _flatten(flat, _Level(inner, (*level.files, component.source)), inner.system, path, (), opened)
    else:
        flat.placed[path] = Placed(path, component, level.structure)
        for connector in component.connectors.values():
            flat.connectors[(path, connector.name)] = connector
    _bind(flat, path, component, level.structure.units if inner is None else inner.units)


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _bind(flat: Flat, path: str, owner: SspSystem | Component, units: Mapping[str, AbsoluteUnit]) -> None:
    """Take the values of a binding; those of an outer system replace those of an inner one."""
    for binding in owner.bindings:
        all_units = {**units, **binding.units}
        for name, value, unit in _map_parameters(binding):
            full_name = _join_path(path, name)
            dots = [i for i, letter in enumerate(full_name) if letter == "." and full_name[:i] in flat.placed]
            owner_path = full_name[: dots[-1]] if dots else path
            variable = full_name[len(owner_path) + 1 :] if owner_path else full_name
            flat.values[(owner_path, variable)] = (value, unit, all_units)


def _map_parameters(binding: Binding) -> Iterator[tuple[str, Value, str]]:
    if binding.mapping is None:
        yield from ((p.name, p.value, p.unit) for p in binding.parameters)
        return
    by_name = {p.name: p for p in binding.parameters}
    for entry in binding.mapping:
        parameter = by_name.get(entry.source)
        if parameter is None:
            raise ModelError(
                f"{binding.where}: the parameter mapping refers to '{entry.source}', which is not in the parameter "
                "set. Correct the mapping."
            )
        value = parameter.value
        if entry.table:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if text not in entry.table:
                raise ModelError(
                    f"{binding.where}: the mapping of the parameter '{entry.source}' has no entry for '{text}'. "
                    f"It has: {', '.join(entry.table)}. Add it."
                )
            value = entry.table[text]
        if entry.change != Affine() and isinstance(value, (str, bool)):
            raise ModelError(
                f"{binding.where}: the parameter '{entry.source}' is not a number, but its mapping transforms it "
                "numerically. Correct the mapping."
            )
        yield entry.target, entry.change.of(value), parameter.unit if entry.convert_units else ""


def _connect(
    flat: Flat,
    structure: SystemStructure,
    system: SspSystem,
    scopes: tuple[tuple[str, SspSystem], ...],
    wire: SspConnection,
) -> None:
    path = scopes[-1][0]
    where = f"{system.where}, line {wire.line}"
    start, end = (_end(flat, scopes, element, name, where) for element, name in (wire.start, wire.end))
    roles = [_role(flat, path, node) for node in (start, end)]
    if roles[0] == roles[1] and roles[0] != "both":
        what = "two sources" if roles[0] == "gives" else "two inputs"
        ends = f"'{format_node(start)}' and '{format_node(end)}'"
        raise ModelError(f"{where}: the connection joins {what}, {ends}. It must lead from an output to an input.")
    if roles[0] == "takes" or roles[1] == "gives":
        start, end = end, start
    first = flat.drivers.get(end) or flat.held_drivers.get(end)
    if first is not None:
        raise ModelError(
            f"{where}: '{format_node(end)}' is fed twice, by '{format_node(first.source)}' and by "
            f"'{format_node(start)}'. "
            "Keep one of the connections."
        )
    types = {flat.connectors[n].type for n in (start, end) if n in flat.connectors}
    if wire.table and not types & _NO_NUMBER:
        raise ModelError(
            f"{where}: the connection maps values of '{format_node(start)}', which is a real number, by a table. Only "
            "Boolean, Integer and Enumeration connectors have such transformations."
        )
    drivers = flat.held_drivers if types & _NO_NUMBER else flat.drivers
    drivers[end] = _Driver(start, wire, where, structure.units)


def _end(flat: Flat, scopes: tuple[tuple[str, SspSystem], ...], element: str, name: str, where: str) -> Node:
    path, system = scopes[-1]
    if element in system.references:
        dictionary = system.references[element]
        for above, scope in reversed(scopes):
            if dictionary in scope.dictionaries:
                node = (f"{above}:{dictionary}", name)
                if node in flat.connectors:
                    return node
                raise ModelError(
                    f"{where}: the signal dictionary '{dictionary}' has no entry '{name}'. Add it to the dictionary."
                )
        raise ModelError(f"{where}: there is no signal dictionary '{dictionary}'.")
    if element and element not in system.components and element not in system.systems:
        names = [*system.components, *system.systems, *system.references]
        raise ModelError(
            f"{where}: the connection refers to a missing element '{element}'. The elements are: "
            f"{', '.join(names) or 'none'}."
        )
    node = (_join_path(path, element) if element else path, name)
    if node not in flat.connectors and (node[0], name.partition("[")[0]) not in flat.connectors:
        names = [c for p, c in flat.connectors if p == node[0]]
        owner = f"'{element}'" if element else "the system"
        raise ModelError(
            f"{where}: {owner} has no connector '{name}'. The connectors that it has are {', '.join(names) or 'none'}."
        )
    return node


def _role(flat: Flat, path: str, node: Node) -> str:
    """Return whether a node gives or takes inside the system at ``path``; both where the file leaves it open."""
    connector = flat.connectors.get(node) or flat.connectors[(node[0], node[1].partition("[")[0])]
    is_boundary = node[0] == path and node[0] not in flat.placed
    if connector.kind in _GIVES:
        return "takes" if is_boundary else "gives"
    if connector.kind in _TAKES:
        return "gives" if is_boundary else "takes"
    return "both"


def format_node(node: Node) -> str:
    """Return how messages call a connector."""
    path, name = node
    return f"{path.lstrip(':')}.{name}" if path else name
