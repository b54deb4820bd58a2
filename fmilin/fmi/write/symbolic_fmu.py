"""``build_fmu``: from a symbolic model to a file that any simulation tool can run."""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.codegen.c_component import CComponent
from fmilin.codegen.compiler import Compiler
from fmilin.codegen.statements import c_string
from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression, add_driving_inputs
from fmilin.errors import UsageError
from fmilin.fmi.platforms import machines
from fmilin.fmi.write.binaries import compile_for_machines, compile_unit, get_standard, runtime_sources
from fmilin.fmi.write.description_writer import FmuDescription
from fmilin.fmi.write.variables import (
    DeclaredConstraint,
    FmuInterface,
    FmuVariable,
    arrange_variables,
    build_variable,
    check,
    name_in_group,
)
from fmilin.model.capabilities import read_graph
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.model.interface import Model
from fmilin.model.model_files import toml_string
from fmilin.signals import Signal
from fmilin.support.files import check_writable, write_atomically
from fmilin.version import __version__

if TYPE_CHECKING:
    from fmilin.codegen.c_source_export import GeneratedModel
    from fmilin.codegen.implicit import ImplicitSystem

FIRST_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest of zip archives: builds of the same model are the same bytes
MAX_SLOWLY_COMPRESSED_BYTES = 1 << 20  # larger content is compressed in a hurry


def check_destination(path: Path) -> None:
    """Make sure before any work that an FMU can be written to ``path``."""
    if path.suffix.lower() != ".fmu":
        raise UsageError(f"The file name of an FMU must end in .fmu, and '{path}' does not. Rename it.")
    check_writable(path)


def archive_bytes(content: Mapping[str, bytes], *, packed: Collection[str] = ()) -> bytes:
    """Return a zip archive of ``content``, ``packed`` names stored as they are, ``binaries/`` executable."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            entry = zipfile.ZipInfo(name, FIRST_ZIP_TIME)
            entry.compress_type = zipfile.ZIP_STORED if name in packed else zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: its permissions follow
            entry.external_attr = (0o100755 if name.startswith("binaries/") else 0o100644) << 16
            archive.writestr(entry, data, compresslevel=6 if len(data) < MAX_SLOWLY_COMPRESSED_BYTES else 1)
    return buffer.getvalue()


def compute_token(parts: Iterable[bytes]) -> str:
    """Return a GUID that is a fingerprint of the content."""
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def to_identifier(name: str) -> str:
    """Return a C identifier that resembles ``name``."""
    text = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "model"
    return f"model_{text}" if text[0].isdigit() else text


CONSTRAINTS_PATH = "extra/org.fmilin/constraints.toml"
TURNS_PATH = "extra/org.fmilin/turns.json"  # outputs that wrap, as angles do, and by how much they jump


def constraints_toml(constraints: Sequence[DeclaredConstraint], independent: Sequence[str]) -> str:
    """Return the file's text, empty without anything to say; ``independent`` are the coordinates to keep."""
    blocks = [_block(c) for c in constraints]
    if independent:
        blocks.append(f"[coordinates]\nindependent = [{', '.join(map(toml_string, independent))}]\n")
    return "\n".join(blocks)


def _block(constraint: DeclaredConstraint) -> str:
    entries = {"variable": constraint.variable}
    if constraint.inputs:
        # The reader must know the inputs that prescribe the motion: their rates take part in the hidden constraint.
        entries = {"expression": add_driving_inputs(constraint.inputs, Expression.variable(constraint.variable)).text}
    entries["level"] = constraint.level
    if constraint.name:
        entries["name"] = constraint.name
    if constraint.rate is not None:
        entries["rate"] = add_driving_inputs(constraint.rate_inputs, Expression.variable(constraint.rate)).text
    return "[[constraint]]\n" + "".join(f"{key} = {toml_string(value)}\n" for key, value in entries.items())


@dataclass(frozen=True)
class _NativeLibrary:
    """The parts from which an FMU is made."""

    system: ImplicitSystem
    constraints: Sequence[Constraint]
    independent: tuple[str, ...]
    start_time: float


