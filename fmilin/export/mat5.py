"""MAT-files of version 5 (MATLAB 5 to 7; MathWorks, MAT-File Format R2024a, chapter 1), texts in any alphabet included.

SciPy's writer stores texts as UTF-8, of which Octave loses the end when they are not ASCII. MATLAB, Octave and SciPy
all read UTF-16; but SciPy rejects files that have characters beyond 16 bits in it, and takes those in UTF-8. A text is
a str, a cell array a list, a struct a dict, a matrix an array of doubles, a sparse matrix :class:`SparseEntries`.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fmilin.export.sparse_entries import SparseEntries
from fmilin.version import __version__

Value = Any  # A str, float, list, dict, or array of doubles or complex numbers with two dimensions
(
    _INT8_TYPE,
    _INT32_TYPE,
    _UINT32_TYPE,
    _DOUBLE_TYPE,
    _MATRIX_TYPE,
    _COMPRESSED_TYPE,
    _UTF8_TYPE,
    _UTF16_TYPE,
    _UTF32_TYPE,
) = 1, 5, 6, 9, 14, 15, 16, 17, 18
_NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8", 16: "u1", 17: "u2",
}  # fmt: skip
_CELL_CLASS, _STRUCT_CLASS, _CHAR_CLASS, _SPARSE_CLASS, _DOUBLES_CLASS, _LAST_CLASS = 1, 2, 4, 5, 6, 15
_COMPLEX_FLAG = 0x0800
_FIELD_NAME_BYTES = 32  # bytes of a field's name, the closing zero included
_MAX_VARIABLE_BYTES = 1 << 31  # bytes that a compressed variable may have


def write(variables: Mapping[str, Value]) -> bytes:
    """Return the content of a MAT-file; names of variables and fields have at most 31 ASCII characters."""
    text = f"MATLAB 5.0 MAT-file, written by fmilin {__version__}".encode("ascii").ljust(124)
    return b"".join([text, struct.pack("<H2s", 0x0100, b"IM"), *(_matrix(v, name) for name, v in variables.items())])


def as_read(value: Value) -> Value:
    """Return a value as :func:`read` returns it from what :func:`write` makes of it."""
    match value:
        case str():
            return value
        case SparseEntries():
            return value.by_columns()
        case dict():
            return {name: as_read(item) for name, item in value.items()}
        case list():
            return [as_read(item) for item in value]
        case _:
            return np.atleast_2d(np.asarray(value))


def header_text(content: bytes) -> str:
    """Return the text in front of a MAT-file, in which the program that has written it gives its name."""
    return content[:116].decode("ascii", "replace")


def _element(kind: int, data: bytes) -> bytes:
    if 0 < len(data) <= 4:
        return struct.pack("<HH", kind, len(data)) + data.ljust(4, b"\0")
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def _matrix(value: Value, name: str = "") -> bytes:
    match value:
        case str():
            body = _text(value, name)
        case SparseEntries():
            body = _sparse(value.by_columns(), name)
        case dict():
            names = b"".join(key.encode("ascii").ljust(_FIELD_NAME_BYTES, b"\0") for key in value)
            keys = _element(_INT32_TYPE, struct.pack("<i", _FIELD_NAME_BYTES)) + _element(_INT8_TYPE, names)
            body = _head(_STRUCT_CLASS, (1, 1), name) + keys + b"".join(map(_matrix, value.values()))
        case list():
            body = _head(_CELL_CLASS, (len(value), 1), name) + b"".join(map(_matrix, value))
        case _:
            body = _doubles(np.atleast_2d(np.asarray(value)), name)
    return struct.pack("<II", _MATRIX_TYPE, len(body)) + body


def _head(kind: int, shape: tuple[int, ...], name: str, entries: int = 0) -> bytes:
    flags = _element(_UINT32_TYPE, struct.pack("<II", kind, entries))
    return (
        flags
        + _element(_INT32_TYPE, struct.pack(f"<{len(shape)}i", *shape))
        + _element(_INT8_TYPE, name.encode("ascii"))
    )


def _text(text: str, name: str) -> bytes:
    kind, code = (_UTF8_TYPE, "utf-8") if text.isascii() or max(text) > "\uffff" else (_UTF16_TYPE, "utf-16-le")
    return _head(_CHAR_CLASS, (int(bool(text)), len(text)), name) + _element(kind, text.encode(code, "surrogatepass"))


def _doubles(array: np.ndarray, name: str) -> bytes:
    is_complex = np.iscomplexobj(array)
    head = _head(_DOUBLES_CLASS | (_COMPLEX_FLAG if is_complex else 0), array.shape, name)
    parts = [array.real, array.imag] if is_complex else [array]
    return head + b"".join(_element(_DOUBLE_TYPE, p.astype("<f8").tobytes(order="F")) for p in parts)


def _sparse(entries: SparseEntries, name: str) -> bytes:
    """Return a sparse matrix: rows of the entries, column by column, and where each column begins among them."""
    rows, columns, values = entries.parts
    starts = np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=entries.shape[1]))))
    head = _head(_SPARSE_CLASS, entries.shape, name, max(1, len(values)))
    integers = (_element(_INT32_TYPE, part.astype("<i4").tobytes()) for part in (rows, starts))
    return head + b"".join(integers) + _element(_DOUBLE_TYPE, values.astype("<f8").tobytes())


def read(content: bytes) -> dict[str, Value]:
    """Return the variables of a MAT-file; what is not text, a cell array, struct or matrix is left out."""
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise ValueError("it does not begin like one")
    try:
        return dict(_variables(content[128:], order))
    except (struct.error, zlib.error, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"it is cut off or damaged ({error})") from None


def _variables(data: bytes, order: str) -> Iterator[tuple[str, Value]]:
    for kind, payload in _elements(data, order):
        if kind == _COMPRESSED_TYPE:
            inflater = zlib.decompressobj()
            inflated = inflater.decompress(payload, _MAX_VARIABLE_BYTES)
            if not inflater.eof:
                raise ValueError("a compressed variable is cut off")
            yield from _variables(inflated, order)
        elif kind == _MATRIX_TYPE:
            name, value = _value(payload, order)
            if value is not None:
                yield name, value


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of the elements that follow each other in ``data``."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if kind >> 16:  # a small element: both numbers share the first word
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start, end = at + 8, at + 8 + size + (0 if kind == _COMPRESSED_TYPE else -size % 8)
        if start + size > len(data):
            raise ValueError("it is cut off")
        yield kind, data[start : start + size]
        at = end


def _value(data: bytes, order: str) -> tuple[str, Value]:
    parts = list(_elements(data, order))
    if not parts:
        return "", np.zeros((0, 0))  # how MATLAB may write an empty cell
    if len(parts) < 3:
        raise ValueError("a variable has no content")
    flags = struct.unpack_from(f"{order}I", parts[0][1])[0]
    shape = tuple(struct.unpack(f"{order}{len(parts[1][1]) // 4}i", parts[1][1]))
    name, rest, kind = parts[2][1].decode("ascii", "replace"), parts[3:], flags & 0xFF
    if kind == _CHAR_CLASS:
        return name, "".join(_decode_text(*part, order) for part in rest[:1])
    if kind == _CELL_CLASS:
        return name, [_value(payload, order)[1] for _, payload in rest]
    if kind == _STRUCT_CLASS:
        return name, _struct(rest, order)
    if kind == _SPARSE_CLASS:
        return name, None if flags & _COMPLEX_FLAG else _sparse_entries(rest, shape, order)
    if not _DOUBLES_CLASS <= kind <= _LAST_CLASS:
        return name, None
    numbers = [np.frombuffer(payload, f"{order}{_NUMBERS[k]}").astype(np.float64) for k, payload in rest]
    if not flags & _COMPLEX_FLAG:
        return name, (numbers[0] if numbers else np.zeros(0)).reshape(shape, order="F")
    both = np.empty(len(numbers[0]), dtype=np.complex128)
    both.real, both.imag = numbers[:2]
    return name, both.reshape(shape, order="F")


def _sparse_entries(parts: list[tuple[int, bytes]], shape: tuple[int, ...], order: str) -> SparseEntries:
    numbers = [np.frombuffer(payload, f"{order}{_NUMBERS[k]}") for k, payload in parts]
    if len(shape) != 2 or len(numbers) < 2 or len(numbers[1]) != shape[1] + 1:
        raise ValueError("a sparse matrix does not have the columns of its shape")
    counts: np.ndarray = np.diff(numbers[1].astype(np.int64))
    if (counts < 0).any():
        raise ValueError("a sparse matrix has columns that end before they begin")
    count = int(counts.sum())
    values = numbers[2] if len(numbers) > 2 else np.zeros(0)
    columns = np.repeat(np.arange(shape[1]), counts)
    return SparseEntries.of_parts(shape, numbers[0][:count], columns, values[:count].astype(np.float64)).by_columns()


def _struct(parts: list[tuple[int, bytes]], order: str) -> dict[str, Value]:
    width = struct.unpack_from(f"{order}i", parts[0][1])[0]
    packed = parts[1][1]
    if width <= 0:
        raise ValueError("a struct has fields without names")
    names = [packed[i : i + width].split(b"\0")[0].decode("ascii", "replace") for i in range(0, len(packed), width)]
    if len(parts) - 2 != len(names):
        raise ValueError("a struct is an array, not a single one")
    return {name: _value(payload, order)[1] for name, (_, payload) in zip(names, parts[2:], strict=True)}


def _decode_text(kind: int, data: bytes, order: str) -> str:
    if kind in (_UTF16_TYPE, 4):
        return data.decode("utf-16-le" if order == "<" else "utf-16-be", "surrogatepass")
    if kind == _UTF32_TYPE:
        return data.decode("utf-32-le" if order == "<" else "utf-32-be", "surrogatepass")
    return data.decode(
        "utf-8" if kind == _UTF8_TYPE else "latin-1", "surrogatepass" if kind == _UTF8_TYPE else "strict"
    )
