"""What a stack of points writes: matrices by name, their errors, and the accuracy that follows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.no_response import is_connected, path_to_an_output
from fmilin.manifold.stack import PointStack, StackGeometry
from fmilin.manifold.verification import VerifiedFacts
from fmilin.model.interface import Model, TangentStack

EPS = float(np.finfo(np.float64).eps)

Mask = NDArray[np.bool_]
Parts = Mapping[str, FloatArray]


class StackWriter:
    """Writes the matrices of a stack; the error of an entry is that of its row over the size of its column."""

    def __init__(
        self,
        model: Model,
        facts: VerifiedFacts,
        points: PointStack,
        tangents: TangentStack,
        geometry: StackGeometry,
        errors: FloatArray,
    ) -> None:
        self._model, self._pairs, self._points = model, dict(facts.pairs or {}), points
        self._tangents, self._geometry, self._errors = tangents, geometry, errors
        self._kept, self._p = list(tangents.kept), len(tangents.kept)

    def write(self, parts: Parts) -> None:
        """Write them by name, with the accuracy that follows."""
        t, p, points, geometry = self._tangents, self._p, self._points, self._geometry
        J = t.derivatives if not geometry.others and self._in_order else t.derivatives[:, self._kept]
        values = {
            "A": J[..., :p],
            "B": J[..., p:],
            "C": t.outputs[..., :p],
            "D": t.outputs[..., p:],
            "T": t.T,
            "f0": t.rates[:, self._kept],
            "y0": points.states[:, self._kept],
            "x0": points.states,
            "u0": points.inputs,
            "out0": t.values,
            "time": points.time,
        }
        for name, array in values.items():
            parts[name][...] = array
        y, u = geometry.y_sizes, geometry.u_sizes
        largest, seen = geometry.slopes.largest, geometry.output_slopes.largest
        rows = {**self._row_errors(), **self._row_errors_of_outputs(), "T": geometry.row_errors_of_T}
        columns = {"A": y, "B": u, "C": y, "D": u, "T": y}
        entries = largest[:, :p], largest[:, p:], seen[:, :p], seen[:, p:], geometry.largest_of_T[:, None]
        for number, (name, entry) in enumerate(zip(columns, entries, strict=True)):
            np.divide(rows[name][..., None], columns[name][:, None], out=parts[f"error_{name}"])
            worst = _worst(rows[name], columns[name])
            parts["accuracy"][:, number] = relative_to(entry.max(axis=1, initial=0.0), worst)
        parts["accuracy"][:, 5] = np.where(parts["f0"].any(axis=1), EPS, 0.0)
        parts["accuracy"][:, 6], parts["accuracy"][:, 7] = geometry.distance, geometry.condition_number

    @property
    def _in_order(self) -> bool:
        return self._kept == list(range(len(self._kept)))

    def _row_errors(self) -> dict[str, FloatArray]:
        """Return what rows of A and B may be off by."""
        along_y = self._errors[:, self._kept]
        along_u = along_y.copy()
        for row, i in enumerate(self._kept):
            if i in self._pairs:  # known without asking
                along_y[:, row], along_u[:, row] = self._geometry.row_errors_of_T[:, self._pairs[i]], 0.0
        return {"A": along_y, "B": along_u}

    def _row_errors_of_outputs(self) -> dict[str, FloatArray]:
        along_y = self._errors[:, len(self._model.states) :].copy()
        along_u = along_y.copy()
        for row, copy in self._model.copies.items():
            along_y[:, row] = self._geometry.row_errors_of_T[:, copy.index] if copy.kind == "state" else 0.0
            along_u[:, row] = 0.0
        return {"C": along_y, "D": along_u}


def _worst(rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the largest of the errors of rows over the sizes of columns at each point."""
    if not columns.shape[1]:
        return np.zeros(len(columns))
    return np.asarray(rows.max(axis=1, initial=0.0) / columns.min(axis=1))


def relative_to(largest: FloatArray, worst: FloatArray) -> FloatArray:
    """Return the largest error over the largest entry at each point; the error itself where all entries are zero."""
    return np.asarray(np.where(largest > 0, worst / np.where(largest > 0, largest, 1.0), worst))


def connected_points(parts: Parts) -> Mask:
    """Say where some input reaches some output, or there are none of them: by the path of the first point if possible.

    Entries no larger than their errors are zero.
    """
    k, inputs, outputs = len(parts["f0"]), parts["D"].shape[2], parts["D"].shape[1]
    if not inputs or not outputs:
        return np.ones(k, dtype=bool)
    path = path_to_an_output(*(_visible(parts, name, 0) for name in "ABCD"))
    connected = np.full(k, path is not None)
    for name, i, j in path or ():
        connected &= np.abs(parts[name][:, i, j]) > parts[f"error_{name}"][:, i, j]
    for point in np.flatnonzero(~connected).tolist():
        connected[point] = is_connected(*(_visible(parts, name, point) for name in "ABCD"))
    return connected


def _visible(parts: Parts, name: str, point: int) -> Mask:
    return np.asarray(np.abs(parts[name][point]) > parts[f"error_{name}"][point])
