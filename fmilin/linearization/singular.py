"""Linear models at singular configurations: the enlarged set of velocities, and the true branches of motion.

Where the constraints lose rank, two or more branches of motion cross. The velocities with G v = 0 are more than
those of any branch; over all of them, at rest, with K a basis of the null space of G,

    K' M K z'' = K' (de/dq) K z + K' (de/dv) K z' + K' (de/du) u,    e = F - G' lambda,

which reproduces the pairs published for the four-bar (González et al., section 5.1). The multipliers are not
determined there: the self-stress of the redundant constraints may be added to them, and the spectrum moves with
it. It belongs to the multipliers of least norm. Not so along a branch: with its direction a, G a = 0, and the
self-stress s, s . D^2 g [a, a] = 0, the frequency is intrinsic,

    w^2 = - a' (de/dq) a / (a' M a).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import Accuracy, EntryErrors, LinearModel, Method, Point
from fmilin.manifold.rank import EXACT
from fmilin.model.interface import Model, OperatingPoint, SecondOrderForm
from fmilin.remarks import Remark
from fmilin.signals import FloatArray, Signals

__all__ = ["branch_frequencies", "explanation", "linearize_at_singularity", "singularity_of"]

AT_REST = 1e-9


def singularity_of(model: Model, point: OperatingPoint) -> str:
    """Return a sentence about the singular configuration at ``point``; empty when it is none or nothing is known."""
    form = model.second_order_form(point.time, point.states, point.inputs)
    if form is None:
        return ""
    scales = model.states.scales(point.states)[form.positions]
    rank, beside = _rank(form.G * scales), _rank_beside(model, point, form)
    if rank >= beside:
        return ""
    return (
        f"The point is a singular configuration: {rank} constraints are independent here, {beside} beside it. Branches "
        "of motion cross, and the feasible motions form no vector space, so there is no linear model of them. Choose a "
        "point beside it with --set, or ask with --at-singularity for the enlarged set of velocities."
    )


def linearize_at_singularity(model: Model, point: OperatingPoint, *, independent: Sequence[str] = ()) -> LinearModel:
    """Return the linear model over all velocities with G v = 0 at a point of rest.

    Parameters
    ----------
    model : Model
        Lagrange's equations: the form M, G, F must be known.
    point : OperatingPoint
        At rest.
    independent : sequence of str, optional
        Positions to keep; chosen by pivoted QR by default.

    Raises
    ------
    UsageError
        When the model is of another form, or the coordinates do not fit.
    NumericalError
        When the point is not at rest.
    """
    t, x, u = point.time, point.states, point.inputs
    form = model.second_order_form(t, x, u)
    if form is None:
        raise UsageError(
            f"The model '{model.info.name}' does not show its mass matrix and constraints: --at-singularity needs a "
            "native model made of Lagrange's equations."
        )
    if np.max(np.abs(x[form.velocities]), initial=0.0) > AT_REST or np.max(np.abs(form.accelerations)) > 1e-6:
        raise NumericalError(
            "With --at-singularity the point must be an equilibrium at rest: in motion the branches have different "
            "velocities, and there is no common one to linearize about."
        )
    scales = model.states.scales(x)
    K, chosen = _basis(model, form, scales, independent)
    names = [model.states[int(form.positions[i])] for i in chosen]
    speeds = [model.states[int(form.velocities[i])] for i in chosen]
    return _assembled(model, point, form, K, Signals([*names, *speeds]))


def branch_frequencies(form: SecondOrderForm) -> list[tuple[FloatArray, float]]:
    """Return (direction a, w^2) for every branch, where two branches cross: one self-stress, two null velocities.

    Returns
    -------
    list
        Empty when the crossing is of another kind.
    """
    U, sigma, Vt = linalg.svd(form.G)
    rank = int(np.count_nonzero(sigma > EXACT * sigma[0]))
    K, stress = Vt[rank:].T, U[:, rank:]
    if K.shape[1] != 2 or stress.shape[1] != 1:
        return []
    # The quadratic form Q(c) = s . D^2 g [K c, K c], by polarization.
    q = [float(stress[:, 0] @ form.bend(K @ np.array(c))) for c in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))]
    Q = np.array([[q[0], (q[2] - q[0] - q[1]) / 2], [(q[2] - q[0] - q[1]) / 2, q[1]]])
    values, vectors = linalg.eigh(Q)
    if values[0] >= 0 or values[1] <= 0:
        return []  # an isolated posture: no branch passes
    found = []
    for sign in (1.0, -1.0):
        a = K @ (np.sqrt(values[1]) * vectors[:, 0] + sign * np.sqrt(-values[0]) * vectors[:, 1])
        stiffness = -float(a @ form.force_states[:, form.positions] @ a)
        found.append((a / np.max(np.abs(a)), stiffness / float(a @ form.M @ a)))
    return found


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
    G_t = np.linalg.pinv(form.G.T, rcond=EXACT)
    dv, dv_u = K @ lower, K @ B2
    dl, dl_u = G_t @ (form.force_states @ T - form.M @ dv), G_t @ (form.force_inputs - form.M @ dv_u)
    C = form.output_states @ T + form.output_unknowns @ np.vstack((dv, dl))
    D = form.output_inputs + form.output_unknowns @ np.vstack((dv_u, dl_u))
    eps = float(np.finfo(float).eps * np.linalg.cond(K.T @ form.M @ K) * 16)
    names = model.states.names
    return LinearModel(
        A=A,
        B=B,
        C=C,
        D=D,
        T=T,
        f0=np.zeros(2 * p),
        states=signals,
        full_states=model.states,
        inputs=model.inputs,
        outputs=model.outputs,
        y0=np.array([point.states[model.states.positions[s.name]] for s in signals]),
        point=Point(
            point.time,
            dict(zip(names, point.states.tolist(), strict=True)),
            dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
            {},
            dict(point.parameters),
        ),
        accuracy=Accuracy(eps, eps, eps, eps, eps, 0.0, 0.0, float(np.linalg.cond(K))),
        method=Method("exact", "enlarged", 1, 0),
        model=model.info,
        warnings=(explanation(model, form, p),),
        errors=EntryErrors(*(eps * np.abs(m) for m in (A, B, C, D, T))),
    )


def _basis(
    model: Model, form: SecondOrderForm, scales: FloatArray, independent: Sequence[str]
) -> tuple[FloatArray, list[int]]:
    """Return K, shape (n, p), with rows of the identity for the chosen positions, and which these are."""
    D = scales[form.positions]
    V = D[:, None] * linalg.null_space(form.G * D, rcond=EXACT)
    p = V.shape[1]
    if independent:
        states = [model.states.index_of(name, "a state of the model") for name in independent]
        chosen = [int(np.flatnonzero(form.positions == i)[0]) for i in states if i in form.positions]
        if len(chosen) != p:
            raise UsageError(f"{p} independent positions are needed at this singular configuration, not {len(chosen)}.")
    else:
        chosen = sorted(int(i) for i in linalg.qr((V / D[:, None]).T, mode="r", pivoting=True)[1][:p])
    if np.linalg.cond(V[chosen]) > 1 / EXACT:
        raise NumericalError("These coordinates do not determine the others at this singular configuration.")
    return V @ np.linalg.inv(V[chosen]), chosen


def explanation(model: Model, form: SecondOrderForm, p: int) -> Remark:
    """Say what the spectrum over p free velocities at a singular configuration means, and what is intrinsic."""
    rank = _rank(form.G)
    text = (
        f"Singular configuration: {rank} of {len(form.G)} constraints are independent here, which leaves {p} "
        "instantaneous freedoms. These eigenvalues belong to the enlarged set of velocities with the multipliers of "
        "least norm; they are not intrinsic, since the self-stress of the dependent constraints is undetermined."
    )
    branches = branch_frequencies(form)
    names = [model.states.names[i] for i in form.positions]
    for k, (a, w2) in enumerate(branches, 1):
        moving = ", ".join(f"{names[i]} {a[i]:+.3g}" for i in np.flatnonzero(np.abs(a) > 1e-9)[:6])
        kind = f"frequency {np.sqrt(w2):.10g} rad/s" if w2 >= 0 else f"growth {np.sqrt(-w2):.10g} 1/s"
        text += f" Intrinsic along branch {k} of motion ({moving}): {kind}."
    return Remark("singular", text)


def _rank(G: FloatArray) -> int:
    sigma = linalg.svdvals(G) if G.size else np.zeros(0)
    return int(np.count_nonzero(sigma > EXACT * max(float(np.max(sigma, initial=0.0)), 1e-300)))


def _rank_beside(model: Model, point: OperatingPoint, form: SecondOrderForm) -> int:
    """Return the rank of G at points beside this one: rank can only be lost on a thin set."""
    random, best = np.random.default_rng(2016), 0
    scales = model.states.scales(point.states)
    for _ in range(3):
        x = point.states.copy()
        x[form.positions] += 1e-3 * scales[form.positions] * random.uniform(-1, 1, len(form.positions))
        beside = model.second_order_form(point.time, x, point.inputs)
        if beside is not None:
            best = max(best, _rank(beside.G * scales[form.positions]))
    return best
