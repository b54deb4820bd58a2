"""The linear model as strict JSON, format ``fmilin-linear/1``.

Numbers are written with the shortest text that reads back as the same double. JSON has no NaN and no
infinity: where an accuracy is unknown or unbounded the file says ``null``, which reads back as NaN.
Pure ASCII, so that no terminal and no pipe can damage a name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.ground.errors import ModelError
from fmilin.linear_model.model import LinearModel
from fmilin.output.export.document import from_document, to_document


def dumps(linear: LinearModel) -> bytes:
    """Return the file's content: one line per field."""
    document = to_document(linear)
    if linear.derivatives:
        document["eigenvalue_derivatives"] = linear.eigenvalue_derivatives()
    return text_of(document).encode("ascii")


def text_of(document: Mapping[str, Any]) -> str:
    """Return a document as strict JSON in ASCII, one line per field."""
    fields = ",\n".join(f"{json.dumps(k)}: {json.dumps(plain(v), allow_nan=False)}" for k, v in document.items())
    return f"{{\n{fields}\n}}\n"


def loads(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps` wrote."""
    return from_document(object_in(content, origin, "linear model"), origin)


def object_in(content: bytes, origin: str, what: str) -> dict[str, Any]:
    """Return the object that a JSON document is; ``what`` it should be, for messages."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{origin}' is no JSON document: {error}.") from None
    if not isinstance(document, dict):
        raise ModelError(f"'{origin}' is no {what}: the document is no object.")
    return document


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
