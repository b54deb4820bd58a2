"""Which integrator, with which tolerances: scipy's, and the classical Runge-Kutta method with a fixed step."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import integrate

from fmilin.errors import UsageError
from fmilin.numerics.steps import Rates, runge_kutta_step
from fmilin.signals import FloatArray


class DormandPrince853(integrate.DOP853):
    """The method of order 8, with the same numbers as scipy's, and less work around each evaluation of the rates.

    Rates of a model that is compiled take a microsecond or two; scipy's stages take ten, most of it for slices of the
    tableau and for wrappers, which are made once here.
    """

    def __init__(self, f: Rates, t0: float, y0: FloatArray, t_bound: float, **options: Any) -> None:
        super().__init__(f, t0, y0, t_bound, **options)  # type: ignore[arg-type]
        stages = range(1, self.n_stages)
        self._rates = f
        # Views of the stages before each one, which stay valid as all steps write into the same array.
        self._stages = [(s, self.K[:s].T, self.A[s, :s], float(self.C[s])) for s in stages]
        self._all_stages = self.K[:-1].T

    def _step_impl(self) -> tuple[bool, str | None]:
        t, y = self.t, self.y
        absolute, relative = self.atol, self.rtol  # type: ignore[attr-defined]
        shortest = 10 * abs(np.nextafter(t, np.inf) - t)
        length = min(max(self.h_abs, shortest), self.max_step)
        is_repeated = False
        while length >= shortest:
            end = min(t + length, self.t_bound)
            h = end - t
            new, rate = self._advance(t, y, h)
            scale = absolute + np.maximum(np.abs(y), np.abs(new)) * relative
            error = self._measure_error(h, scale)
            if error < 1:
                factor = (
                    MAX_STEP_FACTOR
                    if error == 0
                    else min(MAX_STEP_FACTOR, STEP_SAFETY_FACTOR * error**self.error_exponent)
                )
                self.h_previous, self.y_old = h, y
                self.t, self.y, self.f = end, new, rate
                self.h_abs = h * (min(1.0, factor) if is_repeated else factor)
                return True, None
            is_repeated = True
            length = h * max(
                MIN_STEP_FACTOR, STEP_SAFETY_FACTOR * error**self.error_exponent
            )  # NaN leaves the smallest part
        return False, self.TOO_SMALL_STEP

    def _measure_error(self, h: float, scale: FloatArray) -> float:
        """Return the norm of the error of a step, in its tolerances: as scipy's ``_estimate_error_norm``."""
        fifth, third = (self.K.T.dot(weights) / scale for weights in (self.E5, self.E3))
        square_of_fifth, square_of_third = float(fifth.dot(fifth)), float(third.dot(third))
        if square_of_fifth == 0 and square_of_third == 0:
            return 0.0
        return float(h * square_of_fifth / sqrt((square_of_fifth + 0.01 * square_of_third) * len(scale)))

    def _advance(self, t: float, y: FloatArray, h: float) -> tuple[FloatArray, FloatArray]:
        """Return the states and their rates after one step of length h."""
        K, rates = self.K, self._rates
        K[0] = self.f
        for s, before, weights, node in self._stages:
            K[s] = rates(t + node * h, y + before.dot(weights) * h)
        new = y + h * self._all_stages.dot(self.B)
        rate = np.asarray(rates(t + h, new))
        K[-1] = rate
        self.nfev += self.n_stages
        return new, rate


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
            return False, "The states overflow within one step"
        self._start = (t, y, self._rate)
        self.t = self.t_bound if h == self.t_bound - t else t + h
        self.y = new
        self._rate = np.asarray(self.fun(self.t, new))
        return True, None

    def _dense_output_impl(self) -> _Cubic:
        return _Cubic(self._start, (self.t, self.y, self._rate))


class _Cubic(integrate.DenseOutput):
    """The cubic through two points with the derivatives there."""

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


# Of the control of steps: as in scipy.
STEP_SAFETY_FACTOR, MIN_STEP_FACTOR, MAX_STEP_FACTOR = 0.9, 0.2, 10.0

METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4")
"""Explicit ones of orders 8, 5 and 3, two for stiff models, and RK4 with a fixed step."""

_MIN_RELATIVE_TOLERANCE = 1e-13


@dataclass(frozen=True, slots=True)
class Method:
    """How to integrate."""

    name: str = "DOP853"  # one of :data:`METHODS`
    # relative, absolute: tolerances for the error of one step; ``absolute`` in sizes of the states (their nominal
    # values). RK4 does not use them
    relative: float = 1e-9
    absolute: float = 1e-11
    longest_step: float = np.inf  # in seconds. RK4 takes this step always, and cannot do without it

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise UsageError(f"'{self.name}' is not an integration method: use {', '.join(METHODS)}.")
        if not (_MIN_RELATIVE_TOLERANCE <= self.relative < 1 and 0 < self.absolute < np.inf):
            raise UsageError(
                f"Tolerances of {self.relative:g} (relative) and {self.absolute:g} (absolute) cannot be reached: the "
                f"relative one is {_MIN_RELATIVE_TOLERANCE:g} or more and less than 1, the absolute one positive."
            )
        if not self.longest_step > 0:
            raise UsageError(f"The longest step must be positive, not {self.longest_step:g} s.")
        if self.name == "RK4" and not np.isfinite(self.longest_step):
            raise UsageError("RK4 has no step size control: give it a step, Method('RK4', longest_step=1e-3).")

    def solver(
        self, f: Rates, t: float, z: FloatArray, end: float, *, sizes: FloatArray, first_step: float | None = None
    ) -> integrate.OdeSolver:
        """Return scipy's ``OdeSolver`` for z' = f(t, z) from (t, z) to ``end``; by default f sets the first step."""
        if self.name == "RK4":
            return FixedRungeKutta4(f, t, z, end, step=self.longest_step)

        first = None if first_step is None else min(first_step, end - t)
        bounds = {"max_step": self.longest_step, "first_step": first if first else None}
        kind = DormandPrince853 if self.name == "DOP853" else getattr(integrate, self.name)
        return kind(f, t, z, end, rtol=self.relative, atol=self.absolute * sizes, **bounds)


def next_step(solver: Any) -> float | None:
    """Return the step that the solver wants to take next, in seconds; None when it does not say."""
    h = getattr(solver, "h_abs", None)
    return None if h is None or not np.isfinite(h) or h <= 0 else float(h)


def shift_solver(solver: Any, method: Method, f: Rates, z: FloatArray, sizes: FloatArray) -> Any:
    """Return a solver of z' = f(t, z) that goes on from z where ``solver`` goes on from its own, nearby state."""
    if method.name == "BDF":  # backward differences D[1:] stay when a constant is added to the solution
        solver.D[0] += z - solver.y
        solver.y = z
        return solver
    return method.solver(f, solver.t, z, solver.t_bound, sizes=sizes, first_step=next_step(solver))
