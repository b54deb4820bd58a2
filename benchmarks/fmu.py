"""What fmilin adds to an FMU's own time: per evaluation, per set of matrices, per linear model, per command.

The FMUs are n/2 masses of which each pulls at every other one, compiled here in several sizes, with exact directional
derivatives. The floor is a C driver that makes the calls of one evaluation in a loop. The peers are CasADi's FMU import
and PyFMI (when installed) and a plain script over FMPy, on the same FMU in the same process, interleaved.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

import fmilin as fl
from benchmarks.fmu_masses import HERE, Case, case_of, compiled, floor, made
from benchmarks.tables import show
from fmilin.fmi.read import FmuModel
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import read_products
from fmilin.systems import four_bar

ROUNDS = 7
SIZES = (2, 10, 50, 200)
STEP = 1e-6
BATCH = 100  # points that are evaluated together
SWEPT = 200  # points of a sweep

Task = Literal["derivatives", "at a point", "differences", "evaluation"]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as name:
        folder = Path(name)
        cases = [made(n, folder) for n in SIZES]
        driver = folder / "driver"
        compiled([HERE / "fmu_driver.c"], driver, "-ldl")
        floors = [floor(driver, case) for case in cases]
        goals({n: made(n, folder) for n in (2, 10, 20)})
        per_evaluation(cases, floors)
        matrices(cases, floors)
        whole(cases, floors)
        commands(folder)


# ---------------------------------------------------------------------- the tables


def goals(cases: dict[int, Case]) -> None:
    """Print ratios of times of calls to a script over FMPy and to PyFMI, on the same FMUs in one process."""
    rows = [
        compare_evaluations(cases[10]),
        compare_batches(cases[10]),
        compare_linearizations(cases[2], "linearize, 2 states, warm", 500.0),
        compare_linearizations(cases[20], "linearize, 20 states, warm", 600.0),
        compare_sweeps(cases[20]),
    ]
    one, five, fifteen = os.getloadavg() if hasattr(os, "getloadavg") else (np.nan,) * 3
    show(
        "FMUs in their host",
        ["what", "fmilin", "goal", "FMPy script", "/ FMPy", "PyFMI", "/ PyFMI"],
        rows,
        "Best of many calls, interleaved; ratios above 1: fmilin is slower. Peers call the FMU in their own process. "
        "The script sets the point and asks for one directional derivative per state and input, no more; "
        "PyFMI's get_state_space_representation does the same. "
        f"Load average {one:.1f}, {five:.1f}, {fifteen:.1f}.",
    )


def compare_evaluations(case: Case) -> list[str]:
    with opened(case) as model, by_fmpy(case, "evaluation") as script, by_pyfmi(case) as peer:
        ways: dict[str, Callable[[], Any]] = {"fmilin": evaluation_of(model), "FMPy": script}
        if peer is not None:
            ways["PyFMI"] = peer.evaluate
        return goal_row("a point, 10 states", interleaved(ways, 200), 6.0)


def compare_batches(case: Case) -> list[str]:
    with opened(case) as model, by_fmpy(case, "evaluation") as script, by_pyfmi(case) as peer:
        start = model.start
        t = np.full(BATCH, start.time)
        x = start.states + 1e-9 * np.arange(BATCH)[:, None]
        u = np.tile(start.inputs, (BATCH, 1))
        ways: dict[str, Callable[[], Any]] = {
            "fmilin": lambda: model.evaluate_points(t, x, u),
            "FMPy": lambda: [script() for _ in range(BATCH)],
        }
        if peer is not None:
            ways["PyFMI"] = lambda: [peer.evaluate() for _ in range(BATCH)]
        seconds = {name: each / BATCH for name, each in interleaved(ways, 10).items()}
        return goal_row(f"... one of {BATCH} together", seconds, 1.5)


def compare_linearizations(case: Case, title: str, goal: float) -> list[str]:
    with opened(case) as model, by_fmpy(case, "at a point") as script, by_pyfmi(case) as peer:
        point = fl.operating_point(model)
        ways: dict[str, Callable[[], Any]] = {"fmilin": lambda: fl.linearize(model, point), "FMPy": script}
        if peer is not None:
            ways["PyFMI"] = peer.linearize
        return goal_row(title, interleaved(ways, 50), goal)


def compare_sweeps(case: Case) -> list[str]:
    with opened(case) as model, by_fmpy(case, "at a point") as script, by_pyfmi(case) as peer:
        values = np.linspace(0.0, 0.5, SWEPT)
        ways: dict[str, Callable[[], Any]] = {
            "fmilin": lambda: fl.sweep(model, {"x[1]": values}),
            "FMPy": lambda: [script() for _ in range(SWEPT)],
        }
        if peer is not None:
            ways["PyFMI"] = lambda: [peer.linearize() for _ in range(SWEPT)]
        seconds = {name: each / SWEPT for name, each in interleaved(ways, 1).items()}
        return goal_row(f"a sweep, one of {SWEPT} points, 20 states", seconds, 60.0)


def goal_row(title: str, seconds: dict[str, float], goal: float) -> list[str]:
    """Return a row of times in microseconds, and their ratios to those of the peers that are installed."""
    row = [title, f"{seconds['fmilin'] * 1e6:.2f} us", f"{goal:g} us"]
    for peer in ("FMPy", "PyFMI"):
        if peer in seconds:
            row += [f"{seconds[peer] * 1e6:.2f} us", f"{seconds['fmilin'] / seconds[peer]:.2f}"]
        else:
            row += ["not installed", ""]
    return row


def per_evaluation(cases: list[Case], floors: list[tuple[float, float]]) -> None:
    rows = []
    for n, case, (visit, _) in zip(SIZES, cases, floors, strict=True):
        with opened(case) as model:
            evaluate = evaluation_of(model)
            plain = best(evaluate)
        rows.append(
            [
                str(n),
                f"{visit / 1e3:.2f} us",
                f"{plain * 1e6:.2f} us",
                f"{plain * 1e6 - visit / 1e3:.1f} us",
                f"{plain * 1e9 / visit:.2f}",
            ]
        )
    show(
        "One evaluation",
        ["states", "C driver", "fmilin", "overhead", "ratio"],
        rows,
        "Targets: overhead up to 6 us for two states, ratio up to 1.5 from 50 states on.",
    )


def matrices(cases: list[Case], floors: list[tuple[float, float]]) -> None:
    rows = []
    for n, case, (visit, product) in zip(SIZES, cases, floors, strict=True):
        with (
            opened(case) as model,
            by_fmpy(case) as fmpy,
            by_fmpy(case, "at a point") as moving,
            by_casadi(case) as casadi,
        ):
            ways: dict[str, Callable[[], Any]] = {
                "fmilin": products_of(model),
                "FMPy script": fmpy,
                "FMPy at a point": moving,
            }
            if casadi is not None:
                ways["CasADi"] = casadi
            seconds = interleaved(ways)
        ours = (visit + (n + 1) * product) / 1e9
        rows.append(
            [
                str(n),
                f"{ours * 1e6:.0f} us",
                f"{seconds['fmilin'] * 1e6:.0f} us",
                f"{seconds['fmilin'] / ours:.2f}",
                f"{seconds['FMPy script'] / seconds['fmilin']:.2f}",
                f"{seconds['FMPy at a point'] / seconds['fmilin']:.2f}",
                f"{seconds['CasADi'] / seconds['fmilin']:.2f}" if "CasADi" in seconds else "not installed",
            ]
        )
    show(
        "A, B, C, D by the FMU's directional derivatives",
        ["states", "its C calls", "fmilin", "ratio", "FMPy / fmilin", "FMPy at a point / fmilin", "CasADi / fmilin"],
        rows,
        "Its C calls: one evaluation and one directional derivative per state and input. Above 1: the peer is slower. "
        "fmilin sets time, "
        "states and inputs, reads derivatives and outputs, asks for one known per call and looks whether the model has "
        "moved, as some exports do. The FMPy script asks for products alone, wherever the FMU stands; 'at a point' it "
        "sets states and inputs before, as CasADi does, too.",
    )


def whole(cases: list[Case], floors: list[tuple[float, float]]) -> None:
    rows = []
    for n, case, (visit, product) in zip(SIZES, cases, floors, strict=True):
        with opened(case) as model:
            rows.append(row_of(f"masses, {n} states", model, visit, product))
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as folder:
        path = build_fmu(four_bar(), Path(folder) / "four_bar.fmu")
        with zipfile.ZipFile(path) as archive:
            archive.extractall(Path(folder) / "unpacked")
        driver = Path(folder) / "driver"
        compiled([HERE / "fmu_driver.c"], driver, "-ldl")
        visit, product = floor(driver, case_of(path, Path(folder) / "unpacked"))
        with fl.load(path) as model:
            assert isinstance(model, FmuModel)
            rows.append(row_of("four-bar, 10 states, 9 constraints", model, visit, product))
    show(
        "One linear model, warm",
        ["model", "FMU's own time", "fmilin", "beyond", "ratio"],
        rows,
        "The FMU's own time: evaluations and products that the result says were made, at the C driver's price. Target: "
        "1 ms beyond for ten states with constraints, ratio 1.5 from 50 states on.",
    )


def row_of(name: str, model: FmuModel, visit: float, product: float) -> list[str]:
    point = fl.operating_point(model)
    lin = fl.linearize(model, point)
    seconds = statistics.median(timed(lambda: fl.linearize(model, point)) for _ in range(15))
    own = (lin.method.evaluations * visit + lin.method.products * product) / 1e9
    return [
        name,
        f"{own * 1e3:.3f} ms",
        f"{seconds * 1e3:.2f} ms",
        f"{(seconds - own) * 1e3:.2f} ms",
        f"{seconds / own:.1f}",
    ]


def commands(folder: Path) -> None:
    path = build_fmu(four_bar(), folder / "four_bar.fmu")
    python = sys.executable
    linearize = [python, "-m", "fmilin", "linearize", str(path), "--json"]
    ways = {
        "floor": [python, "-c", "import numpy, scipy.linalg, fmpy"],
        "sandbox": linearize,
        "free": [*linearize, "--no-isolation"],
    }
    samples: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(16):
        for name, command in ways.items():
            seconds = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # noqa: B023
            if i:
                samples[name].append(seconds)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    differences = [a - b for a, b in zip(samples["sandbox"], samples["free"], strict=True)]
    ratio = statistics.median(a / b for a, b in zip(samples["sandbox"], samples["floor"], strict=True))
    rows = [
        ['python -c "import numpy, scipy.linalg, fmpy"', f"{medians['floor']:.3f} s", "1.00", ""],
        ["fmilin linearize four_bar.fmu --json", f"{medians['sandbox']:.3f} s", f"{ratio:.2f}", "ratio <= 1.6"],
        ["... --no-isolation", f"{medians['free']:.3f} s", "", ""],
        ["the sandbox adds", f"{statistics.median(differences) * 1e3:.0f} ms", "", "< 60 ms"],
    ]
    show("From the shell", ["command", "median", "ratio", "target"], rows, "15 interleaved rounds, medians of pairs.")


# ---------------------------------------------------------------------- the ways


@contextmanager
def opened(case: Case) -> Iterator[FmuModel]:
    with fl.load(case.path) as model:
        assert isinstance(model, FmuModel)
        yield model


def evaluation_of(model: FmuModel) -> Callable[[], Any]:
    t, x, u = model.start.time, model.start.states, model.start.inputs
    moving = [x.copy(), x + 1e-9]
    turn = [0]

    def ask() -> Any:
        turn[0] ^= 1  # as in the driver: another point each time
        return model.evaluate(t, moving[turn[0]], u)

    return ask


def products_of(model: FmuModel) -> Callable[[], Any]:
    t, x, u = model.start.time, model.start.states, model.start.inputs
    n, k = len(x), len(u)
    dx, du = np.eye(n, n + k), np.eye(k, n + k, n)
    moving = [x.copy(), x + 1e-9]
    turn = [0]

    def ask() -> Any:
        turn[0] ^= 1
        return read_products(model, t, moving[turn[0]], u, dx, du)

    return ask


@contextmanager
def by_fmpy(case: Case, task: Task = "derivatives") -> Iterator[Callable[..., Any]]:
    """A plain script over FMPy's methods, in the same process.

    Its tasks: one directional derivative per state and input, wherever the FMU stands or "at a point" that is set; one
    central difference each, at one step, without checking anything else; one evaluation. "At a point" takes another
    value of the first state.
    """
    import ctypes

    import fmpy
    from fmpy.fmi2 import FMU2Model

    folder = fmpy.extract(str(case.path))
    identifier = case.library.stem
    fmu = FMU2Model(guid=case.token, modelIdentifier=identifier, unzipDirectory=folder, instanceName="m")
    fmu.instantiate()
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    fmu.enterContinuousTimeMode()
    unknowns, knowns = [*case.rates, *case.outputs], [*case.states, *case.inputs]

    n = len(case.states)
    x, rates, u = (ctypes.c_double * n)(), (ctypes.c_double * n)(), fmu.getReal(case.inputs)
    fmu.getContinuousStates(x, n)

    def ask() -> Any:
        return np.array([fmu.getDirectionalDerivative(unknowns, [known], [1.0]) for known in knowns]).T

    def ask_at_a_point(first: float | None = None) -> Any:
        if first is not None:
            x[0] = first
        fmu.setContinuousStates(x, n)
        fmu.setReal(case.inputs, u)
        return ask()

    def visit() -> Any:
        fmu.setContinuousStates(x, n)
        fmu.setReal(case.inputs, u)
        fmu.getDerivatives(rates, n)
        return np.array([*rates, *fmu.getReal(case.outputs)])

    def by_differences() -> Any:
        columns = []
        for values in (x, u):
            for i, value in enumerate(list(values)):
                sides = []
                for h in (STEP, -STEP):
                    values[i] = value + h
                    sides.append(visit())
                values[i] = value
                columns.append((sides[0] - sides[1]) / (2 * STEP))
        return np.array(columns).T

    try:
        tasks: dict[Task, Callable[..., Any]]
        tasks = {"derivatives": ask, "at a point": ask_at_a_point, "differences": by_differences, "evaluation": visit}
        yield tasks[task]
    finally:
        fmu.terminate()
        fmu.freeInstance()
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class PyFmiScript:
    """What PyFMI is asked for."""

    evaluate: Callable[[], Any]
    linearize: Callable[[], Any]
    move: Callable[[float], None]
    """Gives the first state another value."""


@contextmanager
def by_pyfmi(case: Case, *, structured: bool = True) -> Iterator[PyFmiScript | None]:
    """PyFMI's methods; not ``structured``: all unknowns depend on all knowns.

    Where an FMU declares no dependencies, PyFMI reads that there are none, and its sparse A is zero.
    """
    if find_spec("pyfmi") is None:
        yield None
        return
    import pyfmi

    log = str(case.path.with_suffix(".log"))
    model = pyfmi.load_fmu(str(case.path), log_level=0, log_file_name=log)
    model.setup_experiment()
    model.initialize()
    x = model.continuous_states.copy()
    outputs = list(model.get_output_list())

    def evaluate() -> Any:
        model.time = 0.0
        model.continuous_states = x
        return model.get_derivatives(), model.get(outputs)

    def move(first: float) -> None:
        x[0] = first
        model.continuous_states = x

    yield PyFmiScript(evaluate, partial(model.get_state_space_representation, use_structure_info=structured), move)
    model.terminate()


@contextmanager
def by_casadi(case: Case) -> Iterator[Callable[[], Any] | None]:
    if find_spec("casadi") is None:
        yield None
        return
    import casadi

    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as folder:
        with zipfile.ZipFile(case.path) as archive:
            archive.extractall(folder)
        dae = casadi.DaeBuilder("m", folder)
        blocks = ["jac_ode_x", "jac_ode_u", "jac_y_x", "jac_y_u"]
        function = dae.create("J", ["x", "u"], blocks, {"enable_fd": False})
        x, u = casadi.DM(dae.start(dae.x())), casadi.DM(dae.start(dae.u()))
        yield lambda: [np.asarray(block.full()) for block in function(x, u)]


def best(call: Callable[[], Any]) -> float:
    """Return seconds per call: the best of several rounds."""
    once = timed(call)
    number = max(3, int(0.01 / max(once, 1e-7)))
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(number):
            call()
        rounds.append((time.perf_counter() - begin) / number)
    return min(rounds)


def interleaved(ways: dict[str, Callable[[], Any]], number: int = 5) -> dict[str, float]:
    """Return seconds of the quickest call; in each of several rounds all ways have their turn.

    A single call is measured, which fits between the turns of other programs on a machine that is at work.
    """
    quickest = dict.fromkeys(ways, np.inf)
    for call in ways.values():
        call()
    for _ in range(ROUNDS):
        for name, call in ways.items():
            quickest[name] = min(quickest[name], *(timed(call) for _ in range(number)))
    return quickest


def timed(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
