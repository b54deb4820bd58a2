"""The numbers that are solved for, as one scaled vector z.

The states that must rest in a steady motion are the independent ones that are not listed as moving.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import REFUSALS, ConstraintError, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import assemble_branch_point, assemble_point
from fmilin.manifold.projection import project
from fmilin.manifold.rank import decide_rank, scaled
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model
from fmilin.signals import FloatArray, rate_unit
from fmilin.tolerances import RANK
from fmilin.trimming.trim_request import TrimRequest, find_rate_state, is_quantity, quantity


@dataclass(frozen=True, eq=False)
class Candidate:
    """A point that may be the solution, with its model: parameters may be among the unknowns."""

    evaluator: PointEvaluator
    time: float
    states: FloatArray
    inputs: FloatArray
    parameters: Mapping[str, float]  # those that were fixed or solved for

    @property
    def model(self) -> Model:
        """The model, with its parameters."""
        return self.evaluator.model


class Unknowns:
    """z: the free states, inputs and parameters, each divided by its size; ``z0`` (n,) is the guess, within bounds."""

    def __init__(self, start: Candidate, request: TrimRequest) -> None:
        self.start = start
        model = start.model
        fixed = request.fixed
        self.states = np.array([i for i, name in enumerate(model.states.names) if name not in fixed], dtype=np.intp)
        kinds = {name: quantity(model, name) for name in request.free}
        self.inputs = np.array([i for kind, i in kinds.values() if kind == "input"], dtype=np.intp)
        self.parameters = tuple(name for name, (kind, _) in kinds.items() if kind == "parameter")
        n, k = len(self.states), len(self.inputs)
        self.state_columns, self.input_columns = np.arange(n), np.arange(n, n + k)
        states, inputs = model.states.select(self.states), model.inputs.select(self.inputs)
        self.names = (*states.names, *inputs.names, *self.parameters)
        self.units = (*states.units, *inputs.units, *[""] * len(self.parameters))
        parameter_values = [model.parameters[name] for name in self.parameters]
        values = np.concatenate((start.states[self.states], start.inputs[self.inputs], parameter_values))
        sizes = np.abs(values[n + k :])
        scales = model.states.scales(start.states)[self.states], model.inputs.scales(start.inputs)[self.inputs]
        self.scales = np.concatenate((*scales, np.where(sizes > 0, sizes, 1.0)))
        bounds = np.array([request.bounds.get(name, (-np.inf, np.inf)) for name in self.names]).reshape(-1, 2)
        self.low, self.high = bounds[:, 0] / self.scales, bounds[:, 1] / self.scales
        self.z0 = np.clip(values / self.scales, self.low, self.high)
        self._evaluator = lru_cache(maxsize=8)(self._with)  # making one may cost

    def __len__(self) -> int:
        return len(self.names)

    def resize_inputs(self, sizes: FloatArray) -> None:
        """Measure the free inputs in other sizes, (k,); those given as 0 keep theirs."""
        columns = self.input_columns[sizes > 0]
        ratio = sizes[sizes > 0] / self.scales[columns]
        self.scales[columns] *= ratio
        for part in (self.low, self.high, self.z0):
            part[columns] /= ratio

    def sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the unknowns are at z, in units of z: nominal, or the value where that is larger."""
        sizes = np.maximum(np.abs(z), 1.0)
        states, values = self.start.model.states.select(self.states), (z * self.scales)[self.state_columns]
        sizes[self.state_columns] = np.maximum(np.abs(values), states.scales(values)) / self.scales[self.state_columns]
        return sizes

    def at(self, z: FloatArray) -> Candidate:
        """Return the point that z means."""
        values = z * self.scales
        x, u = self.start.states.copy(), self.start.inputs.copy()
        x[self.states] = values[self.state_columns]
        u[self.inputs] = values[self.input_columns]
        further = tuple(values[len(values) - len(self.parameters) :].tolist())
        parameters = {**self.start.parameters, **dict(zip(self.parameters, further, strict=True))}
        return Candidate(self._evaluator(further), self.start.time, x, u, parameters)

    def _with(self, values: tuple[float, ...]) -> PointEvaluator:
        """Return what evaluates the model with these values of the parameters that are solved for."""
        if not values:
            return self.start.evaluator
        parameters = dict(zip(self.parameters, values, strict=True))
        return PointEvaluator(self.start.model.with_parameters(parameters))


