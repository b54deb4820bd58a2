"""SSP files written by hand, as tools write them."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.composition.plants import oscillator_fmu

__all__ = [
    "BINDING",
    "FMU",
    "IN",
    "INVERTED",
    "OUT",
    "SET",
    "SSD",
    "component",
    "connection",
    "connector",
    "files",
    "oscillator_component",
    "parameter",
    "ssp",
    "system",
    "two",
]

SSD = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="{version}" name="{name}"
    xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"
    xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription"
    xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"
    xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"
    xmlns:ssb="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary">
{system}
{more}
</ssd:SystemStructureDescription>
"""


def connector(name: str, kind: str, unit: str = "", kind_of_number: str = "Real") -> str:
    """Return a connector."""
    unit = f' unit="{unit}"' if unit else ""
    return f'<ssd:Connector name="{name}" kind="{kind}"><ssc:{kind_of_number}{unit}/></ssd:Connector>'


def component(name: str, source: str, connectors: Sequence[str], more: str = "", attributes: str = "") -> str:
    """Return a component."""
    inside = f"<ssd:Connectors>{''.join(connectors)}</ssd:Connectors>{more}"
    return f'<ssd:Component name="{name}" source="{source}" {attributes}>{inside}</ssd:Component>'


def connection(start: str, end: str, inside: str = "", attributes: str = "") -> str:
    """Return a connection between ``element.connector``; the system's own connectors have no element."""

    def side(which: str, text: str) -> str:
        element, _, name = text.rpartition(".")
        return (f'{which}Element="{element}" ' if element else "") + f'{which}Connector="{name}"'

    return f"<ssd:Connection {side('start', start)} {side('end', end)} {attributes}>{inside}</ssd:Connection>"


def system(
    name: str, elements: Sequence[str], connections: Sequence[str], connectors: Sequence[str] = (), more: str = ""
) -> str:
    """Return a system."""
    own = f"<ssd:Connectors>{''.join(connectors)}</ssd:Connectors>" if connectors else ""
    joined = "\n".join(connections)
    wires = f"<ssd:Connections>\n{joined}\n</ssd:Connections>" if connections else ""
    inside = "\n".join(elements)
    return f'<ssd:System name="{name}">{own}{more}<ssd:Elements>\n{inside}\n</ssd:Elements>{wires}</ssd:System>'


def ssp(path: Path, content: str, files: Mapping[str, Path | str], *, version: str = "1.0", more: str = "") -> Path:
    """Write an archive and return its path."""
    with zipfile.ZipFile(path, "w") as archive:
        text = (
            content
            if content.startswith("<?xml")
            else SSD.format(version=version, name="demo", system=content, more=more)
        )
        archive.writestr("SystemStructure.ssd", text)
        for name, source in files.items():
            if isinstance(source, Path):
                archive.write(source, name)
            else:
                archive.writestr(name, source)
    return path


IN, OUT = connector("F", "input"), [connector("px", "output"), connector("pv", "output")]
FMU = "resources/osc.fmu"


def oscillator_component(name: str, more: str = "", source: str = FMU) -> str:
    return component(name, source, [IN, *OUT], more)


def files(**more: Path | str) -> dict[str, Path | str]:
    return {FMU: oscillator_fmu(), **{f"resources/{n.replace('__', '.')}": f for n, f in more.items()}}


def two(tmp_path: Path, connections: list[str], **options: object) -> Path:
    elements = [oscillator_component("one"), oscillator_component("two")]
    return ssp(tmp_path / "two.ssp", system("root", elements, connections), files(), **options)  # type: ignore[arg-type]


BINDING = "<ssd:ParameterBindings><ssd:ParameterBinding {}>{}</ssd:ParameterBinding></ssd:ParameterBindings>"

SET = '<ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>{}</ssv:Parameters></ssv:ParameterSet>'


def parameter(name: str, value: object, kind: str = "Real") -> str:
    return f'<ssv:Parameter name="{name}"><ssv:{kind} value="{value}"/></ssv:Parameter>'


INVERTED = """<ssc:BooleanMappingTransformation><ssc:MapEntry source="true" target="false"/>
    <ssc:MapEntry source="false" target="true"/></ssc:BooleanMappingTransformation>"""
