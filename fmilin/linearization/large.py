"""Lagrange's equations of a large model, linearized in independent coordinates without a dense matrix of their size.

With G K = 0 and K one at the kept positions, by elimination along the graph of the constraints, states (q, v) move by

    dq = K y,    dv = K y' + Kdot y,    G Kdot = -d(G v)/dq K

(Spencer, thesis, section 2.2: T = [[K, 0], [Kdot, K]]), and accelerations and multipliers by W dw = e_s (T; du), with
e = r - W w. One factorization of W and one solution for each column is all that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.errors import ConstraintError, NumericalError
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point
from fmilin.linearization.request import Request
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.sparse_equations import SparseEquations, SparseSlopes
from fmilin.remarks import Remark, off_equilibrium
from fmilin.signals import FloatArray
from fmilin.tolerances import DOUBTFUL, EQUILIBRIUM, ON_MANIFOLD

Procedure = Callable[[Model, OperatingPoint, Request], LinearModel]

__all__ = ["by_sparse_equations"]

COMPARED = 1e-4
"""Largest relative deviation of exact slopes from a difference; a kink at the point makes one of order one."""

EPS = float(np.finfo(np.float64).eps)


def by_sparse_equations(equations: SparseEquations, general: Procedure) -> Procedure:
    """Return the procedure for a model with these equations; ``general`` answers what it has no way for."""

    def linearized(model: Model, point: OperatingPoint, request: Request) -> LinearModel:
        kept = _kept(model, equations.n, request)
        plain = request.coordinates == "partition" and request.derivatives in ("auto", "exact")
        if kept is None or not plain or request.descriptor:
            return general(model, point, request)
        return _linearized(model, equations, point, request, kept)

    return linearized


def _kept(model: Model, n: int, request: Request) -> Sequence[int] | None:
    """Return the positions to keep, maybe none of them named; None when what is named is no set of positions."""
    named = model.independent if request.independent is None else request.independent
    places = [model.states.index_of(name, f"a state of '{model.info.name}'") for name in named]
    positions = [i for i in places if i < n]
    velocities = sorted(i - n for i in places if i >= n)
    if len(set(places)) != len(places) or (places and velocities not in ([], sorted(positions))):
        return None
    return positions


@dataclass(frozen=True, eq=False)
class _Taken:
    """The equations at the point, taken apart."""

    W: Any
    solver: Any
    w: FloatArray
    slopes: SparseSlopes


def _linearized(
    model: Model, equations: SparseEquations, point: OperatingPoint, request: Request, kept: Sequence[int]
) -> LinearModel:
    from fmilin.formulations.sparse.elimination import sparse_null_space

    n, t, x, u = equations.n, point.time, point.states, point.inputs
    if not (distance := equations.distance(x, u, t)) <= ON_MANIFOLD:
        raise ConstraintError(
            f"The point is {distance:.3g} sizes of the states off the constraints at time {t:g}. Take one from "
            "fmilin.operating_point, or with --project on the command line."
        )
    W, r = equations.matrix(t, x, u)
    solver = equations.solver(W)
    w = solver.solve(r)
    taken = _Taken(W, solver, w, equations.slopes(t, x, u, w))
    null = sparse_null_space(W[n:, :n], kept or None)
    kept = null.independent.tolist()
    K = null.R.toarray()
    K_dot = null.lifted(-(equations.turning(t, x, u) @ null.R)).toarray()
    p = len(kept)
    T = np.block([[K, np.zeros((n, p))], [K_dot, K]])
    states = [*kept, *(n + i for i in kept)]
    wide = np.block([[T, np.zeros((2 * n, len(u)))], [np.zeros((len(u), 2 * p)), np.eye(len(u))]])
    dw, dc = _along(taken, wide)
    _compare(model, equations, point, taken, wide)
    slopes = np.vstack((wide[n : 2 * n][kept], dw[kept]))
    A, B, C, D = slopes[:, : 2 * p], slopes[:, 2 * p :], dc[:, : 2 * p], dc[:, 2 * p :]
    rates = np.concatenate((x[n:], w[:n]))
    scales = model.states.scales(x)
    conditioning = float(np.linalg.norm(K / scales[:n, None] * scales[kept], 2)) if p else 1.0
    error = EPS / solver.rcond
    return LinearModel(
        A=A,
        B=B,
        C=C,
        D=D,
        T=T,
        f0=rates[states],
        states=model.states.select(states),
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=x[states],
        point=Point(
            t,
            dict(zip(model.states.names, x.tolist(), strict=True)),
            dict(zip(model.inputs.names, u.tolist(), strict=True)),
            dict(zip(model.outputs.names, taken.slopes.values.tolist(), strict=True)),
            dict(point.parameters),
        ),
        accuracy=Accuracy(error, error, error, error, EPS * conditioning, EPS, distance, conditioning),
        method=Method("exact", "named" if request.independent is not None else "partition", 3, wide.shape[1]),
        model=model.info,
        warnings=tuple(_remarks(model, rates / scales, conditioning)),
        errors=EntryErrors(*(error * np.abs(matrix) for matrix in (A, B, C, D, T))),
    )


def _along(taken: _Taken, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of w, (n + m, k), and of the outputs, (ny, k), along columns of (q, v, u)."""
    s = taken.slopes
    dw = taken.solver.solve(s.residual @ directions)
    return dw, s.outputs @ directions + s.outputs_of_unknowns @ dw


