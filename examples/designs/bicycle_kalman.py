"""Kalman filter of the bicycle at 5.2 m/s: a gyroscope and an accelerometer on its frame, in gusts of wind.

    python bicycle_kalman.py --output pictures

The frame's pitch is a dependent coordinate, and the accelerometer moves with it. The filter runs on data of the
nonlinear bicycle. Its errors, normalized by the covariance that it promises, must have the mean 5 (NEES).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
from pictures import BLUE, GREY, ORANGE, picture, run
from scipy.stats import chi2
from sympy.physics.mechanics import Point

import fmilin as fl
from fmilin import design
from fmilin.models import KaneModel
from fmilin.reduction import minimal_realization
from fmilin.simulation import InputTable
from fmilin.systems.bicycle_model import BENCHMARK, describe_frames, whipple_equations

SPEED = 5.2  # m/s, between weave and capsize: stable
SAMPLE = 0.02  # s
RUNS, SAMPLES = 20, 150
GYRO, ACCELEROMETER = 5e-3, 0.05  # rad/s and m/s2, standard deviations of a sample
GUST, CORRELATION = 8.0, 0.3  # N m of held noise, and the lag in s that makes gusts of it

TIMES = np.arange(SAMPLES) * SAMPLE
STEERING = 0.1 * np.sin(2.0 * TIMES)  # N m: what the rider does, and the filter knows


def bicycle_with_sensors() -> KaneModel:
    """Return the bicycle with both sensors 0.7 m above the rear contact, 0.2 m ahead of it, fixed to the frame."""
    parts = describe_frames()
    ground, frame, p = parts.frames["N"], parts.frames["B"], parts.p
    box: Point = parts.points["R"].locatenew("box", 0.2 * frame.x + (p["r_R"] - 0.7) * frame.z)
    box.v2pt_theory(parts.points["R"], ground, frame)
    specific_force = box.vel(ground).dt(ground) - p["g"] * ground.z
    return KaneModel.from_sympy(
        whipple_equations(),
        name="bicycle",
        inputs=["lean_torque", "steer_torque", "rear_torque"],
        parameters=BENCHMARK,
        start={"rear_rate": -SPEED / BENCHMARK["r_R"], "front_rate": -SPEED / BENCHMARK["r_F"]},
        outputs={"gyro": frame.ang_vel_in(ground).dot(frame.x), "accelerometer": specific_force.dot(frame.y)},
    )


def main(output: Path) -> dict[str, Any]:
    """Design the filter, run it on noisy nonlinear data, and compare its errors with its promise."""
    gusts = control.ss([[-1 / CORRELATION]], [[1 / CORRELATION]], [[1]], [[0]], inputs=["noise"], outputs=["torque"])
    system = fl.connect(
        {"bike": bicycle_with_sensors(), "gusts": gusts},
        [("gusts.torque", "bike.lean_torque")],
        inputs=["gusts.noise", "bike.steer_torque"],
        outputs=["bike.gyro", "bike.accelerometer"],
    )
    full = fl.linearize(system)
    linear = minimal_realization(full)
    kalman = design.kalman_filter(
        linear,
        SAMPLE,
        process={"gusts.noise": GUST**2},
        hold_noise=True,
        measured={"bike.gyro": GYRO**2, "bike.accelerometer": ACCELEROMETER**2},
    )
    random = np.random.default_rng(7)
    nees, runs = [], []
    for _ in range(RUNS):
        ran = _ride(system, linear, kalman, random)
        noise = random.standard_normal((SAMPLES, 2)) * (GYRO, ACCELEROMETER)
        seen = np.column_stack([ran[name] for name in linear.outputs.names]) + noise
        estimated = kalman.run(np.column_stack([np.zeros(SAMPLES), STEERING]), seen)
        runs.append((ran, estimated))
        nees.append(kalman.nees(estimated, np.column_stack([ran[name] for name in linear.states.names])))
    ran, estimated = runs[-1]
    mean, n = np.mean(nees, axis=0), len(linear.states)
    low, high = (float(chi2.ppf(quantile, RUNS * n)) / RUNS for quantile in (0.025, 0.975))

    figure, (lean, steer, errors) = picture(3, f"Bicycle at {SPEED} m/s in gusts: filter on nonlinear data")
    for axes, name in ((lean, "bike.lean"), (steer, "bike.steer")):
        i = linear.states.index_of(name)
        axes.plot(TIMES, np.rad2deg(ran[name]), color=GREY, lw=2.5, label="bicycle")
        axes.plot(TIMES, np.rad2deg(estimated.states[:, i]), color=BLUE, lw=1.0, label="estimate")
        axes.set_ylabel(f"{name.removeprefix('bike.')} [deg]")
    lean.legend(frameon=False, ncols=2)
    errors.fill_between(TIMES, low, high, color=GREY, alpha=0.3, label="95 % of a consistent filter")
    errors.plot(TIMES, mean, color=ORANGE, label=f"NEES, mean of {RUNS} runs")
    errors.set_ylabel("NEES")
    errors.set_xlabel("time [s]")
    errors.set_ylim(0, 1.5 * high)
    errors.legend(frameon=False, ncols=2, loc="upper left")
    figure.savefig(output / "bicycle_kalman.png", dpi=130)
    return {
        "states, independent, in the filter": (len(system.states), len(full.states), n),
        "NEES, mean": float(mean.mean()),
        "share of samples inside 95 %": float(np.mean((mean > low) & (mean < high))),
        "error of lean, rms [deg]": float(np.rad2deg(np.sqrt(kalman.covariance[0, 0]))),
    }


def _ride(
    system: fl.Model, linear: fl.LinearModel, kalman: design.KalmanFilter, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return every variable of a ride from a random start, at the samples."""
    y = linear.y0 + np.linalg.cholesky(kalman.predicted) @ random.standard_normal(len(linear.y0))
    start = fl.operating_point(system, dict(zip(linear.states.names, y.tolist(), strict=True)))
    inputs = np.column_stack([GUST * random.standard_normal(SAMPLES), STEERING])
    held = InputTable(np.repeat(TIMES, 2)[1:], system.inputs.names, np.repeat(inputs, 2, axis=0)[:-1])
    ran = fl.simulate(system, start, inputs=held, stop_time=TIMES[-1], step=SAMPLE)
    after_jumps = np.searchsorted(ran.times, TIMES + 1e-9, side="right") - 1
    return {name: ran[name][after_jumps] for name in (*system.states.names, *system.outputs.names)}


if __name__ == "__main__":
    run(main)
