"""LQG of the Furuta pendulum: two encoders, a motor with a limit, a computer that answers one millisecond late.

    python furuta_lqg.py --output pictures

The regulator stands on the linear model of the upright pendulum; it is tried on the nonlinear one, released 11 degrees
aside, with encoder noise. The largest angle from which it catches the pendulum tells how far the linear model carries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
from pictures import BLUE, GREY, ORANGE, picture, run

import fmilin as fl
from fmilin import design
from fmilin.systems import furuta_pendulum

SAMPLE, DELAY = 0.01, 0.001  # s
ENCODER = float(2 * np.pi / 4096 / np.sqrt(12))  # rad: 4096 lines, standard deviation of the rounding
LIMIT = 0.25  # N m
LIMITS = {"torque": (-LIMIT, LIMIT)}


def main(output: Path) -> dict[str, Any]:
    """Design the regulator and release the pendulum at larger and larger angles."""
    plant = furuta_pendulum()
    linear = fl.linearize(plant, outputs=["arm.q", "pendulum.q"])
    encoders = dict.fromkeys(linear.outputs.names, ENCODER)
    kalman = design.kalman_filter(
        linear, SAMPLE, process={"torque": 1e-5}, measured={name: sd**2 for name, sd in encoders.items()}
    )
    K, _, _ = control.dlqr(kalman.sampled.A, kalman.sampled.B, np.diag([4.0, 20.0, 0.1, 0.1]), 20 * np.eye(1))
    lqg = design.KalmanRegulator(kalman, K)
    loop = control.feedback(kalman.sampled.to_control(), lqg.linear_model().to_control(), sign=1)

    def released(degrees: float, stop_time: float = 1.5) -> fl.Trajectory:
        start = fl.operating_point(plant, {"pendulum.q": np.pi + np.deg2rad(degrees)})
        return fl.closed_loop(
            plant, lqg, start=start, stop_time=stop_time, limits=LIMITS, delay=DELAY, noise=encoders, seed=1
        )

    ran = released(11.0, 3.0)
    caught, lost = 11.0, 51.0
    while lost - caught > 3.0:
        middle = (caught + lost) / 2
        stands = abs(released(middle)["pendulum.q"][-1] - np.pi) < 0.3
        caught, lost = (middle, lost) if stands else (caught, middle)

    figure, (angles, torque) = picture(2, "Furuta pendulum under LQG, released 11 degrees aside (nonlinear)")
    angles.plot(ran.times, np.rad2deg(ran["pendulum.q"] - np.pi), color=BLUE, label="pendulum, from upright")
    angles.plot(ran.times, np.rad2deg(ran["arm.q"]), "--", color=ORANGE, label="arm")
    angles.set_ylabel("angle [deg]")
    angles.legend(frameon=False)
    torque.axhline(LIMIT, color=GREY, lw=0.8)
    torque.axhline(-LIMIT, color=GREY, lw=0.8)
    torque.plot(ran.times, ran["torque"], color=BLUE, lw=0.8)
    torque.set_ylabel("torque [N m]")
    torque.set_xlabel("time [s]")
    figure.savefig(output / "furuta_lqg.png", dpi=130)
    return {
        "largest pole of the loop, |z|": float(np.abs(loop.poles()).max()),
        "pendulum at the end [deg]": float(np.rad2deg(ran["pendulum.q"][-1] - np.pi)),
        "arm at the end [deg]": float(np.rad2deg(ran["arm.q"][-1])),
        "caught from [deg]": caught,
        "lost from [deg]": lost,
    }


if __name__ == "__main__":
    run(main)
