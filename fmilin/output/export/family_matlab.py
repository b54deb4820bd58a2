"""A family of linear models for MATLAB and Octave: arrays in a .mat file, or a function that returns models.

In the .mat file the grid stands behind the matrix, as in MATLAB's arrays of models: (P, P, shape...); ``offsets`` are
columns, as the LPV System block wants them. Failed points are NaN.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.families.rows import Layout
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.output.export import m_file
from fmilin.output.export.archives import reading
from fmilin.output.export.document import MATRICES
from fmilin.output.export.family_json import FORMAT, from_texts, require_format, texts_of
from fmilin.output.export.mat5 import READABLE, read, write
from fmilin.output.export.model_array import gathered
from fmilin.output.formats import Writing


def dumps_mat(family: LinearFamily) -> bytes:
    """Return the file's content."""
    top: dict[str, Any] = {name: _behind(family.array(name), 2) for name in MATRICES}
    dx = family.f0 + (family.y0 if family.sample_time > 0 else 0.0)
    offsets = {"x": family.y0, "u": family.u0, "y": family.array("out0"), "dx": dx}
    top["offsets"] = {name: _columns(values) for name, values in offsets.items()}
    top["f0"] = _columns(family.f0)
    top["eigenvalues"] = _behind(family.eigenvalues, 1)
    ok = family.ok.astype(np.float64)
    top["ok"] = ok.reshape(-1, 1) if ok.ndim == 1 else ok
    top["grid"] = {"names": list(family.axes), "values": [v.reshape(-1, 1) for v in family.axes.values()]}
    top |= {group: list(getattr(family, group).names) for group in ("states", "full_states", "inputs", "outputs")}
    top["Ts"] = float(family.sample_time)
    rest = {name: np.asarray(family.layout.part(family.rows, name)) for name in family.layout.shapes if name not in top}
    rows = {name: values.reshape(len(values), -1).T for name, values in rest.items()}
    texts = json.dumps(texts_of(family))
    top["fmilin"] = {"format": FORMAT, "texts": texts, "rows": rows, "chosen": family.chosen + 0.0}
    return write(top)


def loads_mat(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps_mat` wrote, also after MATLAB or Octave saved it again."""
    with reading(origin, READABLE):
        top = read(content)
    with reading(origin, "family of fmilin"):
        texts = json.loads(top["fmilin"]["texts"])
        require_format(texts, origin)
        ok = np.ravel(top["ok"], order="F")
        ok = ok.reshape(tuple(texts["shape"]), order="F") > 0
        chosen = np.ravel(top["fmilin"]["chosen"])
    return from_texts(texts, lambda layout: _rows(top, layout, ok.shape), ok, chosen, origin)


def _rows(top: dict[str, Any], layout: Layout, shape: tuple[int, ...]) -> FloatArray:
    count = int(np.prod(shape))
    rows = np.empty((count, layout.width))
    for name, columns in layout.slices.items():
        if name in MATRICES or name == "f0":
            flat = np.ravel(top[name], order="F").reshape(layout.shapes[name] + shape, order="F")
            front = np.moveaxis(flat, range(len(layout.shapes[name])), range(-len(layout.shapes[name]), 0))
            rows[:, columns] = front.reshape(count, -1)
        else:
            rows[:, columns] = np.ravel(top["fmilin"]["rows"][name], order="F").reshape(count, -1)
    return rows


def _behind(array: np.ndarray, last: int) -> np.ndarray:
    r"""Move the grid behind the last axes: (\\*shape, a, b) -> (a, b, \\*shape)."""
    moved = np.moveaxis(array, range(-last, 0), range(last))
    return moved.reshape(-1, 1) if moved.ndim == 1 else moved


def _columns(array: np.ndarray) -> np.ndarray:
    return _behind(array[..., None], 2)


def dumps_m(family: LinearFamily, writing: Writing) -> bytes:
    """Return the content of a function file; points without a linear model are left out."""
    good = list(family.good())
    if not good:
        raise UsageError("No point of the family has a linear model: there is nothing to write into a .m file.")
    values = {axis: [family.grid.values(k)[axis] for k, _ in good] for axis in family.axes}
    models = [linear for _, linear in good]
    return m_file.dumps_array(gathered(models, values if len(good) > 1 else None), writing)
