"""The equilibrium of a large model: F(q, 0, u) - G' lambda = 0 and g(q) = 0 by Newton's method on sparse matrices.

Its Jacobian, [[d(F - G' lambda)/dq, -G'], [G, 0]], is as sparse as the equations of motion.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.linearization.algorithm import check
from fmilin.linearization.request import Request
from fmilin.linearization.sparse_equations import compute_sparsely
from fmilin.manifold.operating_points import consistent_states
from fmilin.model.equations import SparseEquations
from fmilin.model.interface import Model
from fmilin.numerics.balanced import TERMS_ROUNDED
from fmilin.numerics.certificate import Certificate
from fmilin.numerics.newton import BoolArray, IntArray, NewtonRules, follow_zeros
from fmilin.signals import FloatArray
from fmilin.tolerances import BALANCED_EXACTLY, DETERMINED, EQUILIBRIUM
from fmilin.trimming.report import TrimmedPoint, TrimReport
from fmilin.trimming.request import TrimRequest
from fmilin.trimming.stable_equilibrium import BLURRED, MOST_STATES, judge_growth

NEWTON_RULES = NewtonRules(iterations=60, trust_radius=0.2, is_compared=False, polishing_steps=1)
"""What lies farther away than the trust radius, in sizes of the coordinates, is another equilibrium."""
ROUNDED = 1e-9  # steps, in sizes of the coordinates, that may be rounding
TINY = 1e-15  # of the size of a state: rounding, shown as 0


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
    computed = compute_sparsely(model, equations, point, Request())
    if computed is None:
        return point
    return replace(point, report=judge_growth(check(computed).A, BLURRED[True]).add_to(point.report))


def _solve_equilibrium(
    equations: SparseEquations, t: float, x: FloatArray, u: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the states at rest by Newton's method, the Newton step there, and bounds of how far the solution may be.

    The bounds are infinite where nothing says that there is a solution.
    """
    n = equations.n
    system = SparseBalance(equations, t, x, u, sizes)
    W, r = equations.matrix(t, x, u)
    w = equations.solver(W).solve(r)  # multipliers start as those of the motion from rest
    result = follow_zeros(system, np.concatenate((x[:n] / sizes[:n], w[n:]))[None], NEWTON_RULES)
    z, step, bound = system.certify(result.z[0])
    at_rest = np.zeros(len(x) - n)
    states = np.concatenate((z[:n] * sizes[:n], at_rest))
    distance = bound if result.has_converged[0] else np.full(n, np.inf)
    return states, np.concatenate((step, at_rest)), np.concatenate((distance, at_rest))


class SparseBalance:
    """The equations of an equilibrium in unknowns z = (q / sizes, lambda), with sparse factors of their Jacobian.

    Steps are full ones, shortened to the trust radius: far from an equilibrium residuals of stiff structures grow
    before they fall.
    """

    def __init__(self, equations: SparseEquations, t: float, x: FloatArray, u: FloatArray, sizes: FloatArray) -> None:
        self._equations, self._time, self._inputs = equations, t, u
        self._at_rest = np.zeros(len(x) - equations.n)
        self._n, self._sizes = equations.n, sizes[: equations.n]
        self._matrix: Any = None
        self._factors: Any = None

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the unknowns: they have no bounds."""
        return z

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals (j, n + m)."""
        return np.array([self._compute_residual(row) for row in z])

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Factorize the Jacobian; False where it is singular."""
        from scipy import sparse

        n, equations = self._n, self._equations
        self._factors = None
        for row in z:
            x = self._read_states(row)
            W, _ = equations.matrix(self._time, x, self._inputs)
            G = W[n:, :n]
            unknowns = np.concatenate((np.zeros(n), row[n:]))
            stiffness = equations.slopes(self._time, x, self._inputs, unknowns)[:n, :n]
            self._matrix = sparse.block_array([[stiffness, -G.T], [G, None]], format="csc")
            with suppress(NumericalError):
                self._factors = equations.solver(self._matrix)
        return np.full(len(points), self._factors is not None)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the corrections (j, n + m); NaN without factors."""
        if self._factors is None:
            return np.full_like(r, np.nan)
        steps = np.array([self._factors.solve(-row) for row in r])
        steps[:, : self._n] /= self._sizes
        return steps

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest change of a coordinate; multipliers enter affinely, and go as far as they must."""
        return np.asarray(np.max(np.abs(step[:, : self._n]), axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where the step that would follow may be rounding."""
        return np.asarray(self.measure(points, self.correct(points, r)) <= ROUNDED)

    def certify(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return z (n + m,) one step nearer, the Newton step of the coordinates there, and bounds of their distance.

        The bounds (n,) are infinite where nothing says that there is a solution.
        """
        n, one = self._n, np.arange(1)
        nowhere = np.full(n, np.inf)
        if not self.differentiate(one, z[None], self.values(one, z[None]))[0]:
            return z, nowhere, nowhere
        step = self.correct(one, self.values(one, z[None]))[0]
        nearer = z + step
        following = self.correct(one, self.values(one, nearer[None]))[0, :n]
        last, next_length = (float(np.max(np.abs(part), initial=0.0)) for part in (step[:n], following))
        # The next step is a quarter of the last one, up to rounding, where K |d| <= 1/2: see
        # :mod:`fmilin.numerics.certification`.
        ratio = next_length / max(last, 1e-300)
        if not (ratio <= 0.25 or next_length <= ROUNDED):  # NaN is neither
            return nearer, following * self._sizes, nowhere
        further = np.abs(following) / (1 - min(ratio, 0.9))
        lengths = np.concatenate((np.maximum(np.abs(nearer[:n]), 1.0) * self._sizes, np.abs(nearer[n:])))
        terms = abs(self._matrix) @ lengths
        signs = np.where(np.arange(len(terms)) % 2, -1.0, 1.0)
        blurred = sum(np.abs(self._factors.solve(TERMS_ROUNDED * s * terms))[:n] for s in (1.0, signs))
        bound = 2 * (np.abs(step[:n]) + further) * self._sizes + blurred + TERMS_ROUNDED * self._sizes
        return nearer, following * self._sizes, bound

    def _read_states(self, z: FloatArray) -> FloatArray:
        return np.concatenate((z[: self._n] * self._sizes, self._at_rest))

    def _compute_residual(self, z: FloatArray) -> FloatArray:
        equations, n, x = self._equations, self._n, self._read_states(z)
        W, r = equations.matrix(self._time, x, self._inputs)
        G = W[n:, :n]
        residuals = equations.residuals(self._time, x, self._inputs)[: G.shape[0]]
        return np.concatenate((r[:n] - G.T @ z[n:], residuals))
