"""``block_fmu``: from a step in C, as filters and schedules are, to an FMU that takes it at every sample."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fmilin.fmi.platforms import machines
from fmilin.fmi.write.archive import archive_bytes, identifier_like, token_of
from fmilin.fmi.write.binaries import compiled, compiled_for, runtime_sources
from fmilin.fmi.write.description import FmuDescription
from fmilin.fmi.write.standards import standard_of
from fmilin.fmi.write.variables import FmuVariable, check, name_in_group, variable_of
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import Signal
from fmilin.numerics.codegen.c_component import CComponent

NAME = "component"  # of the struct in the C code, whatever the FMU is called


def block_fmu(
    component: CComponent,
    inputs: Sequence[Signal],
    outputs: Sequence[Signal],
    path: str | Path,
    *,
    fmi_version: str = "2.0",
    start_time: float = 0.0,
) -> bytes:
    """Return an FMU for co-simulation that runs a component: a step every ``sample_time``, the first at the start.

    ``inputs`` and ``outputs`` name ``in`` and ``out``; inputs of one name are one, and begin at their start values.
    Outputs at a sample follow the inputs there, and are held until the next one. An output with the name of an input is
    ``output.NAME``.
    """
    if not component.sample_time > 0:
        raise UsageError(f"'{path}' needs a sample time, at which the FMU takes its steps. Give one: sample_time=0.01.")
    if component.precision != "double":
        raise UsageError(f"'precision' is a choice of C code: '{path}' has none. Leave it out, or write a .c file.")
    name = Path(path).stem
    read = {s.name: s for s in inputs}
    standard, identifier, variables = (
        standard_of(fmi_version),
        identifier_like(name),
        _variables(read.values(), outputs),
    )
    references, computed = range(1, 1 + len(read)), range(1 + len(read), len(variables))
    description = FmuDescription(
        name=name,
        identifier=identifier,
        description=component.about[0],
        variables=variables,
        outputs=tuple(computed),
        depends=dict.fromkeys(computed, references),
        start_time=start_time,
        directional_derivatives=False,
        sample_time=component.sample_time,
        output_slopes=False,
    )
    # Functions of the file are static: several FMUs in one program do not meet.
    text = re.sub(rf"^void {NAME}_", f"static void {NAME}_", replace(component, name=NAME).text(), flags=re.MULTILINE)
    sources = runtime_sources(standard, "block") | {f"{NAME}.c": text.encode("ascii")}
    token = token_of([standard.model_description(description, ""), *sources.values()])
    sources["identity.h"] = _identity(token, read, [s.name for s in inputs]).encode()
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content |= compiled_for(machines(()), standard, identifier, lambda m: compiled(sources, standard.source, m))
    return archive_bytes(content | standard.source_files(description, sources))


def _identity(token: str, read: Mapping[str, Signal], inputs: Sequence[str]) -> str:
    """Return the file that says which FMU it is, how its inputs start and which of them are what is handed in."""
    starts = ", ".join([*(repr(float(s.start)) for s in read.values()), "0.0"])
    numbers = ", ".join([*(str(list(read).index(name)) for name in inputs), "0"])
    sizes = f"#define N_READ {len(read)}\n#define START_VALUES {starts}\n#define PLACES {numbers}\n"
    return f'#define MODEL_TOKEN "{token}"\n{sizes}#include "block.h"\n'


def _variables(inputs: Iterable[Signal], outputs: Sequence[Signal]) -> tuple[FmuVariable, ...]:
    """Return the variables in the order that the C runtime expects: time, inputs, outputs."""
    taken: set[str] = set()
    named = [replace(s, name=name_in_group(s.name, "input", taken)) for s in inputs]
    time = Signal(name_in_group("time", "fmilin", taken), "s", description="Time")
    variables = [variable_of(time, 0, "independent")]
    variables += [variable_of(s, 1 + i, "input", start=float(s.start)) for i, s in enumerate(named)]
    for s in outputs:
        signal = replace(s, name=name_in_group(s.name, "output", taken))
        variables.append(variable_of(signal, len(variables), "output", is_discrete=True))
    check(variables, "the block")
    return tuple(variables)
