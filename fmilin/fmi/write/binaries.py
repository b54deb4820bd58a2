"""The C code of FMUs, and shared libraries of it for the machines of an FMU.

Those of the linear runtime are compiled once and then kept, whatever the model.
"""

import hashlib
import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

from fmilin.codegen.compiler import (
    Compiler,
    cache_folder,
    cache_library,
    compile_library,
    find_compiler,
    read_cached_library,
    zig_command,
)
from fmilin.errors import ModelError, UsageError
from fmilin.fmi.platforms import Machine, fmpy_folder, host
from fmilin.fmi.write.description_writer import FmuDescription, Standard, root_attributes, to_bytes
from fmilin.fmi.write.variables import FmuVariable

_MAGIC_NUMBER = 0xCAFEBABE
_ALIGNMENT = 14  # 2^14: the pages of Apple's own processors


def universal(binaries: Sequence[bytes]) -> bytes:
    """Return a Mach-O "fat" file with 64-bit Mach-O files in it (Apple's ``mach-o/fat.h``)."""
    header = struct.pack(">II", _MAGIC_NUMBER, len(binaries))
    position = _round_to_page(len(header) + 20 * len(binaries))
    content = b""
    for binary in binaries:
        kind, variant = struct.unpack_from("<II", binary, 4)  # cputype, cpusubtype
        header += struct.pack(">IIIII", kind, variant, position + len(content), len(binary), _ALIGNMENT)
        content += binary.ljust(_round_to_page(len(binary)), b"\0")
    return header.ljust(position, b"\0") + content


