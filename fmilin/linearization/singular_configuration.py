"""Lagrange's equations at a singular configuration, linearized over the enlarged set of velocities.

The velocities with G v = 0 are more there than those of any branch of motion. Over all of them, at rest,

    K' M K z'' = K' (de/dq) K z + K' (de/dv) K z' + K' (de/du) u,    e = F - G' lambda,

which reproduces the pairs published for the four-bar (González et al., section 5.1), multipliers of least norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.builder import name_point
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.assembly import GivenTangents, assemble_given
from fmilin.linearization.linearization_context import EnlargedPoint
from fmilin.linearization.request import Request
from fmilin.manifold.coordinates import StateCoordinates
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.point_arrays import batch_points
from fmilin.model.capabilities import read_second_order_form
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.decompositions import null_space
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS, RANK


@dataclass(frozen=True, eq=False)
class SecondOrderManifold:
    """The manifold of a model with its equations in parts, at a point where these may be singular."""

    model: Model
    point: OperatingPoint
    form: SecondOrderForm

    def require_point(self) -> None:
        """Raise ConstraintError if the point is not on the manifold."""
        from fmilin.formulations.of_model import require_consistent

        require_consistent(self.model, self.point, self.form)


def require_second_order_form(model: Model, point: OperatingPoint) -> SecondOrderForm:
    """Return Lagrange's equations in their parts; raise UsageError if the model has none."""
    form = read_second_order_form(model, point.time, point.states, point.inputs)
    if form is None:
        raise UsageError(
            f"The model '{model.info.name}' has no accessible mass matrix and constraints: at_singularity=True needs "
            "a native model made of Lagrange's equations."
        )
    return form


def compute_at_singularity(model: Model, point: OperatingPoint, request: Request) -> EnlargedPoint:
    """Return the linear model over all velocities with G v = 0 at a point of rest, of Lagrange's equations."""
    from fmilin.formulations.of_model import is_at_rest

    form = require_second_order_form(model, point)
    if not is_at_rest(model, point, form):
        raise NumericalError(
            "With at_singularity=True the point must be an equilibrium: in motion the branches have different "
            "velocities, so there is no common point to linearize about."
        )
    K, chosen = _basis(model, form, model.states.scales(point.states), request.independent or ())
    evaluator = PointEvaluator(model)
    evaluator.evaluations += 1  # of the equations in their parts
    return EnlargedPoint(
        evaluator=evaluator,
        point=point,
        facts=VerifiedFacts(is_transferable=False),
        manifold=SecondOrderManifold(model, point, form),
        request=request,
        linear=_assemble(evaluator, point, form, K, chosen),
        form=form,
    )


def _assemble(
    evaluator: PointEvaluator, point: OperatingPoint, form: SecondOrderForm, K: FloatArray, chosen: list[int]
) -> LinearModel:
    from scipy import linalg

    model, x = evaluator.model, point.states
    n_states, p, nu = len(model.states), K.shape[1], len(model.inputs)
    T = np.zeros((n_states, 2 * p))
    T[np.ix_(form.positions, np.arange(p))] = K
    T[np.ix_(form.velocities, np.arange(p, 2 * p))] = K
    mass = linalg.cho_factor(K.T @ form.M @ K)
    lower = linalg.cho_solve(mass, K.T @ form.force_states @ T)
    B2 = linalg.cho_solve(mass, K.T @ form.force_inputs)
    # Outputs see the accelerations K z''; multipliers change with G' d lambda = (de/ds) ds - M K z'', of least norm.
    G_t = np.linalg.pinv(form.G.T, rcond=RANK)
    dv, dv_u = K @ lower, K @ B2
    dl, dl_u = G_t @ (form.force_states @ T - form.M @ dv), G_t @ (form.force_inputs - form.M @ dv_u)
    C = form.output_states @ T + form.output_unknowns @ np.vstack((dv, dl))
    D = form.output_inputs + form.output_unknowns @ np.vstack((dv_u, dl_u))
    rates = np.zeros((n_states, 2 * p + nu))
    rates[form.positions, : 2 * p] = T[form.velocities]
    rates[form.velocities] = np.hstack((dv, dv_u))
    # K is one at the chosen positions but for rounding: their rates are those of the reduced equations to the last bit.
    rates[form.positions[chosen], : 2 * p] = np.hstack((np.zeros((p, p)), np.eye(p)))
    rates[form.velocities[chosen]] = np.hstack((lower, B2))
    outputs = np.hstack((C, D))
    independent = [*form.positions[chosen].tolist(), *form.velocities[chosen].tolist()]
    sizes, u_sizes = model.states.scales(x), model.inputs.scales(point.inputs)
    scales = np.concatenate((sizes[independent], u_sizes))
    # 16: roundings of two products and a solve, of matrices of a few rows
    relative_error = float(EPS * np.linalg.cond(K.T @ form.M @ K) * 16)
    derivatives = TangentDerivatives(
        np.zeros((1, n_states)),
        np.full((1, len(model.outputs)), np.nan),  # multipliers, and so outputs, are not determined
        rates[None],
        outputs[None],
        T[None],
        np.zeros((1, n_states, nu)),
        scales[None],
        (relative_error * np.abs(np.concatenate((rates, outputs))) * scales)[None],
        "procedure",
        np.ones((n_states + len(outputs), 2 * p + nu), dtype=bool),
    )
    tangents = GivenTangents(
        batch_points([point]),
        StateCoordinates(independent, n_states),
        sizes[independent],
        u_sizes,
        relative_error * np.abs(T),
        float(np.linalg.cond(K)),
    )
    signals = Signals([model.states[i] for i in independent])
    linear = assemble_given(evaluator, point, derivatives, tangents, signals, "enlarged")
    return replace(linear, point=name_point(model, point, None))


def _basis(
    model: Model, form: SecondOrderForm, scales: FloatArray, independent: Sequence[str]
) -> tuple[FloatArray, list[int]]:
    """Return K, shape (n, p), with rows of the identity for the chosen positions, and which these are."""
    from scipy import linalg

    D = scales[form.positions]
    V = D[:, None] * null_space(form.G * D, rcond=RANK)
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
