"""From a model of Lagrange's equations at a point to the numeric form, and from A, B and T back to a LinearModel."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.formulations.form import Basis, ConstrainedForm, ConstraintMotion, independent_rows
from fmilin.formulations.formulation import ReducedSystem
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, build_matrices, name_point
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.coordinates import conditioning
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import not_on_manifold, require_on_manifold
from fmilin.model.capabilities import HasSparseForm, read_constraint_residuals, read_second_order_form
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import EPS, EQUILIBRIUM_RATE_TOLERANCE, RANK, START_GAP_TOLERANCE

TAKE = "Take one from fmilin.operating_point or fmilin.trim."


@dataclass(frozen=True, slots=True)
class RestAt:
    """How far a point is from an equilibrium: the fastest state, and its rate in units of its size per second."""

    name: str
    rate: float

    def __bool__(self) -> bool:
        return abs(self.rate) <= EQUILIBRIUM_RATE_TOLERANCE


def form_of(model: Model, point: OperatingPoint) -> ConstrainedForm:
    """Return M, C, K, Phi_q, B and lambda of a model of Lagrange's equations at any consistent point."""
    form = second_order(model, point)
    require_consistent(model, point, form)
    return numeric_form(model, point, form)


def second_order(model: Model, point: OperatingPoint) -> SecondOrderForm:
    """Return the equations taken apart, after making sure that they are of the form Phi(q, t) = 0."""
    form = read_second_order_form(model, point.time, point.states, point.inputs)
    name = model.info.name
    if form is None:
        raise UsageError(
            f"The model '{name}' has no accessible mass matrix and constraints: the formulations mcs, rcs and ucs "
            "need a native model made of Lagrange's equations (fmilin.models.LagrangeModel). Leave formulation= out: "
            "the general procedure works for any model."
        )
    rows = model.constraints.rows
    if any(c.level == "velocity" for c in model.constraints.declared):
        speed = next(c.label for c in model.constraints.declared if c.level == "velocity")
        raise UsageError(
            f"The constraint '{speed}' of '{name}' is one on velocities; the formulations mcs, rcs and ucs are for "
            "constraints on positions, Phi(q, t) = 0. Leave formulation= out: the general procedure supports both."
        )
    if len([row for row in rows if row.level == "position"]) != len(form.G):
        raise UsageError(
            f"The constraints of '{name}' were replaced and no longer belong to its {len(form.G)} multipliers: use "
            "the model with its own constraints."
        )
    if model.constraints.input_structure.any():
        raise UsageError(
            f"Inputs of '{name}' prescribe a motion; the formulations mcs, rcs and ucs do not support such inputs. "
            "Leave formulation= out: the general procedure supports them."
        )
    return form


def constraint_values(model: Model, point: OperatingPoint) -> FloatArray:
    """Return Phi, shape (m,)."""
    position = np.array([row.level == "position" for row in model.constraints.rows], dtype=bool)
    values = compute_residuals(model, point)
    return values[position] if len(values) else values


def compute_residuals(model: Model, point: OperatingPoint) -> FloatArray:
    """Return the residuals of all constraints, from the states alone where possible: for singular configurations."""
    if model.constraints.observed:
        return model.evaluate(point.time, point.states, point.inputs).residuals
    return model.constraints.residuals(point.time, point.states, point.inputs, np.empty(0))


def is_at_rest(model: Model, point: OperatingPoint, form: SecondOrderForm) -> RestAt:
    """Return whether ``point`` is an equilibrium, and which state says so the least."""
    sizes = model.states.scales(point.states)
    rates = np.concatenate((point.states[form.velocities], form.accelerations))
    rates = rates / np.concatenate((sizes[form.positions], sizes[form.velocities]))
    fastest = int(np.argmax(np.abs(rates)))
    names = [model.states.names[int(i)] for i in (*form.positions, *form.velocities)]
    return RestAt(names[fastest], float(rates[fastest]))


def numeric_form(
    model: Model, point: OperatingPoint, form: SecondOrderForm, *, moving: bool | None = None
) -> ConstrainedForm:
    """Return ``form``, which belongs to ``point``, with the names and signs of the formulations."""
    qs, vs = form.positions, form.velocities
    gamma_v = form.constraint_states[:, vs]
    moving = not is_at_rest(model, point, form) if moving is None else moving
    return ConstrainedForm(
        M=form.M,
        C=-form.force_states[:, vs],
        K=-form.force_states[:, qs],
        Phi_q=form.G,
        B=form.force_inputs,
        multipliers=form.multipliers,
        names=tuple(model.states.names[int(i)] for i in qs),
        motion=None
        if not moving
        else ConstraintMotion(
            velocities=point.states[vs],
            accelerations=form.accelerations,
            Phi_q_dot=gamma_v / 2,  # Phi'' = Phi_q q'' + (Phi_q q')_q q' + 2 Phi_qt q' + Phi_tt
            gamma_q=form.constraint_states[:, qs],
            gamma_v=gamma_v,
        ),
    )


def require_consistent(model: Model, point: OperatingPoint, form: SecondOrderForm) -> None:
    """Reject a point that violates the constraints or their rates."""
    pairs = dict(zip(form.positions.tolist(), form.velocities.tolist(), strict=True))
    invariants = Invariants(PointEvaluator(model), point.inputs, pairs, model.states.scales(point.states))
    require_on_manifold(invariants, point.time, point.states, nearer=START_GAP_TOLERANCE, advice=TAKE)


