"""Integrators of a fixed step: what each makes of a linear plant in one step, and the plant that belongs to a step.

With x' = A x + B u + f0, M = [A B f0; 0 0 0; 0 0 0] and inputs held over a step of h seconds, the step is a function of
h M alone: P = R(h M) = [Phi Gamma d; 0 1 0; 0 0 1]. Every method has a plant for every P, so that P alone does not tell
which method is inside (Hairer and Wanner, Solving Ordinary Differential Equations II, IV.2, for R of each method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import factorial

import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import Continuous, Sampled, matrix_logarithm
from fmilin.signals import FloatArray
from fmilin.tolerances import FAITHFUL

NEWTON_STEPS = 40


@dataclass(frozen=True)
class OneStepMethod:
    """A one-step method: R, its inverse, and its name in a sentence."""

    name: str
    step_matrix: Callable[[FloatArray], FloatArray]  # R(h M)
    plant_matrix: Callable[[FloatArray], FloatArray]  # h M with R(h M) = P
    key: str = ""  # by which a user names it
    is_usual: bool = True  # whether tools export it: others are named beside a usual one, and do not outweigh it
    evaluated: float = 0.5  # where in a step rates are taken, on average: 0 at its beginning, 1 at its end

    def plant_of(self, model: Sampled) -> FloatArray:
        """Return M = [A B f0; 0 0 0; 0 0 0] of the plant that this method steps as ``model`` does."""
        P = step_matrix_of(model)
        with np.errstate(all="ignore"):
            try:
                Z = self.plant_matrix(P)
                back = self.step_matrix(Z)
            except (np.linalg.LinAlgError, ValueError, OverflowError):
                raise NumericalError(f"No plant is stepped so by {self.name}.") from None
        worst = float(np.max(np.abs(back - P))) if np.isfinite(back).all() else np.inf
        if not worst <= FAITHFUL * float(np.max(np.abs(P))):
            raise NumericalError(f"No plant is stepped so by {self.name}.")
        return Z / model.step

    def step_of(self, M: FloatArray, step: float, order: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Phi, Gamma and the drift over a step of ``step`` seconds."""
        with np.errstate(all="ignore"):
            P = self.step_matrix(M * step)
        return P[:order, :order], P[:order, order:-1], P[:order, -1]


def step_matrix_of(model: Sampled) -> FloatArray:
    """Return P = [Phi Gamma d; 0 1 0; 0 0 1]."""
    n, k = model.order, model.B.shape[1]
    P = np.eye(n + k + 1)
    P[:n, :n], P[:n, n : n + k], P[:n, -1] = model.A, model.B, model.drift
    return P


def _polynomial(degree: int) -> Callable[[FloatArray], FloatArray]:
    """Return R(Z) = 1 + Z + ... + Z^degree/degree!, of explicit Runge-Kutta methods of that order and stages."""

    def value(Z: FloatArray) -> FloatArray:
        term, total = np.eye(len(Z)), np.eye(len(Z))
        for k in range(1, degree + 1):
            term = term @ Z / k
            total = total + term
        return total

    return value


def _polynomial_inverse(degree: int) -> Callable[[FloatArray], FloatArray]:
    """Return the Z with R(Z) = P that is nearest to log(P), by Newton's method."""
    # All iterates are functions of P and commute with it, so that the scalar iteration serves for matrices.
    value, slope = _polynomial(degree), _polynomial(degree - 1)

    def inverse(P: FloatArray) -> FloatArray:
        Z = matrix_logarithm(P)
        for _ in range(NEWTON_STEPS):
            change = np.linalg.solve(slope(Z), P - value(Z))
            Z = Z + change
            if float(np.max(np.abs(change))) <= np.finfo(float).eps * factorial(3) * float(np.max(np.abs(Z))):
                break
        return Z

    return inverse


def _implicit(Z: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(np.eye(len(Z)) - Z))


def _trapezoid(Z: FloatArray) -> FloatArray:
    one = np.eye(len(Z))
    return np.asarray(np.linalg.solve(one - Z / 2, one + Z / 2))


def _trapezoid_inverse(P: FloatArray) -> FloatArray:
    one = np.eye(len(P))
    return np.asarray(2.0 * np.linalg.solve((P + one).T, (P - one).T).T)


