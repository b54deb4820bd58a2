"""Times of the functions that users call, relative to the kernels inside and to other tools.

``python -m benchmarks speed TABLE ...`` prints some of the tables; :data:`TABLES` has their names.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import numpy as np
from scipy import linalg
from scipy.signal import cont2discrete

import fmilin as fl
from benchmarks.fmu import by_fmpy, opened, products_of
from benchmarks.fmu_masses import case_of, made
from benchmarks.linearize import PROCEDURES, recursion_and_call
from benchmarks.mechanism import quickest
from benchmarks.robots import CALLS, Robot, derivatives_by_pinocchio, nearby, processor_time_of_children, robots
from benchmarks.tables import show
from fmilin import design, systems
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import has_compiled_derivatives, read_tangents
from fmilin.models.batch_graph import batch_graph, stack_points
from fmilin.models.compiled_evaluations import CompiledEvaluations
from fmilin.models.mechanism import Body, Force, Joint, Mechanism, MechanismDescription, Torque
from tests.counts import TABLE, counts_of, works
from tests.fmus.make import build
from tests.hard_models import ring_of_rooms

TARGET = 1.5
POINTS = 512
DRAKE = {"UR5": 1.4, "humanoid, 29 freedoms": 8.8}  # ms
MAX_ROUNDS_UNTIL_COMPILED = 200
MAX_CALLS_UNTIL_COMPILED = 5000
REPEATED = 20
SAMPLE, PERIODS, STOP = 0.01, 200, 5.0
MECHANISMS = ("slider_crank", "furuta_pendulum", "double_wishbone", "stewart_platform")


def main(names: Sequence[str] = ()) -> None:
    """Print the tables of these names, all of them by default."""
    for name in names or TABLES:
        TABLES[name]()


def compare_families_with_kernel() -> None:
    """Compare checked families with the compiled kernel inside, both in compiled code."""
    rows = []
    for robot in fixed_robots():
        model = robot.make()
        points = nearby(model, POINTS)
        make_compiled(model, points)
        name = fl.linearize(model).states.names[1]
        start = float(model.start.states[model.states.positions[name]])
        peer = derivatives_by_pinocchio(robot)
        code, kernel, sweep, along, *others = quickest(
            compiled_call(model, points),
            partial(model.matrices_along, points, compiled=True),
            partial(fl.sweep, model, {name: np.linspace(start, start + 0.05, POINTS)}),
            partial(fl.linearize_along, model, points),
            *([] if peer is None else [peer]),
            rounds=12,
        )
        for what, seconds, goal in (("sweep", sweep, 2.0), ("linearize_along", along, 3.0)):
            rows.append([f"{what}, {robot.name}", "matrices_along", *compare(seconds / POINTS, kernel / POINTS, goal)])
            rows.append([f"{what}, {robot.name}", "compiled call", *compare(seconds / POINTS, code / POINTS, goal)])
            rows += [
                [f"{what}, {robot.name}", "Pinocchio", *compare(seconds / POINTS, other / CALLS, 20.0)]
                for other in others
            ]
    show(
        "Families beside the compiled kernel",
        ["work", "beside", "time per point", "ratio", "goal"],
        rows,
        f"Processor time, in turns, the quickest of each; {POINTS} points. matrices_along: A, B, C, D, T and f0 at the "
        "same points, not verified. Compiled call: the C function alone, from arrays to arrays, all states and inputs. "
        "All are compiled, as after so many points that it pays.",
    )


def compare_single_points() -> None:
    """Compare warm calls of fl.linearize with Drake, with a fixed time, and with the recursion inside."""
    rows = []
    for robot in fixed_robots():
        model = robot.make()
        make_compiled(model, nearby(model, POINTS))
        (warm,) = quickest(partial(fl.linearize, model), rounds=60)
        drake = 1e-3 * DRAKE[robot.name]
        rows.append([f"warm linearize, {robot.name}", "Drake", *compare(warm, drake, 1.0)])
        if robot.name == "UR5":
            verdict = f"at most 1 ms: {'kept' if warm <= 1e-3 else 'MISSED'}"
            rows.append([f"warm linearize, {robot.name}", "", f"{1e6 * warm:,.0f} us", "", verdict])
    for name, make in PROCEDURES.items():
        rows += compare_with_recursion(name, make)
    show(
        "One point",
        ["work", "beside", "time", "ratio", "goal"],
        rows,
        "Processor time, in turns, the quickest of each; checks='standard'. The recursion: values, derivatives and "
        "their elimination at one point, not compiled, nothing verified; compiled call: the same by compiled code. "
        "Drake: its first order Taylor expansion as "
        "it was measured beside fmilin on the machine that the goals were set on, not here.",
    )


def compare_large_mechanisms() -> None:
    """Measure linear models of mechanisms with many loops in processes of their own."""
    rows = [_of_loops(loops, goal) for loops, goal in ((500, 5.0), (2000, 20.0))]
    show("Many loops", ["work", "", "time", "", "goal"], rows, "Processor time of the whole process.")


def fixed_robots() -> list[Robot]:
    """Return the robots of files that stand on a fixed base."""
    return [robot for robot in robots() if robot.file and not robot.floating]


def make_compiled(model: Mechanism, points: list[fl.OperatingPoint]) -> None:
    """Compute linear models at many points, as users do, until compiled code takes the place of the recursion."""
    for _ in range(MAX_ROUNDS_UNTIL_COMPILED):
        if model.is_compiled_for_many_points:
            return
        model.matrices_along(points)
    raise RuntimeError(f"'{model.info.name}' was not compiled; there may be no C compiler.")


def compiled_call(model: Mechanism, points: list[fl.OperatingPoint]) -> Callable[[], object]:
    """Return the call of the compiled function alone: rates, outputs and residuals with their derivatives."""
    graph = batch_graph(model, ())
    if graph is None or not graph.stacks.compile():
        raise RuntimeError(f"'{model.info.name}' was not compiled; there may be no C compiler.")
    _, x, u = stack_points(model, points)
    return partial(graph.stacks, 0.0, x, u, graph.parameters(len(points), {}))


def compare_with_recursion(name: str, make: Callable[[], fl.Model]) -> list[list[str]]:
    """Compare a warm call, compiled as after many calls, with the procedure inside, not compiled and compiled."""
    model = make()
    point = fl.operating_point(model)
    recursion, _ = recursion_and_call(make(), point)
    code = compile_by_calls(model, point)
    recursion_time, code_time, warm = quickest(recursion, code, partial(fl.linearize, model, point), rounds=60)
    goal = 2.0 if "Kane" in name else 1.3
    return [
        [f"warm linearize, {name}", "the recursion", *compare(warm, recursion_time, goal)],
        [f"warm linearize, {name}", "compiled call", *compare(warm, code_time, goal)],
    ]


def compile_by_calls(model: fl.Model, point: fl.OperatingPoint) -> Callable[[], object]:
    """Linearize a point until compiled code takes the place of slower code; return the call of that code alone."""
    linear = fl.linearize(model, point)
    for _ in range(MAX_CALLS_UNTIL_COMPILED):
        if has_compiled_derivatives(model):
            kept = [model.states.positions[name] for name in linear.states.names]
            t, x, u = np.array([point.time]), point.states[None], point.inputs[None]
            return partial(read_tangents, model, t, x, u, kept)
        fl.linearize(model, point)
    raise RuntimeError(f"'{model.info.name}' was not compiled; there may be no C compiler.")


def _of_loops(loops: int, goal: float) -> list[str]:
    before = processor_time_of_children()
    command = ["linearize", f"fmilin.systems:four_bar(loops={loops})", "--trim", "--json"]
    subprocess.run([sys.executable, "-m", "fmilin", *command], check=True, stdout=subprocess.DEVNULL)
    seconds = processor_time_of_children() - before
    verdict = f"at most {goal:g} s: {'kept' if seconds <= goal else 'MISSED'}"
    return [f"linearize --trim --json, {loops:,} loops", "", f"{seconds:.1f} s", "", verdict]


def compare(seconds: float, other: float, goal: float) -> list[str]:
    ratio = seconds / other
    return [f"{1e6 * seconds:,.0f} us", f"{ratio:.2f}", f"at most {goal:g}: {'kept' if ratio <= goal else 'MISSED'}"]


def black_boxes() -> None:
    """Smooth models in mixed units, without derivatives, nominal values or structure."""
    rows = []
    for rooms in (6, 20, 62):
        model = ring_of_rooms(rooms).make()
        linear, (seconds,) = fl.linearize(model), quickest(partial(fl.linearize, model), rounds=3)
        columns = len(linear.states)
        visits = f"{linear.method.evaluations / columns:.1f}"
        rows.append([f"{columns} states in mixed units", visits, f"{seconds:.2f} s", "12 visits; 186 states: 6 s"])
    show("Without derivatives", ["model", "visits a column", "processor time", "goal"], rows, "Rooms in a ring.")


def fmus() -> None:
    """Sweeps of FMUs with exact directional derivatives, in this process."""
    rows = []
    with TemporaryDirectory() as folder:
        for name in ("four_bar", "furuta_pendulum", "double_wishbone"):
            model = _as_fmu(getattr(systems, name)(), Path(folder) / f"{name}.fmu")
            state = fl.linearize(model).states.names[0]
            start = float(model.start.states[model.states.positions[state]])
            (seconds,) = quickest(partial(fl.sweep, model, {state: np.linspace(start, start + 0.05, POINTS)}), rounds=5)
            verdict = f"at least 1,500: {'kept' if 1500 * seconds <= POINTS else 'MISSED'}"
            rows.append([name, str(len(model.states)), f"{POINTS / seconds:,.0f}", verdict])
    show("Sweeps of FMUs", ["model", "states", "points a second", "goal"], rows, f"{POINTS} points, processor time.")


def scripts() -> None:
    """FMUs compared with plain scripts over FMPy in this process that request the same and check nothing."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        masses, path = made(2, folder), build("divides", folder)
        with ZipFile(path) as archive:
            archive.extractall(folder / "unpacked")
        divides = case_of(path, folder / "unpacked")
        with (
            opened(masses) as smooth,
            opened(divides) as erring,
            by_fmpy(masses, "at a point") as products,
            by_fmpy(divides, "differences") as differences,
        ):
            visits = fl.linearize(erring).method.evaluations
            rows = [
                [
                    "A, B, C, D by directional derivatives, 2 states",
                    *_compare_with_script(products_of(smooth), products, 1.0),
                ],
                [
                    f"linearize, FMU that errs far away, {visits} visits",
                    *_compare_with_script(partial(fl.linearize, erring), differences, 3.0),
                ],
            ]
    show("FMUs beside scripts", ["work", "time", "of the script's", "goal"], rows, "The script: FMPy, at the point.")


