"""One binary for both kinds of Apple's machines: FMI 2.0 has a single folder for them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["universal"]

_MAGIC = 0xCAFEBABE
_ALIGNMENT = 14  # 2^14: the pages of Apple's own processors


def universal(binaries: Sequence[bytes]) -> bytes:
    """Return a Mach-O "fat" file with 64-bit Mach-O files in it (Apple's ``mach-o/fat.h``)."""
    header = struct.pack(">II", _MAGIC, len(binaries))
    position = _aligned(len(header) + 20 * len(binaries))
    content = b""
    for binary in binaries:
        kind, variant = struct.unpack_from("<II", binary, 4)  # cputype, cpusubtype
        header += struct.pack(">IIIII", kind, variant, position + len(content), len(binary), _ALIGNMENT)
        content += binary.ljust(_aligned(len(binary)), b"\0")
    return header.ljust(position, b"\0") + content


def _aligned(size: int) -> int:
    page = 1 << _ALIGNMENT
    return -(-size // page) * page
