"""C sources to a shared library, with the machine's own compiler and as soon as that pays, and a cache of them.

A file of the cache begins with the digest of its name and content, and only the user can have written it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import importlib.util
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from fmilin.codegen.compilers import SYSTEM_COMPILERS, zig_target
from fmilin.errors import ModelError, UsageError
from fmilin.support.dataclass import dataclass
from fmilin.support.files import (
    keep_owner_rights,
    new_folder,
    replace_when_complete,
    temporary_folder,
    write_atomically,
    write_file,
)
from fmilin.support.other_python import python_command
from fmilin.support.programs import run_program

# Limits for compilers that were stopped or wait for something, far above what those take that work: a machine with a
# load of 20 still compiles the largest models within them.
VERSION_TIME = 20.0  # seconds
LEAST_COMPILING_TIME = 180.0  # seconds
ZIG_LIBRARY_TIME = 900.0  # seconds; the C library of Windows, once on a machine: a loaded one takes 240
COMPILING_TIME_PER_BYTE = 1e-4  # seconds; gcc 12 takes about 5e-6

FLAGS = (
    *("-std=c99", "-O1", "-Wall", "-Wextra", "-shared"),
    *("-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"),
)
"""No fused multiply-add, so that a model gives the same numbers on every machine with the same C library. Straight-line
code gains nothing beyond ``-O1``, which takes the compiler half the time of ``-O2`` or less (Stewart platform, gcc 12:
6 s instead of 20 s for code of the same speed)."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """How C code is compiled: the ``compiler`` of :func:`fmilin.fmi.write.build_fmu`."""

    command: tuple[str, ...] = ()
    """The program and its first arguments; if empty, the environment variable CC, then cc, gcc, clang."""
    flags: tuple[str, ...] = ()
    """Further flags, after fmilin's own."""
    use_cache: bool = True
    """Whether built libraries are kept and used again."""


def library_suffix() -> str:
    """Return ``.so``, ``.dylib`` or ``.dll``."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def find_compiler() -> tuple[str, ...]:
    """Return the command of a C compiler: the environment variable CC, else cc, gcc or clang."""
    text = os.environ.get("CC", "")
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise ModelError(
            f"The environment variable CC is not a command: {str(error).lower()} in '{text}'. Correct it, or unset CC "
            f"so that {', '.join(SYSTEM_COMPILERS)} are tried."
        ) from None
    if command:
        if program := shutil.which(command[0]):  # a relative path is meant from here, not from where we compile
            return (str(Path(program).absolute()) if os.sep in command[0] else command[0], *command[1:])
        raise ModelError(
            f"The environment variable CC names the C compiler '{command[0]}', which is not on the PATH. Install it, "
            f"or unset CC so that {', '.join(SYSTEM_COMPILERS)} are tried."
        )
    for name in SYSTEM_COMPILERS:
        if shutil.which(name):
            return (name,)
    raise ModelError(
        f"No C compiler was found: neither the environment variable CC nor {', '.join(SYSTEM_COMPILERS)} names one. "
        "Install one (Debian, Ubuntu: apt install gcc libc6-dev; macOS: xcode-select --install; Windows: MinGW-w64)."
    )


def zig_command(architecture: str, system: str) -> tuple[str, ...] | None:
    """Return the command that compiles for a machine, or None where the package is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return tuple(python_command("-m", "ziglang", "cc", "-target", zig_target(architecture, system)))


def compile_library(sources: Mapping[str, bytes], unit: str, compiler: Compiler) -> bytes:
    """Compile one unit of the sources to a shared library, the same bytes for the same sources and compiler."""
    arguments = _arguments(compiler)
    name = _name(sources, unit, compiler) if compiler.use_cache else ""
    cached = read_cached_library(name) if name else None
    if cached is not None:
        return cached
    with temporary_folder() as folder, _explain_full_disk():
        for file, content in sources.items():
            write_file(folder / file, content)
        built = folder / f"library{library_suffix()}"
        _run([*arguments, "-o", built.name, unit, "-lm"], folder)
        library = built.read_bytes() if built.is_file() else b""
    if not library:
        raise ModelError(
            f"The C compiler '{arguments[0]}' ended without an error, but wrote no library. Let the environment "
            "variable CC name another compiler."
        )
    if name:
        cache_library(name, library)
    return library


