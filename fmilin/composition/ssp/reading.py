"""The elements of a system as data, from an SSD file and the files that it refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from fmilin.composition.ssp.ssp_xml import SSB, SSC, SSD, SSM, SSV, SspReader, local_name
from fmilin.composition.system_declaration import AbsoluteUnit, Affine, Value
from fmilin.errors import ModelError
from fmilin.fmi.read.description import is_true


@dataclass(frozen=True, slots=True)
class Connector:
    """A place that connections join; an empty ``type`` is left open by the file, ``items`` number an enumeration."""

    name: str
    kind: str
    type: str
    unit: str
    line: int
    items: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SspConnection:
    """A connection of (element, connector) to another, "" for the system; ``table`` maps values that are texts."""

    start: tuple[str, str]
    end: tuple[str, str]
    change: Affine
    table: Mapping[str, str]
    convert_units: bool
    line: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of a parameter set."""

    name: str
    value: Value
    unit: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """An entry of a parameter mapping."""

    source: str
    target: str
    change: Affine
    table: Mapping[str, str]
    convert_units: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """Values for a component, or for all that a system contains; ``mapping`` is None where names stay."""

    parameters: tuple[Parameter, ...]
    mapping: tuple[Mapped, ...] | None
    units: Mapping[str, AbsoluteUnit]
    where: str


@dataclass(frozen=True)
class Component:
    """An FMU, or a system in a file of its own."""

    name: str
    type: str
    source: str
    implementation: str
    connectors: Mapping[str, Connector]
    bindings: tuple[Binding, ...]
    line: int


@dataclass(frozen=True)
class SspSystem:
    """Elements and what joins them."""

    name: str
    where: str  # the file that it stands in, for messages
    connectors: Mapping[str, Connector]
    bindings: tuple[Binding, ...] = ()
    components: Mapping[str, Component] = field(default_factory=dict)
    systems: Mapping[str, SspSystem] = field(default_factory=dict)
    # elements that stand for a signal dictionary, and its name
    references: Mapping[str, str] = field(default_factory=dict)
    dictionaries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # units by entry, by dictionary
    wires: tuple[SspConnection, ...] = ()
    order: tuple[str, ...] = ()  # the elements as the file lists them


@dataclass(frozen=True)
class SystemStructure:
    """A whole file: the system, and the units that it defines."""

    name: str
    version: str
    system: SspSystem
    units: Mapping[str, AbsoluteUnit]
    folder: str = ""  # of the SSD file inside the archive: sources are resolved against it


Read = Callable[[str], bytes | None]  # from a path inside the archive to the content; None where there is no such file

_KINDS = {
    *("input", "output", "inout", "parameter", "calculatedParameter"),
    *("structuralParameter", "constant", "local", "unspecified"),
}
_FMU = "application/x-fmu-sharedlibrary"
VERSIONS = ("1.", "2.")


def resolve_source(source: str, folder: str, error: Callable[[str], ModelError]) -> str:
    """Return a source's path inside the archive; of an archive in it ``inner.ssp!/resources/motor.fmu``."""
    text = unquote(source)
    if "://" in text or text.startswith(("/", "\\", "file:")) or ":" in text.split("/")[0]:
        raise error(f"the source '{source}' lies outside of the archive, which is not supported")
    parts: list[str] = [p for p in folder.split("/") if p]
    for part in text.replace("\\", "/").split("/"):
        if part == "..":
            if not parts or parts[-1].endswith("!"):
                raise error(f"the source '{source}' lies outside of the archive")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def read_structure(read: Read, path: str, archive: str) -> SystemStructure:
    """Read an SSD file."""
    xml = read(path)
    if xml is None:
        raise ModelError(f"'{archive}' contains no {path}. Check that it is an SSP file.")
    return _SsdFile(read, xml, path, archive).structure()


def _keeps_units(element: Any) -> bool:
    return is_true(element, "suppressUnitConversion")