def _compare(model: Model, equations: SparseEquations, point: OperatingPoint, taken: _Taken, wide: FloatArray) -> None:
    """Compare the slope of w along one direction, in which all columns take part, with a central difference.

    Raises
    ------
    NumericalError
        When they disagree: the equations have a kink at the point.
    """
    t, n, x, u = point.time, equations.n, point.states, point.inputs
    sizes = np.concatenate((model.states.scales(x), np.maximum(np.abs(u), 1.0)))
    direction = wide @ np.random.default_rng(7).uniform(0.5, 1.0, wide.shape[1])
    direction /= np.max(np.abs(direction / sizes), initial=1e-300)
    exact = _along(taken, direction)[0]
    step, found = 1e-5, []
    for sign in (1.0, -1.0):
        moved = np.concatenate((x, u)) + sign * step * direction
        W, r = equations.matrix(t, moved[: 2 * n], moved[2 * n :])
        found.append(r - W @ taken.w)
    rhs = taken.slopes.residual @ direction
    measured = (found[0] - found[1]) / (2 * step)
    largest = max(float(np.max(np.abs(rhs), initial=0.0)), float(np.max(np.abs(exact), initial=0.0)))
    deviation = float(np.max(np.abs(measured - rhs), initial=0.0))
    # the neighbouring values hold rounding of the terms themselves, over the step
    rounding = 1e2 * EPS / step * float(np.max(abs(taken.W) @ np.abs(taken.w), initial=0.0))
    if not deviation <= COMPARED * largest + rounding:
        raise NumericalError(
            f"The exact slopes of '{model.info.name}' deviate by {deviation:.3g} from a difference at this point: the "
            "equations have a kink or leave their domain here. Move the point a little, or ask for the slopes on one "
            "side of it (--one-sided)."
        )


def _remarks(model: Model, rates: FloatArray, conditioning: float) -> list[Remark]:
    remarks = []
    if np.max(np.abs(rates), initial=0.0) > EQUILIBRIUM:
        i = int(np.argmax(np.abs(rates)))
        rate = rates[i] * model.states.scales(model.start.states)[i]
        remarks.append(off_equilibrium(f"'{model.states.names[i]}' changes at {rate:.6g} per second"))
    if conditioning > DOUBTFUL:
        remarks.append(
            Remark(
                "conditioning",
                f"The coordinates move others {conditioning:.3g} times as far as themselves: name others, or none.",
            )
        )
    return [*remarks, *(Remark("model", note) for note in model.notes)]
