"""The equilibrium of a large model: F(q, 0, u) - G' lambda = 0 and g(q) = 0 by Newton's method on sparse matrices.

Its Jacobian, [[d(F - G' lambda)/dq, dF/du, -G'], [G, 0, 0]] with the columns of free coordinates and free inputs,
is as sparse as the equations of motion. As many inputs are free as coordinates are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.linearization.algorithm import check
from fmilin.linearization.request import Request
from fmilin.linearization.sparse_equations import compute_sparsely
from fmilin.manifold.operating_points import consistent_states
from fmilin.model.equation_forms import SparseEquations
from fmilin.model.interface import Model
from fmilin.numerics.balanced import TERMS_ROUNDED
from fmilin.numerics.certificate import Certificate
from fmilin.numerics.newton import BoolArray, IntArray, NewtonRules, follow_zeros
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, EXACT_BALANCE_TOLERANCE, TRIM_DISTANCE_TOLERANCE
from fmilin.trimming.stable_equilibrium import BLURRED, MAX_STATES, judge_growth
from fmilin.trimming.trim_report import TrimmedPoint, TrimReport
from fmilin.trimming.trim_request import TrimRequest

NEWTON_RULES = NewtonRules(iterations=60, trust_radius=0.2, is_compared=False, polishing_steps=1)
"""The trust radius, in sizes of the coordinates: solutions farther away are other equilibria."""
ACCELERATION_ROUNDING_FACTOR = 4.0  # times what rounding of all terms makes of accelerations, that is not motion
ROUNDING_STEP_SIZE = 1e-9  # steps, in sizes of the coordinates, that may be rounding
ROUNDED_STATE_SIZE = 1e-15  # of the size of a state: rounding, shown as 0


def can_search_sparse(model: Model, equations: SparseEquations, request: TrimRequest) -> bool:
    """Whether states and inputs are all that is solved for, none moves, and as many inputs are free as are needed."""
    fixed = [name for name in request.fixed if not model.inputs.has(name)]
    are_coordinates = all(model.states.has(name) and model.states.positions[name] < equations.n for name in fixed)
    are_inputs = all(model.inputs.has(name) for name in request.free)
    is_square = are_coordinates and are_inputs and len(fixed) == len(request.free)
    return is_square and request.is_plain and not request.steady


def search_sparse(
    model: Model, equations: SparseEquations, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool
) -> TrimmedPoint | None:
    """Return the equilibrium that Newton's method finds from the guess; None without one, or with a whole family."""
    n, t = equations.n, model.start.time if request.time is None else request.time
    x, u = model.start.states.copy(), model.start.inputs.copy()
    fixed_names = []
    for name, value in {**request.fixed, **guess}.items():
        if model.states.has(name):
            fixed_names.append(model.states.positions[name])
            x[fixed_names[-1]] = value
        else:
            u[model.inputs.positions[name]] = value
    try:
        x = consistent_states(model, equations, t, x, u, fixed_names, project=anywhere)
    except ConstraintError:
        # Nothing was named, so the start of the model itself is off the manifold, which its user has to know.
        if not fixed_names:
            raise
        # Held states with which no point was found: the general search tries more, and explains.
        if any(model.states.has(name) for name in request.fixed):
            return None
        x = consistent_states(model, equations, t, x, u, (), project=True)  # a guess need not be kept
    x[n:] = 0.0
    unknowns = SparseUnknowns.of(model, equations, request, t, x, u)
    try:
        x, u, step, distance, forces = _solve_equilibrium(equations, unknowns)
        W, r = equations.matrix(t, x, u)
        factors = equations.solver(W)
        rates = np.concatenate((x[n:], factors.solve(r)[:n]))
        rounded = [factors.solve(np.concatenate((s * forces, np.zeros(len(r) - n))))[:n] for s in _list_signs(n)]
    except NumericalError:
        return None
    sizes = model.states.scales(unknowns.states)
    x = np.where(np.abs(x) < ROUNDED_STATE_SIZE * sizes, 0.0, x)
    residual = float(np.max(np.abs(rates) / sizes, initial=0.0))
    # Forces of a stiff structure that cancel leave accelerations of its small elements.
    rounding = ACCELERATION_ROUNDING_FACTOR * float(np.max(np.abs(rounded) / sizes[n:], initial=0.0))
    if not (
        residual <= max(EQUILIBRIUM_RATE_TOLERANCE, rounding)
        and (distance <= TRIM_DISTANCE_TOLERANCE * unknowns.name_sizes(u)).all()
    ):
        return None
    names = model.states.names, model.inputs.names
    nominal = {
        **dict(zip(names[0], model.states.scales().tolist(), strict=True)),
        **dict(zip(names[1], model.inputs.scales().tolist(), strict=True)),
    }
    certificate = Certificate(
        residual=residual,
        step=dict(zip(unknowns.names, step.tolist(), strict=True)),
        distance=dict(zip(unknowns.names, distance.tolist(), strict=True)),
        sizes={name: nominal[name] for name in unknowns.names},
    )
    exact = residual <= EXACT_BALANCE_TOLERANCE
    report = TrimReport(model.states, model.inputs, rates, certificate, exact=exact)
    parameters = dict(model.start.parameters)
    point = TrimmedPoint(time=t, states=x, inputs=u, parameters=parameters, names=names, report=report, request=request)
    return _with_stability(model, equations, point) if len(x) <= MAX_STATES else point


