"""A four-bar linkage from a URDF file: Pinocchio's derivatives and fmilin's own, over the configuration.

``python run.py`` writes two_engines.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.models.mechanism import Mechanism

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

FILE = Path(__file__).with_name("four_bar.urdf")

pinocchio, own = fl.load(f"pinocchio:{FILE}"), Mechanism.from_urdf(FILE)
angles = np.linspace(-2.9, -0.25, 54)
square: dict[str, list[np.ndarray]] = {"pinocchio": [], "own": []}
worst = 0.0
for angle in angles:
    A = []
    for name, model in (("pinocchio", pinocchio), ("own", own)):
        point = fl.operating_point(model, {"phi.q": float(angle), "elbow.q": float(-angle)})
        linear = fl.linearize(model, point, independent=["phi.q", "phi.v"])
        square[name].append(-linear.A[1, 0])
        A.append(linear.A)
    worst = max(worst, float(np.max(np.abs(A[0] - A[1])) / np.max(np.abs(A[1]))))
print(f"largest relative difference of A over {len(angles)} configurations: {worst:.1e}")
hanging = fl.linearize(pinocchio, fl.operating_point(pinocchio, {"phi.q": -np.pi / 2}))
print(f"hanging: {hanging.eigenvalues()[1].imag:.12f} rad/s; closed form {np.sqrt(2 * 9.81 / (5 / 3)):.12f} rad/s")

BLUE, RED, QUIET = "#0b5394", "#c0392b", "#5f6368"
figure = Figure(figsize=(9.0, 4.6))
FigureCanvasAgg(figure)
figure.subplots_adjust(left=0.09, right=0.97, bottom=0.13, top=0.8)
figure.text(0.02, 0.93, "One linkage, two engines", fontsize=15, fontweight="bold", va="center")
figure.text(
    0.02, 0.865, "Stiffness of a four-bar linkage against its own weight, per inertia, over its configuration",
    fontsize=10.5, color=QUIET, va="center",
)  # fmt: skip
axes = figure.subplots()
axes.plot(np.degrees(angles), square["own"], color=BLUE, linewidth=2, label="fmilin's own recursion")
axes.plot(np.degrees(angles[::3]), square["pinocchio"][::3], "o", color=RED, markersize=6, markerfacecolor="none",
          label="Pinocchio's derivatives")  # fmt: skip
axes.axhline(0, color=QUIET, linewidth=0.8)
axes.set_xlabel("angle of the crank [degrees]")
axes.set_ylabel("- d (acceleration) / d (angle) [1/s2]")
axes.legend(frameon=False)
axes.grid(visible=True, color="#dcdfe2", linewidth=0.7)
for side in ("top", "right"):
    axes.spines[side].set_visible(False)
figure.savefig(output / "two_engines.png", dpi=120)
