"""Which of many torques, where feet can be pressed against each other: those with the smallest contact forces.

Inputs enter affinely: least squares, of contact forces first, then of contact torques, then of the inputs.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS
from fmilin.model.capabilities import HasContacts
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK
from fmilin.trimming.equations import Equations
from fmilin.trimming.solver import Solution
from fmilin.trimming.unknowns import Candidate

STEP = 1e-3  # of the inputs: rates are affine in them up to limits, which are further away

Balance = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""From free inputs z to the rates of all states, the forces and the torques on all feet."""


def _balance(candidate: Candidate, model: HasContacts, free: NDArray[np.intp], sizes: FloatArray) -> Balance:
    """Return the balance of a configuration as a function of the free inputs, u = sizes z."""

    def at(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        u = candidate.inputs.copy()
        u[free] = z * sizes
        rates = candidate.model.evaluate(candidate.time, candidate.states, u).derivatives
        wrenches = model.contact_forces(candidate.time, candidate.states, u).values()
        forces, torques = (np.concatenate([wrench[part] for wrench in wrenches]) for part in (slice(3), slice(3, 6)))
        return rates, forces[np.isfinite(forces)], torques[np.isfinite(torques)]

    return at


def least_contact_forces(equations: Equations, solution: Solution) -> tuple[Solution, tuple[Remark, ...]]:
    """Return the solution of the smallest contact forces, and what is to be said of it; itself where none is better."""
    unknowns = equations.unknowns
    candidate, columns = unknowns.at(solution.z), unknowns.input_columns
    model = candidate.model
    if not len(columns) or equations.targets or not isinstance(model, HasContacts):
        return solution, ()
    if not model.contact_forces(candidate.time, candidate.states, candidate.inputs):
        return solution, ()
    balance = _balance(candidate, model, unknowns.inputs, unknowns.scales[columns])
    try:
        z, choices = _smallest(balance, solution.z[columns])
    except REFUSALS:
        return solution, ()
    if not choices:
        return solution, ()
    text = f"The feet can be pressed against each other: {choices} of {len(columns)} free inputs are redundant. "
    new = solution.z.copy()
    new[columns] = z
    residual = equations.values(new)
    allowed = np.maximum(solution.allowed, 1e-13 * (np.abs(solution.J) @ np.abs(new)))
    inside = ((new >= unknowns.low) & (new <= unknowns.high)).all()
    if not inside or not (np.abs(residual) <= allowed).all():
        text += "Those nearest to the guess were taken: a bound or limit is in the way of the smallest contact forces."
        return solution, (Remark("least-squares", text),)
    text += "Those with the smallest contact forces were taken (least squares), and of these the smallest ones."
    J, is_exact = equations.jacobian(new, exact=solution.is_exact)
    moved = replace(solution, z=new, residual=residual, allowed=allowed, J=np.nan_to_num(J), is_exact=is_exact)
    return moved, (Remark("least-squares", text),)


def _smallest(balance: Balance, z0: FloatArray) -> tuple[FloatArray, int]:
    """Return the inputs, and in how many directions they may change."""
    base = balance(z0)
    h = STEP * max(1.0, float(np.abs(z0).max(initial=0.0)))
    displaced = [balance(z0 + h * e) for e in np.eye(len(z0))]
    slopes = [np.stack([(at[k] - base[k]) / h for at in displaced], axis=1) for k in range(3)]
    open_ = linalg.null_space(slopes[0], rcond=RANK)
    z, choices = z0, open_.shape[1]
    firm = linalg.null_space(open_.T) if choices else np.empty((len(z0), 0))
    for L, wrench in ((slopes[1], base[1]), (slopes[2], base[2]), (np.eye(len(z0)), z0)):
        if not open_.shape[1] or not len(L):
            continue
        U, s, Vh = linalg.svd(L @ open_)
        rank = int((s > RANK * max(float(np.abs(L).max()), 1e-300)).sum())
        now = wrench + L @ (z - z0)
        z = z - open_ @ (Vh[:rank].T @ ((U[:, :rank].T @ now) / s[:rank]))
        open_ = open_ @ Vh[rank:].T
    for _ in range(2 if firm.size else 0):  # what rounding of the slopes has moved
        z = z - firm @ linalg.lstsq(slopes[0] @ firm, balance(z)[0] - base[0])[0]
    return z, choices
