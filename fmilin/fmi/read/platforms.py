"""What differs between platforms: folders under ``binaries/``, the C library, and where FMPy keeps its files."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["c_library", "fmi2_folders", "fmi3_folders", "fmpy_folder", "library_in", "library_suffix", "logger_library"]

_SYSTEMS = {
    "linux": ("linux", "linux", ".so"),
    "win32": ("win", "windows", ".dll"),
    "darwin": ("darwin",) * 2 + (".dylib",),
}
_ARM = ("aarch64", "arm64")


def fmi3_folders() -> tuple[str, ...]:
    """Return the folders of FMI 3.0 (section 2.5.1.4.1): ``x86_64-linux``."""
    return (f"{_architecture()}-{_system()[1]}",)


def fmi2_folders() -> tuple[str, ...]:
    """Return the folders of FMI 2.0 (section 2.3): ``linux64``, and what tools use where it has no name."""
    standard = (_with_bits(),)
    newer = fmi3_folders()
    return newer + standard if _architecture() == "aarch64" else standard + newer


def library_suffix() -> str:
    """Return ``.so``, ``.dll`` or ``.dylib``."""
    return _system()[2]


def library_in(folder: Path, identifier: str, binaries: Sequence[str]) -> Path:
    """Return the library of an unpacked FMU: the one that is named as it should be, else the only one there is."""
    name = identifier + library_suffix()
    folders = [folder / "binaries" / b for b in binaries]
    for inside in folders:
        if (inside / name).is_file():
            return inside / name
    others = [found for inside in folders if len(found := sorted(inside.glob(f"*{library_suffix()}"))) == 1]
    return others[0][0]


def c_library() -> Any:
    """Return the C library of this process."""
    return ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)


def fmpy_folder() -> Path | None:
    """Return where FMPy keeps what it ships: schemas, headers, a logger in C. It is not imported, which takes long."""
    package = importlib.util.find_spec("fmpy")
    if package is None or not package.submodule_search_locations:  # pragma: no cover - FMPy is a dependency
        return None
    return Path(package.submodule_search_locations[0])


def logger_library() -> str:
    """Return which file in FMPy's folder of loggers is for this platform."""
    return f"{_with_bits()}/logging{library_suffix()}"


def _with_bits() -> str:
    return f"{_system()[0]}{64 if sys.maxsize > 2**32 else 32}"


def _system() -> tuple[str, ...]:
    return _SYSTEMS.get(sys.platform, _SYSTEMS["linux"])


def _architecture() -> str:
    machine = platform.machine().lower()
    if machine in _ARM:
        return "aarch64"
    return "x86_64" if sys.maxsize > 2**32 else "x86"
