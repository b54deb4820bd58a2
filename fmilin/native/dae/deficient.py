"""Equations as numbers: consistent values at the start; a Jacobian singular in numbers though its structure is not.

Where rows S of the last stage depend on each other, lambda' dS/dw = 0, the derivative lambda' S' is a new equation: the
rows S' stand for it, with as many new unknowns for the w' in them as they determine; the others drop out of the
combination and are zero. Where that brings nothing at a consistent point the rows say the same: one is left out, and an
unknown that nothing determines stays at its start value if the motion does not depend on it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy import linalg

from fmilin.ground import FloatArray, NumericalError
from fmilin.native.dae.equations import listed
from fmilin.native.dae.semi_explicit import Motion, Row, SemiExplicit, column_of, derivative_name
from fmilin.numerics.codegen.rounding import matrix_without_rounding
from fmilin.numerics.factors import LARGEST_DENSE, regular_factors

SX = Any
Unknown = tuple[int, int]  # which of w, and how often differentiated

ITERATIONS = 100
CONVERGED = 1e-13  # the last step, in sizes of the unknowns
STALLED = 1e-8
SHORTEST = 1e-6  # of a step
FREE = 1e3  # how much easier unknowns move than states
LONGEST = 0.5  # sizes of the states in a step
DEPENDENT = 1e-10  # of the largest singular value of scaled rows
NEAR = 1e-3  # sizes: below this, steps shrink by more than QUADRATIC where nothing is redundant
QUADRATIC = 0.2
EXACT, SLOW = 1e-9, 1e-5
ASIDE = 0.9  # sizes of the unknowns, from a guess without a slope


def reciprocal_condition(J: Any) -> float:
    """Return that of a square matrix, sparse or not, scaled; zero where it is singular."""
    try:
        return float(np.min(regular_factors(J, "the equations").rcond, initial=1.0))
    except NumericalError:
        return 0.0


def numbers_of(J: Any) -> Any:
    """Return a matrix of CasADi's numbers, sparse where it is large."""
    if J.shape[0] <= LARGEST_DENSE:
        return J.full()
    from scipy.sparse import csc_array

    pattern = J.sparsity()
    return csc_array((np.array(J.nonzeros()), np.array(pattern.row()), np.array(pattern.colind())), shape=J.shape)


@dataclass(frozen=True)
class Point:
    """States and unknowns at which all rows vanish."""

    x: FloatArray
    w: FloatArray
    zero: float  # up to which a singular value of scaled rows may be zero: it is not exact where rows are redundant


def consistent_point(
    form: SemiExplicit, motion: Motion, rows: Sequence[Row], unknowns: Sequence[Unknown], *, moved: float = 0.0
) -> Point | None:
    """Return a point near the start, or about ``moved`` sizes beside it along the manifold; None without one."""
    every = Rows(form, motion, [row.value for row in rows], unknowns)
    has_rate = {(row.i, row.order - 1) for row in rows}
    lower = [row.value for row in rows if row.is_true and (row.i, row.order) in has_rate]
    x, w, slow = every.x, every.w, False
    if moved:
        if (base := consistent_point(form, motion, rows, unknowns)) is None:
            return None
        x, w = every.displaced(base, moved)
    if lower:
        if (solution := Rows(form, motion, lower, unknowns).consistent(x, w)) is not None:
            x, w, slow = solution
        if (solution := every.nearest(x, w, np.zeros(len(x)))) is not None:
            return Point(*solution[:2], SLOW if slow or solution[2] else EXACT)
    solution = every.consistent(x, w)
    return None if solution is None else Point(*solution[:2], SLOW if slow or solution[2] else EXACT)


