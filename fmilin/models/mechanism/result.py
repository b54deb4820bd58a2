"""The linear model of a mechanism at a point, with names, accuracy and remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ConstraintError, NumericalError
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point
from fmilin.linearization.procedure import EQUILIBRIUM
from fmilin.manifold.coordinates import conditioning
from fmilin.manifold.selection import REFUSED
from fmilin.model.interface import OperatingPoint
from fmilin.models.mechanism.choosing import choose, position_gradient
from fmilin.models.mechanism.kinematics import displacement_of
from fmilin.models.mechanism.linear import Matrices, matrices
from fmilin.models.mechanism.system import Solution
from fmilin.remarks import Remark
from fmilin.signals import Signals

if TYPE_CHECKING:
    from fmilin.models.mechanism.model import Mechanism

__all__ = ["linearize"]

ON_MANIFOLD = 1e-8
"""Residuals above this refuse the point."""


def linearize(model: Mechanism, point: OperatingPoint, independent: Sequence[str] | None) -> LinearModel:
    """Return the linear model at a point; see :meth:`Mechanism.linearize`."""
    x, u = point.states, point.inputs
    residual = _require_consistent(model, point)
    choice = choose(model, x, u, independent)
    solution = model.solution(x, u)
    rows = [*choice.q, *(model.system.tree.n_q + i for i in choice.v)]
    H = _gradient(model, solution)
    condition = conditioning(np.eye(len(x))[rows], H, model.states.scales(x))
    names = [model.states.names[i] for i in rows]
    if condition > REFUSED:
        raise NumericalError(
            f"The coordinates {', '.join(names)} are singular at this point (condition number {condition:.3g}): choose "
            "others, or a point beside it.",
            condition_number=condition,
        )
    order = np.arange(len(rows))
    if independent is not None and len(independent) == len(rows):
        order = np.array([names.index(name) for name in independent], dtype=np.intp)
    rows = [rows[i] for i in order]
    found = _ordered(matrices(model, x, u, choice), order)
    relative = 8 * float(np.finfo(float).eps) * condition
    sizes = {name: getattr(found, name) for name in "ABCDT"}
    signals = Signals(replace(model.states[i], start=float(x[i])) for i in rows)
    return LinearModel(
        **sizes,
        f0=found.f0,
        states=signals,
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=x[rows],
        point=Point(
            time=point.time,
            states=dict(zip(model.states.names, x.tolist(), strict=True)),
            inputs=dict(zip(model.inputs.names, u.tolist(), strict=True)),
            outputs=dict(zip(model.outputs.names, found.values.tolist(), strict=True)),
            parameters=dict(point.parameters),
        ),
        accuracy=Accuracy(
            **{name: relative if X.any() else 0.0 for name, X in sizes.items()},
            f0=relative if found.f0.any() else 0.0,
            constraint_residual=residual,
            conditioning=condition,
        ),
        method=Method("exact", "named" if independent is not None else "partition", 1, len(rows) + len(u)),
        model=model.info,
        warnings=tuple(_remarks(model, point, solution)),
        errors=EntryErrors(*(np.full(X.shape, relative * np.abs(X).max(initial=0.0)) for X in sizes.values())),
    )


def _ordered(found: Matrices, order: NDArray[np.intp]) -> Matrices:
    """Return the matrices with the independent states in another order."""
    return replace(
        found,
        A=found.A[np.ix_(order, order)],
        B=found.B[order],
        C=found.C[:, order],
        T=found.T[:, order],
        f0=found.f0[order],
    )


def _gradient(model: Mechanism, solution: Solution) -> NDArray[np.float64]:
    """Return the gradient of all independent invariants, positions then velocities, shape (M, N)."""
    tree, used = model.system.tree, model.independence.all
    columns = model.system.columns(solution)
    H_q = position_gradient(model, solution)
    rates = columns.rate_q[used] @ displacement_of(tree, solution.state.q, np.eye(tree.n_q))
    zero = np.zeros((len(H_q), tree.n))
    return np.block([[H_q, zero], [rates, solution.state.G[used]]])


def _require_consistent(model: Mechanism, point: OperatingPoint) -> float:
    g = model.evaluate(point.time, point.states, point.inputs).residuals
    bad = [i for i in range(len(g)) if not abs(g[i]) <= ON_MANIFOLD]
    if bad:
        names = model.constraints.names
        residuals = {names[i]: float(g[i]) for i in bad}
        listed = "; ".join(f"'{name}' is {value:.6g} instead of 0" for name, value in list(residuals.items())[:6])
        raise ConstraintError(
            f"The operating point is not on the manifold: {listed}. Let fmilin.operating_point assemble it.",
            residuals=residuals,
        )
    return float(np.abs(g).max(initial=0.0))


def _remarks(model: Mechanism, point: OperatingPoint, solution: Solution) -> list[Remark]:
    x = point.states
    rates = np.concatenate((model.coordinate_rates(solution), solution.v_dot))
    remarks = [Remark("model", note) for note in model.notes]
    speed = np.abs(rates) / model.states.scales(x)
    if np.max(speed, initial=0.0) > EQUILIBRIUM:
        i = int(np.argmax(speed))
        text = f"The point is no equilibrium: '{model.states.names[i]}' changes at {rates[i]:.6g} per second. "
        remarks.insert(
            0,
            Remark(
                "off-equilibrium",
                text + "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates.",
            ),
        )
    return remarks
