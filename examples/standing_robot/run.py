"""Robots on their feet: linear models of a stance, LQR at the controller's rate, and a push.

``python run.py`` prints what the README shows and writes push.png into the current folder, or into ``--output FOLDER``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import control
import numpy as np
from contact import Push, Run, pushed
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import fmilin as fl
from fmilin.design import state_feedback
from fmilin.reduction import discretize
from fmilin.signals import FloatArray
from fmilin.simulation import InputTable

HERE = Path(__file__).parent
LEGS = ("FL", "FR", "RL", "RR")
TRUNK = tuple(f"trunk.{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"))
SOLES = ("left_sole:flat", "right_sole:flat")
SAMPLE = 0.002
"""Of both controllers, in seconds."""
FORCE = 60.0
"""On the trunk, in N, for 0.2 s."""
BLUE, ORANGE, QUIET = "#0072b2", "#d55e00", "#5f6368"


def main() -> None:
    """Let both robots stand and push them; draw what their trunks do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(), metavar="FOLDER", help="here by default")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(8, 6), layout="constrained")
    FigureCanvasAgg(figure)
    (ahead, aside), (biped, loads) = figure.subplots(2, 2)
    linear, stance = quadruped()
    gain = regulator(linear, np.repeat([10.0, 10.0, 0.1, 0.1], 3), 0.01)
    for axes, force, name in ((ahead, (FORCE, 0.0, 0.0), "forwards"), (aside, (0.0, FORCE, 0.0), "sideways")):
        without, with_lqr = quadruped_pushed(linear, stance, gain, force)
        ratio = with_lqr.excursion.max() / without.excursion.max()
        print(
            f"quadruped, {FORCE:g} N {name}: trunk moves {1e3 * without.excursion.max():.1f} mm on its servos, "
            f"{1e3 * with_lqr.excursion.max():.1f} mm with LQR ({ratio:.2f} of it); feet on the ground: at least "
            f"{int(without.standing.min())} and {int(with_lqr.standing.min())}"
        )
        for run, colour, label in ((without, QUIET, "servos"), (with_lqr, BLUE, "LQR on the stance")):
            axes.plot(run.time, 1e3 * run.excursion, color=colour, label=label)
        axes.set(title=f"quadruped, {FORCE:g} N {name}", ylabel="trunk [mm]", xlabel="t [s]")
    ahead.legend(frameon=False)
    draw_biped(biped, loads, *biped_pushed())
    figure.savefig(output / "push.png", dpi=120)


# ---------------------------------------------------------------------- a quadruped in MuJoCo


def quadruped() -> tuple[fl.LinearModel, fl.TrimmedPoint]:
    """Return the linear model of the stance in the twelve coordinates of the trunk, and the stance."""
    model = fl.load(HERE / "quadruped.xml", options={"keyframe": "stance", "hold": list(LEGS)})
    forces = [f"{leg}.f{axis}" for leg in LEGS for axis in "xyz"]
    stance = fl.trim(model, free=model.inputs.names)
    for remark in stance.report.remarks:
        if remark.kind in ("least-squares", "standing", "contact"):
            print(remark)
    linear = fl.linearize(model, stance, independent=TRUNK, outputs=forces)
    print(f"quadruped: {len(linear.states)} states of {len(model.states)}; largest real part {slowest(linear):.3g} 1/s")
    return linear, stance


def regulator(linear: fl.LinearModel, weights: FloatArray, effort: float) -> FloatArray:
    """Return the gain K of the sampled regulator."""
    sampled = discretize(linear, SAMPLE)
    K, _, poles = control.dlqr(sampled.A, sampled.B, np.diag(weights), effort * np.eye(len(linear.inputs)))
    print(f"sampled at {1 / SAMPLE:g} Hz; slowest pole of the loop {np.abs(poles).max():.5f}")
    return np.asarray(K, dtype=np.float64)


def quadruped_pushed(
    linear: fl.LinearModel, stance: fl.TrimmedPoint, K: FloatArray, force: tuple[float, float, float]
) -> list[Run]:
    """Push the robot in MuJoCo's own contact simulation: on its servos alone, and with LQR on their set points."""

    def with_lqr(qpos: FloatArray, qvel: FloatArray) -> FloatArray:
        trunk = np.concatenate((qpos[:3], qpos[4:7], qvel[:6]))
        return np.asarray(stance.inputs - K @ (trunk - linear.y0))

    def without(qpos: FloatArray, qvel: FloatArray) -> FloatArray:
        del qpos, qvel
        return stance.inputs

    path = str(HERE / "quadruped.xml")
    return [
        pushed(path, controller, Push(force), body="trunk", sample_time=SAMPLE) for controller in (without, with_lqr)
    ]


# ---------------------------------------------------------------------- a biped as a mechanism


def biped_pushed() -> tuple[fl.Trajectory, fl.Trajectory]:
    """Return motions after a push, with held torques for as long as it takes to fall, and with LQR."""
    model = fl.load(HERE / "biped.toml", options={"hold": list(SOLES)})
    torques = [name for name in model.inputs.names if name != "push"]
    stance = fl.trim(model, free=torques)
    linear = fl.linearize(model, stance, inputs=torques)
    print(f"biped: {len(linear.states)} states of {len(model.states)}; falls at {slowest(linear):.3g} 1/s")
    K = regulator(linear, np.repeat([1e5, 1e3], 3), 1.0)
    law = state_feedback(linear, K, SAMPLE)

    push = InputTable(np.array([0.0, 0.1, 0.1, 0.3, 0.3]), ("push",), np.array([[0.0, 0, FORCE, FORCE, 0]]).T)
    torques_held = fl.simulate(model, stance, stop_time=0.6, step=0.01, inputs=push)
    balanced = fl.closed_loop(model, law, stance, stop_time=2.0, step=0.01, inputs=push)
    shared = [balanced[f"{foot}_sole.fz"].min() for foot in ("left", "right")]
    reach = [np.abs(balanced[f"{f}_sole.ty"] / balanced[f"{f}_sole.fz"]).max() for f in ("left", "right")]
    print(
        f"biped, {FORCE:g} N: trunk moves {1e3 * np.abs(torques_held['trunk_x']).max():.0f} mm in 0.6 s and falls when "
        f"torques are held, {1e3 * np.abs(balanced['trunk_x']).max():.1f} mm with LQR; its soles carry at least "
        f"{min(shared):.0f} N each, the centre of pressure stays within {1e3 * max(reach):.0f} mm of the middle"
    )
    return torques_held, balanced


def slowest(linear: fl.LinearModel) -> float:
    """Return the largest real part of an eigenvalue."""
    return float(linear.eigenvalues().real.max())


def draw_biped(motion: Axes, loads: Axes, held: fl.Trajectory, balanced: fl.Trajectory) -> None:
    """Draw the trunk's way, and what the soles carry."""
    motion.plot(held.times, 1e3 * held["trunk_x"], color=QUIET, label="torques held")
    motion.plot(balanced.times, 1e3 * balanced["trunk_x"], color=BLUE, label="LQR on the stance")
    motion.set(title=f"biped, {FORCE:g} N", ylabel="trunk [mm]", xlabel="t [s]", ylim=(-20, 60))
    motion.legend(frameon=False)
    for foot, colour in (("left", BLUE), ("right", ORANGE)):
        loads.plot(balanced.times, balanced[f"{foot}_sole.fz"], color=colour, label=f"{foot} sole")
    loads.set(title="biped with LQR: what its soles carry", ylabel="[N]", xlabel="t [s]", ylim=(0, None))
    loads.legend(frameon=False)


if __name__ == "__main__":
    main()
