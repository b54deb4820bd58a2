"""The machines that FMUs are for, and what both standards call them; the C library, and where FMPy keeps its files."""

import importlib.util
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from fmilin.errors import ModelError, UnknownNameError
from fmilin.support.dataclass import dataclass

_SYSTEMS = {"linux": ("linux", ".so"), "windows": ("win", ".dll"), "darwin": ("darwin", ".dylib")}
_BITS = {"x86_64": "64", "aarch64": "64", "x86": "32"}


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture under one operating system."""

    architecture: str
    system: str

    @property
    def fmi2_folder(self) -> str:
        """``linux64`` and the like (FMI 2.0, section 2.3), which has no names for ARM, where tools use the same."""
        return f"{_SYSTEMS[self.system][0]}{_BITS[self.architecture]}"

    @property
    def fmi3_folder(self) -> str:
        """``x86_64-linux`` and the like (FMI 3.0, section 2.5.1.4.1)."""
        return f"{self.architecture}-{self.system}"

    @property
    def suffix(self) -> str:
        """``.so``, ``.dll`` or ``.dylib``."""
        return _SYSTEMS[self.system][1]

    def folders(self, version: int) -> tuple[str, ...]:
        """Return where libraries for it lie in an FMU of a version of FMI, the first choice first.

        Under ``binaries/``; names that tools use where the standard has none are among them.
        """
        if version == 3:
            return (self.fmi3_folder,)
        folders = self.fmi2_folder, self.fmi3_folder
        return folders[::-1] if self.architecture == "aarch64" else folders


_NAMES = {
    "linux64": (Machine("x86_64", "linux"),),
    "linux32": (Machine("x86", "linux"),),
    "win64": (Machine("x86_64", "windows"),),
    "win32": (Machine("x86", "windows"),),
    "darwin64": (Machine("x86_64", "darwin"), Machine("aarch64", "darwin")),
    "aarch64-linux": (Machine("aarch64", "linux"),),
    "aarch64-darwin": (Machine("aarch64", "darwin"),),
    "x86_64-darwin": (Machine("x86_64", "darwin"),),
    "x86_64-linux": (Machine("x86_64", "linux"),),
    "x86_64-windows": (Machine("x86_64", "windows"),),
    "x86-linux": (Machine("x86", "linux"),),
    "x86-windows": (Machine("x86", "windows"),),
}


def host() -> Machine:
    """Return this machine."""
    name = platform.machine().lower()
    is_64 = sys.maxsize > 2**32
    architecture = "aarch64" if name in ("aarch64", "arm64") else ("x86_64" if is_64 else "x86")
    return Machine(architecture, {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux"))


def machines(names: Sequence[str]) -> tuple[Machine, ...]:
    """Return the machines that ``names`` mean, each once; this machine where there are no names."""
    distinct: dict[Machine, None] = {}
    for name in names:
        if name not in _NAMES:
            raise UnknownNameError.among(name, _NAMES, "a platform of FMUs")
        distinct |= dict.fromkeys(_NAMES[name])
    return tuple(distinct) or (host(),)


def fmi3_folders() -> tuple[str, ...]:
    """Return where the library for this machine lies in an FMU of FMI 3.0."""
    return host().folders(3)


def fmi2_folders() -> tuple[str, ...]:
    """Return where it lies in one of FMI 2.0, and the names that tools use where the standard has none."""
    return host().folders(2)


def find_library(folder: Path, identifier: str, machine: Machine, version: int) -> Path:
    """Return the library of an unpacked FMU: the one that is named as it should be, else the only one there is."""
    name = identifier + machine.suffix
    folders = [folder / "binaries" / b for b in machine.folders(version)]
    for inside in folders:
        if (inside / name).is_file():
            return inside / name
    return next(libraries[0] for f in folders if len(libraries := sorted(f.glob(f"*{machine.suffix}"))) == 1)


def fmpy_folder() -> Path:
    """Return where FMPy keeps what it ships: schemas, headers, a logger in C. It is not imported, which takes long."""
    package = importlib.util.find_spec("fmpy")
    if package is None or not package.submodule_search_locations:  # pragma: no cover - FMPy is a dependency
        raise ModelError("The package FMPy, which brings the headers of FMI, is not installed. Install it.")
    return Path(package.submodule_search_locations[0])
