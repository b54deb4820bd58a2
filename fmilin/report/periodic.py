"""Periodic motions, and what Floquet's theory says of them, as tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fmilin.errors import UsageError, cut_list
from fmilin.linear_model.modes import EigenvalueCluster
from fmilin.periodic.chart import FloquetChart
from fmilin.periodic.floquet import Floquet
from fmilin.periodic.orbit import PeriodicOrbit
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.report.facts import certificate_facts, print_fact, print_facts, print_remarks
from fmilin.report.family_pictures import rays_of_orders
from fmilin.report.figures import (
    COLORS,
    QUIET,
    UNSTABLE,
    create_titled_figure,
    draw_curve,
    draw_grid,
    line_style,
    over_one_axis,
)
from fmilin.report.linear_pictures import shade_outside_unit_circle
from fmilin.report.numbers import cluster_text, eigenvalue_text, error_text, rough, shorten_name, value_with_unit
from fmilin.report.table import print_names
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import build_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.design.periodic_gains import PeriodicGain

NAMES = 8  # shown of a list
MODES = 24
ROWS = 24  # of a chart


def show_orbit(orbit: PeriodicOrbit, page: Sheet) -> None:
    """Print the period, what turns, what was free, and how well the motion closes."""
    model, names = orbit.model, orbit.model.states.names
    print_fact(page, "Orbit", [shorten_name(model.info.name), f"period {orbit.period:.12g} s"])
    gained = [f"{shorten_name(names[i])} gains {value_with_unit(orbit.shift[i], model.states[i].unit)}"
              for i in np.flatnonzero(orbit.shift).tolist()]  # fmt: skip
    if gained:
        print_fact(page, "A period", cut_list(gained, NAMES))
    if passed := [f"{event.cause} at {event.time:.6g} s" for event in orbit.events]:
        print_fact(page, "Events", cut_list(passed, NAMES))
    print_facts(page, certificate_facts(orbit.certificate))
    if orbit.free:
        print_fact(page, "Free", [f"{name} = {value:.9g}" for name, value in orbit.free.items()])


def show_periodic(periodic: PeriodicModel, page: Sheet) -> None:
    """Print what there is of a periodic model."""
    P, N = len(periodic.states), len(periodic.full_states)
    print_fact(page, "Model", [shorten_name(periodic.info.name), f"period {periodic.period:.12g} s"])
    print_fact(page, "Order", [f"{P} independent states out of {N}", f"{len(periodic.A)} phases"])
    print_names(page, periodic)
    print_fact(page, "A varies", [f"by {rough(100 * periodic.variation)} % over the period"])
    page.print()
    print_remarks(page, periodic.remarks)


def show_gain(gain: PeriodicGain, page: Sheet) -> None:
    """Print what gains along a motion make of it."""
    _, rows, columns = gain.gain.shape
    print_fact(page, "Gain", [f"{rows} x {columns} at {len(gain.gain)} phases", f"of {rough(np.abs(gain.gain).max())}"])
    show_floquet(gain.closed.floquet(), page)


def _verdict(chart: FloquetChart, i: tuple[int, ...]) -> str:
    """Return what a chart says of a point, in words."""
    if not chart.ok[i]:
        return "no periodic motion"
    if chart.stable[i]:
        return "stable"
    return "unstable" if chart.unstable[i] else "cannot be determined"


def show_chart(chart: FloquetChart, page: Sheet) -> None:
    """Print where over its axes a motion is stable."""
    good, size = int(chart.ok.sum()), chart.ok.size
    print_fact(
        page, "Motion", [shorten_name(chart.name), f"{good} of {size} points", f"{int(chart.stable.sum())} stable"]
    )
    page.print()
    rows = []
    for i in np.ndindex(chart.ok.shape):
        values = [f"{axis[k]:.6g}" for axis, k in zip(chart.axes.values(), i, strict=True)]
        verdict = _verdict(chart, i)
        figures = [f"{chart.period[i]:.6g}", f"{chart.margin[i]:.6g}"] if chart.ok[i] else ["", ""]
        rows.append((*values, *figures, verdict))
    page.print(build_table((*chart.axes, "Period [s]", "Growth [1/s]", ""), rows, most=ROWS))


def show_floquet(floquet: Floquet, page: Sheet, orbit: PeriodicOrbit | None = None) -> None:
    """Print the orbit, if it is there, multipliers, exponents, the harmonics at which modes are seen, and stability."""
    if orbit is None:
        print_fact(page, "Motion", [shorten_name(floquet.name), f"period {floquet.period:.12g} s"])
    else:
        show_orbit(orbit, page)
        page.print()
    print_fact(page, "Stability", [floquet.verdict])
    errors = {name: rough(floquet.accuracy[name]) for name in ("multipliers", "exponents")}
    print_fact(page, "Accuracy", [f"multipliers {errors['multipliers']}", f"exponents {errors['exponents']}/s"])
    page.print()
    rows = []
    symmetries = {k: name for name, k in floquet.unit.items()}
    for k, exponent in enumerate(floquet.exponents):
        is_paired = bool(np.abs(floquet.exponents - exponent.conj()).min() <= 1e-9 * (1 + abs(exponent)))
        if is_paired and exponent.imag < 0:
            continue  # its conjugate has a line
        multiplier = complex(floquet.multipliers[k])
        error = float(floquet.multiplier_errors[k])
        # products of many factors know fast modes better than the matrix of a period does
        relative = error / abs(multiplier) if multiplier != 0 else np.inf
        rate_error = min(floquet.accuracy["exponents"], relative / floquet.period)
        rate = EigenvalueCluster(complex(exponent), 1, abs(exponent.imag) > rate_error, rate_error)
        is_finite = bool(np.isfinite(exponent))
        rows.append(
            (
                _multiplier_text(multiplier, error, pair=is_paired and exponent.imag > 0),
                cluster_text(rate) if is_finite else "-inf",
                f"{floquet.frequencies[k]:.6g}" if is_finite else "",
                str(abs(int(floquet.largest_harmonics[k]))),
                symmetries.get(k, ""),
            )
        )
    heads = ("Multiplier", "Exponent [1/s]", "Seen at [rad/s]", "Harmonic", "")
    page.print(build_table(heads, rows, columns="RRrrl", most=MODES))
    page.print()
    print_remarks(page, floquet.remarks)


def _multiplier_text(value: complex, error: float, *, pair: bool) -> str:
    """Return a multiplier with the digits that are known, and its error where that is visible; never 0 for 1 +- 1."""
    if error < abs(value):
        return cluster_text(EigenvalueCluster(value, 1, pair, error))
    return f"{eigenvalue_text(value, pair=pair)} (+- {error_text(error)})"


LIMIT_ROUNDING = 1e-9  # of the modulus of a multiplier at the stability limit, added to its error
MIN_DRAWN_ERROR = 5e-3  # of half the picture: smaller errors are covered by their marks
MAX_MODES = 4  # modes, unless they are named
MIN_PARTICIPATION_FRACTION = 0.02  # part of a mode below which states and harmonics are left out
MAX_DRAWN_STATES = 8  # of a mode
MAX_OMITTED_NAMES = 4  # of states that are not drawn


def multiplier_figure(floquet: Floquet) -> Figure:
    """Return the multipliers in the complex plane: what lies outside the circle grows."""
    from matplotlib.patches import Circle

    figure = create_titled_figure(
        f"{shorten_name(floquet.name)}: multipliers of a period of {floquet.period:.6g} s", 6.4, 6.2
    )
    axes = figure.add_subplot()
    reach = 1.15 * max(1.0, float(np.abs(floquet.multipliers).max(initial=0.0)))
    shade_outside_unit_circle(axes)
    nonunit = [k for k in range(len(floquet.multipliers)) if k not in floquet.unit.values()]
    margins, errors = np.abs(floquet.multipliers) - 1, floquet.multiplier_errors + LIMIT_ROUNDING
    groups: list[tuple[list[int], dict[str, Any], str]] = [
        ([k for k in nonunit if margins[k] < -errors[k]], {"marker": "o", "color": COLORS[0]}, "dies out"),
        ([k for k in nonunit if margins[k] > errors[k]], {"marker": "X", "color": COLORS[1]}, "grows"),
        (
            [k for k in nonunit if abs(margins[k]) <= errors[k]],
            {"marker": "s", "color": QUIET},
            "at the stability limit within its error",
        ),
        (sorted(floquet.unit.values()), {"marker": "D", "color": COLORS[2]}, "symmetry"),
    ]
    for marks, look, label in groups:
        if marks:
            mu = floquet.multipliers[marks]
            axes.plot(mu.real, mu.imag, linestyle="none", markersize=7, label=label, zorder=3, **look)
    for value, error in zip(floquet.multipliers.tolist(), floquet.multiplier_errors.tolist(), strict=True):
        if error > MIN_DRAWN_ERROR * reach:
            axes.add_patch(Circle((value.real, value.imag), error, color=QUIET, alpha=0.15, zorder=2))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
    draw_grid(axes)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    return figure


def floquet_mode_figure(floquet: Floquet, numbers: Sequence[int] | None = None) -> Figure:
    """Return modes over the period, slowest decay first, and at which frequencies they are seen.

    ``numbers`` count from 1, as the lines of the table do.
    """
    chosen = _select_modes(floquet, numbers)
    figure = create_titled_figure(
        f"{shorten_name(floquet.name)}: modes over a period of {floquet.period:.6g} s", 9.5, 2.3 * len(chosen) + 0.6
    )
    grid = figure.subplots(len(chosen), 2, squeeze=False, width_ratios=(3, 2))
    phases = np.arange(len(floquet.modes) + 1) / len(floquet.modes)
    order = np.argsort(floquet.harmonics)
    for row, k in zip(grid, chosen, strict=True):
        mode = np.concatenate((floquet.modes[:, :, k], floquet.modes[:1, :, k]))
        size = np.abs(mode).max(axis=0)
        drawn = np.flatnonzero(size > MIN_PARTICIPATION_FRACTION * size.max(initial=0.0))[:MAX_DRAWN_STATES]
        omitted = [shorten_name(name) for i, name in enumerate(floquet.states.names) if i not in drawn]
        if omitted:
            note = f"smaller, and not drawn: {', '.join(cut_list(omitted, MAX_OMITTED_NAMES))}"
            row[0].set_title(note, fontsize=8, loc="left", color=QUIET)
        for i in drawn:
            row[0].plot(phases, mode[:, i].real, label=shorten_name(floquet.states.names[i]), **line_style(int(i)))
        exponent = complex(floquet.exponents[k])
        row[0].set_ylabel(f"mode {k + 1}\n{rough(exponent.real)} {exponent.imag:+.3g} i 1/s", fontsize=9)
        share = floquet.participation[order, k]
        visible = share > MIN_PARTICIPATION_FRACTION
        at = exponent.imag + 2 * np.pi / floquet.period * floquet.harmonics[order]
        row[1].vlines(at[visible], 0, share[visible], color=COLORS[0], linewidth=3)
        row[1].set(ylim=(0, 1.05), ylabel="share")
        for axes in row:
            draw_grid(axes)
    curves = {label: line for row in grid for line, label in zip(*row[0].get_legend_handles_labels(), strict=True)}
    figure.legend(list(curves.values()), list(curves), loc="outside lower left", ncols=4, frameon=False, fontsize=9)
    grid[-1][0].set_xlabel("phase [parts of the period]")
    grid[-1][1].set_xlabel("frequency [rad/s]")
    return figure


def _select_modes(floquet: Floquet, numbers: Sequence[int] | None) -> list[int]:
    count = len(floquet.exponents)
    if numbers is not None:
        if beyond := [n for n in numbers if not 1 <= n <= count]:
            raise UsageError(f"There is no mode {beyond[0]}: the modes have the numbers 1 to {count}.")
        return [n - 1 for n in numbers]
    one_of_pairs = [k for k in range(count) if floquet.exponents[k].imag >= 0 and np.isfinite(floquet.exponents[k])]
    return one_of_pairs[:MAX_MODES]


def campbell_figure(chart: FloquetChart) -> Figure:
    """Return frequencies at which modes are seen over one axis, rays of harmonics, and growth below."""
    if len(chart.axes) != 1:
        raise UsageError(f"Campbell's diagram is drawn over one axis, and {len(chart.axes)} vary here.")
    ((name, axis),) = chart.axes.items()
    title = f"{shorten_name(chart.name)}: Campbell diagram of Floquet's exponents"
    figure, frequency, growth = over_one_axis(title, (3, 2))
    visible = [k for k in range(chart.exponents.shape[-1]) if _is_first_of_pair(chart, k)]
    tolerance = 1e-9 * np.nanmax(np.abs(chart.exponents[np.isfinite(chart.exponents)]), initial=1.0)
    for drawn, k in enumerate(visible):
        draw_curve(frequency, axis, chart.frequencies[:, k], **line_style(drawn))
        draw_curve(growth, axis, chart.exponents[:, k].real, **line_style(drawn))
        grows = chart.exponents[:, k].real > tolerance
        frequency.plot(axis[grows & chart.unstable], chart.frequencies[grows & chart.unstable, k], "o", color=COLORS[1],
                       markerfacecolor="white", markersize=5)  # fmt: skip
    top = 1.1 * float(np.nanmax(chart.frequencies[:, visible], initial=1e-300))
    rays_of_orders(frequency, axis, 2 * np.pi / chart.period, range(1, 7), top)
    middle = np.concatenate((axis[:1], (axis[1:] + axis[:-1]) / 2, axis[-1:]))
    for axes in (frequency, growth):
        for k in np.flatnonzero(chart.unstable).tolist():  # and half a step beyond
            axes.axvspan(middle[k], middle[k + 1], color=UNSTABLE, zorder=0)
    frequency.set(ylim=(0, top), ylabel="seen at [rad/s]")
    growth.axhline(0, color=QUIET, linewidth=0.8)
    growth.set(ylabel="growth [1/s]", xlabel=shorten_name(name))
    return figure


def _is_first_of_pair(chart: FloquetChart, k: int) -> bool:
    """Whether a mode is drawn: of conjugate ones, which have the same frequency and growth, the first."""
    rows = [(chart.exponents[:, j].real, chart.frequencies[:, j]) for j in range(k + 1)]
    size = 1e-6 * (1 + np.nanmax(np.abs(rows[k][1]), initial=0.0))
    return not any(
        np.nanmax(np.abs(np.concatenate((rows[j][0] - rows[k][0], rows[j][1] - rows[k][1]))), initial=0.0) <= size
        for j in range(k)
    )


def stability_figure(chart: FloquetChart) -> Figure:
    """Return where over two axes the motion is stable, and how fast deviations grow elsewhere."""
    if len(chart.axes) != 2:
        raise UsageError(f"A stability chart is drawn over two axes, and {len(chart.axes)} vary here.")
    (first, x), (second, y) = chart.axes.items()
    figure = create_titled_figure(f"{shorten_name(chart.name)}: stability chart", 8.0, 6.0)
    axes = figure.add_subplot()
    growth = np.where(chart.unstable, chart.margin, np.nan)
    axes.set_facecolor("white")
    mesh = axes.pcolormesh(x, y, growth.T, cmap="OrRd", shading="nearest", vmin=0.0, rasterized=True)
    if chart.stable.any() and chart.unstable.any() and min(chart.stable.shape) > 1:
        axes.contour(x, y, np.where(chart.stable, 0.0, 1.0).T, levels=[0.5], colors=[COLORS[0]], linewidths=1.2)
    marks = (
        (~chart.ok, "x", "no periodic motion"),
        (chart.ok & ~chart.stable & ~chart.unstable, "o", "cannot be determined within the errors"),
    )
    for where, mark, label in marks:
        if where.any():
            i, j = np.nonzero(where)
            axes.plot(x[i], y[j], mark, color=QUIET, markersize=4, label=f"{label}: {len(i)} points")
    if axes.get_legend_handles_labels()[1]:
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    axes.set_title("white: stable", loc="left", fontsize=10, color=QUIET)
    figure.colorbar(mesh, ax=axes, label="growth [1/s]")
    axes.set(xlabel=shorten_name(first), ylabel=shorten_name(second))
    return figure