def assemble_guess(
    evaluator: PointEvaluator, request: TrimRequest, guess: Mapping[str, float], *, anywhere: bool
) -> tuple[Candidate, tuple[Remark, ...]]:
    """Return the guess, on the manifold where it can be brought there, and what is to be said of that."""
    model = evaluator.model
    named = {**request.fixed, **guess}
    changed = {n: v for n, v in named.items() if quantity(model, n)[0] == "parameter"}
    if changed:
        model = model.with_parameters(changed)
        evaluator = PointEvaluator(model)
    guessed_states = [n for n in named if model.states.has(n)]
    t = model.start.time if request.time is None else request.time
    parameters = {**model.start.parameters, **{n: v for n, v in changed.items() if n in request.fixed}}
    if not guessed_states and not anywhere:
        values = {n: v for n, v in named.items() if n not in changed}
        point = assemble_point(evaluator, values, time=t)  # rejects start values that are off the manifold
        return Candidate(evaluator, t, point.states, point.inputs, parameters), ()
    x, u = model.start.states.copy(), model.start.inputs.copy()
    for name, value in named.items():
        kind, i = quantity(model, name)
        if kind != "parameter":
            (x if kind == "state" else u)[i] = value
    candidate = Candidate(evaluator, t, x, u, parameters)
    # With all states named none is left to be found: such a guess is projected, as one that cannot be kept.
    if guessed_states and len(model.constraints) and len(guessed_states) < len(model.states):
        try:
            point = assemble_branch_point(evaluator, t, model.start.states, u, {n: named[n] for n in guessed_states})
            return replace(candidate, states=point.states), point.remarks
        except (ConstraintError, NumericalError):
            pass  # a guess need not be kept
    firm = [model.states.positions[n] for n in guessed_states if n in request.fixed]
    return replace(candidate, states=_project_guess(candidate, firm)), ()


def _project_guess(candidate: Candidate, fixed_states: Sequence[int]) -> FloatArray:
    """Return the nearest point of the manifold with these states held, or else the candidate's own."""
    if not len(candidate.model.constraints):
        return candidate.states
    pairs = find_kinematic_pairs(candidate.evaluator, candidate.model.start) or {}
    try:
        return project(make_invariants(candidate, pairs), candidate.time, candidate.states, fixed_states)
    except (ConstraintError, NumericalError):
        return candidate.states


STEP = 2e-3  # how far along the motion its change is measured, in sizes of the fastest state


class PointsAlong(NamedTuple):
    """Points on the line x + s f at s = step, -step, 2 step and -2 step, at which the rates' change is measured."""

    step: float
    times: FloatArray  # (4,)
    states: FloatArray  # (4, N)


def list_motion_points(candidate: Candidate, f: FloatArray, scales: FloatArray) -> PointsAlong:
    """Return the points along a motion with rates f (N,) from which their change follows.

    The line leaves the manifold by O(s^2), equally on both sides: a central difference does not see it.
    """
    size = float(np.max(np.abs(f) / scales, initial=0.0))
    step = STEP / max(size, 1e-3)  # of slower motions at most 1000 STEP seconds
    s = step * np.array([1.0, -1.0, 2.0, -2.0])
    return PointsAlong(step, candidate.time + s, candidate.states + s[:, None] * f)


def extrapolate_change(step: float, rates: FloatArray) -> FloatArray:
    """Return df/dt = f_t + f_x f (N,) from rates (4, N) along a motion: central, with Richardson's extrapolation."""
    narrow, wide = (rates[0] - rates[1]) / (2 * step), (rates[2] - rates[3]) / (4 * step)
    return np.asarray(narrow + (narrow - wide) / 3)


def change_of_rates(candidate: Candidate, f: FloatArray, scales: FloatArray) -> FloatArray:
    """Return df/dt = f_t + f_x f along the motion, shape (N,)."""
    line = list_motion_points(candidate, f, scales)
    points = zip(line.times.tolist(), line.states, strict=True)
    return extrapolate_change(
        line.step, np.array([candidate.evaluator.evaluate(t, x, candidate.inputs).derivatives for t, x in points])
    )


def make_invariants(candidate: Candidate, pairs: Mapping[int, int]) -> Invariants:
    """Return the invariants of the model of a candidate."""
    return Invariants(candidate.evaluator, candidate.inputs, pairs, candidate.model.states.scales(candidate.states))


