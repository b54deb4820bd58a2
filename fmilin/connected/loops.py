"""Algebraic loops: v = answer(v) by Newton's method, and what is said where there is no solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import matrix_balance

from fmilin.fmi.read.elements import shortened
from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import LOOP_CLOSED, LOOP_SINGULAR

MOST_ITERATIONS = 60
SLOW = 0.05  # A step that leaves more than this part of the gap asks for new slopes
SHORTEST = 2.0**-12
_EPS = float(np.finfo(float).eps)
Function = Callable[[FloatArray], FloatArray]


class LoopSolver:
    """Newton's method for one loop; the slopes of the last point serve as long as they close the gap quickly."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._J: FloatArray | None = None

    def solve(self, v: FloatArray, answer: Function, slopes: Function) -> FloatArray:
        """Return the solution of v = answer(v) by Newton's method from ``v`` (k,); ``slopes`` returns K D (k, k)."""
        returned = answer(v)
        gap = returned - v
        fresh = self._J is None
        if fresh:
            self._J = np.eye(len(v)) - slopes(v)
        for _ in range(MOST_ITERATIONS):
            if not np.isfinite(gap).all():
                break
            if (np.abs(gap) <= 4 * _EPS * (np.abs(v) + np.abs(returned))).all():
                return v
            assert self._J is not None  # noqa: S101 - set above
            step = _solved(self._J, gap)
            length, moved = 1.0, None
            while length >= SHORTEST:
                trial = v + length * step
                trial_returned = self._tried(answer, trial)
                trial_gap = trial_returned - trial
                if _size(trial_gap, trial) < _size(gap, v):
                    moved = (trial, trial_returned, trial_gap)
                    break
                if not fresh:
                    break
                length /= 2
            if moved is None:
                if fresh:
                    break
                self._J, fresh = np.eye(len(v)) - slopes(v), True
                continue
            slow = _size(moved[2], moved[0]) > SLOW * _size(gap, v)
            v, returned, gap = moved
            fresh = False
            if slow:
                self._J, fresh = np.eye(len(v)) - slopes(v), True
        if np.isfinite(gap).all() and (np.abs(gap) <= LOOP_CLOSED * np.maximum(1.0, np.abs(v))).all():
            answer(v)
            return v
        self._J = None
        require_solvable(slopes(v), self._names)
        raise NumericalError(
            f"The algebraic loop through {shortened(self._names, 6)} has no solution near the last one: Newton's "
            f"method stops where its inputs still differ by {np.max(np.abs(gap)):.3g} from what feeds them. Start "
            "elsewhere, or break the loop by a state (a filter, a delay).",
            variable=self._names[0],
        )

    @staticmethod
    def _tried(answer: Function, v: FloatArray) -> FloatArray:
        try:
            return answer(v)
        except NumericalError:  # a step too far: a shorter one may do
            return np.full(len(v), np.nan)


def _size(gap: FloatArray, v: FloatArray) -> float:
    size = float(np.max(np.abs(gap) / np.maximum(1.0, np.abs(v)), initial=0.0))
    return size if np.isfinite(size) else np.inf


def _solved(J: FloatArray, gap: FloatArray) -> FloatArray:
    if not np.isfinite(J).all():
        return gap
    try:
        return np.asarray(np.linalg.solve(J, gap), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(J, gap)[0], dtype=np.float64)


def require_solvable(KD: FloatArray, names: Sequence[str]) -> None:
    """Refuse a loop with det(I - K D) = 0."""
    if not np.isfinite(KD).all():
        return
    balanced = matrix_balance(KD, permute=False)[0]  # units must not decide
    _, values, directions = np.linalg.svd(np.eye(len(KD)) - balanced)
    if values[-1] > LOOP_SINGULAR * (1.0 + np.linalg.norm(balanced)):
        return
    moved = [name for name, part in zip(names, directions[-1], strict=True) if abs(part) > 1e-3] or list(names)
    raise NumericalError(
        f"The algebraic loop through {shortened(moved, 6)} has no solution, or infinitely many: what feeds "
        "these inputs follows them one to one (det(I - K D) = 0). Take out a connection, or put a state (a filter, a "
        "delay) into the loop.",
        variable=moved[0],
    )
