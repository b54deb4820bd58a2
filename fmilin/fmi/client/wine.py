"""Runs the host for Windows in wine, for FMUs with binaries for Windows only.

Wine runs in the sandbox of the host for this system: its root of its own, without the user's files and without network.
Its prefix is made anew for each process, and consists of links to the libraries of wine's installation: no services
and no desktop are started, which the code of an FMU has no use for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path, PureWindowsPath

from fmilin.errors import ModelError
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.restrictions import UNRESTRICTED
from fmilin.fmi.host.build import host_program
from fmilin.fmi.platforms import Machine
from fmilin.support.dataclass import dataclass

SANDBOX_MISSING_STATUS = 126
"""Exit status of ``host --run`` where a required protection is missing."""

WINDOWS = Machine("x86_64", "windows")
"""The machine that wine stands for."""

WINDOWS32 = Machine("x86", "windows")
"""Its libraries run without the sandbox only. Wine for 32 bits makes its sockets by ``socketcall``, with arguments
behind a pointer: a filter of system calls cannot tell local ones from those to a hypervisor (AF_VSOCK)."""

PACKAGES = {WINDOWS: "wine64", WINDOWS32: "wine32"}
"""Of Debian and Ubuntu."""

_LOADERS = {
    WINDOWS: ("wine64", "/usr/lib/wine/wine64", "wine"),
    WINDOWS32: ("/usr/lib/wine/wine", "wine"),
}
_LIBRARIES = {WINDOWS: "x86_64", WINDOWS32: "i386"}
_ARCHITECTURES = {WINDOWS: "win64", WINDOWS32: "win32"}
_PROGRAM_HEADERS = {WINDOWS: b"\x7fELF\x02", WINDOWS32: b"\x7fELF\x01"}
"""The first bytes of a program of Linux, of which the last counts the bits."""
_ADDRESS_SPACE_BYTES = 2 << 30
"""Of addresses that each process of wine reserves, not of memory: 1.5 GiB with wine 8."""

_MIN_PROCESSES = 8
"""That wine needs besides the host: the shell that makes the prefix, and wineserver."""

_SCRATCH = "/tmp"  # noqa: S108 - of the sandbox's own root, where wineserver has its socket
_PATH = "/usr/bin:/bin"
"""Where the programs are that make the prefix, whatever the user's path is."""

_DISABLED_PROGRAMS = ("wineboot.exe", "services.exe", "explorer.exe", "winemenubuilder.exe", "winedbg.exe")
_MAKE_PREFIX = """
set -e
WINEPREFIX=$(mktemp -d "$TMPDIR/wine-XXXXXX")
export WINEPREFIX
mkdir -p "$WINEPREFIX/dosdevices" "$WINEPREFIX/drive_c/windows" "$WINEPREFIX/drive_c/temp"
ln -s ../drive_c "$WINEPREFIX/dosdevices/c:"
ln -s / "$WINEPREFIX/dosdevices/z:"
ln -s "$1" "$WINEPREFIX/drive_c/windows/system32"
printf %s "$2" >"$WINEPREFIX/system.reg"
arena="file:Z:\\\\proc\\\\$$\\\\fd\\\\$3"
size=$4
shift 4
exec "$@" stdin stdout "$arena" "$size"
"""
_REGISTRY = r"""WINE REGISTRY Version 2
;; All keys relative to \\Machine

#arch={architecture}

[Software\\Microsoft\\Windows NT\\CurrentVersion]
"CurrentBuild"="19043"
"CurrentBuildNumber"="19043"
"CurrentMajorVersionNumber"=dword:0000000a
"CurrentMinorVersionNumber"=dword:00000000
"CurrentVersion"="6.3"
"ProductName"="Windows 10 Pro"
"""


