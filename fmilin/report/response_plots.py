"""Bode and Nyquist diagrams, drawn by python-control, and steps: linear alone, or beside the nonlinear model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.report.figures import (
    COLORS,
    GRID,
    INK,
    QUIET,
    create_titled_figure,
    draw_grid,
    format_label,
    new_figure,
    plain,
)
from fmilin.signals import Signal, Signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fmilin.composition.linear_response import ResponseComparison
    from fmilin.design.frequency_response import FrequencyResponse

Names = Sequence[str] | None
Channels = tuple[list[int], list[int]]  # positions of inputs, and of outputs
MAX_CHANNELS = 4  # inputs, and outputs, in one figure where none are named
GENTLE_STEP_SIZE = 0.1  # how far a step moves the state that moves most, in its size, where no amplitude is given
MAX_SAMPLES = 5000  # of a sampled model's step
FIRST_PHASE = -80.0  # degrees: of those that are the same, the first phase is the nearest: 0, 180 down, -90, 90
ZERO_RESPONSE = 1e-12  # A transfer function smaller than this part of its terms is zero
MAX_HORIZON_FACTOR, MIN_HORIZON_FACTOR = 100.0, 4.0  # of a step's horizon, in fastest and in slowest time constants


def bode_figure(linear: LinearModel, *, inputs: Names = None, outputs: Names = None) -> Figure:
    """Return Bode diagrams of channels by name, the first four of each by default."""
    import control

    u, out = choose_channels(linear, inputs, outputs)
    figure = new_figure(4.5 * len(u) + 0.5, 4.5 * len(out), layout="constrained")
    axes = figure.subplots(2 * len(out), len(u), squeeze=False)
    with warnings.catch_warnings():  # of matplotlib, that zero has no place on a logarithmic axis
        warnings.simplefilter("ignore")
        control.frequency_response(linear.to_control()[out, u]).plot(ax=axes, initial_phase=FIRST_PHASE)
    for text in list(figure.texts):  # its own names of channels: ours have units
        text.remove()
    figure.suptitle(compose_title(linear, "Bode diagram", u, out), x=0.01, ha="left", fontweight="bold", fontsize=12)
    for column, j in enumerate(u):
        axes[0, column].set_title(f"from {format_label(linear.inputs[j])}", fontsize=10)
    for row, i in enumerate(out):
        axes[2 * row, 0].set_ylabel(f"{format_label(linear.outputs[i])}\nmagnitude")
    _restyle_lines(axes)
    for each in axes[1::2].ravel():
        _set_phase_ticks(each)
    without_response = np.array([[not _answers(linear, i, j) for j in u] for i in out])
    for (row, column), has_none in np.ndenumerate(without_response):
        if has_none:
            for each in axes[2 * row : 2 * row + 2, column]:
                _say_no_response(each)
            if without_response[row].all():
                axes[2 * row, column].set_yscale("linear")
    return figure


def create_measurement_figure(measured: FrequencyResponse, linear: LinearModel | None = None) -> Figure:
    """Return magnitude and phase of a measured response, one column for each output; a linear model's as lines."""
    width = 4.5 * len(measured.outputs) + 0.5
    figure = create_titled_figure(f"Measured response from {plain(measured.input.name)}", width, 5.0)
    grid = figure.subplots(2, len(measured.outputs), squeeze=False, sharex=True)
    responses = np.reshape(measured.response, (-1, *measured.response.shape[-2:]))
    dense = np.geomspace(measured.frequencies.min(), measured.frequencies.max(), 300)
    for column, signal in enumerate(measured.outputs):
        curves = [(measured.frequencies, responses[k, column], k) for k in range(len(responses))]
        if linear is not None:
            channel = linear.outputs.index_of(signal.name), linear.inputs.index_of(measured.input.name)
            curves.append((dense, linear.frequency_response(dense)[channel], -1))
        for w, G, k in curves:
            label = "linear model" if k < 0 else f"amplitude {measured.amplitudes[k]:.3g}"
            style = {"color": QUIET} if k < 0 else {"color": COLORS[k % len(COLORS)], "marker": "o", "linestyle": ""}
            order = np.argsort(w)
            grid[0, column].loglog(w[order], np.abs(G[order]), label=label, **style)
            grid[1, column].semilogx(w[order], np.degrees(np.unwrap(np.angle(G[order]))), **style)
        grid[0, column].set_ylabel(f"{format_label(signal)}\nmagnitude")
        grid[1, column].set(ylabel="phase [deg]", xlabel="frequency [rad/s]")
        for axes in grid[:, column]:
            draw_grid(axes)
    grid[0, 0].legend(frameon=False, fontsize=9)
    return figure


