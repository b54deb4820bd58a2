"""Pictures of a family of linear models: eigenvalues over its axes, and one number of every model over two of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UnknownNameError, UsageError
from fmilin.linear_model.modes import convert_errors_to_rates, convert_to_rates, remove_uncertain_growth
from fmilin.report import figures
from fmilin.report.numbers import list_matrices
from fmilin.signals import FloatArray, Signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    from fmilin.families.family import LinearFamily

Complex = NDArray[np.complex128]

QUANTITIES = {
    "growth": "largest real part [1/s]",
    "damping": "smallest damping ratio [1]",
    "frequency": "lowest frequency of the oscillating modes [rad/s]",
    "accuracy": "estimated relative error of A",
}

_ENTRY = re.compile(r"([ABCD])\[(.+)\]")


def compute_quantity(family: LinearFamily, quantity: str) -> tuple[FloatArray, str]:
    r"""Return a number for every point, shape (\\*shape), NaN where there is none, and what it is."""
    if entry := _ENTRY.fullmatch(quantity.strip()):
        return _entry(family, *entry.groups())
    if quantity not in QUANTITIES:
        raise UnknownNameError.among(quantity, QUANTITIES, "a quantity of a family (or an entry, as A[1,2])")
    if quantity == "accuracy":
        return family.array("accuracy")[..., 0], QUANTITIES[quantity]
    if not family.template.order:
        raise UsageError("The linear models have no states, so they have no eigenvalues to draw.")
    s = compute_eigenvalue_rates(family)
    size = np.abs(s)
    nothing = ~np.isfinite(size)
    if quantity == "growth":
        extreme = np.where(nothing, -np.inf, s.real).max(axis=-1)
    elif quantity == "damping":
        ratio = -s.real / np.where(size > 0, size, 1.0)
        extreme = np.where(nothing | (size == 0), np.inf, ratio).min(axis=-1)
    else:
        extreme = np.where(nothing | (np.abs(s.imag) <= 1e-9 * size), np.inf, np.abs(s.imag)).min(axis=-1)
    return np.where(np.isfinite(extreme), extreme, np.nan), QUANTITIES[quantity]


def compute_eigenvalue_rates(family: LinearFamily) -> Complex:
    """Return the followed eigenvalues in 1/s, with a real part of 0 where errors cover it.

    Those of sampled models are ``log(z) / sample_time``, as in the tables and pictures of one linear model: the
    stability limit is the imaginary axis for both.
    """
    rates = convert_to_rates(family.eigenvalues, family.sample_time)
    if family.sample_time <= 0:
        return np.asarray(remove_uncertain_growth(rates, family.eigenvalue_errors))
    # near z = 0 the logarithm is not known at all, and z decays all the same: z itself is compared with the limit
    distances = np.abs(np.abs(family.eigenvalues) - 1.0)
    return np.asarray(np.where(distances <= family.eigenvalue_errors, 1j * rates.imag, rates))


def compute_rate_errors(family: LinearFamily) -> FloatArray:
    """Return the errors of :func:`compute_eigenvalue_rates` in 1/s."""
    return np.asarray(convert_errors_to_rates(family.eigenvalues, family.eigenvalue_errors, family.sample_time))


def _entry(family: LinearFamily, matrix: str, inside: str) -> tuple[FloatArray, str]:
    rows, columns = next(signals for name, *signals in list_matrices(family) if name == matrix)
    for comma in [m.start() for m in re.finditer(",", inside)]:
        i, j = _index(inside[:comma], rows), _index(inside[comma + 1 :], columns)
        if i is not None and j is not None:
            return family.array(matrix)[
                ..., i, j
            ], f"{matrix}[{figures.plain(rows[i].name)}, {figures.plain(columns[j].name)}]"
    raise UsageError(
        f"{matrix}[{inside}] is not an entry: its rows are {', '.join(rows.names) or 'none'}, its columns "
        f"{', '.join(columns.names) or 'none'}."
    )


def _index(text: str, signals: Signals) -> int | None:
    text = text.strip()
    if signals.has(text):
        return signals.index_of(text)
    return int(text) - 1 if text.isdigit() and 1 <= int(text) <= len(signals) else None


def _size(family: LinearFamily) -> str:
    if len(family.shape) < 2:
        return f"a line of {len(family)}" if family.shape else "one point"
    return " x ".join(map(str, family.shape))


def surface_figure(family: LinearFamily, quantity: str = "growth") -> Figure:
    """Return a quantity as colours over two axes of the grid, with lines of equal height."""
    from matplotlib.patheffects import withStroke

    values, label = compute_quantity(family, quantity)
    if len(family.shape) != 2 or min(family.shape) < 2:
        raise UsageError(
            f"A surface needs a grid of two axes, and this one is {_size(family)}. Select a part of the family, or "
            "draw its eigenvalues or root locus."
        )
    if not np.isfinite(values).any():
        raise UsageError(f"No point of the family has a {label.split(' [')[0]}: there is nothing to draw.")
    (first, rows), (second, columns) = family.axes.items()
    x, y = np.sort(columns), np.sort(rows)
    image_values = np.ma.masked_invalid(values[np.argsort(rows)][:, np.argsort(columns)])
    what = label.split(" [")[0] if quantity in QUANTITIES else label
    name = figures.plain(family.template.model.name or "sweep", 40)
    figure = figures.create_titled_figure(f"{what[0].upper()}{what[1:]}: {name}", 7.5, 5.6)
    axes = figure.subplots()
    if quantity in ("growth", "damping") and image_values.min() < 0 < image_values.max():
        reach = float(np.abs(image_values).max())  # stability is where the colour changes
        colors = "PuOr_r" if quantity == "growth" else "PuOr"
        image = axes.pcolormesh(x, y, image_values, cmap=colors, vmin=-reach, vmax=reach, shading="nearest")
        axes.contour(x, y, image_values, levels=[0.0], colors="black", linewidths=2.0)
    else:
        image = axes.pcolormesh(
            x, y, image_values, cmap="viridis", shading="nearest", norm=_norm(image_values, quantity)
        )
    if quantity != "accuracy" and min(image_values.shape) > 2 and not _is_constant(image_values.compressed()):
        lines = axes.contour(x, y, image_values, levels=8, colors="black", linewidths=0.6)
        for drawn in (lines, *figures.remove_overlapping_labels(axes, axes.clabel(lines, fontsize=8, fmt="%.3g"))):
            drawn.set_path_effects([withStroke(linewidth=2.0, foreground="white")])  # readable on dark colours
    axes.set(xlabel=axis_label(family, second), ylabel=axis_label(family, first))
    _note_constant(axes, image_values)
    figure.colorbar(image, ax=axes, label=label)
    figures.draw_grid(axes)
    axes.grid(visible=False)
    return figure


def _is_constant(values: FloatArray) -> bool:
    return float(np.ptp(values)) <= CONSTANT_TOLERANCE * float(np.abs(values).max())


def _note_constant(axes: Axes, image_values: np.ma.MaskedArray[Any, Any]) -> None:
    """Say where all values are the same but for rounding, and how many points have none."""
    values = image_values.compressed()
    if not len(values):
        return
    missing = image_values.size - len(values)
    notes = []
    if _is_constant(values):
        notes.append(f"constant: {float(np.median(values)):.4g} at all {len(values)} points")
    if missing:
        notes.append(f"white: {missing} points have no value")
    axes.set_title("; ".join(notes), fontsize=10, loc="left", color=figures.QUIET)


def _norm(image_values: np.ma.MaskedArray[Any, Any], quantity: str) -> LogNorm | None:
    """Return a logarithmic scale for errors of different sizes."""
    from matplotlib.colors import LogNorm

    low, high = float(image_values.min()), float(image_values.max())
    return LogNorm(low, high) if quantity == "accuracy" and 0 < low < 0.5 * high else None


def axis_label(family: LinearFamily, name: str) -> str:
    """Return the name of an axis with its unit, where the model states one."""
    unit = find_unit(family, name)
    return figures.plain(name, 40) if unit is None else f"{figures.plain(name, 40)} [{figures.format_unit(unit)}]"


def find_unit(family: LinearFamily, name: str) -> str | None:
    """Return the unit of a varied quantity; None where it is not known."""
    for signals in (family.full_states, family.inputs, family.outputs):
        if signals.has(name):
            return signals[signals.index_of(name)].unit
    return family.parameter_units.get(name)


def _describe_values(family: LinearFamily, number: int, names: Sequence[str]) -> str:
    """Return the values of some axes at a point with their units."""
    at = family.grid.values(number)
    units = {name: figures.format_unit(find_unit(family, name) or "") for name in names}
    return ", ".join(f"{n} = {at[n]:.4g}{f' {units[n]}' if units[n] != '1' else ''}" for n in names)


MAX_MARKS = 25  # on a line
MARKERS = "osD^v<>Pp*h8"
CONSTANT_TOLERANCE = 1e-6  # relative: a surface this flat is constant, and its lines of equal height are rounding
MIN_DRAWN_DAMPING_ERROR = 1e-5  # of a damping ratio: smaller errors are thinner than the line
NARROW_BAND_FRACTION = 0.5  # Frequencies above this part of the highest fill a Campbell diagram
GROWING = ("unstable", "defective")  # kinds of modes that certainly grow


def family_eigenvalue_figure(family: LinearFamily) -> Figure:
    """Return real and imaginary parts of the eigenvalues over the axis, each mode tracked as one line."""
    lines = list(list_lines(family))
    figure, real, imaginary = figures.over_one_axis(compose_family_title(family, "Eigenvalues"))
    line = lines[0]
    labelled_modes: set[int] = set()
    for mode, values in zip(line.numbers, line.eigenvalues.T, strict=True):
        style = figures.line_style(mode) | {"linewidth": 1.8}
        label = None if mode in labelled_modes else f"mode {mode + 1}"
        figures.draw_curve(real, line.axis, values.real, **style, label=label)
        figures.draw_curve(imaginary, line.axis, values.imag, **style)
        labelled_modes.add(mode)
    low, high = real.get_ylim()
    if high > 0:
        real.axhspan(0, high, color=figures.UNSTABLE, zorder=0)
    real.set(ylabel="real part [1/s]", ylim=(low, high))
    imaginary.set(ylabel="imaginary part [rad/s]", xlabel=line.label)
    for axes in (real, imaginary):
        axes.axhline(0, color=figures.QUIET, linewidth=0.8)
    length, marked = family.shape[-1], False
    for event in family.mode_events:
        a, b = (k - line.first for k in event.between)
        if event.kind == "coalescence" and 0 <= a < length and 0 <= b < length:
            real.axvline((line.axis[a] + line.axis[b]) / 2, color=figures.QUIET, linestyle=":", linewidth=0.9,
                         label=None if marked else "real pair meets")  # fmt: skip
            marked = True
    if line.title:
        real.set_title(_name_line(line, len(lines)), fontsize=10, loc="left", color=figures.QUIET)
    if line.eigenvalues.shape[1] <= 16:
        figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def campbell_figure(family: LinearFamily, *, orders: Sequence[float] = (), hertz: bool = False) -> Figure:
    """Return frequencies and damping ratios of the modes that swing, over the axis (Campbell's diagram)."""
    lines = list(list_lines(family))
    line = lines[0]
    figure, frequency, damping = figures.over_one_axis(compose_family_title(family, "Campbell diagram"), (3, 2))
    factor = 1 / (2 * np.pi) if hertz else 1.0
    drawn, marked, largest, uncertain = 0, False, 0.0, False
    columns = zip(line.numbers, line.eigenvalues.T, line.unstable.T, line.errors.T, strict=True)
    for mode, values, grows, errors in columns:
        swings = values.imag > 1e-9 * np.abs(values)
        if not swings.any():
            continue
        w, size = np.where(swings, values.imag, np.nan), np.abs(values)
        ratio = np.where(swings, -values.real / np.where(size > 0, size, 1.0), np.nan)
        style = figures.line_style(drawn) | {"linewidth": 1.8}
        figures.draw_curve(frequency, line.axis, factor * w, **style, label=f"mode {mode + 1}")
        figures.draw_curve(damping, line.axis, ratio, **style)
        spread = np.where(swings, errors / np.where(size > 0, size, 1.0), np.nan)
        if np.nanmax(spread, initial=0.0) > MIN_DRAWN_DAMPING_ERROR:
            uncertain = True
            damping.fill_between(
                line.axis, ratio - spread, ratio + spread, color=style["color"], alpha=0.2, linewidth=0
            )
        largest = max(largest, float(np.nanmax(np.abs(ratio))))
        unstable = swings & grows
        marked |= bool(unstable.any())
        few = np.flatnonzero(unstable)[:: max(1, int(unstable.sum()) // MAX_MARKS)]
        frequency.plot(
            line.axis[few], factor * w[few], "o", color=figures.COLORS[1], markerfacecolor="white", markersize=5
        )
        drawn += 1
    if not drawn:
        raise UsageError("No mode of the family oscillates at any point: there is no frequency to draw.")
    if marked:
        frequency.plot([], [], "o", color=figures.COLORS[1], markerfacecolor="white", markersize=5, label="unstable")
    if uncertain:
        damping.fill_between([], [], [], color=figures.QUIET, alpha=0.2, label="damping within its error")
        damping.legend(fontsize=8, frameon=False)
    bottom, top = frequency.get_ylim()
    if orders or bottom < NARROW_BAND_FRACTION * top:
        top, bottom = (
            1.04 * top,
            0.0,
        )  # the rays of multiples begin there; a narrow band of frequencies fills the picture instead
    rays_of_orders(frequency, line.axis, factor * line.axis, orders, top)
    frequency.set(ylabel=f"frequency [{'Hz' if hertz else 'rad/s'}]", ylim=(bottom, top))
    figures.show_whole_axis(frequency, line.axis)
    damping.set(ylabel="damping ratio [1]", xlabel=line.label)
    damping.axhline(0, color=figures.QUIET, linewidth=0.8)
    low, high = damping.get_ylim()
    if largest < 1e-9 and not uncertain:  # rounding of modes without damping
        damping.set_ylim(-0.01, 0.01)
    elif low < 0:
        damping.axhspan(low, 0, color=figures.UNSTABLE, zorder=0)
        damping.set_ylim(low, high)
    frequency.set_title(_note_campbell(line, len(lines)), fontsize=10, loc="left", color=figures.QUIET)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _note_campbell(line: FamilyLine, count: int) -> str:
    """Return which line of a grid is drawn, and how many eigenvalues have no frequency."""
    finite = line.eigenvalues[np.isfinite(line.eigenvalues)]
    real_count = int(np.sum(np.abs(finite.imag) <= 1e-9 * np.abs(finite)))
    notes = [_name_line(line, count)] if line.title else []
    notes += [f"{real_count} of {len(finite)} eigenvalues are real: they have no frequency"] if real_count else []
    return "\n".join(notes)


def rays_of_orders(axes: Axes, axis: FloatArray, speed: FloatArray, orders: Iterable[float], top: float) -> None:
    """Draw multiples of a speed (n,) over an axis (n,), labelled where they leave the picture, at ``top``."""
    for order in orders:
        if np.nanmin(order * speed, initial=np.inf) < top:
            axes.plot(axis, order * speed, color=figures.QUIET, linewidth=0.9, linestyle="--")
            last = np.flatnonzero(order * speed <= top)[-1]
            axes.annotate(f"{order:g}×", (axis[last], order * speed[last]), color=figures.QUIET, fontsize=9)


@dataclass(frozen=True, eq=False)
class FamilyLine:
    """Tracked eigenvalues along the last axis of a grid: axis (n,), eigenvalues (n, P)."""

    label: str
    title: str
    axis: FloatArray
    eigenvalues: Complex  # in 1/s
    multipliers: Complex  # z of sampled models; of continuous ones the eigenvalues before errors are taken out
    numbers: list[int]  # of the mode that each column belongs to
    unstable: NDArray[np.bool_]  # (n, P), which of them certainly grow
    errors: FloatArray  # (n, P), of the eigenvalues, in 1/s
    first: int


def list_lines(family: LinearFamily) -> Iterator[FamilyLine]:
    """Yield lines along the last axis, one for each value of the others."""
    if not family.ok.any():
        raise UsageError("No point of the family has a linear model: there is nothing to draw.")
    if not family.template.order:
        raise UsageError("The linear models have no states, so they have no eigenvalues to draw.")
    if not family.axes:
        raise UsageError("The family has one point and no axis: draw its linear model with family[0].plot.")
    name = choose_drawn_axis(family)
    other_axes = [axis for axis in family.axes if axis != name]
    length = family.shape[-1]
    values = compute_eigenvalue_rates(family).reshape(-1, length, family.template.order)
    followed = family.eigenvalues.reshape(values.shape)
    unstable = np.isin(family.spectra.kinds, GROWING).reshape(values.shape)
    errors = compute_rate_errors(family).reshape(values.shape)
    for k in range(len(values)):
        title = _describe_values(family, k * length, [] if family.grid.zipped else other_axes)
        # Pairs are found in z: where one becomes real and negative, log(z) of both has the imaginary part pi/T.
        yield FamilyLine(
            axis_label(family, name), title, np.asarray(family.axes[name], float), values[k], followed[k],
            mode_numbers(followed[k]), unstable[k], errors[k], k * length,
        )  # fmt: skip


def choose_drawn_axis(family: LinearFamily) -> str:
    """Return the last axis, over which pictures are drawn; where all are varied together, the last that varies."""
    varying = [name for name, values in family.axes.items() if np.ptp(values) > 0] if family.grid.zipped else []
    return (varying or list(family.axes))[-1]


def _name_line(line: FamilyLine, count: int) -> str:
    """Return which line of a grid is drawn."""
    return f"{line.title}: the first of {count} lines (family[k] is another)" if count > 1 else line.title


def mode_numbers(eigenvalues: Complex) -> list[int]:
    """Return the number of the mode that each tracked eigenvalue (n, P) belongs to: both of a pair have the same."""
    numbers: list[int] = []
    waiting: dict[int, Complex] = {}  # the first of a pair, by its number
    for values in eigenvalues.T:
        partner = next((k for k, other in waiting.items() if np.allclose(values, other.conj(), equal_nan=True)), None)
        if partner is None:
            numbers.append(max(numbers, default=-1) + 1)
            if np.any(np.abs(values.imag) > 1e-9 * np.abs(values)):
                waiting[numbers[-1]] = values
        else:
            numbers.append(partner)
            del waiting[partner]
    return numbers


def compose_family_title(family: LinearFamily, what: str) -> str:
    """Return the title of a picture, with the number of points that have a linear model."""
    good, count = int(family.ok.sum()), len(family)
    points = f"{count} points" if good == count else f"{good} of {count} points"
    return f"{what}: {figures.plain(family.template.model.name or 'sweep', 40)} ({points})"


def margin_figure(family: LinearFamily) -> Figure:
    """Return margins of loops over the last axis, a line for each value of the others; gaps where one is unstable."""
    name = choose_drawn_axis(family)
    axis = family.axes[name]
    figure, gain, phase = figures.over_one_axis(compose_family_title(family, "Margins"))
    unlimited = unstable = 0
    for k, row in enumerate(family.margins().reshape(-1, len(axis))):
        stable = [m if m is not None and m.stable else None for m in row]
        unstable += sum(m is not None and not m.stable for m in row)
        title = _describe_values(family, k * len(axis), [] if family.grid.zipped else list(family.axes)[:-1])
        marks: dict[str, Any] = {
            "color": figures.COLORS[k % len(figures.COLORS)],
            "marker": MARKERS[k % len(MARKERS)],
            "markersize": 4,
        }
        factors = np.array([0.0 if m is None else max(m.gain[0], 1 / m.gain[1]) for m in stable])
        unlimited += sum(m is not None for m in stable) - int(np.sum(factors > 0))
        gain.plot(axis, 1 / np.where(factors > 0, factors, np.nan), label=title or None, **marks)
        phase.plot(axis, [np.nan if m is None else m.phase for m in stable], **marks)
        disk_phases = [np.nan if m is None else m.disk_phase for m in stable]
        phase.plot(axis, disk_phases, "--", markerfacecolor="none", **marks)
    for style, face, label in (("-", figures.QUIET, "phase margin"), ("--", "none", "phase of the disk margin")):
        phase.plot([], [], style, color=figures.QUIET, marker="o", markersize=4, markerfacecolor=face, label=label)
    gain.set(ylabel="gain margin [1]", yscale="log")
    figures.show_whole_axis(gain, axis)
    counts = {"the loop is unstable": unstable, "no gain makes the loop unstable": unlimited}
    notes = [f"{count} of {len(family)} points: {reason}" for reason, count in counts.items() if count]
    gain.set_title("; ".join(notes), fontsize=9.5, loc="left", color=figures.QUIET)
    phase.set(ylabel="phase margin [deg]", xlabel=axis_label(family, name))
    phase.legend(fontsize=8)
    if gain.get_legend_handles_labels()[1]:
        figure.legend(*gain.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    return figure
