"""The matrices of the three formulations (González et al.), dense or sparse as those of the form are.

**MCS.** With dq = R dz, dv = R dz' + L dz and Phi_q R = 0 the multipliers drop out of R' (...):

    Mr z'' + Cr z' + Kr z = R' B u,   Mr = R' M R
    Cr = R' (C - M G gamma_v) R,   Kr = R' (K - M G gamma_q) R + R' (C - M G gamma_v) L

The curvature of the constraints enters through lambda in K, not through derivatives of R.

**RCS.** E z' = A z + B u with z = (dq, dv, dlambda). With the constraints moved to E (impulses in place of the
multipliers, Phi'' = 0 in place of Phi = 0) the 3m infinite eigenvalues are zeros:

    E = diag(I, M, 0),                            A = [N P, I, 0; -(K + M N Q), -(C + M N W), -Phi_q'; -Phi_q, 0, 0]
    E = [I, 0, 0; 0, M, Phi_q'; 0, Phi_q, 0],     A = [N P, I, 0; -(K + M N Q), -(C + M N W), 0; -H N P, -H, 0]

with H = Phi_q_dot. Constraints that depend on others would leave their multipliers undetermined and the pencil
singular: as many combinations of the rows of Phi_q are taken as are independent.

**UCS** (Bayo et al.). With lambda* = alpha (Phi'' + 2 xi omega Phi' + omega^2 Phi) in place of the multipliers,

    M_p a + C_p dv + K_p dq = B u,   M_p = M + alpha Phi_q' Phi_q,   C_p = C + alpha Phi_q' (gamma_v + 2 xi omega Phi_q)
    K_p = K + alpha Phi_q' (gamma_q + 2 xi omega Phi_q_dot + omega^2 Phi_q)

has 2m spurious eigenvalues; their eigenvectors violate Phi_q v = 0. K takes lambda* at the point: alpha omega^2 Phi
where the penalized system itself is in equilibrium, lambda at a point of the constrained one. The terms that carry the
tangent space along (N P, N Q, N W), Phi_q_dot and the gammas vanish at an equilibrium: see
:mod:`fmilin.formulations.form`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from fmilin.formulations.form import ConstrainedForm, Lift, Matrix
from fmilin.formulations.formulation import UCS


class SecondOrderMatrices(NamedTuple):
    """M z'' + C z' + K z = ..., each of the same shape."""

    M: Matrix
    C: Matrix
    K: Matrix


@dataclass(frozen=True, eq=False)
class MotionTerms:
    """How the tangent space turns: dq' = dv + NP dq and dv' = a - (NQ dq + NW dv), each of shape (n, n)."""

    NP: Matrix
    NQ: Matrix
    NW: Matrix


def compute_motion_terms(form: ConstrainedForm, lift: Lift) -> MotionTerms:
    """Return N P, N Q and N W, zeros at an equilibrium; ``lift`` solves for dependent coordinates."""
    motion = form.motion
    if motion is None:
        zeros = form.zeros(form.n, form.n)
        return MotionTerms(zeros, zeros, zeros)
    NP = lift(motion.Phi_q_dot)
    NW = lift(motion.Phi_q_dot - motion.gamma_v)
    NQ = lift(motion.Phi_q_dot @ NP - motion.gamma_q)
    return MotionTerms(NP, NQ, NW)


def follow_positions(form: ConstrainedForm, R: Matrix, lift: Lift) -> Matrix:
    """Return L in dv = R dz' + L dz: how the velocities follow the positions of a moving point."""
    return form.zeros(*R.shape) if form.motion is None else -lift(form.motion.Phi_q_dot @ R)


def project_equations(form: ConstrainedForm, R: Matrix, L: Matrix, lift: Lift) -> SecondOrderMatrices:
    """Return Mr, Cr and Kr of MCS, each of shape (p, p)."""
    M, C, K = form.M, form.C, form.K
    if form.motion is not None:
        C = C - M @ lift(form.motion.gamma_v)
        K = K - M @ lift(form.motion.gamma_q)
    return SecondOrderMatrices(R.T @ M @ R, R.T @ C @ R, R.T @ (K @ R + C @ L))


def penalize_equations(form: ConstrainedForm, options: UCS) -> SecondOrderMatrices:
    """Return M_p, C_p and K_p of UCS, each of shape (n, n)."""
    Phi_q, alpha = form.Phi_q, options.alpha
    damping, stiffness = 2 * options.xi * options.omega, options.omega**2
    by_q, by_v = stiffness * Phi_q, damping * Phi_q
    if form.motion is not None:
        by_q = by_q + form.motion.gamma_q + damping * form.motion.Phi_q_dot
        by_v = by_v + form.motion.gamma_v
    return SecondOrderMatrices(
        form.M + alpha * (Phi_q.T @ Phi_q), form.C + alpha * (Phi_q.T @ by_v), form.K + alpha * (Phi_q.T @ by_q)
    )
