"""Families of solutions: the directions along which one can move, and which member of a family is taken.

The member nearest to the guess minimizes |(z - z0) / s|^2 subject to r(z) = 0. Each step is the shortest one from z0 to
the tangent of the family, z = z0 - J^+ (r + J (z0 - z)), and Newton's method leads back to the family. Free inputs and
parameters have large sizes s: a guess is about where the states are.

Where feet can be pressed against each other, of many torques those with the smallest contact forces are taken. Inputs
enter affinely: least squares, of contact forces first, then of contact torques, then of the inputs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS
from fmilin.model.capabilities import HasContacts
from fmilin.numerics.balanced import equilibrate_jacobian
from fmilin.numerics.decompositions import decompose_by_singular_values, null_space
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM_FAMILY_TOLERANCE, RANK, RANK_MEASURED
from fmilin.trimming.damped_newton import newton_correct
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, assess_point
from fmilin.trimming.trim_report import FreeDirection
from fmilin.trimming.unknowns import Candidate

PROBED_STEP = 1e-4  # how far along a free direction the residual is examined, in sizes of the unknowns


def free_directions(
    equations: Equations, solution: Solution, preferred: Sequence[str]
) -> tuple[tuple[FreeDirection, ...], float]:
    """Return the Jacobian's null space, a leading unknown (if it can, ``preferred``) in each, and how regular it is."""
    unknowns = equations.unknowns
    certified = solution.certified
    free = (solution.z > unknowns.low) & (solution.z < unknowns.high)
    # Where solutions meet, the derivative along an unknown vanishes at one point: it is not a direction of a family.
    free[list(certified.multiple)] = False
    inside = np.flatnonzero(free)
    if not len(inside):
        return (), 1.0
    entry_sizes = np.fmax(
        np.abs(solution.J), certified.entry_sizes if solution.entry_sizes is None else solution.entry_sizes
    )
    # Rows that are only rounding would be enlarged to the size of others, and take directions of the family away.
    if certified.empty_rows is not None:
        entry_sizes[certified.empty_rows] = 0.0
    J = equilibrate_jacobian(solution.J[:, inside], entry_sizes[:, inside])
    if certified.is_isolated:
        return (), J.regularity
    limit = RANK if solution.is_exact and not equations.moving else RANK_MEASURED
    V = _confirm_directions(equations, solution, inside, J.columns[:, None] * J.null_space(limit), entry_sizes)
    if not V.shape[1]:
        return (), J.regularity
    from scipy import linalg

    # Preferred names lead where they determine the family nearly as well as others.
    weights = np.array([1.0 if unknowns.names[i] in preferred else 0.3 for i in inside])
    leaders = linalg.qr((V * weights[:, None]).T, mode="r", pivoting=True)[1][: V.shape[1]]
    basis = V @ np.linalg.inv(V[leaders])
    scales = unknowns.scales[inside]
    directions = []
    for k in np.argsort(leaders):
        leader = int(leaders[k])
        direction = basis[:, k] * scales / scales[leader]
        # Smaller parts are rounding of the null space.
        followers = [i for i in range(len(inside)) if i != leader and abs(basis[i, k]) > 1e-6]
        along = {unknowns.names[inside[i]]: float(direction[i]) for i in followers}
        directions.append(FreeDirection(unknowns.names[inside[leader]], along))
    return tuple(directions), J.regularity


def _confirm_directions(
    equations: Equations, solution: Solution, inside: np.ndarray, V: FloatArray, entry_sizes: FloatArray
) -> FloatArray:
    """Return the directions along which the residual really stays: exact products may have claimed too much."""
    first = equations.first_order
    rows = equilibrate_jacobian(solution.J, entry_sizes).rows
    # A row's change is compared with what its other unknowns do, those moved in sizes that the Jacobian tells.
    size = np.where(rows > 0, 1.0 / np.where(rows > 0, rows, 1.0), 0.0)

    def stays(v: FloatArray) -> bool:
        step = np.zeros_like(solution.z)
        step[inside] = PROBED_STEP * v / np.max(np.abs(v))
        change = np.abs(equations.balance(solution.z + step) - equations.balance(solution.z - step)) / (2 * PROBED_STEP)
        return bool(
            (change <= (EQUILIBRIUM_FAMILY_TOLERANCE * size + solution.allowed / PROBED_STEP)[first]).all()
        )  # NaN does not

    if V.shape[1] > 1 and stays(V @ np.cos(np.arange(V.shape[1]) + 1.0)):
        return V  # where a sum of all of them leads nowhere, none does
    confirmed = [v for v in V.T if stays(v)]
    return np.array(confirmed).T if confirmed else np.empty((len(inside), 0))


