"""Modes followed along a grid by their eigenvectors: their errors, whether they grow, and where they meet."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.families.rows import Template
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.stability import judge_stability
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

Complex = NDArray[np.complex128]

DISTANCE = 2.0
"""Weight of the distance between eigenvalues, relative to their sizes, compared with the angle between eigenvectors."""

EIGENVECTOR_ROUNDING_FACTOR = 16.0  # of an eigenvalue, in units of eps times the norm of A times its condition number


@dataclass(frozen=True)
class Tracks:
    """Eigenvalues of a family."""

    eigenvalues: Complex  # (n, P), a column is one mode; NaN where there is no linear model
    errors: FloatArray  # (n, P), how far rounding may have moved each: closer ones are not distinguished


def track_eigenvalues(models: LinearArrays, template: Template, ok: NDArray[np.bool_]) -> Tracks:
    """Return the eigenvalues of all points, each column one mode, the first point's by real, then imaginary part.

    A point continues the nearest one before it along the last axis, else the axis before: with the smallest sum of
    angles between eigenvectors, in all states in their sizes, and distances between eigenvalues. Where eigenvalues
    coincide their eigenvectors say nothing, and those of the point before stay.
    """
    order, scales = template.order, template.full_states.scales
    values = np.full((len(models), order), np.nan, dtype=np.complex128)
    errors = np.full((len(models), order), np.nan)
    shapes: dict[int, Complex] = {}  # of the points that others are compared with
    length = ok.shape[-1]
    for block in models.list_blocks():
        A, T, x0 = (models[block].read(name) for name in ("A", "T", "x0"))
        good = ok.ravel()[block]
        spectra = zip(*_eigen(A[good], T[good] / scales(x0[good])[..., None]), strict=True)
        for number, (w, V, error) in zip(np.flatnonzero(good) + block.start, spectra, strict=True):
            k = int(number)
            before = find_neighbour(ok.shape, k, shapes)
            sort = np.lexsort((w.imag, w.real)) if before is None else _assignment(values[before], shapes[before], w, V)
            values[k], errors[k], shapes[k] = w[sort], error[sort], V[:, sort]
            if before is not None:  # eigenvalues that have another one within rounding
                close = np.abs(values[k][:, None] - values[k]) <= np.maximum(errors[k][:, None], errors[k])
                np.fill_diagonal(close, val=False)
                shapes[k] = np.where(close.any(axis=1), shapes[before], shapes[k])
            shapes.pop(k - 1 if k % length > 1 else -1, None)  # the starts of lines stay
    return Tracks(values, errors)


def find_neighbour(shape: tuple[int, ...], number: int, shapes: Collection[int]) -> int | None:
    """Return the nearest point before that is among ``shapes``, along the last axis that has one."""
    if not shapes:
        return None
    index = [int(i) for i in np.unravel_index(number, shape)]
    for d in reversed(range(len(index))):
        for i in reversed(range(index[d])):
            other = int(np.ravel_multi_index((*index[:d], i, *index[d + 1 :]), shape))
            if other in shapes:
                return other
    return max(shapes)


def _eigen(A: FloatArray, T: FloatArray) -> tuple[Complex, Complex, FloatArray]:
    """Return the eigenvalues (n, P), unit eigenvectors in all states in their sizes (n, N, P), and errors (n, P)."""
    if not A.size:
        return np.zeros(A.shape[:2], np.complex128), np.zeros(T.shape, np.complex128), np.zeros(A.shape[:2])
    w, v = np.linalg.eig(A)
    # the condition of an eigenvalue is the length of its row in the inverse of v; v may be singular
    U, sigma, Vh = np.linalg.svd(v)
    inverse = Vh.conj().mT @ (U.conj().mT / np.maximum(sigma, EPS)[..., None])
    sizes = np.linalg.norm(A, axis=(1, 2))[:, None]
    errors = EIGENVECTOR_ROUNDING_FACTOR * EPS * sizes * np.linalg.norm(inverse, axis=2)
    full = T @ v
    lengths = np.linalg.norm(full, axis=1, keepdims=True)
    return w.astype(np.complex128), full / np.where(lengths > 0, lengths, 1.0), errors


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


@dataclass(frozen=True, eq=False)
class FamilySpectra:
    """Bounds and kinds of the eigenvalues of a family, shape (number of points, P), columns as in :class:`Tracks`."""

    errors: FloatArray  # how far each eigenvalue may be off; NaN where there is not a linear model
    kinds: NDArray[np.str_]  # as in :attr:`fmilin.linear_model.stability.Stability.kinds`; "" where there is none


def judge_family(models: LinearArrays, tracks: Tracks, *, sampled: bool) -> FamilySpectra:
    """Return the errors of all followed eigenvalues, and the verdict of ``judge_stability`` on each."""
    errors = np.full(tracks.eigenvalues.shape, np.nan)
    kinds = np.full(tracks.eigenvalues.shape, "", dtype="U9")
    for block in models.list_blocks():
        part = models[block]
        for offset, (A, E) in enumerate(zip(part.read("A"), part.read("error_A"), strict=True)):
            k = block.start + offset
            followed = tracks.eigenvalues[k]
            if not np.isfinite(followed).all():
                continue
            judged = judge_stability(A, E, sampled=sampled)
            gaps = np.abs(followed[:, None] - judged.eigenvalues)
            mode, partner = linear_sum_assignment(gaps)
            # the two ways of computing an eigenvalue may differ by part of its error
            errors[k, mode] = np.maximum(judged.errors[partner], gaps[mode, partner])
            kinds[k, mode] = np.array(judged.kinds, dtype="U9")[partner]
    return FamilySpectra(errors, kinds)


REAL_DIFFERENCE_TOLERANCE = 1e-6
"""The square of a difference of two eigenvalues is real when its imaginary part is smaller than this part of it."""

SEPARATE_MODES_CODE = 2  # says of two modes that they cannot meet here: neither on the real axis nor on a line near it


@dataclass(frozen=True, order=True)
class ModeEvent:
    """Two modes meet between two points of the grid."""

    # numbers of the two points; what lies between them has no linear model, or is where they meet
    between: tuple[int, int]
    modes: tuple[int, int]  # columns of ``eigenvalues``; of modes that are pairs, those in the upper half plane
    # real eigenvalues, or the frequencies of two pairs, pass each other; or two eigenvalues become one and part at
    # right angles: two real ones become a pair, or two pairs of the same damping (as in flutter) become one of larger
    # and one of smaller damping, or the other way around
    kind: Literal["crossing", "coalescence"]


def mode_events(tracks: Tracks, shape: tuple[int, ...]) -> tuple[ModeEvent, ...]:
    """Return where modes meet along every axis of the grid, in the order of the points."""
    events: set[ModeEvent] = set()
    numbers = np.arange(len(tracks.eigenvalues)).reshape(shape)
    order = tracks.eigenvalues.shape[-1]
    for i in range(order):
        for j in range(i + 1, order):
            w, rounding = tracks.eigenvalues[:, [i, j]], tracks.errors[:, [i, j]].max(axis=1)
            # The sign of (w_i - w_j)^2 where that is real, which changes where they coalesce.
            gap = w[:, 0] - w[:, 1]
            square = gap**2
            close = np.abs(gap) <= rounding
            straight = close | (np.abs(square.imag) <= REAL_DIFFERENCE_TOLERANCE * np.abs(square))
            mirrored = (w.imag < -rounding[:, None]).all(axis=1)  # two of the lower half plane do what those above do
            signs: dict[Literal["crossing", "coalescence"], NDArray[np.int8]] = {
                "crossing": _order_modes(w, rounding),
                "coalescence": _or_apart(np.where(close, 0, np.sign(square.real)), straight & ~mirrored, w),
            }
            for kind, sign in signs.items():
                if (sign == 1).any() and (sign == -1).any():
                    for axis in range(len(shape)):
                        events |= {ModeEvent(pair, (i, j), kind) for pair in _changes(sign, numbers, axis)}
    return tuple(sorted(events, key=lambda e: (e.between[1], e.between[0], e.kind, e.modes)))


def _order_modes(w: NDArray[np.complex128], rounding: FloatArray) -> NDArray[np.int8]:
    """Return which of two modes is ahead: 1, -1, or 0 where they are the same; the larger real one, or frequency."""
    real = (np.abs(w.imag) <= rounding[:, None]).all(axis=1)
    pairs = (w.imag > rounding[:, None]).all(axis=1)
    gap = np.where(real, w.real[:, 0] - w.real[:, 1], w.imag[:, 0] - w.imag[:, 1])
    sign = np.where(np.abs(gap) <= rounding, 0, np.sign(gap))
    return _or_apart(sign, np.asarray(real | pairs), w)


def _or_apart(sign: FloatArray, where: NDArray[np.bool_], w: NDArray[np.complex128]) -> NDArray[np.int8]:
    """Return the sign, 0 where there is no linear model, and :data:`SEPARATE_MODES_CODE` where it means nothing."""
    nothing = np.isnan(w.real).any(axis=1)
    return np.where(nothing, 0, np.where(where, sign, SEPARATE_MODES_CODE)).astype(np.int8)


def _changes(sign: NDArray[np.int8], numbers: NDArray[np.intp], axis: int) -> Iterator[tuple[int, int]]:
    """Yield the points between which a sign changes along an axis, over those where it is 0."""
    lines = np.moveaxis(sign.reshape(numbers.shape), axis, -1).reshape(-1, numbers.shape[axis])
    names = np.moveaxis(numbers, axis, -1).reshape(lines.shape)
    position = np.broadcast_to(np.arange(lines.shape[1]), lines.shape)
    # the nearest before that has a sign
    last = np.maximum.accumulate(np.where(lines != 0, position, -1), axis=1)[:, :-1]
    before = np.where(last >= 0, np.take_along_axis(lines, np.maximum(last, 0), axis=1), SEPARATE_MODES_CODE)
    changed = (before * lines[:, 1:] == -1) & (lines[:, 1:] != 0)
    for line, k in zip(*np.nonzero(changed), strict=True):
        yield int(names[line, last[line, k]]), int(names[line, k + 1])
