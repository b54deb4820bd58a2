"""From A, B and T of a formulation to a LinearModel: outputs, names, point and accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.tolerances import RANK
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.coordinates import conditioning
from fmilin.model.interface import Model, OperatingPoint, SecondOrderForm
from fmilin.native.formulations.bases import Basis, independent_rows
from fmilin.native.formulations.form import ConstrainedForm
from fmilin.native.formulations.of_model import residuals_at
from fmilin.native.formulations.solved import Reduced

__all__ = ["Source", "linear_model"]

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Source:
    """A model at a point, with its equations taken apart and as numbers."""

    model: Model
    point: OperatingPoint
    second_order: SecondOrderForm
    form: ConstrainedForm
    singular: bool = False  # whether fewer constraints are independent here than beside the point

    @property
    def order(self) -> NDArray[np.intp]:
        """Places of (q, v) among the states, shape (2n,)."""
        return np.concatenate((self.second_order.positions, self.second_order.velocities))

    def coordinates(self, S: FloatArray) -> FloatArray:
        """Return R with y = R x, (2p, N): S on the positions, and S on the velocities."""
        p = len(S)
        R = np.zeros((2 * p, len(self.model.states)))
        R[:p, self.second_order.positions] = R[p:, self.second_order.velocities] = S
        return R


def linear_model(source: Source, reduced: Reduced, formulation: str, warnings: tuple[Remark, ...]) -> LinearModel:
    """Return the linear model of a formulation.

    ``formulation``: for the record: ``"rcs, QZ"``.
    """
    model, point = source.model, source.point
    A, B, T = reduced.A, reduced.B, np.zeros((len(model.states), len(reduced.A)))
    T[source.order] = reduced.T
    C, D = _outputs(source, reduced, T)
    x = point.states
    sizes = model.states.scales(x)[source.second_order.positions]
    v, a = x[source.second_order.velocities], source.second_order.accelerations
    S = reduced.basis.S
    error = reduced.error
    residual = residuals_at(model, point)
    moving = source.form.motion is not None
    coordinates = IndependentCoordinates(
        _signals(source, reduced.basis),
        model.states,
        np.concatenate((S @ x[source.second_order.positions], S @ v)),
        T,
        max(error, EPS) * np.abs(T),
        _kind(source, reduced.basis),
        condition_number=conditioning(S, independent_rows(source.form.Phi_q * sizes) / sizes, sizes),
        residual=float(np.max(np.abs(residual), initial=0.0)),
    )
    return built(
        model,
        coordinates,
        Slopes.known_to(error, (A, B, C, D), np.concatenate((S @ v, S @ a)) if moving else np.zeros(len(A))),
        point_of(model, point, _outputs_at(model, point)),
        (f"exact, formulation {formulation}", 1, 0),
        warnings,
    )


def _outputs(source: Source, reduced: Reduced, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return C and D: outputs see (dq, dv), and the accelerations and multipliers that follow from them.

    a = R z'' - G (gamma_q dq + gamma_v dv), and M a + C dv + K dq + Phi_q' dlambda = B du.
    """
    form, taken, basis = source.form, source.second_order, reduced.basis
    p, n = basis.R.shape[1], form.n
    dq, dv = reduced.T[:n], reduced.T[n:]
    a, a_u = basis.R @ reduced.A[p:], basis.R @ reduced.B[p:]
    if form.motion is not None:
        a = a - reduced.moving.G @ (form.motion.gamma_q @ dq + form.motion.gamma_v @ dv)
    to_multipliers = np.linalg.pinv(form.Phi_q.T, rcond=RANK)
    change = to_multipliers @ -(form.M @ a + form.C @ dv + form.K @ dq)
    change_u = to_multipliers @ (form.B - form.M @ a_u)
    C = taken.output_states @ T + taken.output_unknowns @ np.vstack((a, change))
    D = taken.output_inputs + taken.output_unknowns @ np.vstack((a_u, change_u))
    return C, D


def _signals(source: Source, basis: Basis) -> Signals:
    states, x = source.model.states, source.point.states
    if basis.chosen:
        places = [int(i) for i in source.second_order.positions[list(basis.chosen)]]
        places += [int(i) for i in source.second_order.velocities[list(basis.chosen)]]
        return Signals(replace(states[i], start=float(x[i])) for i in places)
    names = [f"{basis.method}[{k + 1}]" for k in range(basis.R.shape[1])]
    return Signals([*names, *(f"der({name})" for name in names)])


def _kind(source: Source, basis: Basis) -> str:
    if source.singular:
        return "enlarged"
    return "partition" if basis.chosen else basis.method


def _outputs_at(model: Model, point: OperatingPoint) -> FloatArray | None:
    try:
        return model.evaluate(point.time, point.states, point.inputs).outputs
    except NumericalError:  # the accelerations are not determined at a singular configuration
        return None
