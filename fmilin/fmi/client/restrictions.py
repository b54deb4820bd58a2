"""Limits on the code of an FMU: options and environment of the process in which it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import InitVar
from pathlib import Path

from fmilin.errors import UsageError
from fmilin.support.dataclass import dataclass
from fmilin.support.deprecation import warn_of_old_name
from fmilin.support.kinds import require_field_kinds

DEFAULT_SECONDS = 120.0
FREE_MEMORY_SHARE = 0.9
"""Of the memory that is free: the machine stays usable."""

LARGEST_FILE = 1 << 28
"""Bytes of each file that an FMU writes, all of which are temporary."""

MAX_PROCESSES = 100
"""That an FMU may have started at a time, where it may start any."""

MAX_THREADS_WITH_PROCESSES = 200
"""Threads of all of them. Linux counts threads and processes together: a fork bomb takes those of the threads, too."""

MAX_COPIES = 3
"""Of the process of an FMU at a time, itself included, where copies take the place of saved states."""

VISIBLE_VARIABLES = (
    *("PATH", "HOME", "TZ", "LANG", "LANGUAGE", "TERM", "COLUMNS", "NO_COLOR", "LD_LIBRARY_PATH"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "MPLBACKEND", "SYSTEMROOT"),
)
"""Variables of the environment that an FMU sees; besides these LC_... and ..._NUM_THREADS."""


UNRESTRICTED = "--no-restrictions"
"""The option without which all protections are applied."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the resources of an FMU's code, and its access beyond its own folder and the system's libraries.

    Examples
    --------
    >>> import fmilin as fl
    >>> fl.Limits(read=["weather.csv"], network=True).processes
    0
    """

    #: for each call of a function of the FMU, loading it included, in seconds; None for no limit
    seconds: float | None = DEFAULT_SECONDS
    #: size in bytes of the address space of each process, besides what it shares with fmilin; None for nine tenths of
    #: what is free when the process starts
    memory: float | None = None
    processes: int = 0  #: that it may have started at a time; threads are always allowed
    read: Sequence[str | os.PathLike[str]] = ()  #: files and folders that it may read, as weather data, licence files
    network: bool = False  #: whether it may use the network, and sockets of this machine
    environment: Sequence[str] = ()  #: variables of the environment that it may see
    unrestricted: bool = False  #: whether it may reach all that the user may; time and memory are limited nevertheless
    caged: InitVar[bool | None] = None  #: the former name of ``not unrestricted``

    def __post_init__(self, caged: bool | None) -> None:
        if caged is not None:
            warn_of_old_name(f"caged={caged}", f"unrestricted={not caged}")
            object.__setattr__(self, "unrestricted", not caged)
        if isinstance(self.read, str | os.PathLike) or isinstance(self.environment, str):
            raise UsageError("'read' and 'environment' must be sequences: write ['...'] even for a single one.")
        require_field_kinds(self)
        if self.seconds is not None and not self.seconds > 0:
            raise UsageError(f"A limit of {self.seconds:g} seconds for a call must be positive, or None for no limit.")
        if self.memory is not None and not self.memory > 0:
            raise UsageError(f"A limit of {self.memory:g} bytes of memory must be positive, or None for no limit.")
        if self.processes < 0:
            raise UsageError(f"A limit of {self.processes} processes must not be negative.")

    def to_options(self, *, copied: bool = False) -> list[str]:
        """Return options of ``host/sandbox.h``; the memory that is free now counts.

        ``copied``: whether copies of the process may be made, which have the memory together.
        """
        from fmilin.fmi.client.arena import DEFAULT_SIZE

        memory = _free_memory() if self.memory is None else self.memory
        # The limit is one of addresses, of which those of the arena are taken from the beginning.
        options = ["--memory", str(int(memory) + DEFAULT_SIZE), "--processes", str(self.processes)]
        if self.processes:
            options += ["--threads", str(MAX_THREADS_WITH_PROCESSES)]
        options += ["--file-size", str(LARGEST_FILE)]
        if copied:
            options += ["--copies", str(int(memory) // MAX_COPIES + DEFAULT_SIZE)]
        readable = [os.path.abspath(path) for path in self.read]  # noqa: PTH100 - links are followed by the host
        for path in dict.fromkeys([*readable, *_python_folders(), *_library_folders()]):
            options += ["--read", path]
        if self.network:
            options.append("--network")
        if self.unrestricted:
            options.append(UNRESTRICTED)
        return options

    def to_environment(self) -> dict[str, str]:
        """Return the environment of the process: the variables that the FMU may see."""
        if self.unrestricted:
            return dict(os.environ)
        visible = {*VISIBLE_VARIABLES, *self.environment}
        return {
            name: value
            for name, value in os.environ.items()
            if name in visible or name.startswith("LC_") or name.endswith("_NUM_THREADS")
        }


_current: ContextVar[Limits | None] = ContextVar("fmilin_restrictions", default=None)


def current_restrictions() -> Limits:
    """Return what holds for FMUs that are loaded now, in this thread; a model keeps what it was loaded with."""
    return _current.get() or Limits()


@contextmanager
def apply_limits(restrictions: Limits | None) -> Iterator[None]:
    """Load FMUs under other restrictions inside the block; None changes nothing."""
    if restrictions is None:
        yield
        return
    token = _current.set(restrictions)
    try:
        yield
    finally:
        _current.reset(token)


def _free_memory() -> float:
    with suppress(OSError, ValueError):  # psutil reads the same file, and takes as long to import as the host to start
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            name, _, amount = line.partition(":")
            if name == "MemAvailable":
                return FREE_MEMORY_SHARE * 1024.0 * int(amount.removesuffix("kB"))
    import psutil

    return FREE_MEMORY_SHARE * float(psutil.virtual_memory().available)


def python_variables() -> dict[str, str]:
    """Return the variables by which a Python in an FMU finds its standard library, packages, and fmilin itself."""
    home = sys.base_prefix if sys.base_exec_prefix == sys.base_prefix else f"{sys.base_prefix}:{sys.base_exec_prefix}"
    return {"PYTHONHOME": home, "PYTHONPATH": os.pathsep.join(_module_folders())}


def _module_folders() -> list[str]:
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys([*packages, str(Path(__file__).parents[3])]))


def _python_folders() -> Iterator[str]:
    """Yield where Python and its packages lie, for FMUs that contain Python; not folders named to find modules in.

    Python lists a folder to find a package in it: of fmilin's sources, installed to be edited, the whole checkout is
    among them.
    """
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(os.__file__).parent), *_module_folders()}
    home = _home()
    yield from sorted(folder for folder in folders if folder != "/" and not home.is_relative_to(folder))


def _library_folders() -> Iterator[str]:
    """Yield the folders of LD_LIBRARY_PATH, unless the user's files lie in them."""
    home = _home()
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if os.path.isabs(folder) and folder != "/" and not home.is_relative_to(folder):  # noqa: PTH117
            yield folder


def _home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails where there is none