class Rows:
    """Rows r(x, w) with w the unknowns, at the start values of time, inputs and parameters."""

    def __init__(self, form: SemiExplicit, motion: Motion, rows: Sequence[SX], unknowns: Sequence[Unknown]) -> None:
        graph, (u, inputs) = form.graph, motion.inputs()
        w = column_of([motion.jet(j, s) for j, s in unknowns])
        column = column_of(rows)
        absent = [key for key in motion.jets_in(column) if key not in set(unknowns)]
        if absent:
            column = ca.substitute(column, column_of([motion.jet(*k) for k in absent]), ca.SX.zeros(len(absent)))
        results = [column, *(ca.sparsify(ca.jacobian(column, s)) for s in (graph.x, w, u))]
        arguments = [graph.x, w, graph.time, u, graph.p]
        self._function: Any = ca.Function("rows", arguments, results)
        self.count = int(self._function.n_instructions())
        self._by_w: Any = ca.Function("slopes", arguments, [results[2]])
        self._given = 0.0, inputs.starts, graph.values
        self.name = graph.name
        self.x = graph.states.starts
        self.w = np.array([motion.guess(j, s) for j, s in unknowns])
        self.sizes = graph.states.scales(self.x), np.array([motion.size(j) for j, _ in unknowns])
        self.fixed = np.isin(graph.states.names, list(graph.fixed))

    def values(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return r."""
        return np.asarray(self._function(x, w, *self._given)[0].full().ravel(), dtype=np.float64)

    def gradients(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return dr/dx, dr/dw and dr/du."""
        _, by_x, by_w, by_u = self._function(x, w, *self._given)
        return by_x.full(), by_w.full(), by_u.full()

    def matrix(self, x: FloatArray, w: FloatArray) -> Any:
        """Return dr/dw, sparse where it is large."""
        return numbers_of(self._function(x, w, *self._given)[2])

    def matrix_without_rounding(self, x: FloatArray, w: FloatArray) -> Any:
        """Return dr/dw with zeros for entries that are rounding of their terms: no row of them may be scaled to 1."""
        if self._function.size_out(2)[0] > LARGEST_DENSE:
            return self.matrix(x, w)
        return matrix_without_rounding(self._by_w, x, w, *self._given)

    def displaced(self, base: Point, moved: float) -> tuple[FloatArray, FloatArray]:
        """Return what is ``moved`` in a random direction along which no row changes to first order."""
        n, sizes = len(base.x), np.concatenate(self.sizes)
        J = np.hstack(self.gradients(base.x, base.w)[:2]) * sizes
        norms = np.linalg.norm(J, axis=1, keepdims=True)
        tangent = linalg.null_space(J / np.where(norms > 0, norms, 1.0), rcond=base.zero)
        step = tangent @ (tangent.T @ np.random.default_rng(7).uniform(-1, 1, len(sizes)))
        longest = np.abs(step).max(initial=0.0)
        step *= sizes * (moved / longest if longest > 0 else 0.0)
        return base.x + step[:n], base.w + step[n:]

    def _size(self, dw: FloatArray, w: FloatArray) -> float:
        return float(np.max(np.abs(dw) / np.maximum(np.abs(w), self.sizes[1]), initial=0.0))

    def consistent(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray, bool] | None:
        """Return :meth:`nearest` with fixed states as they are, where that is possible."""
        ways = [np.where(self.fixed, 0.0, 1.0), np.ones(len(x))] if self.fixed.any() else [np.ones(len(x))]
        return next((solution for free in ways if (solution := self.nearest(x, w, free)) is not None), None)

    def nearest(self, x: FloatArray, w: FloatArray, free: FloatArray) -> tuple[FloatArray, FloatArray, bool] | None:
        """Return near (x, w) where rows vanish, x moved as ``free`` (N,) says, and whether slowly; None without."""
        n, sizes = len(x), np.concatenate((self.sizes[0] * free, FREE * self.sizes[1]))
        previous, was_slow = np.inf, False
        for _ in range(ITERATIONS):
            r, (by_x, by_w, _) = self.values(x, w), self.gradients(x, w)
            J = np.hstack((by_x, by_w)) * sizes
            if not (np.isfinite(J).all() and np.isfinite(r).all()):
                return None
            norms = np.linalg.norm(J, axis=1)
            norms = np.where(norms > 0, norms, 1.0)
            step = sizes * np.linalg.lstsq(J / norms[:, None], -r / norms, rcond=DEPENDENT)[0]
            size = float(np.max(np.abs(step[:n]) / self.sizes[0], initial=0.0))
            step *= min(1.0, LONGEST / size) if size > 0 else 1.0
            x, w = x + step[:n], w + step[n:]
            last = max(size, float(np.max(np.abs(step[n:]) / np.maximum(np.abs(w), self.sizes[1]), initial=0.0)))
            if last <= CONVERGED or previous / 2 < last <= STALLED:
                left = np.abs(self.values(x, w)) / norms
                slow = QUADRATIC * previous < last and not last <= CONVERGED
                return (x, w, slow or was_slow) if np.max(left, initial=0.0) <= STALLED else None
            was_slow = QUADRATIC * previous < last <= NEAR
            previous = last
        return None

    def solved_aside(self, equations: Sequence[str]) -> FloatArray | None:
        """Return :meth:`solved` from both sides of a guess where slopes vanish, as those of q |q| do at q = 0."""
        J, sizes, solutions = self.matrix(self.x, self.w), self.sizes[1], list[FloatArray]()
        if not (isinstance(J, np.ndarray) and J.size and np.isfinite(J).all()):
            return None
        missing = linalg.null_space(J * sizes, rcond=DEPENDENT).sum(axis=1)
        for side in (ASIDE, -ASIDE) if missing.any() else ():
            with suppress(NumericalError):
                solutions.append(self.solved(equations, self.w + side * sizes * missing))
        if len(solutions) > 1 and self._size(solutions[1] - solutions[0], solutions[0]) > STALLED:
            raise NumericalError(
                f"The equations of '{self.name}' have two solutions near the start values of algebraic variables, "
                "where no slope tells which is meant: give start values nearer to it (start=...)."
            )
        return solutions[0] if solutions else None

    def solved(self, equations: Sequence[str], w: FloatArray | None = None) -> FloatArray:
        """Return the unknowns at the start values of the states, from as many rows; NumericalError without a solution.

        Newton's iteration, damped so that simplified steps shrink: it stays near the path that leads from the guess
        (Deuflhard, Newton Methods for Nonlinear Problems, 2011, section 3.3).
        """
        x, w = self.x, self.w if w is None else w
        r = self.values(x, w)
        for _ in range(ITERATIONS):
            try:
                factors = regular_factors(self.matrix(x, w), "the equations", estimate=False)
            except NumericalError:
                break
            dw, part = -factors.solve(r), 1.0
            step = self._size(dw, w)
            if not np.isfinite(step):
                break
            while part >= SHORTEST:
                nearer = self.values(x, w + part * dw)
                simplified = self._size(factors.solve(nearer), w)
                if step <= STALLED or simplified <= (1 - part / 2) * step:
                    break
                part /= 2
            else:
                break
            w, r = w + part * dw, nearer
            if step <= STALLED:
                return w
        worst = int(np.argmax(np.nan_to_num(np.abs(r), nan=np.inf))) if len(r) else 0
        raise NumericalError(
            f"No values of the algebraic variables of '{self.name}' were found at the start: '{equations[worst]}' is "
            f"left with a residual of {abs(r[worst]):.3g}. Give start values near the solution, of states and of "
            "algebraic variables (start=...), or check that there is one."
        )


DISTANCES = (1e-3, 1e-1, 0.7)  # sizes of the variables, beside a point at which slopes are not defined
ROUNDS = 8  # one for each index above that of the structure
# After so many rounds without gain a graph of so many instructions is not differentiated again: it grows by 2.4 in
# each, and what is redundant stays so.
FEW_ROUNDS, LARGE = 4, 80_000
DISPLACEMENT = 1e-2  # sizes of the states: how far from the start the rank is looked at


@dataclass(frozen=True)
class Completion:
    """Rows that determine all unknowns."""

    rows: list[Row]
    unknowns: list[Unknown]
    solved: list[Row]
    notes: tuple[str, ...] = ()


def completed(form: SemiExplicit, motion: Motion, rows: list[Row], unknowns: list[Unknown]) -> Completion:
    """Return rows and unknowns of full rank; NumericalError, with names, where the motion is not determined."""
    best: tuple[int, list[Row], list[Unknown]] | None = None
    seen: set[int] = set()  # rows that were differentiated here
    for k in range(ROUNDS):
        J, at, count = _jacobian(form, motion, rows, unknowns)
        missing = len(unknowns) - _rank(J, at.zero)
        if missing == 0:
            return Completion(rows, unknowns, selected(J, rows, at.zero))
        if best is None or missing < best[0]:
            best = missing, rows, unknowns
        elif k >= FEW_ROUNDS and count > LARGE:
            break
        rows, unknowns = _differentiated(motion, rows, unknowns, J, seen, at.zero)
    assert best is not None  # noqa: S101 - there is a first round
    return _redundant(form, motion, *best[1:])


def selected(J: FloatArray, rows: Sequence[Row], zero: float) -> list[Row]:
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
    form: SemiExplicit, motion: Motion, rows: Sequence[Row], unknowns: Sequence[Unknown]
) -> tuple[FloatArray, Point, int]:
    """Return d rows / d unknowns, scaled, at a consistent point near the start or at it, and how large the graph is."""
    numbers = Rows(form, motion, [row.value for row in rows], unknowns)
    points = [consistent_point(form, motion, rows, unknowns, moved=moved) for moved in (DISPLACEMENT, 0.0)]
    best = min((p for p in points if p is not None), key=lambda p: p.zero, default=Point(numbers.x, numbers.w, SLOW))
    J = _finite_slopes(numbers, best, [row.name for row in rows], [motion.name(*key) for key in unknowns])
    return _scaled(J * numbers.sizes[1]), best, numbers.count


