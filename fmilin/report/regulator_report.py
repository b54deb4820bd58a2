"""Designs of regulators: tables, and a picture of sensitivities and poles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fmilin.design.loop_shaping import LoopShapingDesign
from fmilin.design.lqg import LqgDesign
from fmilin.design.regulator_design import RegulatorDesign
from fmilin.design.regulator_verification import RegulatorVerification
from fmilin.errors import cut_list, join_first
from fmilin.linear_model.modes import convert_to_rates
from fmilin.report.facts import print_fact, print_rows
from fmilin.report.figures import COLORS, QUIET, create_titled_figure, draw_grid, plain
from fmilin.report.frequency_curves import choose_frequencies, convert_to_decibels
from fmilin.report.linear_pictures import shade_outside_unit_circle
from fmilin.report.numbers import shorten_name, value_with_unit
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STABILITY_WORDS = {True: "stable", False: "unstable", None: "undecided: this motion is too short"}
MAX_NAMES = 8
MAX_ROWS = 24
POLE_MARGIN = 1.15  # of the picture of poles, in radii of the unit circle or of the outermost pole
MIN_DECIBELS = -60.0  # of the axes of S and T
MAX_CURVES = 6  # sensitivities in one picture


def show_lqg(design: LqgDesign, page: Sheet) -> None:
    """Print what the regulator reads, drives and tracks, its margins wire by wire, gains and poles."""
    show_loops(design, page, [("Riccati", [f"residual {design.residual:.1e}"])])
    regulator = design.regulator
    names = [*design.linear.states.names, *(f"integral.{n}" for n in regulator.tracked)]
    all_gains = np.hstack((design.gain, design.integral_gain))
    for drive, row in zip(regulator.drives, all_gains, strict=True):
        texts = [f"{shorten_name(n)} {k:.5g}" for n, k in zip(names, row, strict=True)]
        print_fact(page, f"Gain of {shorten_name(drive)}", [join_first(texts, MAX_NAMES)])


def show_shaping(design: LoopShapingDesign, page: Sheet) -> None:
    """Print what the regulator reads, drives and tracks, its robust stability margin, margins and poles."""
    margin, designed = f"{design.stability_margin:.4g}", f"{design.designed_margin:.4g} by the Riccati equations"
    robust = [margin, f"at least {designed}", "0.25 or more is robust"]
    facts = [("Robustness", robust), ("Riccati", [f"residual {design.residual:.1e}"])]
    show_loops(design, page, facts)


def show_loops(design: RegulatorDesign, page: Sheet, facts: Sequence[tuple[str, list[str]]]) -> None:
    """Print what every design has, with further facts above the margins."""
    regulator, h = design.regulator, design.regulator.sample_time
    print_fact(page, f"{design.method} regulator", [f"of {design.linear.model.name}", f"every {h:g} s"])
    print_fact(page, "Reads", cut_list(map(shorten_name, regulator.reads), MAX_NAMES))
    print_fact(page, "Drives", [_describe_drive(design, name) for name in regulator.drives])
    if regulator.tracked:
        print_fact(page, "Tracks", [f"{shorten_name(n)}, with integral action" for n in regulator.tracked])
    rates = np.asarray(convert_to_rates(design.poles, h))
    slowest = rates[np.argmax(rates.real)]
    fastest = float(np.abs(design.poles).max(initial=0.0))
    print_fact(page, "Closed loop", [f"{len(design.poles)} poles", f"largest |z| {fastest:.6g}",
                                     f"slowest decays at {-slowest.real:.4g} 1/s"])  # fmt: skip
    for head, texts in facts:
        print_fact(page, head, texts)
    rows = []
    for name, item in list(design.loops.wires.items())[:MAX_ROWS]:
        m = item.margins
        gains = [f"{value:.4g}" for value in m.gain]
        rows.append((shorten_name(name), *gains, f"{m.phase:.4g}", f"{m.delay:.4g}", f"{m.disk:.4g}",
                     *(f"{peak:.4g}" for peak in item.peaks)))  # fmt: skip
    heads = ("Wire", "Gain down", "up", "Phase [deg]", "Delay [s]", "Disk", "|S| peak", "|T| peak")
    print_rows(page, heads, rows, columns="lrrrrrrr")


def _describe_drive(design: RegulatorDesign, name: str) -> str:
    if name not in design.limits:
        return shorten_name(name)
    low, high = design.limits[name]
    unit = design.linear.inputs[design.linear.inputs.index_of(name)].unit
    return f"{shorten_name(name)} from {value_with_unit(low, unit)} to {value_with_unit(high, unit)}"


def show_verification_of_regulator(verification: RegulatorVerification, page: Sheet) -> None:
    """Print whether the nonlinear closed loop comes back, and how well references are reached."""
    motion = verification.motion
    duration = f"{motion.times[-1] - motion.times[0]:g} s"
    print_fact(page, "Nonlinear closed loop", [STABILITY_WORDS[verification.stable], f"followed over {duration}"])
    print_fact(page, "Deviation at the end", [f"{verification.decay:.3g} of the largest"])
    for name, error in verification.tracking_errors.items():
        print_fact(page, f"Error of {shorten_name(name)}", [f"{error:.4g} at the end"])


def summarize_design(design: RegulatorDesign, verification: RegulatorVerification | None) -> str:
    """Return the smallest margins over all wires, and how the nonlinear closed loop behaves, in two lines."""
    margins = design.margins.values()
    low, high = max(m.gain[0] for m in margins), min(m.gain[1] for m in margins)
    phase, disk = min(m.phase for m in margins), min(m.disk for m in margins)
    smallest = f"gain {low:.3g} to {high:.3g}, phase {phase:.3g} deg, disk {disk:.3g}"
    lines = [f"Smallest margins of {len(margins)} wires: {smallest}"]
    if verification is not None:
        word = STABILITY_WORDS[verification.stable]
        lines.append(f"Nonlinear closed loop: {word}")
    return "\n".join(lines) + "\n"


def draw_design(design: RegulatorDesign) -> Figure:
    """Return |S| and |T| at each wire, and the closed-loop poles."""
    figure = create_titled_figure(f"{design.method} regulator of {plain(design.linear.model.name, 40)}", 11.5, 5.4)
    sensitivity, complementary, poles = figure.subplots(1, 3, width_ratios=[1.2, 1.2, 1.0])
    wires = list(design.loops.wires.items())
    w = np.unique(np.concatenate([choose_frequencies(item.loop) for _, item in wires[:MAX_CURVES]]))
    for number, (name, item) in enumerate(wires[:MAX_CURVES]):
        S = 1 / (1 - item.loop.frequency_response(w)[0, 0])
        style = {"color": COLORS[number % len(COLORS)], "linestyle": ("-", (0, (6, 2)), (0, (2, 1.5)))[number % 3]}
        for axes, values, peak in ((sensitivity, S, item.peaks[0]), (complementary, 1 - S, item.peaks[1])):
            label = f"{plain(name)}: peak {peak:.3g} ({20 * np.log10(peak):.1f} dB)"
            axes.plot(w, convert_to_decibels(np.abs(values)), label=label, linewidth=1.7, **style)
    omitted = f" (the first {MAX_CURVES} of {len(wires)} wires)" if len(wires) > MAX_CURVES else ""
    for axes, text in ((sensitivity, "|S|"), (complementary, "|T|")):
        axes.set(xscale="log", xlabel="frequency [rad/s]", ylabel="magnitude [dB]")
        lowest = min(float(np.nanmin(line.get_ydata())) for line in axes.get_lines())
        cut = f", down to {lowest:.0f} dB".replace("-", "\N{MINUS SIGN}") if lowest < MIN_DECIBELS else ""
        axes.set_title(f"{text} at each wire{omitted}{cut}", fontsize=10, loc="left")
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, MIN_DECIBELS), high)
        axes.axhline(0, color=QUIET, linewidth=0.8)
        axes.margins(x=0)
        draw_grid(axes)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, -0.14), frameon=False)
    shade_outside_unit_circle(poles)
    z = design.poles
    poles.plot(z.real, z.imag, "x", color=COLORS[0], markersize=8, markeredgewidth=2)
    reach = POLE_MARGIN * max(1.0, float(np.abs(z).max(initial=0.0)))
    poles.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part of z",
              ylabel="imaginary part of z")  # fmt: skip
    poles.set_title(f"{len(z)} closed-loop poles", fontsize=10, loc="left")
    draw_grid(poles)
    return figure
