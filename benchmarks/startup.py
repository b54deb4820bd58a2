"""How long a person waits before anything happens: ``fmilin --help``, ``import fmilin``, the linear model of an FMU.

Every round runs all commands once, one after the other, so that a busy machine slows all of them;
medians over the rounds, as ratios to ``python -c "import numpy"``. Whole commands are compared in processor time with
the shortest script that linearizes the same FMU with CasADi, which checks nothing.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.tables import show
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

ROUNDS = 15
FLOOR = 'python -c "import numpy"'
SCRIPT = Path(sys.executable).with_name("fmilin")
PROGRAM = (
    [str(SCRIPT)]
    if SCRIPT.exists()
    else [sys.executable, "-c", "import sys; from fmilin.cli.main import main; sys.exit(main())"]
)
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    FLOOR: ([sys.executable, "-c", "import numpy"], None),
    'python -c "pass"': ([sys.executable, "-c", "pass"], None),
    'python -c "import fmilin"': ([sys.executable, "-c", "import fmilin"], 0.25),
    "fmilin --help": ([*PROGRAM, "--help"], 0.4),
    "fmilin linearize --help": ([*PROGRAM, "linearize", "--help"], None),
}
"""What is run, and the seconds that it may take."""


SHORTEST = """
import sys, tempfile, zipfile
import casadi
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(sys.argv[1]).extractall(folder)
    dae = casadi.DaeBuilder("model", folder)
    function = dae.create("f", ["x", "u"], ["ode", "y"])
    jacobian = function.factory("J", ["x", "u"], ["jac:ode:x", "jac:ode:u", "jac:y:x", "jac:y:u"])
    for matrix in jacobian(dae.start(dae.x()), dae.start(dae.u())):
        print(matrix)
"""
"""The shortest script: A, B, C and D of all states at the start values."""

CRANE = Path(__file__).parents[1] / "adapters" / "modelica" / "example" / "crane.mo"
RATIOS = {"linearize --json": 1.5, "info": None, "linearize crane.mo --json": None}
"""What whole commands may take, in units of the shortest script."""


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled
    _waiting()
    _whole()


def _whole() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fmu = Path(folder, "four_bar.fmu")
        build_fmu(four_bar(), fmu)
        commands = {
            "shortest script": [sys.executable, "-c", SHORTEST, str(fmu)],
            "linearize --json": [*PROGRAM, "linearize", str(fmu), "--json"],
            "info": [*PROGRAM, "info", str(fmu)],
            "linearize crane.mo --json": [*PROGRAM, "linearize", str(CRANE), "--json"],
        }
        rounds = [{name: _processor_time(command) for name, command in commands.items()} for _ in range(ROUNDS + 1)][1:]
    rows = []
    for name in commands:
        ratio = statistics.median(times[name] / times["shortest script"] for times in rounds)
        target = RATIOS.get(name)
        verdict = "" if target is None else f"< {target:.1f}: {'kept' if ratio < target else 'MISSED'}"
        rows.append([name, f"{statistics.median(times[name] for times in rounds):.3f} s", f"{ratio:.2f}", verdict])
    remark = (
        f"Processor time of whole processes, their children included; {ROUNDS} interleaved rounds. The model in "
        "Modelica was flattened before."
    )
    show("Whole commands", ["command", "median", "ratio", "target"], rows, remark)


def _processor_time(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _waiting() -> None:
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for round_number in range(ROUNDS + 1):
        for name, (command, _) in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if round_number:  # the first round only fills the caches of the operating system
                samples[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    rows = []
    for name, (_, target) in COMMANDS.items():
        verdict = "" if target is None else f"< {target:.2f} s: {'kept' if medians[name] < target else 'MISSED'}"
        rows.append([name, f"{medians[name]:.3f} s", f"{medians[name] / medians[FLOOR]:.2f}", verdict])
    show("Start-up", ["command", "median", "ratio", "target"], rows, f"{ROUNDS} interleaved rounds; ratio to {FLOOR}.")
