"""Robots: how many URDF files linearize and how well, linear models in batches, builds, and one checked linearization.

Pinocchio, where it is installed, is measured in the same run: ``computeABADerivatives``, compiled C++
through its Python binding, one point per call as it offers. All in processor time, in turns, the quickest of each.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.leg_robot import leg_robot
from benchmarks.mechanism import quickest
from benchmarks.scenes import scenes
from benchmarks.tables import show
from fmilin.errors import FmilinError
from fmilin.model.interface import OperatingPoint
from fmilin.models.mechanism import Mechanism
from tests.models.mechanism.example_robots import FILES, FOLDER, slopes_of_both

UR5 = "ur_description/urdf/ur5_robot.urdf"
HUMANOID = "g1_description/urdf/g1_29dof_rev_1_0.urdf"
PRECISE = 1e-10
POINTS = 4096
CALLS = 500
"""Of Pinocchio in one measurement."""


@dataclass(frozen=True)
class Robot:
    """A model and what is asked of it.

    Parameters
    ----------
    name : str
    file : str
        Below the folder of the robots; empty: the robot on legs.
    floating : bool
    batch : str
        How many linear models per second, or how many times Pinocchio's time.
    linearize : float
        Seconds of one checked linearization.
    build : float
        Seconds.
    """

    name: str
    file: str = ""
    floating: bool = False
    batch: str = ""
    linearize: float = 0.0
    build: float = 0.0

    def make(self) -> Mechanism:
        """Return the model."""
        if not self.file:
            return leg_robot()
        return Mechanism.from_urdf(FOLDER / self.file, floating_base=self.floating)


def robots() -> list[Robot]:
    """Return the robots that are measured."""
    found = [Robot("leg robot, 4 loops", batch="1,500 /s", linearize=0.020)]
    if FILES:
        found = [
            Robot("UR5", UR5, batch="20,000 /s, 5 times", linearize=0.003, build=5.0),
            Robot("humanoid, 29 freedoms", HUMANOID, batch="3 times", linearize=0.008, build=30.0),
            Robot("the same, floating", HUMANOID, floating=True, batch="3 times", linearize=0.008, build=30.0),
            *found,
        ]
    return found


def main() -> None:
    if not FILES:
        print("robots: the URDF files are not installed (pip install --no-deps 'example-robot-data>=6,<7').")
    urdf_files()
    batches()
    discrete()
    builds()
    linearizations()
    scenes()


def pinocchio() -> Any:
    """Return the package, or None."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    return pin


def urdf_files() -> None:
    """All files: how many linearize, and A at a moving point against Pinocchio."""
    pin = pinocchio()
    at_start, good, exceptions, errors = 0, 0, [], [0.0]
    for path in FILES:
        try:
            model = fl.load(path)
            assert isinstance(model, Mechanism)
            if pin is not None and len(model.states):
                ours, theirs = slopes_of_both(model, pin, pin.buildModelFromUrdf(str(path)))
                errors.append(float(np.abs(ours - theirs).max() / np.abs(theirs).max()))
                if errors[-1] > PRECISE:
                    exceptions.append([f"{path.name}: A against Pinocchio", f"{errors[-1]:.0e}", ""])
                good += 1
            fl.linearize(model)
            at_start += 1
            good += pin is None or not len(model.states)
        except FmilinError as error:
            exceptions.append([path.name, str(error).replace(str(path.parent), "..")[:90], ""])
    rows = [["linearized", f"{good} of {len(FILES)}, at zero positions {at_start}", "66 of 69"]]
    if pin is not None:
        rows.append(["A against Pinocchio at a moving point", f"{max(e for e in errors if e <= PRECISE):.0e}", "1e-10"])
    show("URDF files", ["", "", "target"], [*rows, *exceptions], "Below: what misses a target, and why.")


