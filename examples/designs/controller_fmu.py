"""The same controller as an FMU, co-simulated by FMPy with the nonlinear FMU of the plant.

    python controller_fmu.py --output pictures

A Kalman filter and LQR hold the crank of a four-bar linkage by its angle alone. The regulator becomes controller.fmu
(sampled, in absolute values), the linkage four_bar.fmu. FMPy steps both; fmilin knows nothing of that run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import control
import numpy as np
from fmpy import extract, read_model_description
from fmpy.fmi2 import FMU2Slave
from pictures import BLUE, ORANGE, picture, run

import fmilin as fl
from fmilin import design
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

PHI, RELEASED = 2.0, 1.8  # rad
SAMPLE, SAMPLES = 0.01, 200  # s


def main(output: Path) -> dict[str, Any]:
    """Write both FMUs, run them in FMPy, and compare with the same loop in fmilin."""
    plant = build_fmu(four_bar(), output / "four_bar.fmu")
    with fl.load(plant) as model:
        point = fl.trim(model, fixed={"phi": PHI, "w": 0.0}, free=["torque"])
        linear = fl.linearize(model, point, independent=["phi", "w"], outputs=["phi"])
        kalman = design.kalman_filter(linear, SAMPLE, process={"torque": 1e-2}, measured={"phi": 1e-6})
        K, _, _ = control.dlqr(kalman.sampled.A, kalman.sampled.B, np.diag([1000.0, 10.0]), np.eye(1))
        regulator = design.KalmanRegulator(kalman, K).linear_model()
        regulator.save(output / "controller.fmu")
        start = fl.operating_point(model, {"phi": RELEASED, "w": 0.0, "torque": float(point.inputs[0])})
        ours = fl.closed_loop(model, regulator, point, start=start, stop_time=SAMPLES * SAMPLE)
        values = dict(zip(model.states.names, start.states.tolist(), strict=True))
    theirs = cosimulated(plant, output / "controller.fmu", values)

    at = np.searchsorted(ours.times, SAMPLE * np.arange(SAMPLES + 1) + 1e-9, side="right") - 1
    figure, (angle, torque) = picture(2, "controller.fmu with four_bar.fmu, released 0.2 rad aside")
    angle.plot(ours.times, ours["phi"], color=BLUE, label="fmilin.closed_loop")
    angle.plot(theirs[:, 0], theirs[:, 1], "--", color=ORANGE, label="FMPy, two FMUs")
    angle.set_ylabel("crank phi [rad]")
    angle.legend(frameon=False)
    torque.plot(ours.times, ours["torque"], color=BLUE)
    torque.step(theirs[:, 0], theirs[:, 2], "--", color=ORANGE, where="post")
    torque.set_ylabel("torque [N m]")
    torque.set_xlabel("time [s]")
    figure.savefig(output / "controller_fmu.png", dpi=130)
    return {
        "error at the end [rad]": float(theirs[-1, 1] - PHI),
        "largest difference of the runs [rad]": float(np.abs(theirs[:, 1] - ours["phi"][at]).max()),
        "and of the torques [N m]": float(np.abs(theirs[:-1, 2] - ours["torque"][at[:-1]]).max()),
    }


def cosimulated(plant: Path, controller: Path, start: dict[str, float]) -> np.ndarray:
    """Return time, angle and torque of both FMUs in FMPy: the controller reads and answers, then both step."""
    (linkage, places), (regulator, ports) = _opened(plant), _opened(controller)
    try:
        linkage.setupExperiment(startTime=0.0)
        linkage.enterInitializationMode()
        linkage.setReal([places[name] for name in start], list(start.values()))
        linkage.exitInitializationMode()
        regulator.setupExperiment(startTime=0.0)
        regulator.enterInitializationMode()
        regulator.exitInitializationMode()
        rows = []
        for k in range(SAMPLES + 1):
            (phi,) = linkage.getReal([places["phi"]])
            regulator.setReal([ports["phi"]], [phi])
            (torque,) = regulator.getReal([ports["torque"]])  # at a sample it sees what it reads at once
            linkage.setReal([places["torque"]], [torque])
            rows.append((k * SAMPLE, phi, torque))
            for instance in (linkage, regulator):
                instance.doStep(k * SAMPLE, SAMPLE)
    finally:
        for instance in (linkage, regulator):
            instance.terminate()
            instance.freeInstance()
    return np.array(rows)


def _opened(file: Path) -> tuple[FMU2Slave, dict[str, int]]:
    description = read_model_description(str(file))
    assert description.coSimulation is not None  # noqa: S101 - the file was made for co-simulation
    instance = FMU2Slave(
        guid=description.guid,
        unzipDirectory=extract(str(file)),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName=file.stem,
    )
    instance.instantiate()
    return instance, {variable.name: variable.valueReference for variable in description.modelVariables}


if __name__ == "__main__":
    run(main)
