"""Residuals of constraints out of the buffers of a visit, and how they change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.read.buffers import Buffers
from fmilin.ground.signals import FloatArray
from fmilin.model.constraints.declared import Constraints

__all__ = ["Residuals"]

_NOTHING = np.empty(0)


class Residuals:
    """The residuals g(t, x, u, z) of constraints on a view of an FMU.

    ``inputs``, ``observed`` (nu,), (nz,): which inputs of the FMU are u; where z stand in the buffers.
    """

    def __init__(
        self, constraints: Constraints, buffers: Buffers, inputs: NDArray[np.intp], observed: NDArray[np.intp]
    ) -> None:
        self._constraints, self._buffers = constraints, buffers
        self._sizes = (1, buffers.n, len(inputs), len(observed))
        first = 1 + buffers.n
        self._arguments = np.concatenate((np.arange(first), first + inputs, observed)).astype(np.intp)
        """Where t, x, u and z stand in the buffers."""
        self._variables = None if constraints.variables is None else self._arguments[constraints.variables]
        """Where the residuals themselves stand, where each is nothing but a variable."""

    def values(self) -> FloatArray:
        """Return g at the point of the buffers, shape (m,)."""
        if not self._constraints.rows:
            return _NOTHING
        if self._variables is not None:
            return self._buffers.values[self._variables]
        return self._constraints.residuals(*self._split(self._buffers.values))

    def along(self, values: FloatArray, changes: FloatArray) -> FloatArray:
        """Return dg = g_x dx + g_u du + g_z dz, shape (m, k); NaN rows only where an unknown dz has a part in g.

        Shapes: values (size,), as in the buffers; changes (size, k), how they change.
        """
        if self._variables is not None:
            return changes[self._variables]
        partials = self._constraints.partials(*self._split(values))
        _, dx, du, dz = self._parts(changes)
        dg = partials.states @ dx + partials.inputs @ du
        if np.isfinite(dz).all():
            known: FloatArray = dg + partials.observed @ dz
            return known
        for column, change in zip(partials.observed.T, dz, strict=True):
            dg[column != 0] += np.outer(column[column != 0], change)
        return dg

    def _split(self, values: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        t, x, u, z = self._parts(values)
        return float(t[0]), x, u, z

    def _parts(self, values: FloatArray) -> list[FloatArray]:
        return np.split(values[self._arguments], np.cumsum(self._sizes)[:-1])
