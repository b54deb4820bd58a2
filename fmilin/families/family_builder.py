"""Outcomes, and linear models that are there already, put together as a family."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.families.family import LinearFamily, PointCoordinates
from fmilin.families.grid import Grid, locate_on_grid
from fmilin.families.rows import Layout, OutcomeBlock, PointOutcome, Template
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.descriptor import Derivative, Descriptor
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.checks.batch_remarks import BatchRemarks
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray, Signals

NOTHING = Template(0, Signals(), Signals(), Signals(), (), ModelInfo(""))
MISSING = "This point was not reached."


def build_outcome(
    number: int, linear: LinearModel, template: Template | None = None, *, described: bool = False
) -> PointOutcome:
    """Return a linear model as an outcome: packed, when it fits the template; else with the reason why not.

    It has the descriptor system of the linear model if it is to be ``described``.
    """
    linear_template = Template.of(linear, template.parameters if template else None)
    template = template or linear_template
    if why := template.why_not(linear_template):
        return PointOutcome(number, why, kind="order")
    return PointOutcome(
        number,
        row=Layout(template).pack(linear),
        template=template,
        states=linear.states,
        method=(linear.method.derivatives, linear.method.coordinates),
        remarks=linear.warnings,
        derivatives=linear.derivatives,
        descriptor=linear.descriptor if described else None,
    )


class RemarksByNumber(Mapping[int, tuple[Remark, ...]]):
    """Diagnostics by the number of their point; those on points of a block are written when they are read."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[Remark, ...]] = {}
        self._unwritten: dict[int, tuple[BatchRemarks, int]] = {}  # in which batch, and where there

    def __len__(self) -> int:
        return len(self._written) + len(self._unwritten)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted((*self._written, *self._unwritten)))

    def __contains__(self, number: object) -> bool:
        return number in self._written or number in self._unwritten

    def __getitem__(self, number: int) -> tuple[Remark, ...]:
        unwritten = self._unwritten.get(number)
        if unwritten is not None:
            remarks, k = unwritten
            self._written[number] = remarks[k]
            self._unwritten.pop(number, None)  # another thread may have done the same
        return self._written[number]

    def __reduce__(self) -> tuple[type[dict[int, tuple[Remark, ...]]], tuple[dict[int, tuple[Remark, ...]]]]:
        """Return what a family of another process, or of a file, has instead: texts."""
        return dict, (dict(self),)

    def add(self, number: int, remarks: tuple[Remark, ...]) -> None:
        """Keep the diagnostics on a point."""
        self._written[number] = remarks

    def add_block(self, numbers: NDArray[np.intp], remarks: BatchRemarks) -> None:
        """Keep the diagnostics on the first points of a batch."""
        for k in np.flatnonzero(remarks.is_present[: len(numbers)]).tolist():
            self._unwritten[int(numbers[k])] = remarks, k


