"""The matrices of Peterson et al. as a LinearModel: names, units, point, outputs and what should be known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point
from fmilin.linearization.procedure import EQUILIBRIUM
from fmilin.manifold.coordinates import conditioning
from fmilin.model.interface import OperatingPoint
from fmilin.models.kane.functions import Expansion
from fmilin.models.kane.numeric import OutputSlopes
from fmilin.models.kane.procedure import Matrices
from fmilin.remarks import Remark
from fmilin.signals import FloatArray, Signals

if TYPE_CHECKING:
    from fmilin.models.kane.model import KaneModel

__all__ = ["linear_model"]


def linear_model(
    model: KaneModel,
    point: OperatingPoint,
    expansion: Expansion,
    matrices: Matrices,
    outputs: OutputSlopes,
    independent: Sequence[str] | None,
) -> LinearModel:
    """Return the linear model in the order of states that was asked for."""
    states = list(matrices.partition.states)
    names = [model.states.names[i] for i in states]
    order = list(range(len(states))) if independent is None else [names.index(name) for name in independent]
    rows = [states[i] for i in order]
    A, B, T = matrices.A[np.ix_(order, order)], matrices.B[order], matrices.T[:, order]
    ny = len(model.outputs)
    c_x, c_r, c_w, values = outputs.x[:ny], outputs.r[:ny], outputs.w[:ny], outputs.values[:ny]
    C = c_x @ T + c_w @ matrices.A_prime[:, order]
    D = c_r + c_x @ matrices.T_u + c_w @ matrices.B_prime
    for row, copy in model.copies.items():
        if copy.kind == "input":
            C[row], D[row] = 0.0, np.eye(len(model.inputs))[copy.index]
    relative = 8 * np.finfo(float).eps * matrices.condition_number
    errors = EntryErrors(*(np.full(X.shape, relative * _largest(X)) for X in (A, B, C, D, T)))
    H, residual = _constraints(model, point, expansion)
    f0 = matrices.rates[rows]
    signals = Signals(replace(model.states[i], start=float(point.states[i])) for i in rows)
    return LinearModel(
        A=A,
        B=B,
        C=C,
        D=D,
        T=T,
        f0=f0,
        states=signals,
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=point.states[rows],
        point=_point(model, point, values),
        accuracy=Accuracy(
            **{name: relative if X.any() else 0.0 for name, X in (("A", A), ("B", B), ("C", C), ("D", D), ("T", T))},
            f0=relative if f0.any() else 0.0,
            constraint_residual=residual,
            conditioning=conditioning(np.eye(len(model.states))[rows], H, model.states.scales(point.states)),
        ),
        method=Method("exact", "named" if independent is not None else "partition", 1, 0),
        model=model.info,
        warnings=tuple(_remarks(model, point, matrices, named=independent is not None)),
        T_u=matrices.T_u,
        errors=errors,
    )


def _constraints(model: KaneModel, point: OperatingPoint, expansion: Expansion) -> tuple[FloatArray, float]:
    """Return the gradient of (f_c, f_v) for the states, and how far the point is from the manifold."""
    n, o, count = len(model.form.q), len(model.form.u), expansion.constraints.shape[1]
    J = expansion.J[0, :count]
    H = np.hstack((J[:, 1 : 1 + n], J[:, 1 + 2 * n : 1 + 2 * n + o]))
    sizes = np.linalg.norm(H * model.states.scales(point.states), axis=1)
    return H, float(np.max(np.abs(expansion.constraints[0]) / np.where(sizes > 0, sizes, 1.0), initial=0.0))


def _point(model: KaneModel, point: OperatingPoint, outputs: FloatArray) -> Point:
    return Point(
        time=point.time,
        states=dict(zip(model.states.names, point.states.tolist(), strict=True)),
        inputs=dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        outputs=dict(zip(model.outputs.names, outputs.tolist(), strict=True)),
        parameters=dict(point.parameters),
    )


def _remarks(model: KaneModel, point: OperatingPoint, matrices: Matrices, *, named: bool) -> list[Remark]:
    remarks = []
    speed = np.abs(matrices.rates) / model.states.scales(point.states)
    if np.max(speed, initial=0.0) > EQUILIBRIUM:
        i = int(np.argmax(speed))
        remarks.append(
            Remark(
                "off-equilibrium",
                f"The point is no equilibrium: '{model.states.names[i]}' changes at {matrices.rates[i]:.6g} per "
                "second. f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates.",
            )
        )
    kept = {model.states.names[i] for i in matrices.partition.states}
    if not named and model.independent and kept != set(model.independent):
        remarks.append(
            Remark(
                "conditioning",
                "The recommended independent states do not determine the others well at this point; "
                f"{', '.join(n for n in model.states.names if n in kept)} were taken instead.",
            )
        )
    if matrices.T_u.any():
        driven = [model.inputs.names[j] for j in np.flatnonzero(matrices.T_u.any(axis=0))]
        remarks.append(
            Remark(
                "prescribed-motion",
                f"The inputs {', '.join(driven)} prescribe a motion: dependent states follow them at once (T_u). "
                "with_prescribed_states() makes states of all but the highest derivatives.",
            )
        )
    return remarks


def _largest(matrix: FloatArray) -> float:
    return float(np.max(np.abs(matrix), initial=0.0))
