"""The classical Runge-Kutta method with a fixed step, as one of scipy's solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate

from fmilin.ground.signals import FloatArray
from fmilin.numerics.steps import Rates, runge_kutta_step


class FixedRungeKutta4(integrate.OdeSolver):
    """The classical Runge-Kutta method of order 4; the last step is shorter where the end demands it."""

    def __init__(self, f: Rates, t0: float, y0: FloatArray, t_bound: float, *, step: float) -> None:
        super().__init__(f, t0, y0, t_bound, vectorized=False)
        self.h_abs = step
        self._rate: FloatArray = np.asarray(self.fun(self.t, self.y))
        self._start = (self.t, self.y, self._rate)

    def _step_impl(self) -> tuple[bool, str | None]:
        t, y = self.t, self.y
        h = self.h_abs
        if t + 1.000001 * h >= self.t_bound:
            h = self.t_bound - t
        new = runge_kutta_step(self.fun, t, y, h, self._rate)
        if not np.isfinite(new).all():
            return False, "The states grow beyond all numbers within one step"
        self._start = (t, y, self._rate)
        self.t = self.t_bound if h == self.t_bound - t else t + h
        self.y = new
        self._rate = np.asarray(self.fun(self.t, new))
        return True, None

    def _dense_output_impl(self) -> _Cubic:
        return _Cubic(self._start, (self.t, self.y, self._rate))


class _Cubic(integrate.DenseOutput):
    """The cubic through two points with the slopes there."""

    def __init__(self, start: tuple[float, FloatArray, FloatArray], end: tuple[float, FloatArray, FloatArray]) -> None:
        super().__init__(start[0], end[0])
        self._ends = start, end

    def _call_impl(self, t: Any) -> Any:
        (t0, y0, f0), (t1, y1, f1) = self._ends
        h = t1 - t0
        s = (t - t0) / h
        if np.ndim(s):
            y0, f0, y1, f1 = (a[:, None] for a in (y0, f0, y1, f1))
        bend = s * (s - 1) * ((1 - 2 * s) * (y1 - y0) + (s - 1) * h * f0 + s * h * f1)
        return (1 - s) * y0 + s * y1 + bend