@dataclass(frozen=True, eq=False)
class FormulationPoint:
    """A model at a point, with its equations taken apart and as numbers."""

    model: Model
    point: OperatingPoint
    second_order: SecondOrderForm
    form: ConstrainedForm
    singular: bool = False  # whether fewer constraints are independent here than near the point

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


def linear_model(
    source: FormulationPoint, reduced: ReducedSystem, formulation: str, warnings: tuple[Remark, ...]
) -> LinearModel:
    """Return the linear model of a formulation; its name, such as ``"rcs, QZ"``, is for the record."""
    model, point = source.model, source.point
    A, B, T = reduced.A, reduced.B, np.zeros((len(model.states), len(reduced.A)))
    T[source.order] = reduced.T
    C, D = _outputs(source, reduced, T)
    x = point.states
    sizes = model.states.scales(x)[source.second_order.positions]
    v, a = x[source.second_order.velocities], source.second_order.accelerations
    S = reduced.basis.S
    error = reduced.error
    residual = compute_residuals(model, point)
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
    return build_matrices(
        model,
        coordinates,
        LinearMatrices.with_relative_error(
            error, (A, B, C, D), np.concatenate((S @ v, S @ a)) if moving else np.zeros(len(A))
        ),
        name_point(model, point, _compute_outputs(model, point)),
        (f"exact, formulation {formulation}", 1, 0),
        warnings,
    )


def _outputs(source: FormulationPoint, reduced: ReducedSystem, T: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return C and D, with a = R z'' - G (gamma_q dq + gamma_v dv) and M a + C dv + K dq + Phi_q' dlambda = B du."""
    form, taken, basis = source.form, source.second_order, reduced.basis
    p, n = basis.R.shape[1], form.n
    dq, dv = reduced.T[:n], reduced.T[n:]
    a, a_u = basis.R @ reduced.A[p:], basis.R @ reduced.B[p:]
    if form.motion is not None:
        a = a - reduced.lift(form.motion.gamma_q @ dq + form.motion.gamma_v @ dv)
    to_multipliers = np.linalg.pinv(form.Phi_q.T, rcond=RANK)
    change = to_multipliers @ -(form.M @ a + form.C @ dv + form.K @ dq)
    change_u = to_multipliers @ (form.B - form.M @ a_u)
    C = taken.output_states @ T + taken.output_unknowns @ np.vstack((a, change))
    D = taken.output_inputs + taken.output_unknowns @ np.vstack((a_u, change_u))
    return C, D


def _signals(source: FormulationPoint, basis: Basis) -> Signals:
    states, x = source.model.states, source.point.states
    if basis.chosen:
        indices = [int(i) for i in source.second_order.positions[list(basis.chosen)]]
        indices += [int(i) for i in source.second_order.velocities[list(basis.chosen)]]
        return Signals(replace(states[i], start=float(x[i])) for i in indices)
    names = [f"{basis.method}[{k + 1}]" for k in range(basis.R.shape[1])]
    return Signals([*names, *(f"der({name})" for name in names)])


def _kind(source: FormulationPoint, basis: Basis) -> str:
    if source.singular:
        return "enlarged"
    return "partition" if basis.chosen else basis.method


def _compute_outputs(model: Model, point: OperatingPoint) -> FloatArray | None:
    try:
        return model.evaluate(point.time, point.states, point.inputs).outputs
    except NumericalError:  # the accelerations are not determined at a singular configuration
        return None


def sparse_form_of(model: Model, point: OperatingPoint | None = None) -> ConstrainedForm:
    """Return M, C, K, Phi_q, B and lambda as scipy.sparse arrays, of a model of such, at any consistent point."""
    point = point or model.start
    x = point.states
    if not isinstance(model, HasSparseForm):
        raise UsageError(
            f"The model '{model.info.name}' is not made of sparse matrices: use fmilin.formulations.form_of, or write "
            "its equations as a fmilin.models.sparse.NumericEquations."
        )
    form = model.sparse_form(point.time, x, point.inputs)
    numeric = numeric_form(model, point, form, moving=True)
    g: Any = read_constraint_residuals(model, point.time, x, point.inputs)
    _require_consistent(x, model.states.scales(x), g, form.G)
    # Stiff terms balance each other to rounding only: what counts as no force is a part of these terms.
    forces = abs(numeric.K) @ np.abs(x[: numeric.n]) + abs(form.G.T) @ np.abs(form.multipliers)
    fastest = np.max(np.abs(x[numeric.n :]) / model.states.scales(x)[numeric.n :], initial=0.0)
    inertial = np.max(np.abs(form.M @ form.accelerations), initial=0.0)
    moving = fastest > EQUILIBRIUM_RATE_TOLERANCE or inertial > EQUILIBRIUM_RATE_TOLERANCE * np.max(forces, initial=0.0)
    return numeric if moving else replace(numeric, motion=None)


def _require_consistent(x: FloatArray, sizes: FloatArray, g: FloatArray, Phi_q: Any) -> None:
    n = len(x) // 2
    rates = Phi_q @ x[n:]
    reach = np.sqrt([Phi_q.power(2) @ D**2 for D in (sizes[:n], sizes[n:])])
    off = np.abs([g, rates]) / np.where(reach > 0, reach, 1.0)
    bad = {f"constraint {i + 1}": float(g[i]) for i in np.flatnonzero(~(off[0] <= START_GAP_TOLERANCE))}
    bad |= {f"rate of constraint {i + 1}": float(rates[i]) for i in np.flatnonzero(~(off[1] <= START_GAP_TOLERANCE))}
    if bad:
        raise not_on_manifold(bad, advice=TAKE)
