"""The linear model as NumPy's .npz: arrays under their own names, no pickles.

Matrices, their error estimates (``error_A``, ...), ``f0``, ``y0`` and ``eigenvalues`` are arrays of
doubles, the four name lists arrays of strings, and the rest is one JSON text under ``fmilin``::

    with np.load("plant.npz") as S:
        A, names = S["A"], list(S["states"])
        point = json.loads(str(S["fmilin"]))["point"]
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.output.export.archives import archive_of, arrays_of, reading
from fmilin.output.export.descriptors import ARRAYS as DESCRIPTOR_ARRAYS
from fmilin.output.export.document import ERRORS, GROUPS, MATRICES, from_document, to_document
from fmilin.output.export.json_file import plain

_ARRAYS = (*MATRICES, "f0", "y0", "eigenvalues")


def dumps(linear: LinearModel) -> bytes:
    """Return the file's content."""
    document = to_document(linear)
    arrays: dict[str, Any] = {name: document.pop(name) for name in _ARRAYS}
    for group in GROUPS:
        arrays[group] = np.array(document.pop(group), dtype=np.str_)
    arrays |= {f"error_{name}": array for name, array in document.pop("errors").items()}
    if "descriptor" in document:
        part = document["descriptor"]
        arrays |= {f"descriptor_{name}": part.pop(name) for name in DESCRIPTOR_ARRAYS}
    arrays["format"] = np.array(document["format"])
    arrays["sample_time"] = np.array(document["sample_time"])
    if "derivatives" in document:
        document["derivatives"] = plain(document["derivatives"])
    # NaN and Infinity may stand in this text: Python reads it back, and nothing gets lost.
    arrays["fmilin"] = np.array(json.dumps(document))
    return archive_of(arrays)


def loads(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps` wrote."""
    with reading(origin, ".npz file of a linear model that fmilin wrote"):
        arrays = arrays_of(content)
        document: dict[str, Any] = json.loads(str(arrays["fmilin"]))
        document |= {name: arrays[name] for name in _ARRAYS}
        document["errors"] = {name: arrays[f"error_{name}"] for name in ERRORS}
        document |= {group: arrays[group].tolist() for group in GROUPS}
        if "descriptor" in document:
            document["descriptor"] |= {name: arrays[f"descriptor_{name}"] for name in DESCRIPTOR_ARRAYS}
    return from_document(document, origin)
