"""Sixteen threads load FMUs by relative paths at once; the code of one of them changes the working directory."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import fmilin as fl
from benchmarks.tables import show
from tests.fmus.make import build

ROUNDS = 1000
THREADS = 16
NAMES = ("pendulum", "wanders_off")


def main() -> None:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            build(name, Path(folder))
        os.chdir(folder)
        try:
            begin = time.monotonic()
            failed = sum(loads(THREADS) for _ in range(ROUNDS))
            took = time.monotonic() - begin
        finally:
            os.chdir(before)
    loaded = ROUNDS * THREADS
    rows = [[str(ROUNDS), str(THREADS), f"{loaded - failed} of {loaded}", f"{1000 * took / loaded:.1f} ms"]]
    show("Threads", ["rounds", "threads", "loaded", "each"], rows)


def loads(threads: int) -> int:
    """Load in so many threads at once, and return how many failed or found another working directory afterwards."""
    failed = []
    home, gate = Path.cwd(), threading.Barrier(threads)

    def load(number: int) -> None:
        gate.wait()
        try:
            fl.load(f"{NAMES[number % len(NAMES)]}.fmu").close()
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts
            failed.append(error)

    started = [threading.Thread(target=load, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return len(failed) + (Path.cwd() != home)
