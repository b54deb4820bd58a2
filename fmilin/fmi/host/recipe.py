"""How the host program is compiled: by ``hatch_build.py`` for a wheel, by ``build.py`` on first use.

It imports the standard library alone, since the build hook reads this file before fmilin's dependencies are installed.
"""

from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden", "-D_FILE_OFFSET_BITS=64")
"""Sizes of files and limits have 64 bits on a machine of 32 bits, too."""
BUILD_NOTE = "fmilin-host.txt"
"""In a wheel, the file next to the program: by which compiler it was made."""


def program_name(system: str) -> str:
    """Return the name on ``linux``, ``windows`` or ``darwin``; that for 32 bits on ``linux32`` or ``windows32``."""
    names = {"windows": "fmilin-host.exe", "windows32": "fmilin-host-32.exe", "linux32": "fmilin-host-32"}
    return names.get(system, "fmilin-host")


def link_options(system: str) -> tuple[str, ...]:
    """Return the options for the linker: no symbols, which nothing needs, and libraries.

    Mathematical functions and threads are there for FMUs that use them without saying so, as in a Python process.
    """
    of_linux = ("-s", "-ldl", "-lpthread", "-lm")
    of_windows = ("-s",)
    options = {"linux": of_linux, "linux32": of_linux, "windows": of_windows, "windows32": of_windows, "darwin": ()}
    return options[system]


def source_files() -> list[Path]:
    """Return the C files and headers, by name."""
    return sorted(FOLDER.glob("*.[ch]"))


def compilation(compiler: Sequence[str], system: str, program: Path) -> list[str]:
    """Return the command that compiles the program."""
    units = [str(path) for path in source_files() if path.suffix == ".c"]
    return [*compiler, *FLAGS, "-o", str(program), *units, *link_options(system)]
