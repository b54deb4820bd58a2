"""Linear models and descriptor systems as arrays under their names: MATLAB 5 .mat files, NumPy's .npz without pickles.

In .mat files the rest is a struct ``fmilin``; what is looked up by name is a struct with ``names`` and ``values``, as
few names are legal ones of fields. In .npz files it is one JSON text.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fmilin.export import document as doc
from fmilin.export.archives import archive_of, arrays_of, reading, real_array
from fmilin.export.foreign import is_dslin, loads_dslin
from fmilin.export.mat5 import READABLE, read, write
from fmilin.linear_model.descriptor import Descriptor
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray


def dumps_mat(linear: LinearModel) -> bytes:
    """Return the file's content."""
    document = doc.to_document(linear)
    top: dict[str, Any] = {name: document.pop(name) for name in doc.MATRICES}
    top["f0"] = _column(document.pop("f0"))
    top |= {group: document.pop(group) for group in doc.GROUPS}
    point, units, warnings = (document.pop(name) for name in ("point", "units", "warnings"))
    values = {p: {"names": list(point[p]), "values": _column(list(point[p].values()))} for p in doc.POINT_PARTS}
    rest: dict[str, Any] = {
        "y0": _column(document.pop("y0")),
        "eigenvalues": document.pop("eigenvalues").reshape(-1, 1),
        "eigenvalue_errors": _column(document.pop("eigenvalue_errors")),
        "units": {"names": list(units), "values": list(units.values())},
        "point": {"time": point["time"]} | values,
        "warnings": {"kinds": [w["kind"] for w in warnings], "messages": [w["message"] for w in warnings]},
        "signals": {group: _packed(details) for group, details in document.pop("signals").items()},
    }
    tested = document.pop("equilibrium")
    rest["equilibrium"] = np.nan if tested is None else float(tested)  # 1 yes, 0 no, NaN not tested
    stable = document.pop("stable")
    rest["stable"] = np.nan if stable is None else float(stable)  # NaN: cannot be told, or the point moves
    if "descriptor" in document:
        top["descriptor"] = to_mat(document.pop("descriptor"))
    if "discrete" in document:
        discrete = document.pop("discrete")
        top["discrete"] = discrete | {"f0": _column(discrete["f0"])}
    if "derivatives" in document:  # by parameter, whose names are no names of fields: one JSON text
        document["derivatives"] = json.dumps(doc.plain(document["derivatives"]))
    # What remains is texts, numbers and flat structs of both: accuracy, method, model, versions.
    top["fmilin"] = rest | document
    return write(top)


