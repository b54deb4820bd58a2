"""Motion of all links, Newton-Euler, the mass matrix, and their exact derivatives along all degrees of freedom.

With all screws seen from the ground (Spencer (thesis), A.3.3) the transformations Ad between parent and child drop out
of the forward recursions of A.3 and 4.3,

    V_i = V_P + S_i v_i,    Vdot_i = Vdot_P + S_i vdot_i + Sdot_i v_i,    Sdot_i = ad_(V_i) S_i,

and what is left are sums over the degrees of freedom above a link: products with constant matrices of zeros and ones.
Only positions are computed level by level. A displacement theta_j of the freedom j moves everything beyond it by the
screw S_j (identity A.1); with P the parent of the link that j moves first, for links i beyond j,

    psi_j = ad_(V_P) S_j,    phi_j = ad_(Vdot_P) S_j + ad_(V_P) psi_j
    dV_i/dtheta_j = ad_(S_j) V_i + psi_j,                        dV_i/dv_j = S_j,
    dVdot_i/dtheta_j = ad_(S_j) Vdot_i + ad_(psi_j) V_i + phi_j,  dVdot_i/dv_j = ad_(S_j) V_i + psi_j + Sdot_j,

for balls, too: their speeds are not the rates of coordinates. The backward recursion is a sum over subtrees, with
M_ij = S_i' I_j^c S_j for j beyond i, and the recursions of 4.3 for d tau/dq and d tau/dv sum up to

    d tau_i/d theta_j = S_i' (I^c phi_j + B^c psi_j),   less S_i' ad_(S_j)^* F_j for j beyond i,
    d tau_i/d v_j     = S_i' (I^c (psi_j + Sdot_j) + B^c S_j),

I^c and B^c of whichever of i and j lies farther out, B_k x = -ad_(V_k)^* I_k x - I_k ad_(V_k) x - ad_x^* I_k V_k
(Singh, Russell and Wensing (2022) found the same for robots). Arrays may have leading axes: many points at once.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.models.mechanism.tree import Array, Tree, ad, along, build_moment_matrix, cross, inertia_tensor


@dataclass(frozen=True)
class Velocities:
    """Positions and velocities of the links."""

    X: Array  # (..., N + 1, 4, 4), frames of the links f_(0,i)
    S: Array  # of shape (..., n, 6)
    Sdot: Array  # of shape (..., n, 6)
    V: Array  # of shape (..., N + 1, 6)


@dataclass(frozen=True)
class AccelerationTerms:
    """The intermediate terms of the derivatives of velocities and accelerations."""

    at: Velocities
    A: Array  # (..., N + 1, 6), vdot; the ground accelerates against gravity
    psi: Array  # of shape (..., n, 6)
    phi: Array  # of shape (..., n, 6)


def positions(tree: Tree, q: Array) -> Array:
    """Return the frames of all links, f_(0,i) = f_(0,P) f_(P,i)(q_i), shape (..., N + 1, 4, 4), for q (..., n_q)."""
    F = local_transformations(tree, q)
    shape = q.shape[:-1]
    X = [np.broadcast_to(np.eye(4), (*shape, 1, 4, 4))]
    first = 0
    for low, high in tree.levels:
        parents = tree.P[low:high] - first
        X.append(X[-1][..., parents, :, :] @ F[..., low:high, :, :])
        first = low
    return np.concatenate(X, axis=-3)


def velocities(tree: Tree, q: Array, v: Array) -> Velocities:
    """Return frames, screws and velocities for q (..., n_q) and v (..., n)."""
    X = positions(tree, q)
    frames = X[..., tree.L, :, :]
    turned = frames[..., :3, :3] @ np.swapaxes(tree.axes.reshape(-1, 2, 3), -1, -2)
    w = turned[..., 0]
    S = np.concatenate((w, turned[..., 1] + cross(frames[..., :3, 3], w)), axis=-1)
    V = tree.above @ (S * v[..., None])
    return Velocities(X, S, along(ad(V[..., tree.L, :]), S), V)


def accelerations(tree: Tree, at: Velocities, v: Array, gravity: Array) -> Array:
    """Return Vdot of all links for vdot = 0, shape (..., N + 1, 6); the ground accelerates against gravity (3,)."""
    base = np.concatenate((np.zeros(3), -np.asarray(gravity)))
    return tree.above @ (at.Sdot * v[..., None]) + base


def motion(tree: Tree, at: Velocities, A: Array) -> AccelerationTerms:
    """Return the screws psi and phi at given accelerations."""
    parent = tree.P[tree.L]
    V = ad(at.V[..., parent, :])
    psi = along(V, at.S)
    return AccelerationTerms(at, A, psi, along(ad(A[..., parent, :]), at.S) + along(V, psi))


@dataclass(frozen=True)
class LinkColumns:
    """Derivatives of V and Vdot of some links, one column (row of the second to last axis) for each freedom."""

    V_q: Array  # (..., k, n, 6), dV/dtheta
    A_q: Array  # (..., k, n, 6), dVdot/dtheta
    A_v: Array  # (..., k, n, 6), dVdot/dv
    V_v: Array  # (..., k, n, 6), dV/dv, which is also the displacement, and dVdot/dvdot


def link_columns(tree: Tree, motion: AccelerationTerms, links: Any) -> LinkColumns:
    """Return the derivatives of the velocities and accelerations of ``links`` (k,) along all degrees of freedom."""
    at = motion.at
    moves = tree.above[links][..., None]
    S = at.S[..., None, :, :]
    turn_V = -(S @ np.swapaxes(ad(at.V[..., links, :]), -1, -2))  # ad_S V = -ad_V S
    turn_A = -(S @ np.swapaxes(ad(motion.A[..., links, :]), -1, -2))
    psi = motion.psi[..., None, :, :]
    bend = -(psi @ np.swapaxes(ad(at.V[..., links, :]), -1, -2))
    return LinkColumns(
        V_q=moves * (turn_V + psi),
        A_q=moves * (turn_A + bend + motion.phi[..., None, :, :]),
        A_v=moves * (turn_V + psi + at.Sdot[..., None, :, :]),
        V_v=moves * S,
    )


def coordinate_rates(tree: Tree, q: Array, v: Array) -> Array:
    """Return q' (..., n_q): the speeds on screws, e' = e o (0, w) / 2 on balls."""
    shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    rates = np.zeros((*shape, tree.n_q), dtype=np.result_type(q, v))
    rates[..., tree.screw_coordinates] = v[..., tree.screw_speeds]
    if len(tree.balls):
        rates[..., tree.ball_coordinates] = along(_ball_rates(q[..., tree.ball_coordinates]), v[..., tree.ball_speeds])
    return rates


def coordinate_columns(tree: Tree, q: Array, v: Array) -> tuple[Array, Array]:
    """Return E with q' = E v, shape (..., n_q, n), and d(q')/dq, shape (..., n_q, n_q)."""
    shape = q.shape[:-1]
    E, E_q = np.zeros((*shape, tree.n_q, tree.n)), np.zeros((*shape, tree.n_q, tree.n_q))
    E[..., tree.screw_coordinates, tree.screw_speeds] = 1.0
    if len(tree.balls):
        rows, columns = tree.ball_coordinates, tree.ball_speeds
        E[..., rows[:, :, None], columns[:, None, :]] = _ball_rates(q[..., rows])
        E_q[..., rows[:, :, None], rows[:, None, :]] = np.swapaxes(
            (v[..., columns] @ BALL_RATES.reshape(4, 4, 3).transpose(2, 0, 1).reshape(3, 16)).reshape(
                *v.shape[:-1], -1, 4, 4
            ),
            -1,
            -2,
        )
    return E, E_q


def compute_displacements(tree: Tree, q: Array, dq: Array) -> Array:
    """Return theta (..., n, k) of small changes dq (n_q, k) of coordinates: 2 E' de / |e|^2 on balls, E of e' = E w."""
    theta = np.zeros((*q.shape[:-1], tree.n, dq.shape[-1]), dtype=np.result_type(q, dq))
    theta[..., tree.screw_speeds, :] = dq[..., tree.screw_coordinates, :]
    if len(tree.balls):
        e = q[..., tree.ball_coordinates]
        E = _ball_rates(e) * (4 / (e * e).sum(axis=-1))[..., None, None]
        theta[..., tree.ball_speeds, :] = np.swapaxes(E, -1, -2) @ dq[..., tree.ball_coordinates, :]
    return theta


def _ball_table() -> Array:
    """Return T with E = (e @ T) as 4 x 3 such that e' = E w: half the product of the quaternions e and (0, w)."""
    T = np.zeros((4, 4, 3))
    T[0, 1:, :] = np.eye(3)
    for i in range(3):
        T[1 + i, 0, i] = -1.0
        j, k = (i + 1) % 3, (i + 2) % 3
        T[1 + i, 1 + k, j], T[1 + i, 1 + j, k] = 1.0, -1.0  # (e x w)
    return T.reshape(4, 12) / 2


