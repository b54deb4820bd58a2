"""Arrays out of files that may be damaged, or made to do harm: what a file holds must be what a model can have."""

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from fmilin.errors import ModelError
from fmilin.signals import FloatArray

MAX_UNPACKED_BYTES = 1 << 31  # bytes that an archive may take when it is unpacked

DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""The exceptions of zipfile and NumPy for files that are not archives, or have arbitrary headers."""


@contextmanager
def describe_read_errors(origin: str, what: str) -> Iterator[None]:
    """Say of which file it is that something in it is wrong, and ``what`` it should have been."""
    try:
        yield
    except KeyError as missing:
        raise ModelError(f"'{origin}' is not a {what}: it has no {missing}. Save it again from its source.") from None
    except (*DAMAGED, AttributeError, IndexError) as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise ModelError(f"'{origin}' is not a {what}: {why}. Save it again from its source.") from None


_ENCRYPTED_FLAG = 0x1
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def write_archive(arrays: Mapping[str, Any], comment: bytes) -> bytes:
    """Return the content of a .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = comment
    return buffer.getvalue()


def read_comment(content: bytes) -> bytes:
    """Return the comment of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.comment


def read_arrays(content: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a .npz file under their names; what is not an array is left out."""
    largest = max(MAX_UNPACKED_BYTES, 2 * len(content))  # a large file that is hardly compressed does no harm
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > largest:
            raise ValueError(f"unpacked it would take more than {largest >> 30} GiB")
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): _array(read_member(archive, name, largest), name) for name in names}


def read_member(archive: zipfile.ZipFile, name: str, largest: int = MAX_UNPACKED_BYTES) -> bytes:
    """Return one member of at most ``largest`` bytes."""
    info = archive.getinfo(name)
    if info.flag_bits & _ENCRYPTED_FLAG:
        raise ValueError(f"its member '{name}' is encrypted")
    if info.file_size > largest:
        raise ValueError(f"its member '{name}' would take more than {largest >> 30} GiB")
    return archive.read(info)


def _array(data: bytes, name: str) -> np.ndarray[Any, Any]:
    """Return the array of a .npy file: the header is checked first, so that it cannot cause an allocation."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"'{name}' is of a version that is not read")
    shape, by_columns, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise ValueError(f"'{name}' holds Python objects, which are not read")
    start = stream.tell()
    expected_size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or expected_size != len(data) - start:
        raise ValueError(
            f"the header of '{name}' asks for {expected_size:,} bytes, and there are {len(data) - start:,}"
        )
    flat = np.frombuffer(data, dtype, offset=start) if expected_size else np.empty(math.prod(shape), dtype)
    return flat.reshape(shape, order="F" if by_columns else "C").copy()


def real_array(value: Any, what: str) -> FloatArray:
    """Return an array of doubles; None and NaN stay NaN."""
    array = np.asarray(value)
    if np.iscomplexobj(array):
        if array.imag.any():
            raise ValueError(f"{what} is complex, and a linear model is real: its imaginary part would be lost")
        array = array.real
    return np.array(array, dtype=np.float64)


def finite_array(value: Any, what: str) -> FloatArray:
    """Return an array of doubles, each of them a number."""
    array = real_array(value, what)
    if not np.isfinite(array).all():
        position = ", ".join(str(int(i) + 1) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} has NaN, infinite or missing entries, the first at ({position})")
    return array
