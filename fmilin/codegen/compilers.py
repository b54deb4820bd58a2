"""C compilers by name: those of a system, and the targets of the package ziglang.

The build hook ``hatch_build.py`` reads this file, too, before fmilin's dependencies are installed, so it imports the
standard library alone.
"""

SYSTEM_COMPILERS = ("cc", "gcc", "clang")
"""Where the environment variable CC names none."""

_ZIG_SYSTEMS = {"linux": "linux-gnu.2.17", "windows": "windows-gnu", "darwin": "macos.11.0"}
"""With the oldest C library and macOS on which the binaries shall run."""


def zig_target(architecture: str, system: str) -> str:
    """Return what ``zig cc -target`` is to be given for an architecture (``x86_64``) and a system (``linux``)."""
    return f"{architecture}-{_ZIG_SYSTEMS[system]}"
