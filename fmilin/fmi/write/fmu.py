"""``build_fmu``: from a symbolic model to a file that any simulation tool can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.fmi.platforms import machines
from fmilin.fmi.write.archive import (
    CONSTRAINTS_PATH,
    archive_bytes,
    check_destination,
    constraints_toml,
    identifier_like,
    token_of,
)
from fmilin.fmi.write.binaries import compiled, compiled_for, runtime_sources
from fmilin.fmi.write.description import FmuDescription
from fmilin.fmi.write.standards import standard_of
from fmilin.fmi.write.variables import FmuInterface, lay_out
from fmilin.ground.errors import UsageError
from fmilin.ground.files import write_atomically
from fmilin.model.constraints.declared import Constraint
from fmilin.model.interface import Model
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.numerics.codegen.compiler import Compiler
from fmilin.numerics.codegen.statements import c_string

if TYPE_CHECKING:
    from fmilin.numerics.codegen.c99 import GeneratedModel
    from fmilin.numerics.codegen.implicit import ImplicitSystem


@dataclass(frozen=True)
class _Native:
    """What an FMU is made from."""

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

    ``model`` has a graph (:meth:`~fmilin.Model.in_graph`), as those of :mod:`fmilin.models` and :mod:`fmilin.systems`.
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

    from fmilin.numerics.codegen.c99 import generate

    path = Path(path)
    standard = standard_of(fmi_version)
    targets = machines(platforms)
    check_destination(path)
    native = _native(model)
    identifier = identifier_like(native.system.name)
    interface = lay_out(native.system, native.constraints)
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
    token = token_of([standard.model_description(description, ""), toml, *sources.values()])
    sources["identity.h"] = f'#define MODEL_TOKEN {c_string(token)}\n#include "symbolic.h"\n'.encode()
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content |= compiled_for(targets, standard, identifier, lambda m: compiled(sources, standard.source, m, compiler))
    content |= standard.source_files(description, sources)
    if toml:
        content[CONSTRAINTS_PATH] = toml
    write_atomically(path, archive_bytes(content))
    return path


def can_be_compiled(model: Model | SymbolicSystem) -> bool:
    """Whether a model has equations that can be printed as C."""
    return isinstance(model, SymbolicSystem) or model.compilable


def _native(model: Model | SymbolicSystem) -> _Native:
    if isinstance(model, SymbolicSystem):
        return _Native(model.in_graph(), model.constraints, model.independent, 0.0)
    system = model.in_graph() if isinstance(model, Model) else None
    if system is None:
        name = model.info.name if isinstance(model, Model) else type(model).__name__
        raise UsageError(
            f"An FMU can be built from a native description only, and '{name}' is none: it has no equations in "
            f"symbols. Take a model of fmilin.models or fmilin.systems, or wrap it with fmilin.wrapping.wrap_as_fmu."
        )
    return _Native(system, model.constraints.declared, model.independent, model.start.time)


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