MAX_STEPS = 30  # along the family towards the guess, each with the tangent of its point
STEP_FRACTIONS = (1.0, 0.5, 0.25, 0.1)  # parts of a step that are tried until the distance falls
MIN_SHORTENING_FRACTION = 1e-9  # part of the distance by which a step must still shorten it
FAMILY_DIRECTION_FRACTION = 1e-4  # part of the way to the guess that lies along the family where a point is the nearest
SIZE_OF_INPUTS = 1e6  # how much cheaper it is to move a free input or parameter than a state


def move_to_nearest(equations: Equations, solution: Solution) -> tuple[Solution, bool]:
    """Return the solution of a family nearest to the guess, and whether it is: no small move along the family helps."""
    unknowns, z0 = equations.unknowns, equations.unknowns.z0
    weights = np.full(len(unknowns), SIZE_OF_INPUTS)
    weights[unknowns.state_columns] = unknowns.sizes(z0)[unknowns.state_columns]
    z, exact = solution.z, solution.is_exact

    def distance(z: FloatArray) -> float:
        return float(np.linalg.norm((z - z0) / weights))

    for _ in range(MAX_STEPS):
        away = _project_on_family(equations, z, z0, weights, exact=exact)
        # 0.1: the search ends well within what counts as nearest below.
        if np.linalg.norm(away / weights) <= 0.1 * FAMILY_DIRECTION_FRACTION * distance(z):
            break
        for part in STEP_FRACTIONS:
            ahead = newton_correct(equations, z + part * away, exact=exact)
            is_shorter = distance(ahead.z) < (1.0 - MIN_SHORTENING_FRACTION) * distance(z)
            # Up to 1e-8 Newton's method is on the family; the end is assessed as strictly as any solution.
            if is_shorter and (np.abs(ahead.r) <= np.maximum(solution.allowed, 1e-8)).all():
                z = ahead.z
                break
        else:
            break
    # A solution that stays keeps its certificate, and what the search has seen on the way.
    if not np.array_equal(z, solution.z):
        moved = assess_point(equations, z, exact=exact)
        if moved.is_zero:
            solution = replace(moved, tried=solution.tried)
    remaining = _project_on_family(equations, solution.z, z0, weights, exact=exact)
    # 1e-9: a guess that lies on the family is the nearest point itself, up to rounding.
    small = max(FAMILY_DIRECTION_FRACTION * distance(solution.z), 1e-9)
    return solution, bool(np.linalg.norm(remaining / weights) <= small)


def _project_on_family(
    equations: Equations, z: FloatArray, z0: FloatArray, weights: FloatArray, *, exact: bool
) -> FloatArray:
    """Return the part of the way from z to z0 that lies along the family, (n,); nothing where bounds stop it."""
    unknowns = equations.unknowns
    J = np.nan_to_num(equations.jacobian(z, exact=exact)[0])
    form = equilibrate_jacobian(J)
    limit = RANK if exact and not equations.moving else RANK_MEASURED
    along = form.columns[:, None] * form.null_space(limit) / weights[:, None]
    stopped = ((z <= unknowns.low) & (z0 < z)) | ((z >= unknowns.high) & (z0 > z))
    # A direction that moves an unknown against its bound is left out whole.
    along = along[:, ~(np.abs(along[stopped]) > 1e-12).any(axis=0)]  # smaller parts are rounding
    if not along.shape[1]:
        return np.zeros(len(z))
    basis = np.linalg.qr(along)[0]
    way: FloatArray = weights * (basis @ (basis.T @ ((z0 - z) / weights)))
    return way


