"""Motions over time: signals by name in panels by unit, inputs with their limits, a linear model, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fmilin.composition.linear_response import ResponseComparison, compare
from fmilin.errors import UnknownNameError
from fmilin.report.figures import INK, QUIET, create_titled_figure, draw_grid, format_unit, line_style, plain
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import InputTable
from fmilin.simulation.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.linear_model.model import LinearModel

MAX_AXIS_RATIO = 4.0  # of the range of an axis to the largest motion on it
MAX_SIGNALS = 24  # drawn where none are named
MAX_EVENTS = 50  # marked: more lines hide the curves
SAMPLE = "time"  # the cause of events at given times: samples of a regulator, of which there are many
LINEAR_STYLE: dict[str, Any] = {"color": INK, "linewidth": 1.1, "linestyle": (0, (4, 2.5))}


class DrawnSignal(NamedTuple):
    """One signal over time."""

    name: str
    unit: str
    values: FloatArray
    is_input: bool


def draw_motion(
    trajectory: Trajectory,
    *names: str,
    linear: LinearModel | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Return a panel for each unit of the signals, inputs below in panels of their own."""
    courses = choose_courses(trajectory, names)
    drawn = courses if names else courses[:MAX_SIGNALS]
    panels = arrange_panels(drawn)
    for name in limits or {}:
        if all(course.name != name for course in drawn):
            raise UnknownNameError.among(name, [course.name for course in drawn], "a signal of the picture")
    of_loop = {name: pair for name, pair in trajectory.limits.items() if any(course.name == name for course in drawn)}
    all_limits = {**of_loop, **(limits or {})}
    comparison = None if linear is None else _compare(trajectory, linear)
    omitted = f" ({len(drawn)} of {len(courses)} signals)" if len(drawn) < len(courses) else ""
    of_model = f" of {plain(trajectory.model_name, 40)}" if trajectory.model_name else ""
    title = f"Motion{of_model} over {trajectory.times[-1] - trajectory.times[0]:g} s{omitted}"
    figure = create_titled_figure(title, 9.5, 0.9 + 2.1 * max(len(panels), 1))
    grid = figure.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False)[:, 0]
    for axes, members in zip(grid, panels, strict=False):
        is_input, unit = members[0].is_input, members[0].unit
        _draw_panel(axes, trajectory, members, comparison, all_limits)
        single = f"{plain(members[0].name)} " if len(members) == 1 else ""
        axes.set_ylabel(f"{single}[{format_unit(unit)}]")
        if is_input:
            axes.set_title("inputs", fontsize=9.5, loc="left", color=QUIET)
    times = [event.time for event in trajectory.events if event.jumped or event.cause != SAMPLE]
    for number, time in enumerate(times[:MAX_EVENTS]):
        for axes in grid:
            axes.axvline(time, color=QUIET, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        if not number:
            count = f"{len(times)} events" if len(times) <= MAX_EVENTS else f"{MAX_EVENTS} of {len(times)} events"
            grid[0].plot([], [], color=QUIET, linewidth=0.9, linestyle=(0, (1, 2)), label=count)
    for axes in grid:
        draw_grid(axes)
        axes.margins(x=0)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    grid[-1].set_xlabel("time [s]")
    return figure


def arrange_panels(courses: Sequence[DrawnSignal]) -> list[list[DrawnSignal]]:
    """Return the signals of each panel: those of one unit that can be read on one axis, inputs last.

    An angle that moves by 0.1 around 3.1 next to one around 0 would be two flat lines.
    """
    panels: list[list[DrawnSignal]] = []
    for course in courses:
        for members in panels:
            is_alike = (members[0].is_input, members[0].unit) == (course.is_input, course.unit)
            if is_alike and _fit_one_axis([*members, course]):
                members.append(course)
                break
        else:
            panels.append([course])
    return sorted(panels, key=lambda members: members[0].is_input)


def _fit_one_axis(courses: Sequence[DrawnSignal]) -> bool:
    """Whether the largest motion is a visible part of the axis that all of them need."""
    finite = [course.values[np.isfinite(course.values)] for course in courses]
    ranges = [(float(values.min()), float(values.max())) for values in finite if len(values)]
    if not ranges:
        return True
    span = max(high for _, high in ranges) - min(low for low, _ in ranges)
    largest = max(high - low for low, high in ranges)
    return largest == 0 or span <= MAX_AXIS_RATIO * largest


def choose_courses(trajectory: Trajectory, names: Sequence[str]) -> list[DrawnSignal]:
    """Return the named signals; without names the outputs, else the states, and the inputs."""
    groups = (
        (trajectory.output_signals, False),
        (trajectory.state_signals, False),
        (trajectory.input_signals, True),
    )
    if not names:
        main_group = groups[0] if len(trajectory.output_signals) else groups[1]
        return [
            DrawnSignal(s.name, s.unit, trajectory[s.name], is_input)
            for signals, is_input in (main_group, groups[2])
            for s in signals
        ]
    courses = []
    for name in names:
        values = trajectory[name]  # raises UnknownNameError with the nearest names
        signals, is_input = next((group, flag) for group, flag in groups if group.has(name))
        courses.append(DrawnSignal(name, signals[signals.index_of(name)].unit, values, is_input))
    return courses


def _compare(trajectory: Trajectory, linear: LinearModel) -> ResponseComparison:
    """Return the linear model's response to the inputs as they were."""
    names = trajectory.input_signals.names
    if not names:
        return compare(trajectory, linear)
    return compare(trajectory, linear, inputs=InputTable(trajectory.times, tuple(names), trajectory.inputs))


def _draw_panel(
    axes: Axes,
    trajectory: Trajectory,
    members: Sequence[DrawnSignal],
    comparison: ResponseComparison | None,
    limits: Mapping[str, tuple[float, float]],
) -> None:
    has_linear = has_limits = False
    for number, course in enumerate(members):
        style = line_style(number)
        axes.plot(trajectory.times, course.values, linewidth=1.7, label=plain(course.name), **style)
        if comparison is not None and not course.is_input and comparison.signals.has(course.name):
            values = comparison.linear[:, comparison.signals.positions[course.name]]
            axes.plot(comparison.times, values, **LINEAR_STYLE, label=None if has_linear else "linear model")
            has_linear = True
        for bound in limits.get(course.name, ()):
            if np.isfinite(bound):
                label = None if has_limits else "limits"
                axes.axhline(bound, color=style["color"], linewidth=1.0, linestyle=(0, (1, 1)), label=label)
                has_limits = True
