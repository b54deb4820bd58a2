"""MCS: velocities projected on the tangent space, q' = R z' (González et al., section 3.1).

With dq = R dz, dv = R dz' + L dz and Phi_q R = 0, the multipliers drop out of R' (...):

    Mr z'' + Cr z' + Kr z = R' B u,   Mr = R' M R
    Cr = R' (C - M G gamma_v) R,   Kr = R' (K - M G gamma_q) R + R' (C - M G gamma_v) L

The terms with G and L vanish at an equilibrium (:mod:`fmilin.formulations.form`). The curvature of the
constraints enters through lambda in K, not through slopes of R.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.bases import Basis
from fmilin.native.formulations.form import ConstrainedForm, MotionTerms, motion_terms
from fmilin.native.formulations.formulation import ReducedSystem, Spectrum, seen_vectors, tangent_mass
from fmilin.native.formulations.pencil import EPS, Pencil, eigenpairs, labelled


def solve_minimal(form: ConstrainedForm, basis: Basis) -> tuple[Spectrum, ReducedSystem]:
    """Return the 2(n - m) eigenvalues of the constrained system; none of them is spurious."""
    p, n, k = basis.R.shape[1], form.n, form.B.shape[1]
    terms = motion_terms(form, basis)
    Mr, Cr, Kr = projected(form, basis, terms)
    T = np.block([[basis.R, np.zeros((n, p))], [terms.L, basis.R]])
    zero, eye = np.zeros((p, p)), np.eye(p)
    upper, B = np.hstack((zero, eye)), np.vstack((np.zeros((p, k)), basis.R.T @ form.B))
    pencil = Pencil(np.block([[eye, zero], [zero, Mr]]), np.vstack((upper, -np.hstack((Kr, Cr)))), B, p)
    pairs = eigenpairs(pencil)
    vectors, every = seen_vectors(T @ pairs.right, n), np.ones(2 * p, dtype=bool)
    spectrum = labelled(form, basis, pairs, every, ("mcs", _WORDS[basis.method]), vectors=vectors)
    if not p:
        return spectrum, ReducedSystem(zero, np.zeros((0, k)), T, basis, 0.0, terms)
    solved = linalg.solve(Mr, np.hstack((-Kr, -Cr, B[p:])), assume_a="pos")
    A, B = np.vstack((upper, solved[:, : 2 * p])), np.vstack((B[:p], solved[:, 2 * p :]))
    return spectrum, ReducedSystem(A, B, T, basis, 16 * EPS * float(np.linalg.cond(Mr)), terms)


def projected(form: ConstrainedForm, basis: Basis, terms: MotionTerms) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Mr, Cr and Kr, each of shape (p, p), of a dense form."""
    R, Mr = basis.R, tangent_mass(form, basis)
    if form.motion is None:
        return Mr, R.T @ form.C @ R, R.T @ form.K @ R
    MG = form.M @ terms.G
    C = form.C - MG @ form.motion.gamma_v
    K = form.K - MG @ form.motion.gamma_q
    return Mr, R.T @ C @ R, R.T @ (K @ R + C @ terms.L)


_WORDS = {
    "coordinates": "independent coordinates",
    "zero-eigenvalue": "zero-eigenvalue theorem",
    "svd": "singular value decomposition",
    "qr": "QR decomposition",
    "gram-schmidt": "Gram-Schmidt",
}