def independent_states(candidate: Candidate, pairs: Mapping[int, int], listed: Sequence[int]) -> list[int]:
    """Return states that determine the others near a point of the manifold, chosen for a steady motion."""
    # An independent state that is not listed must rest. So what moves at the guess unlisted is dependent if it can be
    # (the rolling disk's u4 and u6, which turn with its spin), then what is listed, then the rest as conditioning wants
    # it; the author's choice last. QR with column pivoting on H, scaled: pivots are the dependent states.
    model, x = candidate.model, candidate.states
    n = len(x)
    if not len(model.constraints):
        return list(range(n))
    from scipy import linalg

    invariants = make_invariants(candidate, pairs)
    gradient = invariants.gradient(candidate.time, x)
    Hs, _ = scaled(np.nan_to_num(gradient.H), gradient.scales, gradient.reference, gradient.error)
    weights = 1e-3 + _movement(candidate, invariants.scales)
    weights[list(listed)] = 1e-2
    weights[list_recommended_states(model, pairs)] *= 1e-2
    order = linalg.qr(Hs * weights, mode="r", pivoting=True)[1]
    dependent = {int(i) for i in order[: decide_rank(Hs, RANK).rank]}
    return [i for i in range(n) if i not in dependent]


def _movement(candidate: Candidate, scales: FloatArray) -> FloatArray:
    """Return how much each state moves, and changes its rate, between 0 and 2; zeros where that cannot be said."""
    try:
        f = candidate.evaluator.evaluate(candidate.time, candidate.states, candidate.inputs).derivatives
        parts = np.abs([f, change_of_rates(candidate, f, scales)]) / scales
    except REFUSALS:
        return np.zeros(len(scales))
    largest = parts.max(axis=1, keepdims=True, initial=0.0)
    if not np.isfinite(largest).all():
        return np.zeros(len(scales))
    return np.asarray((parts / np.where(largest > 0, largest, 1.0)).sum(axis=0))


def list_recommended_states(model: Model, pairs: Mapping[int, int]) -> list[int]:
    """Return the states that the model's author recommends to keep, velocities of positions included."""
    chosen = [model.states.positions[name] for name in model.independent if model.states.has(name)]
    return [*chosen, *(pairs[i] for i in chosen if i in pairs)]


# Quantities of a point that are read by name: a state, an input, a parameter, ``der(state)``, an output or another
# variable. Targets, bounds and preferences refer to readings; their derivatives are rows of A, B, C and D, or measured.

ReadingKind = Literal["state", "input", "parameter", "rate", "output"]


@dataclass(frozen=True)
class Reading:
    """One number of a point, and the value that it should have."""

    name: str
    kind: ReadingKind
    index: int  # among its kind; parameters have no order
    unit: str
    size: float  # nominal, else the larger of 1 and of what it should be
    value: float = 0.0


def model_that_shows(model: Model, names: Sequence[str]) -> Model:
    """Return the model with all ``names`` in its interface that are not states, inputs, parameters or rates."""
    missing = [name for name in names if _kind(model, name)[0] == "output" and not model.outputs.has(name)]
    return model.with_interface(outputs=[*model.outputs.names, *missing]) if missing else model


def make_reading(model: Model, name: str, value: float = 0.0) -> Reading:
    """Return what ``name`` means in a model that shows it."""
    kind, index = _kind(model, name)
    if kind == "parameter":
        return Reading(name, kind, 0, "", max(abs(value), 1.0), value)
    if kind == "rate":
        signal = model.states[index]
        size = model.states.scales()[index]
        return Reading(name, kind, index, rate_unit(signal.unit), float(size), value)
    signals = {"state": model.states, "input": model.inputs, "output": model.outputs}[kind]
    selection = signals.select([index])
    return Reading(name, kind, index, selection[0].unit, float(selection.scales(np.array([value]))[0]), value)


def _kind(model: Model, name: str) -> tuple[ReadingKind, int]:
    if is_quantity(model, name):
        return quantity(model, name)
    if (state := find_rate_state(model, name)) is not None:
        return "rate", model.states.positions[state]
    return "output", model.outputs.positions[name] if model.outputs.has(name) else -1  # -1: not yet an output


def compute_reading_values(
    readings: Sequence[Reading], x: FloatArray, u: FloatArray, parameters: Mapping[str, float], answer: Evaluation
) -> FloatArray:
    """Return the numbers that are read, shape (k,), at a point where the model says ``answer``."""
    sources = {"state": x, "input": u, "rate": answer.derivatives, "output": answer.outputs}
    values = [parameters[r.name] if r.kind == "parameter" else sources[r.kind][r.index] for r in readings]
    return np.array(values, dtype=np.float64)


def compute_reading_derivatives(
    readings: Sequence[Reading], dx: FloatArray, du: FloatArray, rates: FloatArray, outputs: FloatArray
) -> FloatArray:
    """Return their derivatives along the columns of dx (N, c) and du (nu, c), shape (k, c)."""
    sources = {"state": dx, "input": du, "rate": rates, "output": outputs}
    rows = [np.zeros(dx.shape[1]) if r.kind == "parameter" else sources[r.kind][r.index] for r in readings]
    return np.array(rows).reshape(len(readings), dx.shape[1])
