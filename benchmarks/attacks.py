"""What a hostile FMU tries, what becomes of each attempt, and what the cage costs when a child starts."""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.tables import show
from fmilin.ground.sandbox import cage
from fmilin.ground.sandbox.isolation import in_a_child
from fmilin.ground.sandbox.limits import Limits
from fmilin.ground.sandbox.report import sandbox_report
from tests.attacks import Attacks, cage_holds

STARTS = 60


def main() -> None:
    print(sandbox_report())
    if cage_holds():
        with tempfile.TemporaryDirectory() as folder:
            attacks = Attacks(Path(folder)).run()
        rows = [[attempt, outcome] for attempt, outcome in attacks.outcomes.items()]
        refused = len(rows) - len(attacks.succeeded)
        show("Attacks", ["a hostile FMU tries to", "answer"], rows, f"{refused} of {len(rows)} refused.")
    rows = []
    for name, limits in (("without a cage", Limits(caged=False)), ("in a cage", Limits())):
        wall, cpu = _start(limits)
        rows.append([name, f"{1e3 * wall:.1f} ms", f"{1e3 * cpu:.1f} ms"])
    show("Start of a child", ["", "wall", "processor"], rows, f"Medians and means of {STARTS} starts.")


def _start(limits: Limits) -> tuple[float, float]:
    """Return the median time and the mean processor time of a child that closes its cage and ends."""

    def work(deliver: Callable[[bytes], None]) -> int:
        cage.close()
        deliver(b"")
        return 0

    in_a_child(work, limits)
    before, times = _processor(), []
    for _ in range(STARTS):
        begin = time.perf_counter()
        in_a_child(work, limits)
        times.append(time.perf_counter() - begin)
    return statistics.median(times), (_processor() - before) / STARTS


def _processor() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))
