"""The check of a large model's derivatives: of its sparse equations, against a difference."""

from __future__ import annotations

import numpy as np

from fmilin.errors import NumericalError
from fmilin.linearization.linearization_context import SparseLinearizedPoint
from fmilin.tolerances import EPS, KINK_TOLERANCE, LARGE_MODEL_AGREEMENT_TOLERANCE, SMALLEST_DIVISOR

STEP = 1e-5  # of the difference that derivatives are compared with, in sizes of the states


def require_agreement(at: SparseLinearizedPoint) -> None:
    """Compare the derivatives of r - W w with a central difference, along one direction in which all columns take part.

    Raises NumericalError where they differ.
    """
    model, equations, w = at.model, at.equations, at.unknowns
    t, n, x, u = at.point.time, equations.n, at.point.states, at.point.inputs
    T, count = at.derivatives.T[0], len(u)
    along = np.block([[T, np.zeros((len(T), count))], [np.zeros((count, T.shape[1])), np.eye(count)]])
    sizes = np.concatenate((model.states.scales(x), np.maximum(np.abs(u), 1.0)))
    # any fixed direction that is not an axis: equal calls give equal results
    direction = along @ np.random.default_rng(7).uniform(0.5, 1.0, along.shape[1])
    direction /= np.max(np.abs(direction / sizes), initial=SMALLEST_DIVISOR)
    residuals, rounding = [], 0.0
    for sign in (1.0, -1.0):
        moved = np.concatenate((x, u)) + sign * STEP * direction
        W, r = equations.matrix(t, moved[: 2 * n], moved[2 * n :])
        residuals.append(r - W @ w)
        # the values near the point hold the rounding of their terms, over the step
        rounding = 1e2 * EPS / STEP * float(np.max(abs(W) @ np.abs(w), initial=0.0))
    exact, (ahead, behind) = equations.slopes(t, x, u, w) @ direction, residuals
    largest = float(np.max(np.abs(exact), initial=0.0))
    deviation = float(np.max(np.abs((ahead - behind) / (2 * STEP) - exact), initial=0.0))
    bend = float(np.max(np.abs(ahead + behind), initial=0.0)) / STEP  # at the point itself r - W w is zero
    if not (
        deviation <= LARGE_MODEL_AGREEMENT_TOLERANCE * largest + rounding
        and bend <= KINK_TOLERANCE / 4 * largest + rounding
    ):
        raise NumericalError(
            f"The exact derivatives of '{model.info.name}' deviate by {max(deviation, bend):.3g} from differences at "
            "this point: the equations have a kink or leave their domain here. Move the point a little, or use the "
            "derivatives on one side of it (one_sided=)."
        )
