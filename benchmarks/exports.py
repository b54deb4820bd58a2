"""Linear models as FMUs: how long an export takes, what a step costs, and what is gained over the nonlinear FMU.

The steps are counted in a loop in C, as a simulation tool would do them; and the time for each multiplication
that a step must do, and the same loop over the nonlinear FMU. All but the times of whole runs of 2,000 states are CPU
times, which other programs disturb little; with OPENBLAS_NUM_THREADS=1 least.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import fmpy
import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.export.files import save
from fmilin.fmi.write import LinearFmu, build_fmu, linear_fmu
from fmilin.formats import Writing
from fmilin.linear_model.model import Accuracy, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.model.interface import ModelInfo
from fmilin.signals import Signals
from fmilin.systems import four_bar

LOOP = Path(__file__).with_name("step_loop.c")
ROUNDS = 7


def main() -> None:
    if not shutil.which("cc"):
        print("The benchmark 'exports' needs a C compiler.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="fmilin-") as name:
        folder = Path(name)
        exporting(folder)
        stepping(folder)
        against_nonlinear(folder)
        large(folder)


def random_model(order: int, inputs: int = 2, outputs: int = 3) -> LinearModel:
    """Stable, dense, with frequencies up to about 1/s."""
    rng = np.random.default_rng(order)
    states = Signals(f"x[{i + 1}]" for i in range(order))
    u, y = Signals(f"u[{i + 1}]" for i in range(inputs)), Signals(f"y[{i + 1}]" for i in range(outputs))
    A = rng.standard_normal((order, order)) / np.sqrt(order)
    return LinearModel(
        A=A - 1.5 * np.eye(order),
        B=rng.standard_normal((order, inputs)),
        C=rng.standard_normal((outputs, order)),
        D=rng.standard_normal((outputs, inputs)),
        T=np.eye(order),
        f0=np.zeros(order),
        states=states,
        full_states=states,
        inputs=u,
        outputs=y,
        y0=np.ones(order),
        point=LinearizationPoint(
            0.0, dict.fromkeys(states.names, 1.0), dict.fromkeys(u.names, 0.0), dict.fromkeys(y.names, 0.0)
        ),
        accuracy=Accuracy(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        method=LinearizationMethod("exact", "named", 0),
        model=ModelInfo(f"random{order}"),
    )


def median(job: Callable[[], object]) -> float:
    job()
    samples = []
    for _ in range(ROUNDS):
        begin = time.thread_time()
        job()
        samples.append(time.thread_time() - begin)
    return statistics.median(samples)


def exporting(folder: Path) -> None:
    rows = []
    versions: tuple[Literal["2.0", "3.0"], ...] = ("2.0", "3.0")
    for order in (2, 20, 100):
        model = random_model(order)
        for version in versions:
            options = LinearFmu(fmi_version=version)
            seconds = median(lambda model=model, options=options: linear_fmu(model, options))  # type: ignore[misc]
            writing = Writing(fmi=version)
            whole = median(lambda m=model, w=writing: save(m, folder / "plant.fmu", w))  # type: ignore[misc]
            size = len(linear_fmu(model, options))
            rows.append(
                [f"{order} states, FMI {version}", f"{1e3 * seconds:.1f}", f"{1e3 * whole:.1f}", f"{size / 1e3:.0f}"]
            )
    show(
        "Export with a library that is kept",
        ["model", "in memory [ms]", "with all else, to a file [ms]", "size [kB]"],
        rows,
        f"Medians of {ROUNDS}. Wanted: less than 50 ms for 20 states.",
    )


def loop_of(folder: Path) -> Path:
    found = find_spec("fmpy")
    assert found is not None
    assert found.submodule_search_locations
    headers = Path(found.submodule_search_locations[0]) / "c-code"
    program = folder / "step_loop"
    subprocess.run(["cc", "-O2", f"-I{headers}", str(LOOP), "-o", str(program), "-ldl"], check=True)
    return program


def steps_of(path: Path, folder: Path, output: str, steps: int, h: float) -> tuple[float, float]:
    """Return the nanoseconds of a step in a C loop, and the seconds of the first one."""
    description = fmpy.read_model_description(str(path))
    unpacked = folder / path.stem
    with zipfile.ZipFile(path) as archive:
        archive.extractall(unpacked)
    (library,) = unpacked.glob("binaries/*/*")
    reference = next(v.valueReference for v in description.modelVariables if v.name == output)
    states = len(description.derivatives)
    inputs = sum(v.causality == "input" for v in description.modelVariables)
    words = [library, (unpacked / "resources").as_uri(), description.guid, states, inputs, reference, steps, h]
    answer = subprocess.run(
        [str(loop_of(folder)), *map(str, words)], check=True, capture_output=True, text=True
    ).stdout.split()
    return float(answer[0]), float(answer[1])


def stepping(folder: Path) -> None:
    rows = []
    for order in (1, 10, 20, 50, 100):
        path = folder / f"step{order}.fmu"
        path.write_bytes(linear_fmu(random_model(order), LinearFmu(name=path.stem)))
        best, first = (
            min(x) for x in zip(*(steps_of(path, folder, "y[1]", 200_000, 0.01) for _ in range(3)), strict=True)
        )
        products = order * (order + 3) + 3 * (order + 2)
        rows.append([f"{order} states, 2 inputs", f"{best:.0f}", f"{best / products:.2f}", f"{1e6 * first:.0f}"])
    show(
        "Co-simulation: set inputs, step, get an output, in a loop in C",
        ["model", "one round [ns]", "per multiplication [ns]", "first step [us]"],
        rows,
        "Best of 3 runs of 200,000 steps. The first step makes the matrix exponential. Wanted: less than 1500 ns "
        "for 10 states.",
    )


def against_nonlinear(folder: Path) -> None:
    rows = []
    for loops in (1, 3):
        model = four_bar(loops=loops)
        nonlinear = build_fmu(model, folder / f"nonlinear{loops}.fmu")
        linear = folder / f"linear{loops}.fmu"
        fl.linearize(model, fl.operating_point(model), outputs=["phi"]).save(linear)
        slow, _ = steps_of(nonlinear, folder, "phi", 1000, 0.01)
        fast, _ = steps_of(linear, folder, "phi", 100_000, 0.01)
        rows.append([f"four-bar, {loops} loops", f"{slow / 1e3:.1f}", f"{fast / 1e3:.3f}", f"{slow / fast:.0f}"])
    show(
        "The linear FMU beside the nonlinear one that it came from",
        ["model", "nonlinear, one step [us]", "linear, one step [us]", "ratio"],
        rows,
        "Co-simulation in steps of 10 ms in a loop in C; the nonlinear FMU integrates to its default tolerance, 1e-8.",
    )


def large(folder: Path) -> None:
    order = 2000
    path = folder / "large.fmu"
    code = (
        "import sys, resource, time; from pathlib import Path; from benchmarks.exports import random_model;"
        "from fmilin.fmi.write import LinearFmu, linear_fmu;"
        f"model = random_model({order}); begin = time.perf_counter(); model.save(sys.argv[1]);"
        "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    answer = subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True)
    export, export_memory = map(float, answer.stdout.split())
    step, first = steps_of(path, folder, "y[1]", 100, 0.01)
    run = (
        "import sys, resource, time, fmpy; begin = time.perf_counter();"
        "fmpy.simulate_fmu(sys.argv[1], stop_time=1.0, output_interval=0.01, fmi_type='CoSimulation', output=['y[1]']);"
        "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    answer = subprocess.run([sys.executable, "-c", run, str(path)], check=True, capture_output=True, text=True)
    whole, memory = map(float, answer.stdout.split())
    show(
        f"{order} states, dense",
        ["", "time [s]", "memory [MB]"],
        [
            ["export", f"{export:.1f}", f"{export_memory / 1e6:.0f}"],
            ["first step (matrix exponential)", f"{first:.1f}", ""],
            ["every further step", f"{step / 1e9:.4f}", ""],
            ["FMPy, 100 steps, with reading the FMU", f"{whole:.1f}", f"{memory / 1e6:.0f}"],
        ],
        f"The file has {path.stat().st_size / 1e6:.0f} MB. Wanted: less than 1000 MB of memory.",
    )