BALL_RATES = _ball_table()


def _ball_rates(e: Array) -> Array:
    return (e @ BALL_RATES).reshape((*e.shape[:-1], 4, 3))


def local_transformations(tree: Tree, q: Array) -> Array:
    """Return f_(P,i)(q_i) of all links, shape (..., N + 1, 4, 4)."""
    if not tree.n:  # nothing moves
        return np.broadcast_to(tree.M, (*q.shape[:-1], *tree.M.shape))
    angle = q[..., tree.coordinate, None, None]
    sine, rise, advance = tree.turn
    F = tree.M + sine * np.sin(angle) + rise * (1 - np.cos(angle)) + advance * angle
    if len(tree.balls):
        F[..., tree.balls, :, :] = tree.M[tree.balls] @ _ball_turn(q[..., tree.ball_coordinates])
    return F


def _ball_turn(e: Array) -> Array:
    """Return the rotation of quaternions of any length as homogeneous transformations, shape (..., 4, 4)."""
    E = _ball_rates(e)
    # R = F' E with e' = E w from the right and e' = F w from the left, 4 / |e|^2; F differs in the sign of (e x w).
    R = np.swapaxes(_ball_rates(-e * CONJUGATE) * CONJUGATE[:, None], -1, -2) @ E
    R = R * (4 / (e * e).sum(axis=-1))[..., None, None]
    X = np.zeros((*e.shape[:-1], 4, 4), dtype=R.dtype)
    X[..., :3, :3] = R
    X[..., 3, 3] = 1.0
    return X