def nyquist_figure(linear: LinearModel, *, inputs: Names = None, outputs: Names = None) -> Figure:
    """Return Nyquist diagrams of channels by name, one panel each, the first four of each by default.

    A loop, whose sign is as wired, is drawn as -L: the critical point is -1, as in any textbook.
    """
    import control

    u, out = choose_channels(linear, inputs, outputs)
    figure = create_titled_figure(compose_title(linear, "Nyquist diagram", u, out), 4.6 * len(u), 4.4 * len(out))
    grid = figure.subplots(len(out), len(u), squeeze=False)
    is_loop = any(w.kind == "loop" for w in linear.warnings)
    system = -linear.to_control() if is_loop else linear.to_control()
    for (row, column), axes in np.ndenumerate(grid):
        i, j = out[row], u[column]
        if _answers(linear, i, j):
            with warnings.catch_warnings():  # of encirclements that it cannot count: nobody asked
                warnings.simplefilter("ignore")
                control.nyquist_plot(system[i, j], ax=axes, title="", color=COLORS[0])
            _zoom_to_curves(axes)
        else:
            _say_no_response(axes)
        channel = f"{plain(linear.inputs[j].name)} to {plain(linear.outputs[i].name)}"
        axes.set_title(f"-L, {channel}" if is_loop else channel, fontsize=10, loc="left")
        ratio = format_ratio(linear.outputs[i], linear.inputs[j])
        axes.set(xlabel=f"real part [{ratio}]", ylabel=f"imaginary part [{ratio}]")
        if (legend := axes.get_legend()) is not None:
            legend.remove()
        draw_grid(axes)
    return figure


def step_figure(
    linear: LinearModel,
    *,
    inputs: Names = None,
    outputs: Names = None,
    against: Model | None = None,
    amplitude: float | None = None,
    stop_time: float | None = None,
) -> Figure:
    """Return the deviations of outputs after a step of each input; those of the nonlinear model ``against`` beside it.

    Steps are of one unit by default; with a model, which moves on its manifold, such that no state moves far.
    """
    u, out = choose_channels(linear, inputs, outputs)
    _check(amplitude, stop_time)
    what = "Steps" if against is None else "Linear and nonlinear steps"
    figure = create_titled_figure(compose_title(linear, what, u, out), 4.2 * len(u) + 0.4, 1.3 + 2.2 * len(out))
    grid = figure.subplots(len(out), len(u), squeeze=False, sharex="col", sharey="row")
    for axes in grid.ravel():
        axes.axhline(0, color=QUIET, linewidth=0.8)
        axes.margins(x=0)
        draw_grid(axes)
    for row, i in enumerate(out):
        grid[row, 0].set_ylabel(f"Δ {format_label(linear.outputs[i])}")
    for axes in grid[-1]:
        axes.set_xlabel("time [s]")
    if against is None:
        _draw_steps(linear, grid, (u, out), amplitude or 1.0, stop_time)
    else:
        horizon = _horizon(linear) if stop_time is None else stop_time
        _draw_both(linear, against, grid, (u, out), amplitude, horizon)
    return figure


def _draw_steps(
    linear: LinearModel, grid: np.ndarray, channels: Channels, size: float, stop_time: float | None
) -> None:
    import control

    u, out = channels
    if isinstance(linear, DelayedLinearModel):
        for column, j in enumerate(u):
            source = linear.inputs[j]
            steps = linear.step_response(source.name, amplitude=size, stop_time=stop_time)
            grid[0, column].set_title(f"{size:g} {source.unit or 'unit'} of {plain(source.name)}", fontsize=10)
            for row, i in enumerate(out):
                grid[row, column].plot(steps.times, steps.outputs[:, i], color=COLORS[0], linewidth=1.8)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        response = control.step_response(linear.to_control()[out, u], T=_times(linear, stop_time), squeeze=False)
    style = {"color": COLORS[0], "linewidth": 1.8, "drawstyle": "steps-post" if linear.sample_time > 0 else "default"}
    for column, j in enumerate(u):
        source = linear.inputs[j]
        grid[0, column].set_title(f"{size:g} {source.unit or 'unit'} of {plain(source.name)}", fontsize=10)
        for row in range(len(out)):
            grid[row, column].plot(response.time, size * response.outputs[row, column], **style)