INPUT_STEP = 1e-3  # of the inputs: rates are affine in them up to limits, which are further away

Balance = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From free inputs z to the rates of all states, the forces and the torques on all feet."""


def _make_balance(candidate: Candidate, model: HasContacts, free: NDArray[np.intp], sizes: FloatArray) -> Balance:
    """Return the balance of a configuration as a function of the free inputs, u = sizes z."""

    def at(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        u = candidate.inputs.copy()
        u[free] = z * sizes
        rates = candidate.evaluator.evaluate(candidate.time, candidate.states, u).derivatives
        wrenches = model.contact_forces(candidate.time, candidate.states, u).values()
        forces, torques = (np.concatenate([wrench[part] for wrench in wrenches]) for part in (slice(3), slice(3, 6)))
        return rates, forces[np.isfinite(forces)], torques[np.isfinite(torques)]  # NaN where undetermined

    return at


def least_contact_forces(equations: Equations, solution: Solution) -> tuple[Solution, tuple[Remark, ...]]:
    """Return the solution of the smallest contact forces, and what is to be said of it; itself where none is better."""
    unknowns = equations.unknowns
    candidate, columns = unknowns.at(solution.z), unknowns.input_columns
    model = candidate.model
    # Other inputs would miss the targets: with these there is no choice by contact forces.
    if not len(columns) or equations.targets or not isinstance(model, HasContacts):
        return solution, ()
    if not model.contact_forces(candidate.time, candidate.states, candidate.inputs):
        return solution, ()
    balance = _make_balance(candidate, model, unknowns.inputs, unknowns.scales[columns])
    try:
        z, choices = _smallest_wrenches(balance, solution.z[columns])
    except REFUSALS:
        return solution, ()
    if not choices:
        return solution, ()
    text = f"The contact forces of the feet are redundant: {choices} of {len(columns)} free inputs are redundant. "
    new = solution.z.copy()
    new[columns] = z
    residual = equations.values(new)
    # Inputs that are much larger than before bring the rounding of larger terms.
    allowed = np.maximum(solution.allowed, 1e-13 * (np.abs(solution.J) @ np.abs(new)))
    inside = ((new >= unknowns.low) & (new <= unknowns.high)).all()
    if not inside or not (np.abs(residual) <= allowed).all():
        text += "Those nearest to the guess were chosen: a bound or limit prevents the smallest contact forces."
        return solution, (Remark("least-squares", text),)
    text += "Those with the smallest contact forces were chosen (least squares), and of these the smallest ones."
    J, is_exact = equations.jacobian(new, exact=solution.is_exact)
    moved = replace(solution, z=new, residual=residual, allowed=allowed, J=np.nan_to_num(J), is_exact=is_exact)
    return moved, (Remark("least-squares", text),)


def _smallest_wrenches(balance: Balance, z0: FloatArray) -> tuple[FloatArray, int]:
    """Return the inputs, and in how many directions they may change."""
    from scipy import linalg

    base = balance(z0)
    h = INPUT_STEP * max(1.0, float(np.abs(z0).max(initial=0.0)))
    displaced = [balance(z0 + h * e) for e in np.eye(len(z0))]
    slopes = [np.stack([(at[k] - base[k]) / h for at in displaced], axis=1) for k in range(3)]
    open_ = null_space(slopes[0], rcond=RANK)
    z, choices = z0, open_.shape[1]
    firm = null_space(open_.T) if choices else np.empty((len(z0), 0))
    for L, wrench in ((slopes[1], base[1]), (slopes[2], base[2]), (np.eye(len(z0)), z0)):
        if not open_.shape[1] or not len(L):
            continue
        U, s, Vh = decompose_by_singular_values(L @ open_)
        rank = int((s > RANK * float(np.abs(L).max())).sum())
        now = wrench + L @ (z - z0)
        z = z - open_ @ (Vh[:rank].T @ ((U[:, :rank].T @ now) / s[:rank]))
        open_ = open_ @ Vh[rank:].T
    for _ in range(2 if firm.size else 0):  # what rounding of the derivatives has moved
        z = z - firm @ linalg.lstsq(slopes[0] @ firm, balance(z)[0] - base[0])[0]
    return z, choices
