"""Gain scheduling of an excavator's arm over its workspace: 56 trimmed configurations, one family, LQR at each.

    python excavator_schedule.py --output pictures

Two cylinders close two loops: 12 states, of which 4 are independent. The family goes to excavator.mat, where Octave or
MATLAB designs the same gains (excavator_gains.m). The schedule moves the nonlinear arm from one corner of the workspace
to the other; the gain and the holding forces of the first configuration are compared with it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import control
import numpy as np
from pictures import BLUE, GREY, ORANGE, picture, run
from scipy.interpolate import RegularGridInterpolator

import fmilin as fl
from fmilin import design

HERE = Path(__file__).parent
BOOM, STICK = np.linspace(0.2, 0.8, 7), np.linspace(-2.2, -1.0, 8)  # rad, angles of the two pins
FROM, TO, DURATION = np.array([0.25, -2.1]), np.array([0.75, -1.1]), 4.0  # rad, s
SAMPLE = 0.02  # s
Q, R = np.diag([400.0, 400.0, 4.0, 4.0]), np.eye(2) / 1e5**2  # of angles and rates; of forces in 100 kN
LIMITS = {"boom_force": (-400e3, 400e3), "stick_force": (-400e3, 400e3)}  # N, of the cylinders
READ = ("boom_pin.q", "stick_pin.q", "boom_pin.v", "stick_pin.v")


def main(output: Path) -> dict[str, Any]:
    """Design the schedule, in Octave too where there is one, and move the arm."""
    model = fl.load(HERE / "excavator.toml")
    held = fl.TrimRequest(free=list(LIMITS))
    family = fl.sweep(model, {"boom_pin.q": BOOM, "stick_pin.q": STICK}, trim=held, independent=READ)
    family.save(output / "excavator.mat")
    gains = np.array([gain(family[i]) for i in np.ndindex(family.shape)]).reshape(*family.shape, 2, 4)
    K, u0 = RegularGridInterpolator((BOOM, STICK), gains), RegularGridInterpolator((BOOM, STICK), family.u0)

    def scheduled(t: float, y: np.ndarray) -> np.ndarray:
        here = np.clip(y[:2], (BOOM[0], STICK[0]), (BOOM[-1], STICK[-1]))
        return np.asarray(u0(here)[0] + K(here)[0] @ (wanted(t) - y))

    def fixed(t: float, y: np.ndarray) -> np.ndarray:
        return np.asarray(u0(FROM)[0] + K(FROM)[0] @ (wanted(t) - y))

    start = fl.trim(model, fixed=dict(zip(READ, [*FROM, 0.0, 0.0], strict=True)), free=list(LIMITS))
    moves = {
        name: fl.closed_loop(
            model, design.FunctionRegulator(law, READ, list(LIMITS), SAMPLE), start, stop_time=6.0, limits=LIMITS
        )
        for name, law in (("scheduled", scheduled), ("fixed", fixed))
    }

    figure, (boom, stick, force) = picture(3, "Excavator across its workspace (nonlinear)")
    t = moves["fixed"].times
    for axes, i in ((boom, 0), (stick, 1)):
        axes.plot(t, np.rad2deg([wanted(one)[i] for one in t]), color=GREY, lw=0.8, label="wanted")
    for name, style, color in (("fixed", "--", ORANGE), ("scheduled", "-", BLUE)):
        ran = moves[name]
        boom.plot(ran.times, np.rad2deg(ran["boom_pin.q"]), style, color=color, label=name)
        stick.plot(ran.times, np.rad2deg(ran["stick_pin.q"]), style, color=color)
        force.plot(ran.times, ran["stick_force"] / 1e3, style, color=color)
    boom.set_ylabel("boom [deg]")
    boom.legend(frameon=False)
    stick.set_ylabel("stick [deg]")
    force.set_ylabel("stick_force [kN]")
    force.set_xlabel("time [s]")
    figure.savefig(output / "excavator_schedule.png", dpi=130)
    return {
        "configurations, of them trimmed": (family.ok.size, int(family.ok.sum())),
        "error at the end, scheduled [deg]": _error(moves["scheduled"]),
        "error at the end, fixed [deg]": _error(moves["fixed"]),
        "largest departure from the manifold": float(moves["scheduled"].largest_drift),
        "gains of Octave, largest relative difference": in_octave(output, gains),
    }


def gain(linear: fl.LinearModel) -> np.ndarray:
    """Return K for what is held over each sample."""
    K, _, _ = control.dlqr(control.c2d(linear.to_control(), SAMPLE), Q, R)
    return np.asarray(K)


def wanted(t: float) -> np.ndarray:
    """Return angles and rates of a smooth motion."""
    s = np.clip(t / DURATION, 0.0, 1.0)
    place, rate = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / DURATION
    return np.concatenate([FROM + (TO - FROM) * place, (TO - FROM) * rate])


def in_octave(output: Path, gains: np.ndarray) -> float:
    """Return how far the gains that Octave finds are from ours; NaN where there is no Octave."""
    octave = shutil.which("octave-cli")
    if octave is None:
        return float("nan")
    script = HERE / "excavator_gains.m"
    command = [octave, "--quiet", "--norc", str(script.resolve())]
    subprocess.run(command, cwd=output, check=True, capture_output=True, timeout=120)  # noqa: S603
    theirs = np.loadtxt(output / "gains.csv", delimiter=",").reshape(len(STICK), len(BOOM), 4, 2).transpose(1, 0, 3, 2)
    return float(np.abs(theirs - gains).max() / np.abs(gains).max())


def _error(ran: fl.Trajectory) -> float:
    return float(np.rad2deg(max(abs(ran[name][-1] - end) for name, end in zip(READ[:2], TO, strict=True))))


if __name__ == "__main__":
    run(main)
