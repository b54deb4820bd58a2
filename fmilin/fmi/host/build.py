"""The host program: the one that FMILIN_HOST names, the one of the wheel, or one compiled from the sources."""

from __future__ import annotations

import os
import shlex
import shutil
from functools import cache
from pathlib import Path

from fmilin.codegen.compiler import build_program, compiler_version, find_compiler, zig_command
from fmilin.errors import ModelError
from fmilin.fmi import platforms
from fmilin.fmi.host import recipe

MINGW = "x86_64-w64-mingw32-gcc"
"""The compiler for Windows of a distribution of Linux."""

MINGW32 = "i686-w64-mingw32-gcc"
"""The same for 32 bits."""


def host_program() -> Path:
    """Return the program.

    Raises
    ------
    ModelError
        Where FMILIN_HOST names none, or it has to be compiled and cannot be.
    """
    named = os.environ.get("FMILIN_HOST")
    if named:
        if not os.access(named, os.X_OK):
            raise ModelError(f"The environment variable FMILIN_HOST names '{named}', which is not a program.")
        return Path(named).absolute()
    packaged = _packaged_program()
    return packaged if packaged.is_file() else _compile_program(platforms.host().system, _choose_compiler())


def windows_host_program(architecture: str = "x86_64") -> Path:
    """Return the program for Windows, which runs under wine: that of the wheel, or one compiled from the sources.

    Raises
    ------
    ModelError
        Where it has to be compiled and cannot be.
    """
    system = "windows32" if architecture == "x86" else "windows"
    packaged = recipe.FOLDER / recipe.program_name(system)
    return packaged if packaged.is_file() else _compile_program(system, _choose_windows_compiler(architecture))


def linux32_host_program() -> Path:
    """Return the program for 32 bits on Linux: that of the wheel, or one compiled from the sources.

    Raises
    ------
    ModelError
        Where it has to be compiled and cannot be.
    """
    packaged = recipe.FOLDER / recipe.program_name("linux32")
    if packaged.is_file():
        return packaged
    zig = zig_command("x86", "linux")
    return _compile_program("linux32", (*find_compiler(), "-m32") if zig is None else zig)


def find_program(machine: platforms.Machine) -> Path:
    """Return the program that loads libraries for a machine.

    Raises
    ------
    ModelError
        Where FMILIN_HOST names none, or it has to be compiled and cannot be.
    """
    if machine == platforms.host():
        return host_program()
    return windows_host_program(machine.architecture) if machine.system == "windows" else linux32_host_program()


def describe_host() -> str:
    """Return which program loads FMUs and how it was made, as the end of a sentence; compile it if there is none."""
    program = host_program()
    if os.environ.get("FMILIN_HOST"):
        return f"'{program}', which the environment variable FMILIN_HOST names"
    if program == _packaged_program():
        note = recipe.FOLDER / recipe.BUILD_NOTE
        compiler = note.read_text("utf-8").strip() if note.is_file() else "an unknown compiler"
        return f"'{program}', compiled by {compiler} when fmilin was packaged"
    command = _choose_compiler()
    name, version = shlex.join(command), compiler_version(command)
    return f"'{program}', compiled by '{name}' ({version}) when an FMU was first loaded"


def _packaged_program() -> Path:
    return recipe.FOLDER / recipe.program_name(platforms.host().system)


@cache
def _compile_program(system: str, compiler: tuple[str, ...]) -> Path:
    sources = {path.name: path.read_bytes() for path in recipe.source_files()}
    units = [name for name in sources if name.endswith(".c")]
    name, options = recipe.program_name(system), recipe.link_options(system)
    return build_program(compiler, sources, units, recipe.FLAGS, options, name)


def _choose_windows_compiler(architecture: str) -> tuple[str, ...]:
    """Return MinGW-w64, else zig, which first compiles the C library of Windows: that takes a minute or two."""
    compiler, package = (MINGW32, "i686") if architecture == "x86" else (MINGW, "x86-64")
    if shutil.which(compiler):
        return (compiler, "-static-libgcc")
    zig = zig_command(architecture, "windows")
    if zig is None:
        raise ModelError(
            "The program that loads FMUs for Windows has to be compiled, and there is no compiler for it. Install the "
            "package ziglang (pip install 'fmilin[cross]') or MinGW-w64 (Debian, Ubuntu: apt install "
            f"gcc-mingw-w64-{package})."
        )
    return zig


def _choose_compiler() -> tuple[str, ...]:
    """Return the system's compiler, else that of the package ziglang."""
    try:
        return find_compiler()
    except ModelError as error:
        if os.environ.get("CC"):
            raise
        machine = platforms.host()
        zig = zig_command(machine.architecture, machine.system)
        if zig is None:
            raise ModelError(
                f"The program that loads FMUs has to be compiled. {error} Or install the package ziglang, which can "
                "compile it: pip install 'fmilin[cross]'."
            ) from None
        return zig
