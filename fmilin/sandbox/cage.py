"""The cage: what foreign code may reach, from the moment at which the first of it is loaded into this process.

Layers need no privilege and do not rely on each other: a short environment, Landlock for files, seccomp for the rest.
What this system does not offer is left out; what it offers and then refuses is an error.
"""

import ctypes
import logging
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fmilin.errors import ModelError
from fmilin.sandbox import kernel, landlock, seccomp
from fmilin.sandbox.guard import fork
from fmilin.sandbox.kernel import PR_CAP_AMBIENT, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, call, machine, prctl
from fmilin.sandbox.limits import Limits

KEPT = (
    *("PATH", "HOME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM", "COLUMNS", "NO_COLOR", "CC", "LD_LIBRARY_PATH"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR", "MPLBACKEND"),
)
"""Variables of the environment that foreign code sees; besides these LC_... and ..._NUM_THREADS."""

_OF_THE_SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store", "/proc", "/sys/devices/system"),
    *("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
)
_IN_ETC = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "locale.alias", "nsswitch.conf", "passwd"),
    *("group", "hosts", "host.conf", "resolv.conf", "gai.conf", "services", "protocols", "ssl/certs", "alternatives"),
    *("fonts", "os-release"),
)
_OF_PICTURES = (".cache/matplotlib", ".config/matplotlib", ".cache/fontconfig", ".local/share/fonts", ".fonts")
_CAPABILITIES = 64  # more than there are
_CAPSET = (126, 91)
_CAPABILITY_VERSION_3 = 0x20080522
logger = logging.getLogger("fmilin.sandbox")


class Cage:
    """What one process will be shut into."""

    def __init__(
        self, limits: Limits, scratch: Path, pipes: Sequence[Path] = (), readable: Iterable[Path] = ()
    ) -> None:
        self.readable: list[str | os.PathLike[str]] = [*limits.read, *readable]
        self.inherited: list[int] = []  # descriptors of the maker, which foreign code must not have
        self.closed = False
        self._limits, self._scratch, self._pipes = limits, scratch, pipes

    def close(self) -> None:
        """Shut this process in."""
        self.closed = True
        _forget_environment(self._limits.environment)
        for descriptor in self.inherited:
            with suppress(OSError):
                os.fstat(descriptor)
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
        if not sys.platform.startswith("linux"):
            return
        tasks = Path("/proc/self/task")
        if len(list(tasks.iterdir())) > 1:  # those of linear algebra end when a process splits
            copy = fork()
            if not copy:
                os._exit(0)
            os.waitpid(copy, 0)
        if (threads := len(list(tasks.iterdir())) - 1) > 0:
            logger.warning(
                "%d threads ran before the model's code was loaded: the limits on files do not hold for them.", threads
            )
        try:
            self._restrict()
        except OSError as error:
            raise ModelError(
                f"The model's code was not loaded: the process cannot be shut off from the rest of the system "
                f"({error.strerror or error}). With fl.Limits(caged=False) it runs with all rights that you have."
            ) from None

    def _restrict(self) -> None:
        network = self._limits.network
        version = landlock.version()
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if version:
            landlock.restrict(
                [*_OF_THE_SYSTEM, *(f"/etc/{name}" for name in _IN_ETC), *_of_python(), *_of_user(), *self.readable],
                [self._scratch],
                ["/dev/null", *self._pipes],
                network=network,
            )
        _drop_capabilities()
        if seccomp.is_there():
            kept_inside = kernel.is_apart() or version >= landlock.SIGNALS_STAY_INSIDE
            seccomp.restrict(network=network, only_pid=None if kept_inside else os.getpid())


class _Process:
    """The one cage of this process, if any."""

    cage: Cage | None = None
    pauses: list[tuple[Callable[[], None], Callable[[], None]]] = []  # noqa: RUF012 - of this process


def prepare(cage: Cage | None) -> None:
    """Let this process be shut in as soon as foreign code is to be loaded."""
    _Process.cage = cage


def close() -> None:
    """Shut this process in now, unless it is or need not be: foreign code is loaded next."""
    cage = _Process.cage
    if cage is None or cage.closed:
        return
    for stop, _ in _Process.pauses:
        stop()
    cage.close()
    for _, start in _Process.pauses:
        start()


def may_read(*paths: Path) -> None:
    """Let foreign code read these, which this process itself still has to read; without effect in a closed cage."""
    if _Process.cage is not None:
        _Process.cage.readable += paths


def take_away(descriptors: Iterable[int]) -> None:
    """Let these descriptors, which belong to the maker, lead nowhere once the cage is closed."""
    if _Process.cage is not None:
        _Process.cage.inherited += descriptors


def advice() -> str:
    """Return a sentence about what may be missing inside a closed cage, with a space in front; else nothing."""
    if _Process.cage is None or not _Process.cage.closed:
        return ""
    return " " + ADVICE


ADVICE = (
    "It runs shut off from your files, environment and network: what it needs of these is allowed with "
    "fl.Limits(read=['PATH'], environment=['NAME'], network=True)."
)


@contextmanager
def pausing(stop: Callable[[], None], start: Callable[[], None]) -> Iterator[None]:
    """Have a thread of ours stopped while the cage is closed: it binds those alone that begin in it."""
    _Process.pauses.append((stop, start))
    try:
        yield
    finally:
        _Process.pauses.remove((stop, start))


def _forget_environment(allowed: Sequence[str]) -> None:
    """Keep a few variables, and leave no trace of others where they lay, in the kernel's page and in Python's."""
    kept = {*KEPT, *allowed}
    for name in list(os.environ):
        value = os.environ[name]
        if name in kept or name.startswith("LC_") or name.endswith("_NUM_THREADS"):
            os.environ[name] = value  # a copy on the heap: the C library's may lie in the kernel's page
            continue
        raw = os.environ._data.get(os.environ.encodekey(name))  # type: ignore[attr-defined]
        del os.environ[name]
        if isinstance(raw, bytes) and len(raw) > 1 and sys.implementation.name == "cpython":
            ctypes.memset(id(raw) + bytes.__basicsize__ - 1, 0, len(raw))
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        begin, end = int(fields[47]), int(fields[48])  # env_start and env_end, the 50th and 51st of all
        if 0 < begin < end:
            ctypes.memset(begin, 0, end - begin)


def _drop_capabilities() -> None:
    """Give up what an administrator may do, for good."""
    if machine() is None:
        return
    with suppress(OSError):  # it has no more of them, or may not drop them: then it cannot get any, either
        for capability in range(_CAPABILITIES):
            prctl(PR_CAPBSET_DROP, capability)
    with suppress(OSError):
        prctl(PR_CAP_AMBIENT, 4)  # clear all
    call(_CAPSET, struct.pack("<Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def _of_python() -> Iterator[str]:
    """Yield where Python and its packages lie; never folders that were named to find modules in."""
    homes = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(os.__file__).parent)}
    homes |= {p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")}
    homes.add(str(Path(__file__).parents[1]))  # our own, wherever it was put
    own = _home()
    for home in homes:
        if home != "/" and not own.is_relative_to(home):
            yield home


def _of_user() -> Iterator[str | Path]:
    """Yield what the user's tools need: fonts and settings of pictures, libraries that were named, the compiler."""
    home = _home()
    yield from (home / name for name in _OF_PICTURES)
    if folder := os.environ.get("MPLCONFIGDIR"):
        yield folder
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder and folder != "/" and not home.is_relative_to(folder):
            yield folder
    if compiler := shutil.which(os.environ.get("CC", "").split(" ")[0]):
        yield compiler


def _home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails where there is none
