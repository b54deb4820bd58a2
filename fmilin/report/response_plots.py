"""Channels of pictures, measured responses, and steps: linear alone, or with the nonlinear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.model.interface import Model, OperatingPoint
from fmilin.report.figures import (
    COLORS,
    QUIET,
    create_titled_figure,
    draw_grid,
    format_label,
    format_ratio,
    format_unit,
    label_short_decades,
    plain,
)
from fmilin.report.frequency_curves import convert_to_decibels, unwrap_phase
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
DELAYED_TEST_FREQUENCIES = np.array([1e-3, 0.3, 1.1, 17.0])  # rad/s, at which a model with delays is examined
ZERO_RESPONSE = 1e-12  # A transfer function smaller than this part of its terms is zero
MAX_HORIZON_FACTOR, MIN_HORIZON_FACTOR = 100.0, 4.0  # of a step's horizon, in fastest and in slowest time constants


def create_measurement_figure(
    measured: FrequencyResponse, linear: LinearModel | None = None, *, db: bool = True
) -> Figure:
    """Return magnitude and phase of a measured response, one column for each output; a linear model's as lines.

    Magnitudes are in dB, or with ``db=False`` factors.
    """
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
            amplitude = f"{measured.amplitudes[k]:.3g} {format_unit(measured.input.unit)}"
            label = "linear model" if k < 0 else f"amplitude {amplitude}"
            style = {"color": QUIET} if k < 0 else {"color": COLORS[k % len(COLORS)], "marker": "o", "linestyle": ""}
            order = np.argsort(w)
            sizes = np.abs(G[order])
            grid[0, column].semilogx(w[order], convert_to_decibels(sizes) if db else sizes, label=label, **style)
            grid[1, column].semilogx(w[order], unwrap_phase(G[order]), **style)
        if not db:
            grid[0, column].set_yscale("log")
        ratio = format_ratio(signal, measured.input)
        grid[0, column].set_ylabel(f"{plain(signal.name)}\nmagnitude {name_magnitude_unit(ratio, db=db)}")
        grid[1, column].set(ylabel="phase [deg]", xlabel="frequency [rad/s]")
        for axes in grid[:, column]:
            draw_grid(axes)
    label_short_decades(grid[0, 0])  # all panels share the axis
    grid[0, 0].legend(frameon=False, fontsize=9)
    return figure


def name_magnitude_unit(ratio: str, *, db: bool) -> str:
    """Return the unit of a magnitude as it is written next to an axis."""
    if not db:
        return f"[{ratio}]"
    return "[dB]" if ratio == "1" else f"[dB]\nre {ratio}"


def step_figure(
    linear: LinearModel,
    *,
    inputs: Names = None,
    outputs: Names = None,
    against: Model | None = None,
    amplitude: float | None = None,
    stop_time: float | None = None,
) -> Figure:
    """Return the deviations of outputs after a step of each input; and those of the nonlinear model ``against``.

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
    for axes in grid.ravel():
        axes.ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
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


def _unit(source: Signal) -> str:
    return format_unit(source.unit) if source.unit else "unit"


def _draw_steps(
    linear: LinearModel, grid: np.ndarray, channels: Channels, size: float, stop_time: float | None
) -> None:
    import control

    u, out = channels
    if isinstance(linear, DelayedLinearModel):
        for column, j in enumerate(u):
            source = linear.inputs[j]
            steps = linear.step_response(source.name, amplitude=size, stop_time=stop_time)
            grid[0, column].set_title(f"{size:g} {_unit(source)} of {plain(source.name)}", fontsize=10)
            for row, i in enumerate(out):
                grid[row, column].plot(steps.times, steps.outputs[:, i], color=COLORS[0], linewidth=1.8)
        return
    with np.errstate(over="ignore", invalid="ignore"):
        response = control.step_response(linear.to_control()[out, u], T=_times(linear, stop_time), squeeze=False)
    style = {"color": COLORS[0], "linewidth": 1.8, "drawstyle": "steps-post" if linear.sample_time > 0 else "default"}
    for column, j in enumerate(u):
        source = linear.inputs[j]
        grid[0, column].set_title(f"{size:g} {_unit(source)} of {plain(source.name)}", fontsize=10)
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
        grid[0, column].set_title(f"{size:.3g} {_unit(source)} of {plain(source.name)}", fontsize=10)
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
    """Return an amplitude with a linear response that moves each state by at most a tenth of its size."""
    import control

    x0 = np.array([linear.point.states[n] for n in linear.full_states.names])
    sizes = linear.full_states.scales(x0)
    states = control.ss(linear.A, linear.B[:, [j]], linear.T / sizes[:, None], linear.T_u[:, [j]] / sizes[:, None])
    response = control.forced_response(states, np.linspace(0.0, horizon, 200), np.ones((1, 200)), squeeze=False)
    largest = float(np.max(np.abs(response.outputs), initial=0.0))
    size = GENTLE_STEP_SIZE / largest if largest > 0 else 1.0
    return float(f"{size:.1g}")


def has_response(linear: LinearModel, i: int, j: int) -> bool:
    """Whether output i answers to input j at all: its transfer function is not zero, as far as rounding lets see."""
    if isinstance(linear, DelayedLinearModel):
        return bool(np.abs(linear.frequency_response(DELAYED_TEST_FREQUENCIES)[i, j]).max() > 0)
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


def write_no_response(axes: Axes) -> None:
    """Say that a channel has no response, in the place of its curve."""
    for line in list(axes.lines):
        line.remove()
    axes.relim()
    axes.text(0.5, 0.5, "no response", transform=axes.transAxes, ha="center", va="center", color=QUIET)


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
