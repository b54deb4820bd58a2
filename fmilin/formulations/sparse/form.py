"""The numeric form of large models, sparse from the start."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fmilin.errors import ConstraintError, UsageError
from fmilin.formulations.form import ConstrainedForm, Motion
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.sparse.model import NumericModel
from fmilin.tolerances import CONSISTENT, EQUILIBRIUM

__all__ = ["sparse_form_of"]


def sparse_form_of(model: Model, point: OperatingPoint | None = None) -> ConstrainedForm:
    """Return M, C, K, Phi_q, B and lambda of a numeric model as scipy.sparse arrays.

    Parameters
    ----------
    model : NumericModel
        Such as :func:`fmilin.systems.flexible_double_pendulum`.
    point : OperatingPoint, optional
        On the constraints, in motion or not; where the model starts by default.

    Raises
    ------
    UsageError
        When the model is not made of sparse matrices.
    ConstraintError
        When the point violates the constraints.
    NumericalError
        At a singular configuration.
    """
    if not isinstance(model, NumericModel):
        raise UsageError(
            f"The model '{model.info.name}' is not made of sparse matrices: use fmilin.formulations.form_of, or write "
            "its equations as a fmilin.models.sparse.NumericEquations."
        )
    point = point or model.start
    eq, s = model.equations, model.solved(point.states, point.inputs)
    _require_consistent(model, point, eq.residuals(s.q))
    e = eq.slopes(s.q, s.v, s.a, s.multipliers)
    G = eq.pattern_G
    M, by_q, Phi_q = eq.pattern_M.sparse(eq.mass(s.q)), eq.pattern_e_q.sparse(e.e_q), G.sparse(eq.jacobian(s.q))
    # Stiff terms balance each other to rounding only: what counts as no force is a part of these terms.
    terms = np.max(abs(by_q) @ np.abs(s.q) + abs(Phi_q.T) @ np.abs(s.multipliers), initial=0.0)
    moving = np.max(np.abs(s.v) / model.states.scales(point.states)[eq.n :], initial=0.0) > EQUILIBRIUM
    moving = moving or np.max(np.abs(M @ s.a), initial=0.0) > EQUILIBRIUM * terms
    motion = None
    if moving:
        gamma_q, gamma_v = (G.sparse(values) for values in model.acceleration_slopes(s))
        motion = Motion(s.v, s.a, G.sparse(eq.rate_slopes(s.q, s.v)), gamma_q, gamma_v)
    return ConstrainedForm(
        M=M,
        C=-eq.pattern_e_v.sparse(e.e_v),
        K=-by_q,
        Phi_q=Phi_q,
        B=sparse.csc_array(model.input_matrix),
        multipliers=s.multipliers,
        names=model.states.names[: eq.n],
        motion=motion,
    )


def _require_consistent(model: NumericModel, point: OperatingPoint, g: np.ndarray) -> None:
    eq, x = model.equations, point.states
    rates = eq.pattern_G.sparse(eq.jacobian(x[: eq.n])) @ x[eq.n :]
    worst = np.maximum(np.abs(g), np.abs(rates))
    bad = np.flatnonzero(worst > CONSISTENT)
    if not len(bad):
        return
    residuals = {f"constraint {i + 1}": float(worst[i]) for i in bad}
    listed = "; ".join(f"constraint {i + 1} is off by {worst[i]:.6g}" for i in bad[:6])
    raise ConstraintError(
        f"The point does not satisfy the constraints of '{model.info.name}': {listed}. Take one from "
        "fmilin.operating_point or fmilin.trim.",
        residuals=residuals,
    )
