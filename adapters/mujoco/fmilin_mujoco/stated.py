"""Derivatives from MuJoCo's engine, which are differences in part, with how wrong they may be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin import Evaluation
from fmilin.adapters import EngineModel, ExactSlopes, PointDerivatives
from fmilin.signals import FloatArray
from fmilin_mujoco.engine import MujocoEngine

__all__ = ["EngineSlopes", "MujocoModel"]


class EngineSlopes(PointDerivatives):
    """Derivatives at a point; their first columns, of positions, have ``errors`` in rates and outputs, (N + ny,)."""

    def __init__(
        self, values: Evaluation, slopes: Evaluation, errors: FloatArray, positions: int, *, smooth: bool = False
    ) -> None:
        super().__init__(values, slopes, smooth=smooth)
        self._errors, self._positions = errors, positions

    def rounding(self, independent: Sequence[int]) -> FloatArray:
        """Return the errors by coordinates and inputs, which move positions or do not."""
        tangent = self.along(independent)
        moved = np.abs(np.hstack((tangent.T, tangent.T_u))[: self._positions]).sum(axis=0)
        return np.asarray(np.outer(self._errors, moved))


class MujocoModel(EngineModel):
    """The model of a :class:`MujocoEngine`."""

    engine: MujocoEngine

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the engine's derivatives with their errors."""
        given = super().exact_slopes(t, x, u)
        if not isinstance(given, PointDerivatives):
            return given
        return EngineSlopes(given.values, given._slopes, self.slope_errors(t, x, u), self.engine.compiled.nq)

    def slope_errors(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return how wrong derivatives of rates and outputs by positions may be, shape (N + ny,)."""
        full = self._full(u)
        return np.concatenate(self.engine.pick(self._selection, *self.engine.errors(t, x, full), 0 * x, 0 * full)[:2])
