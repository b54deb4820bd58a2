"""``build_fmu``: from a symbolic model to a file that any simulation tool can run."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from fmilin.codegen.c99 import GeneratedModel, generate
from fmilin.codegen.c99_writer import c_string
from fmilin.codegen.compiler import Compiler, compile_library, library_suffix
from fmilin.codegen.system import SymbolicSystem
from fmilin.constraints import Constraint
from fmilin.errors import ModelError, UsageError
from fmilin.fmi.write.archive import check_destination, write_archive
from fmilin.fmi.write.constraints_toml import CONSTRAINTS_PATH, constraints_toml
from fmilin.fmi.write.description import Description, Standard
from fmilin.fmi.write.standard2 import Fmi2
from fmilin.fmi.write.standard3 import Fmi3
from fmilin.fmi.write.variables import Interface, lay_out
from fmilin.model import Model
from fmilin.version import __version__

__all__ = ["build_fmu"]

_STANDARDS: Mapping[str, Standard] = {"2.0": Fmi2(), "3.0": Fmi3()}


@dataclass(frozen=True)
class _Native:
    """What an FMU is made from."""

    system: SymbolicSystem
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
) -> Path:
    """Write a model exchange FMU: compiled C for this platform, with its sources, and nothing of Python.

    The FMU has the model's states (dependent ones included), inputs, outputs and parameters. Parameters and
    the start values of states can be set until initialization ends; parameters are ``fixed``, because
    constraints depend on them. Each constraint's residual is a further output, ``residual[i]``, its rate, where
    the model knows it, ``residual_rate[i]``; ``extra/org.fmilin/constraints.toml`` says which, and names the
    recommended independent coordinates. Directional derivatives (in FMI 3.0 adjoint ones too) of derivatives
    and outputs, residuals included, with respect to states, inputs, parameters and time are exact.
    The same model gives the same bytes, with the same compiler.

    Parameters
    ----------
    model : Model or SymbolicSystem
        A native description: a model with the attribute ``system``, such as those of :mod:`fmilin.models` and
        :mod:`fmilin.systems`.
    path : str or Path
        Where to write; the name ends in ``.fmu``. An old file is replaced only by a complete new one.
    fmi_version : {"2.0", "3.0"}
    directional_derivatives : bool
        Whether to offer them; the code is a third of the size without.
    compiler : Compiler, optional
        Command, further flags, and whether to use the cache of built libraries.

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    UsageError
        When ``path`` cannot be written, the version is unknown, or the model is no native description.
    ModelError
        When the model cannot be printed as C, there is no C compiler, or it fails.
    ConstraintError
        When a constraint names something that the model does not have.

    Examples
    --------
    >>> from fmilin.systems import four_bar
    >>> build_fmu(four_bar(), "four_bar.fmu")  # doctest: +SKIP
    PosixPath('four_bar.fmu')
    """
    path = Path(path)
    standard = _STANDARDS.get(fmi_version)
    if standard is None:
        raise UsageError(f"FMUs are built for FMI {' or '.join(_STANDARDS)}, not for '{fmi_version}'.")
    check_destination(path)
    native = _native(model)
    identifier = _identifier(native.system.name)
    interface = lay_out(native.system, native.constraints)
    code = generate(
        native.system, interface.output_expressions, interface.local_expressions, derivatives=directional_derivatives
    )
    description = Description(
        name=native.system.name,
        identifier=identifier,
        description=native.system.description,
        interface=interface,
        depends=_dependencies(interface, code),
        start_time=native.start_time,
        directional_derivatives=directional_derivatives,
        sources=(standard.source,),
    )
    toml = constraints_toml(interface.constraints, native.independent).encode()
    sources = _sources(code, standard)
    token = _token([standard.model_description(description, ""), toml, *sources.values()])
    sources["identity.h"] = f"#define MODEL_TOKEN {c_string(token)}\n".encode()
    binary = f"binaries/{standard.binary_folder()}/{identifier}{library_suffix()}"
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content[binary] = _compiled(sources, standard.source, compiler or Compiler())
    content |= {f"sources/{name}": sources[name] for name in sorted(sources)}
    content |= {f"sources/{name}": data for name, data in standard.extra_sources(description).items()}
    if toml:
        content[CONSTRAINTS_PATH] = toml
    write_archive(path, content, binary)
    return path


def _native(model: Model | SymbolicSystem) -> _Native:
    if isinstance(model, SymbolicSystem):
        return _Native(model, model.constraints, model.independent, 0.0)
    system = getattr(model, "system", None)
    if not isinstance(system, SymbolicSystem):
        name = getattr(getattr(model, "info", None), "name", type(model).__name__)
        raise UsageError(
            f"An FMU can be built from a native description only, and '{name}' is none: it has no equations in "
            f"symbols. Take a model of fmilin.models or fmilin.systems."
        )
    return _Native(system, model.constraints.declared, model.independent, model.start.time)


def _dependencies(interface: Interface, code: GeneratedModel) -> tuple[tuple[int, ...], ...]:
    """Return what the derivatives and the computed outputs depend on, as value references."""
    computed = sum(v.is_state for v in interface.variables) + len(interface.output_expressions)
    return tuple(tuple(sorted(interface.knowns[symbol] for symbol in row)) for row in code.depends[:computed])


def _sources(code: GeneratedModel, standard: Standard) -> dict[str, bytes]:
    """Return everything that the compiler needs, the standard's own headers included."""
    runtime = files("fmilin.fmi.write") / "runtime"
    sources = {name: text.encode() for name, text in code.sources.items()}
    for name in ("instance.h", "instance.c", standard.source):
        sources[name] = (runtime / name).read_bytes()
    found = importlib.util.find_spec("fmpy")  # not imported: only its files are wanted
    if found is None or not found.submodule_search_locations:
        raise ModelError(
            "The package FMPy, which brings the headers of the FMI standard, is not installed. Install it."
        )
    headers = Path(found.submodule_search_locations[0]) / "c-code"
    for name in standard.headers:
        try:
            sources[name] = (headers / name).read_bytes()
        except OSError as error:
            raise ModelError(
                f"The header '{name}' of the FMI standard is missing in the installed package FMPy "
                f"({error.strerror}). Install FMPy again."
            ) from None
    return sources


def _compiled(sources: Mapping[str, bytes], unit: str, compiler: Compiler) -> bytes:
    with tempfile.TemporaryDirectory(prefix="fmilin-") as folder:
        return compile_library(sources, unit, Path(folder) / f"model{library_suffix()}", compiler).read_bytes()


def _token(parts: Sequence[bytes]) -> str:
    """Return a GUID that is a fingerprint of the content."""
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def _identifier(name: str) -> str:
    """Return a C identifier that looks like ``name``."""
    text = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "model"
    return f"model_{text}" if text[0].isdigit() else text
