"""LQR of a four-bar linkage that comes as an FMU: ten states, of which two are independent.

    python four_bar_lqr.py --output pictures

The crank is to stand where gravity pulls it away. The gain comes from the linear model of order 2, and is tried on the
nonlinear FMU. The Jacobian with respect to all ten states has no LQR at all: eight of its states cannot be moved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
from pictures import BLUE, GREY, ORANGE, picture, run

import fmilin as fl
from fmilin import design
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

PHI = 2.0  # rad, the crank's angle to be held
SAMPLE = 0.01  # s
LIMIT = 4.0  # N m, of the motor


def main(output: Path) -> dict[str, Any]:
    """Design the regulator, try it on the nonlinear FMU, and draw both."""
    file = build_fmu(four_bar(), output / "four_bar.fmu")
    with fl.load(file) as model:
        point = fl.trim(model, fixed={"phi": PHI, "w": 0.0}, free=["torque"])
        linear = fl.linearize(model, point, independent=["phi", "w"])
        sampled = control.c2d(linear.to_control(), SAMPLE)
        K, _, poles = control.dlqr(sampled, np.diag([1000.0, 10.0]), np.eye(1))

        pushed = fl.operating_point(model, {"phi": PHI - 0.3, "w": 0.0, "torque": point.inputs[0]})
        held = fl.simulate(model, pushed, stop_time=1.5, step=SAMPLE)
        regulator = design.state_feedback(linear, K, SAMPLE)
        closed = fl.closed_loop(
            model, regulator, point, start=pushed, stop_time=2.0, limits={"torque": (-LIMIT, LIMIT)}
        )
        naive = fl.linearize(model.with_constraints([]), point)
    unreachable = len(naive.states) - int(np.linalg.matrix_rank(control.ctrb(naive.A, naive.B), tol=1e-6))

    figure, (angle, torque) = picture(2, "Four-bar FMU, released 0.3 rad aside (nonlinear)")
    angle.axhline(PHI, color=GREY, lw=0.8)
    angle.plot(held.times, held["phi"], "--", color=ORANGE, label="holding torque alone")
    angle.plot(closed.times, closed["phi"], color=BLUE, label="LQR of the model of order 2")
    torque.plot(held.times, held["torque"], "--", color=ORANGE)
    torque.plot(closed.times, closed["torque"], color=BLUE)
    angle.set_ylabel("crank phi [rad]")
    angle.legend(frameon=False)
    torque.set_ylabel("torque [N m]")
    torque.set_xlabel("time [s]")
    figure.savefig(output / "four_bar_lqr.png", dpi=130)
    return {
        "holding torque [N m]": float(point.inputs[0]),
        "gain [N m/rad, N m s/rad]": np.round(K[0], 4),
        "poles in the plane of z": np.round(poles, 4),
        "error at the end [rad]": float(closed["phi"][-1] - PHI),
        "error at the end without it [rad]": float(np.abs(held["phi"][-50:] - PHI).max()),
        "states of the naive model out of reach": unreachable,
        "largest departure from the manifold": float(closed.largest_drift),
    }


if __name__ == "__main__":
    run(main)
