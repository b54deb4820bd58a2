"""The linear model as a MATLAB 5 .mat file, for MATLAB, Octave and SciPy.

Matrices are doubles under their own names (``f0`` and ``y0`` columns), the four name lists cell arrays
of char, and the rest sits in a struct ``fmilin``, so that::

    S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D)

A variable's name is seldom a legal field name: whatever is looked up by name is a struct with a cell
array ``names`` and a column or cell array ``values`` (``S.fmilin.units``, ``S.fmilin.point.states``).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError
from fmilin.export.document import GROUPS, MATRICES, from_document, to_document
from fmilin.linear_model import LinearModel
from fmilin.signals import FloatArray

__all__ = ["dumps", "loads"]

_POINT_PARTS = ("states", "inputs", "outputs", "parameters")
_DETAILS = ("unit", "nominal", "start", "description", "aliases")


def dumps(linear: LinearModel) -> bytes:
    """Return the file's content."""
    from scipy.io import savemat

    document = to_document(linear)
    top: dict[str, Any] = {name: document.pop(name) for name in MATRICES}
    top["f0"] = _column(document.pop("f0"))
    top |= {group: _cell(document.pop(group)) for group in GROUPS}
    point = document.pop("point")
    warnings = document.pop("warnings")
    rest: dict[str, Any] = {
        "y0": _column(document.pop("y0")),
        "eigenvalues": document.pop("eigenvalues").reshape(-1, 1),
        "units": _texts_by_name(document.pop("units")),
        "point": {"time": point["time"]} | {part: _numbers_by_name(point[part]) for part in _POINT_PARTS},
        "warnings": {
            "kinds": _cell([w["kind"] for w in warnings]),
            "messages": _cell([w["message"] for w in warnings]),
        },
        "signals": {group: _packed(details) for group, details in document.pop("signals").items()},
    }
    # What remains is texts, numbers and flat structs of both: accuracy, method, model, versions.
    top["fmilin"] = rest | {key: _doubles(value) for key, value in document.items()}
    buffer = io.BytesIO()
    savemat(buffer, top, format="5", oned_as="column")  # type: ignore[arg-type]  # the stubs forgot open files
    return buffer.getvalue()


def loads(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps` wrote, also after MATLAB or Octave saved it again (format 5, ``-v7``).

    Raises
    ------
    ModelError
        When this is no .mat file, or no linear model.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        top = loadmat(io.BytesIO(content))  # type: ignore[arg-type]  # the stubs forgot open files
    except (MatReadError, ValueError, TypeError, OSError, EOFError, NotImplementedError, KeyError) as error:
        raise ModelError(f"'{origin}' is no .mat file that fmilin reads (MATLAB 5 to 7, not 7.3): {error}.") from None
    try:
        return from_document(_document(top), origin)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise ModelError(f"'{origin}' is no linear model of fmilin: {error!r} while reading its fields.") from None


def _document(top: Mapping[str, Any]) -> dict[str, Any]:
    rest = _fields(top["fmilin"])
    document: dict[str, Any] = {name: top[name] for name in MATRICES}
    document["f0"] = _flat(top["f0"])
    document["y0"] = _flat(rest["y0"])
    document |= {group: _texts(top[group]) for group in GROUPS}
    point = _fields(rest["point"])
    document["point"] = {"time": _number(point["time"])} | {part: _pairs(point[part]) for part in _POINT_PARTS}
    document["accuracy"] = {key: _number(value) for key, value in _fields(rest["accuracy"]).items()}
    method = _fields(rest["method"])
    document["method"] = {key: _text(method[key]) for key in ("derivatives", "coordinates")} | {
        key: int(_number(method[key])) for key in ("evaluations", "products")
    }
    document["model"] = {key: _text(value) for key, value in _fields(rest["model"]).items()}
    warnings = _fields(rest["warnings"])
    document["warnings"] = [
        {"kind": kind, "message": message}
        for kind, message in zip(_texts(warnings["kinds"]), _texts(warnings["messages"]), strict=True)
    ]
    document["errors"] = _fields(rest["errors"])
    document["sample_time"] = _number(rest["sample_time"])
    document["signals"] = {group: _unpacked(_fields(rest["signals"])[group]) for group in GROUPS}
    document["format"] = _text(rest["format"])
    return document


# Writing: plain data to what savemat understands.


def _column(values: Sequence[float] | FloatArray) -> FloatArray:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


def _cell(texts: Sequence[str]) -> NDArray[np.object_]:
    cell = np.empty((len(texts), 1), dtype=object)
    for i, text in enumerate(texts):
        cell[i, 0] = text
    return cell


def _doubles(value: Any) -> Any:
    """Return every number as a double: MATLAB computes with nothing else by default."""
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    return float(value) if isinstance(value, int) else value


def _texts_by_name(values: Mapping[str, str]) -> dict[str, Any]:
    return {"names": _cell(list(values)), "values": _cell(list(values.values()))}


def _numbers_by_name(values: Mapping[str, float]) -> dict[str, Any]:
    return {"names": _cell(list(values)), "values": _column(list(values.values()))}


def _packed(details: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return one cell array or column per property; NaN stands for no nominal value."""
    aliases = np.empty((len(details["aliases"]), 1), dtype=object)
    for i, names in enumerate(details["aliases"]):
        aliases[i, 0] = _cell(names)
    return {
        "unit": _cell(details["unit"]),
        "nominal": _column([np.nan if n is None else n for n in details["nominal"]]),
        "start": _column(details["start"]),
        "description": _cell(details["description"]),
        "aliases": aliases,
    }


# Reading: what loadmat returns to plain data.


def _fields(struct: NDArray[Any]) -> dict[str, Any]:
    if struct.dtype.names is None:
        raise ValueError("a struct was expected")
    record = struct.reshape(-1)[0]
    return {name: record[name] for name in struct.dtype.names}


def _flat(array: NDArray[Any]) -> FloatArray:
    return np.asarray(array, dtype=np.float64).reshape(-1)


def _number(array: NDArray[Any]) -> float:
    return float(array.reshape(-1)[0])


def _text(array: NDArray[Any]) -> str:
    return str(array.reshape(-1)[0]) if array.size else ""


def _texts(cell: NDArray[Any]) -> list[str]:
    return [_text(item) for item in cell.reshape(-1)]


def _pairs(struct: NDArray[Any]) -> dict[str, float]:
    fields = _fields(struct)
    return dict(zip(_texts(fields["names"]), _flat(fields["values"]).tolist(), strict=True))


def _unpacked(struct: NDArray[Any]) -> dict[str, list[Any]]:
    fields = _fields(struct)
    return {
        "unit": _texts(fields["unit"]),
        "nominal": [None if np.isnan(n) else n for n in _flat(fields["nominal"]).tolist()],
        "start": _flat(fields["start"]).tolist(),
        "description": _texts(fields["description"]),
        "aliases": [_texts(names) for names in fields["aliases"].reshape(-1)],
    }
