"""The member of a family of solutions that is nearest to the guess.

Minimize |(z - z0) / s|^2 subject to r(z) = 0. Each step is the shortest one from z0 to the tangent of the family,
z = z0 - J^+ (r + J (z0 - z)), and Newton's method leads back to the family. Free inputs and parameters have large sizes
s: a guess is about where the states are.
"""

from dataclasses import replace

import numpy as np

from fmilin.numerics.balanced import balanced
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK, RANK_MEASURED
from fmilin.trimming.equations import Equations
from fmilin.trimming.newton import corrected
from fmilin.trimming.solver import Solution, assessed

STEPS = 30
SHORTENED = (1.0, 0.5, 0.25, 0.1)  # parts of a step that are tried until the distance falls
ARRIVED = 1e-9  # part of the distance by which a step must still shorten it
ACROSS = 1e-4  # part of the way to the guess that lies along the family where a point is the nearest
FREE_TO_MOVE = 1e6  # how much cheaper it is to move a free input or parameter than a state


def move_to_nearest(equations: Equations, solution: Solution) -> tuple[Solution, bool]:
    """Return the solution of a family nearest to the guess, and whether it is: no small move along the family helps."""
    unknowns, z0 = equations.unknowns, equations.unknowns.z0
    weights = np.full(len(unknowns), FREE_TO_MOVE)
    weights[unknowns.state_columns] = unknowns.sizes(z0)[unknowns.state_columns]
    z, exact = solution.z, solution.is_exact

    def distance(z: FloatArray) -> float:
        return float(np.linalg.norm((z - z0) / weights))

    for _ in range(STEPS):
        away = _way_along(equations, z, z0, weights, exact=exact)
        if np.linalg.norm(away / weights) <= 0.1 * ACROSS * distance(z):
            break
        for part in SHORTENED:
            ahead = corrected(equations, z + part * away, exact=exact)
            is_shorter = distance(ahead.z) < (1.0 - ARRIVED) * distance(z)
            if is_shorter and (np.abs(ahead.r) <= np.maximum(solution.allowed, 1e-8)).all():
                z = ahead.z
                break
        else:
            break
    if not np.array_equal(z, solution.z):
        moved = assessed(equations, z, exact=exact)
        if moved.is_zero:
            solution = replace(moved, tried=solution.tried)
    remaining = _way_along(equations, solution.z, z0, weights, exact=exact)
    small = max(ACROSS * distance(solution.z), 1e-9)
    return solution, bool(np.linalg.norm(remaining / weights) <= small)


def _way_along(equations: Equations, z: FloatArray, z0: FloatArray, weights: FloatArray, *, exact: bool) -> FloatArray:
    """Return the part of the way from z to z0 that lies along the family, (n,); nothing where bounds stop it."""
    unknowns = equations.unknowns
    J = np.nan_to_num(equations.jacobian(z, exact=exact)[0])
    form = balanced(J)
    limit = RANK if exact and not equations.moving else RANK_MEASURED
    along = form.columns[:, None] * form.null_space(limit) / weights[:, None]
    stopped = ((z <= unknowns.low) & (z0 < z)) | ((z >= unknowns.high) & (z0 > z))
    along = along[:, ~(np.abs(along[stopped]) > 1e-12).any(axis=0)]
    if not along.shape[1]:
        return np.zeros(len(z))
    basis = np.linalg.qr(along)[0]
    way: FloatArray = weights * (basis @ (basis.T @ ((z0 - z) / weights)))
    return way
