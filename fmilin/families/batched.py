"""Outcomes of whole runs from batches: what a solver tries first where the source is a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from fmilin.families.batch import Batch, Solved
from fmilin.families.continuation import Seed
from fmilin.families.grid import Grid
from fmilin.families.outcome import Outcome
from fmilin.families.rows import Layout, Template
from fmilin.ground.errors import FmilinError
from fmilin.ground.remarks import Remark, off_equilibrium
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.batch_graph import BatchGraph, batch_graph
from fmilin.points.request import TrimRequest

__all__ = ["Batches"]

FIRST_BLOCK = 4
LARGEST_BLOCK = 2048

OF_THE_POINT = frozenset({"off-equilibrium", "coordinates-switched", "branch", "conditioning"})
"""Remarks that are true of one point; the others are of the model, and go with all points of a run."""


class Batches:
    """Runs of points of one plan, computed in batches.

    ``model``: with the outputs that are wanted.
    """

    def __init__(self, model: Model, grid: Grid, parameters: Sequence[str]) -> None:
        self._model, self._grid = model, grid
        self._parameters = tuple(parameters)
        self._graph: BatchGraph | None = None
        self._layouts: dict[tuple[int, tuple[str, ...]], tuple[Template, Layout]] = {}
        self._tried = False

    def outcomes(
        self, numbers: Sequence[int], seed: Seed, request: TrimRequest | None
    ) -> Iterator[tuple[list[Outcome], Seed]]:
        """Yield outcomes of the first numbers of a run, block by block, as far as batches go; the seed behind each.

        ``seed``: what the first of them starts from.
        """
        held = self._held(request)
        if not self._tried:
            self._tried = True
            self._graph = batch_graph(self._model, self._parameters)
        if self._graph is None or not self._fits(seed, request):
            return
        try:
            batch = Batch(self._graph, self._model, seed, request, held)
        except (FmilinError, np.linalg.LinAlgError):
            return
        if not batch.usable:
            return
        yield from self._blocks(batch, list(numbers), seed)

    def _held(self, request: TrimRequest | None) -> list[int]:
        states = self._model.states
        names = self._grid.axes if request is None else request.fixed
        return [states.positions[name] for name in names if states.has(name)]

    def _fits(self, seed: Seed, request: TrimRequest | None) -> bool:
        model, selection = self._model, seed.selection
        if selection is None or selection.kept is None or seed.linear.sample_time:
            return False
        if seed.linear.inputs.names != model.inputs.names or seed.linear.T_u.any():
            return False
        if request is not None:
            free = all(model.inputs.has(name) for name in request.free)
            return free and not request.bounds and set(request.steady) <= set(seed.linear.states.names)
        return True

    # -- blocks ------------------------------------------------------------------------------------------

    def _blocks(self, batch: Batch, numbers: list[int], seed: Seed) -> Iterator[tuple[list[Outcome], Seed]]:
        size, line = FIRST_BLOCK, _Line(seed)
        while numbers:
            block = numbers[:size]
            values = self._columns(block)
            inputs = {self._model.inputs.positions[n]: v for n, v in values.items() if self._model.inputs.has(n)}
            try:
                solved = batch.solved(line.guess(self._columns(block, along=True)), values, inputs)
            except np.linalg.LinAlgError:
                solved = None
            good = 0 if solved is None else int(np.argmin([*solved.fine, False]))
            if solved is None or not good:
                if size == 1:
                    return
                size = max(1, size // 4)
                continue
            block = block[:good]
            line.add(self._columns(block, along=True), solved.x[:good], solved.u[:good])
            outcomes = self._packed(batch, block, solved, seed)
            yield outcomes, self._seed(block[-1], solved, good - 1, seed, outcomes[-1])
            numbers = numbers[good:]
            size = min(2 * size, LARGEST_BLOCK) if good == size else max(1, good)

    def _columns(self, numbers: list[int], *, along: bool = False) -> dict[str, FloatArray]:
        found = {name: np.asarray(self._grid.column(name)).reshape(-1)[numbers] for name in self._grid.axes}
        return found if not along else {name: v for name, v in found.items() if name}

    def _packed(self, batch: Batch, numbers: list[int], solved: Solved, seed: Seed) -> list[Outcome]:
        template, layout = self._layout(seed)
        count = len(numbers)
        values = self._columns(numbers)
        rows = np.zeros((count, layout.width))
        parts = {**solved.parts, "x0": solved.x, "u0": solved.u, "time": np.full(count, seed.point.time)}
        known = seed.linear.point.parameters
        parts["parameters"] = np.column_stack(
            [
                np.zeros((count, 0)),
                *(values.get(n, np.full(count, known.get(n, np.nan))) for n in template.parameters),
            ]
        )
        for name in (*layout.shapes,):
            if name in parts:
                rows[:, layout.places[name]] = parts[name][:count].reshape(count, -1)
        rests = batch.rests(solved.parts["f0"][:count])
        common = tuple(r for r in seed.linear.warnings if r.kind not in OF_THE_POINT)
        method = ("exact", seed.linear.method.coordinates)
        states = seed.linear.states
        fastest = np.abs(solved.parts["f0"][:count]).argmax(axis=1) if layout.template.order else np.zeros(count, int)
        found = []
        for k, number in enumerate(numbers):
            remarks = common if rests[k] else (*common, _moving(states.names[fastest[k]]))
            found.append(Outcome(number, "", rows[k], template, states, method, remarks))
        return found

    def _layout(self, seed: Seed) -> tuple[Template, Layout]:
        names = tuple(dict.fromkeys((*seed.linear.point.parameters, *self._parameters)))
        key = (len(seed.linear.states), names)
        if key not in self._layouts:
            template = Template.of(seed.linear, names)
            self._layouts[key] = template, Layout(template)
        return self._layouts[key]

    def _seed(self, number: int, solved: Solved, k: int, seed: Seed, outcome: Outcome) -> Seed:
        """Return the last point of a block as a seed."""
        _, layout = self._layout(seed)
        assert outcome.row is not None  # noqa: S101 - it is fine
        linear = layout.unpacked(outcome.row, seed.linear.states, outcome.method, outcome.remarks)
        point = OperatingPoint(seed.point.time, solved.x[k].copy(), solved.u[k].copy(), dict(linear.point.parameters))
        return replace(seed, values=self._grid.values(number), point=point, linear=linear)


@cache
def _moving(name: str) -> Remark:
    """Return the remark without the rate, which f0 has: one for many points."""
    return off_equilibrium(f"'{name}' changes")


class _Line:
    """The last points on the way, through which the next ones are guessed: linear in what varies."""

    def __init__(self, seed: Seed) -> None:
        self._s = [np.array(list(seed.values.values()))]
        self._z = [(seed.point.states, seed.point.inputs)]
        self._names = list(seed.values)

    def add(self, values: dict[str, FloatArray], x: FloatArray, u: FloatArray) -> None:
        for k in range(max(0, len(x) - 2), len(x)):
            self._s.append(np.array([values[n][k] for n in self._names]))
            self._z.append((x[k], u[k]))
        self._s, self._z = self._s[-2:], self._z[-2:]

    def guess(self, values: dict[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        wanted = np.column_stack([values[n] for n in self._names])
        x1, u1 = self._z[-1]
        if len(self._s) < 2:
            return np.tile(x1, (len(wanted), 1)), np.tile(u1, (len(wanted), 1))
        x0, u0 = self._z[-2]
        step = self._s[-1] - self._s[-2]
        far = (wanted - self._s[-1]) @ step / max(float(step @ step), 1e-300)
        return x1 + far[:, None] * (x1 - x0), u1 + far[:, None] * (u1 - u0)