class _SsdFile:
    def __init__(self, read: Read, xml: bytes, path: str, archive: str) -> None:
        self.read, self.archive = read, archive
        self.folder = path.rpartition("/")[0]
        self.reader = SspReader(xml, f"{path} in '{archive}'", f"{SSD}SystemStructureDescription")
        self.enumerations = self.reader.enumerations(f"{SSD}Enumerations")

    def structure(self) -> SystemStructure:
        reader, root = self.reader, self.reader.root
        version = root.get("version") or ""
        if not version.startswith(VERSIONS):
            raise reader.error(f"SSP version '{version}' is not supported; versions 1.0 and 2.0 are", root)
        system = root.find(f"{SSD}System")
        if system is None:
            raise reader.error("the element System is missing", root)
        name, units = root.get("name") or "system", reader.units(f"{SSD}Units")
        return SystemStructure(name, version, self._system(system), units, self.folder)

    def _system(self, element: Any) -> SspSystem:
        reader = self.reader
        components: dict[str, Component] = {}
        systems: dict[str, SspSystem] = {}
        references: dict[str, str] = {}
        order = []
        for child in element.iterfind(f"{SSD}Elements/*"):
            name = reader.require_attribute(child, "name")
            if name in components or name in systems or name in references:
                raise reader.error(f"two elements are called '{name}'", child)
            order.append(name)
            match local_name(child):
                case "Component":
                    components[name] = self._component(child, name)
                case "System":
                    systems[name] = self._system(child)
                case "SignalDictionaryReference":
                    references[name] = reader.require_attribute(child, "dictionary")
                case other:
                    raise reader.error(f"an element of the kind '{other}' is not supported", child)
        return SspSystem(
            name=reader.require_attribute(element, "name"),
            where=reader.where,
            connectors=self._connectors(element),
            bindings=self._bindings(element),
            components=components,
            systems=systems,
            references=references,
            dictionaries=dict(self._dictionary(d) for d in element.iterfind(f"{SSD}SignalDictionaries/*")),
            wires=tuple(self._wire(c) for c in element.iterfind(f"{SSD}Connections/{SSD}Connection")),
            order=tuple(order),
        )

    def _component(self, element: Any, name: str) -> Component:
        reader = self.reader
        source = reader.require_attribute(element, "source")
        path = resolve_source(source, self.folder, lambda what: reader.error(f"component '{name}': {what}", element))
        return Component(
            name=name,
            type=element.get("type") or _FMU,
            source=path,
            implementation=element.get("implementation") or "any",
            connectors=self._connectors(element),
            bindings=self._bindings(element),
            line=element.sourceline,
        )

    def _connectors(self, element: Any) -> dict[str, Connector]:
        reader = self.reader
        connectors: dict[str, Connector] = {}
        for c in element.iterfind(f"{SSD}Connectors/{SSD}Connector"):
            name, kind = reader.require_attribute(c, "name"), c.get("kind") or "unspecified"
            if kind not in _KINDS:
                raise reader.error(f"the connector '{name}' is of the unknown kind '{kind}'", c)
            if name in connectors:
                raise reader.error(f"two connectors are called '{name}'", c)
            typed = reader.find_typed_element(c, (SSC, SSD))
            kind_of_number = "" if typed is None else local_name(typed)
            unit = "" if typed is None else typed.get("unit") or ""
            items = {} if typed is None else self.enumerations.get(typed.get("name") or "", {})
            connectors[name] = Connector(name, kind, kind_of_number, unit, c.sourceline, items)
        return connectors

    def _wire(self, element: Any) -> SspConnection:
        reader = self.reader
        start, end = (self._end(element, side) for side in ("start", "end"))
        return SspConnection(start, end, *reader.transformation(element), not _keeps_units(element), element.sourceline)

    def _end(self, element: Any, side: str) -> tuple[str, str]:
        name = self.reader.require_attribute(element, f"{side}Connector")
        indices = (element.get(f"{side}Indices") or "").split()
        if indices:
            name = f"{name}[{','.join(indices)}]"
        return element.get(f"{side}Element") or "", name

    def _dictionary(self, element: Any) -> tuple[str, dict[str, str]]:
        name = self.reader.require_attribute(element, "name")
        owner, dictionary = self._locate_element(element, f"{SSB}SignalDictionary")
        if dictionary is None:
            raise owner.error(f"the signal dictionary '{name}' is neither inline nor in a file", element)
        units = {}
        for entry in dictionary.iterfind(f"{SSB}DictionaryEntry"):
            typed = owner.find_typed_element(entry, (SSC, SSB))
            units[owner.require_attribute(entry, "name")] = "" if typed is None else typed.get("unit") or ""
        return name, units

    def _bindings(self, element: Any) -> tuple[Binding, ...]:
        path = f"{SSD}ParameterBindings/{SSD}ParameterBinding"
        return tuple(self._read_binding(b) for b in element.iterfind(path))

    def _read_binding(self, element: Any) -> Binding:
        reader = self.reader
        kind = element.get("type") or "application/x-ssp-parameter-set"
        if kind != "application/x-ssp-parameter-set":
            raise reader.error(f"parameters of the type '{kind}' are not supported", element)
        if element.get("sourceBase") == "component":
            raise reader.error("parameters inside a component's own file are not supported", element)
        owner, values = self._locate_element(element, f"{SSV}ParameterSet", f"{SSD}ParameterValues/")
        units = {} if owner is reader else owner.units(f"{SSV}Units")
        if values is None:
            raise reader.error("the parameter binding has no values", element)
        prefix, parameters = element.get("prefix") or "", []
        items = {**self.enumerations, **owner.enumerations(f"{SSV}Enumerations")}
        for p in values.iterfind(f"{SSV}Parameters/{SSV}Parameter"):
            name, typed = owner.require_attribute(p, "name"), owner.find_typed_element(p, (SSV,))
            if typed is None:
                raise owner.error(f"the parameter '{name}' has no value", p)
            value = owner.value(typed)
            if local_name(typed) == "Enumeration":
                value = items.get(typed.get("name") or "", {}).get(str(value), value)
            parameters.append(Parameter(prefix + name, value, typed.get("unit") or ""))
        where = f"{owner.where}, line {values.sourceline}"
        return Binding(tuple(parameters), self._mapping(element), units, where)

    def _mapping(self, binding: Any) -> tuple[Mapped, ...] | None:
        element = binding.find(f"{SSD}ParameterMapping")
        if element is None:
            return None
        owner, mapping = self._locate_element(element, f"{SSM}ParameterMapping")
        if mapping is None:
            raise owner.error("the parameter mapping is neither inline nor in a file", element)
        entries = []
        for m in mapping.iterfind(f"{SSM}MappingEntry"):
            source, target = owner.require_attribute(m, "source"), owner.require_attribute(m, "target")
            entries.append(Mapped(source, target, *owner.transformation(m), not _keeps_units(m)))
        return tuple(entries)

    def _locate_element(self, element: Any, kind: str, inside: str = "") -> tuple[SspReader, Any]:
        """Return who reads an element of this kind, and the element: of ``element``, or of the file that it names."""
        if (source := element.get("source")) is None:
            return self.reader, element.find(f"{inside}{kind}")
        owner = self._file(source, element, kind)
        return owner, owner.root

    def _file(self, source: str, element: Any, root: str) -> SspReader:
        """Open a further file of the archive."""
        path = resolve_source(source, self.folder, lambda what: self.reader.error(what, element))
        xml = self.read(path)
        if xml is None:
            raise self.reader.error(f"the file '{source}' is missing in the archive", element)
        return SspReader(xml, f"{path} in '{self.archive}'", root)
