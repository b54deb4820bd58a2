"""FMUs with binaries for 32 bits only, on Linux for 64 bits: a host for 32 bits loads them, in the same sandbox."""

from __future__ import annotations

from pathlib import Path

from fmilin.errors import ModelError
from fmilin.fmi.platforms import Machine

LINUX32 = Machine("x86", "linux")

PACKAGE = "libc6-i386"
"""Of Debian and Ubuntu."""

_LOADER = Path("/lib/ld-linux.so.2")
"""Where the binary interface of i386 has the program that loads libraries."""


def can_run_32_bits() -> bool:
    """Whether the system has a C library for 32 bits."""
    return _LOADER.exists()


def missing_libraries(source: str) -> ModelError:
    """Return the error for a system without a C library for 32 bits."""
    return ModelError(
        f"'{source}' has binaries for 32 bits only ({LINUX32.fmi2_folder}), and this system has no C library for "
        f"those. Install it (Debian, Ubuntu: apt install {PACKAGE}), or request an export for 64 bits."
    )


def describe_32_bits() -> str:
    """Return the note about an FMU that a host for 32 bits loads."""
    return f"The FMU has binaries for 32 bits only: the one for {LINUX32.fmi2_folder} runs in a host for 32 bits."
