"""What a hostile FMU tries, what becomes of each attempt, and what its process costs when it starts."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.tables import show
from fmilin.errors import FmilinError
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.client.restrictions import Limits
from fmilin.fmi.client.sandbox_report import sandbox_report
from tests.attacks import Attacks, sandbox_holds
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS
from tests.takeovers import Attempt, run_takeovers

STARTS = 60
FILES = 5000


def main() -> None:
    print(sandbox_report())
    if sandbox_holds():
        attempts = _attempts()
        through = sum(attempt.got_through for attempt in attempts)
        rows = [[attempt.name, attempt.outcome, "YES" if attempt.got_through else "no"] for attempt in attempts]
        columns = ["a hostile FMU tries to", "what becomes of it", "got through"]
        show("Attacks", columns, rows, f"{through} of {len(rows)} got through (0).")
    _hostile_files()
    rows = []
    for name, limits in (("no restrictions", Limits(unrestricted=True)), ("sandbox", Limits())):
        wall, cpu = _start(limits)
        rows.append([name, f"{1e3 * wall:.1f} ms", f"{1e3 * cpu:.1f} ms"])
    show("Start and end of a host", ["", "wall", "processor"], rows, f"Medians and means of {STARTS} starts.")


def _attempts() -> list[Attempt]:
    """Return all attempts: those within one call, also while the library is loaded, and those of whole commands."""
    attempts = []
    for at_load, where in ((False, ""), (True, " while it is loaded")):
        with tempfile.TemporaryDirectory() as folder:
            attacks = Attacks(Path(folder)).run(at_load=at_load)
        attempts += [
            Attempt(f"{name}{where}", outcome, outcome == "SUCCEEDED") for name, outcome in attacks.outcomes.items()
        ]
    with tempfile.TemporaryDirectory() as folder:
        attempts += run_takeovers(Path(folder))
    return attempts


def _hostile_files() -> None:
    """Give damaged files to every function that reads files: each returns a result or raises an error."""
    rows, random, each = [], np.random.default_rng(28), -(-FILES // len(TARGETS))
    for name, target in TARGETS.items():
        seeds, outcomes = SEEDS[name](), Counter[str]()
        for number in range(each):
            outcomes[_outcome(target, _damaged(seeds[number % len(seeds)], number // len(seeds), random))] += 1
        bugs = sum(count for kind, count in outcomes.items() if kind not in ("read", "refused"))
        rows.append([name, str(each), str(outcomes["read"]), str(outcomes["refused"]), str(bugs)])
    total = sum(int(row[-1]) for row in rows)
    show("Hostile files", ["door", "files", "read", "refused", "bugs"], rows, f"Bugs in all: {total} (0).")


def _damaged(seed: bytes, rounds: int, random: np.random.Generator) -> bytes:
    """Return the seed itself at first, later with bytes replaced, doubled or cut off."""
    data = bytearray(seed)
    for _ in range(min(rounds, 8)):
        at = int(random.integers(len(data))) if data else 0
        match random.integers(4):
            case 0:
                data[at : at + 1] = random.bytes(1)
            case 1:
                data[at:at] = data[at : at + int(random.integers(1, 40))]
            case 2:
                del data[at : at + int(random.integers(1, 40))]
            case _:
                data[at:at] = random.bytes(4)
    return bytes(data)


def _outcome(target: Callable[[bytes], None], data: bytes) -> str:
    try:
        target(data)
    except FmilinError as error:
        return "refused" if str(error).strip() and error.exit_status in (2, 3, 4) else f"status {error.exit_status}"
    except Exception as error:  # noqa: BLE001 - any is a bug
        return f"{type(error).__name__}: {error}"[:100]
    return "read"


def _start(limits: Limits) -> tuple[float, float]:
    """Return the median time in which a host starts and ends, and the mean processor time of both processes."""
    before, times = _processor(), []
    for _ in range(STARTS):
        begin = time.perf_counter()
        options, environment = limits.to_options(), limits.to_environment()
        HostProcess(Arena(), "none", lambda *_: None, options=options, environment=environment).close()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), (_processor() - before) / STARTS


def _processor() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))
