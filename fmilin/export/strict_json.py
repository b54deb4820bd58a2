"""Records, and other plain data, as strict JSON.

JSON is ASCII; numbers have the shortest text that reads back as the same double, and NaN and infinity are ``null``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.export.checksum import NAME, assess_checksum, compute_checksum, digest_items, digest_json, join_checksum
from fmilin.export.record import Record, Stored
from fmilin.export.sparse_entries import DenseRows
from fmilin.signals import FloatArray

BEGINNING = b'{\n"'  # of a document: other writers of JSON put spaces before the first name, or no line break
MOSTLY_ZERO = 0.2  # part of the entries of a matrix that are not zero, up to which its zeros are not formatted singly


def encode(record: Record) -> Iterator[str]:
    """Yield the document; with points one after the other, so that a family need not be in memory twice."""
    if record.points is None:
        arrays = {name: array.values for name, array in record.arrays.items()}
        yield text_with_checksum({**arrays, **record.facts, **record.build_additions(".json")})
        return
    shared = {name: value for name, value in record.facts.items() if name not in record.per_point}
    texts = {name: _value_text(value) for name, value in shared.items()}
    digests = {name: digest_json(text) for name, text in texts.items()}
    yield "{\n" + "".join(f"{json.dumps(name)}: {text},\n" for name, text in texts.items())
    yield '"points": [\n'
    by_point = _flatten_grids(record)
    separator = ""
    points = []
    for number, point in enumerate(record.points):
        numbers = {name: values[number] for name, values in by_point.items()} if point["ok"] else {}
        text = json.dumps(plain({**point, **numbers}), allow_nan=False)
        points.append(digest_json(text))
        yield separator + text
        separator = ",\n"
    checksum = join_checksum({**digests, "points": digest_items(points)})
    yield f'\n],\n"{NAME}": "{checksum}"\n}}\n'


def _flatten_grids(record: Record) -> dict[str, NDArray[Any]]:
    """Return the arrays that run over points, each with one axis for all points."""
    flat = {}
    for name, array in record.arrays.items():
        if array.pages and name not in record.per_point:
            grid, tail = array.values.shape[: array.pages], array.values.shape[array.pages :]
            flat[name] = array.values.reshape(math.prod(grid), *tail)
    return flat


def decode(content: bytes) -> Stored:
    """Return what :func:`encode` wrote."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not a JSON document, {error}") from None
    if not isinstance(document, dict):
        raise TypeError("the document is not an object")
    stated = document.pop(NAME, None)
    checksum = compute_checksum(document)
    integrity = assess_checksum(stated, checksum, is_rewritten=not content.startswith(BEGINNING))
    return Stored(document, document, integrity)


def text_with_checksum(document: Mapping[str, Any]) -> str:
    """Return a document as :func:`format_document` does, with the checksum of its content as the last field."""
    texts = {name: _value_text(value) for name, value in document.items()}
    checksum = join_checksum({name: digest_json(text) for name, text in texts.items()})
    return _join_fields({**texts, NAME: json.dumps(checksum)})


def format_document(document: Mapping[str, Any]) -> str:
    """Return a document as strict JSON in ASCII, one line per field."""
    return _join_fields({name: _value_text(value) for name, value in document.items()})


def _join_fields(texts: Mapping[str, str]) -> str:
    fields = ",\n".join(f"{json.dumps(name)}: {text}" for name, text in texts.items())
    return f"{{\n{fields}\n}}\n"


def _value_text(value: Any) -> str:
    """Return the JSON of one value, what ``json.dumps`` writes of :func:`plain`.

    The descriptor system of a Modelica model has millions of entries, nearly all of them zero: these are written
    without being converted one by one.
    """
    if isinstance(value, DenseRows):
        return value.to_json()
    if isinstance(value, dict) and any(isinstance(item, np.ndarray) for item in value.values()):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {_value_text(item)}" for k, item in value.items()) + "}"
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype == np.float64 and np.isfinite(value).all():
        is_written = (value != 0.0) | np.signbit(value)
        if np.count_nonzero(is_written) <= MOSTLY_ZERO * value.size:
            return "[" + ", ".join(map(_row_text, value, is_written)) + "]"
    return json.dumps(plain(value), allow_nan=False)


def _row_text(row: FloatArray, is_written: NDArray[np.bool_]) -> str:
    texts = ["0.0"] * len(row)
    for j in np.flatnonzero(is_written).tolist():
        texts[j] = repr(float(row[j]))
    return "[" + ", ".join(texts) + "]"


def plain(value: Any) -> Any:
    """Return arrays as lists, complex numbers as [re, im], what is not finite as None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        if np.iscomplexobj(value):
            return plain(np.stack((value.real, value.imag), axis=-1))
        return value.tolist() if np.isfinite(value).all() else plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
