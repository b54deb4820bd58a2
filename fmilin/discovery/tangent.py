"""The directions of motion without any formula: the linear model of all states, restricted to where the model can go.

At an equilibrium gradients w of what is kept of the speeds obey w A = 0 and w B = 0, those of positions' constraints w
A in the span of the first, and w B = 0. The tangent space is their common kernel.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.builder import with_errors
from fmilin.linear_model.model import EntryErrors, LinearModel
from fmilin.linearization.dependence import dependent_combinations
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import assemble_start
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import TangentOptions, takes_linearization
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, EQUILIBRIUM_RATE_TOLERANCE, MAX_COORDINATE_CONDITION_NUMBER

NULL_SPACE_TOLERANCE = 1e-7  # singular values, of the largest, that are zero; more where A has larger errors
MAX_NULL_SPACE_TOLERANCE = 1e-2  # the same at most: beyond that nothing can be said


@one_at_a_time
@takes_linearization
def linearize_on_tangent(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[TangentOptions],
) -> LinearModel:
    """Return a linear model in states that move independently, by numbers at the point alone, constraints left out.

    Parameters
    ----------
    model : Model
    point : OperatingPoint, optional
        An equilibrium; where the model starts by default.
    linearization : Linearization, optional
        How the Jacobian of all states is computed; its options may be keywords instead.
    """
    request = Request.of("linearize_on_tangent", linearization, options)
    if request.stepping is not None and request.stepping.lifted:
        raise UsageError(
            "The directions of motion follow from a continuous linear model, and lifted=True makes a discrete one. "
            "Leave it out."
        )
    independent = request.independent
    of_all_states = replace(request, independent=None)
    free = model.with_constraints([])
    point = assemble_start(free) if point is None else point
    full = linearize_request(free, point, of_all_states)
    with_all_inputs = (
        full if request.inputs is None else linearize_request(free, point, replace(of_all_states, inputs=None))
    )
    sizes = full.states.scales(full.y0)
    if float(np.abs(full.f0 / sizes).max(initial=0.0)) > EQUILIBRIUM_RATE_TOLERANCE:
        raise NumericalError(
            f"The tangent space of '{model.info.name}' follows from numbers alone only at an equilibrium, and the "
            "point is not one: along a motion every quantity seems to be conserved. Find one with fl.trim(model), or "
            "find the constraints with fl.discover(model)."
        )
    gradients, gap = _find_conserved_gradients(
        with_all_inputs, dependent_combinations(with_all_inputs, free, point), sizes
    )
    return _restrict_to_independent(full, gradients / sizes[:, None], gap, independent, sizes)


def _find_conserved_gradients(
    linear: LinearModel, of_speeds: FloatArray, sizes: FloatArray
) -> tuple[FloatArray, float]:
    """Return the gradients of all that is kept, shape (N, k), states in their sizes, and the error of that decision."""
    if not of_speeds.shape[1]:
        return of_speeds, 0.0
    A = linear.A * sizes / sizes[:, None]
    B = linear.B * linear.inputs.scales() / sizes[:, None]
    span = linalg.orth(of_speeds)
    outside = A - A @ span @ span.T  # rows w A, without their part in the span
    both = np.hstack((outside, B))
    norms = np.linalg.norm(np.hstack((A, B)), axis=1, keepdims=True)
    weights = 1 / np.where(norms > 0, norms, 1.0)
    left_vectors, s, _ = np.linalg.svd(weights * both)
    limit = min(max(NULL_SPACE_TOLERANCE, 10 * linear.accuracy.A), MAX_NULL_SPACE_TOLERANCE) * s[0]
    rank = int((s > limit).sum())
    weighted = left_vectors[:, rank:] * weights
    weighted = weighted / np.linalg.norm(weighted, axis=0)
    still = linalg.null_space(
        (weighted.T @ A).T, rcond=NULL_SPACE_TOLERANCE
    )  # w A = 0: parameters and cyclic coordinates, too
    moving = weighted @ linalg.null_space(still.T, rcond=NULL_SPACE_TOLERANCE) if still.size else weighted
    gap = float((s[rank] if rank < len(s) else 0.0) / s[rank - 1])
    return linalg.orth(np.hstack((span, moving))), gap


def _restrict_to_independent(
    full: LinearModel, gradients: FloatArray, gap: float, independent: Sequence[str] | None, sizes: FloatArray
) -> LinearModel:
    n, k = gradients.shape
    H = (gradients * sizes[:, None]).T
    if independent is None:
        dependent = sorted(linalg.qr(H, pivoting=True, mode="r")[1][:k].tolist())
    else:
        chosen = [full.states.index_of(name, "a state of the model") for name in independent]
        if len(chosen) != n - k:
            raise UsageError(f"{len(chosen)} independent states were named, but {n - k} can move independently.")
        dependent = [i for i in range(n) if i not in chosen]
    rows = [i for i in range(n) if i not in dependent] if independent is None else chosen
    condition = float(np.linalg.cond(H[:, dependent])) if k else 1.0
    if condition > MAX_COORDINATE_CONDITION_NUMBER:
        raise NumericalError(
            f"The states {', '.join(full.states.names[i] for i in rows)} do not determine the others (condition number "
            f"{condition:.3g}). Name others with independent=, or none.",
            condition_number=condition,
        )
    T = np.zeros((n, n - k))
    T[rows, np.arange(n - k)] = 1.0
    if k:
        T[dependent] = -np.linalg.solve(gradients.T[:, dependent], gradients.T[:, rows])
    T_error = np.zeros_like(T)
    T_error[dependent] = (gap * condition + EPS) * np.abs(T[dependent]).max(initial=0.0)
    E = full.errors
    A_error = E.A[rows] @ np.abs(T) + np.abs(full.A[rows]) @ T_error
    C_error = E.C @ np.abs(T) + np.abs(full.C) @ T_error
    errors = EntryErrors(A_error, E.B[rows], C_error, E.D, T_error)

    remark = Remark(
        "tangent-only",
        f"No constraint is known: the numbers at this point alone show that {n - k} of {n} states can move "
        "independently. The linear model is valid at this point only.",
    )
    restricted = replace(
        full,
        A=full.A[rows] @ T,
        B=full.B[rows],
        C=full.C @ T,
        T=T,
        T_u=np.zeros((n, len(full.inputs))),
        f0=full.f0[rows],
        y0=full.y0[rows],
        states=full.states.select(rows),
        accuracy=replace(full.accuracy, conditioning=condition),
        warnings=tuple(w for w in full.warnings if w.kind != "dependent-states"),
    )
    return with_errors(restricted, errors, remark)
