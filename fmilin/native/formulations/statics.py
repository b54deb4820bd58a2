"""Static equilibria with their multipliers, and the slightly different ones of a penalized system.

Newton's method on (q, lambda) of f(q, 0, t, u) - Phi_q' lambda = 0, Phi(q, t) = 0,

    [  K    Phi_q' ] [   dq    ]   [ f - Phi_q' lambda ]
    [ Phi_q    0   ] [ dlambda ] = [       -Phi        ]

takes the least-norm solution where the matrix is singular: with redundant constraints, and at singular configurations,
where the multipliers are underdetermined and the posture is not (González et al., section 5.1). A penalized system
needs Phi = lambda/(alpha omega^2) to carry lambda: its equilibrium is displaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import BALANCED, PSEUDO_INVERSE
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint, SecondOrderForm
from fmilin.native.formulations.form import rank_of
from fmilin.native.formulations.formulation import UCS
from fmilin.native.formulations.of_model import constraint_values, second_order

TOLERANCE = 1e-12  # steps below this, in sizes of the coordinates, end the search
FARTHEST = 0.1  # A penalized system that rests farther away than this, in sizes of the coordinates, is another system

MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A static equilibrium."""

    point: OperatingPoint  # at rest
    # (m,), lambda, in the order of the constraints; of least norm where ``rank`` is less than m
    multipliers: FloatArray
    rank: int  # how many constraints are independent there
    steps: int  # of Newton's method

    @property
    def is_determinate(self) -> bool:
        """Whether the multipliers are determined."""
        return self.rank == len(self.multipliers)


def equilibrium(
    model: Model, guess: Mapping[str, float] | OperatingPoint | None = None, *, time: float | None = None
) -> Equilibrium:
    """Return the static equilibrium, inputs held, near a guess, with multipliers, also of redundant constraints.

    >>> from fmilin.systems import four_bar
    >>> found = equilibrium(four_bar(), {"phi": 2.0})
    >>> round(float(found.point.states[4]), 9), found.rank
    (2.234331019, 4)
    """
    if model.constraints.time_dependent:
        raise UsageError(
            f"The constraints of '{model.info.name}' contain time: they move, and there is no static equilibrium. The "
            "formulations take any consistent point; choose one with --set and --time."
        )
    point = guess if isinstance(guess, OperatingPoint) else operating_point(model, guess, time=time)
    form, x = second_order(model, point), point.states.copy()
    x[form.velocities] = 0.0
    point = point.with_states(x)
    sizes = model.states.scales(x)[form.positions]
    step, converged = 0, False
    while not converged and step < MOST_STEPS:
        step += 1
        form, Phi = second_order(model, point), constraint_values(model, point)
        # M q'' with the least-norm q'' of the form is f - Phi_q' lambda, and Phi_q q'' = 0 at rest.
        unbalanced = form.M @ form.accelerations
        dq = _newton_step(form, np.concatenate((unbalanced, -Phi)), sizes)
        point = _moved(point, form, _damped(dq, sizes))
        converged = bool(np.max(np.abs(dq) / sizes, initial=0.0) < TOLERANCE)
    form = second_order(model, point)
    rest = np.abs(form.accelerations) / sizes
    if not converged or np.max(rest, initial=0.0) > BALANCED * _stiffness(form, sizes):
        fastest = model.states.names[int(form.positions[int(np.argmax(rest))])]
        raise NumericalError(
            f"Near the guess no equilibrium of '{model.info.name}' was found: where the search ends, '{fastest}' still "
            f"accelerates at {np.max(np.abs(form.accelerations)):.3g}. Start nearer to one with other values, or leave "
            "the point where it is: the formulations take any consistent point."
        )
    return Equilibrium(point, form.multipliers, rank_of(form.G * sizes), step)


def penalized_equilibrium(model: Model, point: OperatingPoint, options: UCS) -> OperatingPoint:
    """Return where the penalized system rests, f = alpha omega^2 Phi_q' Phi, next to an equilibrium of the model."""
    compliance = 1.0 / (options.alpha * options.omega**2)
    q0 = point.states[second_order(model, point).positions]
    sizes = model.states.scales(point.states)[second_order(model, point).positions]
    for _ in range(MOST_STEPS):
        form, Phi = second_order(model, point), constraint_values(model, point)
        # K dq + Phi_q' lambda_new = f + ..: with the form's own lambda, Phi = compliance lambda at the solution.
        upper = form.M @ form.accelerations + form.G.T @ (form.multipliers - Phi / compliance)
        right = np.concatenate((upper, np.zeros(len(Phi))))
        dq = _newton_step(form, right, sizes, compliance)
        point = _moved(point, form, _damped(dq, sizes))
        displaced = np.max(np.abs(point.states[form.positions] - q0) / sizes, initial=0.0)
        if displaced > FARTHEST:
            break
        if np.max(np.abs(dq) / sizes, initial=0.0) < TOLERANCE:
            return point
    raise NumericalError(
        f"The penalized system has no equilibrium near that of the model: alpha = {options.alpha:g} and omega = "
        f"{options.omega:g} are too small to hold it together. Take larger ones."
    )


def _newton_step(form: SecondOrderForm, right: FloatArray, sizes: FloatArray, compliance: float = 0.0) -> FloatArray:
    """Return dq of least norm, in sizes of the coordinates."""
    n, m = len(sizes), len(form.G)
    K, G = -form.force_states[:, form.positions], form.G * sizes
    force = max(float(np.max(np.abs(K), initial=0.0)), 1e-300)
    soft = 1.0 / np.sqrt(max(1.0, compliance * force))  # multipliers scaled so that they do not swamp K
    saddle = np.zeros((n + m, n + m))
    saddle[:n, :n] = sizes[:, None] * K * sizes / force
    saddle[:n, n:], saddle[n:, :n] = soft * G.T, soft * G
    saddle[n:, n:] = -compliance * force * soft**2 * np.eye(m)
    right = np.concatenate((sizes * right[:n] / force, soft * right[n:]))
    step: FloatArray = linalg.lstsq(saddle, right, cond=PSEUDO_INVERSE)[0][:n]
    return sizes * step


def _stiffness(form: SecondOrderForm, sizes: FloatArray) -> float:
    """Return what accelerations come from a displacement by the size of a coordinate, in sizes per s^2; at least 1."""
    K = np.abs(form.force_states[:, form.positions]) * sizes
    mass = np.maximum(np.abs(np.diagonal(form.M)), 1e-12 * np.max(np.abs(form.M), initial=0.0))
    return float(np.max(np.max(K, axis=1, initial=0.0) / mass / sizes, initial=1.0))


def _damped(dq: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the step, no longer than half the size of a coordinate."""
    longest = float(np.max(np.abs(dq) / sizes, initial=0.0))
    return dq if longest <= 0.5 else dq * (0.5 / longest)


def _moved(point: OperatingPoint, form: SecondOrderForm, dq: FloatArray) -> OperatingPoint:
    x = point.states.copy()
    x[form.positions] += dq
    return point.with_states(x)