CONJUGATE = np.array([-1.0, 1.0, 1.0, 1.0])


@dataclass(frozen=True)
class Inertia:
    """Inertia and momentum of the links, seen from the ground."""

    P: Array  # (..., N + 1, 4, 4), pseudo-inertia
    # of shape (..., N + 1, 6, 6)
    I: Array  # noqa: E741 - the letter of the source
    momentum: Array  # (..., N + 1, 6), I V
    gyroscopic: Array  # (..., N + 1, 6), -ad_V^* I V
    ad_V: Array  # of shape (..., N + 1, 6, 6)


def compute_inertia(tree: Tree, at: Velocities) -> Inertia:
    """Return the inertia tensors X P X' of all links and what follows from the velocities."""
    P = at.X @ tree.inertia @ np.swapaxes(at.X, -1, -2)
    tensors = inertia_tensor(P)
    momentum = along(tensors, at.V)
    ad_V = ad(at.V)
    return Inertia(P, tensors, momentum, -along(np.swapaxes(ad_V, -1, -2), momentum), ad_V)


def net_forces(inertia: Inertia, A: Array) -> Array:
    """Return the moment and force that each link needs for its motion, I Vdot - ad_V^* I V, shape (..., N + 1, 6)."""
    return along(inertia.I, A) + inertia.gyroscopic


def project_wrenches(tree: Tree, S: Array, wrenches: Array) -> Array:
    """Return S_i' (sum of the wrenches on the subtree of i), shape (..., n), for wrenches (..., N + 1, 6)."""
    return (S * (tree.below @ wrenches)).sum(axis=-1)


def composite(tree: Tree, of_links: Array) -> Array:
    """Return the sum of (..., N + 1, a, b) over the subtree of each freedom's link, shape (..., n, a, b)."""
    a, b = of_links.shape[-2:]
    flat = of_links.reshape((*of_links.shape[:-2], a * b))
    return (tree.below @ flat).reshape((*of_links.shape[:-3], tree.n, a, b))


def composite_inertia(tree: Tree, inertia: Inertia) -> Array:
    """Return I^c of each freedom's link, shape (..., n, 6, 6)."""
    return inertia_tensor(composite(tree, inertia.P))


def mass_matrix(tree: Tree, S: Array, I_c: Array) -> Array:
    """Return M (..., n, n) by the composite-rigid-body algorithm (A.3.4), I_c from :func:`composite_inertia`."""
    M = S @ np.swapaxes(along(I_c, S), -1, -2)
    beyond = M * tree.strict
    return M * tree.same + beyond + np.swapaxes(beyond, -1, -2)


def torque_columns(
    tree: Tree, motion: AccelerationTerms, inertia: Inertia, I_c: Array, outside: Array
) -> tuple[Array, Array]:
    """Return d tau_NE/d theta and d tau_NE/dv (4.3), (..., n, n), at the vdot of ``motion``, ``outside`` held."""
    S, psi, phi = motion.at.S, motion.psi, motion.phi
    ad_V, tensors = inertia.ad_V, inertia.I
    turned = np.swapaxes(ad_V, -1, -2) @ tensors  # ad_V^* I, and I ad_V is its transpose
    B = -turned - np.swapaxes(turned, -1, -2) + build_moment_matrix(inertia.momentum)
    B_c = composite(tree, B)
    F = along(build_moment_matrix(tree.below @ net_forces(inertia, motion.A)), S)  # -ad_S^* F of what lies beyond
    W = along(build_moment_matrix(tree.below @ outside), S)
    drift = psi + motion.at.Sdot
    by_I, by_B = I_c @ np.stack((phi, drift, S), axis=-1), B_c @ np.stack((psi, S), axis=-1)
    inner_q, inner_v = by_I[..., 0] + by_B[..., 0], by_I[..., 1] + by_B[..., 1]
    IS, BS = by_I[..., 2], along(np.swapaxes(B_c, -1, -2), S)
    lower_q = np.concatenate((IS, BS, -W), axis=-1) @ _columns(phi, psi, S)
    lower_v = np.concatenate((IS, BS), axis=-1) @ _columns(drift, S)
    turn = _columns
    upper_q, upper_v = S @ turn(inner_q), S @ turn(inner_v)
    lower = np.swapaxes(tree.strict, -1, -2)
    d_q = upper_q * (tree.same + tree.strict) + (S @ turn(F)) * tree.strict + (S @ turn(W)) * tree.same
    return d_q + lower_q * lower, upper_v * (tree.same + tree.strict) + lower_v * lower


def _columns(*screws: Array) -> Array:
    """Return screws (..., n, 6) side by side as columns, shape (..., 6 times their number, n)."""
    joined = np.concatenate(screws, axis=-1) if len(screws) > 1 else screws[0]
    return np.swapaxes(joined, -1, -2)
