"""A crane in Modelica: its linear model, an LQG regulator, and a move of 2 m on the nonlinear model.

``python run.py`` writes crane.png and regulator.c into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import fmilin as fl

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

# The rope is an algebraic constraint: fmilin derives the hidden ones and chooses coordinates on their manifold.
model = fl.load(Path(__file__).parent / "crane.mo")
lin = fl.linearize(model, independent=["s", "x", "v", "vx"])
print(len(lin.states), "independent states of", len(model.states), lin.states.names)

# Without friction the load sways with sqrt((1 + m/M) g/l).
frictionless = fl.linearize(model.with_parameters({"d": 0.0}), independent=["s", "x", "v", "vx"])
sway = max(mode.frequency for mode in frictionless.modes())
closed_form = ((1 + 2 / 5) * 9.81 / 3) ** 0.5
print(f"sway {sway:.9f} rad/s, closed form {closed_form:.9f} rad/s")
if abs(sway - closed_form) > 1e-9:
    raise SystemExit("The frequency of the sway is wrong.")

# Weights are 1/(largest deviation)^2; the position is measured, and follows a reference.
design = fl.design.lqg(
    lin,
    states={"position": 1 / 0.5**2, "angle": 1 / 0.05**2},
    inputs={"F": 1 / 20.0**2},
    process={"F": 1.0},
    measured={"position": 1e-6, "angle": 1e-6},
    sample_time=0.02,
    track=["position"],
    limits={"F": (-30.0, 30.0)},
)
print(design)

# The nonlinear crane moves by 2 m.
moved = design.verify(model, size=0.0, stop_time=15.0, references={"position": 2.0})
error = moved.tracking_errors["position"]
print(f"position at the end: {error:+.1e} m from the reference")
if abs(error) > 1e-2:
    raise SystemExit("The crane does not reach its reference.")
moved.plot("position", "angle", "F").savefig(output / "crane.png", dpi=130)
design.save(output / "regulator.c")
