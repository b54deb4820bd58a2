"""A Furuta pendulum swings up and stays up: nonlinear receding-horizon control with the model's CasADi functions.

``python run.py`` writes swing_up.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import casadi as ca
import control
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.systems import furuta_pendulum

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

STEP = 0.05  # s, between two decisions
HORIZON = 24  # decisions ahead
LIMIT = 0.25  # N m, of the motor that turns the arm
SHOVE_AT, SHOVE = 3.0, 3.0  # s; rad/s, which the pendulum suddenly has more
STOP = 5.0  # s

# The model starts upright. Its functions are a graph that can be differentiated twice: what a solver wants.
model = furuta_pendulum()
upright = model.start.states
nonlinear = fl.to_casadi(model)
print(nonlinear.f, "of", ", ".join(f"{s.name} [{s.unit}]" for s in nonlinear.states))

# What is beyond the horizon is left to a sampled regulator: its cost to go belongs to the linear model.
Q, R = np.diag([0.2, 1.0, 0.02, 0.02]) * STEP, np.eye(1) * 5 * STEP
sampled = control.c2d(fl.linearize(model).to_control(), STEP)
_, to_go, _ = control.dlqr(sampled.A, sampled.B, Q, R)

# ---------------------------------------------------------------------- the optimal control problem

# One step of Runge and Kutta's, the torque held, then the horizon: states and torques are unknowns (multiple shooting).
x, u = ca.SX.sym("x", 4), ca.SX.sym("u")
k1 = nonlinear.f(x, u, 0)
k2 = nonlinear.f(x + STEP / 2 * k1, u, 0)
k3 = nonlinear.f(x + STEP / 2 * k2, u, 0)
k4 = nonlinear.f(x + STEP * k3, u, 0)
ahead = ca.Function("ahead", [x, u], [x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])

X, U, now = ca.MX.sym("X", 4, HORIZON + 1), ca.MX.sym("U", 1, HORIZON), ca.MX.sym("now", 4)
arm, lean, speeds = X[0, :], 2 * ca.sin((X[1, :] - upright[1]) / 2), X[2:, :]  # a full turn costs nothing
last = ca.vertcat(arm[-1], lean[-1], speeds[:, -1])
cost = Q[0, 0] * ca.sumsqr(arm) + Q[1, 1] * ca.sumsqr(lean) + Q[2, 2] * ca.sumsqr(speeds) + R[0, 0] * ca.sumsqr(U)
cost += ca.bilin(ca.DM(to_go), last, last)
gaps = ca.horzcat(X[:, 0] - now, X[:, 1:] - ahead.map(HORIZON)(X[:, :-1], U))
problem = {"x": ca.veccat(X, U), "p": now, "f": cost, "g": ca.vec(gaps)}
options: dict[str, Any] = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"}  # quietly
options |= {"ipopt.tol": 1e-4, "ipopt.mu_strategy": "adaptive", "ipopt.max_iter": 100}
solver = ca.nlpsol("swing_up", "ipopt", problem, options)
highest = np.concatenate((np.full(X.numel(), np.inf), np.full(HORIZON, LIMIT)))

# ---------------------------------------------------------------------- the closed loop

state = np.array([0.0, 0.1, 0.0, 0.0])  # hangs, 6 degrees aside
plan = np.linspace(state, upright, HORIZON + 1)
torques = np.zeros(HORIZON)
times, states, held, plans, seconds = [np.zeros(1)], [state[None]], [np.zeros(1)], {}, []
for k in range(round(STOP / STEP)):
    t = k * STEP
    if k == round(SHOVE_AT / STEP):
        state[3] += SHOVE
    begin = time.process_time()
    solution = solver(x0=np.append(plan, torques), p=state, lbx=-highest, ubx=highest, lbg=0, ubg=0)
    seconds.append(time.process_time() - begin)
    unknowns = solution["x"].full()[:, 0]
    plan, torques = unknowns[: X.numel()].reshape(-1, 4), unknowns[X.numel() :]
    if k in (0, round(SHOVE_AT / STEP)):
        plans[t] = plan[:, 1]
    # The plant is fmilin's own simulation, with its own step sizes.
    point = fl.OperatingPoint(t, state, torques[:1].copy())
    motion = fl.simulate(model, point, stop_time=t + STEP, step=STEP / 5)
    state = motion.states[-1].copy()
    times.append(motion.times[1:])
    states.append(motion.states[1:])
    held.append(np.full(len(motion.times) - 1, torques[0]))
    plan, torques = np.vstack((plan[1:], plan[-1:])), np.append(torques[1:], 0.0)  # where the next search starts

at, all_states, torque = np.concatenate(times), np.concatenate(states), np.concatenate(held)
aside = np.degrees(2 * np.arcsin(np.abs(np.sin((all_states[:, 1] - upright[1]) / 2))))  # from upright, whichever way
before = at < SHOVE_AT
print(f"within 5 degrees of upright after {at[before][np.flatnonzero(aside[before] > 5)[-1]]:.2f} s")
print(f"at most {aside[~before].max():.0f} degrees aside after the shove, {aside[-1]:.3f} at the end")
print(f"a decision takes {1e3 * np.median(seconds):.0f} ms of processor time (median), the first {seconds[0]:.1f} s")
reached = {
    "up before it is shoved": aside[before][-1] < 1,
    "up at the end": aside[-1] < 0.5 and np.abs(state[[0, 2, 3]]).max() < 0.05,
    "no more torque than there is": np.abs(torque).max() <= LIMIT * (1 + 1e-6),
}
if not all(reached.values()):
    raise SystemExit(f"not reached: {', '.join(goal for goal, is_reached in reached.items() if not is_reached)}")

# ---------------------------------------------------------------------- the picture

# distinguishable for colour-blind people, and in print
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8a8f94"

figure = Figure(figsize=(7.0, 5.6), layout="constrained")
FigureCanvasAgg(figure)
angle, turn, motor = figure.subplots(3, 1, sharex=True, height_ratios=[2, 1.2, 1])
angle.plot(at, np.degrees(all_states[:, 1]), color=BLUE, label="pendulum")
for i, (start, planned) in enumerate(plans.items()):
    later = start + STEP * np.arange(HORIZON + 1)
    label = "" if i else "planned at 0 s and at the shove"
    angle.plot(later, np.degrees(planned), "--", color=ORANGE, linewidth=1.2, label=label)
low, high = (edge / 180 for edge in angle.get_ylim())
ticks = 180 * np.arange(np.ceil(low), np.floor(high) + 1)
angle.set_yticks(ticks, ["hangs" if tick % 360 == 0 else "upright" for tick in ticks])
height = np.degrees(all_states[:, 1])[~before][0]
angle.annotate("shoved", (SHOVE_AT, height), (SHOVE_AT, height / 2), ha="center", arrowprops={"arrowstyle": "->"})
turn.plot(at, np.degrees(all_states[:, 0]), color=GREEN)
turn.set_ylabel("arm [\N{DEGREE SIGN}]")
motor.step(at, torque, where="pre", color=BLUE)
for limit in (-LIMIT, LIMIT):
    motor.axhline(limit, color=GREY, linewidth=0.8, linestyle=":")
motor.set_ylabel("torque [N m]")
motor.set_xlabel("time [s]")
motor.set_xlim(0, STOP)
for axes in (angle, turn, motor):
    axes.grid(visible=True, color="#dcdfe2")
figure.suptitle("A Furuta pendulum swings up", x=0.02, ha="left")
figure.legend(loc="outside upper right", ncols=2, frameon=False)
figure.savefig(output / "swing_up.png", dpi=130)
