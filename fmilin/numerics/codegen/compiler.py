"""C sources to a shared library, with the compiler that the machine has, and a cache of what was built before."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fmilin.ground.errors import ModelError
from fmilin.ground.files import temporary_folder, write_atomically
from fmilin.ground.sandbox.programs import run_program
from fmilin.numerics.codegen import cache

__all__ = ["Compiler", "compile_library", "compiled_library", "find_compiler", "library_suffix"]

CANDIDATES = ("cc", "gcc", "clang")

FLAGS = (
    "-std=c99",
    "-O1",
    "-Wall",
    "-Wextra",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-math-errno",
)
"""No fused multiply-add, so that a model gives the same numbers on every machine with the same C library. Straight-line
code gains nothing beyond ``-O1``, which takes the compiler half the time of ``-O2`` or less (Stewart platform, gcc 12:
6 s instead of 20 s for code of the same speed)."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """How to compile."""

    # the program and its first arguments; empty: the environment variable CC, then cc, gcc, clang
    command: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # further flags, after fmilin's own
    use_cache: bool = True  # whether built libraries are kept and used again


def library_suffix() -> str:
    """Return ``.so``, ``.dylib`` or ``.dll``."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def find_compiler() -> tuple[str, ...]:
    """Return the command of a C compiler: the environment variable CC, else cc, gcc or clang."""
    text = os.environ.get("CC", "")
    try:
        wanted = tuple(shlex.split(text))
    except ValueError as error:
        raise ModelError(
            f"The environment variable CC is no command: {str(error).lower()} in '{text}'. Correct it, or unset CC so "
            f"that {', '.join(CANDIDATES)} are tried."
        ) from None
    if wanted:
        if found := shutil.which(wanted[0]):  # a relative path is meant from here, not from where we compile
            return (str(Path(found).absolute()) if os.sep in wanted[0] else wanted[0], *wanted[1:])
        raise ModelError(
            f"The environment variable CC asks for the C compiler '{wanted[0]}', which is not on the PATH. "
            f"Install it, or unset CC so that {', '.join(CANDIDATES)} are tried."
        )
    for name in CANDIDATES:
        if shutil.which(name):
            return (name,)
    raise ModelError(
        f"No C compiler was found: neither the environment variable CC nor {', '.join(CANDIDATES)} leads to one. "
        f"Install one (Debian, Ubuntu: apt install gcc libc6-dev; macOS: xcode-select --install; Windows: MinGW-w64)."
    )


def compile_library(sources: Mapping[str, bytes], unit: str, destination: Path, compiler: Compiler) -> Path:
    """Write what :func:`compiled_library` returns to ``destination``, completely or not at all, and return that."""
    write_atomically(destination, compiled_library(sources, unit, compiler))
    return destination


def compiled_library(sources: Mapping[str, bytes], unit: str, compiler: Compiler) -> bytes:
    """Compile one translation unit and return the shared library.

    The work is done in a private temporary folder. The same sources, compiler and flags give the same bytes.

    ``sources``: file name to content, all in one folder. ``unit``: the file to compile; it may include the others.
    """
    command = compiler.command or find_compiler()
    arguments = [*command, *_flags(), *compiler.flags]
    name = f"{_key(sources, unit, arguments)}{library_suffix()}" if compiler.use_cache else ""
    kept = cache.fetch(name) if name else None
    if kept is not None:
        return kept
    with temporary_folder() as folder, _explained():
        for file, content in sources.items():
            (folder / file).write_bytes(content)
        built = folder / f"library{library_suffix()}"
        _run([*arguments, "-o", built.name, unit, "-lm"], folder)
        library = built.read_bytes() if built.is_file() else b""
    if not library:
        raise ModelError(
            f"The C compiler '{arguments[0]}' ended without complaint and without a library. Let the environment "
            "variable CC name another one."
        )
    if name:
        cache.keep(name, library)
    return library


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Say in words that there is no room for what is compiled."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"C code cannot be compiled here: {error.strerror or error}. Free some room, or let the environment "
            "variable TMPDIR name a folder with more."
        ) from None


def _flags() -> list[str]:
    return [*FLAGS, *([] if sys.platform == "win32" else ["-fPIC"])]


def _key(sources: Mapping[str, bytes], unit: str, arguments: list[str]) -> str:
    """Return a hash of everything that the result depends on."""
    digest = hashlib.sha256()
    for text in (unit, *arguments, str(shutil.which(arguments[0])), _identity(arguments[0])):
        digest.update(f"{len(text)}:{text}".encode())
    for name in sorted(sources):
        digest.update(f"{len(name)}:{name}{len(sources[name])}:".encode() + sources[name])
    return digest.hexdigest()


def _identity(program: str) -> str:
    """Return what the compiler says about its version: an update makes the cache forget."""
    try:
        answer = subprocess.run(  # noqa: S603 - the user's compiler, no shell
            [program, "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "replace")


def _run(arguments: list[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    try:
        status, printed = run_program(arguments, folder, environment=environment)
    except OSError as error:
        raise ModelError(
            f"The C compiler '{arguments[0]}' cannot be started: {error.strerror or error}. Install it, or let the "
            f"environment variable CC name another one."
        ) from None
    if status != 0:
        raise ModelError(
            f"The C compiler '{arguments[0]}' failed with exit status {status}: {_first_errors(printed)}. Check that "
            f"it can compile C99 and link shared libraries, or let the environment variable CC name another one."
        )


def _first_errors(text: str, count: int = 3) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines
    return " | ".join(errors[:count]) or "it says nothing more"
