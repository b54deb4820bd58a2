"""Equations of several trims, evaluated and differentiated at one point of each together.

Points of one model are evaluated by one call where the model takes batches, and differentiated by one where compiled
code does that; else columns are differences, all points of which are evaluated together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from fmilin.errors import REFUSALS
from fmilin.model.capabilities import has_compiled_derivatives
from fmilin.model.evaluator import POINTS_AT_ONCE
from fmilin.model.interface import Evaluation
from fmilin.numerics.newton import BoolArray, IntArray
from fmilin.signals import FloatArray
from fmilin.trimming.unknowns import Candidate, Unknowns, extrapolate_change, list_motion_points

QUICK_STEP = 2.0**-14
"""Of differences in Jacobians that only show the way, in sizes of the unknowns."""
NEGLIGIBLE_ENTRY_RATIO = 1e-7
"""Entries of such a Jacobian below this part of their row are noise."""


class PointAnswer(NamedTuple):
    """The response of a model at a point."""

    evaluation: Evaluation
    change: FloatArray | None  # (N,), of the rates along a motion


class TrimEquations(Protocol):
    """The equations r(z) = 0 of one trim."""

    unknowns: Unknowns
    moving: bool  # whether changes of rates are among the rows
    state_scales: FloatArray

    @property
    def count(self) -> int:
        """The number of rows."""

    def compute_residual(self, candidate: Candidate, answer: PointAnswer | None = None) -> FloatArray:
        """Return r (m,) at a candidate, where the model may have been evaluated already."""

    def exact_jacobian(self, z: FloatArray, slopes: Evaluation | None = None) -> FloatArray | None:
        """Return dr/dz (m, n) from derivatives of the model, NaN where it is silent; None without any.

        ``slopes`` are its derivatives along all states and inputs at z, where they were computed already.
        """


def compute_residuals(problems: Sequence[TrimEquations], z: FloatArray) -> FloatArray:
    """Return r (k, m) of k problems with as many rows, each at its row of z (k, n); NaN where it is undefined."""
    candidates = [problem.unknowns.at(row) for problem, row in zip(problems, z, strict=True)]
    r = np.empty((len(z), problems[0].count if problems else 0))
    for numbers in _list_batches(candidates):
        answers = _evaluate(problems, candidates, numbers)
        for number, answer in zip(numbers, answers, strict=True):
            r[number] = problems[number].compute_residual(candidates[number], answer)
    return r


def _list_batches(candidates: Sequence[Candidate]) -> Iterator[list[int]]:
    """Yield which candidates are evaluated together."""
    by_evaluator: dict[int, list[int]] = {}
    for k, candidate in enumerate(candidates):
        by_evaluator.setdefault(id(candidate.evaluator), []).append(k)
    for numbers in by_evaluator.values():
        model = candidates[numbers[0]].model
        size = POINTS_AT_ONCE if model.batches or has_compiled_derivatives(model) else 1
        for first in range(0, len(numbers), size):
            yield numbers[first : first + size]


def _evaluate(
    problems: Sequence[TrimEquations], candidates: Sequence[Candidate], numbers: Sequence[int]
) -> Sequence[PointAnswer | None]:
    """Return what the model answers at some candidates; None where each is to be evaluated alone."""
    if len(numbers) == 1:
        return [None]
    batch = [candidates[k] for k in numbers]
    evaluator = batch[0].evaluator
    try:
        times = np.array([candidate.time for candidate in batch])
        states = np.array([candidate.states for candidate in batch])
        inputs = np.array([candidate.inputs for candidate in batch])
        answer = evaluator.evaluate_points(times, states, inputs)
        changes: dict[int, FloatArray] = {}
        is_defined = np.asarray(np.isfinite(answer.derivatives).all(axis=1))
        moving = [i for i, k in enumerate(numbers) if problems[k].moving and is_defined[i]]
        if moving:
            scales = [problems[numbers[i]].state_scales for i in moving]
            lines = [
                list_motion_points(batch[i], answer.derivatives[i], s) for i, s in zip(moving, scales, strict=True)
            ]
            times = np.concatenate([line.times for line in lines])
            states = np.concatenate([line.states for line in lines])
            along = evaluator.evaluate_points(times, states, np.repeat(inputs[moving], len(lines[0].times), axis=0))
            rates = np.split(along.derivatives, len(lines))
            changes = {i: extrapolate_change(s.step, f) for i, s, f in zip(moving, lines, rates, strict=True)}
    except REFUSALS:  # at one of them, from which the others need not suffer
        return [None] * len(numbers)
    parts = zip(answer.derivatives, answer.outputs, answer.residuals, strict=True)
    return [PointAnswer(Evaluation(*part), changes.get(i)) for i, part in enumerate(parts)]


def compute_jacobians(
    problems: Sequence[TrimEquations], z: FloatArray, r: FloatArray, *, exact: bool
) -> tuple[FloatArray, BoolArray]:
    """Return dr/dz (k, m, n) where the residuals are r (k, m), and which entries are exact; they show the way.

    Without ``exact`` the model's own derivatives are not used.
    """
    J = np.full((*r.shape, z.shape[1]), np.nan)
    if exact:
        slopes = _differentiate(problems, z)
        for k, (problem, row) in enumerate(zip(problems, z, strict=True)):
            jacobian = problem.exact_jacobian(row, slopes[k])
            if jacobian is not None:
                J[k] = jacobian
    is_exact = np.isfinite(J)
    is_defined = np.asarray(np.isfinite(r).all(axis=1))
    rows, columns = np.nonzero(~is_exact.all(axis=1) & is_defined[:, None])
    if len(rows):
        measured = _measure_columns(problems, z, r, rows, columns)
        for k in np.unique(rows):
            J[k] = np.where(is_exact[k], J[k], measured[k])
    return J, is_exact


def _measure_columns(
    problems: Sequence[TrimEquations], z: FloatArray, r: FloatArray, rows: IntArray, columns: IntArray
) -> FloatArray:
    """Return dr/dz (k, m, n) with these columns of these rows by differences, zero where they are rounding.

    They are central, or one-sided where the model ends.
    """
    steps = np.zeros((len(rows), z.shape[1]))
    steps[np.arange(len(rows)), columns] = QUICK_STEP
    displaced = np.concatenate((z[rows] + steps, z[rows] - steps))
    values = compute_residuals([problems[k] for k in (*rows.tolist(), *rows.tolist())], displaced)
    ahead, behind = values[: len(rows)], values[len(rows) :]
    forward, backward = (ahead - r[rows]) / QUICK_STEP, (r[rows] - behind) / QUICK_STEP
    is_central = np.isfinite(forward) & np.isfinite(backward)
    one_sided = np.where(np.isfinite(forward), forward, np.nan_to_num(backward))
    J = np.zeros((*r.shape, z.shape[1]))
    J[rows, :, columns] = np.where(is_central, (forward + backward) / 2, one_sided)
    largest = np.max(np.abs(J), axis=2, keepdims=True, initial=0.0)
    return np.where(np.abs(J) > NEGLIGIBLE_ENTRY_RATIO * largest, J, 0.0)


def _differentiate(problems: Sequence[TrimEquations], z: FloatArray) -> list[Evaluation | None]:
    """Return derivatives along all states and inputs at each z (k, n), where compiled code gives them for batches."""
    slopes: list[Evaluation | None] = [None] * len(z)
    candidates = [problem.unknowns.at(row) for problem, row in zip(problems, z, strict=True)]
    for numbers in _list_batches(candidates):
        if len(numbers) == 1:  # differentiated as in a search alone, when its Jacobian is computed
            continue
        batch = [candidates[k] for k in numbers]
        times = np.array([candidate.time for candidate in batch])
        states = np.array([candidate.states for candidate in batch])
        inputs = np.array([candidate.inputs for candidate in batch])
        try:
            answer = batch[0].evaluator.differentiate_points(times, states, inputs)
        # Each is differentiated alone then, when its Jacobian is computed.
        except REFUSALS:
            continue
        if answer is not None:
            parts = zip(answer.derivatives, answer.outputs, answer.residuals, strict=True)
            for k, part in zip(numbers, parts, strict=True):
                slopes[k] = Evaluation(*part)
    return slopes
