"""Sweeps of delays: linear models with delays over a grid of operating points and delays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.errors import FmilinError, UsageError
from fmilin.families.delayed_family import DelayedFamily, DelayedPoint
from fmilin.families.grid import Grid, build_grid
from fmilin.families.open_models import OpenModels
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linear_model.delay_sweep import compute_rightmost, count_growing, locate_changes
from fmilin.linear_model.delay_sweep_record import StabilityChange
from fmilin.linear_model.model import DelayedLinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.model.capabilities import HasDelays, remove_delays
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, RealArray
from fmilin.trimming.request_point import find_point
from fmilin.trimming.search_algorithm import search

EIGENVALUE_COUNT = 2  # rightmost ones that are kept at each point


def build_delay_grid(
    vary: Mapping[str, Sequence[float] | RealArray],
    delays: Mapping[str, Sequence[float] | RealArray],
    *,
    zipped: bool = False,
) -> Grid:
    """Return the grid over quantities of the model and, behind these, delays."""
    for name in delays:
        if name in vary:
            raise UsageError(f"'{name}' is varied as a value and as a delay. Vary one of them in a sweep.")
    grid = build_grid({**vary, **delays}, zipped=zipped)
    for name in delays:
        if (grid.axes[name] < 0).any():
            raise UsageError(f"The delay of '{name}' is {grid.axes[name].min():g} s: a delay is not negative.")
    return grid


def run_delay_sweep(
    plan: SweepPlan,
    delay_names: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
) -> DelayedFamily:
    """Return the family of a plan; the last axes of its grid are the delays of these names."""
    names = tuple(delay_names)
    solver = _DelaySolver(plan, names)
    points: list[DelayedPoint] = []
    try:
        solver.check()
        for number in range(plan.grid.size):
            points.append(solver.solve(number))
            if progress is not None:
                progress(number + 1, plan.grid.size)
        return DelayedFamily(solver.name, plan.grid, names, tuple(points), _list_changes(plan.grid, names, points))
    finally:
        solver.close()


class _DelaySolver:
    """Computes the points of a plan in their order; the linear model of an operating point serves all delays there."""

    def __init__(self, plan: SweepPlan, delay_names: tuple[str, ...]) -> None:
        self._plan, self._delay_names = plan, delay_names
        self._models = OpenModels(plan)
        self._values: Mapping[str, float] | None = None  # of the operating point that was linearized last
        self._linear: DelayedLinearModel | FmilinError | None = None
        self._predecessor: OperatingPoint | None = None
        self.name = self._models.base.info.name

    def close(self) -> None:
        """Close the models that were opened here."""
        self._models.close()

    def check(self) -> None:
        """Raise an error for names that the model does not have."""
        for name, value in self._split(0)[0].items():
            if self._models.find_kind(name) == "parameter":
                self._models.require_parameter(name, value)

    def _split(self, number: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return the values of the operating point of this number, and the delays."""
        values = self._plan.grid.values(number)
        delays = {name: values.pop(name) for name in self._delay_names}
        return values, delays

    def solve(self, number: int) -> DelayedPoint:
        """Return the point of this number."""
        values, delays = self._split(number)
        if values != self._values:
            self._values, self._linear = values, self._linearize(values, delays)
        try:
            if isinstance(self._linear, FmilinError) or self._linear is None:
                raise self._linear or UsageError("There is no linear model.")
            linear = self._linear.with_delay_values(_find_channels(self._linear, delays))
            eigenvalues, errors = compute_rightmost(linear, EIGENVALUE_COUNT)
            return DelayedPoint(linear, eigenvalues, errors, count_growing(linear))
        except FmilinError as error:
            missing = np.full(EIGENVALUE_COUNT, np.nan)
            return DelayedPoint(None, missing.astype(np.complex128), missing, None, " ".join(str(error).split()))

    def _linearize(self, values: Mapping[str, float], delays: Mapping[str, float]) -> DelayedLinearModel | FmilinError:
        """Return the linear model at an operating point with the delays of its first point; the error of a failure."""
        try:
            model = self._models.find(values)
            point = self._find_point(model, values)
            own_channels = _list_channels(model, point)
            added = {name: seconds for name, seconds in delays.items() if name not in own_channels}
            linear = linearize_request(model, point, replace(self._plan.how, delays=added))
        except UsageError:
            raise
        except FmilinError as error:
            return error
        self._predecessor = point
        if not isinstance(linear, DelayedLinearModel):
            raise UsageError(
                f"'{self.name}' has no delays, and none is given. Name signals: delays={{'u': [0.1, 0.2]}}."
            )
        return linear

    def _find_point(self, model: Model, values: Mapping[str, float]) -> OperatingPoint:
        plan, undelayed = self._plan, remove_delays(model)
        if plan.point.trim is None:
            return find_point(undelayed, plan.request_point(values))
        request, guess = plan.point.build_trim(undelayed)
        varied = {name: value for name, value in values.items() if self._models.find_kind(name) != "parameter"}
        request = replace(request, fixed={**request.fixed, **varied})
        if self._predecessor is not None:
            near: FloatArray = self._predecessor.states
            states = dict(zip(undelayed.states.names, near.tolist(), strict=True))
            guess = {**{name: value for name, value in states.items() if name not in request.fixed}, **guess}
        return search(undelayed, request, guess)


def _list_channels(model: Model, point: OperatingPoint) -> tuple[str, ...]:
    """Return the names of the delays that a model has itself."""
    if not isinstance(model, HasDelays):
        return ()
    cut = model.cut_delays(point)
    return (*cut.channels, *cut.of_inputs)


def _find_channels(linear: DelayedLinearModel, delays: Mapping[str, float]) -> dict[str, float]:
    """Return delays by the names of the channels: the name of an array stands for all its elements."""
    seconds: dict[str, float] = {}
    for name, value in delays.items():
        elements = [channel for channel in linear.delays if channel.startswith(f"{name}[")]
        seconds |= dict.fromkeys(elements if elements and name not in linear.delays else [name], value)
    return seconds


def _list_changes(
    grid: Grid, delay_names: tuple[str, ...], points: Sequence[DelayedPoint]
) -> tuple[StabilityChange, ...]:
    """Return the changes of stability along the lines on which nothing but delays changes."""
    if not delay_names or (grid.zipped and len(delay_names) < len(grid.axes)):
        return ()
    axes = delay_names if grid.zipped else delay_names[-1:]
    length = grid.shape[-1]
    changes: list[StabilityChange] = []
    for first in range(0, grid.size, length):
        line = points[first : first + length]
        linear = next((point.linear for point in line if point.linear is not None), None)
        if linear is None:
            continue
        on_line = locate_changes(
            _interpolate_delays(linear, {name: grid.axes[name] for name in axes}), [point.unstable for point in line]
        )
        at = {name: value for name, value in grid.values(first).items() if name not in delay_names}
        changes += [replace(change, at=at) for change in on_line]
    return tuple(changes)


def _interpolate_delays(
    linear: DelayedLinearModel, axes: Mapping[str, FloatArray]
) -> Callable[[float], DelayedLinearModel]:
    """Return a function of a position 0, 1, ... along a line of the grid that returns the linear model there."""

    def make_model(position: float) -> DelayedLinearModel:
        delays = {name: float(np.interp(position, np.arange(len(values)), values)) for name, values in axes.items()}
        return linear.with_delay_values(_find_channels(linear, delays))

    return make_model
