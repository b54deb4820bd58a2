"""Large models without constraints that declare sparse derivatives: sparse matrices, and checks of these.

All N states are coordinates, so that A = f_x, and work and memory follow the number of declared dependencies instead of
N^2. The same properties are verified as by the general algorithm:

- derivatives agree with differences: groups of columns or one direction, :mod:`fmilin.linearization.sparse_comparison`;
- the model is repeatable: one evaluation, as in the general algorithm;
- no event and no turn of an angle is near: at the points of those differences;
- entries are accurate: those that are stored, as others have no error;
- the point is an equilibrium, or A is constant along its motion: :mod:`fmilin.linearization.sparse_motion`;
- inputs reach outputs: a search in the graph of the entries;
- states are independent: the structural rank, then a sparse factorization,
  :mod:`fmilin.linearization.sparse_dependence`.

Where the first four leave a doubt (a derivative that a difference contradicts, an event or a kink nearby, memory
between evaluations, an angle that wraps) the general algorithm decides, which examines each column with care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import FmilinError
from fmilin.linear_model.accuracy import comparable_sizes
from fmilin.linear_model.builder import name_point
from fmilin.linear_model.model import Accuracy, LinearizationMethod
from fmilin.linear_model.sparse import SparseLinearModel, find_relative_errors
from fmilin.linear_model.sparse_matrices import SparseErrors, SparseMatrices
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.linearization_context import SparseStatesPoint
from fmilin.linearization.request import Request
from fmilin.linearization.sparse_comparison import compare_sparsely
from fmilin.linearization.sparse_differences import difference_sparsely, find_grouped_pattern
from fmilin.linearization.sparse_motion import SparseMotion
from fmilin.manifold.frame import CoordinateChoice, Frame, choose_coordinates, constraint_manifold
from fmilin.manifold.manifold_verification import VerifiedFacts, recall_facts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.point_motion import MotionBatch
from fmilin.model.capabilities import HasDerivativeErrors, HasDirectionalDerivatives, can_be_described
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.learned_structure import compute_sparse_derivatives
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.sparse_rows import reduce_rows
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, INACCURATE_ENTRY_ERROR

if TYPE_CHECKING:
    from scipy import sparse

MIN_STATES = 500
"""From here on models are linearized in sparse form. Below, arrays take less time, and their memory does not matter."""


def is_sparse_form_meant(model: Model, point: OperatingPoint, request: Request) -> bool:
    """Return whether a model is large, and a request asks for nothing that needs arrays."""
    is_plain = request.coordinates == "partition" and isinstance(request.derivatives, str)
    is_whole = request.independent is None and not model.independent and not len(model.constraints)
    asks_more = request.descriptor or request.hold_modes or point.slope_changes is not None
    is_large = len(model.states) >= MIN_STATES
    may_be_sparse = isinstance(model, HasDirectionalDerivatives) or model.structure is not None
    # A descriptor system is compared with A in arrays.
    return is_large and may_be_sparse and is_plain and is_whole and not asks_more and not can_be_described(model)


def states_errors(model: Model, point: OperatingPoint) -> bool:
    """Return whether a model states errors of its derivatives that are not those of rounding."""
    if not isinstance(model, HasDerivativeErrors):
        return False
    nothing = np.zeros((len(point.states), 1)), np.zeros((len(point.inputs), 1))
    return model.product_errors(point.time, point.states, point.inputs, *nothing) is not None


def compute_with_sparse_states(model: Model, point: OperatingPoint, request: Request) -> SparseStatesPoint | None:
    """Return the linear model at a point in sparse matrices; None where the general algorithm is to compute it."""
    if not is_sparse_form_meant(model, point, request):
        return None
    evaluator = PointEvaluator(model)
    try:
        derivatives = None
        if request.derivatives != "differences":
            if states_errors(model, point):
                return None
            derivatives = compute_sparse_derivatives(model, point.time, point.states, point.inputs)
        if derivatives is None:
            return _compute_by_differences(evaluator, point, request)
        if not np.isfinite(derivatives.J.data).all():
            return None
        evaluator.directions += derivatives.directions
        return _compute(evaluator, point, request, derivatives)
    except FmilinError:
        return None  # the general algorithm raises it again, or knows better


def _compute(
    evaluator: PointEvaluator, point: OperatingPoint, request: Request, derivatives: SparseJacobian
) -> SparseStatesPoint | None:
    nearby = _prepare(evaluator, point, request)
    facts = nearby.frame.constraint_manifold.facts
    errors = estimate_errors(derivatives.J, nearby.scales, nearby.frame)
    if request.checks != "none" and request.derivatives != "exact":
        compared = compare_sparsely(nearby, derivatives, errors, facts)
        if compared is None:
            return None
        errors, facts = compared
    return _finish(nearby, facts, request, derivatives, errors)


def _compute_by_differences(
    evaluator: PointEvaluator, point: OperatingPoint, request: Request
) -> SparseStatesPoint | None:
    pattern = None if request.derivatives == "exact" else find_grouped_pattern(evaluator.model)
    if pattern is None or (request.derivatives == "auto" and _has_exact_derivatives(evaluator, point)):
        return None
    nearby = _prepare(evaluator, point, request)
    slopes = difference_sparsely(nearby, pattern, is_checked=request.checks != "none")
    if slopes is None:
        return None
    facts = nearby.frame.constraint_manifold.facts
    return _finish(nearby, facts, request, slopes.derivatives, slopes.errors, by_differences=True)


def _has_exact_derivatives(evaluator: PointEvaluator, point: OperatingPoint) -> bool:
    t, x, u = point.time, point.states, point.inputs
    if evaluator.exact_slopes(t, x, u) is not None:
        return True
    return evaluator.products(t, x, u, np.eye(len(x), 1), np.zeros((len(u), 1))) is not None


def _prepare(evaluator: PointEvaluator, point: OperatingPoint, request: Request) -> Neighbourhood:
    """Return the model near a point in coordinates that are its states."""
    base = evaluate(evaluator, point)
    facts = recall_facts(evaluator.model, point, base, trusted=request.checks != "all")
    manifold = constraint_manifold(evaluator, point, facts)
    frame = choose_coordinates(manifold, CoordinateChoice())
    return Neighbourhood(evaluator, frame, point, base)


def _finish(
    nearby: Neighbourhood,
    facts: VerifiedFacts,
    request: Request,
    derivatives: SparseJacobian,
    errors: FloatArray,
    *,
    by_differences: bool = False,
) -> SparseStatesPoint | None:
    """Return the linear model of derivatives with errors; None where something is in doubt."""
    is_checked, J, n = request.checks != "none", derivatives.J, nearby.n
    if is_checked and is_doubtful(nearby, J, errors):
        return None
    E = attach_errors(J, errors)
    evaluator, point, base = nearby.evaluator, nearby.point, nearby.base_evaluation
    motion = MotionBatch.not_searched(np.array([-1]), n, has_choice=False)
    if is_checked and request.seek_steady:
        sparse_motion = SparseMotion(evaluator, point, base.derivatives, J[:n], E[:n], nearby.scales, by_differences)
        motion = sparse_motion.describe()
    source = "differences" if by_differences else "exact"
    return SparseStatesPoint(
        evaluator=evaluator,
        point=point,
        facts=facts,
        manifold=nearby.frame.constraint_manifold,
        frame=nearby.frame,
        request=request,
        linear=assemble_sparsely(nearby, J, E, source),
        base=base,
        nearby=nearby,
        derivatives=derivatives,
        motion=motion,
    )


def estimate_errors(J: sparse.csr_array[Any], scales: FloatArray, frame: Frame) -> FloatArray:
    """Return the errors of the stored entries of exact derivatives: part of the largest of their row, in sizes."""
    relative = float(frame.parametrization.batch.relative_error_of_derivatives[0])
    largest = reduce_rows(np.maximum, np.abs(J.data) * scales[J.indices], J.indptr)
    return relative * np.repeat(largest, np.diff(J.indptr)) / scales[J.indices]


def attach_errors(J: sparse.csr_array[Any], errors: FloatArray) -> sparse.csr_array[Any]:
    """Return errors as a matrix with the entries of J."""
    from scipy import sparse

    return sparse.csr_array((errors, J.indices, J.indptr), shape=J.shape)


def is_doubtful(nearby: Neighbourhood, J: sparse.csr_array[Any], errors: FloatArray) -> bool:
    """Return whether anything was observed near the point that the general algorithm is to examine."""
    observations = nearby.observations
    change = observations.change_on_return
    change = nearby.change_at_point() if change is None else change
    if observations.crossed or observations.turns or change.any():
        return True
    scaled = errors * nearby.scales[J.indices]
    largest = reduce_rows(np.maximum, np.abs(J.data) * nearby.scales[J.indices], J.indptr)
    worst = reduce_rows(np.maximum, scaled, J.indptr)
    n = nearby.n
    sizes, rates = nearby.scales[:n], np.abs(nearby.base[:n])
    fastest = max(1.0, float(np.max(np.maximum(largest[:n], rates) / sizes, initial=0.0)))
    terms = np.concatenate((sizes * fastest, nearby.model.outputs.scales(nearby.base[n:])))
    return bool((worst > INACCURATE_ENTRY_ERROR * comparable_sizes(largest, worst, terms)).any())


def assemble_sparsely(
    nearby: Neighbourhood, J: sparse.csr_array[Any], E: sparse.csr_array[Any], source: str
) -> SparseLinearModel:
    """Return the linear model of a point: parts of the matrix of all derivatives J, with errors E."""
    from scipy import sparse

    evaluator, frame, base, n = nearby.evaluator, nearby.frame, nearby.base_evaluation, nearby.n
    model = evaluator.model
    for row, copy in model.copies.items():  # outputs that are states or inputs are exact
        column = copy.index if copy.kind == "state" else n + copy.index
        entries = slice(J.indptr[n + row], J.indptr[n + row + 1])
        E.data[entries] = np.where((J.indices[entries] == column) & (copy.kind == "state"), EPS, 0.0)
    unit = sparse.eye_array(n, format="csr")
    errors = SparseErrors(A=E[:n, :n], B=E[:n, n:], C=E[n:, :n], D=E[n:, n:], T=EPS * unit)
    T_u = sparse.csr_array((n, J.shape[1] - n))
    matrices = SparseMatrices(A=J[:n, :n], B=J[:n, n:], C=J[n:, :n], D=J[n:, n:], T=unit, T_u=T_u, errors=errors)
    f0 = base.derivatives + 0.0  # a zero is printed without a sign
    certainty = EPS if f0.any() else 0.0
    accuracy = Accuracy(
        **find_relative_errors(matrices), f0=certainty, constraint_residual=frame.residual, conditioning=1.0
    )
    values = {
        "f0": f0,
        "states": frame.selection.signals,
        "full_states": model.states,
        "inputs": model.inputs,
        "outputs": model.wrapped_outputs,
        "y0": frame.y0.copy(),
        "point": name_point(model, nearby.point, base.outputs),
        "accuracy": accuracy,
        "method": LinearizationMethod(source, "partition", evaluator.evaluations, evaluator.directions),
        "model": model.info,
    }
    return SparseLinearModel.of_matrices(matrices, values)
