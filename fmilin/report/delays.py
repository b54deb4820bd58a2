"""Tables and pictures of linear models with delays: the delays are exact in each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError, cut_list
from fmilin.linear_model.delayed import get_form
from fmilin.linear_model.model import DEFAULT_EIGENVALUE_COUNT, DelayedLinearModel, LinearModel
from fmilin.linear_model.modes import cluster_modes
from fmilin.numerics.delay_loops import list_loop_parts
from fmilin.report.facts import Fact, print_fact, print_facts, print_remarks
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, draw_grid, format_label, plain
from fmilin.report.linear_pictures import rays
from fmilin.report.numbers import shorten_name
from fmilin.report.response_plots import Names, choose_channels, compose_title, format_ratio
from fmilin.report.table import eigenvalue_table, list_facts
from fmilin.signals import FloatArray
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_DELAY_NAMES = 8
TABLE_EIGENVALUE_COUNT = 12
MIN_FREQUENCY_COUNT, MAX_FREQUENCY_COUNT = 800, 20_000
POINTS_PER_RADIAN = 4.0  # of the phase of the delays, so that it can be unwrapped
DELAY_TURN_COUNT = 3.0  # full turns of the longest delay that a diagram shows at least
NYQUIST_LIMIT = 5.0  # largest modulus in a Nyquist diagram, in units of the larger of 1 and the median


def show_delayed_model(model: DelayedLinearModel, page: Sheet) -> None:
    """Print a linear model with delays, with its rightmost eigenvalues."""
    print_facts(page, _list_facts(model))
    page.print()
    if neutral := model.form.close_undelayed().find_neutral_channels():
        names = [name for name, seconds in model.delays.items() if seconds > 0]
        page.print(f"Neutral: {', '.join(names[i] for i in neutral)} on a loop without a state. Its eigenvalues are")
        page.print("not computed; frequency responses are exact.")
    elif len(model.states):
        modes = model.modes(TABLE_EIGENVALUE_COUNT)
        is_infinite = any(part.channels for part in list_loop_parts(model.form.close_undelayed()))
        page.print(eigenvalue_table(cluster_modes(modes), name="Rightmost eigenvalue" if is_infinite else "Eigenvalue"))
        page.print()
        print_fact(page, "Stability", model.stability().text)
    page.print()
    print_remarks(page, model.warnings)
    if all(remark.is_information for remark in model.warnings):
        page.print("No warnings.")


def _list_facts(model: DelayedLinearModel) -> Iterator[Fact]:
    """Yield the facts of the core with the signals of the whole, and the delays."""
    inner = tuple(f"{shorten_name(name)} = " for name in model.core.inputs.names[len(model.inputs) :])
    for word, all_pieces in list_facts(model.core):
        pieces = [piece for piece in all_pieces if not piece.startswith(inner)]
        if word in {"Inputs", "Outputs"}:
            signals = model.inputs if word == "Inputs" else model.outputs
            yield word, cut_list([shorten_name(name) for name in signals.names], MAX_DELAY_NAMES) or ["none"]
        elif pieces:
            yield word, pieces
        if word == "Outputs":
            texts = [f"{shorten_name(name)} by {seconds:g} s" for name, seconds in model.delays.items()]
            yield "Delays", cut_list(texts, MAX_DELAY_NAMES)


def draw_eigenvalues(linear: LinearModel, naive: LinearModel | None = None) -> Figure:
    """Return a picture of the rightmost eigenvalues, with circles where they are not known well."""
    from matplotlib.patches import Circle

    if naive is not None:
        raise UsageError("The eigenvalues of a model with delays have no naive Jacobian beside them.")
    values, errors = linear.eigenvalues(), linear.eigenvalue_errors()
    if not len(values):
        raise UsageError("The linear model has no states, so it has no eigenvalues to draw.")
    figure = create_titled_figure(f"Eigenvalues of {plain(linear.model.name, 60)}", 6.5, 5.6, None)
    axes = figure.subplots()
    height = 1.15 * float(np.abs(values.imag).max()) or 1.0
    width = 1.15 * max(float(-values.real.min()), 0.0) or 0.2 * height
    right = max(1.3 * float(values.real.max()), 0.2 * width)
    rays(axes, width, right, height)
    axes.set(xlim=(-width, right), ylim=(-height, height))
    text = f"{DEFAULT_EIGENVALUE_COUNT} rightmost of infinitely many" if len(values) >= DEFAULT_EIGENVALUE_COUNT else ""
    label = text or f"{len(values)} eigenvalues"
    style: dict[str, Any] = {
        "color": COLORS[0],
        "markersize": 9,
        "markeredgewidth": 2.2,
        "linestyle": "none",
        "zorder": 4,
    }
    axes.plot(values.real, values.imag, "x", label=label, **style)
    for value, error in zip(values.tolist(), errors.tolist(), strict=True):
        if error > 5e-3 * height:
            axes.add_patch(Circle((value.real, value.imag), error, color=COLORS[0], alpha=0.15, zorder=2))
    axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def choose_frequencies(linear: LinearModel) -> FloatArray:
    """Return frequencies in rad/s around the eigenvalues of the core and some turns of the longest delay."""
    poles = np.abs(np.linalg.eigvals(get_form(linear).A)) if len(linear.states) else np.empty(0)
    poles = poles[poles > 1e-9 * poles.max(initial=0.0)]
    seconds = np.array([value for value in linear.delays.values() if value > 0])
    turns = DELAY_TURN_COUNT * 2 * np.pi / seconds.max() if len(seconds) else 0.0
    corners = [*poles.tolist(), *(1.0 / seconds).tolist()] or [1.0]
    low, high = 0.1 * min(corners), max(10.0 * float(poles.max(initial=0.0)), turns, 10.0 * min(corners))
    count = int(POINTS_PER_RADIAN * high * float(seconds.sum()))
    dense = np.linspace(low, high, min(max(count, MIN_FREQUENCY_COUNT), MAX_FREQUENCY_COUNT))
    return np.unique(np.concatenate((np.geomspace(low, high, MIN_FREQUENCY_COUNT), dense)))


def draw_bode(linear: LinearModel, *, inputs: Names = None, outputs: Names = None) -> Figure:
    """Return magnitudes and phases of channels by name, the first four of each by default."""
    u, out = choose_channels(linear, inputs, outputs)
    w = choose_frequencies(linear)
    G = linear.frequency_response(w)
    title = compose_title(linear, "Bode diagram", u, out)
    figure = create_titled_figure(title, 4.5 * len(u) + 0.5, 4.5 * len(out))
    axes = figure.subplots(2 * len(out), len(u), squeeze=False, sharex=True)
    for column, j in enumerate(u):
        axes[0, column].set_title(f"from {format_label(linear.inputs[j])}", fontsize=10)
        for row, i in enumerate(out):
            magnitude, phase = axes[2 * row, column], axes[2 * row + 1, column]
            _draw_response(magnitude, phase, w, G[i, j])
            if column == 0:
                magnitude.set_ylabel(f"{format_label(linear.outputs[i])}\nmagnitude")
                phase.set_ylabel("phase [deg]")
        axes[-1, column].set_xlabel("frequency [rad/s]")
    return figure


def _draw_response(magnitude: Axes, phase: Axes, w: FloatArray, G: NDArray[np.complex128]) -> None:
    for axes in (magnitude, phase):
        draw_grid(axes)
    if not np.abs(G).max() > 0:
        magnitude.text(0.5, 0.5, "no response", transform=magnitude.transAxes, ha="center", va="center", color=QUIET)
        return
    angles = np.unwrap(np.angle(G))
    magnitude.loglog(w, np.abs(G), color=COLORS[0], linewidth=1.8)
    phase.semilogx(w, np.degrees(angles), color=COLORS[0], linewidth=1.8)


def draw_nyquist(linear: LinearModel, *, inputs: Names = None, outputs: Names = None) -> Figure:
    """Return Nyquist diagrams of channels; of a loop, the sign of which is as wired, -L with the critical point -1."""
    u, out = choose_channels(linear, inputs, outputs)
    is_loop = any(remark.kind == "loop" for remark in linear.warnings)
    G = linear.frequency_response(choose_frequencies(linear)) * (-1.0 if is_loop else 1.0)
    title = compose_title(linear, "Nyquist diagram", u, out)
    figure = create_titled_figure(title, 4.6 * len(u), 4.4 * len(out))
    grid = figure.subplots(len(out), len(u), squeeze=False)
    for (row, column), axes in np.ndenumerate(grid):
        i, j = out[row], u[column]
        curve = G[i, j]
        axes.plot(curve.real, curve.imag, color=COLORS[0], linewidth=1.8, label="ω > 0")
        axes.plot(curve.real, -curve.imag, color=COLORS[0], linewidth=1.0, linestyle=(0, (4, 2)), label="ω < 0")
        axes.plot([-1.0], [0.0], "+", color=COLORS[1], markersize=10, markeredgewidth=2)
        limit = NYQUIST_LIMIT * max(1.0, float(np.median(np.abs(curve))))
        if float(np.abs(curve).max()) > limit:
            axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
        channel = f"{plain(linear.inputs[j].name)} to {plain(linear.outputs[i].name)}"
        axes.set_title(f"-L, {channel}" if is_loop else channel, fontsize=10, loc="left")
        ratio = format_ratio(linear.outputs[i], linear.inputs[j])
        axes.set(xlabel=f"real part [{ratio}]", ylabel=f"imaginary part [{ratio}]")
        draw_grid(axes)
    return figure
