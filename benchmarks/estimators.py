"""Filters on nonlinear models: consistency of 100 runs, the Riccati equation, the manifold, speed, C; schedules."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import stats

import fmilin as fl
from benchmarks import schedules
from benchmarks.tables import show
from fmilin.design.estimation.corrections import Linearized, MovingHorizon
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.write import build_fmu
from fmilin.models.ode import OdeModel
from fmilin.systems import cartesian_pendulum, four_bar

RUNS, SAMPLES = 100, 80
EXAMPLES = Path(__file__).parents[1] / "examples" / "estimators"


def main() -> None:
    """Print the tables."""
    sys.path.insert(0, str(EXAMPLES))
    show(
        f"Mean NEES of {RUNS} runs after {SAMPLES} samples, and distance from the manifold (goals: in the band, 1e-9)",
        ["filter", "kind", "P", "mean NEES", "95 % band", "inside", "manifold"],
        list(consistency()),
    )
    show(
        "Steady linear cases against the Riccati equation: largest relative difference (goal: 1e-9)",
        ["model", "kind", "covariance"],
        list(riccati()),
    )
    show(
        "Steps a second (processor time, best of five), C by gcc -O3 -march=native (goals: 2,000, 100 times, 1e-12)",
        ["model", "states", "P", "outputs", "Python", "C", "times", "largest difference"],
        list(speed()),
    )
    show(
        "A step by Python and compiled, in ms of processor time, medians of five interleaved runs (goal: 0.1 for "
        "an EKF of 4 states), and what Python evaluates of the model in a step",
        [
            "model",
            "kind",
            "N",
            "P",
            "Python",
            "step",
            "ratio",
            "in a record",
            "ratio",
            "evaluations",
            "compiled",
            "difference",
        ],
        list(ways()),
    )
    show(
        "A step on an FMU: messages to its process, and ms of processor time of this one",
        ["model", "derivatives", "kind", "N", "P", "messages", "time"],
        list(messages()),
    )
    show(
        "A record by a linear Kalman filter, in us of processor time a sample, medians of five interleaved runs",
        ["model", "states", "sample by sample", "together", "ratio"],
        list(linear_records()),
    )
    schedules.main()


def messages() -> Iterator[list[str]]:
    """Yield a row for each FMU and kind."""
    plants: dict[str, tuple[fl.Model, list[str]]] = {
        "pendulum, Cartesian": (cartesian_pendulum(angle=0.5), ["x"]),
        "four-bar": (four_bar(), ["phi"]),
        "5 masses in a row, cubic springs": (chain(5).with_parameters({"k": 1.0}), ["y0", "y1"]),
    }
    for (name, (model, outputs)), derivatives in product(plants.items(), (True, False)):
        with tempfile.TemporaryDirectory() as folder:
            build_fmu(model, Path(folder) / "plant.fmu", directional_derivatives=derivatives)
            with fl.load(str(Path(folder) / "plant.fmu")) as fmu:
                for kind in ("ekf", "iekf", "ukf"):
                    kf = fl.design.estimator(
                        fmu,
                        outputs=outputs,
                        process_noise=dict.fromkeys(model.inputs.names, 0.1),
                        measurement_noise=dict.fromkeys(outputs, 1e-3),
                        sample_time=0.01,
                        initial_covariance=dict.fromkeys(model.states.names, 0.1),
                        kind=kind,
                    )
                    yield [name, "exact" if derivatives else "differences", kind, *count_messages(kf)]


def count_messages(kf: fl.design.Estimator) -> list[str]:
    """Return sizes, messages and milliseconds of a step."""
    sent: list[int] = []
    send = HostProcess._send

    def counting(self: HostProcess, message: bytes) -> None:
        sent.append(len(message))
        send(self, message)

    steps, y = 40, kf.motion.evaluator.values(kf.time, kf.x, kf.settings.inputs)[1]
    for _ in range(3):
        kf.step(None, y)
    with patch.object(HostProcess, "_send", counting):
        began = time.process_time()
        for k in range(steps):
            kf.step(None, y + 1e-3 * np.sin(k))
        seconds = time.process_time() - began
    return [str(len(kf.x)), str(len(kf.states)), f"{len(sent) / steps:.1f}", f"{seconds / steps * 1e3:.2f}"]


def linear_records() -> Iterator[list[str]]:
    """Yield a row for each linear model."""
    for name, model, output in (("four-bar", four_bar(), "phi"), ("5 masses in a row", chain(5), "y0")):
        linear = fl.linearize(model, outputs=[output])
        noise = dict.fromkeys(linear.inputs.names, 0.1)
        kf = fl.design.kalman_filter(linear, 0.01, process=noise, measured={output: 1e-3})
        K = 2000
        u = np.tile(linear.u0, (K, 1))
        y = linear.g0 + 0.03 * np.random.default_rng(0).standard_normal((K, 1))

        def run_samples(kf: fl.design.KalmanFilter = kf, u: Any = u, y: Any = y) -> None:
            observer, estimate = kf.observe_turns(), kf.sampled.y0
            for u_k, y_k in zip(u, y, strict=True):
                estimate, _ = kf.correct_during(observer, estimate, u_k, y_k)
                estimate = kf.predict(estimate, u_k)

        times = []
        for _ in range(5):
            row = []
            for way in (run_samples, lambda: kf.run(u, y)):  # noqa: B023 - called at once
                began = time.process_time()
                way()
                row.append((time.process_time() - began) / K * 1e6)
            times.append(row)
        single, together = np.median(times, axis=0)
        ratio = np.median([row[0] / row[1] for row in times])
        yield [name, str(len(linear.states)), f"{single:.1f}", f"{together:.1f}", f"{ratio:.1f}"]


def consistency() -> Iterator[list[str]]:
    """Yield a row for each example and kind."""
    attitude, crane, linkage = (import_module(name) for name in ("attitude", "crane", "four_bar"))

    def attitude_run(seed: int) -> Any:
        return attitude.record(SAMPLES, seed, 0.05 * np.random.default_rng(seed + 10**6).standard_normal(3))

    def crane_run(seed: int) -> Any:
        return crane.record(SAMPLES, seed, 650 + 100 * np.random.default_rng(seed + 10**6).standard_normal())

    def linkage_run(seed: int) -> Any:
        return linkage.record(SAMPLES, seed)

    cases: list[tuple[str, Callable[[str], fl.design.Estimator], Callable[[int], Any]]] = [
        ("attitude, gyro biases", attitude.make_filter, attitude_run),
        ("four-bar linkage, encoder", lambda kind: linkage.make_filter(four_bar(), kind), linkage_run),
        ("crane, load", crane.make_filter, crane_run),
    ]
    for name, make, run in cases:
        recorded = [run(7 * k) for k in range(RUNS)]
        for kind in ("ekf", "iekf", "ukf"):
            kf, values, off = make(kind), [], 0.0
            for u, y, truth in recorded:
                kf.reset()
                for u_k, y_k in zip(u, y, strict=True):
                    kf.step(u_k, [None if np.isnan(v) else v for v in y_k])
                    h = kf.motion.evaluator.surface(kf.time, kf.x, u_k)[0]
                    off = max(off, float(np.abs(h).max(initial=0.0)))
                values.append(fl.design.nees(kf, same_side(kf, truth[-1])))
            P, mean = len(kf.states), float(np.mean(values))
            low, high = (float(stats.chi2.ppf(p, P * RUNS)) / RUNS for p in (0.025, 0.975))
            inside = "yes" if low <= mean <= high else "NO"
            yield [name, kind, str(P), f"{mean:.3f}", f"{low:.2f} to {high:.2f}", inside, f"{off:.1e}"]


def same_side(kf: fl.design.Estimator, truth: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the truth with the sign of the estimated quaternion: both are the same attitude."""
    if kf.model.info.name != "attitude":
        return truth
    sign = np.sign(kf.x[:4] @ truth[:4])
    return np.concatenate((sign * truth[:4], truth[4:]))


