"""Families of linear models: how many trimmed and linearized points per second, in one process, in two, on a cluster.

Processor time of this process where it does the work, elapsed time where others do. Each sweep is run once before, so
that what is made once per model (functions, compiled code, the child processes' start) is not counted unless it says
so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.mechanism import chain_of, four_bars, quickest
from benchmarks.tables import show
from fmilin.fmi.write import build_fmu
from fmilin.models.batch_graph import batch_graph
from fmilin.models.mechanism import Loop, Mechanism, MechanismDescription, Placement
from fmilin.systems import bicycle, four_bar

EXCAVATOR = Path(__file__).parent.parent / "tests" / "families" / "excavator.toml"
ROLLING = ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]
POINTS = 20_000
LARGE = 100_000
FEW = 150
"""Points that both workers take part in: they cost what starting costs."""


def main() -> None:
    rows = [*points(), *trimmed(), *batches(), *fmus()]
    show(
        "Families",
        ["what", "measured", "target"],
        rows,
        "Times of a whole sweep: points assembled or trimmed, linearized, checked, gathered.",
    )
    large()


def processor_time(work: Callable[[], fl.LinearFamily], rounds: int = 3) -> tuple[float, fl.LinearFamily]:
    family = work()
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        family = work()
        best = min(best, time.process_time() - begin)
    return best, family


def points() -> list[list[str]]:
    """Single points, warm: what is made once per model is there."""
    chain, machine, rider, crane = Mechanism(chain_of(10)), fl.load(EXCAVATOR), bicycle(), linkage_of_rods()
    count = iter(range(1, 10**6))

    def speed() -> Any:
        return fl.trim(rider, fixed={"rear_rate": -15.0 - 1e-3 * next(count)}, steady=ROLLING)

    def posture() -> Any:
        fixed = {"boom_pin.q": 0.4 + 1e-4 * next(count), "stick_pin.q": -1.6}
        return fl.trim(machine, fixed=fixed, free=["boom_force", "stick_force"])

    def assembled() -> Any:
        return fl.operating_point(machine, {"boom_pin.q": 0.4 + 1e-4 * next(count), "stick_pin.q": -1.6})

    def longer() -> Any:
        return crane.with_parameters({"rod.length": 1.0 + 1e-4 * next(count)})

    def longer_and_linear() -> Any:
        changed = longer()
        return fl.linearize(changed, fl.operating_point(changed, {"pin0.q": 1.0}))

    found = []
    for name, work, target in (
        ("trim of a chain of ten bodies, 20 states", lambda: fl.trim(chain), "50 ms"),
        ("trim of the excavator in a configuration, six bodies", posture, "50 ms"),
        ("trim of the bicycle at a speed", speed, "5 ms"),
        ("assembly of the excavator, warm", assembled, "2 ms"),
        ("with_parameters of a rod's length", longer, "no recompilation"),
        ("the same, assembled and linearized", longer_and_linear, ""),
    ):
        work()
        (best,) = quickest(work, rounds=20)
        found.append([name, f"{1e3 * best:.2f} ms", target])
    return found


def linkage_of_rods() -> Mechanism:
    """Return two rockers with a massless rod between their ends: its length is a parameter."""
    description = four_bars(1)
    rod = Loop("rod", "rod", "rocker0", "rocker1", Placement((1, 0, 0)), Placement((1, 0, 0)), length=1.0)
    rockers = [body for body in description.bodies if body.name.startswith("rocker")]
    pins = [joint for joint in description.joints if joint.name.startswith("pin")]
    return Mechanism(MechanismDescription("rods", rockers, pins, [rod], gravity=(0, -9.81, 0)))


def trimmed() -> list[list[str]]:
    model = fl.load(EXCAVATOR)
    postures = {"boom_pin.q": np.linspace(0.2, 0.8, 25), "stick_pin.q": np.linspace(-2.0, -1.2, 20)}
    free = fl.TrimRequest(free=["boom_force", "stick_force"])
    begin = time.process_time()
    family = fl.sweep(model, postures, trim=free)
    first = time.process_time() - begin
    again, _ = processor_time(lambda: fl.sweep(model, postures, trim=free), 1)
    found = [["excavator, 500 postures", f"{first:.2f} s, again {again:.2f} s, {family.ok.sum()} good", "5 s"]]
    rider = bicycle()
    speeds = {"rear_rate": np.linspace(-33.0, -0.1, 10_000)}
    rolling = fl.TrimRequest(steady=ROLLING)
    begin = time.process_time()
    fl.sweep(rider, speeds, trim=rolling)
    first = time.process_time() - begin
    again, family = processor_time(lambda: fl.sweep(rider, speeds, trim=rolling), 5)
    text = f"{first:.2f} s, again (compiled) {again:.2f} s, {family.ok.sum()} good"
    return [*found, ["bicycle, 10,000 speeds, trimmed", text, "1 s"]]


def batches() -> list[list[str]]:
    rows = []
    for name, model, target in (
        ("open chain of 6", Mechanism(chain_of(6)), "20,000 /s, 5 times Pinocchio's"),
        ("open chain of 29", Mechanism(chain_of(29)), "3 times Pinocchio's"),
        ("12 four-bars in a row", Mechanism(four_bars(12)), "1,500 /s"),
    ):
        graph = batch_graph(model, ())
        if graph is None:
            continue
        random = np.random.default_rng(3)
        n = len(model.states)
        count = POINTS if n < 20 else 2000
        x = model.start.states + 1e-3 * random.standard_normal((count, n))
        u = np.tile(model.start.inputs, (count, 1))
        p = graph.parameters(count, {})

        def slopes(graph: Any = graph, x: Any = x, u: Any = u, p: Any = p) -> Any:
            return [graph(0.0, x[i : i + 512], u[i : i + 512], p[i : i + 512]) for i in range(0, len(x), 512)]

        for _ in range(3):
            slopes()
        (ours,) = quickest(slopes, rounds=3)
        text = f"{count / ours:,.0f} /s"
        theirs = pinocchio_time(model)
        if theirs is not None and not len(model.constraints):
            text += f", {ours / count / theirs:.1f} times Pinocchio's {1e6 * theirs:.0f} us"
        rows.append([f"{name}: f, f_x, f_u in batches", text, target])
    chain = Mechanism(chain_of(6))
    begin, family = processor_time(lambda: fl.sweep(chain, {"pin1.q": np.linspace(0.0, 1.0, POINTS)}), 2)
    text = f"{POINTS / begin:,.0f} /s, {family.ok.sum()} good"
    return [*rows, ["open chain of 6: whole linear models of a sweep", text, "20,000 /s"]]


def pinocchio_time(model: Mechanism) -> float | None:
    """Return the seconds of one ``computeABADerivatives`` of the same chain; None without Pinocchio."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    if len(model.constraints):
        return None
    chain = pin.Model()
    n = len(model.states) // 2
    for i in range(n):
        place = pin.SE3(pin.utils.rotate("x", np.pi / 2 * (i % 2)), np.array([1.0 if i else 0.0, 0.0, 0.0]))
        chain.addJoint(i, pin.JointModelRZ(), place, f"pin{i}")
        inertia = pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), np.diag([0.01, 0.1, 0.1]))
        chain.appendBodyToJoint(i + 1, inertia, pin.SE3.Identity())
    data = chain.createData()
    q, zero = np.full(n, 0.1), np.zeros(n)

    def loop() -> None:
        for _ in range(1000):
            pin.computeABADerivatives(chain, data, q, zero, zero)

    return quickest(loop, rounds=5)[0] / 1000