@dataclass(frozen=True, slots=True)
class Wine:
    """An installation of wine."""

    loader: Path
    libraries: Path  #: the folder with the libraries of Windows
    machine: Machine = WINDOWS

    @property
    def readable(self) -> list[str]:
        """Folders outside of ``/usr`` that the installation lies in."""
        return [str(path) for path in (self.loader.parent, self.libraries.parent) if not path.is_relative_to("/usr")]

    def write_command(self, program: Path, arena: Arena, options: Sequence[str]) -> list[str]:
        """Return the command that runs a host for Windows with ``options``, those of the sandbox on this system.

        Requests come by its standard input, answers go to its standard output.
        """
        wine_options = ["--processes", str(max(_MIN_PROCESSES, _last_number(options, "--processes", 0)))]
        memory = _last_number(options, "--memory", 0)
        if memory:
            wine_options += ["--memory", str(memory + _ADDRESS_SPACE_BYTES)]
        if UNRESTRICTED not in options:
            wine_options += ["--scratch", _SCRATCH, "--local-sockets", "--require", "root", "--require", "network"]
        for path in (*self.readable, program):
            wine_options += ["--read", str(path)]
        descriptors = ["--keep-descriptor", "0", "--keep-descriptor", str(arena.descriptor)]
        script = [
            "/bin/sh",
            "-c",
            _MAKE_PREFIX,
            "fmilin",
            str(self.libraries),
            _REGISTRY.format(architecture=_ARCHITECTURES[self.machine]),
            str(arena.descriptor),
            str(arena.size),
        ]
        sandbox = [str(host_program()), "--run", *options, *wine_options, *descriptors]
        return [*sandbox, "--", *script, str(self.loader), to_windows_path(program)]

    def write_environment(self, environment: Mapping[str, str], options: Sequence[str]) -> dict[str, str]:
        """Return the variables of the host and of wine."""
        scratch = _SCRATCH if UNRESTRICTED not in options else _last_text(options, "--scratch")
        return {
            **environment,
            "PATH": ":".join(filter(None, (environment.get("PATH", ""), _PATH))),
            "HOME": scratch,
            "TMPDIR": scratch,
            "TEMP": r"C:\temp",
            "TMP": r"C:\temp",
            "WINEARCH": _ARCHITECTURES[self.machine],
            "WINEPATH": r"C:\windows\system32",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": f"{','.join(_DISABLED_PROGRAMS)}=d",
        }


@cache
def find_wine(machine: Machine = WINDOWS) -> Wine | None:
    """Return the wine that runs programs for a machine; None where none is installed."""
    for name in _LOADERS[machine]:
        loader = shutil.which(name)
        if loader is None:
            continue
        path = Path(loader).resolve()
        folder = _find_libraries(path, _LIBRARIES[machine])
        if folder is not None and _has_header(path, _PROGRAM_HEADERS[machine]):
            return Wine(path, folder, machine)
    return None


def require_wine(source: str, machine: Machine, *, is_restricted: bool) -> Wine:
    """Return the wine for the binaries of an FMU.

    Raises
    ------
    ModelError
        Where it is not installed, or the sandbox does not allow it.
    """
    wine = find_wine(machine)
    if wine is None:
        raise missing_wine(source, machine)
    if machine == WINDOWS32 and is_restricted:
        raise ModelError(
            f"'{source}' has binaries for Windows of 32 bits only ({machine.fmi2_folder}). Wine runs those outside of "
            "the sandbox alone, since the sandbox cannot tell which sockets they open. Request an export for 64 bits, "
            "or, if you trust the file, allow it everything: fl.Limits(unrestricted=True)."
        )
    return wine


def missing_wine(source: str, machine: Machine) -> ModelError:
    """Return the error for a system without wine."""
    architecture = "dpkg --add-architecture i386; " if machine == WINDOWS32 else ""
    return ModelError(
        f"'{source}' has binaries for Windows only ({machine.fmi2_folder}), which run here through wine, and wine "
        f"is not installed. Install it (Debian, Ubuntu: {architecture}apt install {PACKAGES[machine]}), or request an "
        "export for this platform."
    )


def describe_wine(machine: Machine) -> str:
    """Return the note about an FMU that runs through wine."""
    return f"The FMU has binaries for Windows only: the one for {machine.fmi2_folder} runs through wine."


def without_sandbox(source: str) -> ModelError:
    """Return the error for a system with a sandbox that has no root of its own: wine needs one."""
    return ModelError(
        f"'{source}' has binaries for Windows only. Through wine these could read all your files, since this system "
        "does not allow a root and a network of its own for them (user namespaces, /proc in them). Allow user "
        "namespaces, or, if you trust the file, allow it everything: fl.Limits(unrestricted=True)."
    )


def to_windows_path(path: Path) -> str:
    r"""Return the path of a file under wine: drive ``Z:`` is the root of this system.

    Examples
    --------
    >>> print(to_windows_path(Path("/tmp/a b.dll")))
    Z:\tmp\a b.dll
    """
    return str(PureWindowsPath(f"Z:{path}"))


def _find_libraries(loader: Path, architecture: str) -> Path | None:
    """Return the folder of the libraries of Windows, next to which are those that run them on Linux."""
    for root in loader.parents:
        for pattern in (f"lib/*/wine/{architecture}-windows", f"lib*/wine/{architecture}-windows"):
            for folder in sorted(root.glob(pattern)) if len(root.parts) > 1 else ():
                unix_library = folder.with_name(f"{architecture}-unix") / "ntdll.so"
                if (folder / "kernel32.dll").is_file() and unix_library.is_file():
                    return folder
    return None


def _has_header(path: Path, header: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(header)) == header


def _last_text(options: Sequence[str], name: str) -> str:
    return next((value for option, value in reversed(list(pairwise(options))) if option == name), os.sep)


def _last_number(options: Sequence[str], name: str, default: int) -> int:
    values = [int(value) for option, value in pairwise(options) if option == name]
    return values[-1] if values else default