def _with_stability(model: Model, equations: SparseEquations, point: TrimmedPoint) -> TrimmedPoint:
    """Return the point with what the eigenvalues of its linear model say."""
    computed = compute_sparsely(model, equations, point, Request())
    if computed is None:
        return point
    return replace(point, report=replace(point.report, instability=judge_growth(check(computed).A, BLURRED[True])))


@dataclass(frozen=True, eq=False)
class SparseUnknowns:
    """Which coordinates and inputs are solved for, and the values from which that begins."""

    time: float
    states: FloatArray  # (2n,), at rest
    inputs: FloatArray  # (nu,)
    coordinates: IntArray  # those that are free
    free_inputs: IntArray
    sizes: FloatArray  # of the free coordinates
    input_sizes: FloatArray  # of the free inputs
    names: tuple[str, ...]  # of the free coordinates, of the velocities, and of the free inputs

    @classmethod
    def of(
        cls,
        model: Model,
        equations: SparseEquations,
        request: TrimRequest,
        t: float,
        x: FloatArray,
        u: FloatArray,
    ) -> SparseUnknowns:
        """Return the unknowns of a request that begin at states x and inputs u."""
        n, names = equations.n, model.states.names
        coordinates = np.array([i for i in range(n) if names[i] not in request.fixed], dtype=np.intp)
        inputs = np.array([model.inputs.positions[name] for name in request.free], dtype=np.intp)
        all_names = (*(names[i] for i in coordinates), *names[n:], *request.free)
        sizes = model.states.scales(x)[coordinates]
        return cls(t, x, u, coordinates, inputs, sizes, model.inputs.scales(u)[inputs], all_names)

    @property
    def column_sizes(self) -> FloatArray:
        """Of the free coordinates and the free inputs."""
        return np.concatenate((self.sizes, self.input_sizes))

    def begin(self) -> FloatArray:
        """Return the values of the unknowns from which the search begins, in their sizes."""
        values = np.concatenate((self.states[self.coordinates], self.inputs[self.free_inputs]))
        return np.asarray(values / self.column_sizes)

    def read(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states and the inputs that z holds."""
        x, u, free = self.states.copy(), self.inputs.copy(), len(self.coordinates)
        x[self.coordinates] = z[:free] * self.sizes
        u[self.free_inputs] = z[free : free + len(self.free_inputs)] * self.input_sizes
        return x, u

    def list_by_name(self, of_columns: FloatArray) -> FloatArray:
        """Return values of the columns in the order of the names; velocities are exact."""
        coordinates, inputs = np.split(of_columns, [len(self.coordinates)])
        return np.concatenate((coordinates, np.zeros(len(self.names) - len(of_columns)), inputs))

    def name_sizes(self, u: FloatArray) -> FloatArray:
        """Return sizes in the order of the names: an input's own value counts where it is larger."""
        inputs = np.maximum(self.input_sizes, np.abs(u[self.free_inputs]))
        sizes = self.list_by_name(np.concatenate((self.sizes, inputs)))
        # Velocities are exact and have no size: a distance of 0 is compared with 1.
        return np.where(sizes > 0, sizes, 1.0)


def _list_signs(count: int) -> tuple[FloatArray, FloatArray]:
    """Return signs (count,) with which rounding of equal sizes may add up, and cancel."""
    return np.ones(count), np.where(np.arange(count) % 2, -1.0, 1.0)


def _solve_equilibrium(
    equations: SparseEquations, unknowns: SparseUnknowns
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return states and inputs at rest, the Newton step there, bounds of their distance, and rounding of forces (n,).

    The bounds are infinite where nothing says that there is a solution.
    """
    system = SparseBalance(equations, unknowns)
    W, r = equations.matrix(unknowns.time, unknowns.states, unknowns.inputs)
    w = equations.solver(W).solve(r)  # multipliers start as those of the motion from rest
    result = follow_zeros(system, np.concatenate((unknowns.begin(), w[equations.n :]))[None], NEWTON_RULES)
    z, step, bound = system.certify(result.z[0])
    x, u = unknowns.read(z)
    distance = bound if result.has_converged[0] else np.full(len(bound), np.inf)
    forces = system.rounding[: equations.n]
    return x, u, unknowns.list_by_name(step), unknowns.list_by_name(distance), forces


class SparseBalance:
    """The equations of an equilibrium in z = (q, u in their sizes, lambda), with sparse factors of their Jacobian.

    Steps are full ones, shortened to the trust radius: far from an equilibrium residuals of stiff structures grow
    before they fall.
    """

    def __init__(self, equations: SparseEquations, unknowns: SparseUnknowns) -> None:
        self._equations, self._unknowns = equations, unknowns
        self._coordinates = len(unknowns.coordinates)
        self._sizes = unknowns.column_sizes
        self._matrix: Any = None
        self._factors: Any = None
        self.rounding = np.zeros(0)  # of the rows, where that was certified

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the unknowns: they have no bounds."""
        return z

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals (j, n + m)."""
        return np.array([self._compute_residual(row) for row in z])

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Factorize the Jacobian; False where it is singular."""
        from scipy import sparse

        equations, unknowns = self._equations, self._unknowns
        n, t = equations.n, unknowns.time
        self._factors = None
        for row in z:
            x, u = unknowns.read(row)
            W, _ = equations.matrix(t, x, u)
            G = W[n:, :n]
            row_weights = np.concatenate((np.zeros(n), row[len(self._sizes) :]))
            slopes = sparse.csc_array(equations.slopes(t, x, u, row_weights)[:n])
            stiffness, of_inputs = slopes[:, unknowns.coordinates], slopes[:, len(x) + unknowns.free_inputs]
            of_constraints = sparse.csc_array(G)[:, unknowns.coordinates]
            rows = [[stiffness, of_inputs, -G.T], [of_constraints, None, None]]
            if not len(unknowns.free_inputs):
                rows = [[stiffness, -G.T], [of_constraints, None]]
            self._matrix = sparse.block_array(rows, format="csc")
            with suppress(NumericalError):
                self._factors = equations.solver(self._matrix)
        return np.full(len(points), self._factors is not None)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return the corrections (j, n + m); NaN without factors."""
        if self._factors is None:
            return np.full_like(r, np.nan)
        steps = np.array([self._factors.solve(-row) for row in r])
        steps[:, : len(self._sizes)] /= self._sizes
        return steps

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest change of a coordinate; multipliers and inputs go as far as they must, mostly affine."""
        return np.asarray(np.max(np.abs(step[:, : self._coordinates]), axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where the step that would follow may be rounding."""
        return np.asarray(self.measure(points, self.correct(points, r)) <= ROUNDING_STEP_SIZE)

    def certify(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return z one step nearer, the Newton step of coordinates and inputs (k,) there, and bounds of their distance.

        The bounds (k,) are infinite where nothing says that there is a solution.
        """
        n, one = len(self._sizes), np.arange(1)
        nowhere = np.full(n, np.inf)
        self.rounding = np.zeros(len(z))
        if not self.differentiate(one, z[None], self.values(one, z[None]))[0]:
            return z, nowhere, nowhere
        step = self.correct(one, self.values(one, z[None]))[0]
        nearer = z + step
        following = self.correct(one, self.values(one, nearer[None]))[0, :n]
        # A torque of 500 N.m has the rounding of its own value.
        sizes = np.where(np.arange(n) < self._coordinates, 1.0, np.maximum(np.abs(nearer[:n]), 1.0))
        last, next_length = (float(np.max(np.abs(part) / sizes, initial=0.0)) for part in (step[:n], following))
        # The next step is a quarter of the last one, up to rounding, where K |d| <= 1/2: see
        # :mod:`fmilin.numerics.certification`.
        ratio = next_length / max(last, 1e-300)  # not divided by zero
        if not (ratio <= 0.25 or next_length <= ROUNDING_STEP_SIZE):  # NaN is neither
            return nearer, following * self._sizes, nowhere
        # 0.9: where the next step is rounding, its ratio says nothing and may be 1.
        further = np.abs(following) / (1 - min(ratio, 0.9))
        lengths = np.concatenate((np.maximum(np.abs(nearer[:n]), 1.0) * self._sizes, np.abs(nearer[n:])))
        self.rounding = TERMS_ROUNDED * (abs(self._matrix) @ lengths)
        signs = _list_signs(len(lengths))
        blurred = sum(np.abs(self._factors.solve(s * self.rounding))[:n] for s in signs)
        bound = 2 * (np.abs(step[:n]) + further) * self._sizes + blurred + TERMS_ROUNDED * self._sizes
        return nearer, following * self._sizes, bound

    def _compute_residual(self, z: FloatArray) -> FloatArray:
        equations, t, n = self._equations, self._unknowns.time, self._equations.n
        x, u = self._unknowns.read(z)
        W, r = equations.matrix(t, x, u)
        G = W[n:, :n]
        residuals = equations.residuals(t, x, u)[: G.shape[0]]
        return np.concatenate((r[:n] - G.T @ z[len(self._sizes) :], residuals))