def loads_mat(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps_mat` wrote, also after others saved it again, or Dymola's ``dslin.mat``."""
    if is_dslin(content):
        return loads_dslin(content, origin)
    with reading(origin, READABLE):
        top = read(content)
    with reading(origin, "linear model of fmilin"):
        document = _document(top)
    return doc.from_document(document, origin)


def _document(top: Mapping[str, Any]) -> dict[str, Any]:
    rest: dict[str, Any] = top["fmilin"]
    document: dict[str, Any] = {name: top[name] for name in doc.MATRICES}
    document["f0"] = _flat(top["f0"])
    document["y0"] = _flat(rest["y0"])
    document |= {group: _texts(top[group]) for group in doc.GROUPS}
    point = rest["point"]
    values = ((part, _texts(point[part]["names"]), _flat(point[part]["values"]).tolist()) for part in doc.POINT_PARTS)
    document["point"] = {"time": _number(point["time"])} | {p: dict(zip(n, v, strict=True)) for p, n, v in values}
    document["accuracy"] = {key: _number(value) for key, value in rest["accuracy"].items()}
    document["method"] = {
        name: _text(rest["method"][name]) if kind is str else int(_number(rest["method"][name]))
        for name, kind in doc.METHOD.items()
    }
    document["model"] = {key: _text(value) for key, value in rest["model"].items()}
    remarks = zip(_texts(rest["warnings"]["kinds"]), _texts(rest["warnings"]["messages"]), strict=True)
    document["warnings"] = [{"kind": kind, "message": message} for kind, message in remarks]
    document["errors"] = rest["errors"]
    document["sample_time"] = _number(rest["sample_time"])
    document["signals"] = {group: _unpacked(rest["signals"][group]) for group in doc.GROUPS}
    document["format"] = _text(rest["format"])
    if "descriptor" in top:
        document["descriptor"] = doc.to_part(of_mat(top["descriptor"]))
    if "discrete" in top:
        discrete = top["discrete"]
        numbers = {"f0": _flat(discrete["f0"]), "sample_time": _number(discrete["sample_time"])}
        document["discrete"] = {**discrete, **numbers}
    if "derivatives" in rest:
        document["derivatives"] = json.loads(_text(rest["derivatives"]))
    return document


# Writing: plain data to what MATLAB can look up.


def _column(values: Sequence[float] | FloatArray) -> FloatArray:
    return np.array(values, dtype=np.float64).reshape(-1, 1)


def _packed(details: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return one cell array or column per property; NaN stands for no nominal value."""
    return {
        "unit": details["unit"],
        "nominal": _column([np.nan if n is None else n for n in details["nominal"]]),
        "start": _column(details["start"]),
        "description": details["description"],
        "aliases": [list(names) for names in details["aliases"]],
        "turn": _column([np.nan if turn is None else turn for turn in details["turn"]]),
    }


# Reading: what is in the file to plain data. An empty text or cell array may have become an empty matrix.


def _flat(array: FloatArray) -> FloatArray:
    return real_array(array, "a column of the file").reshape(-1)


def _number(array: FloatArray) -> float:
    return float(array.reshape(-1)[0])


def _text(value: Any) -> str:
    if isinstance(value, str) or not np.size(value):
        return value if isinstance(value, str) else ""
    raise ValueError(f"{value!r} stands where a text should be")


def _texts(cell: Any) -> list[str]:
    if not isinstance(cell, list) and np.size(cell):
        raise ValueError(f"{cell!r} stands where a cell array should be")
    return [_text(item) for item in cell]


def _unpacked(fields: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {
        "unit": _texts(fields["unit"]),
        "nominal": [None if np.isnan(n) else n for n in _flat(fields["nominal"]).tolist()],
        "start": _flat(fields["start"]).tolist(),
        "description": _texts(fields["description"]),
        "aliases": [_texts(names) for names in fields["aliases"]],
        **_list_turns(fields),
    }


def _list_turns(fields: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what is known of where signals wrap; files of earlier versions say nothing."""
    if "turn" not in fields:
        return {}
    return {"turn": [None if np.isnan(turn) else turn for turn in _flat(fields["turn"]).tolist()]}


_ARRAYS = (*doc.MATRICES, "f0", "y0", "eigenvalues")


def dumps_npz(linear: LinearModel) -> bytes:
    """Return the file's content."""
    document = doc.to_document(linear)
    arrays: dict[str, Any] = {name: document.pop(name) for name in (*_ARRAYS, "eigenvalue_errors")}
    for group in doc.GROUPS:
        arrays[group] = np.array(document.pop(group), dtype=np.str_)
    arrays |= {f"error_{name}": array for name, array in document.pop("errors").items()}
    if "descriptor" in document:
        part = document["descriptor"]
        arrays |= {f"descriptor_{name}": part.pop(name) for name in doc.DESCRIPTOR}
    if "discrete" in document:
        part = document["discrete"]
        arrays |= {f"discrete_{name}": part.pop(name) for name in doc.DISCRETE}
        part["errors"] = {name: array.tolist() for name, array in part["errors"].items()}
    arrays["format"] = np.array(document["format"])
    arrays["sample_time"] = np.array(document["sample_time"])
    if "derivatives" in document:
        document["derivatives"] = doc.plain(document["derivatives"])
    # NaN and Infinity may stand in this text: Python reads it back, and nothing gets lost.
    arrays["fmilin"] = np.array(json.dumps(document))
    return archive_of(arrays)


def loads_npz(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps_npz` wrote."""
    with reading(origin, ".npz file of a linear model that fmilin wrote"):
        arrays = arrays_of(content)
        document: dict[str, Any] = json.loads(str(arrays["fmilin"]))
        document |= {name: arrays[name] for name in _ARRAYS}
        document["errors"] = {name: arrays[f"error_{name}"] for name in doc.ERRORS}
        document |= {group: arrays[group].tolist() for group in doc.GROUPS}
        if "descriptor" in document:
            document["descriptor"] |= {name: arrays[f"descriptor_{name}"] for name in doc.DESCRIPTOR}
        if "discrete" in document:
            document["discrete"] |= {name: arrays[f"discrete_{name}"] for name in doc.DISCRETE}
    return doc.from_document(document, origin)


WRITTEN = "descriptor system that fmilin wrote"


def dumps_descriptor_mat(descriptor: Descriptor) -> bytes:
    """Return the content of a .mat file."""
    return write(to_mat(doc.to_part(descriptor)))


def loads_descriptor_mat(content: bytes, origin: str) -> Descriptor:
    """Read what :func:`dumps_descriptor_mat` wrote."""
    with reading(origin, WRITTEN):
        return of_mat(read(content))


def dumps_descriptor_npz(descriptor: Descriptor) -> bytes:
    """Return the content of a .npz file."""
    part = doc.to_part(descriptor)
    return archive_of(part | {name: np.array(part[name], dtype=np.str_) for name in doc.NAMES})


def loads_descriptor_npz(content: bytes, origin: str) -> Descriptor:
    """Read what :func:`dumps_descriptor_npz` wrote."""
    with reading(origin, WRITTEN):
        part: dict[str, Any] = dict(arrays_of(content))
        return doc.from_part(part | {name: part[name].tolist() for name in doc.NAMES})


def to_mat(part: dict[str, Any]) -> dict[str, Any]:
    """Return the part as variables of a MAT-file: f0 is a column."""
    return part | {"f0": part["f0"].reshape(-1, 1), "order": float(part["order"])}


def of_mat(variables: dict[str, Any]) -> Descriptor:
    """Return the descriptor system that stands in the variables of a MAT-file."""
    part = {name: variables[name] for name in doc.DESCRIPTOR}
    part |= {name: list(variables[name]) for name in doc.NAMES}
    numbers = {name: float(np.asarray(variables[name]).reshape(-1)[0]) for name in ("order", "difference")}
    return doc.from_part(part | numbers | {"f0": np.asarray(part["f0"]).reshape(-1)})