def _finite_slopes(numbers: Rows, at: Point, equations: Sequence[str], unknowns: Sequence[str]) -> FloatArray:
    """Return dr/dw at a point, or beside it where it is not defined there, as that of sqrt at 0."""
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
        f"The slope of '{equations[i]}' by '{unknowns[j]}' in '{numbers.name}' is infinite or not a number at the "
        "start values and beside them. Give start values at which it is defined (start=...), of algebraic variables, "
        "too."
    )


def _scaled(J: FloatArray) -> FloatArray:
    sizes = np.linalg.norm(J, axis=1, keepdims=True)
    return J / np.where(sizes > 0, sizes, 1.0)


def _rank(J: FloatArray, zero: float) -> int:
    return int(np.count_nonzero(linalg.svdvals(J) > zero)) if J.size else 0


def _differentiated(
    motion: Motion, rows: list[Row], unknowns: list[Unknown], J: FloatArray, seen: set[int], zero: float
) -> tuple[list[Row], list[Unknown]]:
    """Return the system with the derivatives of rows that depend on each other; of those seen before what is needed."""
    has_rate = {(row.i, row.order - 1) for row in rows if row.is_true}
    last = [k for k, row in enumerate(rows) if not row.is_true or (row.i, row.order) not in has_rate]
    left = linalg.null_space(J.T, rcond=zero)
    new = [k for k in last if k not in seen]
    left = left @ linalg.orth(left[new].T, rcond=zero)  # what says no more of rows that were seen is left out
    these = [k for k in last if np.linalg.norm(left[k]) > zero]
    if not set(these) - seen:
        return rows, unknowns
    values = motion.along(column_of([rows[k].value for k in these]))
    met = [key for key in motion.jets_in(values) if key not in set(unknowns)]
    block = J[np.ix_(these, [unknowns.index((j, s - 1)) for j, s in met])]
    old, fresh = ([i for i, k in enumerate(these) if (k in seen) == before] for before in (True, False))
    taken = sorted([*(old[p] for p in _independent(block[old].T, zero)), *fresh])
    stand_ins = {met[p]: motion.substitute_for(*met[p]) for p in _independent(block[taken], zero)}
    nothing = ca.SX(0)
    values = ca.substitute(
        values,
        column_of([motion.jet(*key) for key in met]),
        column_of([motion.jet(*stand_ins[key]) if key in stand_ins else nothing for key in met]),
    )
    more = [Row(derivative_name(rows[k].name, 1), rows[k].i, rows[k].order + 1, values[i], is_true=False)
            for i, k in enumerate(these) if i in taken]  # fmt: skip
    seen |= set(these)
    return [*rows, *more], [*unknowns, *(stand_ins[key] for key in met if key in stand_ins)]


