"""Pictures of one linear model as figures of matplotlib, for notebooks and scripts: ``lin.plot.bode()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Mode
from fmilin.report.eigenvalue_picture import QUIET, TRUE, UNSTABLE
from fmilin.report.figures import new_figure, open_sides
from fmilin.report.numbers import eigenvalue_text, shortened
from fmilin.signals import FloatArray, Signal, Signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plots"]

MOST_CHANNELS = 4
"""Inputs, and outputs, in one figure where none are named."""

MOST_MODES, MOST_STATES = 6, 12

LONGEST_LABEL = 26
"""Characters beside an axis."""

RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Damping ratios with a ray."""


class Plots:
    """Draws a linear model; every method returns a ``matplotlib.figure.Figure`` with units on its axes.

    Parameters
    ----------
    linear : LinearModel
    """

    def __init__(self, linear: LinearModel) -> None:
        self._linear = linear

    def eigenvalues(self) -> Figure:
        """Return the eigenvalues in the complex plane, with rays of equal damping; of a sampled model log(z) / T.

        Raises
        ------
        UsageError
            When there are none.
        """
        modes = self._modes()
        s = np.array([m.eigenvalue for m in modes if np.isfinite(m.eigenvalue)])
        s = np.concatenate((s, s[s.imag > 0].conj()))
        reach = 1.15 * float(np.max(np.abs(s), initial=0.0)) or 1.0
        figure, axes = self._one("Eigenvalues")
        axes.axvspan(0, reach, color=UNSTABLE, zorder=0, label="unstable half plane")
        for ratio in RATIOS:
            along, up = -0.9 * ratio * reach, 0.9 * np.sqrt(1 - ratio**2) * reach
            for sign in (1, -1):
                axes.plot([0, along], [0, sign * up], ":", color=QUIET, linewidth=0.8, zorder=1)
            axes.annotate(f"{ratio:g}", (along, up), color=QUIET, fontsize=8, ha="right")
        axes.axhline(0, color=QUIET, linewidth=0.8)
        axes.plot(s.real, s.imag, "x", color=TRUE, markersize=9, markeredgewidth=2, label=f"{len(s)} eigenvalues")
        axes.set(xlabel="real part [1/s]", ylabel="imaginary part [rad/s]", xlim=(-reach, reach), ylim=(-reach, reach))
        axes.legend(frameon=False, fontsize=9, loc="lower left")
        return figure

    def modes(self) -> Figure:
        """Return the shapes of the slowest modes as bars with their phase, the states that move most.

        Raises
        ------
        UsageError
            When there are none.
        """
        modes = self._modes()
        shown = modes[:MOST_MODES]
        rows = min(len(self._linear.full_states), MOST_STATES)
        figure = new_figure(5.0 * min(len(shown), 2), (1.0 + 0.3 * rows) * -(-len(shown) // 2), layout="constrained")
        left = f" ({len(shown)} slowest of {len(modes)})" if len(modes) > len(shown) else ""
        figure.suptitle(f"Modes of {_plain(self._linear.model.name)}{left}", fontweight="bold")
        grid = figure.subplots(-(-len(shown) // 2), min(len(shown), 2), squeeze=False).ravel()
        for axes, mode in zip(grid, shown, strict=False):
            _bars(axes, mode, self._linear.full_states)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        return figure

    def bode(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return Bode diagrams, drawn by python-control.

        Parameters
        ----------
        inputs, outputs : sequence of str, optional
            Channels by name; the first four of each by default.

        Raises
        ------
        UsageError, UnknownNameError
            When there is no such channel.
        """
        import control

        u, out = self._channels(inputs, outputs)
        system = self._linear.to_control()[out, u]
        figure = new_figure(4.5 * len(u), 4.5 * len(out), layout="constrained")
        axes = figure.subplots(2 * len(out), len(u), squeeze=False)
        control.frequency_response(system).plot(ax=axes)
        figure.suptitle(self._title("Bode diagram", u, out), fontweight="bold")
        for column, j in enumerate(u):
            axes[0, column].set_title(f"from {_labelled(self._linear.inputs[j])}", fontsize=10)
        for row, i in enumerate(out):
            axes[2 * row, 0].set_ylabel(f"{_labelled(self._linear.outputs[i])}\nmagnitude")
        return figure

    def step(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return the deviations of outputs from the point after a step of one unit of each input.

        Parameters
        ----------
        inputs, outputs : sequence of str, optional
            Channels by name; the first four of each by default.

        Raises
        ------
        UsageError, UnknownNameError
            When there is no such channel.
        """
        import control

        u, out = self._channels(inputs, outputs)
        response = control.step_response(self._linear.to_control()[out, u], squeeze=False)
        figure = new_figure(4.0 * len(u), 1.0 + 2.2 * len(out), layout="constrained")
        figure.suptitle(self._title("Steps", u, out), fontweight="bold")
        grid = figure.subplots(len(out), len(u), squeeze=False, sharex=True, sharey="row")
        draw = "steps-post" if self._linear.sample_time > 0 else "default"
        for column, j in enumerate(u):
            source = self._linear.inputs[j]
            grid[0, column].set_title(f"1 {source.unit or 'unit'} of {_plain(source.name)}", fontsize=10)
            grid[-1, column].set_xlabel("time [s]")
            for row, i in enumerate(out):
                signal, axes = self._linear.outputs[i], grid[row, column]
                axes.plot(response.time, response.outputs[row, column], color=TRUE, drawstyle=draw)
                axes.axhline(0, color=QUIET, linewidth=0.8)
                axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
                open_sides(axes)
                if column == 0:
                    axes.set_ylabel(_labelled(signal))
        return figure

    def errors(self) -> Figure:
        """Return the estimated error of every entry of A, B, C and D over the largest entry of its matrix."""
        from matplotlib.colors import LogNorm

        linear = self._linear
        figure = new_figure(8.0, 6.5, layout="constrained")
        figure.suptitle(f"Estimated relative errors: {_plain(linear.model.name)}", fontweight="bold")
        y, u, out = linear.states, linear.inputs, linear.outputs
        norm = LogNorm(1e-16, 1.0, clip=True)
        image = None
        grid = figure.subplots(2, 2).ravel()
        for axes, (name, rows, columns) in zip(
            grid, (("A", y, y), ("B", y, u), ("C", out, y), ("D", out, u)), strict=True
        ):
            axes.set_title(name, loc="left")
            errors, matrix = getattr(linear.errors, name), getattr(linear, name)
            if not matrix.size:
                axes.set_axis_off()
                continue
            seen = errors / (float(np.max(np.abs(matrix))) or 1.0)
            image = axes.imshow(np.where(seen > 0, seen, np.nan), norm=norm, cmap="cividis", aspect="auto")
            _named(axes, rows, columns)
        if image is not None:
            figure.colorbar(image, ax=grid.tolist(), label="error over largest entry (blank: exact)")
        return figure

    def _one(self, what: str) -> tuple[Figure, Axes]:
        figure = new_figure(6.5, 5.5, layout="constrained")
        axes = figure.subplots()
        axes.set_title(f"{what} of {_plain(self._linear.model.name)}", loc="left", fontweight="bold")
        axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
        axes.set_axisbelow(True)
        open_sides(axes)
        return figure, axes

    def _modes(self) -> tuple[Mode, ...]:
        modes = self._linear.modes()
        if not modes:
            raise UsageError("The linear model has no states, so it has no eigenvalues to draw.")
        return modes

    def _channels(self, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> tuple[list[int], list[int]]:
        linear = self._linear
        u = _positions(linear.inputs, inputs, "an input")
        out = _positions(linear.outputs, outputs, "an output")
        if not u or not out:
            raise UsageError("There is no channel to draw: that takes at least one input and one output.")
        return u, out

    def _title(self, what: str, u: Sequence[int], out: Sequence[int]) -> str:
        left = [
            f"{len(few)} of {len(all_of)} {word}"
            for few, all_of, word in ((u, self._linear.inputs, "inputs"), (out, self._linear.outputs, "outputs"))
            if len(few) < len(all_of)
        ]
        return f"{what}: {_plain(self._linear.model.name)}" + (f" ({', '.join(left)})" if left else "")


def _plain(name: str) -> str:
    """Return a name whose dollars begin no formula."""
    return shortened(name, LONGEST_LABEL).replace("$", r"\$")


def _labelled(signal: Signal) -> str:
    return f"{_plain(signal.name)} [{signal.unit or '1'}]"


def _positions(signals: Signals, names: Sequence[str] | None, what: str) -> list[int]:
    if names is None:
        return list(range(min(len(signals), MOST_CHANNELS)))
    return [signals.index_of(name, what) for name in names]


def _bars(axes: Axes, mode: Mode, states: Signals) -> None:
    """Draw how far each state moves, the largest first, and the phase beside it where the mode swings."""
    size: FloatArray = np.abs(mode.shape)
    order = np.argsort(-size, kind="stable")[:MOST_STATES]
    names = [_labelled(states[i]) for i in order.tolist()]
    axes.barh(range(len(order)), size[order], color=TRUE)
    for row, i in enumerate(order.tolist()):
        if size[i] > 0:
            angle = float(np.degrees(np.angle(mode.shape[i]))) + 0.0
            axes.annotate(f" {angle:.0f}°", (size[i], row), va="center", fontsize=8, color=QUIET)
    axes.set_yticks(range(len(order)), names, fontsize=8)
    axes.set(xlabel="amplitude, and phase", xlim=(0, 1.2), ylim=(len(order) - 0.4, -0.6))
    axes.set_title(f"{eigenvalue_text(mode.eigenvalue, pair=mode.is_oscillatory)} 1/s", fontsize=10, loc="left")
    open_sides(axes)


def _named(axes: Axes, rows: Signals, columns: Signals) -> None:
    """Name rows and columns where there is room for it."""
    if len(rows) <= MOST_STATES:
        axes.set_yticks(range(len(rows)), [_plain(n) for n in rows.names], fontsize=8)
    if len(columns) <= MOST_STATES:
        axes.set_xticks(range(len(columns)), [_plain(n) for n in columns.names], fontsize=8, rotation=45, ha="right")
