"""The numeric form of large models, sparse from the start."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fmilin.errors import UsageError
from fmilin.formulations.form import ConstrainedForm, Motion
from fmilin.formulations.of_model import TAKE
from fmilin.manifold.projection import not_on_manifold
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.sparse.model import NumericModel
from fmilin.signals import FloatArray
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


def _require_consistent(model: NumericModel, point: OperatingPoint, g: FloatArray) -> None:
    eq, x = model.equations, point.states
    G, sizes = eq.pattern_G.sparse(eq.jacobian(x[: eq.n])), model.states.scales(x)
    rates = G @ x[eq.n :]
    reach = [np.sqrt(G.power(2) @ D**2) for D in (sizes[: eq.n], sizes[eq.n :])]
    off = np.abs(np.array([g, rates])) / np.where(np.array(reach) > 0, reach, 1.0)
    kinds = ("constraint", "rate of constraint")
    bad = {
        f"{kinds[k]} {i + 1}": float((g, rates)[k][i]) for k, i in zip(*np.nonzero(~(off <= CONSISTENT)), strict=True)
    }
    if bad:
        raise not_on_manifold(bad, advice=TAKE)