def fmus() -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "four_bar.fmu"
        build_fmu(four_bar(), path)
        vary = {"phi": np.linspace(0.4, 2.6, 600)}
        trim = fl.TrimRequest(free=["torque"])
        with fl.load(path) as model:
            one, family = processor_time(lambda: fl.sweep(model, vary, trim=trim), 2)
        rows = [["four-bar FMU, trimmed", f"{600 / one:.0f} /s and core, {family.ok.sum()} good", "500 /s"]]
        many = {"phi": np.linspace(0.4, 2.6, 3000)}
        single, alone = least([swept_by(path, many, trim, 1) for _ in range(3)])
        double, shared = least([swept_by(path, many, trim, 2) for _ in range(3)])
        text = (
            f"{single / double:.2f} times as fast by the clock at a load of {os.getloadavg()[0]:.1f}, "
            f"{2 * alone / shared:.2f} by processor time"
        )
        rows.append(["two processes against one, 3,000 points", text, "1.8"])
        rows.append(["Dask, two workers", dask(path, many, trim, (double, shared)), "1 ms a point"])
    return rows


def wall(work: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds by the clock, and of processor time, in this process and those that it began and ended."""
    before, begin = os.times(), time.perf_counter()
    work()
    after, end = os.times(), time.perf_counter()
    return end - begin, sum(after[:4]) - sum(before[:4])


def dask(path: Path, vary: dict[str, Any], trim: fl.TrimRequest, double: tuple[float, float]) -> str:
    """Return what each point costs beyond two processes of our own, without the start of either."""
    try:
        import distributed
    except ImportError:
        return "distributed is not installed"
    local: Any = distributed.LocalCluster

    def swept(count: int) -> tuple[float, float]:
        def work() -> None:
            options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
            with local(**options) as cluster:
                some = {"phi": vary["phi"][:count]}
                clock[0] = time.perf_counter()
                fl.sweep(path, some, trim=trim, scheduler=cluster.scheduler_address)
                clock[1] = time.perf_counter()

        clock = [0.0, 0.0]
        _, processor = wall(work)
        return clock[1] - clock[0], processor

    few, total = (least([swept(count) for _ in range(2)]) for count in (FEW, len(vary["phi"])))
    start = least([swept_by(path, {"phi": vary["phi"][:FEW]}, trim, 2) for _ in range(2)])
    clock, processor = (
        1e3 * ((total[i] - few[i]) - (double[i] - start[i])) / (len(vary["phi"]) - FEW) for i in range(2)
    )
    return f"{clock:.2f} ms a point by the clock, {processor:.2f} ms of processor time, after {few[0]:.1f} s of start"


def swept_by(path: Path, vary: dict[str, Any], trim: fl.TrimRequest, jobs: int) -> tuple[float, float]:
    return wall(lambda: fl.sweep(path, vary, trim=trim, jobs=jobs))


def least(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the least time by the clock, and the least processor time."""
    return min(clock for clock, _ in times), min(processor for _, processor in times)


def large() -> None:
    """100,000 points into a file, killed half-way and resumed."""
    with tempfile.TemporaryDirectory() as folder:
        model = "fmilin.systems:furuta_pendulum"
        command = [sys.executable, "-m", "fmilin", "sweep", model, "--vary", f"pendulum.q=0.1:3:{LARGE}", "-o", "f.nc"]
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        rows = Path(folder) / "f.nc.sweep" / "rows.bin"
        while process.poll() is None and not (rows.is_file() and done(rows) > LARGE // 2):
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept, first = done(rows), time.perf_counter() - begin
        begin = time.perf_counter()
        again = subprocess.Popen([*command, "--resume"], cwd=folder, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(again.pid, 0)  # this one alone: compilers and clusters were children, too
        again.returncode = os.waitstatus_to_exitcode(status)
        second, peak = time.perf_counter() - begin, usage.ru_maxrss / 1024
        size = (Path(folder) / "f.nc").stat().st_size / 2**20
        family = fl.LinearFamily.load(Path(folder) / "f.nc")
        text = f"killed after {first:.0f} s with {kept:,} points done, {second:.0f} s more, {family.ok.sum():,} good"
        show(
            f"{LARGE:,} points of the Furuta pendulum",
            ["", "", ""],
            [["sweep", text, ""], ["process that ends it", f"{peak:.0f} MiB for a file of {size:.0f} MiB", "flat"]],
        )


def done(rows: Path) -> int:
    journal = rows.with_name("points.jsonl")
    return sum(line.count("], [") + 1 for line in journal.read_text().splitlines() if '"points"' in line)
