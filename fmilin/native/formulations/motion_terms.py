"""What a moving point adds to the linearized equations: the tangent space turns while the system moves.

With q = q0 + dq, v = v0 + dv, the constraints ask for

    Phi_q dq = 0,   Phi_q dv + Phi_q_dot dq = 0,   Phi_q a + gamma_q dq + gamma_v dv = 0

for the change a of the accelerations, while an eigenvalue problem with constant matrices makes dq' and dv' of the
same small vectors, whose constraint is Phi_q dv' + Phi_q_dot dq' = 0. What lies between is a motion of the
coordinates themselves, along N, which the independent coordinates z = S q do not see (S N = 0):

    dq' = dv + N P dq,    dv' = a - N (Q dq + W dv)

    P = (Phi_q N)^+ Phi_q_dot,   W = (Phi_q N)^+ (Phi_q_dot - gamma_v),   Q = (Phi_q N)^+ (Phi_q_dot N P - gamma_q)

With these terms the vectors (dq, dv) that satisfy the constraints are an invariant subspace of every formulation, and
on it z = S q obeys the same A as the general procedure (Spencer section 2.2). At an equilibrium all of them vanish,
and what is left are the equations of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.bases import Basis
from fmilin.native.formulations.form import ConstrainedForm

__all__ = ["Carried", "carried"]


@dataclass(frozen=True, eq=False)
class Carried:
    """N P, N Q, N W and N (Phi_q N)^+, all zero at an equilibrium but the last."""

    NP: FloatArray  # shape (n, n)
    NQ: FloatArray  # shape (n, n)
    NW: FloatArray  # shape (n, n)
    G: FloatArray  # (n, m), N (Phi_q N)^+
    L: FloatArray  # (n, p), dv = R dz' + L dz: how the velocities follow the positions


def carried(form: ConstrainedForm, basis: Basis) -> Carried:
    """Return the terms of a dense ``form`` in the coordinates of ``basis``."""
    n, p = form.n, basis.R.shape[1]
    G = basis.N @ np.linalg.pinv(form.Phi_q @ basis.N) if basis.N.size else np.zeros((n, form.m))
    if form.motion is None:
        zero = np.zeros((n, n))
        return Carried(zero, zero, zero, G, np.zeros((n, p)))
    motion = form.motion
    NP: FloatArray = G @ motion.Phi_q_dot
    NW: FloatArray = G @ (motion.Phi_q_dot - motion.gamma_v)
    NQ: FloatArray = G @ (motion.Phi_q_dot @ NP - motion.gamma_q)
    return Carried(NP, NQ, NW, G, -NP @ basis.R)
