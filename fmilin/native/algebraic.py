"""Algebraic variables of a model written as Python functions: found by Newton's iteration at every point.

With residuals g(t, x, z, u) = 0 a complex step of x moves z by dz = -g_z^-1 dg, the implicit function theorem: where
the functions are analytic the completed vector (x, z) has it as its imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.signals import FloatArray, Signals
from fmilin.native.native_engine import Quantity
from fmilin.numerics.codegen.newton import Guess, Point, solved
from fmilin.numerics.saddle_point.factors import DenseFactors, Factors, require_regular

Array = NDArray[Any]
STEP = 1e-30  # of a complex step
DIFFERENCE = 6e-6  # of a central difference, in sizes


class Algebraic:
    """Which of some variables are algebraic, and the functions whose zeros they are."""

    def __init__(
        self,
        name: str,
        variables: Signals,
        residuals: Mapping[int, Callable[..., Any]],
        inputs: FloatArray,
        *,
        analytic: bool,
    ) -> None:
        self.name, self._names = name, tuple(variables.names[i] for i in residuals)
        self.kept = [i for i in range(len(variables)) if i not in residuals]
        self._positions, self._residuals = list(residuals), list(residuals.values())
        self._analytic = analytic
        self.quantities = [Quantity(variables[i], _variable(i)) for i in self._positions]
        starts, self._sizes = variables.starts, variables.scales()[self._positions]
        point = 0.0, starts[self.kept], inputs, np.empty(0)
        rough = Guess(starts[self._positions], self._sizes, *point, equations=self._names)
        w = solved(self._linearized, rough, point, name)[1]
        self._guess = Guess(w, self._sizes, *point, equations=self._names)

    def completed(self, t: float, x: Array, u: Array) -> Array:
        """Return states and algebraic variables together."""
        point = float(t), np.real(x), np.real(u), np.empty(0)
        factors, w = solved(self._linearized, self._guess, point, self.name)
        full = self._full(x, w)
        if np.iscomplexobj(x) or np.iscomplexobj(u):
            full[self._positions] += 1j * factors.solve(-np.imag(self._values(t, full, u)))
        return full

    def _full(self, x: Array, w: Array) -> Array:
        full = np.zeros(len(self.kept) + len(w), dtype=np.result_type(x, w))
        full[self.kept], full[self._positions] = x, w
        return full

    def _values(self, t: float, full: Array, u: Array) -> Array:
        return np.array([g(t, full, u) for g in self._residuals]).ravel()

    def _linearized(self, point: Point, w: FloatArray) -> tuple[Factors, FloatArray]:
        t, x, u, _ = point

        def values(z: Array) -> Array:
            return self._values(t, self._full(x, z), u)

        J = np.zeros((len(w), len(w)))
        for j in range(len(w)):
            if self._analytic:
                J[:, j] = np.imag(values(w + 1j * STEP * np.eye(len(w))[j])) / STEP
            else:
                h = DIFFERENCE * max(abs(w[j]), self._sizes[j])
                J[:, j] = (values(w + h * np.eye(len(w))[j]) - values(w - h * np.eye(len(w))[j])) / (2 * h)
        factors = DenseFactors(J)
        require_regular(factors, f"The algebraic equations of '{self.name}'", self._names, f"at time {t:g}")
        return factors, -values(w)


def _variable(i: int) -> Callable[[float, Array, Array], Any]:
    return lambda _t, x, _u: x[i]
