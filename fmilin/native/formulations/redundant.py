"""RCS: coordinates, velocities and multipliers together (González et al., section 3.2), E z' = A z + B u.

With z = (dq, dv, dlambda),

    E = [ I  0  0 ]        A = [     N P              I          0   ]
        [ 0  M  0 ]            [ -(K + M N Q)   -(C + M N W)  -Phi_q' ]
        [ 0  0  0 ]            [   -Phi_q             0          0   ]

has 2(n - m) finite eigenvalues, those of the constrained system, and 3m infinite ones. With the constraints moved to
E (impulses in place of the multipliers, and Phi'' = 0 in place of Phi = 0) they are zeros:

    E = [ I   0     0   ]        A = [     N P               I         0 ]
        [ 0   M   Phi_q' ]           [ -(K + M N Q)    -(C + M N W)    0 ]
        [ 0  Phi_q  0   ]            [ -Phi_q_dot N P   -Phi_q_dot     0 ]

N P, N Q, N W and Phi_q_dot vanish at an equilibrium (:mod:`fmilin.formulations.form`). Constraints that depend
on others would leave their multipliers undetermined and the pencil singular: as many combinations of the rows of Phi_q
are taken as are independent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.native.formulations.bases import Basis, combinations_of_rows
from fmilin.native.formulations.form import ConstrainedForm, MotionTerms, motion_terms
from fmilin.native.formulations.formulation import RCS, ReducedSystem, Spectrum, tangent_mass
from fmilin.native.formulations.pencil import Eigenpairs, Pencil, eigenpairs, solution

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
        _remarks(pairs, is_true),
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


def _remarks(pairs: Eigenpairs, is_true: NDArray[np.bool_]) -> list[Remark]:
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
