"""Archives of arrays that are damaged, or made to do harm."""

from __future__ import annotations

import io
import struct
import zipfile

__all__ = ["HARMFUL", "flagged", "zipped"]


def npy(shape: tuple[int, ...], data: bytes = b"", header: bytes | None = None) -> bytes:
    """A .npy file with any header."""
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode() if header is None else header
    text = text.ljust(64 * (1 + (len(text) + 10) // 64) - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def deflated_and_damaged() -> bytes:
    content = bytearray(zipped({"A.npy": npy((4,), bytes(range(32)))}, zipfile.ZIP_DEFLATED))
    for i in range(40, 60):
        content[i] ^= 0xFF
    return bytes(content)


def flagged(content: bytes, offset: int, value: int) -> bytes:
    """Write a number into the local header and the central directory of the first member."""
    changed = bytearray(content)
    for start, shift in ((content.index(b"PK\x03\x04"), 0), (content.rindex(b"PK\x01\x02"), 2)):
        struct.pack_into("<H", changed, start + offset + shift, value)
    return bytes(changed)


SMALL = zipped({"A.npy": npy((1,), bytes(8))})
HARMFUL = {
    "7 TiB in the header": zipped({"A.npy": npy((10**6, 10**6))}),
    "negative sizes": zipped({"A.npy": npy((-1, 8), bytes(8))}),
    "a header that is no Python": zipped({"A.npy": npy((), header=b"{'descr': '<f8', (((")}),
    "a header that nests": zipped({"A.npy": npy((), header=b"(" * 9000)}),
    "objects": zipped({"A.npy": npy((), header=b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")}),
    "a damaged stream": deflated_and_damaged(),
    "an unknown method": flagged(SMALL, 8, 77),
    "encrypted": flagged(SMALL, 6, 1),
    "cut off": SMALL[:60],
}
