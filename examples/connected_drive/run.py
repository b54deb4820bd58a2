"""A linkage, its motor and a regulator, a piece each: the linear model of the whole, and of its co-simulation.

``python run.py`` writes drive.ssp and damping_lost.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import control
import numpy as np

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.report import cosimulation_figure, find_step_limit
from fmilin.systems import four_bar

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

# The pieces: a four-bar linkage in 10 Cartesian states, its constraints inside the FMU; a motor; a PI regulator.
linkage = build_fmu(four_bar(damping=2.0), output / "linkage.fmu")
motor = OdeModel("motor", {"i": "(U - i - 0.5*w)/0.02"}, inputs=["U", "w"], outputs={"torque": "0.5*i"})
drive = build_fmu(motor, output / "motor.fmu")
regulator = control.ss([[0.0]], [[1.0, -1.0]], [[6.0]], [[12.0, -12.0]], inputs=["wanted", "angle"], outputs=["U"])
wires = [
    ("linkage.phi", "regulator.angle"),
    ("linkage.w", "motor.w"),
    ("regulator.U", "motor.U"),
    ("motor.torque", "linkage.torque"),
]

members = {"linkage": fl.load(linkage), "motor": fl.load(drive), "regulator": regulator}
with fl.connect(members, wires, inputs={"wanted": "regulator.wanted"}, outputs=["linkage.phi"], name="drive") as system:
    print(len(system.states), "states,", len(system.constraints), "constraints")
    rest = fl.operating_point(system).states[system.states.index_of("linkage.phi")]
    point = fl.operating_point(system, {"wanted": float(rest)})
    whole = fl.linearize(system, point)
    print("Order of the closed loop:", len(whole.states), whole.states.names)
    print("Eigenvalues:", np.round(whole.eigenvalues(), 4))

    # Whoever simulates the three FMUs side by side sees another system: values are a step old.
    for master, order in (("jacobi", ()), ("gauss-seidel", ("regulator", "motor", "linkage"))):
        seen = fl.cosimulated(system, point, step=0.02, master=master, order=order)
        slowest = min(seen.modes, key=lambda m: m.damping[0])
        before, after = slowest.damping
        print(f"{master}, steps of 0.02 s: damping {before:.3f} becomes {after:.3f}; {find_step_limit(seen)[1]}")
    figure = cosimulation_figure(fl.cosimulated(system, point, step=0.02))
    figure.savefig(output / "damping_lost.png", dpi=130, metadata={"Software": ""})

# For other tools: the same FMUs with the regulator as one more, wired by an SSP file.
fl.export.ssp(output / "drive.ssp", {"linkage": linkage, "motor": drive, "regulator": regulator}, wires)
with fl.load(output / "drive.ssp") as again:
    print("From drive.ssp:", np.round(fl.linearize(again, fl.operating_point(again)).eigenvalues(), 4))
