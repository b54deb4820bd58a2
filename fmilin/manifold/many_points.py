"""Many points at once: the same states held at other values, each followed from the start along the manifold.

Least-norm steps come from the normal equations: rows that depend on others are left out, and what the squared condition
number loses the next iteration brings back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fmilin.errors import ConstraintError, FmilinError, NumericalError, UsageError
from fmilin.manifold.operating_points import assemble_branch_point, let_go, operating_point, select_kept_states
from fmilin.manifold.position import GRADIENT_ROUNDING_TOLERANCE, ROUNDED_VALUES
from fmilin.manifold.projection import ProjectedPoints, Subset, follow
from fmilin.manifold.rank import decide_rank, independent_rows
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, RealArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import PROJECTION_TOLERANCE

MAX_CORRECTIONS = 8  # from a neighbour: a point that needs more is not reached, and is searched alone
MAX_BATCH_POINTS = 512  # points that are computed together
# A step, in sizes of the states, with a square below rounding also where the manifold has curvature
QUADRATIC_STEP_SIZE = 1e-10
ROUNDING_DISTANCE = 1e-12  # distance from the manifold below which a step may lead anywhere
RIDGE_FACTOR = 1e-15  # keeps the normal equations solvable where rows become dependent; such steps are rejected


def assemble_points(
    model: Model, values: Mapping[str, RealArray | Sequence[float] | float], *, time: float | None = None
) -> tuple[OperatingPoint, ...]:
    """Assemble many consistent points; see :func:`fmilin.operating_points`."""
    count, columns = _columns(values)
    first = operating_point(model, {n: float(c[0]) for n, c in columns.items()}, time=time) if count else None
    if first is None:
        return ()
    inputs, states = np.tile(first.inputs, (count, 1)), np.full((count, len(model.states)), np.nan)
    for name, column in columns.items():
        if model.inputs.has(name):
            inputs[:, model.inputs.positions[name]] = column
    pinned = {name: column for name, column in columns.items() if model.states.has(name)}
    targets = np.stack(list(pinned.values()), axis=1) if pinned else np.empty((count, 0))
    follow = FollowedFromStart(model, first.time, [model.states.positions[name] for name in pinned])
    for subset in (slice(i, i + MAX_BATCH_POINTS) for i in range(0, count if follow.possible else 0, MAX_BATCH_POINTS)):
        states[subset] = follow(inputs[subset], targets[subset])
    points, previous = [], first.states
    for number, (x, u, target) in enumerate(zip(states, inputs, targets.tolist(), strict=True)):
        if not np.isfinite(x).all():  # found alone, from its neighbour
            try:
                values_held = dict(zip(pinned, target, strict=True))
                x[:] = assemble_branch_point(PointEvaluator(model), first.time, previous, u, values_held).states
            except (ConstraintError, NumericalError) as error:
                where = ", ".join(f"{name} = {column[number]:g}" for name, column in columns.items())
                raise ConstraintError(f"Point {number + 1} of {count} ({where}): {error}") from None
        points.append(OperatingPoint(first.time, x, u, model.start.parameters, names=first.names))
        previous = x
    return tuple(points)


def _columns(values: Mapping[str, RealArray | Sequence[float] | float]) -> tuple[int, dict[str, FloatArray]]:
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
    lengths = {name: len(a) for name, a in arrays.items() if a.ndim == 1}
    if any(a.ndim > 1 for a in arrays.values()) or len(set(lengths.values())) > 1:
        specified = ", ".join(f"'{name}' {a.shape}" for name, a in arrays.items())
        raise UsageError(f"The values of many points must be arrays of one length, or numbers, not {specified}.")
    count = next(iter(lengths.values()), 1)
    return count, {name: np.broadcast_to(a, (count,)) for name, a in arrays.items()}


class FollowedFromStart:
    """Points of a model with the same states held, each followed from the start: as one alone is assembled."""

    def __init__(self, model: Model, time: float, pinned: Sequence[int]) -> None:
        self._start, self._pinned, self._batch = model.start.states, list(pinned), None
        self.possible = not len(model.constraints)  # answers at many points, and starts on the manifold
        if self.possible:
            return
        try:
            if not pinned:
                self.possible = self._start_anywhere(model, time)
                return
            self._start = operating_point(model, time=time, project=True).states
        except (ConstraintError, NumericalError):
            return
        self._batch = _Batch.of(model, time, self._start, self._pinned)
        self.possible = self._batch is not None

    def _start_anywhere(self, model: Model, time: float) -> bool:
        """Take the start as the states at all inputs; return whether that is so, and nothing is to be said of it."""
        constraints = model.constraints
        if constraints.prescribing or constraints.hidden:
            return False  # the manifold, or what is known of it, moves with the inputs
        start = operating_point(model, time=time)
        self._start = start.states
        return not start.remarks

    def __call__(self, inputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the states (k, N) with the held ones at targets (k, h); NaN where they need a search of their own."""
        states = np.tile(self._start, (len(targets), 1))
        states[:, self._pinned] = targets
        try:
            with np.errstate(all="ignore"):
                return states if self._batch is None else self._batch.followed(inputs, targets)
        except (FmilinError, np.linalg.LinAlgError):  # at one of them the model has no answer
            return np.full_like(states, np.nan)


