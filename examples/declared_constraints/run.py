"""An FMU that says nothing about its constraints: declare them, linearize, design a controller.

``python run.py`` writes pendulum.fmu and closed_loop.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import control
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import cartesian_pendulum

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

# A load of 5 kg on a rope of 2 m, in Cartesian coordinates: 4 states, 2 of them independent, and nothing in the FMU
# says so, as in the FMUs of most tools.
native = cartesian_pendulum(length=2.0, mass=5.0)
fmu = build_fmu(native.with_constraints([]), output / "pendulum.fmu")

with fl.load(fmu) as model:
    naive = fl.linearize(model)
print("Nothing declared:  ", len(naive.states), "states, eigenvalues", np.round(naive.eigenvalues(), 6))

with fl.load(fmu, constraints=["x^2 + y^2 - L^2"]) as model:
    lin = fl.linearize(model, outputs=["x", "angle"])
print("x^2 + y^2 = L^2:   ", len(lin.states), "states, eigenvalues", np.round(lin.eigenvalues(), 6))
print("closed form:        +-", round((9.81 / 2.0) ** 0.5, 6), "i")

# A wrong length does not go unnoticed.
try:
    with fl.load(fmu, constraints=["x^2 + y^2 - 2.1^2"]) as model:
        fl.linearize(model)
except fl.ConstraintError as error:
    print("A typo:            ", error)

# The linear model goes where controllers are designed.
plant = lin.to_control()
K, _, poles = control.lqr(plant, np.diag([100.0, 1.0]), np.eye(1))
print("LQR gains", np.round(K, 4), "for", plant.state_labels, "poles", np.round(poles, 4))

closed = control.ss(lin.A - lin.B @ K, lin.B, lin.C, lin.D, outputs=plant.output_labels, inputs=["F"])
t = np.linspace(0.0, 12.0, 400)
start = np.array([0.2, 0.0])  # 0.2 m aside, at rest
figure = Figure(figsize=(7.0, 3.6), layout="constrained")
FigureCanvasAgg(figure)
axes = figure.subplots()
for system, style, color, label in (
    (plant, "--", "#d55e00", "as it is"),
    (closed, "-", "#0072b2", "with the regulator"),
):
    swing = control.initial_response(system, t, start)
    axes.plot(t, swing.outputs[0].ravel(), style, color=color, label=label)
axes.set_xlabel("time [s]")
axes.set_ylabel("x [m]")
figure.suptitle("Released 0.2 m aside (linear model)", x=0.02, ha="left")
figure.legend(loc="outside upper right", ncols=2, frameon=False)
axes.grid(visible=True, color="#dcdfe2")
figure.savefig(output / "closed_loop.png", dpi=130)
