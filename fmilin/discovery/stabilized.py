"""Constraints hidden by a stabilization: g'' + 2 a g' + b^2 g = 0 for all states, so that g decays instead of staying.

All such g and g' lie in the largest subspace of a library phi that the linear map L_f c = Dphi f c maps into itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from fmilin.discovery.function_library import Library
from fmilin.discovery.invariant import Invariant
from fmilin.discovery.sparse_null_space import MAX_TERMS, NullSpace, sparse_basis, svd
from fmilin.signals import FloatArray

DECAY_RATE_TOLERANCE = 1e-6  # real part of an eigenvalue, of the largest, that is a decay
MIN_SIZE = 1e-300


@dataclass(frozen=True)
class Decaying:
    """A function g of positions that decays by itself, and its rate."""

    # g, rate: with levels of their own: they decay to zero
    g: Invariant
    rate: Invariant
    # alpha, beta: g'' = -2 alpha g' - beta^2 g, or g' = -alpha g where beta is NaN
    alpha: float
    beta: float


def find_decaying(
    library: Library, x: FloatArray, f: FloatArray, speeds: frozenset[int], order: Sequence[int], noise: float
) -> Iterator[Decaying]:
    """Yield functions without speeds that decay, the simplest first; rates f at x (m, N) with relative ``noise``."""
    values, rates = library.values(x), library.rates(x, f)
    sizes = np.maximum(np.linalg.norm(values, axis=0), MIN_SIZE)
    B = np.column_stack((values / sizes, np.full(len(x), 1 / np.sqrt(len(x)))))
    closed = _invariant_subspace(B, rates / sizes, noise)
    if closed is None:
        return
    N, M = closed
    S = N @ _decaying_subspace(M)  # coefficients of terms and constant
    moving = [i for i, t in enumerate(library.terms) if t.states & speeds]
    if moving and S.shape[1]:
        s, vt = svd(S[moving])
        S = S @ vt[s <= 1e-7].T
    if not S.shape[1]:
        return
    orthonormal = np.linalg.qr(S)[0]
    last = np.append(order, len(library))  # the constant leads no function
    units = np.append(sizes, np.sqrt(len(x)))
    for vector in sparse_basis(NullSpace(orthonormal, units, 1e-11), [int(i) for i in np.roll(last, 1)]):
        mode = _second_order(library, vector, B, rates, units)
        if mode is not None:
            yield mode


def _decaying_subspace(M: FloatArray) -> FloatArray:
    """Return a basis of what M lets decay, shape (r, count)."""
    values = np.linalg.eigvals(M)
    slowest = DECAY_RATE_TOLERANCE * max(float(np.abs(values).max(initial=0.0)), MIN_SIZE)

    def decays(real: float, _imaginary: float) -> bool:
        return real < -slowest

    _, Z, count = linalg.schur(M, output="real", sort=decays)
    return np.asarray(np.asarray(Z, dtype=np.float64)[:, :count])


def _invariant_subspace(B: FloatArray, rates: FloatArray, noise: float) -> tuple[FloatArray, FloatArray] | None:
    """Return a basis N (K + 1, r) of the largest subspace that L_f maps into itself, and the map M (r, r) on it."""
    k = rates.shape[1]
    Q, R = np.linalg.qr(B)
    if np.abs(np.diag(R)).min() < 1e-9 * np.abs(np.diag(R)).max():
        return None
    remainder = rates - Q @ (Q.T @ rates)
    norms = np.linalg.norm(rates, axis=0)
    scale = np.maximum(norms, 1e-12 * max(float(norms.max()), MIN_SIZE))
    s, vt = svd(remainder / scale, full=False)
    small = s <= max(1e-9, 10 * noise) * max(s[0], 1.0)
    if not small.any():
        return None
    N = np.zeros((k + 1, int(small.sum()) + 1))
    N[:k, :-1], N[k, -1] = vt[small].T / scale[:, None], 1.0
    N = np.linalg.qr(N)[0]
    for _ in range(k):
        image = np.linalg.solve(R, Q.T @ (rates @ N[:k]))
        outside = image - N @ (N.T @ image)
        s, vt = svd(outside)
        small = s <= 1e-7 * max(float(np.abs(image).max()), MIN_SIZE)
        if small.all():
            return N, N.T @ image
        if not small.any():
            return None
        N = np.linalg.qr(N @ vt[small].T)[0]
    return None


def _second_order(
    library: Library, vector: FloatArray, B: FloatArray, rates: FloatArray, units: FloatArray
) -> Decaying | None:
    """Return g with its rate, written down; None where neither g nor its rate is short."""
    k = len(library)
    scaled = vector * units
    first = np.linalg.lstsq(B, rates @ vector[:k], rcond=None)[0]
    second = np.linalg.lstsq(B, rates @ (first / units)[:k], rcond=None)[0]
    size = float(np.abs(scaled).max())
    g, rate = _invariant(library, scaled, units), _invariant(library, first, units)
    if g is None:
        return None
    if rate is None or np.linalg.norm(first) <= 1e-9 * size:
        return None
    rate_factor = float(first @ scaled / (scaled @ scaled))
    if np.linalg.norm(first - rate_factor * scaled) <= 1e-6 * np.linalg.norm(first):
        return Decaying(g, g, -rate_factor, np.nan)
    pair, _, _, _ = np.linalg.lstsq(np.column_stack((first, scaled)), second, rcond=None)
    if np.linalg.norm(second - first * pair[0] - scaled * pair[1]) > 1e-5 * np.linalg.norm(second) or pair[1] > 0:
        return None
    return Decaying(g, rate, -float(pair[0]) / 2, float(np.sqrt(-pair[1])))


def _invariant(library: Library, scaled: Any, units: FloatArray) -> Invariant | None:
    clean = np.where(np.abs(scaled) > 1e-8 * np.abs(scaled).max(), scaled, 0.0) / units
    support = np.flatnonzero(clean[:-1])
    if not 1 <= len(support) <= MAX_TERMS:
        return None
    support = np.array(sorted(support, key=lambda i: (library.terms[i].complexity, i)))
    return Invariant(library[support.tolist()], clean[support], -float(clean[-1]))
