"""Large models of Lagrange's equations, linearized with sparse matrices.

With G K = 0 and K one at the kept positions, by elimination along the graph of the constraints, states (q, v) of a
large model move by dq = K y and dv = K y' + Kdot y, G Kdot = -d(G v)/dq K (Spencer, thesis, section 2.2), and
accelerations and multipliers by W dw = e_s (T; du), e = r - W w: one factorization of W, one solution for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.assembly import GivenTangents, assemble_given
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.linearization_context import SparseLinearizedPoint
from fmilin.linearization.request import Request
from fmilin.manifold.checks import FRAME_CHECKS
from fmilin.manifold.checks.check import run_checks
from fmilin.manifold.checks.context import ConstrainedPoint
from fmilin.manifold.coordinates import StateCoordinates
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.point_arrays import batch_points
from fmilin.manifold.projection import not_on_manifold
from fmilin.model.equation_forms import SparseEquations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, MANIFOLD_DISTANCE_TOLERANCE

MAX_DESCRIPTOR_STATES = 1_000  # states up to which a descriptor system, of full matrices, is carried along
REFINEMENTS = 2  # the first one corrects, the size of the second one says how far that has come
CORRECTION_ERROR_FACTOR = 2.0  # errors of an entry, in units of what the last step of iterative refinement changes
ROUNDING_ERROR_FACTOR = 4.0  # errors that entries have at least, in units of EPS


@dataclass(frozen=True, eq=False)
class LargeManifold:
    """The manifold of a large model at a point."""

    model: Model
    equations: SparseEquations
    point: OperatingPoint

    @property
    def residual(self) -> float:
        """Distance of the point from the manifold, in sizes of the states."""
        return self.equations.distance(self.point.states, self.point.inputs, self.point.time)

    def require_point(self) -> None:
        """Raise ConstraintError if the point is not on the manifold."""
        if not self.residual <= MANIFOLD_DISTANCE_TOLERANCE:
            raise not_on_manifold(_residuals(self.model, self.equations, self.point))


def compute_sparsely(
    model: Model, equations: SparseEquations, point: OperatingPoint, request: Request
) -> SparseLinearizedPoint | None:
    """Return the linear model of a model with these equations, not checked; None where they do not lead to it."""
    independent = _find_positions(model, equations.n, request)
    plain = request.coordinates == "partition" and request.derivatives in ("auto", "exact")
    if independent is None or not plain:
        return None
    manifold = LargeManifold(model, equations, point)
    examined = ConstrainedPoint(PointEvaluator(model), point, VerifiedFacts(is_transferable=False), manifold)
    try:
        return _compute_on_manifold(examined, manifold, request, independent)
    except FmilinError:
        run_checks(examined, FRAME_CHECKS).raise_first(FRAME_CHECKS)  # equations may be singular off the manifold
        raise


def _compute_on_manifold(
    at: ConstrainedPoint, manifold: LargeManifold, request: Request, independent: Sequence[int]
) -> SparseLinearizedPoint:
    from scipy import sparse

    model, equations, point, evaluator = at.model, manifold.equations, at.point, at.evaluator
    n, t, x, u = equations.n, point.time, point.states, point.inputs
    base = evaluate(evaluator, point)
    W, r = equations.matrix(t, x, u)
    solver = equations.solver(W)
    null = _null_space(W[n:, :n], independent, model)
    independent = null.independent.tolist()
    states, p = [*independent, *(n + i for i in independent)], 2 * len(independent)
    K, K_dot = null.R, null.lift(-(equations.turning(t, x, u) @ null.R))
    T = sparse.block_array([[K, None], [K_dot, K]]).toarray()
    directions = np.hstack((T, np.zeros((2 * n, len(u))))), np.eye(len(u), p + len(u), p)
    slopes = evaluator.products(t, x, u, *directions)
    assert slopes is not None  # noqa: S101 - these equations have them
    along, unknowns = np.vstack(directions), solver.solve(r)
    accelerations, errors = _solve_refined(W, solver, equations.slopes(t, x, u, unknowns), along)
    # The rates of the positions are the speeds, exactly.
    rates, rate_errors = slopes.derivatives.copy(), np.zeros(slopes.derivatives.shape)
    rates[n:], rate_errors[n:] = accelerations[:n], errors[:n]
    sizes = model.states.scales(x)
    scales = np.concatenate((sizes[states], model.inputs.scales(u)))
    conditioning = float(np.linalg.norm(K.toarray() / sizes[:n, None] * sizes[independent], 2)) if p else 1.0
    output_errors = EPS / solver.rcond * np.abs(slopes.outputs)
    derivatives = TangentDerivatives(
        base.derivatives[None],
        base.outputs[None],
        rates[None],
        slopes.outputs[None],
        T[None],
        np.zeros((1, 2 * n, len(u))),
        scales[None],
        (np.concatenate((rate_errors, output_errors)) * scales)[None],
        "products",
        np.ones((2 * n + len(slopes.outputs), p + len(u)), dtype=bool),
    )
    tangents = GivenTangents(
        batch_points([point]),
        StateCoordinates(states, 2 * n),
        scales[:p],
        scales[p:],
        EPS * conditioning * np.abs(T),
        conditioning,
        manifold.residual,
    )
    evaluator.evaluations += 2  # the sparse matrices
    kind = "named" if request.independent is not None else "partition"
    linear = assemble_given(evaluator, point, derivatives, tangents, model.states.select(states), kind)
    linear = _attach_descriptor(linear, model, point, request)
    return SparseLinearizedPoint(
        evaluator=evaluator,
        point=point,
        facts=at.facts,
        manifold=manifold,
        request=request,
        linear=linear,
        base=base,
        equations=equations,
        derivatives=derivatives,
        unknowns=unknowns,
    )


def _attach_descriptor(linear: LinearModel, model: Model, point: OperatingPoint, request: Request) -> LinearModel:
    """Return the linear model with the descriptor system where one is requested, and the model is not too large."""
    if not request.descriptor or len(model.states) > MAX_DESCRIPTOR_STATES:
        return linear
    from fmilin.formulations.descriptor_system import with_descriptor

    names = model.states.positions
    return with_descriptor(linear, model, point, np.eye(len(names))[[names[n] for n in linear.states.names]])


def _find_positions(model: Model, n: int, request: Request) -> Sequence[int] | None:
    """Return the positions to keep, maybe none of them named; None when what is named is not a set of positions."""
    named = model.independent if request.independent is None else request.independent
    if any("=" in name for name in named):
        return None  # coordinates of the user's own
    indices = [model.states.index_of(name, f"a state of '{model.info.name}'") for name in named]
    positions = [i for i in indices if i < n]
    velocities = sorted(i - n for i in indices if i >= n)
    if len(set(indices)) != len(indices) or (indices and velocities not in ([], sorted(positions))):
        return None
    return positions


def _solve_refined(W: Any, solver: Any, S: Any, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return X with W X = S D and the errors of its entries, (n + m, k) each.

    Iterative refinement with residuals in extended precision (Higham, Accuracy and Stability of Numerical Algorithms,
    section 12.1) makes entries right to rounding; the last correction says how far that has come. The condition number
    of W would say that nothing is known of the slow modes of a stiff structure.
    """
    exact_W = W.astype(np.longdouble)
    exact_right = S.astype(np.longdouble) @ directions.astype(np.longdouble)
    X = solver.solve(np.asarray(exact_right, dtype=np.float64))
    correction = np.zeros_like(X)
    for _ in range(REFINEMENTS):
        residual = exact_right - exact_W @ X.astype(np.longdouble)
        correction = solver.solve(np.asarray(residual, dtype=np.float64))
        X = X + correction
    return X, np.asarray(CORRECTION_ERROR_FACTOR * np.abs(correction) + ROUNDING_ERROR_FACTOR * EPS * np.abs(X))


def _residuals(model: Model, equations: SparseEquations, point: OperatingPoint) -> dict[str, float]:
    """Return by name what is left of the constraints and of their rates, the largest first."""
    values = equations.residuals(point.time, point.states, point.inputs)
    names = model.constraints.names
    all_names = (*names, *(f"hidden rate of {name}" for name in names))
    order = np.argsort(-np.abs(values), kind="stable")
    least = MANIFOLD_DISTANCE_TOLERANCE * float(np.max(np.abs(values), initial=0.0))
    return {all_names[i]: float(values[i]) for i in order if not abs(values[i]) <= least}


def _null_space(G: Any, independent: Sequence[int], model: Model) -> Any:
    """Return the null space in the coordinates named, or in ones chosen; who names wrong ones hears of better ones."""
    from fmilin.formulations.sparse.elimination import sparse_null_space

    try:
        return sparse_null_space(G, independent or None)
    except NumericalError as error:
        if not independent:
            raise
        n, free = G.shape[1], sparse_null_space(G).independent.tolist()
        names = ", ".join(model.states.names[i] for i in (*free, *(n + i for i in free)))
        raise NumericalError(f"{error} {names} would do.", condition_number=np.inf) from None
