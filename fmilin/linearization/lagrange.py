"""Lagrange's equations, linearized by what they are: large ones, and those at singular configurations.

With G K = 0 and K one at the kept positions, by elimination along the graph of the constraints, states (q, v) of a
large model move by dq = K y and dv = K y' + Kdot y, G Kdot = -d(G v)/dq K (Spencer, thesis, section 2.2), and
accelerations and multipliers by W dw = e_s (T; du), e = r - W w: one factorization of W, one solution for each column.

At a singular configuration the velocities with G v = 0 are more than those of any branch of motion. Over all, at rest,

    K' M K z'' = K' (de/dq) K z + K' (de/dv) K z' + K' (de/du) u,    e = F - G' lambda,

which reproduces the pairs published for the four-bar (González et al., section 5.1), multipliers of least norm.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from fmilin.diagnostics import Remark, model_remarks
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.checks.check import NOT_CHECKED
from fmilin.linearization.checks.motion import motion_remarks
from fmilin.linearization.evaluation import evaluate
from fmilin.linearization.request import Request
from fmilin.manifold.projection import not_on_manifold
from fmilin.manifold.rank import explanation
from fmilin.model.capabilities import read_second_order_form
from fmilin.model.equations import SecondOrderForm, SparseEquations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import COMPARED, DOUBTFUL, EPS, KINK, ON_MANIFOLD, RANK

STEP = 1e-5  # of the difference that slopes are compared with, in sizes of the states
LARGEST_DESCRIPTOR = 1_000  # states up to which a descriptor system, of full matrices, is carried along
REFINEMENTS = 2
CORRECTIONS = 2.0  # errors of an entry, in units of what the last step of iterative refinement changes
ROUNDINGS = 4.0  # errors that entries have at least, in units of EPS


def by_sparse_equations(
    model: Model, equations: SparseEquations, point: OperatingPoint, request: Request
) -> LinearModel | None:
    """Linearize a model with these equations; None where they have no way to what is asked for."""
    independent = _named_positions(model, equations.n, request)
    plain = request.coordinates == "partition" and request.derivatives in ("auto", "exact")
    if independent is None or not plain:
        return None
    linear = _linearized(model, equations, point, request, independent)
    if not request.descriptor or len(model.states) > LARGEST_DESCRIPTOR:
        return linear
    from fmilin.formulations.descriptor import with_descriptor

    names = model.states.positions
    return with_descriptor(linear, model, point, np.eye(len(names))[[names[n] for n in linear.states.names]])


def _named_positions(model: Model, n: int, request: Request) -> Sequence[int] | None:
    """Return the positions to keep, maybe none of them named; None when what is named is no set of positions."""
    named = model.independent if request.independent is None else request.independent
    if any("=" in name for name in named):
        return None  # coordinates of the user's own
    indices = [model.states.index_of(name, f"a state of '{model.info.name}'") for name in named]
    positions = [i for i in indices if i < n]
    velocities = sorted(i - n for i in indices if i >= n)
    if len(set(indices)) != len(indices) or (indices and velocities not in ([], sorted(positions))):
        return None
    return positions


def _linearized(
    model: Model, equations: SparseEquations, point: OperatingPoint, request: Request, independent: Sequence[int]
) -> LinearModel:
    n, t, x, u = equations.n, point.time, point.states, point.inputs
    if not (distance := equations.distance(x, u, t)) <= ON_MANIFOLD:
        raise not_on_manifold(_residuals(model, equations, point))
    evaluator = PointEvaluator(model)
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
    if request.checks != "none":
        _compare(model, equations, point, solver.solve(r), np.vstack(directions))
    accelerations, errors = _solve_refined(W, solver, equations.slopes(t, x, u, solver.solve(r)), np.vstack(directions))
    # The rates of the coordinates are the speeds, exactly.
    rates, rate_errors = slopes.derivatives[states], np.zeros((p, p + len(u)))
    rates[len(independent) :], rate_errors[len(independent) :] = accelerations[independent], errors[independent]
    A, B = np.hsplit(rates, [p])
    C, D = np.hsplit(slopes.outputs, [p])
    scales = model.states.scales(x)
    along = slopes.derivatives * np.concatenate((scales[states], model.inputs.scales(u)))
    conditioning = float(np.linalg.norm(K.toarray() / scales[:n, None] * scales[independent], 2)) if p else 1.0
    signals, kind = model.states.select(states), "named" if request.independent is not None else "partition"
    error = EPS * conditioning * np.abs(T)
    coordinates = IndependentCoordinates(signals, model.states, x[states], T, error, kind, conditioning, distance)
    remarks = motion_remarks(model, base, scales, along, p)
    if conditioning > DOUBTFUL:
        text = f"The coordinates move others {conditioning:.3g} times as far as themselves: name others, or none."
        remarks.append(Remark("conditioning", text))
    method = "exact", evaluator.evaluations + 2, evaluator.directions
    own = LinearMatrices.known_to(EPS / solver.rcond, (A, B, C, D), base.derivatives[states])
    own = replace(own, A_error=rate_errors[:, :p], B_error=rate_errors[:, p:])
    every = (*remarks, *model_remarks(model.notes))
    if request.checks == "none":
        every = (NOT_CHECKED, *every)
    return built(model, coordinates, own, point_of(model, point, base.outputs), method, every)


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
    return X, np.asarray(CORRECTIONS * np.abs(correction) + ROUNDINGS * EPS * np.abs(X))


def _residuals(model: Model, equations: SparseEquations, point: OperatingPoint) -> dict[str, float]:
    """Return by name what is left of the constraints and of their rates, the largest first."""
    values = equations.residuals(point.time, point.states, point.inputs)
    names = model.constraints.names
    every = (*names, *(f"hidden rate of {name}" for name in names))
    order = np.argsort(-np.abs(values), kind="stable")
    least = ON_MANIFOLD * float(np.max(np.abs(values), initial=0.0))
    return {every[i]: float(values[i]) for i in order if not abs(values[i]) <= least}


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


def _compare(model: Model, equations: SparseEquations, point: OperatingPoint, w: FloatArray, along: FloatArray) -> None:
    """Compare the slopes of r - W w with a central difference, along one direction in which all columns take part."""
    t, n, x, u = point.time, equations.n, point.states, point.inputs
    sizes = np.concatenate((model.states.scales(x), np.maximum(np.abs(u), 1.0)))
    direction = along @ np.random.default_rng(7).uniform(0.5, 1.0, along.shape[1])
    direction /= np.max(np.abs(direction / sizes), initial=1e-300)
    residuals, rounding = [], 0.0
    for sign in (1.0, -1.0):
        moved = np.concatenate((x, u)) + sign * STEP * direction
        W, r = equations.matrix(t, moved[: 2 * n], moved[2 * n :])
        residuals.append(r - W @ w)
        # the values beside the point hold the rounding of their terms, over the step
        rounding = 1e2 * EPS / STEP * float(np.max(abs(W) @ np.abs(w), initial=0.0))
    exact, (ahead, behind) = equations.slopes(t, x, u, w) @ direction, residuals
    largest = float(np.max(np.abs(exact), initial=0.0))
    deviation = float(np.max(np.abs((ahead - behind) / (2 * STEP) - exact), initial=0.0))
    bend = float(np.max(np.abs(ahead + behind), initial=0.0)) / STEP  # at the point itself r - W w is zero
    if not (deviation <= COMPARED * largest + rounding and bend <= KINK / 4 * largest + rounding):
        raise NumericalError(
            f"The exact slopes of '{model.info.name}' deviate by {max(deviation, bend):.3g} from differences at this "
            "point: the equations have a kink or leave their domain here. Move the point a little, or take the "
            "slopes on one side of it (one_sided=)."
        )


def require_second_order_form(model: Model, point: OperatingPoint) -> SecondOrderForm:
    """Return Lagrange's equations in their parts; raise UsageError if the model has none."""
    form = read_second_order_form(model, point.time, point.states, point.inputs)
    if form is None:
        raise UsageError(
            f"The model '{model.info.name}' does not show its mass matrix and constraints: at_singularity=True needs "
            "a native model made of Lagrange's equations."
        )
    return form


