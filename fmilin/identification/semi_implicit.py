"""The semi-implicit Euler methods that can have made a discrete model: which of its coordinates are positions.

Velocities are updated first, and positions from the new velocities: q[k+1] = q[k] + h v[k+1], so that v is a difference
backwards, which no input moves at once. Positions first, q[k+1] = q[k] + h v[k] is a difference forwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.identification.discrete_models import Sampled, choose_independent, find_observed_rows
from fmilin.identification.integrators import OneStepMethod, semi_implicit_euler, sequential_euler
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK_MEASURED, RELATION_MISSED

MOST_IN_TURN = 4  # bodies that are updated one after another
AT_ONE = 1e-4  # eigenvalues that are as near to 1 belong to a body that moves freely
ALIKE = 1e-6  # singular values of what inputs do to a mode below this, relative, are rounding


@dataclass(frozen=True)
class _Map:
    """A discrete model with its inverse."""

    step: float
    A: FloatArray
    back: FloatArray  # A^-1
    Gamma: FloatArray  # (n, nu); the motion of the point where there are no inputs

    @property
    def order(self) -> int:
        return len(self.A)


def find_semi_implicit(model: Sampled) -> list[OneStepMethod]:
    """Return the semi-implicit Euler methods that have a plant, those of shown positions before all others."""
    # a point with speeds moves its positions, which inputs do not: its motion takes the place of inputs only
    Gamma = model.B if model.B.any() else model.drift[:, None]
    if model.order < 2 or not Gamma.shape[1]:
        return []
    try:
        back = np.asarray(np.linalg.inv(model.A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return []
    step_map = _Map(model.step, model.A, back, Gamma)
    rows = find_observed_rows(model)
    proper = rows.C[~rows.D.any(axis=1)]
    methods: list[OneStepMethod] = []
    in_turn: list[OneStepMethod] = []
    for positions, speeds, positions_first in _pairings(step_map, proper):
        S = _normalize_rows(np.vstack((positions, speeds)))
        if not _is_regular(S):
            continue
        count = len(positions)
        methods.append(_method(S, slice(0, count), positions_first=positions_first))
        if not positions_first:
            in_turn += _in_turn(S)
    for positions_first in (False, True):
        if not any(method.is_usual is not positions_first for method in methods):
            other = _of_free_positions(step_map, proper, positions_first=positions_first)
            other = other or _of_modes(step_map, positions_first=positions_first)
            methods += [] if other is None else [other]
    return [*methods, *in_turn]


def _method(S: FloatArray, positions: slice, *, positions_first: bool) -> OneStepMethod:
    """Return the method in the coordinates S x, of which some are positions."""
    is_first = np.full(len(S), float(not positions_first))
    is_first[positions] = float(positions_first)
    first = np.asarray(np.linalg.solve(S, is_first[:, None] * S), dtype=np.float64)
    return semi_implicit_euler(first, positions_first=positions_first)


def _normalize_rows(rows: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _is_regular(S: FloatArray) -> bool:
    if not np.isfinite(S).all():
        return False
    return bool(np.linalg.svd(S, compute_uv=False)[-1] > RANK_MEASURED)


def _pairings(step_map: _Map, proper: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, bool]]:
    """Yield positions, speeds, and whether positions come first, where shown rows are half of the coordinates."""
    n, h, one = step_map.order, step_map.step, np.eye(step_map.order)
    if n % 2:
        return
    differences_backwards = (one - step_map.back) / h
    for q in _half(_rows_moved(proper, step_map.back @ step_map.Gamma, moved=False), n):
        yield q, q @ differences_backwards, False
    for speeds in _half(_rows_moved(proper, step_map.Gamma, moved=True), n):  # of bodies that inputs accelerate
        positions = np.linalg.lstsq(differences_backwards.T, speeds.T, rcond=1e-12)[0].T
        missed = np.abs(positions @ differences_backwards - speeds)
        if (missed <= 1e-8 * np.abs(speeds) + 1e-10 * np.max(np.abs(speeds))).all():
            yield np.asarray(positions, dtype=np.float64), speeds, False
    for q in _half(_rows_moved(proper, step_map.Gamma, moved=False), n):
        yield q, q @ (step_map.A - one) / h, True


def _of_free_positions(step_map: _Map, proper: FloatArray, *, positions_first: bool) -> OneStepMethod | None:
    """Return the method where positions act on nothing: the angle of a motor beside its speed and its current.

    The other states are then updated without them, so that the direction of positions is what Phi leaves as it is.
    """
    moved_by = step_map.Gamma if positions_first else step_map.back @ step_map.Gamma
    positions = _rows_moved(proper, moved_by, moved=False)
    _, sizes, rows = np.linalg.svd(step_map.A - np.eye(step_map.order))
    free = rows[sizes <= AT_ONE**2 * max(1.0, float(sizes[0]))].T
    count = free.shape[1]
    q = choose_independent(positions, count) if count else None
    if q is None or choose_independent(positions, count + 1) is not None:
        return None
    shown = q @ free
    if np.linalg.svd(shown, compute_uv=False)[-1] <= RANK_MEASURED:
        return None
    on_positions = np.asarray(free @ np.linalg.solve(shown, q))
    first = on_positions if positions_first else np.eye(step_map.order) - on_positions
    return semi_implicit_euler(first, positions_first=positions_first)


def _of_modes(step_map: _Map, *, positions_first: bool) -> OneStepMethod | None:
    """Return the method where each oscillation, and a body that moves freely, has a position of its own.

    Where fewer positions are shown than there are, many plants are stepped alike. This one is damped mode by mode. Real
    modes other than that of a free body have no position.
    """
    bases = _bases_of_modes(step_map.A)
    X = np.hstack([basis for basis, _ in bases])
    if X.shape[0] != X.shape[1] or not _is_regular(_normalize_rows(X.T)):
        return None
    L = np.asarray(np.linalg.inv(X))
    moved_by = L @ (step_map.Gamma if positions_first else step_map.back @ step_map.Gamma)
    one = np.eye(step_map.order)
    difference = step_map.A - one if positions_first else one - step_map.back
    positions: list[FloatArray] = []
    others: list[FloatArray] = []
    begin = 0
    for basis, has_position in bases:
        part = slice(begin, begin + basis.shape[1])
        begin = part.stop
        if not has_position:
            others += list(L[part])
            continue
        U, sizes, _ = np.linalg.svd(moved_by[part])
        if not sizes[0] or (len(sizes) > 1 and sizes[1] > ALIKE * sizes[0]):
            return None
        q = U[:, 1] @ L[part]
        positions.append(q)
        others.append(q @ difference / step_map.step)
    S = _normalize_rows(np.array([*positions, *others]))
    if not positions or not _is_regular(S):
        return None
    return _method(S, slice(0, len(positions)), positions_first=positions_first)


def _bases_of_modes(A: FloatArray) -> list[tuple[FloatArray, bool]]:
    """Return real bases of the modes, and whether each has a position."""
    values, vectors = np.linalg.eig(A)
    at_one = np.abs(values - 1.0) <= AT_ONE
    bases: list[tuple[FloatArray, bool]] = []
    if at_one.sum() == 2:  # eigenvectors of a double eigenvalue are lost in rounding, their plane is not
        off = A - np.eye(len(A))
        plane = np.linalg.svd(off @ off)[2][-2:].T
        bases.append((np.asarray(plane, dtype=np.float64), True))
    else:
        at_one[:] = False
    for value, vector in zip(values[~at_one], vectors[:, ~at_one].T, strict=True):
        if value.imag > 0:
            bases.append((_real_plane(vector), True))
        elif not value.imag:
            bases.append((np.asarray(vector.real[:, None]), False))
    return bases


def _real_plane(vector: NDArray[np.complex128]) -> FloatArray:
    return np.column_stack((vector.real, vector.imag))


def _in_turn(S: FloatArray) -> list[OneStepMethod]:
    """Return the methods that update velocities one after another, or body after body; rows of S: positions, speeds.

    In all of them positions are the sums of new velocities, so that only the plant tells them from the method that
    updates all velocities at once.
    """
    count = len(S) // 2
    if not 2 <= count <= MOST_IN_TURN:
        return []
    units = np.eye(len(S))
    single: list[FloatArray] = [np.asarray(np.linalg.solve(S, unit[:, None] * S)) for unit in units]
    positions, speeds = single[:count], single[count:]
    methods = []
    for turn in (list(range(count)), list(range(count))[::-1]):
        apart = [*(speeds[k] for k in turn), np.asarray(sum(positions))]
        methods.append(sequential_euler(apart, "the semi-implicit Euler method (one velocity after another)"))
        bodies = [group for k in turn for group in (speeds[k], positions[k])]
        methods.append(sequential_euler(bodies, "the semi-implicit Euler method (body after body)"))
    return methods


def _rows_moved(rows: FloatArray, Gamma: FloatArray, *, moved: bool) -> FloatArray:
    """Return the rows that some column moves, beside the moduli of the terms; or else those that none does."""
    terms = np.abs(rows) @ np.abs(Gamma)
    reached = (np.abs(rows @ Gamma) > RELATION_MISSED * np.where(terms > 0, terms, 1.0)).any(axis=1)
    chosen: FloatArray = rows[reached == moved]
    return chosen


def _half(rows: FloatArray, order: int) -> list[FloatArray]:
    """Return the independent rows where there are just as many as half of ``order``."""
    count = order // 2
    chosen = choose_independent(rows, count)
    more = choose_independent(rows, count + 1) if len(rows) > count else None
    return [] if chosen is None or more is not None else [chosen]
