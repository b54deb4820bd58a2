"""How long a person waits before anything happens: ``fmilin --help`` and ``import fmilin``.

Every round runs all commands once, one after the other, so that a busy machine slows all of them;
medians over the rounds, as ratios to ``python -c "import numpy"``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.tables import show

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


def main() -> None:
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
