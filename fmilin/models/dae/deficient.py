"""A Jacobian that is singular in numbers although its structure is not.

Where rows S of the last stage depend on each other, lambda' dS/dw = 0, the derivative lambda' S' is a new equation: the
rows S' stand for it, with as many new unknowns for the w' in them as they determine; the others drop out of the
combination and are zero. Where that brings nothing at a consistent point the rows say the same: one is left out, and an
unknown that nothing determines stays at its start value if the motion does not depend on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy import linalg

from fmilin.errors import NumericalError, quote_first
from fmilin.models.dae.dae_rows import SINGULAR_POINT_ERROR, ConsistentPoint, ConsistentPoints, Rows, Unknown
from fmilin.models.dae.semi_explicit import (
    DifferentiatedRow,
    JetDerivatives,
    SemiExplicit,
    derivative_name,
    stack_column,
)
from fmilin.signals import FloatArray

DISTANCES = (1e-3, 1e-1, 0.7)  # sizes of the variables, near a point at which derivatives are not defined
ROUNDS = 8  # one for each index above that of the structure
# After so many rounds without gain a graph of so many instructions is not differentiated again: it grows by 2.4 in
# each, and what is redundant stays so.
MAX_ROUNDS, LARGE_SIZE = 4, 80_000
DISPLACEMENT_SIZE = 1e-2  # sizes of the states: how far from the start the rank is examined


@dataclass(frozen=True)
class Completion:
    """Rows that determine all unknowns."""

    rows: list[DifferentiatedRow]
    unknowns: list[Unknown]
    solved: list[DifferentiatedRow]
    notes: tuple[str, ...] = ()


def complete_system(
    form: SemiExplicit, motion: JetDerivatives, rows: list[DifferentiatedRow], unknowns: list[Unknown]
) -> Completion:
    """Return rows and unknowns of full rank; NumericalError, with names, where the motion is not determined."""
    best: tuple[int, list[DifferentiatedRow], list[Unknown]] | None = None
    differentiated_rows: set[int] = set()  # rows that were differentiated here
    for k in range(ROUNDS):
        J, at, count = _jacobian(form, motion, rows, unknowns)
        missing = len(unknowns) - _rank(J, at.zero)
        if missing == 0:
            return Completion(rows, unknowns, select_independent_rows(J, rows, at.zero))
        if best is None or missing < best[0]:
            best = missing, rows, unknowns
        elif k >= MAX_ROUNDS and count > LARGE_SIZE:
            break
        rows, unknowns = _differentiate_dependent_rows(motion, rows, unknowns, J, differentiated_rows, at.zero)
    assert best is not None  # noqa: S101 - there is a first round
    return _redundant(form, motion, *best[1:])


def select_independent_rows(J: FloatArray, rows: Sequence[DifferentiatedRow], zero: float) -> list[DifferentiatedRow]:
    """Return as many independent rows of J, scaled, as it has columns, those of low order first."""
    n = J.shape[1]
    Q: FloatArray = np.zeros((0, n))
    chosen: list[int] = []
    for order in sorted({row.order for row in rows}):
        these = [k for k, row in enumerate(rows) if row.order == order]
        rest = J[these] - (J[these] @ Q.T) @ Q
        chosen += [these[p] for p in _independent(rest.T, zero)]
        Q = np.asarray(linalg.qr(J[chosen].T, mode="economic")[0].T) if chosen else Q
    return [rows[k] for k in sorted(chosen)]


def _jacobian(
    form: SemiExplicit, motion: JetDerivatives, rows: Sequence[DifferentiatedRow], unknowns: Sequence[Unknown]
) -> tuple[FloatArray, ConsistentPoint, int]:
    """Return d rows / d unknowns, scaled, at a consistent point near the start or at it, and how large the graph is."""
    consistent = ConsistentPoints(form, motion, rows, unknowns)
    numbers = consistent.numbers
    points = [consistent.find(moved) for moved in (DISPLACEMENT_SIZE, 0.0)]
    best = min(
        (p for p in points if p is not None),
        key=lambda p: p.zero,
        default=ConsistentPoint(numbers.x, numbers.w, SINGULAR_POINT_ERROR),
    )
    J = _finite_jacobian(numbers, best, [row.name for row in rows], [motion.name(*key) for key in unknowns])
    return _scale_rows(J * numbers.sizes[1]), best, numbers.count


def _finite_jacobian(
    numbers: Rows, at: ConsistentPoint, equations: Sequence[str], unknowns: Sequence[str]
) -> FloatArray:
    """Return dr/dw at a point, or near it if it is not defined there, as that of sqrt at 0."""
    rng = np.random.default_rng(18)
    J: FloatArray = np.zeros((0, 0))
    for distance in (0.0, *DISTANCES):
        x, w = (v + distance * size * rng.uniform(0.5, 1.0, len(v)) for v, size in
                zip((at.x, at.w), numbers.sizes, strict=True))  # fmt: skip
        slopes = numbers.matrix_without_rounding(x, w)
        J = slopes if isinstance(slopes, np.ndarray) else slopes.toarray()
        if np.isfinite(J).all():
            return J
    i, j = np.argwhere(~np.isfinite(J))[0].tolist()
    raise NumericalError(
        f"The derivative of '{equations[i]}' by '{unknowns[j]}' in '{numbers.name}' is infinite or not a number at "
        "and near the start values. Give start values at which it is defined (start=...), including algebraic "
        "variables."
    )


def _scale_rows(J: FloatArray) -> FloatArray:
    sizes = np.linalg.norm(J, axis=1, keepdims=True)
    return J / np.where(sizes > 0, sizes, 1.0)


def _rank(J: FloatArray, zero: float) -> int:
    return int(np.count_nonzero(linalg.svdvals(J) > zero)) if J.size else 0


def _differentiate_dependent_rows(
    motion: JetDerivatives,
    rows: list[DifferentiatedRow],
    unknowns: list[Unknown],
    J: FloatArray,
    differentiated_rows: set[int],
    zero: float,
) -> tuple[list[DifferentiatedRow], list[Unknown]]:
    """Return the system with the derivatives of rows that depend on each other; of those seen before what is needed."""
    has_rate = {(row.i, row.order - 1) for row in rows if row.is_true}
    last = [k for k, row in enumerate(rows) if not row.is_true or (row.i, row.order) not in has_rate]
    left_null_space = linalg.null_space(J.T, rcond=zero)
    new = [k for k in last if k not in differentiated_rows]
    left_null_space = left_null_space @ linalg.orth(
        left_null_space[new].T, rcond=zero
    )  # what says no more of rows that were seen is left out
    these = [k for k in last if np.linalg.norm(left_null_space[k]) > zero]
    # All of these have been differentiated: another round would bring nothing new.
    if not set(these) - differentiated_rows:
        return rows, unknowns
    values = motion.along(stack_column([rows[k].value for k in these]))
    met = [key for key in motion.list_jets(values) if key not in set(unknowns)]
    block = J[np.ix_(these, [unknowns.index((j, s - 1)) for j, s in met])]
    old, fresh = ([i for i, k in enumerate(these) if (k in differentiated_rows) == before] for before in (True, False))
    taken = sorted([*(old[p] for p in _independent(block[old].T, zero)), *fresh])
    stand_ins = {met[p]: motion.substitute_derivative(*met[p]) for p in _independent(block[taken], zero)}
    nothing = ca.SX(0)
    values = ca.substitute(
        values,
        stack_column([motion.jet(*key) for key in met]),
        stack_column([motion.jet(*stand_ins[key]) if key in stand_ins else nothing for key in met]),
    )
    more = [DifferentiatedRow(derivative_name(rows[k].name, 1), rows[k].i, rows[k].order + 1, values[i], is_true=False)
            for i, k in enumerate(these) if i in taken]  # fmt: skip
    differentiated_rows |= set(these)
    return [*rows, *more], [*unknowns, *(stand_ins[key] for key in met if key in stand_ins)]


def _independent(A: FloatArray, zero: float) -> list[int]:
    """Return columns that span the same as all of a matrix; the other diagonal entries of R are ``zero``."""
    if not A.size:
        return []
    _, R, pivots = linalg.qr(A, mode="economic", pivoting=True)
    return [int(p) for p in pivots[: np.count_nonzero(np.abs(np.diag(R)) > zero)]]


def _redundant(
    form: SemiExplicit, motion: JetDerivatives, rows: list[DifferentiatedRow], unknowns: list[Unknown]
) -> Completion:
    """Return the system with unknowns that nothing determines held; reject where the motion depends on them."""
    J, at, _ = _jacobian(form, motion, rows, unknowns)
    free = linalg.null_space(J, rcond=at.zero)
    open_names = [motion.name(*unknowns[k]) for k in np.flatnonzero(np.linalg.norm(free, axis=1) > at.zero)]
    left_null_space = linalg.null_space(J.T, rcond=at.zero)
    numbers = {row.i for k, row in enumerate(rows) if np.linalg.norm(left_null_space[k]) > at.zero and row.order}
    # Dependent rows were differentiated in turn; where that gained nothing any of the rows may be meant.
    doubled = [form.equations[i] for i in sorted(numbers or {row.i for row in rows})]
    f = Rows(form, motion, form.f.elements(), unknowns)
    slopes = f.gradients(at.x, at.w)[1] * f.sizes[1]
    if (np.abs(slopes @ free) > at.zero * np.linalg.norm(slopes, axis=1, keepdims=True)).any():
        raise NumericalError(
            f"The motion of '{form.graph.name}' is not determined: {quote_first(open_names)} may have any value, "
            f"because the equations {quote_first(doubled)} depend on each other. Replace one of these, or declare the "
            "missing quantity as an input."
        )
    fixed_columns = [int(k) for k in linalg.qr(free.T, mode="r", pivoting=True)[1][: free.shape[1]]]
    more = [
        DifferentiatedRow(
            f"{motion.name(*unknowns[k])} = start value",
            -1 - k,
            0,
            motion.jet(*unknowns[k]) - motion.guess(*unknowns[k]),
        )
        for k in fixed_columns
    ]
    unit = np.eye(len(unknowns))[fixed_columns]
    note = (
        f"Redundant equations: {quote_first(doubled)} depend on each other, and {free.shape[1]} of them "
        f"{'is' if free.shape[1] == 1 else 'are'} left out; {quote_first(open_names)} are not determined "
        "individually. The motion does not depend on them."
    )
    solved = select_independent_rows(np.vstack((unit, J)), [*more, *rows], at.zero)
    return Completion(_enough(form, motion, rows, unknowns, solved, at), unknowns, solved, (note,))


def _enough(
    form: SemiExplicit,
    motion: JetDerivatives,
    rows: list[DifferentiatedRow],
    unknowns: list[Unknown],
    solved: list[DifferentiatedRow],
    at: ConsistentPoint,
) -> list[DifferentiatedRow]:
    """Return the rows without equations that others imply: their last derivatives are not among those solved."""
    numbers = Rows(form, motion, [row.value for row in rows], unknowns)
    J = _scale_rows(np.hstack(numbers.gradients(at.x, at.w)) * np.concatenate(numbers.sizes))
    last = {(row.i, max(r.order for r in rows if r.i == row.i)) for row in rows}
    taken, rank = {id(row) for row in solved}, _rank(J, at.zero)
    remaining = list(range(len(rows)))
    for row in rows:
        if (row.i, row.order) in last and id(row) not in taken:
            fewer = [k for k in remaining if rows[k].i != row.i or id(rows[k]) in taken]
            remaining = fewer if _rank(J[fewer], at.zero) == rank else remaining
    return [rows[k] for k in remaining]