def _draw_both(
    linear: LinearModel, model: Model, grid: np.ndarray, channels: Channels, amplitude: float | None, horizon: float
) -> None:
    u, out = channels
    dashed = {"color": COLORS[1], "linewidth": 1.6, "linestyle": (0, (4, 2)), "label": "linear"}
    for column, j in enumerate(u):
        source = linear.inputs[j]
        size = _gentle(linear, j, horizon) if amplitude is None else amplitude
        responses = _both_steps(linear, model, j, size, horizon)
        grid[0, column].set_title(f"{size:.3g} {source.unit or 'units'} of {plain(source.name)}", fontsize=10)
        for row, i in enumerate(out):
            name, axes = linear.outputs[i].name, grid[row, column]
            k, start = responses.signals.index_of(name), linear.point.outputs[name]
            axes.plot(
                responses.times, responses.nonlinear[:, k] - start, color=COLORS[0], linewidth=2.4, label="nonlinear"
            )
            axes.plot(responses.times, responses.linear[:, k] - start, **dashed)
    grid[0, 0].legend(frameon=False, fontsize=9)


def _check(amplitude: float | None, stop_time: float | None) -> None:
    if amplitude is not None and (amplitude == 0 or not np.isfinite(amplitude)):
        raise UsageError(f"The amplitude of a step must not be {amplitude:g}: give another one.")
    if stop_time is not None and not (np.isfinite(stop_time) and stop_time > 0):
        raise UsageError(f"A step cannot be followed for {stop_time:g} s: give a positive time.")


def _both_steps(linear: LinearModel, model: Model, j: int, size: float, horizon: float) -> ResponseComparison:
    from fmilin.composition.linear_response import compare
    from fmilin.simulation.run import simulate

    linearized_model = model.with_interface(linear.inputs.names, linear.outputs.names)
    start = _point(linear, linearized_model)
    stepped = start.inputs.copy()
    stepped[j] += size
    moved = OperatingPoint(start.time, start.states, stepped)
    return compare(simulate(linearized_model, moved, stop_time=start.time + horizon), linear)


def _point(linear: LinearModel, model: Model) -> OperatingPoint:
    """Return the point of the linear model as one of the nonlinear model."""
    states, inputs = linear.point.states, linear.point.inputs
    if missing := [n for n in model.states.names if n not in states]:
        raise UsageError(
            f"The linear model is not that of '{model.info.name}': it has no state '{missing[0]}'. Name the model "
            "from which it was made."
        )
    x = np.array([states[n] for n in model.states.names])
    return OperatingPoint(linear.point.time, x, np.array([inputs[n] for n in model.inputs.names]))


def _times(linear: LinearModel, stop_time: float | None) -> np.ndarray | float | None:
    """Return the times of a step; None where python-control finds them, which it does well unless something grows."""
    if stop_time is None and all(m.eigenvalue.real <= 1e-9 * abs(m.eigenvalue) for m in linear.modes()):
        return None
    horizon = _horizon(linear) if stop_time is None else stop_time
    if linear.sample_time == 0:
        return horizon
    return linear.sample_time * np.arange(min(max(int(horizon / linear.sample_time), 1), MAX_SAMPLES) + 1)


def _horizon(linear: LinearModel) -> float:
    """Return how long a step is followed, in seconds: as long as its slow modes need, within reason."""
    s = np.array([m.eigenvalue for m in linear.modes() if np.isfinite(m.eigenvalue)])
    rates = np.abs(s[np.abs(s) > 1e-9 * np.abs(s).max(initial=0.0)])
    if not len(rates):
        return 1.0
    slow, fast = float(rates.min()), float(rates.max())
    growing = float(s.real.max())
    longest = min(4 * np.pi / slow, MAX_HORIZON_FACTOR * 2 * np.pi / fast)
    return min(longest, MIN_HORIZON_FACTOR / growing) if growing > 1e-9 * fast else longest


def _gentle(linear: LinearModel, j: int, horizon: float) -> float:
    """Return an amplitude whose linear response moves no state by more than a tenth of its size."""
    import control

    x0 = np.array([linear.point.states[n] for n in linear.full_states.names])
    sizes = linear.full_states.scales(x0)
    states = control.ss(linear.A, linear.B[:, [j]], linear.T / sizes[:, None], linear.T_u[:, [j]] / sizes[:, None])
    response = control.forced_response(states, np.linspace(0.0, horizon, 200), np.ones((1, 200)), squeeze=False)
    largest = float(np.max(np.abs(response.outputs), initial=0.0))
    size = GENTLE_STEP_SIZE / largest if largest > 0 else 1.0
    return float(f"{size:.1g}")


