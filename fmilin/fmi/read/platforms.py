"""The names of this platform's folder under ``binaries/``."""

from __future__ import annotations

import platform
import sys

__all__ = ["fmi2_folders", "fmi3_folders", "library_suffix"]

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
    bits = 64 if sys.maxsize > 2**32 else 32
    standard = (f"{_system()[0]}{bits}",)
    newer = fmi3_folders()
    return newer + standard if _architecture() == "aarch64" else standard + newer


def library_suffix() -> str:
    """Return ``.so``, ``.dll`` or ``.dylib``."""
    return _system()[2]


def _system() -> tuple[str, ...]:
    return _SYSTEMS.get(sys.platform, _SYSTEMS["linux"])


def _architecture() -> str:
    machine = platform.machine().lower()
    if machine in _ARM:
        return "aarch64"
    return "x86_64" if sys.maxsize > 2**32 else "x86"
