"""Is the declared manifold really where the model moves? H f = 0 at the point and beside it, and no input leaves it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.derivatives.differences import jacobian_by_differences
from fmilin.errors import ConstraintError, ModelError, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.rank import EXACT, MEASURED, decide_rank, scaled
from fmilin.signals import FloatArray

__all__ = ["Verified", "conserved_quantities", "input_gradient", "verify_invariance"]

BESIDE = 1e-3
"""How far beside the point the motion is checked, in sizes of the states."""

SAMPLES = 3


@dataclass(frozen=True, slots=True)
class Verified:
    """What the check found.

    Attributes
    ----------
    points : int
        Points that were really checked: the point itself and those beside it.
    largest : float
        The largest |H f| relative to |H| |f|.
    """

    points: int
    largest: float


def verify_invariance(parametrization: LocalParametrization, input_gradient: FloatArray | None) -> Verified:
    """Check that the motion keeps every invariant, also beside the point (Spencer eq. 4.5), and no input breaks it.

    Parameters
    ----------
    parametrization : LocalParametrization
    input_gradient : array, shape (N, nu), or None
        f_u at the point.

    Raises
    ------
    ConstraintError
        Naming the constraint that is no invariant, by how much, and the input that breaks it.
    NumericalError
        When fewer constraints are independent at the point than beside it: a singular configuration.
    """
    invariants = parametrization.invariants
    t = parametrization.time
    samples = [parametrization.x0, *_beside(parametrization)]
    rates, gradients = [], []
    for x in samples:
        rates.append(invariants.model.evaluate(t, x, invariants.inputs).derivatives)
        gradients.append(invariants.gradient(t, x))
    typical = np.max(np.abs(rates), axis=0)
    violation, ranks = np.zeros(len(invariants)), []
    measured = any(g.error.any() for g in gradients)
    level = MEASURED if measured else EXACT
    fastest = float(np.max(typical / invariants.scales, initial=0.0))
    for x, f, g in zip(samples, rates, gradients, strict=True):
        h_t = invariants.time_derivative(t, x)
        drift = np.abs(g.H @ f + h_t)
        size = np.abs(g.H) @ np.maximum(np.abs(f), 1e-3 * typical) + np.abs(h_t)
        size = np.maximum(size, 1e-3 * fastest * g.reference)  # a row that cancelled to rounding proves nothing
        violation = np.maximum(violation, np.where(size > 0, drift / np.where(size > 0, size, 1.0), 0.0))
        ranks.append(decide_rank(scaled(g.H, invariants.scales, g.reference, g.error), level).rank)
    tolerance = 1e-4 if measured else 1e-6
    if max(ranks) > ranks[0]:
        _refuse_singular(parametrization, ranks[0], max(ranks))
    _refuse(invariants, violation, tolerance)
    _check_inputs(invariants, gradients[0].H, input_gradient, tolerance)
    return Verified(len(samples), float(np.max(violation, initial=0.0)))


def conserved_quantities(parametrization: LocalParametrization) -> list[str]:
    """Return the invariants that are curved in the velocities, as energies are and constraints are not."""
    invariants = parametrization.invariants
    x, t = parametrization.x0, parametrization.time
    velocities = sorted(set(invariants.pairs.values()))
    if not velocities or not len(invariants):
        return []
    step = np.zeros_like(x)
    step[velocities] = 0.1 * invariants.scales[velocities]
    bend = invariants.values(t, x + step) + invariants.values(t, x - step) - 2 * invariants.values(t, x)
    size = np.abs(parametrization.gradient.H) @ invariants.scales + np.abs(invariants.values(t, x + step))
    declared = [i for i in parametrization.rows if i < invariants.declared]
    return [invariants.names[i] for i in declared if abs(bend[i]) > 1e-6 * max(size[i], 1e-300)]


def _beside(parametrization: LocalParametrization) -> list[FloatArray]:
    """Return points of the manifold close to x0, in random directions; fewer where the model cannot go."""
    random = np.random.default_rng(2011)
    p = len(parametrization.y0)
    y_scales = np.abs(parametrization.coordinates.R) @ parametrization.invariants.scales
    points = []
    for _ in range(SAMPLES if p else 0):
        dy = BESIDE * y_scales * random.uniform(-1.0, 1.0, p)
        for _ in range(4):
            try:
                x = parametrization.psi(parametrization.y0 + dy)
                f = parametrization.invariants.model.evaluate(
                    parametrization.time, x, parametrization.invariants.inputs
                )
            except (ModelError, NumericalError):
                dy = dy / 16
                continue
            if np.isfinite(f.derivatives).all():
                points.append(x)
                break
            dy = dy / 16
    return points


def _refuse(invariants: Invariants, violation: FloatArray, tolerance: float) -> None:
    bad = {n: float(v) for n, v in zip(invariants.names, violation, strict=True) if not v <= tolerance}
    if not bad:
        return
    worst = sorted(bad.items(), key=lambda item: -item[1])[:4]
    listed = "; ".join(f"'{name}' changes at {value:.3g} of the size of its terms" for name, value in worst)
    raise ConstraintError(
        f"The model's motion does not keep these constraints: {listed} (a constraint would stay below {tolerance:g}). "
        "They are no invariants of this model: look for a typo, a wrong parameter, or a quantity that is conserved "
        'only in special cases; a velocity-level constraint needs level = "velocity".',
        residuals=bad,
    )


def _refuse_singular(parametrization: LocalParametrization, rank: int, beside: int) -> None:
    names = parametrization.invariants.names
    others = [names[i] for i in range(len(names)) if i not in parametrization.rows]
    raise NumericalError(
        f"The point is a singular configuration: here only {rank} constraints are independent, beside it {beside} "
        f"(dependent here: {', '.join(others[:4])}). Branches of motion cross and the feasible motions form no vector "
        "space, so there is no linear model of them. Choose a point beside it with --set."
    )


def _check_inputs(invariants: Invariants, H: FloatArray, f_u: FloatArray | None, tolerance: float) -> None:
    """H f_u = 0: an input that moves the states off the manifold is no input of a constrained model."""
    if f_u is None or f_u.shape[1] == 0:
        return
    through = np.abs(H @ f_u)
    size = np.abs(H) @ np.abs(f_u)
    relative = np.where(size > 0, through / np.where(size > 0, size, 1.0), 0.0)
    bad = [(int(i), int(j)) for i, j in zip(*np.nonzero(relative > tolerance), strict=True)]
    if bad:
        i, j = max(bad, key=lambda ij: relative[ij])
        raise ConstraintError(
            f"The input '{invariants.model.inputs.names[j]}' moves the model off the constraint "
            f"'{invariants.names[i]}' (at {relative[i, j]:.3g} of the size of its terms): either this is a conserved "
            "quantity or no constraint at all, or the input prescribes a motion, which is not supported yet.",
            residuals={invariants.names[i]: float(relative[i, j])},
        )


def input_gradient(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return f_u, shape (N, nu): exact where the model says, else differenced."""
    model, u = invariants.model, invariants.inputs
    n, k = len(x), len(u)
    exact = model.products(t, x, u, np.zeros((n, k)), np.eye(k)) if k else None
    if exact is not None and np.isfinite(exact.derivatives).all():
        return exact.derivatives
    if not k:
        return np.empty((n, 0))
    return jacobian_by_differences(lambda v: model.evaluate(t, x, v).derivatives, u, model.inputs.scales(u))[0]
