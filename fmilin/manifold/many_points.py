"""Many points at once: the same states held at other values, each followed from the start along the manifold.

The steps of :mod:`~fmilin.manifold.branch`, every point with its own length of step, all of them computed together
where the model takes many points in one visit. Least-norm steps come from the normal equations: rows that depend on
others are left out, and what the squared condition number loses the next iteration brings back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.errors import ConstraintError, NumericalError, UsageError
from fmilin.manifold.operating_points import assembled_from, operating_point
from fmilin.manifold.rank import decide_rank, independent_rows
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import REACHED

__all__ = ["Assembled", "assembled", "operating_points"]

BENT = 0.25
"""How far a point may lie beside its prediction, relative to the step: beyond, the step is halved."""

SHORTEST = 1e-3
ROUNDS = 60
CORRECTIONS = 8
AT_ONCE = 512
"""Points that are computed together."""

RIDGE = 1e-15
"""Keeps the normal equations solvable where rows become dependent; such steps are rejected."""


@dataclass(frozen=True, eq=False)
class Assembled:
    """States at many points.

    Attributes
    ----------
    states : array, shape (points, N)
        NaN where there is no point.
    reasons : tuple of str
        Why not; empty where there is one.
    """

    states: FloatArray
    reasons: tuple[str, ...]

    @property
    def ok(self) -> np.ndarray:
        """Where there is a point, array of bool."""
        return np.array([not reason for reason in self.reasons], dtype=bool)


def operating_points(
    model: Model, values: Mapping[str, FloatArray | Sequence[float] | float], *, time: float | None = None
) -> tuple[OperatingPoint, ...]:
    """Assemble many consistent points: for each the named states held, the others solved for on the start's branch.

    Parameters
    ----------
    model : Model
    values : mapping of str to array, shape (points,), or float
        States and inputs by name; a number holds at all points.
    time : float, optional
        In seconds; the model's own start time by default.

    Raises
    ------
    UnknownNameError
        When a name is neither a state nor an input.
    UsageError
        When the arrays differ in length.
    ConstraintError
        When a point cannot be assembled; naming the first.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> points = fl.operating_points(cartesian_pendulum(angle=0.5), {"x": [0.6, 0.8]})
    >>> [round(float(p.states[1]), 12) for p in points]
    [-0.8, -0.6]
    """
    count, columns = _columns(values)
    first = operating_point(model, {n: float(c[0]) for n, c in columns.items()}, time=time) if count else None
    if first is None:
        return ()
    inputs = np.tile(first.inputs, (count, 1))
    for name, column in columns.items():
        if model.inputs.has(name):
            inputs[:, model.inputs.positions[name]] = column
    held = {name: column for name, column in columns.items() if model.states.has(name)}
    found = assembled(model, held, inputs, time=first.time)
    if not found.ok.all():
        bad = int(np.argmin(found.ok))
        where = ", ".join(f"{name} = {column[bad]:g}" for name, column in columns.items())
        raise ConstraintError(f"Point {bad + 1} of {count} ({where}): {found.reasons[bad]}")
    parameters = model.start.parameters
    return tuple(OperatingPoint(first.time, x, u, parameters) for x, u in zip(found.states, inputs, strict=True))


def _columns(values: Mapping[str, FloatArray | Sequence[float] | float]) -> tuple[int, dict[str, FloatArray]]:
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
    lengths = {name: len(a) for name, a in arrays.items() if a.ndim == 1}
    if any(a.ndim > 1 for a in arrays.values()) or len(set(lengths.values())) > 1:
        given = ", ".join(f"'{name}' {a.shape}" for name, a in arrays.items())
        raise UsageError(f"The values of many points are arrays of one length, or numbers, not {given}.")
    count = next(iter(lengths.values()), 1)
    return count, {name: np.broadcast_to(a, (count,)) for name, a in arrays.items()}


def assembled(
    model: Model, held: Mapping[str, FloatArray], inputs: FloatArray, *, time: float | None = None
) -> Assembled:
    """Return the states at many points, with a reason instead where there is none.

    Parameters
    ----------
    model : Model
    held : mapping of str to array, shape (points,)
        States by name.
    inputs : array, shape (points, nu)
    time : float, optional
    """
    t = model.start.time if time is None else float(time)
    places = np.array([model.states.positions[name] for name in held], dtype=np.intp)
    targets = np.stack([np.asarray(column) for column in held.values()], axis=1) if held else np.empty((len(inputs), 0))
    start = operating_point(model, time=t, project=True).states if len(model.constraints) else model.start.states
    states = np.full((len(inputs), len(model.states)), np.nan)
    if not len(model.constraints) or not held:
        states[:] = start
        states[:, places] = targets
        return Assembled(states, ("",) * len(inputs))
    if _in_batches(model, t, start):
        for i in range(0, len(inputs), AT_ONCE):
            some = slice(i, i + AT_ONCE)
            states[some] = _followed(model, t, start, inputs[some], places, targets[some])
    return _one_by_one(model, t, start, inputs, places, targets, states)


def _in_batches(model: Model, t: float, x: FloatArray) -> bool:
    """Whether the model says what its constraints are at many points in one visit, hidden ones included."""
    if model.constraints.hidden or not model.batches:
        return False
    return model.constraint_gradient(t, x[None], model.start.inputs[None]) is not None


def _one_by_one(
    model: Model,
    t: float,
    start: FloatArray,
    inputs: FloatArray,
    places: np.ndarray,
    targets: FloatArray,
    states: FloatArray,
) -> Assembled:
    """Return the points with those that are missing found one by one, from the point before."""
    reasons, names = [], [model.states.names[i] for i in places]
    previous = start
    for k, x in enumerate(states):
        reason = ""
        if not np.isfinite(x).all():
            try:
                values = dict(zip(names, targets[k].tolist(), strict=True))
                x[:] = assembled_from(model, t, previous, inputs[k], values).states
            except (ConstraintError, NumericalError) as error:
                reason = str(error)
        reasons.append(reason)
        previous = start if reason else x
    return Assembled(states, tuple(reasons))


def _followed(
    model: Model, t: float, start: FloatArray, inputs: FloatArray, places: np.ndarray, targets: FloatArray
) -> FloatArray:
    """Return the states (points, N), NaN where the way could not be followed."""
    scales = model.states.scales(start)
    count = len(inputs)
    D = scales.copy()
    D[places] = 0.0
    rows = _rows(model, t, start, inputs[0], scales)
    way = targets - start[places]
    x, done, length = np.tile(start, (count, 1)), np.zeros(count), np.ones(count)
    open_ = np.ones(count, dtype=bool)
    for _ in range(ROUNDS):
        some = np.flatnonzero(open_)
        if not len(some):
            break
        step = np.minimum(length[some], 1.0 - done[some])
        last = done[some] + step >= 1.0
        moved = np.zeros((len(some), len(start)))
        moved[:, places] = step[:, None] * way[some]
        ahead = x[some] + moved + _least(model, t, x[some], inputs[some], rows, D, moved)
        ahead[:, places] = np.where(last[:, None], targets[some], start[places] + (done[some] + step)[:, None] * way[some])
        there, good = _corrected(model, t, ahead, inputs[some], rows, D, scales)
        beside = np.max(np.abs(there - ahead) / scales, axis=1)
        good &= beside <= BENT * np.max(np.abs(ahead - x[some]) / scales, axis=1) + REACHED
        x[some[good]], done[some[good]] = there[good], np.where(last, 1.0, done[some] + step)[good]
        length[some] = np.where(good, 2 * step, step / 2)
        open_[some] = (done[some] < 1.0) & (length[some] > SHORTEST)
    return np.where((done >= 1.0)[:, None], x, np.nan)


def _rows(model: Model, t: float, x: FloatArray, u: FloatArray, scales: FloatArray) -> list[int]:
    """Return constraints that are independent at the start."""
    found = model.constraint_gradient(t, x, u)
    assert found is not None  # noqa: S101 - it was asked before
    H = found[1] * scales
    norms = np.linalg.norm(H, axis=1)
    Hs = np.divide(H, norms[:, None], out=np.zeros_like(H), where=norms[:, None] > 1e-12 * max(norms.max(), 1e-300))
    return independent_rows(Hs, decide_rank(Hs).rank, len(Hs))


def _least(
    model: Model,
    t: float,
    x: FloatArray,
    u: FloatArray,
    rows: list[int],
    D: FloatArray,
    moved: FloatArray | None = None,
) -> FloatArray:
    """Return the shortest steps (points, N) of the states that are not held that make h + H moved vanish."""
    found = model.constraint_gradient(t, x, u)
    assert found is not None  # noqa: S101 - it was asked before
    h, H = found[0][:, rows], found[1][:, rows]
    right = h if moved is None else h + (H @ moved[..., None])[..., 0]
    A = H * D
    norms = np.maximum(np.linalg.norm(A, axis=-1, keepdims=True), 1e-300)
    A, right = A / norms, right / norms[..., 0]
    square = A @ np.swapaxes(A, -1, -2) + RIDGE * np.eye(len(rows))
    w = np.linalg.solve(square, right[..., None])
    step: FloatArray = -D * (np.swapaxes(A, -1, -2) @ w)[..., 0]
    return step


def _corrected(
    model: Model, t: float, x: FloatArray, u: FloatArray, rows: list[int], D: FloatArray, scales: FloatArray
) -> tuple[FloatArray, np.ndarray]:
    """Return points of the manifold near x, and where they were reached."""
    size = np.full(len(x), np.inf)
    for _ in range(CORRECTIONS):
        step = _least(model, t, x, u, rows, D)
        x = x + step
        size = np.max(np.abs(step) / scales, axis=1)
        if not (size > 1e-8).any():  # the next step would be the square of that: rounding
            break
    found = model.constraint_gradient(t, x, u)
    assert found is not None  # noqa: S101 - it was asked before
    distance = np.abs(found[0]) / np.maximum(np.linalg.norm(found[1] * scales, axis=-1), 1e-300)
    return x, np.isfinite(x).all(axis=1) & (size <= 1e-6) & (np.max(distance, axis=1, initial=0.0) <= REACHED)
