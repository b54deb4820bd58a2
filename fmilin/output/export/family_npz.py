r"""A family of linear models as NumPy's .npz: arrays with the grid in front under their own names, no pickles.

``A`` to ``T_u``, ``f0``, ``y0``, ``x0``, ``u0``, ``out0``, ``time``, ``error_A``, ... have the shape (\\*shape, ...),
``eigenvalues`` are tracked, ``ok`` is Boolean, every axis is ``axis_0``, ``axis_1``, ... in the order of the names in
``axes``; the rest is one JSON text under ``fmilin``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.families.rows import Layout
from fmilin.ground.errors import ModelError
from fmilin.ground.signals import FloatArray
from fmilin.output.export.archives import DAMAGED, arrays_of
from fmilin.output.export.family_document import from_texts, require_format, texts_of

__all__ = ["dumps", "loads", "rows_of"]


def dumps(family: LinearFamily) -> bytes:
    """Return the file's content."""
    arrays: dict[str, Any] = {name: family.array(name) for name in family.layout.shapes}
    arrays |= {f"axis_{i}": values for i, values in enumerate(family.axes.values())}
    arrays["axes"] = np.array(list(family.axes), dtype=np.str_)
    arrays["ok"], arrays["chosen"] = family.ok, family.chosen
    arrays["eigenvalues"] = family.eigenvalues
    arrays["states"] = np.array(family.states.names, dtype=np.str_)
    arrays["fmilin"] = np.array(json.dumps(texts_of(family)))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def loads(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps` wrote."""
    try:
        arrays = arrays_of(content)
        texts: dict[str, Any] = json.loads(str(arrays["fmilin"]))
        require_format(texts, origin)
        ok, chosen = arrays["ok"], arrays["chosen"]
    except KeyError as missing:
        raise ModelError(f"'{origin}' is no family of fmilin: it has no {missing}.") from None
    except (*DAMAGED, AttributeError) as error:
        raise ModelError(f"'{origin}' is no .npz file that fmilin wrote: {error}.") from None
    return from_texts(texts, lambda layout: rows_of(arrays, layout, ok.size), ok, chosen, origin)


def rows_of(arrays: Mapping[str, Any], layout: Layout, count: int) -> FloatArray:
    """Return the rows of a family from arrays with the grid in front."""
    rows = np.empty((count, layout.width))
    if lost := [name for name in layout.places if np.iscomplexobj(arrays[name])]:
        raise ValueError(f"{lost[0]} is complex, and a linear model is real: its imaginary part would be lost")
    for name, place in layout.places.items():
        rows[:, place] = np.asarray(arrays[name], dtype=np.float64).reshape(count, -1)
    return rows
