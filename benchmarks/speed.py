"""Compiled by every door: what native models take beside the FMU that ``fmilin build`` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import linalg
from scipy.signal import cont2discrete

import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.tables import show
from fmilin import design
from fmilin.fmi.write import build_fmu
from fmilin.native import systems
from fmilin.native.compiled_visits import CompiledVisits
from fmilin.native.mechanism import Body, Force, Joint, Mechanism, MechanismDescription, Torque

TARGET = 1.5
SAMPLE, PERIODS, STOP = 0.01, 200, 5.0
MECHANISMS = ("slider_crank", "furuta_pendulum", "double_wishbone", "stewart_platform")


def main() -> None:
    rows = []
    with TemporaryDirectory() as folder:
        flying = drone()
        fmu = _as_fmu(flying, Path(folder) / "drone.fmu")
        rows.append(["closed_loop, drone, 100 Hz", *_row(_closed_loops(flying, fmu))])
        rows.append(["simulate, drone", *_row([partial(_simulated, model, _tilted(model)) for model in (flying, fmu)])])
        for name in MECHANISMS:
            model = getattr(systems, name)()
            fmu = _as_fmu(model, Path(folder) / f"{name}.fmu")
            rows.append([f"simulate, {name}", *_row([partial(_simulated, m, model.start) for m in (model, fmu)])])
    show(
        "Compiled by every door",
        ["work", "its FMU, ms", "native", "never compiled", "target"],
        rows,
        "Processor time, in turns, the quickest of each; native: in times of the FMU. All is compiled before.",
    )


def drone() -> Mechanism:
    """Return one body that flies, with its thrust and three torques."""
    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    thrust = Force("thrust", "frame", (0, 0, 0), (0, 0, 1), "body", start=1.2 * 9.81)
    return Mechanism(
        MechanismDescription(
            "drone",
            [Body("frame", 1.2, (0, 0, 0), (0.01, 0.012, 0.02))],
            [Joint("free", "free", "ground", "frame")],
            inputs=[thrust, *(Torque(f"torque_{name}", "frame", axis, "body") for name, axis in axes.items())],
            gravity=(0, 0, -9.81),
        )
    )


def _as_fmu(model: Mechanism, path: Path) -> fl.Model:
    return fl.load(build_fmu(model, path))


def _tilted(model: fl.Model) -> fl.OperatingPoint:
    x = model.start.states.copy()
    x[[0, 1, 2, 10, 11, 12]] += [0.3, -0.2, 0.1, 0.2, 0.1, 0.3]
    return fl.OperatingPoint(0.0, x, model.start.inputs)


def _simulated(model: fl.Model, point: fl.OperatingPoint) -> fl.Trajectory:
    return fl.simulate(model, point, stop_time=STOP, step=0.01)


def _closed_loops(*models: fl.Model) -> list[Callable[[], Any]]:
    """Return the runs of a linear quadratic regulator at hover."""
    first = models[0]
    linear = fl.linearize(first, independent=[name for name in first.states.names if name != "free.e0"])
    n, k = linear.B.shape
    A, B, *_ = cont2discrete((linear.A, linear.B, np.eye(n), np.zeros((n, k))), SAMPLE)
    P = linalg.solve_discrete_are(A, B, np.eye(n), np.eye(k))
    gain = np.asarray(np.linalg.solve(np.eye(k) + B.T @ P @ B, B.T @ P @ A), dtype=np.float64)
    law = design.state_feedback(linear, gain, SAMPLE)
    stop = SAMPLE * PERIODS
    return [partial(fl.closed_loop, model, law, stop_time=stop, start=_tilted(model)) for model in models]


def _row(runs: list[Callable[[], Any]]) -> list[str]:
    """Return the time of the FMU, that of the native model, and that of the same without compiled code."""
    native, fmu = runs

    def uncompiled() -> None:
        with patch.multiple(CompiledVisits, at=lambda *_: None, gradient=lambda *_: None):
            native()

    for _ in range(2):
        native()
    times = quickest(native, fmu, uncompiled, rounds=3)
    ratio, slow = times[0] / times[1], times[2] / times[1]
    verdict = f"at most {TARGET:g}: {'kept' if ratio <= TARGET else 'MISSED'}"
    return [f"{1e3 * times[1]:.0f}", f"{ratio:.2f}", f"{slow:.2f}", verdict]