def chain(masses: int) -> OdeModel:
    """Masses in a row with springs and dampers, fixed at both ends, a force on the first and on the last."""
    equations = {f"x{i}": f"v{i}" for i in range(masses)}
    for i in range(masses):
        left, right = (f"x{i - 1}" if i else "0"), (f"x{i + 1}" if i < masses - 1 else "0")
        force = " + F" if i == 0 else " + G" if i == masses - 1 else ""
        equations[f"v{i}"] = f"4*({left} + {right} - 2*x{i}) - 0.3*x{i}^3*k - 0.1*v{i}{force}"
    outputs = {f"y{i}": f"x{i}" for i in range(4)}
    return OdeModel("chain", equations, inputs=["F", "G"], parameters={"k": 0.0}, outputs=outputs)


def riccati() -> Iterator[list[str]]:
    """Yield a row for each linear case."""
    model = chain(5)
    noise: Any = {"F": 0.1, "G": 0.1}, dict.fromkeys(model.outputs.names, 1e-3)
    steady = fl.design.kalman_filter(fl.linearize(model), 0.02, process=noise[0], measured=noise[1])
    for kind in ("ekf", "iekf", "ukf"):
        kf = fl.design.estimator(
            model, process_noise=noise[0], measurement_noise=noise[1], sample_time=0.02, kind=kind,
            initial_covariance=np.eye(10), substeps=8,
        )  # fmt: skip
        for _ in range(1500):
            kf.step([0.0, 0.0], np.zeros(4))
        order = [steady.sampled.states.names.index(n) for n in kf.states.names]
        wanted = steady.covariance[np.ix_(order, order)]
        yield ["5 masses in a row", kind, f"{np.abs(kf.covariance - wanted).max() / np.abs(wanted).max():.1e}"]