def build_program(
    compiler: Sequence[str],
    sources: Mapping[str, bytes],
    units: Sequence[str],
    flags: Sequence[str],
    libraries: Sequence[str],
    name: str,
) -> Path:
    """Compile a program, once for the same sources and compiler; return its path in the cache.

    If nothing can be kept there (a home that cannot be written), the program is in a temporary folder until this
    process ends.
    """
    arguments = [*compiler, *flags]
    path = cache_folder() / f"{content_key(sources, ' '.join(units), compiler, [*flags, *libraries])}-{name}"
    with contextlib.suppress(OSError):
        status = path.lstat()
        if _is_private(cache_folder()) and stat.S_ISREG(status.st_mode) and _is_mine(status) and status.st_size:
            return path
    with temporary_folder() as folder, _explain_full_disk():
        for file, content in sources.items():
            (folder / file).write_bytes(content)
        _run([*arguments, "-o", name, *units, *libraries], folder)
        program = (folder / name).read_bytes()
    try:
        if _is_private(cache_folder()):
            _write_program(path, program)
            return path
    except (OSError, UsageError):
        pass
    path = _new_folder_of_process() / name
    _write_program(path, program)
    return path


def _write_program(path: Path, content: bytes) -> None:
    with replace_when_complete(path) as unfinished:
        unfinished.write_bytes(content)
        unfinished.chmod(0o700)


def _new_folder_of_process() -> Path:
    """Return a new folder that is removed when this process ends, not when one does that was forked from it."""
    folder = new_folder()
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def is_built(sources: Mapping[str, str], unit: str, compiler: Compiler) -> bool:
    """Whether the cache holds what :func:`loaded_library` would compile; rejects where there is no compiler."""
    texts = {name: text.encode() for name, text in sources.items()}
    name = _name(texts, unit, compiler)
    return compiler.use_cache and read_cached_library(name) is not None


def _command(compiler: Compiler) -> tuple[str, ...]:
    return compiler.command or find_compiler()


def _arguments(compiler: Compiler) -> list[str]:
    return [*_command(compiler), *_flags(), *compiler.flags]


def _name(sources: Mapping[str, bytes], unit: str, compiler: Compiler) -> str:
    key = content_key(sources, unit, _command(compiler), [*_flags(), *compiler.flags])
    return f"{key}{library_suffix()}"


@contextlib.contextmanager
def _explain_full_disk() -> Iterator[None]:
    """Return the error for a disk without space for the compiled code."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"C code cannot be compiled here: {error.strerror or error}. Free disk space, or let the environment "
            "variable TMPDIR name a folder with more of it."
        ) from None


def _flags() -> list[str]:
    return [*FLAGS, *([] if sys.platform == "win32" else ["-fPIC"])]


def content_key(sources: Mapping[str, bytes], unit: str, compiler: Sequence[str], flags: Sequence[str]) -> str:
    """Return a hash of everything that the result depends on: an update of the compiler makes the cache forget."""
    digest = hashlib.sha256()
    for text in (unit, *compiler, *flags, str(shutil.which(compiler[0])), _version_text(tuple(compiler))):
        digest.update(f"{len(text)}:{text}".encode())
    for name in sorted(sources):
        digest.update(f"{len(name)}:{name}{len(sources[name])}:".encode() + sources[name])
    return digest.hexdigest()


def compiler_version(compiler: Sequence[str]) -> str:
    """Return the first line of what a compiler says about its version; "" if it says nothing."""
    return _version_text(tuple(compiler)).partition("\n")[0].strip()


def _version_text(compiler: tuple[str, ...]) -> str:
    """Return what a compiler says about its version; it is asked again when its file has changed."""
    path = shutil.which(compiler[0])
    changed = 0
    if path is not None:
        with contextlib.suppress(OSError):
            changed = Path(path).stat().st_mtime_ns
    return _ask_version(compiler, path, changed)


@lru_cache(maxsize=16)
def _ask_version(compiler: tuple[str, ...], _path: str | None, _changed: int) -> str:
    with tempfile.TemporaryFile() as answer:  # a pipe would be waited for as long as any descendant has it open
        try:
            subprocess.run(  # noqa: S603 - the user's compiler, no shell
                [*compiler, "--version"],
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=VERSION_TIME,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        answer.seek(0)
        return answer.read().decode("utf-8", "replace")


def _run(arguments: list[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    limit = (ZIG_LIBRARY_TIME if "ziglang" in arguments else 0.0) + LEAST_COMPILING_TIME
    limit += COMPILING_TIME_PER_BYTE * sum(file.stat().st_size for file in folder.iterdir())
    try:
        status, printed = run_program(arguments, folder, environment=environment, seconds=limit)
    except TimeoutError:
        raise ModelError(
            f"The C compiler '{arguments[0]}' did not end within {limit:.0f} s and was stopped. Check that it compiles "
            "a small file by itself, or let the environment variable CC name another one."
        ) from None
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
    return " | ".join(errors[:count]) or "without further output"


def load_library(sources: Mapping[str, str], unit: str, compiler: Compiler, kind: type[ctypes.CDLL]) -> Any:
    """Compile and load; a ``ctypes.PyDLL`` keeps the interpreter's lock, for calls that take microseconds."""
    with temporary_folder() as folder:
        path = folder / f"functions{library_suffix()}"
        texts = {name: text.encode() for name, text in sources.items()}
        write_file(path, compile_library(texts, unit, compiler))
        return kind(str(path))


