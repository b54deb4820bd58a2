"""The C compiler of the package ziglang, which makes binaries for other machines."""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["zig_command"]

_TARGETS = {"linux": "linux-gnu.2.17", "windows": "windows-gnu", "darwin": "macos.11.0"}
"""With the oldest C library and macOS on which the binaries shall run."""


def zig_command(architecture: str, system: str) -> tuple[str, ...] | None:
    """Return the command that compiles for a machine, or None where the package is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-{_TARGETS[system]}")
