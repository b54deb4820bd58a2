"""What foreign code may take and reach, and what this system keeps from it, by which means."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fmilin.errors import UsageError
from fmilin.sandbox import kernel, landlock, seccomp
from fmilin.sandbox.guard import Guard
from fmilin.support.kinds import require_field_kinds


@dataclass(frozen=True, slots=True)
class Limits:
    """What foreign code may take, and what it may reach beyond its own folder and the system's libraries."""

    seconds: float | None = 120.0  #: for every single call of a function of the model, its loading included, in seconds
    #: size in bytes of the child process and of those that it starts; None for nine tenths of what is free when the
    #: child starts, so that the machine stays usable
    memory: float | None = None
    processes: int = 100  #: that it may have started at a time
    read: Sequence[str | os.PathLike[str]] = ()  #: files and folders that it may read, as weather data, licence files
    network: bool = False  #: whether it may use the network, and sockets of this machine
    environment: Sequence[str] = ()  #: variables of the environment that it may see
    caged: bool = True  #: without, it may reach all that the user may

    def __post_init__(self) -> None:
        if isinstance(self.read, str | os.PathLike) or isinstance(self.environment, str):
            raise UsageError("'read' and 'environment' are sequences: write ['...'] even for a single one.")
        require_field_kinds(self)
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"A limit of {self.seconds:g} seconds for a call must be positive, or None for no limit.")
        if self.memory is not None and not self.memory > 0:
            raise UsageError(f"A limit of {self.memory:g} bytes of memory must be positive, or None for no limit.")
        if self.processes < 0:
            raise UsageError(f"A limit of {self.processes} processes must not be negative.")


logger = logging.getLogger("fmilin.sandbox")
TRUNCATION = 3  # the version of Landlock from which on it sees to that


@dataclass(frozen=True, slots=True)
class Wall:
    """One thing that is kept from foreign code."""

    name: str  # "files"
    sentence: str  # what an FMU cannot do
    means: str  # by which it is kept; empty where it is not
    missing: str = ""  # what would be needed, or what else is to be known

    @property
    def holds(self) -> bool:
        """Whether it holds on this system."""
        return bool(self.means)


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What holds for foreign code that runs in a child process on this system; printed, a line each."""

    system: str
    walls: tuple[Wall, ...]

    def __getitem__(self, name: str) -> Wall:
        """Return a wall by its name."""
        return {wall.name: wall for wall in self.walls}[name]

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what does not hold."""
        return tuple(wall.name for wall in self.walls if not wall.holds)

    def __str__(self) -> str:
        """Return a line for each wall."""
        lines = [f"On {self.system}, the code of an FMU"]
        for wall in self.walls:
            how = f"yes ({wall.means})" if wall.holds else f"NOT HELD ({wall.missing})"
            lines.append(f"  {wall.sentence:<64} {how}")
        return "\n".join(lines)


def sandbox_report() -> SandboxReport:
    """Return what the code of an FMU in a child process cannot do here; ``missing`` names what does not hold."""
    return SandboxReport(f"{platform.system()} {platform.release()}", tuple(_walls(*_worlds())))


def _worlds() -> tuple[bool, bool]:
    """Return whether a process can have a world of its own here, and ``/proc`` of its own; tried."""
    if not sys.platform.startswith("linux"):
        return False, False

    def told() -> int:
        return kernel.is_apart() + 2 * (kernel.is_apart() and kernel.proc_tells())

    status = Guard(told, apart=True).wait().status
    answer = 0 if status is None else os.waitstatus_to_exitcode(status)
    return bool(answer & 1), bool(answer & 2)


def _walls(apart: bool, hidden: bool) -> Iterator[Wall]:  # noqa: FBT001 - what was found out
    version, filters, forks = landlock.version(), seccomp.is_there(), hasattr(os, "fork")
    files = f"Landlock, version {version}" if version else ""
    filtered = "seccomp" if filters else ""
    no_files, no_filter = "needs Landlock, Linux 5.13 or later", "needs Linux on x86-64 or aarch64 with seccomp"
    yield Wall("reading", "reads no files of yours", files, no_files)
    yield Wall(
        "writing",
        "writes nowhere but in a folder of its own",
        files if version >= TRUNCATION else "",
        "needs Linux 6.2: files can be emptied, not read or written" if version else no_files,
    )
    yield Wall(
        "environment",
        "sees a short list of environment variables",
        "the others are erased" if forks and (version or apart) else "",
        "that of other processes can be read; needs Landlock or namespaces of users" if forks else "needs fork()",
    )
    yield Wall("network", "opens no sockets", filtered, no_filter)
    yield Wall("memory", "neither traces processes nor reads their memory", filtered or files, no_filter)
    signals = (
        "namespaces" if apart else files if version >= landlock.SIGNALS_STAY_INSIDE else "seccomp" if filters else ""
    )
    yield Wall("signals", "signals no processes but its own", signals, no_filter)
    yield Wall(
        "processes",
        "does not even see other processes",
        "namespaces" if hidden else "",
        "needs namespaces of users with /proc; their names and commands can be read",
    )
    yield Wall("kernel", "makes no mounts, namespaces, keys or traces, gains no rights", filtered, no_filter)
    ends = "namespaces" if apart else "it is adopted" if sys.platform.startswith("linux") else ""
    yield Wall("leftovers", "leaves no process behind", ends, "needs Linux")
    limited = "looked at again and again" if forks else ""
    yield Wall("limits", "stays within its limits of time, memory and processes", limited, "needs fork()")


def say_what_is_missing(limits: Limits) -> None:
    """Say once in a process that an essential part of the cage is not there; cheap."""
    if not limits.caged or _Said.once:
        return
    _Said.once = True
    gaps = []
    if not landlock.version():
        gaps.append("files (no Landlock)")
    if not seccomp.is_there():
        gaps.append("network and other processes (no seccomp)")
    if gaps:
        logger.warning(
            "fmilin: the code of FMUs runs in a process of its own, but this system cannot keep it from %s. "
            "fl.sandbox_report() says what holds; load only FMUs that you trust.",
            " and from ".join(gaps),
        )


class _Said:
    once = False
