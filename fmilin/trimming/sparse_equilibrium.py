"""The equilibrium of a large model: F(q, 0, u) - G' lambda = 0 and g(q) = 0 by Newton's method on sparse matrices.

Its Jacobian, [[d(F - G' lambda)/dq, -G'], [G, 0]], is as sparse as the equations of motion.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.linearization.lagrange import by_sparse_equations
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import consistent_states
from fmilin.model.equations import SparseEquations
from fmilin.model.interface import Model
from fmilin.numerics.balanced import TERMS_ROUNDED
from fmilin.numerics.certificate import Certificate
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, DETERMINED, EQUILIBRIUM
from fmilin.trimming.report import TrimmedPoint, TrimReport
from fmilin.trimming.request import TrimRequest
from fmilin.trimming.stable_equilibrium import BLURRED, MOST_STATES, judge_growth

ITERATIONS = 60
ROUNDED = 1e-9  # steps, in sizes of the coordinates, that may be rounding
TINY = 1e-15  # of the size of a state: rounding, shown as 0
LONGEST = 0.2  # of a step, in sizes of the coordinates: what lies farther away is another equilibrium


def can_search_sparse(model: Model, request: TrimRequest) -> bool:
    """Whether the states are all that is solved for, and none of them moves or is held."""
    fixed = all(model.inputs.has(name) for name in request.fixed)
    return fixed and request.is_plain and not (request.steady or request.free)


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
        x, step, distance = _solve_equilibrium(equations, t, x, u, sizes)
        W, r = equations.matrix(t, x, u)
        accelerations: FloatArray = equations.solver(W).solve(r)[: equations.n]
        rates = np.concatenate((x[n:], accelerations))
    except NumericalError:
        return None
    x = np.where(np.abs(x) < TINY * sizes, 0.0, x)
    residual = float(np.max(np.abs(rates) / sizes, initial=0.0))
    if not (residual <= EQUILIBRIUM and (distance <= DETERMINED * sizes).all()):
        return None
    names = model.states.names, model.inputs.names
    certificate = Certificate(
        residual=residual,
        step=dict(zip(names[0], step.tolist(), strict=True)),
        distance=dict(zip(names[0], distance.tolist(), strict=True)),
        sizes=dict(zip(names[0], model.states.scales().tolist(), strict=True)),
    )
    exact = residual <= BALANCED_EXACTLY
    report = TrimReport(model.states, model.inputs, rates, certificate, exact=exact)
    parameters = dict(model.start.parameters)
    point = TrimmedPoint(time=t, states=x, inputs=u, parameters=parameters, names=names, report=report, request=request)
    return _with_stability(model, equations, point) if len(x) <= MOST_STATES else point


def _with_stability(model: Model, equations: SparseEquations, point: TrimmedPoint) -> TrimmedPoint:
    """Return the point with what the eigenvalues of its linear model say."""
    linear = by_sparse_equations(model, equations, point, Request())
    if linear is None:
        return point
    return replace(point, report=judge_growth(linear.A, BLURRED[True]).add_to(point.report))


def _solve_equilibrium(
    equations: SparseEquations, t: float, x: FloatArray, u: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the states at rest by Newton's method, its last step, and bounds of how far the solution may be.

    The bounds are infinite where nothing says that there is a solution.
    """
    from scipy import sparse

    n = equations.n
    W, r = equations.matrix(t, x, u)
    w = equations.solver(W).solve(r)  # multipliers start as those of the motion from rest
    multipliers, previous = w[n:], np.inf
    distance, last_step = np.full(len(x), np.inf), np.full(len(x), np.inf)
    for _ in range(ITERATIONS):
        W, r = equations.matrix(t, x, u)
        G = W[n:, :n]
        unknowns = np.concatenate((np.zeros(n), multipliers))
        stiffness = equations.slopes(t, x, u, unknowns)[:n, :n]
        matrix = sparse.block_array([[stiffness, -G.T], [G, None]], format="csc")
        J = equations.solver(matrix)
        step = J.solve(-_compute_residual(equations, t, x, u, multipliers))
        last = float(np.max(np.abs(step[:n]) / sizes[:n], initial=0.0))
        if not np.isfinite(last):
            break
        last_step = np.concatenate((step[:n], np.zeros(len(x) - n)))
        fraction = min(1.0, LONGEST / last) if last > 0 else 1.0
        x = x.copy()
        x[:n] += fraction * step[:n]
        multipliers = multipliers + fraction * step[n:]
        if last <= 1e-14 or (last < 1e-9 and last >= 0.5 * previous):
            following = J.solve(-_compute_residual(equations, t, x, u, multipliers))[:n]
            # It is a quarter of the last step, up to rounding, where K |d| <= 1/2: see
            # :mod:`fmilin.numerics.certification`.
            ratio = float(np.max(np.abs(following) / sizes[:n], initial=0.0)) / max(last, 1e-300)
            if ratio <= 0.25 or ratio * last <= ROUNDED:
                further = np.abs(following) / (1 - min(ratio, 0.9))
                terms = abs(matrix) @ np.concatenate((np.maximum(np.abs(x[:n]), sizes[:n]), np.abs(multipliers)))
                signs = np.where(np.arange(len(terms)) % 2, -1.0, 1.0)
                blurred = sum(np.abs(J.solve(TERMS_ROUNDED * s * terms))[:n] for s in (1.0, signs))
                bound = 2 * (np.abs(step[:n]) + further) + blurred + TERMS_ROUNDED * sizes[:n]
                distance = np.concatenate((bound, np.zeros(len(x) - n)))
            break
        previous = last
    return x, last_step, distance


def _compute_residual(
    equations: SparseEquations, t: float, x: FloatArray, u: FloatArray, multipliers: FloatArray
) -> FloatArray:
    W, r = equations.matrix(t, x, u)
    G, n = W[equations.n :, : equations.n], equations.n
    return np.concatenate((r[:n] - G.T @ multipliers, equations.residuals(t, x, u)[: G.shape[0]]))
