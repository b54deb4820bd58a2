"""Commands that are killed at random moments: no file is lost or half-written, no process and no folder stays.

SIGINT, SIGTERM and SIGKILL in turn, at moments spread evenly over the time that each command takes, compilers and
child processes included. The last column is what one more run of fmilin leaves of the temporary folders. Then a
command that is interrupted (Ctrl-C) at any of the moments that Python tells of; and folders of an interrupted sweep
that are damaged before it goes on.
"""

from __future__ import annotations

import random
import signal
import tempfile
from pathlib import Path

from benchmarks.tables import show
from tests.damaged_sweeps import DAMAGES, Sweep
from tests.kills import COMMANDS, Victims

MOMENTS = 40
"""For each command: 200 in all."""
INTERRUPTS = 50
FOLDERS = 10
"""For each kind of damage: 100 in all."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def main() -> None:
    kills()
    interrupts()
    damages()


def kills() -> None:
    rng = random.Random(1)
    rows, lost = [], 0
    with tempfile.TemporaryDirectory() as folder:
        victims = Victims(Path(folder))
        for command in COMMANDS:
            duration = victims.duration(command)
            found = [victims.killed(command, rng.uniform(0, duration), SIGNALS[i % 3]) for i in range(MOMENTS)]
            lost += sum(map(bool, found))
            files, processes = sum(len(d.files) for d in found), sum(len(d.processes) for d in found)
            left = victims.leftovers()
            counts = [str(MOMENTS), str(files), str(processes), ", ".join(left) or "0"]
            rows.append([command, f"{duration:.2f} s", *counts])
    total = MOMENTS * len(COMMANDS)
    columns = ["command", "takes", "kills", "files damaged", "processes left", "folders left"]
    show("Kills", columns, rows, f"{total - lost} of {total} without loss.")


def interrupts() -> None:
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        victims = Victims(Path(folder))
        count = victims.events("convert")
        ends = [victims.interrupted("convert", rng.randint(1, count)) for _ in range(INTERRUPTS)]
    good = ends.count((130, "fmilin: interrupted.\n"))
    rows = [["convert", str(count), str(INTERRUPTS), str(good)]]
    show("Interrupts", ["command", "moments", "interrupts", "status 130 and one line"], rows)


def damages() -> None:
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep(Path(folder))
        wrong = {name: [sweep.wrong_after(damage, rng) for _ in range(FOLDERS)] for name, damage in DAMAGES.items()}
    rows = [[name, str(FOLDERS), str(sum(rows))] for name, rows in wrong.items()]
    whole = sum(not count for counts in wrong.values() for count in counts)
    total = FOLDERS * len(DAMAGES)
    note = f"{whole} of {total} folders without a wrong row."
    show("Damaged folders of sweeps", ["damage", "folders", "wrong rows"], rows, note)
