"""Large models without constraints that have sparse derivatives: sparse matrices, sparse checks.

All N states are coordinates, so that A = f_x, and the work and the memory follow the number of declared dependencies
instead of N^2. What is verified at a point, and how, is what the general algorithm verifies: see
:mod:`fmilin.linearization.checks.sparse_states`. Where that leaves a doubt (a derivative that a difference contradicts,
an event or a kink nearby, memory between evaluations, an angle that wraps) the general algorithm decides, which looks
at each column with care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.linear_model.builder import point_of
from fmilin.linear_model.model import Accuracy, LinearizationMethod
from fmilin.linear_model.sparse import SparseErrors, SparseLinearModel, SparseMatrices
from fmilin.linearization.context import SparseStatesPoint
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.request import Request
from fmilin.manifold.frame import CoordinateChoice, choose_coordinates, constraint_manifold
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.verification import recall_facts
from fmilin.model.capabilities import HasSparseDerivatives, read_sparse_derivatives
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

if TYPE_CHECKING:
    from scipy import sparse

MIN_STATES = 500
"""From here on models are linearized in sparse form. Below, arrays take less time, and the memory is no matter."""


def compute_with_sparse_states(model: Model, point: OperatingPoint, request: Request) -> SparseStatesPoint | None:
    """Return the linear model at a point in sparse matrices, not checked; None where that is not the way for it."""
    is_plain = request.coordinates == "partition" and request.derivatives in ("auto", "exact")
    is_whole = request.independent is None and not model.independent and not len(model.constraints)
    asks_more = request.descriptor or request.hold_modes or point.slope_changes is not None
    if len(model.states) < MIN_STATES or not is_plain or not is_whole or asks_more:
        return None
    if not isinstance(model, HasSparseDerivatives):
        return None
    derivatives = read_sparse_derivatives(model, point.time, point.states, point.inputs)
    if derivatives is None or not np.isfinite(derivatives.J.data).all():
        return None
    evaluator = PointEvaluator(model)
    evaluator.directions += derivatives.directions
    base = evaluate(evaluator, point)
    facts = recall_facts(model, point, base, trusted=request.checks != "all")
    manifold = constraint_manifold(evaluator, point, facts)
    frame = choose_coordinates(manifold, CoordinateChoice())
    nearby = Neighbourhood(evaluator, frame, point, base)
    errors = estimate_errors(derivatives.J, nearby.scales, frame.parametrization.batch.relative_error_of_derivatives[0])
    at = SparseStatesPoint(
        evaluator=evaluator,
        point=point,
        facts=manifold.facts,
        manifold=manifold,
        frame=frame,
        request=request,
        base=base,
        nearby=nearby,
        derivatives=derivatives,
        errors=errors,
    )
    return at


def estimate_errors(J: sparse.csr_array[Any], scales: FloatArray, relative: float) -> FloatArray:
    """Return the errors of the stored entries of exact derivatives: part of the largest of their row, in sizes."""
    largest = find_row_sizes(J, scales)
    rows = np.repeat(largest, np.diff(J.indptr))
    return relative * rows / scales[J.indices]


def find_row_sizes(J: sparse.csr_array[Any], scales: FloatArray) -> FloatArray:
    """Return the largest entry of each row of J (r, c), columns in their sizes (c,); 0 of empty rows, shape (r,)."""
    entries = np.abs(J.data) * scales[J.indices]
    return reduce_rows(np.maximum, entries, J.indptr)


def reduce_rows(operation: np.ufunc, entries: FloatArray, indptr: Any) -> FloatArray:
    """Return ``operation`` over the entries of each row; 0 for rows without any."""
    result = np.zeros(len(indptr) - 1)
    filled = np.flatnonzero(np.diff(indptr) > 0)
    if len(filled):
        result[filled] = operation.reduceat(entries, indptr[filled])
    return result


def assemble_sparsely(at: SparseStatesPoint) -> SparseLinearModel:
    """Return the linear model of a point: parts of the matrix of all derivatives."""
    from scipy import sparse

    model, point, n = at.model, at.point, len(at.model.states)
    J = at.derivatives.J
    E = sparse.csr_array((at.errors, J.indices, J.indptr), shape=J.shape)
    sizes = at.frame.y_scales
    unit = sparse.eye_array(n, format="csr")
    # One stored error for each entry of T that is not zero: the others are zeros of the unit matrix.
    T_errors = sparse.diags_array(EPS * sizes / at.frame.y_scales, format="csr")
    errors = SparseErrors(A=E[:n, :n], B=E[:n, n:], C=E[n:, :n], D=E[n:, n:], T=T_errors)
    T_u = sparse.csr_array((n, J.shape[1] - n))
    matrices = SparseMatrices(A=J[:n, :n], B=J[:n, n:], C=J[n:, :n], D=J[n:, n:], T=unit, T_u=T_u, errors=errors)
    f0 = at.base.derivatives + 0.0
    accuracy = Accuracy(
        **{name: _relative_error(getattr(errors, name), getattr(matrices, name)) for name in "ABCDT"},
        f0=EPS if f0.any() else 0.0,
        constraint_residual=at.frame.residual,
        conditioning=1.0,
    )
    evaluator = at.evaluator
    values = {
        "f0": f0,
        "states": at.frame.selection.signals,
        "full_states": model.states,
        "inputs": model.inputs,
        "outputs": model.wrapped_outputs,
        "y0": at.frame.y0.copy(),
        "point": point_of(model, point, at.base.outputs),
        "accuracy": accuracy,
        "method": LinearizationMethod("exact", "partition", evaluator.evaluations, evaluator.directions),
        "model": model.info,
    }
    return SparseLinearModel.of_matrices(matrices, values)


def _relative_error(error: sparse.csr_array[Any], matrix: sparse.csr_array[Any]) -> float:
    worst = float(error.data.max(initial=0.0))
    largest = float(np.abs(matrix.data).max(initial=0.0))
    return 0.0 if worst == 0.0 else worst / largest if largest > 0 else worst
