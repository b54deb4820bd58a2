"""Linear models at singular configurations, over the enlarged set of velocities.

The velocities with G v = 0 are more than those of any branch of motion there. Over all of them, at rest, with K a basis
of the null space of G,

    K' M K z'' = K' (de/dq) K z + K' (de/dv) K z' + K' (de/du) u,    e = F - G' lambda,

which reproduces the pairs published for the four-bar (González et al., section 5.1). Such a spectrum belongs to the
multipliers of least norm; what is intrinsic is in :mod:`fmilin.manifold.singular`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.tolerances import RANK
from fmilin.linear_model.builder import IndependentCoordinates, Slopes, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.singular import explanation
from fmilin.model.interface import Model, OperatingPoint, SecondOrderForm


def linearize_at_singularity(model: Model, point: OperatingPoint, *, independent: Sequence[str] = ()) -> LinearModel:
    """Return the linear model over all velocities with G v = 0 at a point of rest, of Lagrange's equations."""
    from fmilin.native.formulations.of_model import is_at_rest

    t, x, u = point.time, point.states, point.inputs
    form = model.second_order_form(t, x, u)
    if form is None:
        raise UsageError(
            f"The model '{model.info.name}' does not show its mass matrix and constraints: --at-singularity needs a "
            "native model made of Lagrange's equations."
        )
    if not is_at_rest(model, point, form):
        raise NumericalError(
            "With --at-singularity the point must be an equilibrium at rest: in motion the branches have different "
            "velocities, and there is no common one to linearize about."
        )
    scales = model.states.scales(x)
    K, chosen = _basis(model, form, scales, independent)
    names = [model.states[int(form.positions[i])] for i in chosen]
    speeds = [model.states[int(form.velocities[i])] for i in chosen]
    return _assembled(model, point, form, K, Signals([*names, *speeds]))


def _assembled(
    model: Model, point: OperatingPoint, form: SecondOrderForm, K: FloatArray, signals: Signals
) -> LinearModel:
    p, n_states = K.shape[1], len(model.states)
    T = np.zeros((n_states, 2 * p))
    T[np.ix_(form.positions, np.arange(p))] = K
    T[np.ix_(form.velocities, np.arange(p, 2 * p))] = K
    mass = linalg.cho_factor(K.T @ form.M @ K)
    lower = linalg.cho_solve(mass, K.T @ form.force_states @ T)
    B2 = linalg.cho_solve(mass, K.T @ form.force_inputs)
    A = np.vstack((np.hstack((np.zeros((p, p)), np.eye(p))), lower))
    B = np.vstack((np.zeros((p, len(model.inputs))), B2))
    # Outputs see the accelerations K z''; multipliers change with G' d lambda = (de/ds) ds - M K z'', of least norm.
    G_t = np.linalg.pinv(form.G.T, rcond=RANK)
    dv, dv_u = K @ lower, K @ B2
    dl, dl_u = G_t @ (form.force_states @ T - form.M @ dv), G_t @ (form.force_inputs - form.M @ dv_u)
    C = form.output_states @ T + form.output_unknowns @ np.vstack((dv, dl))
    D = form.output_inputs + form.output_unknowns @ np.vstack((dv_u, dl_u))
    eps = float(np.finfo(float).eps * np.linalg.cond(K.T @ form.M @ K) * 16)
    y0 = np.array([point.states[model.states.positions[s.name]] for s in signals])
    condition = float(np.linalg.cond(K))
    coordinates = IndependentCoordinates(signals, model.states, y0, T, eps * np.abs(T), "enlarged", condition)
    slopes, remarks = Slopes.known_to(eps, (A, B, C, D), np.zeros(2 * p)), (explanation(model, form, p),)
    return built(model, coordinates, slopes, point_of(model, point, None), ("exact", 1, 0), remarks)


def _basis(
    model: Model, form: SecondOrderForm, scales: FloatArray, independent: Sequence[str]
) -> tuple[FloatArray, list[int]]:
    """Return K, shape (n, p), with rows of the identity for the chosen positions, and which these are."""
    D = scales[form.positions]
    V = D[:, None] * linalg.null_space(form.G * D, rcond=RANK)
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
