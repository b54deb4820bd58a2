"""The checksum of files of results, and the verdict on a file with another content.

The checksum is SHA-256 over a canonical form of the content, which depends on neither the container nor its layout,
byte order or compression: numbers are doubles in rows, whatever their type (NaN is one value, complex numbers without
an imaginary part are real), texts are UTF-8, lists and arrays have their lengths, and mappings are sorted by name. The
containers differ in their names and axes, so that the checksums of one result in two formats differ.

A file without a checksum is read: versions up to 0.2 wrote none, and other programs drop it when they save a selection.
Where the checksum does not fit, the file is damaged, and rejected, unless another program has written it. A change of
content never counts as a sign of another program. Each container marks the writing program apart from the content:

========  ================================================================================================
.mat      The text in front names MATLAB, Octave or SciPy in the words that they use. Any other text is damage.
.npz      The comment of the archive, ``fmilin``, is missing altogether. A wrong one is damage.
.json     The document does not begin with ``{``, a line break and ``"``.
.nc       The checksum of the bytes at the end of the file, :func:`append_byte_checksum`, is missing, and the attribute
          ``_NCProperties`` is another library's, or floating-point variables have the attribute ``_FillValue``, which
          xarray adds and fmilin never writes.
========  ================================================================================================

A flipped bit changes either such a sign, and then the content still fits, or the content, and then the sign is that of
fmilin.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import ModelError

NAME = "checksum"
PREFIX = "sha256:"
BYTE_MARK = b"\nfmilin bytes "
BYTE_LINE_SIZE = len(BYTE_MARK) + len(PREFIX) + 2 * hashlib.sha256().digest_size + 1  # bytes
LARGEST_BLOCK = 2**20  # numbers or bytes that are converted or read at once
NUMBERS = frozenset({int, float, type(None)})  # types of list entries that are hashed as one array


class Integrity(Enum):
    """The result of comparing the checksum of a file with its content."""

    NOT_STATED = "there is no checksum"
    INTACT = "it fits"
    REWRITTEN = "it does not match, and another program has written the file"
    DAMAGED = "it does not fit"


def compute_checksum(content: Any) -> str:
    """Return the checksum of texts, numbers, None, arrays, and nested lists and mappings of them."""
    return PREFIX + digest_value(content).hex()


def join_checksum(digests: Mapping[str, bytes]) -> str:
    """Return the checksum of a mapping from the digests of its values, of which each may have been large."""
    return PREFIX + _digest_mapping(digests).hex()


def assess_checksum(stated: Any, computed: str, *, is_rewritten: bool) -> Integrity:
    """Return what a file is, of which ``stated`` is the checksum in it, None where it has none."""
    if stated is None:
        return Integrity.NOT_STATED
    if isinstance(stated, str) and stated == computed:
        return Integrity.INTACT
    return Integrity.REWRITTEN if is_rewritten else Integrity.DAMAGED


def require_intact(integrity: Integrity, origin: str) -> None:
    """Raise ModelError, which names the file, for a file that has changed since fmilin wrote it."""
    if integrity is Integrity.DAMAGED:
        raise ModelError(
            f"'{origin}' is damaged: its content does not match its checksum. Use an intact copy, or make the file "
            f"again. If you changed the content on purpose, remove '{NAME}' from the file."
        )


def list_remarks(integrity: Integrity) -> tuple[Remark, ...]:
    """Return the warning that a result from such a file carries."""
    if integrity is not Integrity.REWRITTEN:
        return ()
    text = (
        "Another program has saved the file from which this was read, and its content no longer matches the checksum: "
        "the numbers may differ from those that fmilin wrote."
    )
    return (Remark("rewritten", text),)


def append_byte_checksum(file: IO[bytes]) -> None:
    """Append the checksum of all bytes of a file to it, as one line."""
    size = file.seek(0, 2)
    file.write(_make_byte_line(file, size))


def assess_byte_checksum(file: IO[bytes]) -> Integrity:
    """Return whether the line at the end of a file fits the bytes in front of it."""
    size = file.seek(0, 2) - BYTE_LINE_SIZE
    if size < 0:
        return Integrity.NOT_STATED
    file.seek(size)
    line = file.read()
    if not line.startswith(BYTE_MARK):
        return Integrity.NOT_STATED
    return Integrity.INTACT if line == _make_byte_line(file, size) else Integrity.DAMAGED


def _make_byte_line(file: IO[bytes], size: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while block := file.read(min(size, LARGEST_BLOCK)):
        digest.update(block)
        size -= len(block)
    file.seek(0, 2)
    return BYTE_MARK + f"{PREFIX}{digest.hexdigest()}\n".encode("ascii")


class ArrayDigest:
    """The digest of an array of numbers that comes in blocks, in the order of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> blocks = ArrayDigest((4,))
    >>> blocks.update(np.array([1.0, 2.0]))
    >>> blocks.update(np.array([3, 4]))
    >>> blocks.finish() == digest_value([1.0, 2.0, 3.0, 4.0])
    True
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        if 0 in shape:
            shape = (0,)  # containers lose other lengths of arrays without entries
        self._hash = hashlib.sha256(b"numbers" + struct.pack(f"<{len(shape) + 1}q", len(shape), *shape))

    def update(self, block: NDArray[Any]) -> None:
        """Add the next entries."""
        flat = np.ravel(block)
        for begin in range(0, flat.size, LARGEST_BLOCK):
            values = flat[begin : begin + LARGEST_BLOCK].astype("<f8")  # a copy, for NaN has many forms
            values[np.isnan(values)] = np.nan
            self._hash.update(values.data)

    def finish(self) -> bytes:
        """Return the digest of all entries."""
        return self._hash.digest()


def digest_value(value: Any) -> bytes:
    """Return the digest of a text, a number, None, an array, or nested lists and mappings of them."""
    match value:
        case None | bool():
            return hashlib.sha256(f"constant {value}".encode("ascii")).digest()
        case str():
            return hashlib.sha256(b"text" + value.encode("utf-8", "surrogatepass")).digest()
        case Mapping():
            return _digest_mapping({str(name): digest_value(item) for name, item in value.items()})
        case list() if value and NUMBERS.issuperset(map(type, value)):
            return _digest_array(np.array(value, dtype=np.float64))
        case list():
            return digest_items(map(digest_value, value))
        case _:
            return _digest_array(np.asarray(value))


def digest_items(digests: Iterable[bytes]) -> bytes:
    """Return the digest of a list from those of its items, which are not all numbers."""
    hasher = hashlib.sha256(b"list")
    for digest in digests:
        hasher.update(digest)
    return hasher.digest()


def _digest_mapping(digests: Mapping[str, bytes]) -> bytes:
    digest = hashlib.sha256(b"mapping")
    for name in sorted(digests):
        digest.update(digest_value(name))
        digest.update(digests[name])
    return digest.digest()


def _digest_array(array: NDArray[Any]) -> bytes:
    if array.dtype.kind in "US":
        if not array.ndim:
            return digest_value(str(array))
        return digest_items([digest_value(list(array.shape)), *map(digest_value, array.astype(str).ravel().tolist())])
    if np.iscomplexobj(array) and array.imag.any():
        return digest_items([_digest_array(array.real), _digest_array(array.imag)])
    numbers = ArrayDigest(array.shape)
    numbers.update(array.real)
    return numbers.finish()


def digest_json(text: str) -> bytes:
    """Return the digest of a JSON text, as a reader of the text gets it."""
    return digest_value(json.loads(text))
