"""A system of FMUs and regulators as an SSP file: ``system.ssp``, SSP 1.0."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fmilin.composition.linear_member import linear_from_control
from fmilin.composition.system_declaration import Connection, split
from fmilin.errors import ModelError, UnknownNameError, UsageError
from fmilin.fmi.read.archive import read_description
from fmilin.fmi.read.description import ModelDescription, Variable
from fmilin.fmi.read.fmu_model import FmuModel
from fmilin.fmi.write.description_writer import BaseUnit, base_unit
from fmilin.fmi.write.linear_model_fmu import LinearFmu, linear_fmu
from fmilin.fmi.write.symbolic_fmu import archive_bytes, build_fmu, to_identifier
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.support.files import write_atomically

if TYPE_CHECKING:
    from control import StateSpace, TransferFunction

_BASE = "http://ssp-standard.org/SSP1/SystemStructure"
_SSD, _SSC = f"{{{_BASE}Description}}", f"{{{_BASE}Common}}"
ET.register_namespace("ssd", f"{_BASE}Description")
ET.register_namespace("ssc", f"{_BASE}Common")


def ssp(
    path: str | Path,
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction | str | Path],
    connections: Iterable[Connection | Sequence[str | float]],
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Mapping[str, str] | None = None,
    name: str = "system",
) -> Path:
    """Write FMUs, wired together, as an SSP file that simulation tools run, and return its path.

    Raises UsageError or UnknownNameError when a name is unknown, an input is fed twice, or the file cannot be written;
    ModelError when an FMU cannot be read.

    Parameters
    ----------
    path : str or Path
        Ends in ``.ssp``.
    members : mapping of str to member
        Paths of FMUs, which go in as they are; linear models and linear systems of python-control, continuous or
        sampled, and native models, which become FMUs 2.0.
    connections : iterable
        As :func:`fmilin.connect` takes them. A factor or offset becomes a linear transformation, which tools should
        apply; FMPy's ``simulate_ssp`` does not.
    inputs, outputs : mapping of str to str, optional
        Connectors of the whole system, and the variables of members that they are.
    name : str

    Examples
    --------
    >>> import control, fmilin as fl
    >>> regulator = control.ss([[0.0]], [[-1.0]], [[2.0]], [[-5.0]], inputs=["y"], outputs=["u"])
    >>> fl.export.ssp(
    ...     "closed.ssp",
    ...     {"plant": "plant.fmu", "regulator": regulator},
    ...     [("plant.phi", "regulator.y"), ("regulator.u", "plant.torque")],
    ... )  # doctest: +SKIP
    PosixPath('closed.ssp')
    """
    path = Path(path)
    if path.suffix.lower() != ".ssp":
        raise UsageError(f"'{path}': the name of a system file must end in .ssp.")
    system = WiredSystem(members, tuple(connections), inputs or {}, outputs or {}, name)
    write_atomically(path, dumps_ssp(system))
    return path


@dataclass(frozen=True)
class WiredSystem:
    """Members and their connections, as :func:`ssp` takes them."""

    members: Mapping[str, Any]
    connections: Sequence[Connection | Sequence[Any]]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    name: str = "system"


def dumps_ssp(system: WiredSystem) -> bytes:
    """Return the content of an SSP file."""
    with TemporaryDirectory(prefix="fmilin-") as folder:
        files = {member: _fmu(member, source, Path(folder)) for member, source in system.members.items()}
        wiring = _Wiring({member: read_description(file) for member, file in files.items()})
        for connection in system.connections:
            wiring.connect(connection if isinstance(connection, Connection) else Connection(*connection))
        for connector, variable in system.inputs.items():
            wiring.add_input(connector, variable)
        for connector, variable in system.outputs.items():
            wiring.add_output(connector, variable)
        sources = {member: f"resources/{_file_name(member)}" for member in files}
        content = {"SystemStructure.ssd": wiring.xml(system.name, sources)}
        content |= {sources[member]: file.read_bytes() for member, file in files.items()}
    return archive_bytes(content)


def _file_name(member: str) -> str:
    return f"{to_identifier(member)}.fmu"


def _fmu(member: str, source: Any, folder: Path) -> Path:
    """Return an FMU of a member: its own, or one that is made in ``folder``."""
    if isinstance(source, (str, Path)):
        if not Path(source).is_file():
            raise ModelError(
                f"The file '{source}' of the member '{member}' does not exist. Check the path of the member."
            )
        return Path(source)
    made = folder / _file_name(member)
    if isinstance(source, FmuModel):
        raise UsageError(
            f"The member '{member}' is a loaded FMU: give the path of its file, which is copied into the system."
        )
    if isinstance(source, Model):
        return build_fmu(source, made)
    linear = source if isinstance(source, LinearModel) else linear_from_control(member, source)
    made.write_bytes(linear_fmu(linear, LinearFmu(to_identifier(member))))
    return made


class _Wiring:
    """Connectors and connections, checked against what the FMUs describe."""

    def __init__(self, descriptions: Mapping[str, ModelDescription]) -> None:
        self._descriptions = descriptions
        self._used: dict[str, dict[str, Variable]] = {member: {} for member in descriptions}
        self._fed: dict[tuple[str, str], str] = {}
        self._connections: list[tuple[tuple[str, str], tuple[str, str], Connection]] = []
        self._connectors: list[tuple[str, str, str]] = []

    def connect(self, connection: Connection) -> None:
        """Add a connection between two members."""
        source = self._variable(connection.source, connection.label)
        target = self._input(connection.target, connection.source, connection.label)
        self._connections.append((source, target, connection))

    def add_input(self, connector: str, variable: str) -> None:
        """Add an input of the system."""
        target = self._input(variable, connector, f"The input '{connector}'")
        self._connectors.append((connector, "input", self._used[target[0]][target[1]].unit))
        self._connections.append((("", connector), target, Connection(connector, variable)))

    def add_output(self, connector: str, variable: str) -> None:
        """Add an output of the system."""
        source = self._variable(variable, f"The output '{connector}'")
        self._connectors.append((connector, "output", self._used[source[0]][source[1]].unit))
        self._connections.append((source, ("", connector), Connection(variable, connector)))

    def _variable(self, text: str, where: str) -> tuple[str, str]:
        member, name = split(text, self._descriptions)
        variables = self._descriptions[member].by_name
        if name not in variables or not variables[name].is_float:
            numbers = [n for n, v in variables.items() if v.is_float]
            error = UnknownNameError.among(name, numbers, f"a real variable of '{member}'")
            error.args = (f"{where}: {error}",)
            raise error
        self._used[member][name] = variables[name]
        return member, name

    def _input(self, text: str, source: str, where: str) -> tuple[str, str]:
        member, name = self._variable(text, where)
        if self._used[member][name].causality != "input":
            raise UsageError(f"{where}: '{text}' is not an input of its FMU.")
        if (member, name) in self._fed:
            raise UsageError(
                f"The input '{text}' is fed twice, by '{self._fed[member, name]}' and by '{source}'. Keep one of the "
                "two connections."
            )
        self._fed[member, name] = source
        return member, name

    def xml(self, name: str, sources: Mapping[str, str]) -> bytes:
        """Return SystemStructure.ssd."""
        root = ET.Element(f"{_SSD}SystemStructureDescription", {"version": "1.0", "name": name})
        system = ET.SubElement(root, f"{_SSD}System", {"name": name})
        units: dict[str, BaseUnit] = {}
        if self._connectors:
            connectors = ET.SubElement(system, f"{_SSD}Connectors")
            for connector, kind, unit in self._connectors:
                _connector(connectors, connector, kind, unit, units)
        elements = ET.SubElement(system, f"{_SSD}Elements")
        for member, used in self._used.items():
            attributes = {"name": member, "type": "application/x-fmu-sharedlibrary", "source": sources[member]}
            component = ET.SubElement(elements, f"{_SSD}Component", attributes)
            if used:
                connectors = ET.SubElement(component, f"{_SSD}Connectors")
                for variable in used.values():
                    kind = "input" if variable.causality == "input" else "output"
                    _connector(connectors, variable.name, kind, variable.unit, units)
        if self._connections:
            joined = ET.SubElement(system, f"{_SSD}Connections")
            for source, target, connection in self._connections:
                _connection(joined, source, target, connection)
        if units:
            defined = ET.SubElement(root, f"{_SSD}Units")
            for unit, base in units.items():
                element = ET.SubElement(defined, f"{_SSC}Unit", {"name": unit})
                ET.SubElement(element, f"{_SSC}BaseUnit", base.attributes)
        ET.indent(root)
        return bytes(ET.tostring(root, encoding="UTF-8", xml_declaration=True))


def _connector(parent: ET.Element, name: str, kind: str, unit: str, units: dict[str, BaseUnit]) -> None:
    element = ET.SubElement(parent, f"{_SSD}Connector", {"name": name, "kind": kind})
    base = base_unit(unit)
    ET.SubElement(element, f"{_SSC}Real", {} if base is None else {"unit": unit})
    if base is not None:
        units[unit] = base


def _connection(parent: ET.Element, source: tuple[str, str], target: tuple[str, str], connection: Connection) -> None:
    attributes: dict[str, str] = {}
    for side, (member, variable) in (("start", source), ("end", target)):
        if member:
            attributes[f"{side}Element"] = member
        attributes[f"{side}Connector"] = variable
    if not connection.convert_units:
        attributes["suppressUnitConversion"] = "true"
    element = ET.SubElement(parent, f"{_SSD}Connection", attributes)
    if (connection.factor, connection.offset) != (1.0, 0.0):
        change = {"factor": repr(float(connection.factor)), "offset": repr(float(connection.offset))}
        ET.SubElement(element, f"{_SSC}LinearTransformation", change)
