"""Shared libraries for the machines of an FMU; those of the linear runtime are kept, whatever the model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fmilin.fmi.write.description import Standard
from fmilin.fmi.write.platforms import Machine, host
from fmilin.fmi.write.universal import universal
from fmilin.ground.errors import ModelError, UsageError
from fmilin.numerics.codegen import cache
from fmilin.numerics.codegen.compiler import Compiler, compiled_library, find_compiler
from fmilin.numerics.codegen.zig import zig_command

__all__ = ["compiled", "compiled_for", "linear_library"]


def compiled_for(
    machines: Sequence[Machine], standard: Standard, identifier: str, compile_one: Callable[[Machine], bytes]
) -> dict[str, bytes]:
    """Return the libraries of an FMU under their names in the archive."""
    together: dict[str, list[Machine]] = {}
    for machine in machines:
        name = f"binaries/{standard.binary_folder(machine)}/{identifier}{machine.suffix}"
        together.setdefault(name, []).append(machine)
    for sharing in together.values():
        if len(sharing) > 1 and sharing[0].system != "darwin":
            both = " and ".join(machine.fmi3_folder for machine in sharing)
            raise UsageError(f"FMI {standard.version} has one folder for {both}. Take FMI 3.0, or one of the two.")
    files = {}
    for name, sharing in together.items():
        libraries = [compile_one(machine) for machine in sharing]
        files[name] = libraries[0] if len(libraries) == 1 else universal(libraries)
    return files


def compiled(sources: Mapping[str, bytes], unit: str, machine: Machine, compiler: Compiler | None = None) -> bytes:
    """Compile one translation unit for a machine: with the C compiler of this one, else with zig."""
    if machine == host() and compiler is None:
        compiler = _own_compiler(machine)
    elif machine != host():
        compiler = _cross_compiler(machine)
    return compiled_library(sources, unit, compiler or Compiler())


def _own_compiler(machine: Machine) -> Compiler:
    try:
        return Compiler(find_compiler())
    except ModelError:
        command = None if os.environ.get("CC") else zig_command(machine.architecture, machine.system)
        if command is None:
            raise
        return Compiler(command, ("-s",))


def _cross_compiler(machine: Machine) -> Compiler:
    command = zig_command(machine.architecture, machine.system)
    if command is None:
        raise ModelError(
            f"Binaries for {machine.fmi3_folder} are compiled by zig, which is not installed here. Install it with "
            f"pip install 'fmilin[cross]'; or leave that platform out: the C sources are inside the FMU."
        )
    return Compiler(command, ("-s",))


def linear_library(sources: Mapping[str, bytes], unit: str, machine: Machine) -> bytes:
    """Return the library that runs every linear model on a machine; compiled once, then kept."""
    name = f"linear-{Path(unit).stem}-{machine.fmi3_folder}-{_key(sources)}{machine.suffix}"
    kept = cache.fetch(name)
    if kept is not None:
        return kept
    try:
        library = compiled(sources, unit, machine)
    except ModelError as error:
        if machine != host() or _can_compile(machine):
            raise
        why = f" ({error})" if os.environ.get("CC") else ""
        raise ModelError(
            f"An FMU needs a small C library for {machine.fmi3_folder}, which is compiled once and then kept, but "
            f"there is no C compiler here{why}: install one (Debian: apt install gcc libc6-dev), or pip install "
            f"'fmilin[cross]', which brings one, or copy the file '{cache.cache_folder() / name}' from a machine on "
            "which this version of fmilin has exported before."
        ) from None
    cache.keep(name, library)
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
