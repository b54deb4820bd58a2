"""The formulations with dense matrices: every eigenvalue, and the state-space of the true ones (González et al.)."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.diagnostics import Remark, swamping_penalty
from fmilin.errors import NumericalError
from fmilin.formulations.form import Basis, ConstrainedForm, combinations_of_rows
from fmilin.formulations.formulation import (
    RCS,
    UCS,
    ComplexArray,
    ReducedSystem,
    Spectrum,
    motion_vectors,
    require_tangent_mass,
    violations,
)
from fmilin.formulations.formulation_matrices import (
    MotionTerms,
    compute_motion_terms,
    follow_positions,
    penalize_equations,
    project_equations,
)
from fmilin.formulations.pencil import Eigenpairs, Pencil, eigenpairs, label_modes, solution
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS


def solve_minimal(form: ConstrainedForm, basis: Basis) -> tuple[Spectrum, ReducedSystem]:
    """Return the 2(n - m) eigenvalues of the constrained system; none of them is spurious."""
    p, n, k = basis.R.shape[1], form.n, form.B.shape[1]
    lift = basis.lift(form.Phi_q)
    require_tangent_mass(form, basis)
    L = follow_positions(form, basis.R, lift)
    Mr, Cr, Kr = project_equations(form, basis.R, L, lift)
    T = np.block([[basis.R, np.zeros((n, p))], [L, basis.R]])
    zero, eye = np.zeros((p, p)), np.eye(p)
    upper, B = np.hstack((zero, eye)), np.vstack((np.zeros((p, k)), basis.R.T @ form.B))
    pencil = Pencil(np.block([[eye, zero], [zero, Mr]]), np.vstack((upper, -np.hstack((Kr, Cr)))), B, p)
    pairs = eigenpairs(pencil)
    vectors, all_pairs = motion_vectors(T @ pairs.right_vectors, n), np.ones(2 * p, dtype=bool)
    spectrum = label_modes(form, basis, pairs, all_pairs, ("mcs", _WORDS[basis.method]), vectors=vectors)
    if not p:
        return spectrum, ReducedSystem(zero, np.zeros((0, k)), T, basis, 0.0, lift)
    solved = linalg.solve(Mr, np.hstack((-Kr, -Cr, B[p:])), assume_a="pos")
    A, B = np.vstack((upper, solved[:, : 2 * p])), np.vstack((B[:p], solved[:, 2 * p :]))
    return spectrum, ReducedSystem(A, B, T, basis, 16 * EPS * float(np.linalg.cond(Mr)), lift)


_WORDS = {
    "coordinates": "independent coordinates",
    "zero-eigenvalue": "zero-eigenvalue theorem",
    "svd": "singular value decomposition",
    "qr": "QR decomposition",
    "gram-schmidt": "Gram-Schmidt",
}


MIN_SEPARATION_RATIO = 10.0  # true and spurious eigenvalues nearer to each other than this ratio are remarked on


def solve_redundant(form: ConstrainedForm, basis: Basis, options: RCS) -> tuple[Spectrum, ReducedSystem | None]:
    """Return the 2n + m eigenvalues of the descriptor pencil, labelled, and its proper state-space."""
    require_tangent_mass(form, basis)
    lift = basis.lift(form.Phi_q)
    terms = compute_motion_terms(form, lift)
    pencil = descriptor_pencil(form, terms, spurious=options.spurious)
    pairs = eigenpairs(pencil)
    order = 2 * basis.R.shape[1]
    is_true = np.zeros(len(pairs.values), dtype=bool)
    is_true[:order] = True
    if options.spurious == "zero":
        is_true = is_true[::-1]
    if not np.isfinite(pairs.values[is_true]).all():
        raise NumericalError(
            f"The pencil has fewer than {order} finite eigenvalues: the mass matrix is singular for a velocity that "
            "the constraints leave free. Give that motion a mass."
        )
    return solution(
        (form, basis, lift, pencil),
        pairs,
        is_true,
        ("rcs", f"QZ, spurious eigenvalues {options.spurious}"),
        _loss(pairs, is_true),
        _remarks_on_sizes(pairs, is_true),
        advice=" Use spurious='infinite'." if options.spurious == "zero" else "",
    )


def descriptor_pencil(form: ConstrainedForm, terms: MotionTerms, *, spurious: str = "infinite") -> Pencil:
    """Return E, A and B of a dense form; see :mod:`fmilin.formulations.formulation_matrices`."""
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
    if float(np.min(high)) > MIN_SEPARATION_RATIO * float(np.max(low)):
        return []
    return [
        Remark(
            "labels",
            f"True and spurious eigenvalues are not clearly separated: {np.max(low):.3g} and {np.min(high):.3g} 1/s. "
            "The labels are doubtful; compare with the formulation mcs.",
        )
    ]


MIN_REPORTED_ERROR = 1e-7  # relative errors from rounding below this are never remarked on


def solve_unconstrained(
    form: ConstrainedForm, basis: Basis, options: UCS, *, origin: ConstrainedForm | None = None
) -> tuple[Spectrum, ReducedSystem | None]:
    """Return the 2n labelled eigenvalues of the penalized system, and the state-space of the true ones.

    ``form`` is at the equilibrium of the penalized system or at any consistent point, ``origin`` at that of the
    constrained one, for the estimate of what the displacement does.
    """
    require_tangent_mass(form, basis)
    lift = basis.lift(form.Phi_q)
    terms = compute_motion_terms(form, lift)
    pencil = penalize(form, terms, options)
    pairs = eigenpairs(pencil)
    order = 2 * basis.R.shape[1]
    broken = violations(form, motion_vectors(pairs.right_vectors, form.n))
    is_true = np.zeros(len(pairs.values), dtype=bool)
    is_true[_least(pairs.values, np.nan_to_num(broken, nan=np.inf), order)] = True
    bias = np.abs(_estimate_shifts(pencil, penalize(form, terms, replace(options, alpha=2 * options.alpha)), pairs))[
        is_true
    ]
    if origin is not None:
        bias = bias + np.abs(_estimate_shifts(pencil, penalize(origin, terms, options), pairs))[is_true]
    return solution(
        (form, basis, lift, pencil),
        pairs,
        is_true,
        ("ucs", f"penalty, alpha = {options.alpha:g}, xi = {options.xi:g}, omega = {options.omega:g}"),
        _relative(bias, pairs.values[is_true]),
        [*_labels(broken, is_true), *_warn_swamped(pairs, is_true, bias, options)],
    )


def penalize(form: ConstrainedForm, terms: MotionTerms, options: UCS) -> Pencil:
    """Return E = diag(I, M_p), A and B of a dense form; see :mod:`fmilin.formulations.formulation_matrices`."""
    n = form.n
    Mp, Cp, Kp = penalize_equations(form, options)
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
    if not len(true) or not len(spurious) or np.nanmin(spurious) > MIN_SEPARATION_RATIO * np.nanmax(true):
        return []
    return [
        Remark(
            "labels",
            "True and spurious eigenvalues are not clearly separated: their eigenvectors violate the velocity "
            f"constraints by up to {np.nanmax(true):.2g} and from {np.nanmin(spurious):.2g} on. A larger alpha "
            "separates them, and an omega that is not a natural frequency.",
        )
    ]


def _estimate_shifts(pencil: Pencil, other: Pencil, pairs: Eigenpairs) -> ComplexArray:
    """Return how far each eigenvalue is in another pencil, to first order: twice the penalty moves it by its error."""
    y, x, finite = pairs.left_vectors.conj(), pairs.right_vectors, np.isfinite(pairs.values)
    s = np.where(finite, pairs.values, 0.0)
    change = (other.A - pencil.A) @ x - (other.E - pencil.E) @ x * s
    overlap = np.einsum("ij,ij->j", y, pencil.E @ x)
    moved: ComplexArray = np.einsum("ij,ij->j", y, change) / np.where(overlap != 0, overlap, np.nan)
    return moved


def _relative(change: FloatArray, values: ComplexArray) -> float:
    """Return the largest change relative to its eigenvalue; rigid motions (zeros) are left out."""
    size = np.abs(values)
    nonzero = size > 1e-6 * np.max(size, initial=0.0)
    return float(np.nanmax(change[nonzero] / size[nonzero], initial=0.0))


def _warn_swamped(pairs: Eigenpairs, is_true: NDArray[np.bool_], bias: FloatArray, options: UCS) -> list[Remark]:
    """Warn of a penalty so large that rounding takes more than it brings."""
    true = pairs.values[is_true]
    loss = _relative(pairs.errors[is_true], true)
    if loss <= max(MIN_REPORTED_ERROR, _relative(bias, true)):
        return []
    loss_text = f"by {loss:.1g} of their size, more than the penalty itself. Use a smaller alpha."
    return [swamping_penalty(options.alpha, loss_text)]
