"""Tables and pictures of linear models with delays: the delays are exact in each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import UsageError, cut_list
from fmilin.linear_model.model import DEFAULT_EIGENVALUE_COUNT, DelayedLinearModel, LinearModel
from fmilin.linear_model.modes import cluster_modes
from fmilin.numerics.delay_loops import list_loop_parts
from fmilin.periodic.delayed_floquet import DelayedFloquet
from fmilin.periodic.stability_lobes import StabilityLobes
from fmilin.report.facts import Fact, print_fact, print_facts, print_remarks, print_rows
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, plain
from fmilin.report.linear_pictures import rays
from fmilin.report.numbers import shorten_name
from fmilin.report.table import eigenvalue_table, list_facts
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DELAY_NAMES = 8
TABLE_EIGENVALUE_COUNT = 12
MAX_BOUNDARY_ROWS = 20


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


def show_delayed_floquet(result: DelayedFloquet, page: Sheet) -> None:
    """Print the multipliers of a period, stability, and the largest by the second way."""
    print_fact(page, "Motion", [f"equilibrium of {shorten_name(result.name)}", f"period {result.period:.12g} s"])
    delays = [f"{shorten_name(name)} by {seconds:g} s" for name, seconds in result.delays.items()]
    print_fact(page, "Delays", cut_list(delays, MAX_DELAY_NAMES))
    verdicts = {
        True: "stable: every multiplier is inside the unit circle",
        False: "unstable: a multiplier is outside the unit circle",
        None: "undecided: a multiplier is on the unit circle, to its error",
    }
    print_fact(page, "Stability", [verdicts[result.stable]])
    second = result.semi_discretized
    if np.isfinite(second):
        how = f"{second.real:.7g}{second.imag:+.5g}i for the first, to {result.semi_error:.1e}"
        print_fact(page, "Second way", ["semi-discretization", how])
    page.print()
    rows = []
    for mu, error, exponent in zip(result.multipliers, result.errors, result.exponents, strict=True):
        if mu.imag < 0:
            continue  # its conjugate has a line
        pair = f" ± {mu.imag:.7g} i" if mu.imag > 0 else ""
        rows.append((f"{mu.real:.9g}{pair}", f"{abs(mu):.9g}", f"{error:.1e}", f"{exponent.real:.6g}"))
    print_rows(page, ("Multiplier", "Modulus", "Error", "Growth [1/s]"), rows, columns="lrrr")
    page.print()
    print_remarks(page, result.remarks)


def show_stability_lobes(lobes: StabilityLobes, page: Sheet) -> None:
    """Print the axes, how many points are stable, and the first points of the boundary."""
    print_fact(page, "Chart", [f"of {shorten_name(lobes.name)}", f"{lobes.growth.size} points"])
    for name, values in lobes.axes.items():
        text = f"{shorten_name(name)} from {values.min():.6g} to {values.max():.6g}"
        print_fact(page, "Axis", [text, f"{len(values)} values"])
    undecided = int((~lobes.decided).sum())
    counts = [f"{int(lobes.stable.sum())} stable", f"{int((lobes.decided & ~lobes.stable).sum())} unstable"]
    print_fact(page, "Stability", [*counts, *([f"{undecided} undecided"] if undecided else [])])
    rows = [tuple(f"{value:.9g}" for value in point) for point in lobes.boundary[:MAX_BOUNDARY_ROWS]]
    if rows:
        page.print()
        print_rows(page, tuple(shorten_name(name) for name in lobes.axes), rows, columns="r" * len(lobes.axes))
    if len(lobes.boundary) > len(rows):
        print_fact(page, "", [f"{len(lobes.boundary) - len(rows)} more points of the boundary: .boundary"])
    page.print()
    print_remarks(page, lobes.remarks)


def draw_stability_lobes(lobes: StabilityLobes) -> Figure:
    """Return the growth over two axes, white where it is stable, with the boundary."""
    if len(lobes.axes) != 2:
        raise UsageError(f"A chart of stability is drawn over two axes, and {len(lobes.axes)} vary here.")
    (first, x), (second, y) = lobes.axes.items()
    figure = create_titled_figure(f"{shorten_name(lobes.name)}: stability lobes", 8.0, 6.0)
    axes = figure.add_subplot()
    axes.set_facecolor("white")
    unstable = np.where(lobes.growth > 0, lobes.growth, np.nan)
    mesh = axes.pcolormesh(x, y, unstable.T, cmap="OrRd", shading="nearest", vmin=0.0, rasterized=True)
    i, j = np.nonzero(~lobes.decided)
    if len(i):
        axes.plot(x[i], y[j], "o", color=QUIET, markersize=4, label=f"not decided: {len(i)} points")
    if len(lobes.boundary):
        points = lobes.boundary[np.lexsort((lobes.boundary[:, 1], lobes.boundary[:, 0]))]
        axes.plot(points[:, 0], points[:, 1], ".", color=COLORS[0], markersize=5, label="boundary of stability")
    if axes.get_legend_handles_labels()[1]:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    axes.set_title("white: stable", loc="left", fontsize=10, color=QUIET)
    figure.colorbar(mesh, ax=axes, label="growth [1/s]")
    axes.set(xlabel=shorten_name(first), ylabel=shorten_name(second))
    return figure