def ways() -> Iterator[list[str]]:
    """Yield a row for each model and kind: steps by Python and by compiled code."""
    linkage = four_bar().with_interface(None, ["phi", "w"])
    for name, model in (
        ("pendulum, Cartesian", cartesian_pendulum(angle=0.5).with_interface(None, ["x"])),
        ("four-bar", linkage),
        ("5 masses in a row, cubic springs", chain(5).with_parameters({"k": 1.0})),
    ):
        for kind in ("ekf", "iekf", "ukf", "mhe"):
            yield [name, kind, *compare_ways(model, kind, 40 if kind == "mhe" else 300)]


def compare_ways(model: fl.Model, kind: str, count: int) -> list[str]:
    """Return the cells of a row: sizes, times of a step, evaluations, and how far the estimates are apart."""

    def make() -> fl.design.Estimator:
        return fl.design.estimator(
            model,
            process_noise=dict.fromkeys(model.inputs.names, 0.1),
            measurement_noise=dict.fromkeys(model.outputs.names, 1e-3),
            sample_time=0.01,
            initial_covariance=dict.fromkeys(model.states.names, 0.1),
            kind=kind,
        )

    python, compiled = make(), make()
    compiled.compile()
    python.method = python.settings.filter
    if isinstance(python.method, MovingHorizon):
        python.method.extended = Linearized()
    u = np.tile(model.start.inputs, (count, 1))
    first = fl.simulate(model, stop_time=0.01).outputs[0]
    y = first + 0.03 * np.random.default_rng(0).standard_normal((count, len(first)))

    def run_steps(kf: fl.design.Estimator) -> None:
        for u_k, y_k in zip(u, y, strict=True):
            kf.step(u_k, y_k)

    times: list[list[float]] = []
    for _ in range(5):
        row = []
        for kf, way in ((python, run_steps), (compiled, run_steps), (compiled, lambda kf: kf.run(u, y))):
            kf.reset()
            began = time.process_time()
            way(kf)
            row.append((time.process_time() - began) / count * 1e3)
        times.append(row)
    slow, step, record = np.median(times, axis=0)
    evaluations = []
    for kf in (python, compiled):
        kf.reset()
        with count_points(kf.motion.evaluator) as points:
            run_steps(kf)
        evaluations.append(f"{len(points) / count:.1f}")
    gap = float(np.abs(compiled.x - python.x).max())
    ratios = [f"{np.median([row[0] / row[k] for row in times]):.1f}" for k in (1, 2)]
    cells = [f"{slow:.3f}", f"{step:.3f}", ratios[0], f"{record:.4f}", ratios[1], *evaluations, f"{gap:.1e}"]
    return [str(len(python.x)), str(len(python.states)), *cells]


