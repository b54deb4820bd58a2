"""The manifold g(q) = 0, G v = 0 of equations in sparse matrices: the distance from it, and the way back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fmilin.errors import ConstraintError, NumericalError
from fmilin.numerics.factors import SparseFactors
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import PROJECTION_TOLERANCE

ITERATIONS = 50


class SparseManifold(ABC):
    """States (q, v) with n coordinates under constraints on positions, with their gradient G as a sparse matrix."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self.n = len(signals) // 2

    @abstractmethod
    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v), shape (2m,)."""

    def distance(self, x: FloatArray, u: FloatArray, t: float) -> float:
        """Return the largest component of the step that would lead back."""
        g = self.residuals(t, x, u)
        if not np.isfinite(g).all():
            return float("inf")
        G, nothing = self._gradient(t, x, u), np.zeros(self.n, dtype=bool)
        steps = [self._step(G, D, h, nothing) / D for D, h in zip(self._sizes(x), np.split(g, 2), strict=True)]
        return float(np.max(np.abs(steps), initial=0.0))

    def projected(self, t: float, x: FloatArray, u: FloatArray, fixed_states: Sequence[int]) -> FloatArray:
        """Return the nearest states by Gauss-Newton, positions first; velocities follow linearly."""
        n, x, (D_q, D_v) = self.n, x.copy(), self._sizes(x)
        m, fixed = len(self.residuals(t, x, u)) // 2, np.zeros(2 * self.n, dtype=bool)
        fixed[list(fixed_states)] = True
        previous = np.inf
        for _ in range(ITERATIONS):
            try:
                step = self._step(self._gradient(t, x, u), D_q, self.residuals(t, x, u)[:m], fixed[:n])
            except NumericalError:  # the held states say too much
                break
            size = float(np.max(np.abs(step / D_q), initial=0.0))
            x[:n] += step * min(1.0, 0.5 / size if size > 0 else 1.0)  # no longer than half the size of a coordinate
            if size <= 1e-15 or (size < 1e-9 and size >= 0.5 * previous) or not np.isfinite(size):
                break
            previous = size
        distance = np.inf
        try:
            for _ in range(2):
                x[n:] += self._step(self._gradient(t, x, u), D_v, self.residuals(t, x, u)[m:], fixed[n:])
            distance = self.distance(x, u, t)
        except NumericalError:  # as above, or the point is singular
            pass
        if distance <= PROJECTION_TOLERANCE:
            return x
        names = [self._signals.names[i] for i in fixed_states]
        what = f"with {', '.join(names)} held" if names else "from the start values"
        raise ConstraintError(
            f"The constraints cannot be satisfied {what}: the search ended {distance:.3g} sizes of the states away. "
            "Check the constraints and the given values of states and parameters."
        )

    @abstractmethod
    def _gradient(self, t: float, x: FloatArray, u: FloatArray) -> Any:
        """Return G, shape (m, n), as a sparse matrix."""

    def _sizes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        scales = self._signals.scales(x)
        return scales[: self.n], scales[self.n :]

    def _step(self, G: Any, D: FloatArray, h: FloatArray, fixed: Any) -> FloatArray:
        """Return the smallest dz with G dz = -h and dz zero where ``fixed``, sizes measured in D."""
        if not np.isfinite(h).all() or not np.isfinite(G.data).all():
            return np.full(len(D), np.nan)
        scaled = (G @ sparse.diags_array(np.where(fixed, 0.0, D))).tocsc()
        saddle = sparse.block_array([[sparse.eye_array(len(D)), scaled.T], [scaled, None]], format="csc")
        factors = SparseFactors(saddle, "the matrix of the constraints with these states held")
        solution = factors.solve(np.concatenate((np.zeros(len(D)), -h)))
        step: FloatArray = D * solution[: len(D)]
        return step
