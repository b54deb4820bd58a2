"""The formulations with dense matrices: every eigenvalue, and the state-space of the true ones (González et al.).

**MCS.** With dq = R dz, dv = R dz' + L dz and Phi_q R = 0 the multipliers drop out of R' (...):

    Mr z'' + Cr z' + Kr z = R' B u,   Mr = R' M R
    Cr = R' (C - M G gamma_v) R,   Kr = R' (K - M G gamma_q) R + R' (C - M G gamma_v) L

The curvature of the constraints enters through lambda in K, not through slopes of R.

**RCS.** E z' = A z + B u with z = (dq, dv, dlambda). With the constraints moved to E (impulses in place of the
multipliers, Phi'' = 0 in place of Phi = 0) the 3m infinite eigenvalues are zeros:

    E = diag(I, M, 0),                            A = [N P, I, 0; -(K + M N Q), -(C + M N W), -Phi_q'; -Phi_q, 0, 0]
    E = [I, 0, 0; 0, M, Phi_q'; 0, Phi_q, 0],     A = [N P, I, 0; -(K + M N Q), -(C + M N W), 0; -H N P, -H, 0]

with H = Phi_q_dot. Constraints that depend on others would leave their multipliers undetermined and the pencil
singular: as many combinations of the rows of Phi_q are taken as are independent.

**UCS** (Bayo et al.). With lambda* = alpha (Phi'' + 2 xi omega Phi' + omega^2 Phi) in place of the multipliers,

    M_p a + C_p dv + K_p dq = B u,   M_p = M + alpha Phi_q' Phi_q,   C_p = C + alpha Phi_q' (gamma_v + 2 xi omega Phi_q)
    K_p = K + alpha Phi_q' (gamma_q + 2 xi omega Phi_q_dot + omega^2 Phi_q)

has 2m spurious eigenvalues, whose eigenvectors violate Phi_q v = 0. K takes lambda* at the point: alpha omega^2 Phi
where the penalized system itself rests, lambda at a point of the constrained one. What carries the tangent space
along, and Phi_q_dot and the gammas, vanish at an equilibrium (:mod:`fmilin.formulations.form`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.diagnostics import Remark, swamping_penalty
from fmilin.errors import NumericalError
from fmilin.formulations.form import Basis, ConstrainedForm, MotionTerms, combinations_of_rows, motion_terms
from fmilin.formulations.formulation import (
    RCS,
    UCS,
    ComplexArray,
    ReducedSystem,
    Spectrum,
    seen_vectors,
    tangent_mass,
    violations,
)
from fmilin.formulations.pencil import Eigenpairs, Pencil, eigenpairs, labelled, solution
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS


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


APART = 10.0  # true and spurious eigenvalues nearer to each other than this ratio are remarked on


def solve_redundant(form: ConstrainedForm, basis: Basis, options: RCS) -> tuple[Spectrum, ReducedSystem | None]:
    """Return the 2n + m eigenvalues of the descriptor pencil, labelled, and its proper state-space."""
    tangent_mass(form, basis)
    terms = motion_terms(form, basis)
    pencil = descriptor_pencil(form, terms, spurious=options.spurious)
    pairs = eigenpairs(pencil)
    order = 2 * basis.R.shape[1]
    is_true = np.zeros(len(pairs.values), dtype=bool)
    is_true[:order] = True
    if options.spurious == "zero":
        is_true = is_true[::-1]
    if not np.isfinite(pairs.values[is_true]).all():
        raise NumericalError(
            f"The pencil has fewer than {order} finite eigenvalues: the mass matrix does not reach every velocity that "
            "the constraints leave free."
        )
    return solution(
        (form, basis, terms, pencil),
        pairs,
        is_true,
        ("rcs", f"QZ, spurious eigenvalues {options.spurious}"),
        _loss(pairs, is_true),
        _remarks_on_sizes(pairs, is_true),
        advice=" Put them at infinity." if options.spurious == "zero" else "",
    )


def descriptor_pencil(form: ConstrainedForm, terms: MotionTerms, *, spurious: str = "infinite") -> Pencil:
    """Return E, A and B of a dense form; see the text of this module."""
    n = form.n
    U = combinations_of_rows(form.Phi_q)
    Phi_q = U.T @ form.Phi_q
    r = len(Phi_q)
    k = 2 * n + r
    q, v, multipliers = slice(0, n), slice(n, 2 * n), slice(2 * n, k)
    E, A, B = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, form.B.shape[1]))
    E[q, q], E[v, v] = np.eye(n), form.M
    A[q, q], A[q, v] = terms.NP, np.eye(n)
    A[v, q] = -(form.K + form.M @ terms.NQ)
    A[v, v] = -(form.C + form.M @ terms.NW)
    B[v] = form.B
    if spurious == "zero":
        E[v, multipliers], E[multipliers, v] = Phi_q.T, Phi_q
        if form.motion is not None:
            Phi_q_dot = U.T @ form.motion.Phi_q_dot
            A[multipliers, q], A[multipliers, v] = -Phi_q_dot @ terms.NP, -Phi_q_dot
    else:
        A[v, multipliers], A[multipliers, q] = -Phi_q.T, -Phi_q
    return Pencil(E, A, B, n)


def _loss(pairs: Eigenpairs, is_true: NDArray[np.bool_]) -> float:
    """Return the largest error of a true eigenvalue, relative to the largest of them."""
    largest = float(np.max(np.abs(pairs.values[is_true]), initial=0.0))
    return float(np.max(pairs.errors[is_true], initial=0.0)) / largest if largest > 0 else 0.0


def _remarks_on_sizes(pairs: Eigenpairs, is_true: NDArray[np.bool_]) -> list[Remark]:
    size: FloatArray = np.abs(pairs.values)
    true, spurious = size[is_true], size[~is_true]
    if not len(true) or not len(spurious):
        return []
    low, high = (true, spurious) if is_true[0] else (spurious, true)
    if float(np.min(high)) > APART * float(np.max(low)):
        return []
    return [
        Remark(
            "labels",
            f"True and spurious eigenvalues are not clearly apart: {np.max(low):.3g} and {np.min(high):.3g} 1/s. The "
            "labels are doubtful; compare with the formulation mcs.",
        )
    ]


SWAMPED = 1e-7  # relative errors from rounding below this are never remarked on


def solve_unconstrained(
    form: ConstrainedForm, basis: Basis, options: UCS, *, origin: ConstrainedForm | None = None
) -> tuple[Spectrum, ReducedSystem | None]:
    """Return the 2n labelled eigenvalues of the penalized system, and the state-space of the true ones.

    ``form`` is at the equilibrium of the penalized system or at any consistent point, ``origin`` at that of the
    constrained one, for the estimate of what the displacement does.
    """
    tangent_mass(form, basis)
    terms = motion_terms(form, basis)
    pencil = penalized(form, terms, options)
    pairs = eigenpairs(pencil)
    order = 2 * basis.R.shape[1]
    broken = violations(form, seen_vectors(pairs.right, form.n))
    is_true = np.zeros(len(pairs.values), dtype=bool)
    is_true[_least(pairs.values, np.nan_to_num(broken, nan=np.inf), order)] = True
    bias = np.abs(_moved(pencil, penalized(form, terms, replace(options, alpha=2 * options.alpha)), pairs))[is_true]
    if origin is not None:
        bias = bias + np.abs(_moved(pencil, penalized(origin, terms, options), pairs))[is_true]
    return solution(
        (form, basis, terms, pencil),
        pairs,
        is_true,
        ("ucs", f"penalty, alpha = {options.alpha:g}, xi = {options.xi:g}, omega = {options.omega:g}"),
        _relative(bias, pairs.values[is_true]),
        [*_labels(broken, is_true), *_swamped(pairs, is_true, bias, options)],
    )


def penalized(form: ConstrainedForm, terms: MotionTerms, options: UCS) -> Pencil:
    """Return E = diag(I, M_p), A and B of a dense form; see the text of this module."""
    n, Phi_q = form.n, form.Phi_q
    alpha, damping, stiffness = options.alpha, 2 * options.xi * options.omega, options.omega**2
    by_q, by_v = stiffness * Phi_q, damping * Phi_q
    if form.motion is not None:
        by_q = by_q + form.motion.gamma_q + damping * form.motion.Phi_q_dot
        by_v = by_v + form.motion.gamma_v
    Mp = form.M + alpha * (Phi_q.T @ Phi_q)
    Cp = form.C + alpha * (Phi_q.T @ by_v)
    Kp = form.K + alpha * (Phi_q.T @ by_q)
    E = np.zeros((2 * n, 2 * n))
    E[:n, :n], E[n:, n:] = np.eye(n), Mp
    A = np.block([[terms.NP, np.eye(n)], [-(Kp + Mp @ terms.NQ), -(Cp + Mp @ terms.NW)]])
    return Pencil(E, A, np.vstack((np.zeros_like(form.B), form.B)), n)


def _least(values: ComplexArray, broken: FloatArray, count: int) -> NDArray[np.intp]:
    """Return the places of the ``count`` smallest violations, a pair of complex eigenvalues never divided."""
    if not len(values):
        return np.zeros(0, dtype=np.intp)
    comparable = np.where(np.isfinite(values), values, 1e300)
    partner = np.array([int(np.argmin(np.abs(comparable - s.conjugate()))) for s in comparable], dtype=np.intp)
    # Conjugates have the same violation but for rounding: both get the smaller one.
    return np.argsort(np.minimum(broken, broken[partner]), kind="stable")[:count]


def _labels(broken: FloatArray, is_true: NDArray[np.bool_]) -> list[Remark]:
    true, spurious = broken[is_true], broken[~is_true]
    if not len(true) or not len(spurious) or np.nanmin(spurious) > APART * np.nanmax(true):
        return []
    return [
        Remark(
            "labels",
            f"True and spurious eigenvalues are not clearly apart: their eigenvectors violate the velocity constraints "
            f"by up to {np.nanmax(true):.2g} and from {np.nanmin(spurious):.2g} on. A larger alpha separates them, and "
            "an omega that is no natural frequency.",
        )
    ]


def _moved(pencil: Pencil, other: Pencil, pairs: Eigenpairs) -> ComplexArray:
    """Return how far each eigenvalue is in another pencil, to first order: twice the penalty moves it by its error."""
    y, x, finite = pairs.left.conj(), pairs.right, np.isfinite(pairs.values)
    s = np.where(finite, pairs.values, 0.0)
    change = (other.A - pencil.A) @ x - (other.E - pencil.E) @ x * s
    overlap = np.einsum("ij,ij->j", y, pencil.E @ x)
    moved: ComplexArray = np.einsum("ij,ij->j", y, change) / np.where(overlap != 0, overlap, np.nan)
    return moved


def _relative(change: FloatArray, values: ComplexArray) -> float:
    """Return the largest change relative to its eigenvalue; rigid motions (zeros) are left out."""
    size = np.abs(values)
    some = size > 1e-6 * np.max(size, initial=0.0)
    return float(np.nanmax(change[some] / size[some], initial=0.0))


def _swamped(pairs: Eigenpairs, is_true: NDArray[np.bool_], bias: FloatArray, options: UCS) -> list[Remark]:
    """Remark on a penalty so large that rounding takes more than it brings."""
    true = pairs.values[is_true]
    loss = _relative(pairs.errors[is_true], true)
    if loss <= max(SWAMPED, _relative(bias, true)):
        return []
    said = f"by {loss:.1g} of their size, which is more than the penalty itself does. Take a smaller alpha."
    return [swamping_penalty(options.alpha, said)]