def _independent(A: FloatArray, zero: float) -> list[int]:
    """Return columns that span the same as all of a matrix, whose other diagonal entries of R are ``zero``."""
    if not A.size:
        return []
    _, R, pivots = linalg.qr(A, mode="economic", pivoting=True)
    return [int(p) for p in pivots[: np.count_nonzero(np.abs(np.diag(R)) > zero)]]


def _redundant(form: SemiExplicit, motion: Motion, rows: list[Row], unknowns: list[Unknown]) -> Completion:
    """Return the system with unknowns that nothing determines held; refuse where the motion depends on them."""
    J, at, _ = _jacobian(form, motion, rows, unknowns)
    free = linalg.null_space(J, rcond=at.zero)
    open_names = [motion.name(*unknowns[k]) for k in np.flatnonzero(np.linalg.norm(free, axis=1) > at.zero)]
    left = linalg.null_space(J.T, rcond=at.zero)
    numbers = {row.i for k, row in enumerate(rows) if np.linalg.norm(left[k]) > at.zero and row.order}
    doubled = [form.equations[i] for i in sorted(numbers or {row.i for row in rows})]
    f = Rows(form, motion, form.f.elements(), unknowns)
    slopes = f.gradients(at.x, at.w)[1] * f.sizes[1]
    if (np.abs(slopes @ free) > at.zero * np.linalg.norm(slopes, axis=1, keepdims=True)).any():
        raise NumericalError(
            f"The motion of '{form.graph.name}' is not determined: {listed(open_names)} may be anything, as the "
            f"equations {listed(doubled)} depend on each other. Replace one of these, or take what is missing as an "
            "input."
        )
    held = [int(k) for k in linalg.qr(free.T, mode="r", pivoting=True)[1][: free.shape[1]]]
    more = [
        Row(
            f"{motion.name(*unknowns[k])} = start value",
            -1 - k,
            0,
            motion.jet(*unknowns[k]) - motion.guess(*unknowns[k]),
        )
        for k in held
    ]
    unit = np.eye(len(unknowns))[held]
    note = (
        f"Redundant equations: {listed(doubled)} depend on each other, and {free.shape[1]} of them "
        f"{'is' if free.shape[1] == 1 else 'are'} left out; {listed(open_names)} are not determined each for itself. "
        "The motion does not depend on them."
    )
    solved = selected(np.vstack((unit, J)), [*more, *rows], at.zero)
    return Completion(_enough(form, motion, rows, unknowns, solved, at), unknowns, solved, (note,))


def _enough(
    form: SemiExplicit, motion: Motion, rows: list[Row], unknowns: list[Unknown], solved: list[Row], at: Point
) -> list[Row]:
    """Return the rows without equations that others imply: their last derivatives are not among those solved."""
    numbers = Rows(form, motion, [row.value for row in rows], unknowns)
    J = _scaled(np.hstack(numbers.gradients(at.x, at.w)[:2]) * np.concatenate(numbers.sizes))
    last = {(row.i, max(r.order for r in rows if r.i == row.i)) for row in rows}
    taken, rank = {id(row) for row in solved}, _rank(J, at.zero)
    left = list(range(len(rows)))
    for row in rows:
        if (row.i, row.order) in last and id(row) not in taken:
            fewer = [k for k in left if rows[k].i != row.i or id(rows[k]) in taken]
            left = fewer if _rank(J[fewer], at.zero) == rank else left
    return [rows[k] for k in left]