def batches() -> None:
    """A, B, C, D along points, per point, compared with Pinocchio's derivatives."""
    rows = []
    for robot in robots():
        model = robot.make()
        points = nearby(model, POINTS)
        model.matrices_along(points, compiled=True)
        theirs = derivatives_by_pinocchio(robot)
        best = quickest(
            partial(model.matrices_along, points, compiled=True), *([] if theirs is None else [theirs]), rounds=5
        )
        ours = best[0] / POINTS
        ratio = "" if theirs is None else f"{ours * CALLS / best[1]:.1f}"
        peer = "" if theirs is None else f"{1e6 * best[1] / CALLS:.1f} us"
        rows.append([robot.name, f"{1e6 * ours:.1f} us", f"{1 / ours:,.0f} /s", peer, ratio, robot.batch])
    show(
        "Linear models along points (matrices_along)",
        ["robot", "per point", "rate", "Pinocchio", "times Pinocchio's", "target"],
        rows,
        f"{POINTS} points, one core. Pinocchio: computeABADerivatives alone; fmilin: A, B, C, D, T, f0.",
    )


def discrete() -> None:
    """A_k, B_k, c_k at a sample time, and the continuous models."""
    rows = []
    for robot in robots():
        model = robot.make()
        points = nearby(model, POINTS // 4)
        model.matrices_along(points, compiled=True)
        calls: list[Callable[[], Any]] = [partial(model.matrices_along, points, compiled=True)]
        calls += [partial(model.discrete_along, points, 0.002, integrator=name) for name in ("rk4", "midpoint")]
        best = [t / len(points) for t in quickest(*calls, rounds=3)]
        rows.append([robot.name, *(f"{1e6 * t:.0f} us" for t in best)])
    show(
        "Discrete models along points (discrete_along), per point",
        ["robot", "continuous", "rk4", "midpoint"],
        rows,
        f"{POINTS // 4} points, one core: four stages, or Newton's steps of an implicit one, with their slopes.",
    )


def nearby(model: Mechanism, count: int) -> list[OperatingPoint]:
    """Return consistent points near the start."""
    kept = fl.linearize(model).states.names
    random = np.random.default_rng(3)
    start = dict(zip(model.states.names, model.start.states, strict=True))
    values = {name: start[name] + 1e-2 * random.standard_normal(count) for name in kept}
    return list(fl.operating_points(model, values))


def derivatives_by_pinocchio(robot: Robot) -> Callable[[], None] | None:
    """Return a number of calls of Pinocchio; None without it."""
    pin = pinocchio()
    if pin is None or not robot.file:
        return None
    base = [pin.JointModelFreeFlyer()] if robot.floating else []
    model = pin.buildModelFromUrdf(str(FOLDER / robot.file), *base)
    data, q, zero = model.createData(), pin.neutral(model), np.zeros(model.nv)

    def calls() -> None:
        for _ in range(CALLS):
            pin.computeABADerivatives(model, data, q, zero, zero)

    return calls


def builds() -> None:
    """``fmilin build`` in a process of its own, nothing cached."""
    rows = []
    for robot in robots():
        if not robot.file:
            continue
        base = ["--floating-base"] if robot.floating else []
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "fmilin", "build", str(FOLDER / robot.file), *base, "-o", "robot.fmu"]
            begin, before = time.perf_counter(), processor_time_of_children()
            environment = {**os.environ, "XDG_CACHE_HOME": folder}
            subprocess.run(command, cwd=folder, check=True, env=environment, stderr=subprocess.DEVNULL)
            wall, used = time.perf_counter() - begin, processor_time_of_children() - before
            size = (Path(folder) / "robot.fmu").stat().st_size
        rows.append([robot.name, f"{used:.1f} s", f"{wall:.1f} s", f"{size / 2**20:.1f} MiB", f"{robot.build:g} s"])
    show(
        "fmilin build",
        ["robot", "processor time", "wall time", "size", "target"],
        rows,
        "From the start of Python to the file, compilation included.",
    )


def processor_time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def linearizations() -> None:
    """One checked ``fl.linearize`` of a model that has been linearized before."""
    rows = []
    for robot in robots():
        model = robot.make()
        fl.linearize(model)
        visit = partial(model.evaluate, 0.0, model.start.states, model.start.inputs)
        one, evaluation = quickest(partial(fl.linearize, model), visit, rounds=12)
        text = f"{1e3 * robot.linearize:g} ms: {'kept' if one <= robot.linearize else 'MISSED'}"
        rows.append([robot.name, f"{1e3 * one:.2f} ms", f"{one / evaluation:.0f}", text])
    show("One checked fl.linearize, warm", ["robot", "time", "evaluations", "target"], rows, "Processor time.")