def _compare_with_script(ours: Callable[[], Any], script: Callable[[], Any], goal: float) -> list[str]:
    many = [partial(_repeated, call) for call in (ours, script)]
    seconds, other = quickest(*many, rounds=15)
    return compare(seconds / REPEATED, other / REPEATED, goal)


def _repeated(call: Callable[[], Any]) -> None:
    for _ in range(REPEATED):
        call()


def counts() -> None:
    """What work takes that no machine's noise touches, and the table that ``tests/test_counts.py`` keeps."""
    expected = json.loads(TABLE.read_text(encoding="utf-8"))
    kinds = list(next(iter(expected.values())))
    rows = []
    for name, work in works().items():
        found = counts_of(work)
        rows.append([name, *(f"{found[kind]} ({expected[name][kind]})" for kind in kinds)])
    show("Counts", ["work", *kinds], rows, "In brackets: the table. Millions: of numbers held at once.")


def compiled() -> None:
    """Native models compared with their FMUs."""
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
        with patch.multiple(CompiledEvaluations, at=lambda *_: None, gradient=lambda *_: None):
            native()

    for _ in range(2):
        native()
    times = quickest(native, fmu, uncompiled, rounds=3)
    ratio, slow = times[0] / times[1], times[2] / times[1]
    verdict = f"at most {TARGET:g}: {'kept' if ratio <= TARGET else 'MISSED'}"
    return [f"{1e3 * times[1]:.0f}", f"{ratio:.2f}", f"{slow:.2f}", verdict]


TABLES: dict[str, Callable[[], None]] = {
    "sweep": compare_families_with_kernel,
    "warm": compare_single_points,
    "large_mechanisms": compare_large_mechanisms,
    "black_boxes": black_boxes,
    "fmu_sweeps": fmus,
    "scripts": scripts,
    "counted": counts,
    "compiled": compiled,
}
"""The tables by name: ``python -m benchmarks speed sweep warm`` prints two of them."""
