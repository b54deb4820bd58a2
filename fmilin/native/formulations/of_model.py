"""From a model of Lagrange's equations and a point of it to the numeric form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import CONSISTENT, EQUILIBRIUM
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import require_on_manifold
from fmilin.model.interface import Model, OperatingPoint, SecondOrderForm
from fmilin.native.formulations.form import ConstrainedForm, Motion

__all__ = [
    "TAKE",
    "RestAt",
    "constraint_values",
    "form_of",
    "is_at_rest",
    "numeric_form",
    "require_consistent",
    "residuals_at",
    "second_order",
]

TAKE = "Take one from fmilin.operating_point or fmilin.trim."


@dataclass(frozen=True, slots=True)
class RestAt:
    """How far a point is from an equilibrium: the fastest state, and its rate in units of its size per second."""

    name: str
    rate: float

    def __bool__(self) -> bool:
        return abs(self.rate) <= EQUILIBRIUM


def form_of(model: Model, point: OperatingPoint) -> ConstrainedForm:
    """Return M, C, K, Phi_q, B and lambda of ``model`` at ``point``, an equilibrium or any consistent point.

    ``model``: made of Lagrange's equations with constraints on its positions.
    """
    form = second_order(model, point)
    require_consistent(model, point, form)
    return numeric_form(model, point, form)


def second_order(model: Model, point: OperatingPoint) -> SecondOrderForm:
    """Return the equations taken apart, after making sure that they are of the form Phi(q, t) = 0."""
    form = model.second_order_form(point.time, point.states, point.inputs)
    name = model.info.name
    if form is None:
        raise UsageError(
            f"The model '{name}' does not show its mass matrix and constraints: the formulations mcs, rcs and ucs need "
            "a native model made of Lagrange's equations (fmilin.models.LagrangeModel). Leave --formulation out: the "
            "general procedure takes any model."
        )
    rows = model.constraints.rows
    if any(c.level == "velocity" for c in model.constraints.declared):
        speed = next(c.label for c in model.constraints.declared if c.level == "velocity")
        raise UsageError(
            f"The constraint '{speed}' of '{name}' is one on velocities; the formulations mcs, rcs and ucs are for "
            "constraints on positions, Phi(q, t) = 0. Leave --formulation out: the general procedure takes both."
        )
    if len([row for row in rows if row.level == "position"]) != len(form.G):
        raise UsageError(
            f"The constraints of '{name}' were replaced and no longer belong to its {len(form.G)} multipliers: take "
            "the model with its own constraints."
        )
    if model.constraints.input_structure.any():
        raise UsageError(
            f"Inputs of '{name}' prescribe a motion; the formulations mcs, rcs and ucs take no such inputs. Leave "
            "--formulation out: the general procedure does."
        )
    return form


def constraint_values(model: Model, point: OperatingPoint) -> FloatArray:
    """Return Phi, shape (m,)."""
    position = np.array([row.level == "position" for row in model.constraints.rows], dtype=bool)
    values = residuals_at(model, point)
    return values[position] if len(values) else values


def residuals_at(model: Model, point: OperatingPoint) -> FloatArray:
    """Return the residuals of all declared constraints.

    Most are functions of the states alone, and known where the model cannot be evaluated: at singular configurations.
    Those of a mechanism are seen by the model only.
    """
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


def numeric_form(model: Model, point: OperatingPoint, form: SecondOrderForm) -> ConstrainedForm:
    """Return ``form``, which belongs to ``point``, with the names and signs of the formulations."""
    qs, vs = form.positions, form.velocities
    gamma_v = form.constraint_states[:, vs]
    return ConstrainedForm(
        M=form.M,
        C=-form.force_states[:, vs],
        K=-form.force_states[:, qs],
        Phi_q=form.G,
        B=form.force_inputs,
        multipliers=form.multipliers,
        names=tuple(model.states.names[int(i)] for i in qs),
        motion=None
        if is_at_rest(model, point, form)
        else Motion(
            velocities=point.states[vs],
            accelerations=form.accelerations,
            Phi_q_dot=gamma_v / 2,  # Phi'' = Phi_q q'' + (Phi_q q')_q q' + 2 Phi_qt q' + Phi_tt
            gamma_q=form.constraint_states[:, qs],
            gamma_v=gamma_v,
        ),
    )


def require_consistent(model: Model, point: OperatingPoint, form: SecondOrderForm) -> None:
    """Refuse a point that violates the constraints or their rates."""
    pairs = dict(zip(form.positions.tolist(), form.velocities.tolist(), strict=True))
    invariants = Invariants(model, point.inputs, pairs, model.states.scales(point.states))
    require_on_manifold(invariants, point.time, point.states, nearer=CONSISTENT, advice=TAKE)
