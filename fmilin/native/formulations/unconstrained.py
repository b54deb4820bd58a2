"""UCS: each constraint replaced by a penalty (González et al., section 3.3; Bayo et al.).

With lambda* = alpha (Phi'' + 2 xi omega Phi' + omega^2 Phi) in place of the multipliers,

    M_p a + C_p dv + K_p dq = B u
    M_p = M + alpha Phi_q' Phi_q
    C_p = C + alpha Phi_q' (gamma_v + 2 xi omega Phi_q)
    K_p = K + alpha Phi_q' (gamma_q + 2 xi omega Phi_q_dot + omega^2 Phi_q)

is a system of 2n eigenvalues: approximations of the 2(n - m) of the constrained system, and 2m spurious ones, whose
eigenvectors violate Phi_q v = 0. K takes lambda* at the point: alpha omega^2 Phi where the penalized system itself
rests, and lambda at a point of the constrained one (Phi measured from where it balances lambda). The gamma and
Phi_q_dot vanish at an equilibrium, and so does what carries the tangent space along elsewhere
(:mod:`fmilin.formulations.form`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.remarks import Remark, swamping_penalty
from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.bases import Basis
from fmilin.native.formulations.form import ConstrainedForm, MotionTerms, motion_terms
from fmilin.native.formulations.formulation import (
    UCS,
    ComplexArray,
    ReducedSystem,
    Spectrum,
    seen_vectors,
    tangent_mass,
    violations,
)
from fmilin.native.formulations.pencil import Eigenpairs, Pencil, eigenpairs, solution

APART = 10.0
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
    """Return, to first order, how far each eigenvalue is in another pencil, such as one of twice the penalty.

    An eigenvalue's error is c/alpha, and the pencil is linear in alpha: the slope times alpha estimates it.
    """
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
