"""The four-bar linkage in MuJoCo: its own linear model, of soft constraints, and the ideal one.

``python run.py`` writes soft_and_ideal.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from fmilin_mujoco import soft_linearization
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

FILE = Path(__file__).with_name("four_bar.xml")

with fl.load(FILE) as model:
    linear = fl.linearize(model)
ideal = linear.eigenvalues()
print(f"fmilin, ideal constraint: {ideal[1].imag:.9f} rad/s, {len(ideal)} eigenvalues")


def with_solref(time_constant: float) -> np.ndarray:
    """Return MuJoCo's eigenvalues for a stiffness of the loop, given by its time constant in seconds."""
    text = FILE.read_text().replace('anchor="1 0 0"', f'anchor="1 0 0" solref="{time_constant} 1"')
    with TemporaryDirectory() as folder:
        file = Path(folder) / "four_bar.xml"
        file.write_text(text)
        return soft_linearization(file)


constants = np.geomspace(0.005, 0.2, 25)
soft = [with_solref(c) for c in constants]
default = soft_linearization(FILE)
pair = default[np.argmin(np.abs(default - ideal[1]))]
print(f"MuJoCo, soft constraint:  {pair.imag:.9f} rad/s, {len(default)} eigenvalues, of which no motion has:")
for s in sorted(default, key=lambda s: s.real):
    if abs(s.real) > 1:
        print(f"    {s:.6g}")

BLUE, RED, QUIET = "#0b5394", "#c0392b", "#5f6368"
figure = Figure(figsize=(9.6, 4.8))
FigureCanvasAgg(figure)
figure.subplots_adjust(left=0.08, right=0.97, bottom=0.13, top=0.8, wspace=0.25)
figure.text(
    0.02, 0.94, "A loop held by springs, and a loop that is closed", fontsize=15, fontweight="bold", va="center"
)
figure.text(
    0.02, 0.875, "Eigenvalues of a four-bar linkage, over the stiffness (solref) of MuJoCo's soft constraint",
    fontsize=10.5, color=QUIET, va="center",
)  # fmt: skip
left, right = figure.subplots(1, 2)
for c, values in zip(constants, soft, strict=True):
    spurious = values[np.abs(values - 1j * values.imag) > 0.5]
    left.plot([c] * len(spurious), -spurious.real, ".", color=RED, markersize=5)
left.set_xscale("log")
left.set_yscale("log")
left.set_xlabel("time constant of the constraint [s]")
left.set_ylabel("decay rate [1/s]")
left.set_title("the springs' own: of no motion", fontsize=11, color=RED, loc="left")
frequencies = [values[np.argmin(np.abs(values - ideal[1]))].imag for values in soft]
right.plot(constants, frequencies, ".-", color=RED, label="MuJoCo, soft")
right.axhline(ideal[1].imag, color=BLUE, linewidth=2, label="fmilin, ideal")
right.set_xscale("log")
right.set_xlabel("time constant of the constraint [s]")
right.set_ylabel("frequency [rad/s]")
right.set_title("the swing of the linkage", fontsize=11, color=BLUE, loc="left")
right.legend(frameon=False, loc="lower left")
for axes in (left, right):
    axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
figure.savefig(output / "soft_and_ideal.png", dpi=120)