EXACT = OneStepMethod("a solver without visible error", lambda Z: np.asarray(linalg.expm(Z)), matrix_logarithm, "exact")
EXPLICIT_EULER = OneStepMethod(
    "the explicit Euler method", lambda Z: np.eye(len(Z)) + Z, lambda P: P - np.eye(len(P)), "euler", evaluated=0.0
)
IMPLICIT_EULER = OneStepMethod(
    "the implicit Euler method", _implicit, lambda P: np.eye(len(P)) - np.asarray(np.linalg.inv(P)), "implicit-euler",
    evaluated=1.0,
)  # fmt: skip
TRAPEZOID = OneStepMethod(
    "the trapezoidal rule (or the implicit midpoint rule)", _trapezoid, _trapezoid_inverse, "trapezoid"
)
HEUN = OneStepMethod("a Runge-Kutta method of order 2", _polynomial(2), _polynomial_inverse(2), "rk2")
RUNGE_KUTTA_3 = OneStepMethod("a Runge-Kutta method of order 3", _polynomial(3), _polynomial_inverse(3), "rk3")
RUNGE_KUTTA_4 = OneStepMethod("the Runge-Kutta method of order 4", _polynomial(4), _polynomial_inverse(4), "rk4")
INTEGRATORS = (EXPLICIT_EULER, RUNGE_KUTTA_4, TRAPEZOID, HEUN, IMPLICIT_EULER, RUNGE_KUTTA_3)
"""Methods whose step is a function of h M, the most usual first; the semi-implicit Euler method is not one of them."""


def sequential_euler(
    groups: Sequence[FloatArray], name: str, key: str = "", *, is_usual: bool = False, evaluated: float = 1.0
) -> OneStepMethod:
    """Return the Euler method that updates one group of states after another, each from the newest values.

    ``groups`` (n, n) project on the states of a group, along the others; their sum is the identity. The step is
    (1 + P_m Z) ... (1 + P_1 Z). Inputs do not change within a step.
    """

    def widen(group: FloatArray, size: int) -> FloatArray:
        wide = np.zeros((size, size))
        wide[: len(group), : len(group)] = group
        return wide

    def step_matrix(Z: FloatArray) -> FloatArray:
        updated = np.eye(len(Z))
        for group in groups:
            updated = updated + widen(group, len(Z)) @ Z @ updated
        return np.asarray(updated)

    def plant_matrix(P: FloatArray) -> FloatArray:
        change = P - np.eye(len(P))
        updated = np.eye(len(P))  # of the groups before, from the states at the beginning of the step
        Z = np.zeros_like(updated)
        for group in groups:
            wide = widen(group, len(P))
            Z = Z + np.linalg.solve(updated.T, (wide @ change).T).T
            updated = updated + wide @ change
        return Z

    return OneStepMethod(name, step_matrix, plant_matrix, key, is_usual, evaluated)


def semi_implicit_euler(first: FloatArray, *, positions_first: bool = False) -> OneStepMethod:
    """Return the Euler method that updates some states first, and the others from their new values.

    ``first`` (n, n) projects on the states that are updated first, along the others.
    """
    which = "positions first" if positions_first else "velocities first"
    key = "positions-first-euler" if positions_first else "semi-implicit-euler"
    name = f"the semi-implicit Euler method ({which})"
    # velocities first, accelerations are those of the beginning of the step
    evaluated = 1.0 if positions_first else 0.0
    groups = [first, np.eye(len(first)) - first]
    return sequential_euler(groups, name, key, is_usual=not positions_first, evaluated=evaluated)


def continuous_by(integrator: OneStepMethod, model: Sampled, exact: Continuous) -> Continuous:
    """Return the plant that an integrator steps as ``model`` does; C, D and T are those of ``exact``."""
    n = model.order
    M = integrator.plant_of(model)
    return replace(exact, A=M[:n, :n], B=M[:n, n:-1], f0=M[:n, -1])


def stepped_by(integrator: OneStepMethod, model: Continuous, step: float, reading: str) -> Sampled:
    """Return what an integrator makes of a plant in one step of ``step`` seconds."""
    n, k = model.B.shape
    M = np.zeros((n + k + 1, n + k + 1))
    M[:n, :n], M[:n, n : n + k], M[:n, -1] = model.A, model.B, model.f0
    A, B, drift = integrator.step_of(M, step, n)
    C, D = model.C, model.D
    if reading == "end of step":
        C, D = model.C @ A, model.C @ B + model.D
    return Sampled(A, B, C, D, step, reading, model.T, drift)
