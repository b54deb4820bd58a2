"""The equations that points near one with a linear model satisfy: states that are fixed, and rates that vanish.

In coordinates y = R x of that point, x = Psi(y), and the free inputs they are

    x_fixed = targets,    R f(x, u) = 0 in the rows that rest,

each in sizes of its state or coordinate. A step of Newton's method leads along the tangent, T dy, and back to the
manifold. All arrays have a leading axis over the points that are solved for; one point is a batch of one.

Two things answer for the model. :class:`NeighbourDerivatives` keeps the tangent and the Jacobian of the point before:
at it 0 = f0 + A dy + B du + f_p dp, and with the rates at the next values of p in place of f0 + f_p dp this is one
Newton step of the next problem. Its matrices serve for the steps after it, too (a chord), and each costs one evaluation
of the model. :class:`BatchDerivatives` has the model's own derivatives at every point.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.reference import Reference
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.point_arrays import PointBatch
from fmilin.manifold.projection import pseudo_inverse
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint, TangentBatch
from fmilin.numerics.newton import BoolArray, IntArray, NewtonResult, NewtonRules, follow_zeros
from fmilin.signals import FloatArray

MAX_DISTANCE = 1e-12
"""From the manifold at a solution, in sizes of the states."""
MAX_NEXT_STEP = 1e-9
"""The step that would follow the last one, in sizes: small residuals alone do not say that it is short."""
MAX_RESIDUAL = 1e-11
"""Of the equations at a solution, in sizes of their rows."""
MIN_ROW_LENGTH = 1e-13
"""Of a row of the Jacobian, over that of the longest one, below which it is rounding."""


@dataclass(frozen=True)
class BranchRules:
    """How the equations are solved, which differs between a point alone and points of a batch."""

    newton: NewtonRules
    smallest_singular_value: float
    """Of the Jacobian, over the largest: directions below it are undetermined, and stay as they are guessed."""
    are_rows_equilibrated: bool
    """Whether each row has a size of its own, else all have that of the largest entry of A and B.

    A slow state of a stiff model has a short row, although it is not free. A chord inverts all that is
    above rounding. A batch leaves out what is nearly singular, and would take the slow state for undetermined.
    """


CHORD_RULES = BranchRules(
    NewtonRules(iterations=11, trust_radius=np.inf, steps_to_halve=2, polishing_steps=0),
    smallest_singular_value=1e-12,
    are_rows_equilibrated=False,
)
"""The matrices of a neighbour lead to a point in steps that are halved at least every second time."""

BATCH_RULES = BranchRules(
    NewtonRules(iterations=10, trust_radius=np.inf, is_compared=False, polishing_steps=1),
    smallest_singular_value=1e-8,
    are_rows_equilibrated=True,
)
"""Full steps lead to a point; one that would need damping belongs to another branch, which determinants tell."""


class BranchEquations:
    """The equations, with their Jacobian at the point of a linear model in coordinates y = R x.

    ``fixed`` are positions of states that have targets, ``resting`` rows of y with zero rates, ``free`` positions
    of inputs that are solved for.
    """

    def __init__(
        self,
        model: Model,
        point: OperatingPoint,
        linear: LinearModel,
        *,
        R: FloatArray,
        fixed: Sequence[int],
        resting: Sequence[int],
        free: Sequence[int],
        rules: BranchRules,
    ) -> None:
        self.R, self.fixed, self.resting, self.free = R, list(fixed), list(resting), list(free)
        self.rules = rules
        self.count = len(self.fixed) + len(self.resting)
        self.x_sizes = model.states.scales(point.states)
        self.y_sizes = np.abs(R) @ self.x_sizes
        self.u_sizes = model.inputs.scales(point.inputs)[self.free]
        self.sizes = np.concatenate((self.x_sizes, self.u_sizes))  # of the unknowns: states, then free inputs
        A, B = linear.A[self.resting], linear.B[np.ix_(self.resting, self.free)]
        self.J = self.compute_jacobians(linear.T[self.fixed][None], A[None], B[None])[0]
        self.row_sizes = self._choose_row_sizes()
        self.rates_at_point = linear.f0[self.resting] / self.y_sizes[self.resting]
        U, sigma, Vt = np.linalg.svd(self.J / self.row_sizes[:, None])
        self.rank = int(np.count_nonzero(sigma > rules.smallest_singular_value * sigma.max(initial=0.0)))
        self._U, self._V = U[:, : self.rank], Vt[: self.rank].T  # where the equations are regular

    def _choose_row_sizes(self) -> FloatArray:
        if not self.rules.are_rows_equilibrated:
            largest = np.abs(self.J[len(self.fixed) :]).max(initial=1.0)
            return np.full(self.count, largest)
        lengths = np.linalg.norm(self.J, axis=1)
        is_rounding = lengths <= MIN_ROW_LENGTH * lengths.max(initial=0.0)
        return np.where(is_rounding, 1.0, np.fmax(lengths, 1e-300))

    @property
    def volume(self) -> float:
        """The product of the singular values of the Jacobian, zero at a fold: its determinant where it is square."""
        rows, columns = self.J.shape
        if not 0 < rows <= columns:
            return 0.0
        return float(np.prod(np.linalg.svd(self.J, compute_uv=False)))

    def join(self, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the unknowns (k, n) of states (k, N) and inputs (k, nu)."""
        return np.hstack((x, u[:, self.free]))

    def split(self, z: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return states (k, N) and inputs (k, nu) of unknowns z (k, n), with the ``inputs`` that are not free."""
        u = inputs.copy()
        u[:, self.free] = z[:, len(self.x_sizes) :]
        return z[:, : len(self.x_sizes)].copy(), u

    def compute_residuals(self, x: FloatArray, resting_rates: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the residuals (k, m), in sizes, of states (k, N) and of rates of the coordinates that rest."""
        gaps = (x[:, self.fixed] - targets) / self.x_sizes[self.fixed]
        return np.hstack((gaps, resting_rates / self.y_sizes[self.resting])) / self.row_sizes

    def compute_jacobians(self, T: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:
        """Return the Jacobians (k, m, P + free) of the equations along y and the free inputs, in sizes.

        They are made of rows of T (k, fixed, P), A (k, resting, P) and B (k, resting, free).
        """
        p, m = len(self.y_sizes), len(self.fixed)
        J = np.zeros((len(T), self.count, p + len(self.free)))
        J[:, :m, :p] = T * self.y_sizes / self.x_sizes[self.fixed, None]
        sizes = self.y_sizes[self.resting, None]
        J[:, m:, :p] = A * self.y_sizes / sizes
        J[:, m:, p:] = B * self.u_sizes / sizes
        return J

    def reduce(self, J: FloatArray) -> FloatArray:
        """Return Jacobians (k, m, n) on the directions in which the equations are regular at their point."""
        return np.asarray(self._U.T @ (J / self.row_sizes[:, None]) @ self._V)

    def correct(self, T: FloatArray, J: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return steps of states along tangents T (k, N, P), and of free inputs, that residuals (k, m) ask for."""
        steps = np.linalg.solve(self.reduce(J), -(r @ self._U)[..., None])[..., 0] @ self._V.T
        p = len(self.y_sizes)
        dx = (T @ (steps[:, :p] * self.y_sizes)[..., None])[..., 0]
        return dx, steps[:, p:] * self.u_sizes


class BranchDerivatives(Protocol):
    """The properties of the model that the equations need."""

    def evaluate(self, points: IntArray, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates of the coordinates that rest (j, resting), and steps back to the manifold (j, N).

        NaN stands where the model is undefined. ``points`` are the numbers of the points.
        """

    def read(self, points: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return tangents (j, N, P) and Jacobians of the equations (j, m, n) at the points, or one for all."""

    def are_finite(self, points: IntArray) -> BoolArray:
        """Return at which points the Jacobians are finite, (j,)."""


class BranchSystem:
    """The equations at k points as a system of Newton's method: unknowns are the states and the free inputs.

    The residuals are those of the equations, after the step back to the manifold, and that step in sizes.
    """

    def __init__(
        self,
        equations: BranchEquations,
        derivatives: BranchDerivatives,
        inputs: FloatArray,
        targets: FloatArray,
    ) -> None:
        self._equations, self._derivatives = equations, derivatives
        self._inputs, self._targets = inputs, targets

    def clip(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the unknowns: they have no bounds."""
        return z

    def solve(self, x: FloatArray, u: FloatArray) -> NewtonResult:
        """Return where Newton's method ends that begins at states (k, N) and inputs (k, nu)."""
        return follow_zeros(self, self._equations.join(x, u), self._equations.rules.newton)

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return the residuals, and the steps back to the manifold in sizes."""
        equations = self._equations
        x, u = equations.split(z, self._inputs[points])
        resting_rates, back = self._derivatives.evaluate(points, x, u)
        residuals = equations.compute_residuals(x + back, resting_rates, self._targets[points])
        return np.hstack((residuals, back / equations.x_sizes))

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where the Jacobians, which came with the residuals or from a neighbour, are finite."""
        return self._derivatives.are_finite(points)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return steps along the tangent and back to the manifold."""
        equations = self._equations
        T, J = self._derivatives.read(points)
        dx, du = equations.correct(T, J, r[:, : equations.count])
        return np.hstack((dx + r[:, equations.count :] * equations.x_sizes, du))

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest component of each step, in sizes of states and inputs."""
        return np.asarray(np.max(np.abs(step) / self._equations.sizes, axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where residuals, distance from the manifold and the step that would follow are small."""
        count = self._equations.count
        is_small = np.abs(r[:, :count]).max(axis=1, initial=0.0) <= MAX_RESIDUAL
        is_on_manifold = np.abs(r[:, count:]).max(axis=1, initial=0.0) <= MAX_DISTANCE
        is_solved = np.asarray(is_small & is_on_manifold)
        if is_solved.any():
            solved = np.flatnonzero(is_solved)
            next_steps = self.measure(points[solved], self.correct(points[solved], r[solved]))
            is_solved[solved] = next_steps <= MAX_NEXT_STEP
        return is_solved


class NeighbourDerivatives:
    """Rates of a model at single points; the tangent, the Jacobian and the normals are those of a neighbour.

    The way back to the manifold leads along the normals, -D (H D)^+ h.
    """

    def __init__(
        self, model: Model, point: OperatingPoint, linear: LinearModel, inputs: FloatArray, equations: BranchEquations
    ) -> None:
        self._evaluator, self._time = PointEvaluator(model), point.time
        self._T, self._equations = linear.T, equations
        self._invariants = _make_invariants(self._evaluator, point.time, point.states, inputs)
        self._normals = _compute_normals(self._invariants, point.time, point.states)

    def evaluate(self, points: IntArray, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates of the coordinates that rest, and steps back to the manifold."""
        rates, back = np.full_like(x, np.nan), np.full_like(x, np.nan)
        for k, (states, inputs) in enumerate(zip(x, u, strict=True)):
            try:
                derivatives = self._evaluator.evaluate(self._time, states, inputs).derivatives
                distances = self._invariants.values(self._time, states, inputs)
            except FmilinError:  # the model is undefined there, and the step too long
                continue
            rates[k], back[k] = derivatives, -self._normals @ distances
        return rates @ self._equations.R[self._equations.resting].T, back

    def read(self, points: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangent and the Jacobian of the neighbour."""
        return self._T[None], self._equations.J[None]

    def are_finite(self, points: IntArray) -> BoolArray:
        """Keep the matrices of the neighbour."""
        return np.ones(len(points), dtype=bool)


_pairs: WeakKeyDictionary[Model, dict[int, int]] = WeakKeyDictionary()


def _make_invariants(evaluator: PointEvaluator, t: float, x: FloatArray, u: FloatArray) -> Invariants:
    model = evaluator.model
    pairs = _pairs.get(model)
    if pairs is None:
        pairs = _pairs[model] = dict(kinematic_pairs(model, OperatingPoint(t, x, u))) if len(model.constraints) else {}
    return Invariants(evaluator, u, pairs, model.states.scales(x))


def _compute_normals(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return D (H D)^+, shape (N, m): the way back to the manifold."""
    if not len(invariants):
        return np.zeros((len(x), 0))
    gradient = invariants.gradient(t, x)
    sizes = np.where(gradient.sizes > 0, gradient.sizes, 1.0)
    return np.asarray(invariants.scales[:, None] * pseudo_inverse(gradient.scaled, 1e-9) / sizes)


class BatchDerivatives:
    """Rates of a model and their derivatives at k points at once, in the coordinates of a reference.

    ``varied`` are values (k,) of parameters. The way back to the manifold leads along the dependent states. The last
    answer at each point is kept: Newton's method corrects from it, and the points are linearized from it.
    """

    def __init__(
        self, reference: Reference, equations: BranchEquations, count: int, varied: Mapping[str, FloatArray]
    ) -> None:
        self._reference, self._equations, self._varied = reference, equations, varied
        self._resting_states = [reference.independent[row] for row in equations.resting]
        self._x = np.full((count, len(reference.model.states)), np.nan)
        self._u = np.full((count, len(reference.model.inputs)), np.nan)
        self._tangents: TangentBatch | None = None
        self._J = np.zeros((count, 0, 0))

    def evaluate(self, points: IntArray, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates of the coordinates that rest, and steps back to the manifold; keep the derivatives."""
        reference = self._reference
        varied = {name: values[points] for name, values in self._varied.items()}
        tangents = reference.differentiate(PointBatch(np.full(len(points), reference.point.time), x, u, varied))
        J = self._compute_jacobians(tangents)
        if self._tangents is None or len(points) == len(self._x):
            self._tangents, self._J = tangents, J
        else:
            self._tangents = self._tangents.replace_points(points, tangents)
            self._J[points] = J
        self._x[points], self._u[points] = x, u
        back = np.zeros_like(x)
        back[:, reference.dependent] = -reference.back(tangents)
        return tangents.rates[:, self._resting_states], back

    def read(self, points: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the tangents and the Jacobians of the last evaluation."""
        T = self.tangents.T
        if len(points) == len(self._x):
            return T, self._J
        return T[points], self._J[points]

    def are_finite(self, points: IntArray) -> BoolArray:
        """Return at which points the Jacobians are finite."""
        return np.asarray(np.isfinite(self._J[points]).all(axis=(1, 2)))

    def are_last(self, x: FloatArray, u: FloatArray) -> BoolArray:
        """Return at which points states (k, N) and inputs (k, nu) are those of the last evaluation, (k,).

        They are others where Newton's method went back from a step that did not help.
        """
        return np.asarray((self._x == x).all(axis=1) & (self._u == u).all(axis=1))

    @property
    def tangents(self) -> TangentBatch:
        """The derivatives at the last evaluation of each point."""
        if self._tangents is None:
            raise NumericalError("The equations must be evaluated before they are solved.")
        return self._tangents

    @property
    def volumes(self) -> FloatArray:
        """The determinants (k,) of the equations in the directions in which they are regular at their point."""
        return np.asarray(np.linalg.det(self._equations.reduce(self._J)))

    def _compute_jacobians(self, tangents: TangentBatch) -> FloatArray:
        equations, p = self._equations, len(self._reference.independent)
        slopes = tangents.derivatives[:, self._resting_states]
        free = [p + j for j in equations.free]
        return equations.compute_jacobians(tangents.T[:, equations.fixed], slopes[..., :p], slopes[..., free])
