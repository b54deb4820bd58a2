"""The interpolation of a schedule between its design points, and its closed loop there.

At fixed scheduling variables the loop is A - B K, all three interpolated. How far A and B are off is taken from each
point of the grid that is left out and interpolated from its neighbours, twice as far apart: four times the error of the
whole grid where the models are smooth. An eigenvalue moves by no more than |w|' |dM| |v| / |w' v| to first order, w and
v being its left and right eigenvectors (Stewart and Sun, Matrix Perturbation Theory, 1990, IV.2.1).

Where a scheduling variable is read from the plant itself, s = c y, the loop has a term that no point's design knows
(hidden coupling): K - (u0' + K y0') c instead of K.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig

from fmilin.design.laws import with_states
from fmilin.errors import NumericalError, UsageError
from fmilin.families.grid import Grid, around, errors_of_neighbours
from fmilin.linear_model.no_response import is_at_rest
from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr


@dataclass(frozen=True)
class TableLayout:
    """Where each quantity stands in a row of the table, and its shape, in their order."""

    shapes: Mapping[str, tuple[int, ...]]

    def start(self, name: str) -> int:
        """Return the number of the first entry."""
        names = list(self.shapes)
        return sum(int(np.prod(self.shapes[n])) for n in names[: names.index(name)])

    def of(self, row: FloatArray) -> dict[str, FloatArray]:
        """Return the quantities of a row."""
        starts = {name: self.start(name) for name in self.shapes}
        return {n: row[starts[n] : starts[n] + int(np.prod(s))].reshape(s) for n, s in self.shapes.items()}


@dataclass(frozen=True, eq=False)
class ScheduleTable:
    """The table that a schedule interpolates."""

    grid: Grid  # of the family
    over: tuple[str, ...]  # its axes, in the order of the scheduling variables
    rows: FloatArray  # (points, width)
    good: NDArray[np.bool_]  # (points,)
    reasons: Sequence[str]  # why a point has no row

    @property
    def axes(self) -> tuple[FloatArray, ...]:
        """The values of every scheduling variable, ascending."""
        return tuple(np.sort(self.grid.axes[name]) for name in self.over)

    @property
    def numbers(self) -> NDArray[np.intp]:
        """The points in the order of these axes, the last one fastest."""
        names = list(self.grid.axes)
        numbers = np.arange(self.grid.size).reshape(self.grid.shape).transpose([names.index(n) for n in self.over])
        for d, name in enumerate(self.over):
            numbers = np.take(numbers, np.argsort(self.grid.axes[name]), axis=d)
        return numbers.ravel()

    @property
    def first(self) -> FloatArray:
        """The values of the first point with a row, shape (k,)."""
        values = self.grid.values(int(next(k for k in self.numbers if self.good[k])))
        return np.array([values[name] for name in self.over])

    def nearest(self, at: FloatArray) -> FloatArray:
        """Return the values inside the grid's ranges that are nearest, shape (k,)."""
        axes = zip(at, self.axes, strict=True)
        return np.array([min(v, a[-1]) if v >= a[0] else a[0] for v, a in axes])  # of NaN the first

    def corners(self, at: FloatArray) -> dict[int, float]:
        """Return the points around and their weights, none of them zero."""
        return around(self.grid, dict(zip(self.over, at.tolist(), strict=True)))

    def weights(self, at: FloatArray) -> dict[int, float]:
        """Return the points around and their weights; reject what is outside, and where a point around is missing."""
        where = ", ".join(f"{name} = {v:g}" for name, v in zip(self.over, at.tolist(), strict=True))
        if (self.nearest(at) != at).any():
            ranges = ", ".join(f"{n} from {a[0]:g} to {a[-1]:g}" for n, a in zip(self.over, self.axes, strict=True))
            raise UsageError(
                f"The schedule is evaluated at {where}, outside its range: {ranges}. Sweep a larger range, keep the "
                "plant inside this one, or choose outside='nearest', which uses the gains at its edge."
            )
        weights = self.corners(at)
        for number in weights:
            if not self.good[number]:
                corner = ", ".join(f"{name} = {v:g}" for name, v in self.grid.values(number).items())
                raise NumericalError(
                    f"The schedule has a hole at {where}: it has no gain at {corner}. {self.reasons[number]}"
                )
        return weights

    def row(self, at: FloatArray) -> FloatArray:
        """Return the interpolated row, shape (width,)."""
        weights = self.weights(at)
        return np.asarray(np.array(list(weights.values())) @ self.rows[list(weights)])

    def slopes(self, at: FloatArray) -> FloatArray:
        """Return how the row moves with each scheduling variable, by the next points on both sides: (width, k)."""
        columns = []
        for d, axis in enumerate(self.axes):
            below = max(int(np.searchsorted(axis, at[d], side="left")) - 1, 0)
            above = min(int(np.searchsorted(axis, at[d], side="right")), len(axis) - 1)
            ends = [np.where(np.arange(len(at)) == d, axis[j], at) for j in (below, above)]
            columns.append((self.row(ends[1]) - self.row(ends[0])) / (axis[above] - axis[below]))
        return np.array(columns).T

    def between(self, most: int = 4000) -> FloatArray:
        """Return values to examine, shape (points, k): those of the grid and the middles, fewer of very many."""
        lines = [np.sort(np.concatenate((a, (a[1:] + a[:-1]) / 2))) for a in self.axes]
        all_values = np.array(list(product(*lines)))
        return all_values[:: -(-len(all_values) // most)]


Schedule = Any  # fmilin.design.schedule.Schedule: its module imports this one
Kind = Literal["stable", "uncertain", "unstable"]


@dataclass(frozen=True)
class ScheduleVerdict:
    """The closed loop at fixed scheduling variables."""

    kind: Kind
    decay: float  # of the slowest motion, in 1/s; negative where it grows
    uncertainty: float  # of it, by the interpolation's error; NaN where neighbours are too few to say
    measured_decay: float  # of other motions, scheduling variables read from the plant (hidden coupling); NaN: none is


@dataclass(frozen=True, eq=False, repr=False)
class ScheduleReport(TableRepr):
    """The closed loop of a schedule over its range."""

    _attributes = ".points, .verdicts, .weakest, .holes"

    over: tuple[str, ...]  #: the scheduling variables
    #: shape (n, k); where it was examined: the grid and the middles of its cells; holes are left out
    points: FloatArray
    verdicts: tuple[ScheduleVerdict, ...]  #: of the points
    holes: dict[str, int]  #: why points of the grid have no gains, and how many
    remarks: tuple[str, ...]  #: sentences on what to know

    @implemented_in("fmilin.report.designs:show_schedule_report")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def weakest(self) -> list[int]:
        """The points in the order of their decay less its uncertainty, the weakest first."""
        worth = [v.decay - (v.uncertainty if np.isfinite(v.uncertainty) else 0.0) for v in self.verdicts]
        return [int(k) for k in np.argsort(worth, kind="stable")]

    @implemented_in("fmilin.report.web.of_results:save_schedule_report")
    def save(self, path: str | Path) -> None:
        """Write the table as a page: ``.html``."""
        ...

    def count(self, kind: Kind) -> int:
        """Return how many points are of this kind."""
        return sum(v.kind == kind for v in self.verdicts)


def report(schedule: Schedule) -> ScheduleReport:
    """Return the report of a schedule."""
    points, verdicts = [], []
    for at in schedule.table.between():
        try:
            verdicts.append(verdict(schedule, at))
        except NumericalError:  # a hole
            continue
        points.append(at)
    holes = Counter(reason for reason in schedule.table.reasons if reason)
    return ScheduleReport(
        schedule.over, np.array(points), tuple(verdicts), dict(holes), tuple(_remarks(schedule, verdicts))
    )


def verdict(schedule: Schedule, at: FloatArray) -> ScheduleVerdict:
    """Return what the interpolated loop does at the scheduling variables, shape (k,)."""
    numbers = list(schedule.table.weights(at))
    p, E = schedule.parts.of(schedule.table.row(at)), find_largest_errors(schedule, numbers)
    M, dM = (
        _close_estimator_loop(p, E)
        if schedule.estimates
        else (p["A"] - p["B"] @ p["K"], E["A"] + E["B"] @ np.abs(p["K"]))
    )
    decay, worst = _slowest(M, dM, schedule.sample_time)
    kind: Kind = "unstable" if decay <= 0 else "stable" if worst > 0 else "uncertain"
    measured = decay
    if schedule.form == "trim":
        measured = np.nan if schedule.estimates else _compute_measured_decay(schedule, at, p, numbers)
    return ScheduleVerdict(kind, decay, decay - worst, measured)


def errors_of_points(schedule: Schedule) -> dict[str, FloatArray]:
    """Return how far the model of each point of the grid is from what its neighbours say; NaN where they are too few.

    Arrays of the shape (points, rows, columns).
    """
    table, shape = schedule.table, schedule.table.grid.shape
    kinds = np.where(table.good, 0, -1 - np.arange(len(table.good))).reshape(shape)
    parts = [schedule.parts.of(row) for row in table.rows]
    names = [name for name in ("A", "B", "C") if name in parts[0]]
    stacks: dict[str, FloatArray] = {name: np.array([p[name] for p in parts]) for name in names}
    all_indices = (slice(None),) * len(shape)
    grids = {name: stack.reshape(*shape, *stack.shape[1:]) for name, stack in stacks.items()}
    errors = {
        name: errors_of_neighbours(grid_values, table.grid, kinds, all_indices) for name, grid_values in grids.items()
    }
    return {name: errors[name].reshape(stack.shape) for name, stack in stacks.items()}


def find_largest_errors(schedule: Schedule, numbers: Sequence[int]) -> dict[str, FloatArray]:
    """Return the largest of these errors at some points, each the shape of its matrix; zero at a point of the grid."""
    errors = {}
    for name, stack in schedule.interpolation_errors.items():
        chosen = stack[list(numbers)]
        measured = ~np.isnan(chosen).any(axis=(1, 2))
        errors[name] = chosen[measured].max(axis=0) if measured.any() else np.full(stack.shape[1:], np.nan)
        if len(numbers) == 1:
            errors[name] = np.zeros(stack.shape[1:])
    return errors


def _slowest(M: FloatArray, dM: FloatArray, sample_time: float) -> tuple[float, float]:
    """Return the decay of the slowest motion, and of the slowest one when M is off by dM; NaN where that is unknown."""
    parts: tuple[Any, ...] = eig(M, left=True, right=True)
    values, left_vectors, right_vectors = parts
    moved = np.einsum("ik,ij,jk->k", np.abs(left_vectors), dM, np.abs(right_vectors))
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(moved == 0, 0.0, moved / np.abs(np.einsum("ik,ik->k", left_vectors.conj(), right_vectors)))
        if sample_time:
            decays = [-np.log(np.abs(values) + d) / sample_time for d in (0.0, moved)]
        else:
            decays = [-values.real - d for d in (0.0, moved)]
    return float(decays[0].min()), float(decays[1].min())


def _close_estimator_loop(p: dict[str, FloatArray], E: dict[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return the loop of the plant and what the estimator predicts, and how far it is off where the plant is."""
    A, B, C, K, L = (p[name] for name in "ABCKL")
    error_update, closed = np.eye(len(A)) - L @ C, A - B @ K
    M = np.block([[A - B @ K @ L @ C, -B @ K @ error_update], [closed @ L @ C, closed @ error_update]])
    state_error = E["A"] + np.abs(B @ K @ L) @ E["C"] + E["B"] @ np.abs(K @ L @ C)
    read = np.abs(closed @ L) @ E["C"]
    return M, np.block([[state_error, E["B"] @ np.abs(K @ error_update)], [read, np.zeros_like(A)]])


def _compute_measured_decay(
    schedule: Schedule, at: FloatArray, p: dict[str, FloatArray], numbers: Sequence[int]
) -> float:
    """Return the decay with scheduling variables that are read from the plant; NaN where none is a variable of it.

    As many motions as such variables are left out: with them trim values follow the plant, every s is at rest, and what
    these motions do is rounding.
    """
    family = schedule.family
    linear = with_states(family.linear_model(numbers[0]), schedule.states.names)
    c = np.zeros((len(schedule.over), len(linear.states)))
    for i, name in enumerate(schedule.over):
        if family.full_states.has(name):
            c[i] = linear.T[family.full_states.index_of(name)]
        elif family.outputs.has(name):
            c[i] = linear.C[family.outputs.index_of(name)]
    try:
        slopes = schedule.table.slopes(at)
    except NumericalError:  # adjacent to a hole of the grid
        return float("nan")
    start = {name: schedule.parts.start(name) for name in ("u0", "y0")}
    u0, y0 = (slopes[start[name] : start[name] + len(p[name])] for name in ("u0", "y0"))
    z = np.linalg.eigvals(p["A"] - p["B"] @ (p["K"] - (u0 + p["K"] @ y0) @ c))
    with np.errstate(divide="ignore"):
        rates = np.log(z.astype(complex)) / schedule.sample_time if schedule.sample_time else z
    remaining_rates = rates[np.argsort(np.abs(rates))][np.linalg.matrix_rank(c) :]
    return float(-remaining_rates.real.max()) if c.any() and len(remaining_rates) else float("nan")


def _remarks(schedule: Schedule, verdicts: Sequence[ScheduleVerdict]) -> Iterator[str]:
    slowest = min(v.decay for v in verdicts)
    if slowest > 0:
        yield (
            f"All loops are those of fixed scheduling variables: where these move as fast as the slowest motion decays "
            f"({_per(slowest)}), simulate (fl.closed_loop)."
        )
    if unsure := sum(v.kind == "uncertain" for v in verdicts):
        unknown = sum(np.isnan(v.uncertainty) for v in verdicts)
        yield (
            f"At {unsure} of {len(verdicts)} points the interpolation's own error may make the loop unstable: add "
            "values there."
            + (f" At {unknown} points it is unknown: it needs three values in a row." if unknown else "")
        )
    good = (linear for _, linear in schedule.family.good() if set(schedule.states.names) <= set(linear.states.names))
    moving = sum(not is_at_rest(with_states(linear, schedule.states.names)) for linear in good)
    if moving and schedule.form == "trim":
        yield f"{moving} points of the family are not equilibria: the plant does not stay at the trim values there."
    if schedule.form == "velocity":
        yield "In velocity form the input goes on from its last value: it does not return to a trim value."
    coupled = [v.measured_decay for v in verdicts if np.isfinite(v.measured_decay)]
    if coupled and schedule.form == "trim":
        names = " and ".join(schedule.over)
        yield (
            f"Read from the plant, {names} adds u0' + K y0' to the loop, which the design does not contain (hidden "
            "coupling): trim values follow the plant and do not bring it back along the family, and the slowest of "
            f"its other motions decays at {_per(min(coupled))}. To hold the plant at one {names}, give it: "
            "schedule.along({...})."
        )
    if schedule.estimates:
        yield "These numbers do not include the hidden coupling from reading the scheduling variables from the plant."


def _per(decay: float) -> str:
    return f"{decay:.3g} 1/s"
