"""A linear model in which no input reaches any output: it reads like a success, and answers nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.sparse import SparseLinearModel, change_fields, is_sparse
from fmilin.linear_model.sparse_matrices import SparseMatrices
from fmilin.linear_model.stability import Stability
from fmilin.numerics.balanced import NewtonStep, is_equilibrium, newton_step
from fmilin.numerics.sparse_equilibrium import find_sparse_step, is_sparse_equilibrium
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PUSH_SIZES = (1.0, 30.0)  # pushes, in sizes of an input, that tell what is stuck from what is not connected

Pattern = NDArray[np.bool_]


def has_no_response(linear: LinearModel) -> bool:
    """Whether there are inputs and outputs but no path between any, entries no larger than their errors being zero."""
    if not len(linear.inputs) or not len(linear.outputs):
        return False
    if is_sparse(linear):
        return not is_sparsely_connected(linear.sparse)
    return not is_connected(*(np.abs(getattr(linear, m)) > np.abs(getattr(linear.errors, m)) for m in "ABCD"))


def is_connected(A: Pattern, B: Pattern, C: Pattern, D: Pattern) -> bool:
    """Whether a path leads from some input to some output, through entries that are there."""
    if D.any():
        return True
    reached = front = B.any(axis=1)
    while front.any():
        if C[:, front].any():
            return True
        front = A[:, front].any(axis=1) & ~reached
        reached = reached | front
    return False


def is_sparsely_connected(matrices: SparseMatrices) -> bool:
    """Whether a path leads from some input to some output, through entries larger than their errors."""
    from scipy import sparse
    from scipy.sparse.csgraph import breadth_first_order

    A, B, C, D = (
        _find_visible(getattr(matrices, name), getattr(matrices.errors, name)) for name in ("A", "B", "C", "D")
    )
    if D.nnz:
        return True
    # Edges lead from what moves to what it moves, from one node more to all that inputs move.
    count = A.shape[0]
    inputs = sparse.csr_array(B.sum(axis=1).reshape(1, count))
    graph: Any = sparse.block_array([[A.T, None], [inputs, sparse.csr_array((1, 1))]], format="csr")
    reached = breadth_first_order(graph, count, return_predecessors=False)
    observed = np.append(C.sum(axis=0) > 0, False)
    return bool(observed[reached].any())


def _find_visible(matrix: csr_array[Any], errors: csr_array[Any]) -> csr_array[Any]:
    """Return a matrix of ones where entries are larger than their errors, which have the same places."""
    from scipy import sparse

    visible = np.abs(matrix.data) > errors.data
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    entries = rows[visible], matrix.indices[visible]
    return sparse.csr_array((np.ones(len(entries[0])), entries), shape=matrix.shape)


def path_to_an_output(A: Pattern, B: Pattern, C: Pattern, D: Pattern) -> list[tuple[str, int, int]] | None:
    """Return the entries (matrix, row, column) of a shortest path from some input to some output; None without."""
    if D.any():
        row, column = np.argwhere(D)[0].tolist()
        return [("D", row, column)]
    paths = {i: [("B", i, int(B[i].argmax()))] for i in np.flatnonzero(B.any(axis=1)).tolist()}
    front = list(paths)
    while front:
        if (entries := C[:, front]).any():
            row, column = np.argwhere(entries)[0].tolist()
            return [*paths[front[column]], ("C", row, front[column])]
        reached = [i for i in np.flatnonzero(A[:, front].any(axis=1)).tolist() if i not in paths]
        for i in reached:
            before = front[int(A[i, front].argmax())]
            paths[i] = [*paths[before], ("A", i, before)]
        front = reached
    return None


def dead_zone_text(names: Sequence[str]) -> str:
    """Say that inputs move nothing when they are pushed a little, and something when they are pushed more."""
    return (
        f"Small changes of {', '.join(names)} have no effect in either direction, larger ones (of about their size) "
        "do: static friction, or a dead zone."
    )


def dead_zone_error(names: Sequence[str]) -> NumericalError:
    """Return the error for a model that nothing moves because it is stuck."""
    return NumericalError(
        f"{dead_zone_text(names)} No linear model describes both: choose a point at which it moves, or replace the "
        "friction by a smooth one. hold_modes=True (in model exchange) and keep_inaccurate=True return the model of "
        "the stuck mode.",
        variable=names[0],
    )


def with_remark_on_response(linear: LinearModel) -> LinearModel:
    """Return the linear model, with a warning if no input reaches any output."""
    if any(w.kind == "no-response" for w in linear.warnings) or not has_no_response(linear):
        return linear
    remark = Remark(
        "no-response",
        f"NO INPUT MOVES ANY OUTPUT: none of the {len(linear.inputs)} inputs changes any of the {len(linear.outputs)} "
        "outputs at this point, so the transfer functions are all zero. Usual reasons: outputs that only change at "
        "events or samples (fl.Stepping(lifted=True)), inputs that are read once at the start, a part that is "
        "switched off, or unsuitable outputs (outputs=). fl.explain_zeros(model) finds the reason for each channel.",
    )
    return change_fields(linear, warnings=(remark, *linear.warnings))


def step_to_rest(linear: LinearModel) -> NewtonStep:
    """Return the Newton step of the coordinates y, in their sizes."""
    if is_sparse(linear) and not linear.sample_time:
        rates, sizes, J, E = _sparse_parts(linear)
        return find_sparse_step(rates, sizes, J[:, : len(rates)], E[:, : len(rates)])
    rates, sizes, slopes, errors = _parts(linear)
    p = len(sizes)
    return newton_step(rates, sizes, slopes[:, :p], errors[:, :p])


def is_at_rest(linear: LinearModel) -> bool:
    """Whether an equilibrium is so near to the point that it is one."""
    if is_sparse(linear) and not linear.sample_time:
        return is_sparse_equilibrium(*_sparse_parts(linear))
    return not len(linear.f0) or is_equilibrium(*_parts(linear), len(linear.f0))


def _sparse_parts(
    linear: SparseLinearModel,
) -> tuple[FloatArray, FloatArray, csr_array[Any], csr_array[Any]]:
    """Return rates and sizes (P,), derivatives and their errors (P, P + nu) in sizes of y and u."""
    from scipy import sparse

    y, u = linear.states.scales(linear.y0), linear.inputs.scales(linear.u0)
    matrices, columns = linear.sparse, sparse.diags_array(np.concatenate((y, u)))
    slopes = sparse.hstack((matrices.A, matrices.B), format="csr") @ columns
    errors = sparse.hstack((matrices.errors.A, matrices.errors.B), format="csr") @ columns
    return linear.f0, y, slopes.tocsr(), errors.tocsr()


MOVING_KINDS = frozenset({"off-equilibrium", "steady"})  # kinds of diagnostics that say that the point moves
UNTESTED = frozenset({"equilibrium-not-tested", "point"})  # kinds that say that nothing tells whether it does


def assess_equilibrium(linear: LinearModel) -> bool | None:
    """Return whether the point was found to be an equilibrium, None where nothing tells."""
    # Diagnostics hold what was seen of the whole model; f0 and A are the second test, which needs no diagnostic to be
    # there.
    kinds = {remark.kind for remark in linear.warnings}
    if kinds & MOVING_KINDS:
        return False
    if kinds & UNTESTED:
        return None
    is_finite = np.isfinite(linear.f0).all() and np.isfinite(linear.y0).all()
    if not is_finite or any(name not in linear.point.inputs for name in linear.inputs.names):
        return None
    return is_at_rest(linear)


def _parts(linear: LinearModel) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rates and sizes (P,), derivatives and their errors (P, P + nu) in sizes of y and u, all per second."""
    y = linear.states.scales(linear.y0)
    u = linear.inputs.scales(linear.u0)
    A, seconds = linear.A, 1.0
    if linear.sample_time:  # a sampled model rests where x[k+1] = x[k]
        A, seconds = linear.A - np.eye(len(linear.A)), linear.sample_time
    slopes, columns = np.hstack((A, linear.B)), np.concatenate((y, u)) / seconds
    stated = linear.errors.A.shape == linear.A.shape and linear.errors.B.shape == linear.B.shape
    errors = np.hstack((linear.errors.A, linear.errors.B)) if stated else np.zeros(slopes.shape)
    return linear.f0 / seconds, y, slopes * columns, errors * columns


def assess_stability(linear: LinearModel) -> Stability | None:
    """Return whether deviations from the point of a linear model grow; None where its eigenvalues do not tell.

    They tell at an equilibrium and in a steady motion, not at a point that merely passes.
    """
    if linear.is_equilibrium or any(remark.kind == "steady" for remark in linear.warnings):
        return linear.stability()
    return None