def linearize_at_singularity(model: Model, point: OperatingPoint, *, independent: Sequence[str] = ()) -> LinearModel:
    """Return the linear model over all velocities with G v = 0 at a point of rest, of Lagrange's equations."""
    from fmilin.formulations.of_model import is_at_rest

    x = point.states
    form = require_second_order_form(model, point)
    if not is_at_rest(model, point, form):
        raise NumericalError(
            "With at_singularity=True the point must be an equilibrium at rest: in motion the branches have different "
            "velocities, and there is no common one to linearize about."
        )
    scales = model.states.scales(x)
    K, chosen = _basis(model, form, scales, independent)
    names = [model.states[int(form.positions[i])] for i in chosen]
    speeds = [model.states[int(form.velocities[i])] for i in chosen]
    return _linear(model, point, form, K, Signals([*names, *speeds]))


def _linear(model: Model, point: OperatingPoint, form: SecondOrderForm, K: FloatArray, signals: Signals) -> LinearModel:
    p, n_states = K.shape[1], len(model.states)
    T = np.zeros((n_states, 2 * p))
    T[np.ix_(form.positions, np.arange(p))] = K
    T[np.ix_(form.velocities, np.arange(p, 2 * p))] = K
    mass = linalg.cho_factor(K.T @ form.M @ K)
    lower = linalg.cho_solve(mass, K.T @ form.force_states @ T)
    B2 = linalg.cho_solve(mass, K.T @ form.force_inputs)
    A = np.vstack((np.hstack((np.zeros((p, p)), np.eye(p))), lower))
    B = np.vstack((np.zeros((p, len(model.inputs))), B2))
    # Outputs see the accelerations K z''; multipliers change with G' d lambda = (de/ds) ds - M K z'', of least norm.
    G_t = np.linalg.pinv(form.G.T, rcond=RANK)
    dv, dv_u = K @ lower, K @ B2
    dl, dl_u = G_t @ (form.force_states @ T - form.M @ dv), G_t @ (form.force_inputs - form.M @ dv_u)
    C = form.output_states @ T + form.output_unknowns @ np.vstack((dv, dl))
    D = form.output_inputs + form.output_unknowns @ np.vstack((dv_u, dl_u))
    eps = float(EPS * np.linalg.cond(K.T @ form.M @ K) * 16)
    y0 = np.array([point.states[model.states.positions[s.name]] for s in signals])
    condition = float(np.linalg.cond(K))
    coordinates = IndependentCoordinates(signals, model.states, y0, T, eps * np.abs(T), "enlarged", condition)
    slopes, remarks = LinearMatrices.known_to(eps, (A, B, C, D), np.zeros(2 * p)), (explanation(model, form, p),)
    return built(model, coordinates, slopes, point_of(model, point, None), ("exact", 1, 0), remarks)


def _basis(
    model: Model, form: SecondOrderForm, scales: FloatArray, independent: Sequence[str]
) -> tuple[FloatArray, list[int]]:
    """Return K, shape (n, p), with rows of the identity for the chosen positions, and which these are."""
    D = scales[form.positions]
    V = D[:, None] * linalg.null_space(form.G * D, rcond=RANK)
    p = V.shape[1]
    if independent:
        states = [model.states.index_of(name, "a state of the model") for name in independent]
        chosen = [int(np.flatnonzero(form.positions == i)[0]) for i in states if i in form.positions]
        if len(chosen) != p:
            raise UsageError(f"{p} independent positions are needed at this singular configuration, not {len(chosen)}.")
    else:
        chosen = sorted(int(i) for i in linalg.qr((V / D[:, None]).T, mode="r", pivoting=True)[1][:p])
    if np.linalg.cond(V[chosen]) > 1 / RANK:
        raise NumericalError("These coordinates do not determine the others at this singular configuration.")
    return V @ np.linalg.inv(V[chosen]), chosen
