"""Riccati's equation with periodic coefficients, -S' = A' S + S A - S G S + Q, and its solution that repeats.

The Hamiltonian [[A, -G], [-Q, -A']] leads from one end of an interval to the other, x_1 = F x_0 - W l_1 and
l_0 = H x_0 + F' l_1 with l = S x: three matrices that follow for two intervals from those of each, and for a period
that is doubled again and again until all time to come is in H, which then is S (structured doubling; Chu, Fan, Lin and
Wang, International Journal of Control 77, 2004). Nothing grows on the way, as exponentials of the Hamiltonian would.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.motion.periodic.fourier import Interpolant
from fmilin.motion.periodic.transition import factors

DOUBLINGS = 60
AT_REST = 1e-14  # relative: a change of S in twice the time by which it has converged

Passage = tuple[FloatArray, FloatArray, FloatArray]  # F, W, H, each (..., P, P)


def periodic_riccati(A: FloatArray, G: FloatArray, Q: FloatArray, period: float) -> FloatArray:
    """Return S (m, P, P) at m equally spaced times, with which A - G S is stable; ``A``, ``G``, ``Q`` are (m, P, P).

    Raises
    ------
    NumericalError
        When there is none.
    """
    m, P = A.shape[:2]
    hamiltonian = np.block([[A, -G], [-Q, -np.swapaxes(A, 1, 2)]])
    steps = factors(Interpolant(hamiltonian), period, m)
    b, c, d = steps[:, :P, P:], steps[:, P:, :P], steps[:, P:, P:]
    each = np.linalg.inv(d)
    parts: Passage = (np.swapaxes(each, 1, 2), -b @ each, -each @ c)
    while len(parts[0]) > m:
        F, W, H = parts
        parts = _joined((F[0::2], W[0::2], H[0::2]), (F[1::2], W[1::2], H[1::2]))
    S = np.empty((m, P, P))
    S[0] = _for_ever(parts)
    for k in range(m - 1, 0, -1):
        F, W, H = (part[k] for part in parts)
        S[k] = H + F.T @ S[(k + 1) % m] @ np.linalg.solve(np.eye(P) + W @ S[(k + 1) % m], F)
    return (S + np.swapaxes(S, 1, 2)) / 2


def _joined(first: Passage, then: Passage) -> Passage:
    """Return the passage through two intervals, one after the other."""
    (F, W, H), (F_, W_, H_) = first, then
    both = np.linalg.solve(np.eye(F.shape[-1]) + W @ H_, np.concatenate((F, W), axis=-1))
    through, back = np.split(both, 2, axis=-1)
    over = np.swapaxes(F_, -1, -2)
    return F_ @ through, W_ + F_ @ back @ over, H + np.swapaxes(F, -1, -2) @ H_ @ through


def _for_ever(parts: Passage) -> FloatArray:
    whole: Passage = reduce(_joined, zip(*parts, strict=True))
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            before, whole = whole[2], _joined(whole, whole)
            if not np.isfinite(whole[2]).all():
                break
            if np.abs(whole[2] - before).max() <= AT_REST * np.abs(whole[2]).max():
                return whole[2]
    raise NumericalError("Riccati's equation has no solution that repeats itself and makes the system stable.")