def evaluate_constraints(
    evaluator: PointEvaluator, t: float, x: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return residuals (k, m) and their gradient (k, m, N) at many points, evaluated together; None without."""
    constraints = evaluator.model.constraints
    # Hidden constraints need the rates of the model, which are not evaluated here.
    if constraints.hidden:
        return None
    if constraints.analytic.all():
        H = constraints.partials(t, x, u, np.empty((len(x), 0))).states
        return constraints.residuals(t, x, u, np.empty((len(x), 0))), np.broadcast_to(H, (len(x), *H.shape[-2:]))
    return evaluator.constraint_gradient(t, x, u) if evaluator.model.batches else None


@dataclass(frozen=True, eq=False)
class _Batch:
    """The data common to all points."""

    model: Model
    t: float
    start: FloatArray  # shape (N,)
    pinned: list[int]
    unchanged: list[int]  # further states that stay as they start
    rows: list[int]  # constraints that are independent at the start

    @classmethod
    def of(cls, model: Model, t: float, start: FloatArray, pinned: Sequence[int]) -> _Batch | None:
        """Return the batch; which constraints are independent is decided at the start. None where one is not enough."""
        here = evaluate_constraints(PointEvaluator(model), t, start[None], model.start.inputs[None])
        if here is None:
            return None
        H = here[1][0] * model.states.scales(start)
        norms = np.linalg.norm(H, axis=1, keepdims=True)
        # A row that is rounding relative to the others stays zero: divided by its length it would be a constraint.
        Hs = np.divide(H, norms, out=np.zeros_like(H), where=norms > 1e-12 * float(norms.max()))
        unchanged = select_kept_states(model, Hs, pinned)
        if let_go(model, pinned, unchanged):
            return None  # each point says so
        return cls(model, t, start, list(pinned), unchanged, independent_rows(Hs, decide_rank(Hs).rank, len(Hs)))

    def followed(self, inputs: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the states (points, N), NaN where the branch ends or steps may be others than of a point alone."""
        fixed = [*self.pinned, *self.unchanged]
        targets = np.hstack((targets, np.tile(self.start[self.unchanged], (len(targets), 1))))
        aimed = np.tile(self.model.start.states, (len(targets), 1))
        aimed[:, fixed] = targets
        sizes = self.model.states.scales(aimed)
        D = sizes.copy()
        D[:, fixed] = 0.0

        def predict(subset: Subset, x: FloatArray, moved: FloatArray) -> FloatArray:
            return x + moved + self._least(self._constraints(x, inputs[subset]), D[subset], moved)

        def correct(subset: Subset, ahead: FloatArray) -> ProjectedPoints:
            x, reached, direct = self._corrected(ahead, inputs[subset], sizes[subset], D[subset])
            return ProjectedPoints(x, reached, ~direct)

        return follow(predict, correct, self.start, fixed, targets, sizes)[0]

    def _constraints(self, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        answer = evaluate_constraints(PointEvaluator(self.model), self.t, x, u)
        if answer is None:
            raise NumericalError("The model cannot be evaluated at one of many points.")
        return answer

    def _least(self, both: tuple[FloatArray, FloatArray], D: FloatArray, moved: FloatArray | None = None) -> FloatArray:
        """Return the steps (points, N), shortest in sizes D of the states, 0 where held, that make h + H moved 0."""
        h, H = (values[:, self.rows] for values in both)
        right = h if moved is None else h + (H @ moved[..., None])[..., 0]
        A, right = _normalize(H * D[:, None], right)
        return np.asarray(-D * (np.swapaxes(A, -1, -2) @ _multipliers(A, right)[..., None])[..., 0])

    def _corrected(
        self, x: FloatArray, u: FloatArray, sizes: FloatArray, D: FloatArray
    ) -> tuple[FloatArray, np.ndarray, np.ndarray]:
        """Return points of the manifold near x, where they were reached, and where no step had to be damped.

        These are full steps of the Gauss-Newton method: the shortest ones that the constraints ask for, which are fewer
        than the states. :func:`fmilin.numerics.newton.find_zeros` solves for all unknowns and has no such choice.
        :func:`fmilin.manifold.projection.project` searches from anywhere: it halves steps, leaves constraints out that
        the noise of measured derivatives makes redundant, and starts anew nearby. Here the constraints that are
        independent at the start are taken all along, by normal equations, a tenth of the time of singular values. A
        point where that is not enough is not reached, and is left to ``project``.
        """
        size, direct = np.full(len(x), np.inf), np.ones(len(x), dtype=bool)
        h, H = self._constraints(x, u)
        for _ in range(MAX_CORRECTIONS):
            step, rows = self._least((h, H), D), _row_sizes(H, sizes)
            before = np.linalg.norm(h / rows, axis=1)
            x = x + step
            h, H = self._constraints(x, u)
            after = np.linalg.norm(h / rows, axis=1)
            direct &= (after < before) | (after < ROUNDING_DISTANCE)
            size = np.max(np.abs(step) / sizes, axis=1)
            if not (size > QUADRATIC_STEP_SIZE).any():  # what is left is the square of that: rounding
                break
        distance = np.max(np.abs(h) / _row_sizes(H, sizes), axis=1, initial=0.0)
        # Both are false for what is not a number. Constraints that are nearly parallel are close long before the steps
        # are short. Points that are not reached here are searched alone: a stricter limit costs time, not accuracy.
        reached = (
            (size <= 1e-6)
            & (distance <= PROJECTION_TOLERANCE)
            & self._find_determined(h, H, D)
            & self._agree(x, h, H, sizes)
        )
        return x, reached, reached & direct

    def _find_determined(self, h: FloatArray, H: FloatArray, D: FloatArray) -> np.ndarray:
        """Return where the ridge did not shorten the steps, (points,): rows may be nearly parallel there."""
        A, right = _normalize(H[:, self.rows] * D[:, None], h[:, self.rows])
        right = np.where(A.any(axis=-1), right, 0.0)  # nothing that may move changes such a row
        left_by_ridge = RIDGE_FACTOR * np.linalg.norm(_multipliers(A, right), axis=-1)
        # The ridge times the multipliers is left of the residual by a step: half of it shows that the ridge decided.
        return np.asarray(left_by_ridge <= 0.5 * np.linalg.norm(right, axis=-1))

    def _agree(self, x: FloatArray, h: FloatArray, H: FloatArray, sizes: FloatArray) -> np.ndarray:
        """Return where rows that depended on others at the start are satisfied at no distance either, (points,)."""
        if len(self.rows) == h.shape[1]:
            return np.ones(len(x), dtype=bool)
        rows = _row_sizes(H, sizes)
        # Residuals of rounding are no distance in any direction: a decomposition is saved.
        if (np.abs(h) <= ROUNDED_VALUES * rows).all():
            return np.ones(len(x), dtype=bool)
        U, sigma, _ = np.linalg.svd(H * sizes[:, None] / rows[..., None], full_matrices=False)
        parts = np.abs((np.swapaxes(U, -1, -2) @ (h / rows)[..., None])[..., 0])
        weak = (sigma > GRADIENT_ROUNDING_TOLERANCE * sigma[:, :1]) & (parts > ROUNDED_VALUES)
        distances = np.divide(parts, sigma, out=np.zeros_like(parts), where=weak)
        return np.asarray((distances <= PROJECTION_TOLERANCE).all(axis=1))


def _normalize(A: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A (points, m, N) with rows of length one, and the right sides (points, m) divided by the same."""
    # Rows without a gradient stay zero instead of NaN.
    norms = np.maximum(np.linalg.norm(A, axis=-1, keepdims=True), 1e-300)
    return A / norms, right / norms[..., 0]


def _multipliers(A: FloatArray, right: FloatArray) -> FloatArray:
    """Return w (points, m) with A A' w = right, up to the ridge."""
    square = A @ np.swapaxes(A, -1, -2) + RIDGE_FACTOR * np.eye(A.shape[-2])
    return np.asarray(np.linalg.solve(square, right[..., None])[..., 0])


def _row_sizes(H: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return what one size of the states, all in quadrature, is worth in each row of H, shape (points, m)."""
    # A row without a gradient makes any residual a long distance, and a zero residual none, instead of NaN.
    return np.asarray(np.maximum(np.linalg.norm(H * sizes[:, None], axis=-1), 1e-300))