def _round_to_page(size: int) -> int:
    page = 1 << _ALIGNMENT
    return -(-size // page) * page


def compile_for_machines(
    machines: Sequence[Machine], standard: Standard, identifier: str, compile_one: Callable[[Machine], bytes]
) -> dict[str, bytes]:
    """Return the libraries of an FMU under their names in the archive."""
    by_name: dict[str, list[Machine]] = {}
    for machine in machines:
        name = f"binaries/{standard.binary_folder(machine)}/{identifier}{machine.suffix}"
        by_name.setdefault(name, []).append(machine)
    for targets in by_name.values():
        if len(targets) > 1 and targets[0].system != "darwin":
            both = " and ".join(machine.fmi3_folder for machine in targets)
            raise UsageError(f"FMI {standard.version} has one folder for {both}. Take FMI 3.0, or one of the two.")
    files = {}
    for name, targets in by_name.items():
        libraries = [compile_one(machine) for machine in targets]
        files[name] = libraries[0] if len(libraries) == 1 else universal(libraries)
    return files


def compile_unit(sources: Mapping[str, bytes], unit: str, machine: Machine, compiler: Compiler | None = None) -> bytes:
    """Compile one translation unit for a machine: with the C compiler of this one, else with zig."""
    if machine == host() and compiler is None:
        compiler = _own_compiler(machine)
    elif machine != host():
        command = zig_command(machine.architecture, machine.system)
        if command is None:
            raise ModelError(
                f"Binaries for {machine.fmi3_folder} are compiled by zig, which is not installed here. Install it "
                "with pip install 'fmilin[cross]', or leave that platform out: the FMU contains the C sources."
            )
        compiler = Compiler(command, ("-s",))
    return compile_library(sources, unit, compiler or Compiler())


def _own_compiler(machine: Machine) -> Compiler:
    try:
        return Compiler(find_compiler())
    except ModelError as error:
        if os.environ.get("CC"):
            raise
        command = zig_command(machine.architecture, machine.system)
        if command is None:
            raise ModelError(f"{error} Or install the package ziglang: pip install 'fmilin[cross]'.") from None
        return Compiler(command, ("-s",))


def linear_library(sources: Mapping[str, bytes], unit: str, machine: Machine) -> bytes:
    """Return the library that runs every linear model on a machine; compiled once, then kept."""
    name = f"linear-{Path(unit).stem}-{machine.fmi3_folder}-{_key(sources)}{machine.suffix}"
    stored = read_cached_library(name)
    if stored is not None:
        return stored
    try:
        library = compile_unit(sources, unit, machine)
    except ModelError as error:
        if machine != host() or _can_compile(machine):
            raise
        why = f" ({error})" if os.environ.get("CC") else ""
        raise ModelError(
            f"An FMU needs a small C library for {machine.fmi3_folder}, which is compiled once and then stored, but "
            f"there is no C compiler here{why}. Install one (Debian: apt install gcc libc6-dev), or pip install "
            f"'fmilin[cross]', which includes one, or copy the file '{cache_folder() / name}' from a machine on which "
            "this version of fmilin has exported before."
        ) from None
    cache_library(name, library)
    return library


def _can_compile(machine: Machine) -> bool:
    try:
        _own_compiler(machine)
    except ModelError:
        return False
    return True


def _key(sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(sources):
        digest.update(f"{len(name)}:{name}{len(sources[name])}:".encode() + sources[name])
    return digest.hexdigest()[:32]


Kind = Literal["symbolic", "linear", "block"]

SHARED = ("instance.h", "instance.c", "variables.c", "slopes.c", "steps.c", "saved.c")
PARTICULAR: Mapping[Kind, tuple[str, ...]] = {
    "symbolic": ("symbolic.h", "symbolic.c", "integrator.c"),
    "linear": ("linear.h", "linear.c", "linear_steps.c", "matrix.c", "exponential.c", "resource.c", "samples.c"),
    "block": ("block.h", "block.c", "samples.c"),
}


def runtime_sources(standard: Standard, kind: Kind) -> dict[str, bytes]:
    """Return the runtime's files by name, with the standard's headers, without the model's own and ``identity.h``."""
    runtime = files("fmilin.fmi.write") / "runtime"
    names = (*SHARED, *PARTICULAR[kind], *standard.runtime)
    try:
        headers = {name: (fmpy_folder() / "c-code" / name).read_bytes() for name in standard.headers}
    except OSError as error:
        raise ModelError(
            f"The header '{Path(error.filename).name}' of the FMI standard is missing in the installed package FMPy "
            f"({error.strerror}). Install FMPy again."
        ) from None
    return {name: (runtime / name).read_bytes() for name in names} | headers


def _slopes(model: FmuDescription, *flags: str) -> dict[str, str]:
    return dict.fromkeys(flags, str(model.directional_derivatives).lower())


class Fmi2(Standard):
    """FMI 2.0.4, https://fmi-standard.org. Variables are referred to by their position, counted from 1."""

    version = "2.0"
    source = "fmi2.c"
    runtime = ("fmi2.c", "functions.c")
    headers = ("fmi2Functions.h", "fmi2FunctionTypes.h", "fmi2TypesPlatform.h")
    binary_folder = attrgetter("fmi2_folder")
    entries = (("Outputs", "Unknown"), ("Derivatives", "Unknown"), ("InitialUnknowns", "Unknown"))
    attribute, first = "index", 1

    def root(self, model: FmuDescription, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        root = Element("fmiModelDescription", {"fmiVersion": "2.0", "guid": token, **root_attributes(model)})
        root.set("numberOfEventIndicators", "0")
        abilities = ("canNotUseMemoryManagementFunctions", "canGetAndSetFMUstate", "canSerializeFMUstate")
        common = {"modelIdentifier": model.identifier} | dict.fromkeys(abilities, "true")
        common |= _slopes(model, "providesDirectionalDerivative")
        if not model.is_sampled:
            _add_interface(root, "ModelExchange", {"completedIntegratorStepNotNeeded": "true"} | common)
        steps = {"canHandleVariableCommunicationStepSize": "true", "canInterpolateInputs": "true"}
        steps["maxOutputDerivativeOrder"] = str(int(model.output_slopes))
        _add_interface(root, "CoSimulation", steps | common)
        return root

    def variable(self, parent: Element, v: FmuVariable) -> Element:
        """Add a ``ScalarVariable``."""
        element = SubElement(parent, "ScalarVariable", v.common_attributes)
        return SubElement(element, "Real", v.real_attributes)


def _add_interface(root: Element, name: str, attributes: dict[str, str]) -> None:
    files = SubElement(SubElement(root, name, attributes), "SourceFiles")
    SubElement(files, "File", name=Fmi2.source)


class Fmi3(Standard):
    """FMI 3.0.2, https://fmi-standard.org. Variables are referred to by their value references."""

    version = "3.0"
    source = "fmi3.c"
    runtime = ("fmi3.c", "functions.c", "fmi3_unused.c")
    headers = ("fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h")
    binary_folder = attrgetter("fmi3_folder")
    entries = (("", "Output"), ("", "ContinuousStateDerivative"), ("", "InitialUnknown"))
    attribute, first = "valueReference", 0

    def root(self, model: FmuDescription, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        attributes = {"fmiVersion": "3.0", "instantiationToken": token, **root_attributes(model)}
        root = Element("fmiModelDescription", attributes)
        common = {"modelIdentifier": model.identifier, "canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
        common |= _slopes(model, "providesDirectionalDerivatives", "providesAdjointDerivatives")
        if not model.is_sampled:
            SubElement(root, "ModelExchange", common)
        steps = {"canHandleVariableCommunicationStepSize": "true"} | model.step_size("fixedInternalStepSize")
        if model.output_slopes:
            steps["maxOutputDerivativeOrder"] = "1"
        SubElement(root, "CoSimulation", common | steps)
        return root

    def variable(self, parent: Element, v: FmuVariable) -> Element:
        """Add a ``Float64``."""
        return SubElement(parent, "Float64", {**v.common_attributes, **v.real_attributes})

    def build_description(self, model: FmuDescription) -> dict[str, bytes]:
        """Return ``buildDescription.xml``."""
        root = Element("fmiBuildDescription", fmiVersion="3.0")
        configuration = SubElement(root, "BuildConfiguration", modelIdentifier=model.identifier)
        files = SubElement(configuration, "SourceFileSet", language="C99")
        SubElement(files, "SourceFile", name=self.source)
        if sys.platform != "win32":
            SubElement(configuration, "Library", name="m", external="true")
        return {"buildDescription.xml": to_bytes(root)}


_STANDARDS: Mapping[str, Standard] = {"2.0": Fmi2(), "3.0": Fmi3()}


def get_standard(version: str) -> Standard:
    """Return what is particular to a version."""
    standard = _STANDARDS.get(version)
    if standard is None:
        raise UsageError(f"FMUs can be built for FMI {' or '.join(_STANDARDS)}, not for '{version}'.")
    return standard
