"""Where the modes of a family meet: they pass each other, or become a pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.families.tracking import Tracks
from fmilin.ground.signals import FloatArray

STRAIGHT = 1e-6
"""The square of a difference of two eigenvalues is real when its imaginary part is smaller than this part of it."""

APART = 2  # says of two modes that they cannot meet here: neither on the real axis nor on a line beside it


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
            signs: dict[Literal["crossing", "coalescence"], NDArray[np.int8]] = {
                "crossing": _crossing_sign(w, rounding),
                "coalescence": _square_sign(w, rounding),
            }
            for kind, sign in signs.items():
                if (sign == 1).any() and (sign == -1).any():
                    for axis in range(len(shape)):
                        events |= {ModeEvent(pair, (i, j), kind) for pair in _changes(sign, numbers, axis)}
    return tuple(sorted(events, key=lambda e: (e.between[1], e.between[0], e.kind, e.modes)))


def _crossing_sign(w: NDArray[np.complex128], rounding: FloatArray) -> NDArray[np.int8]:
    """Return which of two modes is ahead: 1, -1, or 0 where they are the same; the larger real one, or frequency."""
    real = (np.abs(w.imag) <= rounding[:, None]).all(axis=1)
    pairs = (w.imag > rounding[:, None]).all(axis=1)
    gap = np.where(real, w.real[:, 0] - w.real[:, 1], w.imag[:, 0] - w.imag[:, 1])
    sign = np.where(np.abs(gap) <= rounding, 0, np.sign(gap))
    return _or_apart(sign, np.asarray(real | pairs), w)


def _square_sign(w: NDArray[np.complex128], rounding: FloatArray) -> NDArray[np.int8]:
    """Return the sign of (w_i - w_j)^2 where that is real, which changes where they coalesce."""
    gap = w[:, 0] - w[:, 1]
    square = gap**2
    close = np.abs(gap) <= rounding
    straight = close | (np.abs(square.imag) <= STRAIGHT * np.abs(square))
    mirrored = (w.imag < -rounding[:, None]).all(axis=1)  # two of the lower half plane do what those above do
    return _or_apart(np.where(close, 0, np.sign(square.real)), straight & ~mirrored, w)


def _or_apart(sign: FloatArray, where: NDArray[np.bool_], w: NDArray[np.complex128]) -> NDArray[np.int8]:
    """Return the sign, 0 where there is no linear model, and :data:`APART` where it means nothing."""
    nothing = np.isnan(w.real).any(axis=1)
    return np.where(nothing, 0, np.where(where, sign, APART)).astype(np.int8)


def _changes(sign: NDArray[np.int8], numbers: NDArray[np.intp], axis: int) -> Iterator[tuple[int, int]]:
    """Yield the points between which a sign changes along an axis, over those where it is 0."""
    lines = np.moveaxis(sign.reshape(numbers.shape), axis, -1).reshape(-1, numbers.shape[axis])
    names = np.moveaxis(numbers, axis, -1).reshape(lines.shape)
    position = np.broadcast_to(np.arange(lines.shape[1]), lines.shape)
    # the nearest before that has a sign
    last = np.maximum.accumulate(np.where(lines != 0, position, -1), axis=1)[:, :-1]
    before = np.where(last >= 0, np.take_along_axis(lines, np.maximum(last, 0), axis=1), APART)
    changed = (before * lines[:, 1:] == -1) & (lines[:, 1:] != 0)
    for line, k in zip(*np.nonzero(changed), strict=True):
        yield int(names[line, last[line, k]]), int(names[line, k + 1])
