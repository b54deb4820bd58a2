"""Margins of a single loop, drawn in its Bode and Nyquist diagrams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from fmilin.design.margins import Margins, compute_margins, margins
from fmilin.errors import FmilinError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.numerics.feedback import StateSpace
from fmilin.report.figures import COLORS, INK, QUIET
from fmilin.report.frequency_curves import Complex, choose_frequencies, unwrap_phase
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAIN_END_TOLERANCE = 1e-3  # relative, between 1/L at a crossing and an end of the gains: the end belongs to it
GAIN, PHASE, DISK = COLORS[1], COLORS[2], COLORS[3]
DISK_STYLE: dict[str, Any] = {"color": DISK, "linewidth": 1.6, "linestyle": (0, (4, 2, 1, 2))}
MAX_DISK_MARGIN = 2.0  # from which on the disk is a half plane


def is_single_loop(linear: LinearModel) -> bool:
    """Whether the model is L at one wire."""
    return any(w.kind == "loop" for w in linear.warnings) and len(linear.inputs) == len(linear.outputs) == 1


def describe_feedback(linear: LinearModel, output: str, source: str) -> str:
    """Return the margins of a channel that is closed by input = -output, in words; empty with delays."""
    if isinstance(linear, DelayedLinearModel):
        return ""
    i, j = linear.outputs.index_of(output), linear.inputs.index_of(source)
    loop = StateSpace(linear.A, linear.B[:, [j]], -linear.C[[i]], -linear.D[[i]][:, [j]], linear.sample_time)
    texts = [text for text, _ in LoopMargins(linear, compute_margins(loop)).list_labels()]
    return f"Closed by {source} = \N{MINUS SIGN}{output}: {'; '.join(texts)}."


def _write_decibels(gain: float) -> str:
    if gain == 0:
        return "−∞"
    return "∞" if gain == math.inf else f"{20 * math.log10(gain):.3g}".replace("-", "−")


@dataclass(frozen=True, eq=False)
class LoopMargins:
    """Margins of a single loop, and what a picture of them shows."""

    loop: LinearModel
    margins: Margins

    @classmethod
    def of(cls, linear: LinearModel) -> LoopMargins | None:
        """Return the margins of a loop at one wire; None for other models, and where they cannot be computed."""
        if not is_single_loop(linear):
            return None
        try:
            return cls(linear, margins(linear))
        except FmilinError:  # a neutral loop with delays: the curve is exact, its margins are not known
            return None

    def _respond(self, frequency: float) -> complex:
        return complex(self.loop.frequency_response(np.array([frequency]))[0, 0, 0])

    @cached_property
    def gain_frequencies(self) -> list[tuple[float, float]]:
        """Finite ends of the gains, and the frequency in rad/s at which L = 1/gain; NaN at none that is drawn."""
        w = choose_frequencies(self.loop)
        L = self.loop.frequency_response(w)[0, 0]
        crossings = np.flatnonzero((np.sign(L.imag[:-1]) != np.sign(L.imag[1:])) & (L.real[:-1] > 0))
        ends = []
        for gain in self.margins.gain:
            if not 0 < gain < math.inf:
                continue
            at = [w[0], w[-1]]
            at += [brentq(lambda f: self._respond(f).imag, w[k], w[k + 1]) for k in crossings.tolist()]
            distances = [abs(self._respond(float(f)) * gain - 1) for f in at]
            nearest = int(np.argmin(distances))
            ends.append((gain, float(at[nearest]) if distances[nearest] < GAIN_END_TOLERANCE else math.nan))
        return ends

    def list_labels(self) -> Iterator[tuple[str, str]]:
        """Yield what is known of each margin, with its colour."""
        m = self.margins
        if not m.stable:
            yield "the closed loop is unstable: no margins", INK
            return
        low, high = m.gain
        factors = [f"{gain:.4g}" if gain < math.inf else "∞" for gain in (low, high)]
        decibels = [_write_decibels(gain) for gain in (low, high)]
        yield f"gain margin {factors[0]} to {factors[1]} ({decibels[0]} to {decibels[1]} dB)", GAIN
        at = "" if math.isnan(m.phase_frequency) else f" at {m.phase_frequency:.4g} rad/s"
        yield f"phase margin {m.phase:.4g}°{at}, delay margin {m.delay:.4g} s", PHASE
        yield f"disk margin {m.disk:.4g} at {m.disk_frequency:.4g} rad/s", DISK

    def draw_in_bode(self, magnitude: Axes, phase: Axes, w: FloatArray, L: Complex, *, db: bool) -> None:
        """Draw where the loop is 1, both ends of the gain, and the phase between L and a whole turn."""
        m = self.margins
        unity = 0.0 if db else 1.0
        magnitude.axhline(unity, color=QUIET, linewidth=0.9, linestyle=":")
        angles = unwrap_phase(L)
        low, high = phase.get_ylim()
        turns = 360.0 * np.arange(math.ceil(low / 360.0), math.floor(high / 360.0) + 1)
        for number, turn in enumerate(turns.tolist()):
            phase.axhline(turn, color=QUIET, linewidth=1.2, linestyle=":",
                          label="L = +1: magnitude 1, phase a whole turn" if not number else None)  # fmt: skip
        labels = list(self.list_labels())
        if not m.stable:
            magnitude.plot([], [], " ", label=labels[0][0])
            return
        gain_label, phase_label, disk_label = (text for text, _ in labels)
        for gain, frequency in self.gain_frequencies:
            if math.isnan(frequency):
                continue
            end = -20 * math.log10(gain) if db else 1 / gain
            magnitude.plot([frequency] * 2, [end, unity], color=GAIN, linewidth=2.2, marker="s", markersize=4,
                           label=gain_label)  # fmt: skip
            gain_label = f"_{gain_label.lstrip('_')}"
            phase.axvline(frequency, color=GAIN, linewidth=0.9, linestyle=(0, (1, 2)))
        if not gain_label.startswith("_"):
            magnitude.plot([], [], color=GAIN, linewidth=2.2, marker="s", markersize=4, label=gain_label)
        if math.isfinite(m.phase_frequency) and w[0] <= m.phase_frequency <= w[-1]:
            angle = float(np.interp(math.log(m.phase_frequency), np.log(w), angles))
            turn = 360.0 * round(angle / 360.0)
            phase.plot([m.phase_frequency] * 2, [angle, turn], color=PHASE, linewidth=2.2, marker="o", markersize=4,
                       label=phase_label)  # fmt: skip
            magnitude.axvline(m.phase_frequency, color=PHASE, linewidth=0.9, linestyle=(0, (1, 2)))
        else:
            phase.plot([], [], color=PHASE, linewidth=2.2, label=phase_label)
        if math.isfinite(m.disk_frequency) and w[0] <= m.disk_frequency <= w[-1]:
            magnitude.axvline(
                m.disk_frequency, color=DISK, linewidth=1.6, linestyle=(0, (4, 2, 1, 2)), label=disk_label
            )
        else:
            magnitude.plot([], [], label=disk_label, **DISK_STYLE)

    def draw_in_nyquist(self, axes: Axes) -> None:
        """Draw the unit circle, both ends of the gain, the angle of the phase margin, and the disk to stay out of."""
        angle = np.linspace(0, 2 * np.pi, 361)
        axes.plot(np.cos(angle), np.sin(angle), color=QUIET, linewidth=0.8, linestyle=":", zorder=1)
        m = self.margins
        labels = list(self.list_labels())
        if not m.stable:
            axes.plot([], [], " ", label=labels[0][0])
            return
        gain_label, phase_label, disk_label = (text for text, _ in labels)
        ends = [1 / gain for gain in m.gain if 0 < gain < math.inf]
        axes.plot([*ends, 1.0] if ends else [], [0.0] * (len(ends) + 1) if ends else [], color=GAIN, linewidth=2.4,
                  marker="s", markersize=4, zorder=3, label=gain_label)  # fmt: skip
        if math.isfinite(m.phase_frequency):
            reached = float(np.angle(self._respond(m.phase_frequency)))
            arc = np.linspace(0.0, reached, 60)
            axes.plot(np.cos(arc), np.sin(arc), color=PHASE, linewidth=2.4, zorder=3, label=phase_label)
            axes.plot([0, math.cos(reached)], [0, math.sin(reached)], color=PHASE, linewidth=1.0, zorder=3)
        else:
            axes.plot([], [], color=PHASE, linewidth=2.4, label=phase_label)
        if 0 < m.disk < MAX_DISK_MARGIN:
            low, high = m.disk_gain
            center, radius = (low + high) / 2, (high - low) / 2
            axes.fill(center + radius * np.cos(angle), radius * np.sin(angle), facecolor=DISK, alpha=0.2, zorder=0)
            axes.plot(center + radius * np.cos(angle), radius * np.sin(angle), zorder=2, label=disk_label, **DISK_STYLE)
        else:
            axes.plot([], [], label=disk_label, **DISK_STYLE)
