"""A Delta robot under a gain schedule over its workspace, flown on the nonlinear model and its FMU, written as C.

``python run.py`` writes circle.png and schedule.c into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import control
import numpy as np
from delta import HEIGHT, delta_robot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.signals import FloatArray

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="for what it writes; here by default")
output: Path = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)

SAMPLE = 0.005  # s
RADIUS, TURN = 0.12, 4.0  # m, s for a turn of the circle
LIMITS = {f"torque{i}": (-8.0, 8.0) for i in (1, 2, 3)}  # N.m
PLACE, SPEED = ("x", "y", "z"), ("vx", "vy", "vz")

model = delta_robot()
family = fl.sweep(
    model,
    {"x": np.linspace(-0.15, 0.15, 5), "y": np.linspace(-0.15, 0.15, 5), "z": np.linspace(-0.52, -0.36, 3)},
    trim=fl.TrimRequest(fixed=dict.fromkeys(SPEED, 0.0), free=list(LIMITS)),  # the torques that hold it
    independent=[*PLACE, *SPEED],
)


def rule(linear: fl.LinearModel) -> FloatArray:
    sampled = control.c2d(control.ss(linear.A, linear.B, linear.C, linear.D), SAMPLE)
    gain = control.dlqr(sampled.A, sampled.B, np.diag([4e3] * 3 + [4.0] * 3), 0.5 * np.eye(3))[0]
    return np.asarray(gain, dtype=np.float64)


schedule = fl.design.schedule(family, rule, over=PLACE, sample_time=SAMPLE)
print(schedule)


def circle(t: float) -> tuple[float, float, float]:
    """Return where the platform shall be: out to the circle in half a second, then half around."""
    r, phase = RADIUS * min(t / 0.5, 1.0), 2 * np.pi * max(t - 0.5, 0.0) / TURN
    return r * np.cos(phase), r * np.sin(phase), HEIGHT


def speed(t: float) -> FloatArray:
    """Return the speed that goes with it, behind zeros for the place."""
    rate = (np.array(circle(t + 1e-6)) - np.array(circle(t - 1e-6))) / 2e-6
    return np.concatenate((np.zeros(3), rate))


middle = schedule.linear_model(dict(zip(PLACE, (0.0, 0.0, HEIGHT), strict=True)))
K, u0 = -middle.D, np.array(list(middle.point.outputs.values()))


def scheduled(t: float, read: FloatArray) -> FloatArray:
    """Answer with the gains and trim torques of where the platform shall be."""
    answer: FloatArray = schedule.step(circle(t), read - speed(t))
    return answer


def one_gain(t: float, read: FloatArray) -> FloatArray:
    """Answer with those of the middle, wherever the platform is."""
    answer: FloatArray = u0 - K @ (read - np.array([*circle(t), 0.0, 0.0, 0.0]) - speed(t))
    return answer


laws = {
    name: fl.design.FunctionRegulator(law, [*PLACE, *SPEED], list(LIMITS), SAMPLE)
    for name, law in (("schedule", scheduled), ("one gain", one_gain))
}


def flown(plant: fl.Model, law: fl.design.FunctionRegulator) -> fl.Trajectory:
    """Return the flight of a plant."""
    return fl.closed_loop(
        plant, law, fl.operating_point(plant, {"x": 0.0, "y": 0.0, "z": HEIGHT}),
        stop_time=0.5 + TURN / 2, limits=LIMITS,
        noise=dict.fromkeys(PLACE, 2e-5), quantization=dict.fromkeys(PLACE, 1e-5), disturbances={"torque1": 0.1},
    )  # fmt: skip


runs = {}
for name, law in laws.items():
    ran = runs[name] = flown(model, law)
    wanted = np.array([circle(t) for t in ran.times])
    fault = np.linalg.norm(np.column_stack([ran[n] for n in PLACE]) - wanted, axis=1)
    print(f"{name:>9}: {1e3 * fault[ran.times > 1].max():.2f} mm from where it shall be, at most")

with tempfile.TemporaryDirectory() as folder:  # the same flight, the plant a black box
    build_fmu(model, Path(folder) / "delta.fmu")
    with fl.load(Path(folder) / "delta.fmu") as plant:
        box = flown(plant, laws["schedule"])
apart = max(float(np.abs(box[n] - runs["schedule"][n]).max()) for n in PLACE)
print(f"      FMU: {1e3 * apart:.0e} mm from the equations' flight at most")
if apart > 1e-9:
    raise SystemExit("The FMU does not fly as its equations do.")

figure = Figure(figsize=(9, 4.2), layout="constrained")
FigureCanvasAgg(figure)
above, height = figure.subplots(1, 2)
for (name, ran), color in zip(runs.items(), ("#0072b2", "#d55e00"), strict=True):
    above.plot(ran["x"], ran["y"], color=color, label=name)
    height.plot(ran.times, 1e3 * (ran["z"] - HEIGHT), color=color)
angle = np.linspace(0, 2 * np.pi, 200)
above.plot(RADIUS * np.cos(angle), RADIUS * np.sin(angle), color="#5f6368", linewidth=0.8, label="wanted")
above.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="the platform from above")
height.set(xlabel="time [s]", ylabel="z less wanted [mm]", title="its height")
above.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.32))
figure.savefig(output / "circle.png", dpi=130)

schedule.save(output / "schedule.c", limits=LIMITS)
if compiler := shutil.which("cc"):  # the C file answers as Python did, along the whole flight
    ran = runs["schedule"]
    states = [model.states.index_of(n) for n in (*PLACE, *SPEED)]
    rows = np.array([[*circle(t), *ran.states[k][states]] for k, t in enumerate(ran.times)])
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "schedule.so"
        subprocess.run([compiler, "-O1", "-fPIC", "-shared", output / "schedule.c", "-o", library], check=True)  # noqa: S603
        step = ctypes.CDLL(str(library)).schedule_step
        memory, torques, worst = np.zeros(4), np.zeros(3), 0.0
        for row in rows:
            step(*(a.ctypes.data_as(ctypes.c_void_p) for a in (memory, row, torques)))
            expected = np.clip(schedule.step(row[:3], row[3:]), -8.0, 8.0)
            worst = max(worst, float(np.abs(torques - expected).max()))
    print(f"      C: {worst:.0e} N.m from Python at most, over {len(rows)} steps")
    if worst > 1e-12 * 8:
        raise SystemExit("The C file does not answer as Python does.")
