"""Modes followed along a grid by their eigenvectors, and where they meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily

__all__ = ["ModeEvent", "Tracks", "tracked"]

Complex = NDArray[np.complex128]

DISTANCE = 2.0
"""Weight of the distance between eigenvalues, relative to their sizes, beside the angle between eigenvectors."""

REAL = 1e-8
"""An eigenvalue whose imaginary part is smaller than this, relative to the largest one, is real."""


@dataclass(frozen=True)
class ModeEvent:
    """Two modes meet between two neighbouring points.

    Attributes
    ----------
    kind : {"crossing", "coalescence"}
        They pass each other, or two real eigenvalues become a pair (or the other way around).
    between : (int, int)
        Numbers of the two points.
    modes : (int, int)
        Columns of ``eigenvalues``.
    """

    kind: Literal["crossing", "coalescence"]
    between: tuple[int, int]
    modes: tuple[int, int]


@dataclass(frozen=True)
class Tracks:
    r"""Eigenvalues of a family.

    Attributes
    ----------
    eigenvalues : array of complex, shape (\\*shape, P)
        NaN where there is no linear model.
    events : tuple of ModeEvent
    """

    eigenvalues: Complex
    events: tuple[ModeEvent, ...]


def tracked(family: LinearFamily) -> Tracks:
    """Return the eigenvalues of all points, each column one mode.

    A point is compared with the nearest one before it along the last axis that has a linear model, else along the axis
    before: the assignment with the smallest sum of angles between eigenvectors (in all N states, in their sizes) and
    distances between eigenvalues. The first point has them sorted by real part, then imaginary part.
    """
    layout, order = family.layout, family.template.order
    values = np.full((len(family), order), np.nan, dtype=np.complex128)
    events: list[ModeEvent] = []
    shapes: dict[int, Complex] = {}  # of the points that others are compared with
    ok = family.ok.ravel()
    length = family.shape[-1]
    for block in layout.blocks(len(family)):
        rows = family.rows[block]
        A, T, x0 = (layout.part(rows, name) for name in ("A", "T", "x0"))
        good = ok[block]
        found, vectors = _eigen(A[good], T[good], family.full_states.scales, x0[good])
        for number, w, V in zip(np.flatnonzero(good) + block.start, found, vectors, strict=True):
            k = int(number)
            before = _compared_with(family, k, shapes)
            sort = np.lexsort((w.imag, w.real)) if before is None else _assignment(values[before], shapes[before], w, V)
            values[k], shapes[k] = w[sort], V[:, sort]
            if before is not None:
                events += _events(values[before], values[k], (before, k))
            shapes.pop(k - 1 if k % length > 1 else -1, None)  # the starts of lines stay
    return Tracks(values.reshape(*family.shape, order), tuple(events))


def _compared_with(family: LinearFamily, number: int, shapes: dict[int, Complex]) -> int | None:
    """Return the nearest point before, along the last axis that has one."""
    if not shapes:
        return None
    place = list(family.grid.index(number))
    for d in reversed(range(len(place))):
        for i in reversed(range(place[d])):
            other = int(np.ravel_multi_index((*place[:d], i, *place[d + 1 :]), family.shape))
            if other in shapes:
                return other
    return max(shapes)


def _eigen(A: FloatArray, T: FloatArray, scales: object, x0: FloatArray) -> tuple[Complex, Complex]:
    """Return the eigenvalues (n, P) and unit eigenvectors in all states in their sizes (n, N, P)."""
    if not len(A) or not A.shape[1]:
        return np.zeros(A.shape[:2], np.complex128), np.zeros((len(A), T.shape[1], A.shape[1]), np.complex128)
    w, v = np.linalg.eig(A)
    full = (T / scales(x0)[..., None]) @ v  # type: ignore[operator]
    lengths = np.linalg.norm(full, axis=1, keepdims=True)
    return w.astype(np.complex128), full / np.where(lengths > 0, lengths, 1.0)


def _assignment(w0: Complex, V0: Complex, w1: Complex, V1: Complex) -> NDArray[np.intp]:
    """Return which of the new eigenvalues continues each of the old ones."""
    if len(w0) < 2:
        return np.arange(len(w0))
    angle = 1.0 - np.abs(V0.conj().T @ V1) ** 2
    typical = max(float(np.median(np.abs(w0))), 1e-3 * float(np.abs(w0).max()), 1e-300)
    size = np.maximum(np.maximum(np.abs(w0)[:, None], np.abs(w1)), typical)
    cost = angle + DISTANCE * np.abs(w0[:, None] - w1) / size
    # conjugates have the same angle to a real vector: the sign of the imaginary part is kept
    cost = cost + 0.5 * ((np.sign(w0.imag)[:, None] * np.sign(w1.imag)) < 0)
    nearest = cost.argmin(axis=1)
    if len(set(nearest.tolist())) == len(nearest):  # as nearly always: it has the smallest sum
        return np.asarray(nearest)
    return np.asarray(linear_sum_assignment(cost)[1])


def _events(w0: Complex, w1: Complex, between: tuple[int, int]) -> list[ModeEvent]:
    """Return what happens between two points."""
    found: list[ModeEvent] = []
    limit0, limit1 = (REAL * max(float(np.abs(w).max(initial=0.0)), 1e-300) for w in (w0, w1))
    real0, real1 = np.abs(w0.imag) <= limit0, np.abs(w1.imag) <= limit1
    changed = np.flatnonzero(real0 != real1)
    found += [ModeEvent("coalescence", between, pair) for pair in _pairs(w0, w1, changed, real0)]
    for kind, measure in ((real0 & real1, np.real), (~real0 & ~real1 & (w0.imag > 0), np.imag)):
        some = np.flatnonzero(kind)
        a, b = measure(w0[some]), measure(w1[some])
        before, after = a[:, None] - a, b[:, None] - b
        apart = np.minimum(np.abs(before), np.abs(after)) > max(limit0, limit1)
        crossed = np.triu((before * after < 0) & apart)
        pairs = zip(*(some[k].tolist() for k in np.nonzero(crossed)), strict=True) if crossed.any() else ()
        found += [ModeEvent("crossing", between, (i, j)) for i, j in pairs]
    return found


def _pairs(w0: Complex, w1: Complex, changed: NDArray[np.intp], real0: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the modes that became a pair, or were one: conjugates on the side where they are complex."""
    found, left = [], changed.tolist()
    while len(left) > 1:
        i = left.pop(0)
        w = w1 if real0[i] else w0
        partner = min(left, key=lambda j: abs(w[j] - np.conj(w[i])))
        left.remove(partner)
        found.append((i, partner))
    return found
