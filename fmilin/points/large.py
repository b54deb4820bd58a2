"""The equilibrium of a large model: F(q, 0, u) - G' lambda = 0 and g(q) = 0 by Newton's method on sparse matrices.

Its Jacobian, [[d(F - G' lambda)/dq, -G'], [G, 0]], is as sparse as the equations of motion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fmilin.ground.errors import ConstraintError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import BALANCED_EXACTLY, EQUILIBRIUM
from fmilin.manifold.operating_points import consistent_states
from fmilin.model.interface import Model
from fmilin.model.sparse import SparseEquations
from fmilin.points.report import TrimmedPoint, TrimReport
from fmilin.points.request import TrimRequest

ITERATIONS = 60

LONGEST = 0.2  # of a step, in sizes of the coordinates: what lies farther away is another equilibrium


def answers(model: Model, request: TrimRequest) -> bool:
    """Whether the states are all that is solved for, and none of them moves or is held."""
    fixed = all(model.inputs.has(name) for name in request.fixed)
    return fixed and not (request.steady or request.free or request.bounds)


def search_sparse(
    model: Model, equations: SparseEquations, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool
) -> TrimmedPoint | None:
    """Return the equilibrium that Newton's method finds from the guess; None without one, or with a whole family."""
    n, t = equations.n, model.start.time if request.time is None else request.time
    x, u = model.start.states.copy(), model.start.inputs.copy()
    held = []
    for name, value in {**request.fixed, **guess}.items():
        if model.states.has(name):
            held.append(model.states.positions[name])
            x[held[-1]] = value
        else:
            u[model.inputs.positions[name]] = value
    try:
        x = consistent_states(model, equations, t, x, u, held, project=anywhere)
    except ConstraintError:
        if not held:
            raise
        x = consistent_states(model, equations, t, x, u, (), project=True)  # a guess need not be kept
    x[n:] = 0.0
    sizes = model.states.scales(x)
    try:
        x = _balanced(equations, t, x, u, sizes)
        rates = np.concatenate((x[n:], _accelerations(equations, t, x, u)))
    except NumericalError:
        return None
    residual = float(np.max(np.abs(rates) / sizes, initial=0.0))
    if not residual <= EQUILIBRIUM:
        return None
    report = TrimReport(model.states, model.inputs, rates, residual, exact=residual <= BALANCED_EXACTLY)
    return TrimmedPoint(time=t, states=x, inputs=u, parameters=dict(model.start.parameters), report=report)


def _accelerations(equations: SparseEquations, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    W, r = equations.matrix(t, x, u)
    accelerations: FloatArray = equations.solver(W).solve(r)[: equations.n]
    return accelerations


def _balanced(equations: SparseEquations, t: float, x: FloatArray, u: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the states at rest by Newton's method; multipliers start as those of the motion from rest, W w = r."""
    from scipy import sparse

    n = equations.n
    W, r = equations.matrix(t, x, u)
    w = equations.solver(W).solve(r)
    multipliers, previous = w[n:], np.inf
    for _ in range(ITERATIONS):
        W, r = equations.matrix(t, x, u)
        G = W[n:, :n]
        unknowns = np.concatenate((np.zeros(n), multipliers))
        stiffness = equations.slopes(t, x, u, unknowns)[:n, :n]
        J = sparse.block_array([[stiffness, -G.T], [G, None]], format="csc")
        force, gap = r[:n] - G.T @ multipliers, equations.residuals(t, x, u)[: G.shape[0]]
        step = equations.solver(J).solve(-np.concatenate((force, gap)))
        last = float(np.max(np.abs(step[:n]) / sizes[:n], initial=0.0))
        if not np.isfinite(last):
            break
        fraction = min(1.0, LONGEST / last) if last > 0 else 1.0
        x = x.copy()
        x[:n] += fraction * step[:n]
        multipliers = multipliers + fraction * step[n:]
        if last <= 1e-14 or (last < 1e-9 and last >= 0.5 * previous):
            break
        previous = last
    return x