class FamilyBuilder:
    """A family that grows point by point."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.template: Template | None = None
        self._fitting: Template | None = None  # the last other one that fits: many outcomes share theirs
        self.done = np.zeros(grid.size, dtype=bool)
        self._models = LinearArrays.empty(grid.size)
        self._ok = np.zeros(grid.size, dtype=bool)
        self._reasons: dict[int, str] = {}
        self._choices: dict[tuple[object, ...], int] = {}
        self._kinds: list[PointCoordinates] = []
        self._chosen = np.full(grid.size, -1, dtype=np.intp)
        self._remarks = RemarksByNumber()
        self._derivatives: dict[int, Mapping[str, Derivative]] = {}
        self._descriptors: dict[int, Descriptor] = {}
        self._same: dict[tuple[Remark, ...], tuple[Remark, ...]] = {}  # many points share theirs: kept once

    @property
    def good(self) -> int:
        """Points with a linear model so far."""
        return int(self._ok.sum())

    def add_all(self, outcomes: Iterable[PointOutcome]) -> None:
        """Take in what came of some points."""
        if isinstance(outcomes, OutcomeBlock):
            self._add_block(outcomes)
        else:
            for outcome in outcomes:
                self.add(outcome)

    def list_missing(self, outcomes: Sequence[PointOutcome]) -> Sequence[PointOutcome]:
        """Return the outcomes of points that have not been added."""
        if isinstance(outcomes, OutcomeBlock) and not self.done[outcomes.numbers].any():
            return outcomes
        return [outcome for outcome in outcomes if not self.done[outcome.number]]

    def _add_block(self, block: OutcomeBlock) -> None:
        """Take in points that were linearized together."""
        numbers = block.numbers
        self.done[numbers] = True
        if why := self._why_not(block.template):
            self._reasons.update(dict.fromkeys(numbers.tolist(), why))
            return
        self._models.put(numbers, block.models)
        self._ok[numbers] = True
        self._chosen[numbers] = self._choice(block.states, block.method)
        self._remarks.add_block(numbers, block.remarks)

    def add(self, outcome: PointOutcome) -> None:
        """Take in what came of one point."""
        self._take(outcome)
        self.done[outcome.number] = True

    def _take(self, outcome: PointOutcome) -> None:
        k = outcome.number
        if outcome.row is None or outcome.template is None:
            self._reasons[k] = outcome.reason
            return
        if why := self._why_not(outcome.template):
            self._reasons[k] = why
            return
        self._put(k, outcome.row, Layout(outcome.template))
        self._ok[k] = True
        self._chosen[k] = self._choice(outcome.states, outcome.method)
        if outcome.derivatives:
            self._derivatives[k] = outcome.derivatives
        if outcome.descriptor is not None:
            self._descriptors[k] = outcome.descriptor
        if outcome.remarks:
            self._remarks.add(k, self._same.setdefault(outcome.remarks, outcome.remarks))

    def _why_not(self, template: Template) -> str:
        """Return why linear models with a template do not belong to the family, one sentence; empty when they do."""
        if self.template is None:
            self.template = template
        elif template is not self.template and template is not self._fitting:
            if why := self.template.why_not(template):
                return why
            self._fitting = template
        return ""

    def _put(self, number: int, row: FloatArray, layout: Layout) -> None:
        """Keep the row of a point."""
        self._models.put(np.array([number]), layout.split(row[None]))

    def _collect(self, layout: Layout) -> LinearArrays:
        """Return the linear models of all points, NaN where there is none."""
        self._models.clear(~self._ok)
        return layout.fill(self._models)

    def _choice(self, states: Signals, method: tuple[str, str]) -> int:
        key = (states.names, method)
        if key not in self._choices:
            self._choices[key] = len(self._kinds)
            self._kinds.append(PointCoordinates(states, method))
        return self._choices[key]

    def family(self) -> LinearFamily:
        """Return what there is; points that were not reached say so."""
        reasons = np.full(self.grid.size, "", dtype=object)
        reasons[~self.done] = MISSING
        for k, reason in self._reasons.items():
            reasons[k] = reason
        # The choices in the order in which the points of the grid have them, however they came in.
        used = self._chosen[self._chosen >= 0]
        order = [int(k) for k in used[np.sort(np.unique(used, return_index=True)[1])]]
        new = np.full(len(self._kinds) + 1, -1, dtype=np.intp)
        new[order] = np.arange(len(order))
        choices, chosen = tuple(self._kinds[k] for k in order), new[self._chosen]
        shape, template = self.grid.shape, self.template or NOTHING
        return LinearFamily(
            self.grid,
            template,
            self._collect(Layout(template)),
            self._ok.reshape(shape),
            reasons.reshape(shape),
            choices,
            chosen,
            self._remarks,
            descriptors=dict(self._descriptors),
            point_derivatives=dict(self._derivatives),
        )


def build_family(
    models: Sequence[LinearModel], axes: Mapping[str, Sequence[float] | FloatArray] | None = None
) -> LinearFamily:
    """Return linear models of one plant as a family over ``axes``, by default the time where it differs, else a number.

    A grid where every combination of the values is there once; else a list of points.
    """
    if not models:
        raise UsageError("A family of linear models needs at least one linear model.")
    if axes is None:
        times = [m.point.time for m in models]
        axes = {"time": times} if len(set(times)) == len(times) > 1 else {"point": list(range(len(models)))}
    columns = {name: np.array(list(values), dtype=np.float64) for name, values in axes.items()}
    if bad := [n for n, v in columns.items() if v.shape != (len(models),) or not np.isfinite(v).all()]:
        raise UsageError(f"A family needs one finite value of '{bad[0]}' for each of the {len(models)} models.")
    parameters = dict.fromkeys(name for m in models for name in m.point.parameters)
    template = Template.of(models[0], tuple(parameters))
    grid, numbers = locate_on_grid(columns)
    builder = FamilyBuilder(grid)
    for i, (k, linear) in enumerate(zip(numbers, models, strict=True), start=1):
        outcome = build_outcome(k, linear, template, described=True)
        if not outcome.ok:
            raise UsageError(f"The linear models do not belong together: model {i}: {outcome.reason}")
        builder.add(outcome)
    return builder.family()
