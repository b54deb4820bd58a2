"""The contents of a model or an SSP file, before anything is computed; of FMUs without running their code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError, count_omitted, cut_list
from fmilin.model.capabilities import HasParameterSignals, ReportsStart, StartValue, read_products
from fmilin.model.interface import Model, ModelInfo
from fmilin.numerics.certificate import Certificate, CertifiesStart
from fmilin.report.facts import certificate_facts, print_fact, print_facts
from fmilin.report.numbers import shorten_name, value_with_unit
from fmilin.signals import Signal, Signals
from fmilin.support.dataclass import dataclass
from fmilin.support.tables import ResultTable, build_table

if TYPE_CHECKING:
    from fmilin.composition.ssp.flattening import Flat
    from fmilin.fmi.read.description import ModelDescription, Variable
    from fmilin.options import FmuOptions
    from fmilin.support.table_repr import Sheet

MAX_ROWS = 40
MAX_UNKNOWNS = 6  # of those that are solved for at the start of a DAE
SIGNALS = ("states", "inputs", "outputs", "parameters")
SIGNAL_FIELDS = ("name", "unit", "start", "nominal", "description")  # of each of them in a document


@dataclass(frozen=True)
class Summary:
    """A model at a glance."""

    info: ModelInfo
    interfaces: tuple[str, ...]  # ``"ModelExchange"``, ..., or ``"native"``
    states: Signals
    inputs: Signals
    outputs: Signals
    parameters: Signals
    directional_derivatives: bool | None  # whether the model promises exact ones; None where it was not asked
    constraints: tuple[Constraint, ...] = ()  # that come with the model
    constraints_from: str = ""  # where they were found
    independent: tuple[str, ...] = ()  # coordinates that the model's author recommends
    platforms: tuple[str, ...] = ()  # for which there is compiled code inside
    capabilities: dict[str, str] | None = None  # attributes of the model exchange interface, as written
    stepping: tuple[str, ...] = ()  # of a co-simulation FMU: what its linear model can be made from
    notes: tuple[str, ...] = ()  # what is strange about the description
    # names of the points at which its file offers to start, the one that was taken first
    start_points: tuple[str, ...] = ()
    number_of_parameters: int = 0  # maybe more than are listed
    problems: tuple[str, ...] | None = None  # what FMPy says against the description; None where it was not asked
    start_certificate: Certificate | None = None  # of a DAE: how well its equations determine rates at the start
    start_values: tuple[StartValue, ...] | None = None  # what became of them; None: not requested

    def document(self) -> dict[str, Any]:
        """Return the same as plain data, format ``fmilin-info/1``."""
        return {
            **asdict(self.info),
            "interfaces": list(self.interfaces),
            "platforms": list(self.platforms),
            **{group: [{n: getattr(s, n) for n in SIGNAL_FIELDS} for s in getattr(self, group)] for group in SIGNALS},
            "directional_derivatives": self.directional_derivatives,
            "capabilities": self.capabilities or {},
            "stepping": list(self.stepping),
            "constraints": [
                {"expression": c.expression.text, "name": c.name, "level": c.level} for c in self.constraints
            ],
            "constraints_from": self.constraints_from,
            "independent": list(self.independent),
            "notes": list(self.notes),
            "start_points": list(self.start_points),
            "format": "fmilin-info/1",
            **({} if self.problems is None else {"problems": list(self.problems)}),
            **({} if self.start_values is None else {"start_values": [v._asdict() for v in self.start_values]}),
        }


def summary_of_fmu(
    path: Path, most_parameters: int | None = None, options: FmuOptions | None = None, *, check: bool = False
) -> Summary:
    """Return the summary of an FMU without loading its code; ``check`` asks FMPy what is wrong with its description."""
    from fmilin.fmi.read.archive import FmuFile, problems
    from fmilin.fmi.read.layout import ScalarLayout
    from fmilin.loading.load import find_constraints

    fmu = FmuFile(path, options)
    description = fmu.description
    layout = ScalarLayout(description)
    declared, where = find_constraints(fmu)
    parameters = (v for v in description.variables.with_causality("parameter") if v.is_float)
    plain = layout.signals(islice((s for v in parameters for s in layout.scalars(v)), most_parameters))
    structural = [_structural_signal(v) for v in description.variables.with_causality("structuralParameter")]
    return Summary(
        info=ModelInfo(description.model_name, description.token, description.tool, description.fmi_version),
        interfaces=description.interfaces,
        states=layout.signals(layout.states),
        inputs=layout.signals(layout.inputs),
        outputs=layout.signals(layout.outputs),
        parameters=Signals([*structural, *plain]),
        number_of_parameters=description.variables.number_with_causality("parameter") + len(structural),
        directional_derivatives=description.directional_derivatives,
        constraints=() if declared is None else declared.constraints,
        constraints_from=where,
        independent=() if declared is None else declared.independent,
        platforms=fmu.platforms,
        capabilities=dict(description.capabilities),
        stepping=_describe_stepping(description),
        notes=(*description.notes, *layout.notes),
        problems=tuple(problems(fmu)) if check else None,
    )


def _structural_signal(variable: Variable) -> Signal:
    """Return a structural parameter, which sets sizes of arrays and is set before anything else, with its start."""
    value = float(variable.start.split()[0]) if variable.start else float("nan")
    note = f"structural parameter; {variable.description}".removesuffix("; ")
    return Signal(variable.name, start=value, description=note)


def summary_of_model(model: Model) -> Summary:
    """Return the summary of a native model."""
    t, x, u = model.start.time, model.start.states, model.start.inputs
    import numpy as np

    nothing = np.zeros((len(x), 0)), np.zeros((len(u), 0))
    return replace(
        summary_at_rest(model),
        directional_derivatives=read_products(model, t, x, u, *nothing) is not None,
        start_certificate=model.certify_start() if isinstance(model, CertifiesStart) else None,
    )


def read_start(model: Model) -> tuple[StartValue, ...]:
    """Return what became of the start values of a model that searches for a consistent start."""
    if not isinstance(model, ReportsStart):
        raise UsageError(
            f"'{model.info.name}' takes its start values as they are. Modelica models and FMUs for model exchange "
            "have a report on theirs."
        )
    return model.report_start()


def summary_at_rest(model: Model) -> Summary:
    """Return the summary of an open model of any source; none of its code is run, so it may be closed again."""
    is_fmu = bool(model.info.fmi_version)  # its parameters are read from its instance: they are only counted
    values = () if is_fmu else model.parameters.items()
    described: Mapping[str, Signal] = model.describe_parameters() if isinstance(model, HasParameterSignals) else {}
    return Summary(
        info=model.info,
        interfaces=("native",),
        states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        parameters=Signals(described.get(name, Signal(name)).with_start(value) for name, value in values),
        number_of_parameters=len(model.parameters),
        directional_derivatives=None,
        constraints=model.constraints.declared,
        constraints_from="the model itself" if len(model.constraints) else "",
        independent=model.independent,
        notes=model.notes,
        start_points=model.start_points,
    )


def show_summary(summary: Summary, page: Sheet) -> None:
    """Print ``summary`` for a person."""
    info, exact = summary.info, summary.directional_derivatives
    words = {"ModelExchange": "model exchange", "CoSimulation": "co-simulation"}
    interfaces = [words.get(i, i) for i in summary.interfaces if i != "native"]
    facts: list[tuple[str, Sequence[str]]] = [
        ("Model", [info.name]),
        ("Kind", [f"FMI {info.fmi_version}" if info.fmi_version else "native", *interfaces]),
        ("Made by", [info.tool or "unknown"]),
        ("Identity", [info.guid] if info.guid else []),
        ("Platforms", summary.platforms),
        ("Derivatives", [] if exact is None else ["exact, according to the model" if exact else "by differences"]),
        ("Stepping", summary.stepping),
        ("Starts at", [f"{name} (taken)" if i == 0 else name for i, name in enumerate(summary.start_points)]),
    ]
    for word, pieces in facts:
        if pieces:
            print_fact(page, word, pieces)
    for group in SIGNALS:
        signals: Signals = getattr(summary, group)
        number = max(len(signals), summary.number_of_parameters if group == "parameters" else 0)
        page.print()
        page.print(_signal_table(group, signals, number) if len(signals) else f"{number or 'No'} {group}.")
    page.print()
    for line in _constraint_lines(summary):
        page.print(line)
    if summary.start_certificate is not None and summary.start_certificate.step:
        page.print()
        unknowns = cut_list([*map(shorten_name, summary.start_certificate.step)], MAX_UNKNOWNS)
        print_fact(page, "At start", [f"solved for {unknowns[0]}", *unknowns[1:]])
        print_facts(page, certificate_facts(summary.start_certificate))
    if summary.start_values is not None:
        page.print()
        page.print(_start_table(summary.start_values))
    for note in summary.notes:
        print_fact(page, "Note", note)
    for problem in summary.problems or ():
        print_fact(page, "Problem", problem)
    if summary.problems == ():
        print_fact(page, "Checked", ["FMPy finds nothing wrong in its description"])


def _describe_stepping(description: ModelDescription) -> tuple[str, ...]:
    """Return what a co-simulation FMU says about how it can be stepped; empty where model exchange is used."""
    if description.interface != "CoSimulation":
        return ()
    from fmilin.fmi.read.description import is_true
    from fmilin.fmi.read.stepped_model import read_cadence

    cadence, capabilities = read_cadence(description), description.capabilities
    saves = any(is_true(capabilities, f"canGetAndSetFMU{word}") for word in ("state", "State"))
    states = len(description.states)
    return (
        f"{states} declared states" if states else "no declared states: the linear model is identified from responses",
        "saves its state" if saves else "cannot save its state: each run is a copy of its process or a fresh instance",
        *((f"suggests steps of {cadence.step:g} s",) if cadence.step else ()),
        *((f"a base period of {cadence.period:g} s",) if cadence.period else ()),
        *(("sampled in part: see fl.Stepping(lifted=True)",) if cadence.sampled else ()),
    )


def _signal_table(group: str, signals: Signals, number: int) -> ResultTable:
    heads = (f"{group.capitalize()} ({number})", "Start", "Description")
    rows = ((shorten_name(s.name), value_with_unit(s.start, s.unit), s.description) for s in signals[:MAX_ROWS])
    return replace(build_table(heads, rows, columns="LRf"), omitted=max(number - MAX_ROWS, 0))


def _start_table(values: Sequence[StartValue]) -> ResultTable:
    """Return the start values, those that were moved first."""
    rows = [
        (
            shorten_name(value.name),
            "" if value.requested is None else f"{value.requested:.8g} {value.unit}".strip(),
            f"{value.reached:.8g} {value.unit}".strip(),
            value.reason,
        )
        for value in sorted(values, key=lambda value: not value.reason.startswith("moved"))
    ]
    heads = (f"Start values ({len(rows)})", "Requested", "Reached", "Reason")
    return build_table(heads, rows, columns="LRRf", most=MAX_ROWS)


def _constraint_lines(summary: Summary) -> Iterator[str]:
    if not summary.constraints:
        yield "No constraints come with the model. If states depend on each other, name them: constraints=['...']"
        return
    yield f"Constraints ({len(summary.constraints)}, from {summary.constraints_from}):"
    for constraint in summary.constraints[:MAX_ROWS]:
        name = f"  [{constraint.name}]" if constraint.name else ""
        yield f"  0 = {constraint.expression.text}   ({constraint.level} level){name}"
    if remaining := count_omitted(len(summary.constraints), MAX_ROWS):
        yield f"  {remaining}"
    if summary.independent:
        yield f"Recommended coordinates: {', '.join(summary.independent)}"


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
    from fmilin.composition.ssp.opening import SspFile

    file = SspFile(path, options)
    try:
        flat = file.flat
        components = {
            name: summary_of_fmu(file.locate_file(p.component), 0, options) for name, p in flat.placed.items()
        }
    finally:
        file.close()

    def find_unit(node: tuple[str, str]) -> str:
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
        connections=tuple(_connections(flat, find_unit)),
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
    rows = []
    for name, s in summary.components.items():
        kinds = "+".join({"ModelExchange": "ME", "CoSimulation": "CS"}.get(i, i) for i in s.interfaces)
        numbers = (len(x) for x in (s.states, s.inputs, s.outputs, s.constraints))
        rows.append((name, f"{s.info.fmi_version} {kinds}", *map(str, numbers), summary.sources[name]))
    heads = (f"Components ({len(summary.components)})", "FMI", "States", "Inputs", "Outputs", "Constraints", "File")
    page.print(build_table(heads, rows, columns="LLRRRRf", most=MAX_ROWS))
    page.print()
    wires = []
    for source, target, factor, offset in summary.connections:
        change = f"times {factor:.6g}" + (f" {offset:+.6g}" if offset else "")
        wires.append((source, target, "" if (factor, offset) == (1.0, 0.0) else change))
    sources = f"Connections ({len(summary.connections)})"
    page.print(build_table((sources, "Feeds", "By"), wires, columns="ffL", most=MAX_ROWS))
    for word, names in (("Inputs", summary.inputs), ("Outputs", summary.outputs)):
        if names:
            print_fact(page, word, names)
    if summary.parameters:
        pieces = (f"{name} = {value}" for name, value in summary.parameters.items())
        print_fact(page, "Parameters", cut_list(pieces, MAX_ROWS))
    for note in summary.notes:
        print_fact(page, "Note", note)
