"""Gain schedules: true loops at random points where the report says that they are stable, and C against Python."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import control
import numpy as np
from scipy.linalg import expm

import fmilin as fl
from benchmarks.tables import show
from fmilin.errors import FmilinError
from fmilin.systems import bicycle

POINTS, SAMPLE = 500, 0.005
PLACE, SPEED, TORQUES = ("x", "y", "z"), ("vx", "vy", "vz"), ("torque1", "torque2", "torque3")
EXAMPLES = Path(__file__).parents[1] / "examples" / "delta_robot"
Array = np.ndarray[Any, np.dtype[np.float64]]


def main() -> None:
    """Print the tables."""
    made = [delta(), cycle()]
    show(
        f"True closed loops at {POINTS} random points of the range (goal: all that are said to be are stable)",
        [
            "schedule",
            "grid",
            "said to be stable",
            "are stable",
            "uncertain",
            "unstable",
            "decay off by, at most",
            "said",
        ],
        [row for case in made for row in truth(*case)],
    )
    show(
        "The C file (gcc -O3) against Python over 500 steps: largest difference in the inputs' size",
        ["schedule", "precision", "difference"],
        [row for case in made for row in in_c(case[0], case[1])],
    )


def delta() -> tuple[str, Any, fl.Model, Sequence[str], fl.TrimRequest | None]:
    """Return the Delta robot over its workspace."""
    sys.path.insert(0, str(EXAMPLES))
    model = import_module("delta").delta_robot()
    trim = fl.TrimRequest(fixed=dict.fromkeys(SPEED, 0.0), free=list(TORQUES))
    axes = {"x": np.linspace(-0.15, 0.15, 5), "y": np.linspace(-0.15, 0.15, 5), "z": np.linspace(-0.52, -0.36, 3)}
    family = fl.sweep(model, axes, trim=trim, independent=[*PLACE, *SPEED])
    made = fl.design.schedule(family, lambda lin: dlqr(lin, [4e3] * 3 + [4.0] * 3, 0.5), PLACE, sample_time=SAMPLE)
    return "Delta robot", made, model, [*PLACE, *SPEED], trim


def cycle() -> tuple[str, Any, fl.Model, Sequence[str], fl.TrimRequest | None]:
    """Return the bicycle over its speed, steered alone."""
    model, states = bicycle(), ["lean", "steer", "lean_rate", "steer_rate"]
    family = fl.sweep(model, {"rear_rate": -np.linspace(1, 9, 17) / 0.3})
    made = fl.design.schedule(
        family, lambda lin: dlqr(lin, [1.0] * 4, 1.0, [1]), states=states, drives=["steer_torque"], sample_time=SAMPLE
    )
    return "bicycle", made, model, states, None


def dlqr(linear: fl.LinearModel, weights: Sequence[float], effort: float, inputs: Sequence[int] = (0, 1, 2)) -> Array:
    A, B = sampled(linear.A, linear.B[:, list(inputs)])
    gain: Array = control.dlqr(A, B, np.diag(weights), effort * np.eye(len(inputs)))[0]
    return gain


def sampled(A: Array, B: Array) -> tuple[Array, Array]:
    P, k = B.shape
    E = expm(np.block([[A, B], [np.zeros((k, P + k))]]) * SAMPLE)
    return E[:P, :P], E[:P, P:]


def truth(
    name: str, made: Any, model: fl.Model, states: Sequence[str], trim: fl.TrimRequest | None
) -> Iterator[list[str]]:
    rng = np.random.default_rng(0)
    at = np.array([rng.uniform(a[0], a[-1], POINTS) for a in made.table.axes]).T
    vary = dict(zip(made.over, at.T, strict=True))
    every = fl.sweep(model, vary, zipped=True, trim=trim, independent=states if trim else None)
    counts = {"stable": 0, "uncertain": 0, "unstable": 0}
    stable, off, said = 0, 0.0, 0.0
    for k, values in enumerate(at):
        verdict, linear = made.verdict(values), every[k]
        rows = [linear.states.index_of(s) for s in states]
        columns = [linear.inputs.index_of(d) for d in made.drives]
        A, B = sampled(linear.A[np.ix_(rows, rows)], linear.B[np.ix_(rows, columns)])
        decay = -np.log(np.abs(np.linalg.eigvals(A + B @ made.linear_model(values).D)).max()) / SAMPLE
        counts[verdict.kind] += 1
        stable += verdict.kind == "stable" and decay > 0
        off, said = max(off, abs(decay - verdict.decay)), max(said, verdict.uncertainty)
    grid = " x ".join(str(len(a)) for a in made.table.axes)
    numbers = [str(counts["stable"]), str(stable), str(counts["uncertain"]), str(counts["unstable"])]
    yield [name, grid, *numbers, f"{off:.2g} 1/s", f"{said:.2g} 1/s"]


def in_c(name: str, made: Any) -> Iterator[list[str]]:
    rng = np.random.default_rng(1)
    at = np.array([rng.uniform(a[0], a[-1], POINTS) for a in made.table.axes]).T
    rows = np.hstack([at, rng.normal(0, 0.1, (POINTS, len(made.measured)))])
    expected = np.array([made.step(row[: len(made.over)], row[len(made.over) :]) for row in rows])
    for precision, kind in (("double", np.float64), ("single", np.float32)):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "schedule.c"
            try:
                made.save(file, precision=precision)
                command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O3", "-fPIC", "-shared"]
                subprocess.run([*command, file, "-o", file.with_suffix(".so")], check=True)
            except (FmilinError, OSError, subprocess.CalledProcessError) as error:
                yield [name, precision, str(error)]
                continue
            library = ctypes.CDLL(str(file.with_suffix(".so")))
            memory, out = np.zeros(8, kind), np.zeros(len(made.drives), kind)
            answers = []
            for row in rows.astype(kind):
                library.schedule_step(
                    *(a.ctypes.data_as(ctypes.c_void_p) for a in (memory, np.ascontiguousarray(row), out))
                )
                answers.append(out.astype(np.float64))
        yield [name, precision, f"{np.abs(np.array(answers) - expected).max() / np.abs(expected).max():.1e}"]