@contextmanager
def count_points(evaluator: Any) -> Iterator[list[float]]:
    """Collect the times at which Python evaluates a model."""
    points: list[float] = []
    original = evaluator._compute

    def computed(t: float, x: Any, u: Any) -> Any:
        points.append(t)
        return original(t, x, u)

    evaluator._compute = computed
    try:
        yield points
    finally:
        del evaluator._compute


def speed() -> Iterator[list[str]]:
    """Yield a row for each model."""
    linkage = four_bar().with_interface(None, ["phi", "w", "x0", "y0"])
    for name, model in (
        ("5 masses in a row, cubic springs", chain(5).with_parameters({"k": 1.0})),
        ("four-bar", linkage),
    ):
        kf = fl.design.estimator(
            model,
            process_noise=dict.fromkeys(model.inputs.names, 0.1),
            measurement_noise=dict.fromkeys(model.outputs.names, 1e-3),
            sample_time=0.01,
            initial_covariance=dict.fromkeys(model.states.names, 0.1),
            substeps=1,
        )
        kf.method = kf.settings.filter
        rng, count = np.random.default_rng(0), 2000
        first = fl.simulate(model, stop_time=0.01).outputs[0]
        rows = np.hstack((np.zeros((count, len(model.inputs))), first + 0.03 * rng.standard_normal((count, 4))))
        for row in rows[:50]:
            kf.step(row[: len(model.inputs)], row[len(model.inputs) :])
        seconds = []
        for _ in range(5):
            kf.reset()
            began, nu = time.process_time(), len(model.inputs)
            estimates = [kf.step(row[:nu], row[nu:]) for row in rows]
            seconds.append(time.process_time() - began)
        python = count / min(seconds)
        per_second, answers = in_c(kf, rows)
        N = len(kf.x)
        gap = float(np.abs(answers[:, :N] - np.array(estimates)).max())
        yield [
            name, str(N), str(len(kf.states)), "4", f"{python:,.0f}", f"{per_second:,.0f}",
            f"{per_second / python:,.0f}", f"{gap:.1e}",
        ]  # fmt: skip


DRIVER = """#include "kf.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
    int count = atoi(argv[1]);
    double *rows = malloc(sizeof(double) * (size_t)count * kf_INPUTS), out[kf_OUTPUTS];
    kf filter;
    (void)argc;
    if (fread(rows, sizeof(double), (size_t)count * kf_INPUTS, stdin) == 0) return 1;
    kf_init(&filter);
    for (int i = 0; i < count; i++) {
        kf_step(&filter, rows + i * kf_INPUTS, out);
        fwrite(out, sizeof(double), kf_OUTPUTS, stdout);
    }
    double best = 1e300;
    for (int k = 0; k < 5; k++) {
        clock_t began = clock();
        for (int j = 0; j < 5; j++) {
            kf_init(&filter);
            for (int i = 0; i < count; i++) kf_step(&filter, rows + i * kf_INPUTS, out);
        }
        double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
        if (seconds < best) best = seconds;
    }
    fprintf(stderr, "%g", 5.0 * count / best);
    return 0;
}
"""


def in_c(kf: fl.design.Estimator, rows: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
    """Return steps a second of the C file, and its answers."""
    with tempfile.TemporaryDirectory() as folder:
        kf.save(Path(folder) / "kf.c")
        (Path(folder) / "drive.c").write_text(DRIVER)
        subprocess.run(
            ["gcc", "-std=c99", "-O3", "-march=native", "drive.c", "-o", "drive", "-lm"], cwd=folder, check=True
        )
        ran = subprocess.run(
            [str(Path(folder) / "drive"), str(len(rows))], input=rows.tobytes(), capture_output=True, check=True
        )
    return float(ran.stderr), np.frombuffer(ran.stdout).reshape(len(rows), -1)