def build_fmu(
    model: Model | SymbolicSystem,
    path: str | Path,
    *,
    fmi_version: str = "2.0",
    directional_derivatives: bool = True,
    compiler: Compiler | None = None,
    platforms: Sequence[str] = (),
) -> Path:
    """Write an FMU for model exchange and co-simulation: compiled C, with its sources, and nothing of Python.

    ``model`` has a graph of its equations, as those of :mod:`fmilin.models` and :mod:`fmilin.systems`.
    Its parameters, ``fixed`` as constraints depend on them, and start values can be set until initialization ends. Each
    constraint's residual is an output, ``residual[i]``, its rate, where known, ``residual_rate[i]``;
    ``extra/org.fmilin/constraints.toml`` says which, and names the recommended independent coordinates. Directional
    derivatives (in FMI 3.0 adjoint ones too), also by parameters and time, are exact; the code is a third of the size
    without them. Co-simulation is Dormand and Prince's, of order 5 with step size control, to the importer's tolerance
    (else 1e-8), and does not project onto the constraints. The same model gives the same bytes, with the same compiler;
    ``platforms`` other than this machine's need the package ziglang.

    >>> from fmilin.systems import four_bar
    >>> build_fmu(four_bar(), "four_bar.fmu")  # doctest: +SKIP
    PosixPath('four_bar.fmu')
    """
    import casadi as ca

    from fmilin.codegen.c_source_export import generate

    path = Path(path)
    standard = get_standard(fmi_version)
    targets = machines(platforms)
    check_destination(path)
    native = _native(model)
    identifier = to_identifier(native.system.name)
    interface = arrange_variables(native.system, native.constraints)
    code = generate(
        replace(native.system, outputs=ca.vertcat(ca.SX(0, 1), *interface.output_expressions)),
        interface.local_expressions,
        derivatives=directional_derivatives,
    )
    description = FmuDescription(
        name=native.system.name,
        identifier=identifier,
        description=native.system.description,
        variables=interface.variables,
        outputs=interface.outputs,
        depends=_dependencies(interface, code),
        start_time=native.start_time,
        directional_derivatives=directional_derivatives,
        output_slopes=directional_derivatives,
    )
    toml = constraints_toml(interface.constraints, native.independent).encode()
    sources = {name: text.encode() for name, text in code.sources.items()} | runtime_sources(standard, "symbolic")
    token = compute_token([standard.model_description(description, ""), toml, *sources.values()])
    sources["identity.h"] = f'#define MODEL_TOKEN {c_string(token)}\n#include "symbolic.h"\n'.encode()
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content |= compile_for_machines(
        targets, standard, identifier, lambda m: compile_unit(sources, standard.source, m, compiler)
    )
    content |= standard.source_files(description, sources)
    if toml:
        content[CONSTRAINTS_PATH] = toml
    if turns := _find_fixed_turns(native.system):
        content[TURNS_PATH] = json.dumps(turns).encode()
    write_atomically(path, archive_bytes(content))
    return path


def _find_fixed_turns(system: ImplicitSystem) -> dict[str, float]:
    """Return the turns of outputs that wrap, by name; those that depend on a parameter are left out."""
    from fmilin.codegen.turns import find_turn

    turns = [find_turn(output, {}) for output in system.outputs.elements()]
    return {name: turn for name, turn in zip(system.output_signals.names, turns, strict=True) if turn}


def _native(model: Model | SymbolicSystem) -> _NativeLibrary:
    if isinstance(model, SymbolicSystem):
        return _NativeLibrary(model.in_graph(), model.constraints, model.independent, 0.0)
    system = read_graph(model) if isinstance(model, Model) else None
    if system is None:
        name = model.info.name if isinstance(model, Model) else type(model).__name__
        raise UsageError(
            f"An FMU can be built from a native description only, and '{name}' has no symbolic equations. Use a model "
            "of fmilin.models or fmilin.systems, or wrap it with fmilin.wrapping.wrap_as_fmu."
        )
    return _NativeLibrary(system, model.constraints.declared, model.independent, model.start.time)


def _dependencies(interface: FmuInterface, code: GeneratedModel) -> dict[int, tuple[int, ...]]:
    """Return what the derivatives and the computed outputs depend on, by reference, as references."""
    n, inputs = (sum(v.is_state for v in interface.variables), sum(v.causality == "input" for v in interface.variables))
    derivatives = range(1 + n, 1 + 2 * n)
    first = 1 + 2 * n + inputs
    outputs = range(first, first + len(interface.output_expressions))
    return {
        reference: tuple(sorted(interface.knowns[k] for k in row))
        for reference, row in zip((*derivatives, *outputs), code.depends, strict=False)
    }


NAME = "component"  # of the struct in the C code, whatever the FMU is called


def block_fmu(
    component: CComponent,
    inputs: Sequence[Signal],
    outputs: Sequence[Signal],
    path: str | Path,
    *,
    fmi_version: str = "2.0",
    start_time: float = 0.0,
    further: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return an FMU for co-simulation that runs a component: a step every ``sample_time``, the first at the start.

    ``inputs`` and ``outputs`` name ``in`` and ``out``; inputs of one name are one, and begin at their start values.
    After a step from a sample the outputs are those that the component gives for the inputs that were set there; they
    are held until the next sample, where setting an input shows the outputs of that sample at once. Every sample is
    taken once. An output with the name of an input is ``output.NAME``. ``further`` files travel inside, by their paths.
    """
    if not component.sample_time > 0:
        raise UsageError(f"'{path}' needs a sample time, which is the step of the FMU. Give one: sample_time=0.01.")
    if component.precision != "double":
        raise UsageError(
            f"'precision' is an option of C code, and '{path}' is not a C file. Leave it out, or write a .c file."
        )
    name = Path(path).stem
    read = {s.name: s for s in inputs}
    standard, identifier, variables = (
        get_standard(fmi_version),
        to_identifier(name),
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
    token = compute_token([standard.model_description(description, ""), *sources.values()])
    sources["identity.h"] = _identity(token, read, [s.name for s in inputs]).encode()
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content |= compile_for_machines(
        machines(()), standard, identifier, lambda m: compile_unit(sources, standard.source, m)
    )
    return archive_bytes(content | standard.source_files(description, sources) | dict(further or {}))


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
    variables = [build_variable(time, 0, "independent")]
    variables += [build_variable(s, 1 + i, "input", start=float(s.start)) for i, s in enumerate(named)]
    for s in outputs:
        signal = replace(s, name=name_in_group(s.name, "output", taken))
        variables.append(build_variable(signal, len(variables), "output", is_discrete=True))
    check(variables, "the block")
    return tuple(variables)
