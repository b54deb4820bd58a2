"""From modelDescription.xml to a :class:`~fmilin.fmi.read.description.ModelDescription`.

FMPy's own reader stops at flaws that touch no number we need, and does not know the plural capability flags of FMI 3.
This one rejects only what makes states, derivatives, inputs or outputs uncertain, and notes the rest.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from fmilin.errors import ModelError
from fmilin.fmi.platforms import fmpy_folder
from fmilin.fmi.read.description import ModelDescription, is_true
from fmilin.fmi.read.elements import ModelStructure, Notes
from fmilin.fmi.read.model_structure import interfaces1, read_structure1, read_structure2, read_structure3

if TYPE_CHECKING:
    from fmilin.fmi.read.large import Scanned


class _Version(NamedTuple):
    """How a version is read."""

    read: Callable[[Any, Notes, Scanned | None], ModelStructure]
    token: str  # attribute that identifies the model
    directional: str  # attribute of the capability flag
    schema: str  # file in FMPy's folder of schemas
    interfaces: Callable[[Any], dict[str, dict[str, str]]]  # from the root to the attributes of every interface


def _list_interfaces(root: Any) -> dict[str, dict[str, str]]:
    return {kind: dict(root.find(kind).attrib) for kind in _INTERFACES if root.find(kind) is not None}


_VERSIONS = {
    "1": _Version(read_structure1, "guid", "", "fmi1/fmiModelDescription.xsd", interfaces1),
    "2": _Version(
        read_structure2, "guid", "providesDirectionalDerivative", "fmi2/fmi2ModelDescription.xsd", _list_interfaces,
    ),
    "3": _Version(
        read_structure3, "instantiationToken", "providesDirectionalDerivatives", "fmi3/fmi3ModelDescription.xsd",
        _list_interfaces,
    ),
}  # fmt: skip


MIN_SCANNED_BYTES = 4_000_000  # bytes from which a description is scanned
_ENCODING = re.compile(rb"""\s*<\?xml[^>]*encoding\s*=\s*["']([^"']+)["']""")
_INTERFACES = ("ModelExchange", "CoSimulation", "ScheduledExecution")


def parse_description(xml: bytes, source: str) -> ModelDescription:
    """Read a model description."""
    xml, damaged = _decodable(xml)
    rest, scanned = xml, None
    if len(xml) >= MIN_SCANNED_BYTES:
        from fmilin.fmi.read.large import cut

        rest, scanned = cut(xml) or (xml, None)
    root = _root(rest, source)
    version = (root.get("fmiVersion") or "").strip()
    reader = _VERSIONS.get(version.split(".")[0])
    if reader is None:
        raise ModelError(
            f"'{source}' has the FMI version '{version}', which fmilin does not support. Supported are FMI 1.0, 2.0 "
            "and 3.0."
        )
    attributes = reader.interfaces(root)
    interfaces = tuple(attributes)
    interface = next((kind for kind in _INTERFACES[:2] if kind in interfaces), None)
    if interface is None:
        inside = " and ".join(interfaces) or "none"
        raise ModelError(
            f"'{source}' has no interface for model exchange or co-simulation (interfaces: {inside}). fmilin cannot "
            "linearize such FMUs: export the model again."
        )
    chosen = attributes[interface]
    notes = Notes(source, steps=interface == "CoSimulation")
    if damaged:
        notes.add("modelDescription.xml has bytes that are not UTF-8; each became a replacement character.")
    if scanned is not None:
        notes.add("The description is large: variables are read when needed, and the others are not checked.")
    structure = reader.read(root, notes, scanned)
    experiment = {} if (element := root.find("DefaultExperiment")) is None else dict(element.attrib)
    identifier = chosen.get("modelIdentifier") or ""
    if not identifier:
        raise ModelError(
            f"'{source}' does not name its library: the attribute modelIdentifier is missing. Export the FMU again."
        )
    return ModelDescription(
        source=source,
        fmi_version=version,
        model_name=root.get("modelName") or identifier,
        token=root.get(reader.token) or "",
        tool=root.get("generationTool") or "",
        interfaces=interfaces,
        interface=interface,
        model_identifier=identifier,
        capabilities=chosen,
        directional_derivatives=is_true(chosen, reader.directional),
        start_time=_start_time(experiment),
        **structure._asdict(),
        log_categories=tuple(c.get("name") or "" for c in root.findall("LogCategories/Category")),
        notes=notes.collected,
        attributes=attributes,
        source_files=tuple(f.get("name") or "" for f in root.findall(f"{interface}/SourceFiles/File")),
        experiment=experiment,
    )


def departures(xml: bytes, source: str) -> list[str]:
    """Return how a description departs from its version's XML schema, as FMPy ships it, one sentence each, in order."""
    from lxml import etree

    root = _root(_decodable(xml)[0], source)
    reader = _VERSIONS.get((root.get("fmiVersion") or "").strip().split(".")[0])
    if reader is None:
        return []
    try:
        checker = etree.XMLSchema(file=str(fmpy_folder() / "schema" / reader.schema))
        checker.validate(root)
    except etree.LxmlError as error:  # what the validator itself cannot cope with, such as entities
        return [f"it cannot be checked ({error})."]
    return [f"line {e.line}: {e.message}" for e in checker.error_log]


def _decodable(xml: bytes) -> tuple[bytes, bool]:
    """Return a text in the encoding that it says to be in; texts in UTF-8 often contain names in another one."""
    declared = _ENCODING.match(xml[:200])
    if xml[:2] in (b"\xff\xfe", b"\xfe\xff") or (declared and declared[1].lower() != b"utf-8"):
        return xml, False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for begin in range(0, 0 if xml.isascii() else len(xml), 1 << 20):  # in pieces: all of it might not fit into
            decoder.decode(xml[begin : begin + (1 << 20)])  # memory once more
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return xml.decode("utf-8", "replace").encode("utf-8"), True
    return xml, False


def safe_root(xml: bytes, where: str, standard: str = "FMI", exported: str = "FMU") -> Any:
    """Return the root of an XML file by strangers: no entities, no network, no definitions of its own."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError as error:
        raise ModelError(
            f"{where} is malformed: {' '.join(str(error).split())}. Export the {exported} again, or correct the file."
        ) from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise ModelError(
            f"{where} defines a document type of its own, which {standard} does not allow and which can be used for "
            "attacks. Use this file only if you trust its source."
        )
    return root


def _root(xml: bytes, source: str) -> Any:
    root = safe_root(xml, f"modelDescription.xml in '{source}'")
    if root.tag != "fmiModelDescription":
        raise ModelError(
            f"modelDescription.xml in '{source}' is not a model description: its root element is '{root.tag}', not "
            "'fmiModelDescription'."
        )
    return root


def _start_time(experiment: Mapping[str, str]) -> float:
    with suppress(ValueError):
        if math.isfinite(time := float(experiment.get("startTime") or "")):
            return time
    return 0.0
