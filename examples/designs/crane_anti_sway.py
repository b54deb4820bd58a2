"""Anti-sway of a crane: a trolley and a load on a rope, the load in Cartesian coordinates (6 states, 4 independent).

    python crane_anti_sway.py --output pictures

The trolley is moved by 3 m along a smooth path, once with a regulator of the trolley alone, and once with LQR on the
linear model of order 4. Both know the same sensors and have the same motor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
import sympy
from pictures import BLUE, GREY, ORANGE, picture, run

import fmilin as fl
from fmilin import design
from fmilin.models import LagrangeModel, SymbolicConstraint

TROLLEY, LOAD, ROPE, GRAVITY = 200.0, 500.0, 6.0, 9.81  # kg, kg, m, m/s2
SAMPLE, LIMIT = 0.05, 1500.0  # s, N
DISTANCE, DURATION = 3.0, 6.0  # m, s


def crane() -> LagrangeModel:
    """Return the crane, hanging at rest at s = 0."""
    s, x, y, vs, vx, vy, F = sympy.symbols("s x y vs vx vy F", real=True)
    return LagrangeModel(
        "crane",
        {s: vs, x: vx, y: vy},
        sympy.diag(TROLLEY, LOAD, LOAD),
        [F, 0, -LOAD * GRAVITY],
        constraints=[SymbolicConstraint(((x - s) ** 2 + y**2 - ROPE**2) / 2, name="rope length")],
        inputs=[F],
        outputs={"sway": sympy.atan2(x - s, -y)},
        start={s: 0.0, x: 0.0, y: -ROPE},
    )


def main(output: Path) -> dict[str, Any]:
    """Design both regulators, move the load, and draw how it sways."""
    plant = crane()
    linear = fl.linearize(plant, independent=["s", "x", "vs", "vx"])
    sampled = control.c2d(linear.to_control(), SAMPLE)
    lqr, _, _ = control.dlqr(sampled, np.diag([50.0, 50.0, 1.0, 400.0]), 1e-5 * np.eye(1))
    stiff = np.array([[lqr[0, 0] + lqr[0, 1], 0.0, lqr[0, 2] + lqr[0, 3], 0.0]])  # the same, but blind to the load

    def moved(K: np.ndarray) -> fl.Trajectory:
        regulator = design.FunctionRegulator(lambda t, y: K @ (path(t) - y), linear.states.names, ["F"], SAMPLE)
        return fl.closed_loop(plant, regulator, stop_time=16.0, limits={"F": (-LIMIT, LIMIT)})

    alone, both = moved(stiff), moved(lqr)

    figure, (place, sway, force) = picture(3, "Crane: 3 m in 6 s (nonlinear)")
    t = both.times
    place.plot(t, [path(one)[0] for one in t], color=GREY, lw=0.8, label="wanted")
    for ran, style, color, label in ((alone, "--", ORANGE, "trolley alone"), (both, "-", BLUE, "LQR, order 4")):
        place.plot(ran.times, ran["x"], style, color=color, label=label)
        sway.plot(ran.times, np.rad2deg(ran["sway"]), style, color=color)
        force.plot(ran.times, ran["F"], style, color=color, lw=0.8)
    place.set_ylabel("load x [m]")
    place.legend(frameon=False)
    sway.set_ylabel("sway [deg]")
    force.set_ylabel("F [N]")
    force.set_xlabel("time [s]")
    figure.savefig(output / "crane_anti_sway.png", dpi=130)
    return {
        "eigenvalue of the sway [rad/s]": float(np.abs(linear.eigenvalues().imag).max()),
        "in closed form [rad/s]": float(np.sqrt(GRAVITY / ROPE * (1 + LOAD / TROLLEY))),
        "sway left, trolley alone [deg]": _left(alone),
        "sway left, LQR [deg]": _left(both),
        "load from where it belongs [m]": float(abs(both["x"][-1] - DISTANCE)),
        "largest departure from the manifold [m]": float(both.largest_drift),
    }


def path(t: float) -> np.ndarray:
    """Return the wanted s, x, vs, vx: smooth up to the acceleration."""
    s = np.clip(t / DURATION, 0.0, 1.0)
    place, rate = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / DURATION
    return DISTANCE * np.array([place, place, rate, rate])


def _left(ran: fl.Trajectory) -> float:
    return float(np.rad2deg(np.abs(ran["sway"][ran.times > 12.0]).max()))


if __name__ == "__main__":
    run(main)
