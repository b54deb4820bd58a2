"""Which integrator, with which tolerances: scipy's, and the classical Runge-Kutta method with a fixed step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.numerics.steps import Rates

METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4")
"""Explicit ones of orders 8, 5 and 3, two for stiff models, and RK4 with a fixed step."""

_FINEST = 1e-13


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
            raise UsageError(f"'{self.name}' is no integration method: use {', '.join(METHODS)}.")
        if not (_FINEST <= self.relative < 1 and 0 < self.absolute < np.inf):
            raise UsageError(
                f"Tolerances of {self.relative:g} (relative) and {self.absolute:g} (absolute) cannot be reached: the "
                f"relative one is {_FINEST:g} or more and less than 1, the absolute one positive."
            )
        if not self.longest_step > 0:
            raise UsageError(f"The longest step is positive, not {self.longest_step:g} s.")
        if self.name == "RK4" and not np.isfinite(self.longest_step):
            raise UsageError("RK4 has no step size control: give it a step, Method('RK4', longest_step=1e-3).")

    def solver(
        self, f: Rates, t: float, z: FloatArray, end: float, *, sizes: FloatArray, first_step: float | None = None
    ) -> Any:
        """Return scipy's ``OdeSolver`` for z' = f(t, z) from (t, z) to ``end``; by default f sets the first step."""
        if self.name == "RK4":
            from fmilin.motion.simulation.fixed_step import FixedRungeKutta4

            return FixedRungeKutta4(f, t, z, end, step=self.longest_step)
        from scipy import integrate  # slow to import, and most linear models need none of it

        first = None if first_step is None else min(first_step, end - t)
        bounds = {"max_step": self.longest_step, "first_step": first if first else None}
        kind = getattr(integrate, self.name)
        return kind(f, t, z, end, rtol=self.relative, atol=self.absolute * sizes, **bounds)


def next_step(solver: Any) -> float | None:
    """Return the step that the solver wants to take next, in seconds; None when it does not say."""
    h = getattr(solver, "h_abs", None)
    return None if h is None or not np.isfinite(h) or h <= 0 else float(h)


def moved(solver: Any, method: Method, f: Rates, z: FloatArray, sizes: FloatArray) -> Any:
    """Return a solver of z' = f(t, z) that goes on from z where ``solver`` goes on from its own, nearby state."""
    if method.name == "BDF":  # backward differences D[1:] stay when a constant is added to the solution
        solver.D[0] += z - solver.y
        solver.y = z
        return solver
    return method.solver(f, solver.t, z, solver.t_bound, sizes=sizes, first_step=next_step(solver))