def _answers(linear: LinearModel, i: int, j: int) -> bool:
    """Whether output i answers to input j at all: its transfer function is not zero, as far as rounding lets see."""
    size = float(np.abs(linear.eigenvalues()).max(initial=0.0)) or 1.0
    for point in (
        size * np.exp(1j * np.array([0.0, 0.4, 1.1])) * (1.5 if linear.sample_time == 0 else 3.0 / min(size, 1))
    ):
        inverse = np.linalg.inv(point * np.eye(len(linear.A)) - linear.A)
        value = linear.C[i] @ inverse @ linear.B[:, j] + linear.D[i, j]
        terms = np.abs(linear.C[i]) @ np.abs(inverse) @ np.abs(linear.B[:, j]) + abs(linear.D[i, j])
        if abs(value) > ZERO_RESPONSE * terms:
            return True
    return False


def _say_no_response(axes: Axes) -> None:
    """Say that a channel has no response, in the place of its curve."""
    for line in list(axes.lines):
        line.remove()
    axes.relim()
    axes.text(0.5, 0.5, "no response", transform=axes.transAxes, ha="center", va="center", color=QUIET)


def format_ratio(output: Signal, source: Signal) -> str:
    """Return the unit of a channel: that of the output over that of the input."""
    top, below = (f"({unit})" if any(c in unit for c in "/ .*") else unit for unit in (output.unit or "1", source.unit))
    return top if below in ("", "1") else f"{top}/{below}"


def _zoom_to_curves(axes: Axes) -> None:
    """Show the curves; the critical point -1 too, unless it is so far away that they would be a dot beside it."""
    curves = [np.asarray(line.get_xydata()) for line in axes.lines if len(np.atleast_1d(line.get_xdata())) > 2]
    points = np.concatenate(curves)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points) or float(np.ptp(points, axis=0).max()) > 0.2:
        return
    low, high = points.min(axis=0), points.max(axis=0)
    room = 0.08 * float((high - low).max()) or 1e-3
    axes.set(xlim=(low[0] - room, high[0] + room), ylim=(low[1] - room, high[1] + room))
    axes.ticklabel_format(scilimits=(-2, 3))


def _set_phase_ticks(axes: Axes) -> None:
    """Give a phase at least two quarter turns of room, and ticks at eighths, fewer where it turns far."""
    from matplotlib.ticker import MultipleLocator

    low, high = (
        90.0 * round_(limit / 90.0) for round_, limit in zip((np.floor, np.ceil), axes.get_ylim(), strict=True)
    )
    low, high = (low, high) if high - low >= 180.0 else ((low + high) / 2 - 90.0, (low + high) / 2 + 90.0)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(MultipleLocator(45.0 if high - low <= 270.0 else 90.0 * np.ceil((high - low) / 630.0)))


def _restyle_lines(axes: np.ndarray) -> None:
    """Give python-control's lines our colours, thick enough for print."""
    for each in axes.ravel():
        for line in each.lines:
            if len(np.atleast_1d(np.asarray(line.get_xdata()))) > 2:
                line.set(color=COLORS[0], linewidth=1.8)
            elif line.get_color() != INK:
                line.set(color=QUIET, linewidth=0.8)
        each.grid(visible=True, which="major", color=GRID, linewidth=0.7)
        each.grid(visible=False, which="minor")


def choose_channels(linear: LinearModel, inputs: Names, outputs: Names) -> tuple[list[int], list[int]]:
    """Return the positions of inputs and of outputs by name, the first four of each where none are named."""
    u = _positions(linear.inputs, inputs, "an input of the linear model")
    out = _positions(linear.outputs, outputs, "an output of the linear model")
    if not u or not out:
        raise UsageError("There is no channel to draw: a channel needs an input and an output.")
    return u, out


def _positions(signals: Signals, names: Names, what: str) -> list[int]:
    if names is None:
        return list(range(min(len(signals), MAX_CHANNELS)))
    return [signals.index_of(name, what) for name in names]


def compose_title(linear: LinearModel, what: str, u: Sequence[int], out: Sequence[int]) -> str:
    """Return the title of a picture of some channels of a model."""
    selections = [
        f"{len(few)} of {len(all_of)} {word}"
        for few, all_of, word in ((u, linear.inputs, "inputs"), (out, linear.outputs, "outputs"))
        if len(few) < len(all_of)
    ]
    return f"{what}: {plain(linear.model.name, 40)}" + (f" ({', '.join(selections)})" if selections else "")