def cache_folder() -> Path:
    """Return where built libraries are kept: under XDG_CACHE_HOME, else where the platform keeps such things."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "fmilin" / "libraries"
    if sys.platform == "darwin":
        return _home_folder() / "Library" / "Caches" / "fmilin" / "libraries"
    if sys.platform == "win32" and (base := os.environ.get("LOCALAPPDATA")):
        return Path(base) / "fmilin" / "Cache" / "libraries"
    return _home_folder() / ".cache" / "fmilin" / "libraries"


def _home_folder() -> Path:
    """Return the user's home; for a user without one, a path under which no folder can be made."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() fails where there is none
    return Path(os.devnull if home == "~" else home)


def read_cached_library(name: str) -> bytes | None:
    """Return what is kept under ``name``; None when nothing is, or when it is damaged or not the user's own."""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(cache_folder() / name, flags)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and _is_mine(status) and (os.name == "nt" or not status.st_mode & 0o002):
                digest, content = file.read(hashlib.sha256().digest_size), file.read()
                if digest == _digest(name, content):
                    return content
    return None


def cache_library(name: str, content: bytes) -> None:
    """Keep ``content``, completely on the disk or not at all; a folder that cannot be used is not a reason to fail."""
    with contextlib.suppress(OSError, UsageError):
        if _is_private(cache_folder()):
            write_atomically(cache_folder() / name, _digest(name, content) + content)
            (cache_folder() / name).chmod(0o600)


def _digest(name: str, content: bytes) -> bytes:
    digest = hashlib.sha256(f"{len(name)}:{name}".encode())
    digest.update(content)
    return digest.digest()


def _is_private(folder: Path) -> bool:
    """Make the folder, and the one above, which is fmilin's, too; return whether both are the user's alone."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        keep_owner_rights(path)
    for path in (folder.parent, folder):
        status = path.lstat()
        if not (stat.S_ISDIR(status.st_mode) and _is_mine(status)):
            return False
        if hasattr(os, "getuid") and status.st_mode & 0o077:
            path.chmod(0o700)
    return True


def _is_mine(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


SECONDS_PER_INSTRUCTION = 3e-9  # what the virtual machine takes; compiled code takes about a fifth
COMPILE_SECONDS_PER_INSTRUCTION = 1.3e-4  # seconds of a compiler for each instruction
COMPILER_START_SECONDS = 0.1  # seconds that a compiler takes for nothing
LOADING_SECONDS = 0.012  # seconds in which a library that was compiled before is found, written and loaded
PRINT_SECONDS_PER_INSTRUCTION = 4e-5  # seconds in which an instruction becomes C text
TRACE_START_SECONDS = 0.008  # seconds in which the smallest equations are written down and printed
TRACE_SECONDS_PER_PAIR = 2e-4  # seconds in which equations are written down as a graph, for each pair of states


class CompilationBudget:
    """How long slower code works before quicker code is made: as long as making it takes (ski rental's rule)."""

    def __init__(self, evaluation: float, price: float) -> None:
        self._evaluation = evaluation  # seconds of the slower code
        self._remaining = price / evaluation  # evaluations

    @classmethod
    def of_graph(cls, instructions: int) -> CompilationBudget:
        """Return the budget of a graph that a virtual machine computes."""
        return cls(max(instructions, 1) * SECONDS_PER_INSTRUCTION, compiler_seconds(instructions))

    @classmethod
    def of_equations(cls, evaluation: float, states: int) -> CompilationBudget:
        """Return the budget for a graph of equations of so many states; what the compiler takes is to be added."""
        return cls(evaluation, TRACE_START_SECONDS + TRACE_SECONDS_PER_PAIR * states**2)

    def add(self, seconds: float) -> None:
        """Add to the price: more is known of what is to be made."""
        self._remaining += seconds / self._evaluation

    def count_toward_compilation(self, points: int, *, ahead: int = 0) -> bool:
        """Count evaluations; return whether quicker code pays, for these or for those that are certain to come."""
        self._remaining -= points
        return self._remaining < ahead


def compiler_seconds(instructions: int) -> float:
    """Return how long a compiler takes."""
    return COMPILER_START_SECONDS + max(instructions, 1) * COMPILE_SECONDS_PER_INSTRUCTION


def library_seconds(instructions: int, *, is_built: bool) -> float:
    """Return how long it takes until a library is there, one that may have been compiled before."""
    return LOADING_SECONDS if is_built else compiler_seconds(instructions)
