"""How long a person waits before anything happens: ``fmilin --help``, ``import fmilin``, the linear model of an FMU.

Every round runs all commands once, one after the other, so that a busy machine slows all of them;
medians over the rounds, as ratios to ``python -c "import numpy"``. The whole of ``fmilin linearize`` is compared in
processor time with the import of the libraries that any such program needs.
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


LIBRARIES = [sys.executable, "-c", "import numpy, scipy.linalg, fmpy"]
RATIO = 1.5
"""What the whole of ``fmilin linearize four_bar.fmu --json`` may take, in units of these imports."""


def main() -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what pip installs is compiled
    _waiting()
    _whole()


def _whole() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fmu = Path(folder, "four_bar.fmu")
        build_fmu(four_bar(), fmu)
        command = [*PROGRAM, "linearize", str(fmu), "--json"]
        pairs = [(_processor_time(command), _processor_time(LIBRARIES)) for _ in range(ROUNDS + 1)][1:]
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    rows = [
        [" ".join(("python", *LIBRARIES[1:])), f"{theirs:.3f} s", "1.00", ""],
        [
            "fmilin linearize four_bar.fmu --json",
            f"{ours:.3f} s",
            f"{ratio:.2f}",
            f"< {RATIO:.1f}: {'kept' if ratio < RATIO else 'MISSED'}",
        ],
    ]
    remark = f"Processor time of whole processes, their children included; {ROUNDS} interleaved rounds."
    show("One linear model", ["command", "median", "ratio", "target"], rows, remark)


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
