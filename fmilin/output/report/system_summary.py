"""What is in an SSP file, before anything is computed: no code of its FMUs is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.connected.ssp.flattening import Flat
from fmilin.connected.ssp.opening import SspFile
from fmilin.output.report.summary import MOST_ROWS, summary_of_fmu
from fmilin.output.report.table import print_fact, simple_table

if TYPE_CHECKING:
    from fmilin.fmi.read.archive import FmuOptions
    from fmilin.output.report.page import Sheet
    from fmilin.output.report.summary import Summary


@dataclass(frozen=True)
class SystemSummary:
    """A system at a glance."""

    # name, version: of the system, and of the standard
    name: str
    version: str
    components: dict[str, Summary]  # by path
    sources: dict[str, str]  # the file of each
    # source, target, factor and offset between them, units converted
    connections: tuple[tuple[str, str, float, float], ...]
    # inputs, outputs: connectors of the whole system
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parameters: dict[str, Any]  # what the file sets, ``component.parameter``
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the same as plain data, format ``fmilin-info/1``."""
        return {
            "name": self.name,
            "ssp_version": self.version,
            "components": {
                name: summary.document() | {"source": self.sources[name]} for name, summary in self.components.items()
            },
            "connections": [
                {"source": a, "target": b, "factor": factor, "offset": offset}
                for a, b, factor, offset in self.connections
            ],
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "parameters": self.parameters,
            "notes": list(self.notes),
            "format": "fmilin-info/1",
        }


def summary_of_ssp(path: Path, options: FmuOptions | None = None) -> SystemSummary:
    """Return the summary of an SSP or SSD file."""
    file = SspFile(path, options)
    try:
        flat = file.flat
        components = {name: summary_of_fmu(file.file_of(p.component), 0, options) for name, p in flat.placed.items()}
    finally:
        file.close()

    def unit_of(node: tuple[str, str]) -> str:
        summary = components[node[0]]
        for signals in (summary.inputs, summary.outputs, summary.states):
            if signals.has(node[1]):
                return signals[signals.positions[node[1]]].unit
        return ""

    return SystemSummary(
        name=flat.structure.name,
        version=flat.structure.version,
        components=components,
        sources={name: p.component.source for name, p in flat.placed.items()},
        connections=tuple(_connections(flat, unit_of)),
        inputs=tuple(name for (member, name), c in flat.connectors.items() if not member and c.kind == "input"),
        outputs=tuple(name for (member, name), c in flat.connectors.items() if not member and c.kind == "output"),
        parameters={_text(node): value for node, (value, _, _) in flat.values.items()},
        notes=tuple(flat.notes),
    )


def _connections(flat: Flat, unit_of: Any) -> list[tuple[str, str, float, float]]:
    rows = []
    for node in flat.drivers:
        if (node[0] in flat.placed or node[0] == "") and (origin := flat.origin(node, unit_of)) is not None:
            source, change = origin
            rows.append((_text(source), _text(node), change.factor, change.offset))
    return rows


def _text(node: tuple[str, str]) -> str:
    return f"{node[0]}.{node[1]}" if node[0] else node[1]


def show_system_summary(summary: SystemSummary, page: Sheet) -> None:
    """Print ``summary`` for a person."""
    print_fact(page, "System", [summary.name])
    print_fact(page, "Kind", [f"SSP {summary.version}", f"{len(summary.components)} FMUs"])
    page.print()
    heads = ("FMI", "States", "Inputs", "Outputs", "Constraints", "File")
    table = simple_table(f"Components ({len(summary.components)})", *heads, columns="LLRRRRf")
    for name, s in list(summary.components.items())[:MOST_ROWS]:
        kinds = "+".join({"ModelExchange": "ME", "CoSimulation": "CS"}.get(i, i) for i in s.interfaces)
        numbers = (len(x) for x in (s.states, s.inputs, s.outputs, s.constraints))
        table.add_row(name, f"{s.info.fmi_version} {kinds}", *map(str, numbers), summary.sources[name])
    page.print(table)
    page.print()
    wires = simple_table(f"Connections ({len(summary.connections)})", "Feeds", "By", columns="ffL")
    for source, target, factor, offset in summary.connections[:MOST_ROWS]:
        change = f"times {factor:.6g}" + (f" {offset:+.6g}" if offset else "")
        change = "" if (factor, offset) == (1.0, 0.0) else change
        wires.add_row(source, target, change)
    page.print(wires)
    for word, names in (("Inputs", summary.inputs), ("Outputs", summary.outputs)):
        if names:
            print_fact(page, word, names)
    if summary.parameters:
        pieces = [f"{name} = {value}" for name, value in list(summary.parameters.items())[:MOST_ROWS]]
        print_fact(page, "Parameters", pieces)
    for note in summary.notes:
        print_fact(page, "Note", note)
