"""An FMU of a four-bar linkage swings up: multiple shooting with IPOPT, derivatives from the FMU.

``python run.py`` writes swing_up.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import LagrangeModel
from fmilin.simulation import InputTable

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

STEP = 0.05  # s, between two decisions
HORIZON = 50  # decisions
LIMIT = 2.0  # N m, of the motor; the heavy crank needs 4.9 N m to be held level

# ---------------------------------------------------------------------- the linkage, as an FMU

# A crank (0.5 m, with 1 kg at its end) turns all the way round; coupler and rocker close a loop. Their joint is a point
# of 0.2 kg in Cartesian coordinates, with two constraints: six states, two degrees of freedom in (position, speed).
start = {"phi": -1.5, "x": 0.62, "y": -0.73}
native = LagrangeModel(
    "linkage",
    {"phi": "w", "x": "vx", "y": "vy"},
    [["M*a^2", 0, 0], [0, "m", 0], [0, 0, "m"]],
    ["torque - M*g*a*cos(phi) - c*w", 0, "-m*g"],
    constraints=["(x - a*cos(phi))^2 + (y - a*sin(phi))^2 - b^2", "(x - d)^2 + y^2 - r^2"],
    inputs=["torque"],
    parameters={"M": 1.0, "m": 0.2, "g": 9.81, "a": 0.5, "b": 1.2, "r": 1.0, "d": 1.3, "c": 0.02},
    outputs={"height": "a*sin(phi)"},
    start=start,
)
path = build_fmu(native, output / "linkage.fmu")
plant = fl.load(path)
hanging = fl.trim(plant, guess=start, fixed={"torque": 0.0})
upright = fl.trim(plant, guess={"phi": 1.5, "x": 1.4, "y": 1.0}, fixed={"torque": 0.0})
print("rests at", *(f"phi = {np.degrees(point['phi']):.1f} degrees" for point in (hanging, upright)))

# ---------------------------------------------------------------------- the optimal control problem


def make_problem(rates: Any, first: Any, last: Any) -> Any:
    """Return a solver of unknowns Y (2, HORIZON + 1) and U (1, HORIZON), for rates of all columns together."""
    Y, U = ca.MX.sym("Y", 2, HORIZON + 1), ca.MX.sym("U", 1, HORIZON)
    y = Y[:, :-1]
    k1 = rates(y, U)
    k2 = rates(y + STEP / 2 * k1, U)
    k3 = rates(y + STEP / 2 * k2, U)
    k4 = rates(y + STEP * k3, U)
    ahead = y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    gaps = ca.horzcat(Y[:, 0] - first, Y[:, 1:] - ahead, Y[:, -1] - last)
    problem = {"x": ca.veccat(Y, U), "f": STEP * ca.sumsqr(U), "g": ca.vec(gaps)}
    options: dict[str, Any] = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}  # quietly
    options |= {"ipopt.hessian_approximation": "limited-memory", "ipopt.max_iter": 500, "ipopt.tol": 1e-6}
    return ca.nlpsol("swing_up", "ipopt", problem, options)


nonlinear = fl.to_casadi(plant, hanging, independent=["phi", "w"])
print(nonlinear.f, "of", ", ".join(nonlinear.states.names))
together = nonlinear.batch(HORIZON)  # all steps of the horizon in one message to the FMU
first, last = nonlinear.y0, np.array([upright["phi"], 0.0])
swings = np.linspace(0, 3 * np.pi, HORIZON + 1)
guess = np.vstack((np.linspace(first[0], last[0], HORIZON + 1) + 0.5 * np.sin(swings), 1.5 * np.cos(swings)))
unknowns = np.concatenate((guess.ravel(order="F"), np.zeros(HORIZON)))
highest = np.concatenate((np.full(guess.size, np.inf), np.full(HORIZON, LIMIT)))


def solve(rates: Any) -> tuple[Any, dict[str, Any], float]:
    """Return the solution, the statistics and the seconds for each iteration."""
    solver = make_problem(rates, first, last)
    begin = time.perf_counter()
    solution = solver(x0=unknowns, lbx=-highest, ubx=highest, lbg=0, ubg=0)
    seconds = time.perf_counter() - begin
    statistics = solver.stats()
    return solution, statistics, seconds / statistics["iter_count"]


solution, statistics, seconds = solve(together.f)
plan, torque = ca.vertsplit(solution["x"], guess.size)
plan, torque = plan.full().reshape(-1, 2), torque.full().ravel()
print(f"IPOPT: {statistics['return_status']} after {statistics['iter_count']} iterations")
print(f"{1e3 * seconds:.1f} ms for each iteration with the FMU")

# The same with the equations themselves, as CasADi's graph.
form = fl.to_casadi(native).in_independent_coordinates(hanging, independent=["phi", "w"])
graph = form.F.map(HORIZON)
_, same, native_seconds = solve(lambda y, u: graph(y, u, 0))
print(f"{1e3 * native_seconds:.1f} ms for each iteration with the equations ({same['iter_count']} iterations)")

# ---------------------------------------------------------------------- the plant follows the plan

times = STEP * np.arange(HORIZON + 1)
table = InputTable(np.repeat(times, 2)[1:-1], ["torque"], np.repeat(torque, 2)[:, None])
motion = fl.simulate(plant, hanging, stop_time=float(times[-1]), step=STEP / 5, inputs=table)
away = abs(np.degrees(motion["phi"][-1] - upright["phi"]))
print(f"after {times[-1]:g} s the crank is {away:.2f} degrees away from upright")
reached = {
    "a solution": statistics["success"],
    "the same with the equations": same["success"],
    "upright": away < 1.0,
    "no more torque than there is": np.abs(torque).max() <= LIMIT * (1 + 1e-6),
}
if not all(reached.values()):
    raise SystemExit(f"not reached: {', '.join(goal for goal, is_reached in reached.items() if not is_reached)}")

# ---------------------------------------------------------------------- the picture

BLUE, ORANGE = "#0072b2", "#d55e00"  # distinguishable for colour-blind people, and in print
figure = Figure(figsize=(7.0, 4.6), layout="constrained")
FigureCanvasAgg(figure)
angle, motor = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
angle.plot(motion.times, np.degrees(motion["phi"]), color=BLUE, label="FMU")
angle.plot(times, np.degrees(plan[:, 0]), "o", color=ORANGE, markersize=3, label="plan")
angle.set_ylabel("crank [\N{DEGREE SIGN}]")
angle.legend(frameon=False)
motor.step(times, np.append(torque, torque[-1]), where="post", color=BLUE)
motor.set_ylabel("torque [N m]")
motor.set_xlabel("time [s]")
for axes in (angle, motor):
    axes.grid(visible=True, color="#dcdfe2")
figure.suptitle("A linkage in an FMU swings up", x=0.02, ha="left")
figure.savefig(output / "swing_up.png", dpi=130)
