"""Eigenvalues of the Whipple bicycle over its speed, from the nonlinear equations, against the published benchmark.

``python run.py`` writes eigenvalues.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.optimize import brentq

from fmilin import OperatingPoint
from fmilin.signals import FloatArray
from fmilin.systems import bicycle

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

LEAN_AND_STEER = ("lean", "steer", "lean_rate", "steer_rate")

# Kane's equations of four rigid bodies: 14 states, of which pitch, yaw rate, pitch rate and the front wheel's rate
# depend on the others. They are derived by sympy, differentiated and compiled when the first matrix is asked for.
start = time.perf_counter()
model = bicycle()
model.matrices()
print(f"derived, differentiated and compiled in {time.perf_counter() - start:.1f} s")


def points(speeds: FloatArray) -> list[OperatingPoint]:
    return [OperatingPoint(0.0, bicycle(float(v)).start.states, np.zeros(3)) for v in speeds]


def eigenvalues(speeds: FloatArray) -> np.ndarray:
    """Return the four eigenvalues of lean and steer at each speed, shape (speeds, 4); the other six are zero."""
    found = []
    for matrices in model.matrices_along(points(speeds)):
        names = [model.states.names[i] for i in matrices.partition.states]
        rows = [names.index(name) for name in LEAN_AND_STEER]
        found.append(np.linalg.eigvals(matrices.A[np.ix_(rows, rows)]))
    return np.array(found)


speeds = np.linspace(0.0, 10.0, 401)
at = points(speeds)
start = time.perf_counter()
model.matrices_along(at)
print(f"{len(speeds)} linear models in {1e3 * (time.perf_counter() - start):.1f} ms")
values = eigenvalues(speeds)

# The benchmark of Meijaard et al. (2007), at 5 m/s.
[five] = eigenvalues(np.array([5.0]))
for name, published in (
    ("weave", -0.77534188219585 + 4.46486771378823j),
    ("capsize", -0.32286642900409),
    ("castering", -14.07838969279822),
):
    nearest = five[np.argmin(np.abs(five - published))]
    print(f"{name:>10} at 5 m/s: {nearest:.14g}, off by {abs(nearest - published) / abs(published):.0e}")


# Where the stable range begins and ends.
def weave(speed: float) -> float:
    [s] = eigenvalues(np.array([speed]))
    return float(s[np.argmax(np.abs(s.imag))].real)


def capsize(speed: float) -> float:
    [s] = eigenvalues(np.array([speed]))
    return float(np.max(s[np.abs(s.imag) < 1e-9].real))


v_weave, v_capsize = brentq(weave, 4.0, 5.0, xtol=1e-13), brentq(capsize, 5.5, 6.5, xtol=1e-13)
print(f"stable by itself from {v_weave:.8f} m/s (weave) to {v_capsize:.8f} m/s (capsize)")

# ---------------------------------------------------------------------- the picture


def branches(found: np.ndarray) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Return castering and capsize, shape (speeds,), and the weave pair, (speeds, 2): real at walking speed."""
    castering, capsizing, weaving = [], [], []
    for unsorted in found:
        s = unsorted[np.argsort(unsorted.real)]
        is_pair = np.abs(s.imag) > 1e-9
        pair = s[is_pair] if is_pair.any() else s[2:]
        rest = s[~is_pair].real if is_pair.any() else s[:2].real
        castering.append(rest[0])
        capsizing.append(rest[1])
        weaving.append(pair[np.argsort(pair.imag)])
    return np.array(castering), np.array(capsizing), np.array(weaving)


BLUE, ORANGE, GREEN, VIOLET, GREY, QUIET = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7a7a7a", "#5f6368"
figure = Figure(figsize=(9.6, 6.0))
FigureCanvasAgg(figure)
figure.subplots_adjust(left=0.08, right=0.975, bottom=0.1, top=0.86)
figure.text(0.02, 0.95, "A bicycle steers itself", fontsize=16, fontweight="bold", va="center")
figure.text(
    0.02, 0.9, "Eigenvalues of the uncontrolled Whipple bicycle, linearized from its nonlinear equations of motion",
    fontsize=10.5, color=QUIET, va="center",
)  # fmt: skip
axes: Axes = figure.subplots()
axes.axvspan(v_weave, v_capsize, color="#e6f1e3", zorder=0)
axes.axhline(0.0, color=QUIET, linewidth=0.8, zorder=1)
castering, capsizing, weaving = branches(values)
oscillating = weaving[:, 1].imag > 0
axes.plot(
    speeds[oscillating], weaving[oscillating, 1].imag, color=VIOLET, linewidth=1.4, linestyle=(0, (5, 2)), zorder=2
)
axes.plot(speeds, weaving.real, color=BLUE, linewidth=2.2, zorder=3)
axes.plot(speeds, capsizing, color=ORANGE, linewidth=2.2, zorder=3)
axes.plot(speeds, castering, color=GREY, linewidth=2.2, zorder=3)
axes.plot([5.0] * 3, [-0.77534188219585, 4.46486771378823, -0.32286642900409], "o", markersize=8,
          markerfacecolor="none", markeredgecolor="black", markeredgewidth=1.3, zorder=4)  # fmt: skip
axes.set_xlim(0, 10)
axes.set_ylim(-10, 10)
axes.set_xlabel("speed [m/s]")
axes.set_ylabel("eigenvalue [1/s]")
axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
axes.set_axisbelow(True)
for side in ("top", "right"):
    axes.spines[side].set_visible(False)


def label(text: str, x: float, y: float, colour: str) -> None:
    axes.text(x, y, text, color=colour, fontsize=10.5, va="center", ha="left", zorder=5)


label("weave: grows at low speed", 1.25, 3.95, BLUE)
label("weave: its frequency [rad/s]", 7.1, 6.1, VIOLET)
label("capsize: grows slowly at high speed", 6.5, 0.65, ORANGE)
label("castering", 2.35, -7.9, GREY)
axes.text((v_weave + v_capsize) / 2, 8.7, f"stable by itself\n{v_weave:.3f} to {v_capsize:.3f} m/s", color=GREEN,
          fontsize=10.5, ha="center", va="center", zorder=5)  # fmt: skip
for y in (-0.55, 4.46):
    axes.annotate("", xy=(5.06, y + (0.25 if y < 0 else -0.25)), xytext=(5.32, 2.05), zorder=4,
                  arrowprops={"arrowstyle": "-", "color": QUIET, "linewidth": 0.9})  # fmt: skip
axes.text(5.35, 2.0, "published for 5 m/s", fontsize=10, color="black", va="center", zorder=5)
figure.savefig(output / "eigenvalues.png", dpi=130)
