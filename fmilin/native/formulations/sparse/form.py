"""The numeric form of large models, sparse from the start."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import CONSISTENT, EQUILIBRIUM
from fmilin.manifold.projection import not_on_manifold
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.formulations.form import ConstrainedForm, Motion
from fmilin.native.formulations.of_model import TAKE

__all__ = ["sparse_form_of"]


def sparse_form_of(model: Model, point: OperatingPoint | None = None) -> ConstrainedForm:
    """Return M, C, K, Phi_q, B and lambda of a numeric model as scipy.sparse arrays.

    ``model``: one that is ``sparse``, such as :func:`fmilin.systems.flexible_double_pendulum`. ``point``: on the
    constraints, in motion or not; where the model starts by default.
    """
    point = point or model.start
    x = point.states
    form = model.sparse_form(point.time, x, point.inputs)
    if form is None:
        raise UsageError(
            f"The model '{model.info.name}' is not made of sparse matrices: use fmilin.formulations.form_of, or write "
            "its equations as a fmilin.models.sparse.NumericEquations."
        )
    n = form.M.shape[0]
    q, v = x[:n], x[n:]
    _require_consistent(x, model.states.scales(x), form.residuals, form.G)
    # Stiff terms balance each other to rounding only: what counts as no force is a part of these terms.
    forces = abs(form.force_positions) @ np.abs(q) + abs(form.G.T) @ np.abs(form.multipliers)
    moving = np.max(np.abs(v) / model.states.scales(x)[n:], initial=0.0) > EQUILIBRIUM
    inertial = np.max(np.abs(form.M @ form.accelerations), initial=0.0)
    moving = moving or inertial > EQUILIBRIUM * np.max(forces, initial=0.0)
    return ConstrainedForm(
        M=form.M,
        C=-form.force_velocities,
        K=-form.force_positions,
        Phi_q=form.G,
        B=form.force_inputs,
        multipliers=form.multipliers,
        names=model.states.names[:n],
        motion=Motion(v, form.accelerations, form.rate_positions, form.bend_positions, form.bend_velocities)
        if moving
        else None,
    )


def _require_consistent(x: FloatArray, sizes: FloatArray, g: FloatArray, Phi_q: Any) -> None:
    n = len(x) // 2
    rates = Phi_q @ x[n:]
    reach = np.sqrt([Phi_q.power(2) @ D**2 for D in (sizes[:n], sizes[n:])])
    off = np.abs([g, rates]) / np.where(reach > 0, reach, 1.0)
    bad = {f"constraint {i + 1}": float(g[i]) for i in np.flatnonzero(~(off[0] <= CONSISTENT))}
    bad |= {f"rate of constraint {i + 1}": float(rates[i]) for i in np.flatnonzero(~(off[1] <= CONSISTENT))}
    if bad:
        raise not_on_manifold(bad, advice=TAKE)
