"""Large models from the shell: processor time and memory of ``fmilin linearize``, and what the answer is worth.

The N-loop four-bar linkage has one degree of freedom for every N, and a closed form. Each run is a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import cos, sin, sqrt

from benchmarks.tables import show
from fmilin.systems.four_bar_linkage import GRAVITY, NATURAL_LENGTH, STIFFNESS, equilibrium_angle

LOOPS = (100, 500, 2000)
SECONDS, MEGABYTES = 60.0, 2000.0
"""What the largest may take."""


def main() -> None:
    rows = []
    for loops in LOOPS:
        seconds, megabytes, frequency = _linearized(loops)
        verdict = ""
        if loops == LOOPS[-1]:
            kept = seconds < SECONDS and megabytes < MEGABYTES
            verdict = f"< {SECONDS:.0f} s, {MEGABYTES:.0f} MB: {'kept' if kept else 'MISSED'}"
        error = abs(frequency / _frequency(loops) - 1)
        figures = [f"{4 * loops + 6}", f"{seconds:.1f} s", f"{megabytes:.0f} MB", f"{error:.1e}", verdict]
        rows.append([f"four_bar(loops={loops}) --trim", *figures])
    columns = ["fmilin linearize", "states", "processor time", "memory", "error of the frequency", "target"]
    show("Large models", columns, rows, "One run each, from the start of the process; the model is made of symbols.")


def _linearized(loops: int) -> tuple[float, float, float]:
    """Return seconds, megabytes and the frequency found, in rad/s."""
    model = f"fmilin.systems:four_bar(loops={loops})"
    command = [sys.executable, "-m", "fmilin", "linearize", model, "--trim", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    frequency = max(imaginary for _, imaginary in document["eigenvalues"])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, frequency


def _frequency(loops: int) -> float:
    """Return the closed form, in rad/s: the moment of springs and weights about phi, differentiated."""
    phi = equilibrium_angle(loops, "upper")
    springs = loops * STIFFNESS * (cos(phi) - NATURAL_LENGTH / 2 * cos(phi / 2))
    weights = GRAVITY * (3 * loops + 1) / 2 * sin(phi)
    return sqrt(-(springs + weights) / ((4 * loops + 1) / 3))


if __name__ == "__main__":
    main()
