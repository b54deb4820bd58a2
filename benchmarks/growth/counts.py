"""What a path takes that no machine's noise touches: evaluations, derivatives, messages to FMUs, and memory."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.peers.ways import Way
from fmilin.fmi.client.process import HostProcess
from tests.counts import count_native_calls

if sys.platform == "win32":
    from fmilin.fmi.client.pipes_windows import WindowsPipes as HostPipes
else:
    from fmilin.fmi.client.pipes_posix import PosixPipes as HostPipes

__all__ = ["count_messages", "count_work"]


def count_work(way: Way, size: int, folder: Path, *, traced: bool = True) -> Mapping[str, float]:
    """Open a model and compute once; return the counts.

    ``evaluations``: of native models; ``tangents``, ``directions``: points and directions of their derivatives;
    ``messages``: to processes of FMUs; ``repetitions``: what FMUs repeat in their processes, an evaluation or a
    directional derivative each; ``megabytes``: the most that this process allocates, if ``traced``, which takes time.
    """
    counted: Counter[str] = Counter()
    if traced:
        tracemalloc.start()
    try:
        with count_native_calls(counted), count_messages(counted), way.open(size, folder) as call:
            call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    names = {"visits": "evaluations", "tangents": "tangents", "directions": "directions"}
    counts: dict[str, float] = {name: counted[kind] for kind, name in names.items()}
    return counts | {name: counted[name] for name in ("messages", "repetitions")} | {"megabytes": peak / 1e6}


@contextmanager
def count_messages(counted: Counter[str]) -> Iterator[None]:
    """Count the messages to processes of FMUs meanwhile, and what is repeated in them."""
    with ExitStack() as patches:
        for kind, method, name, count in (
            (HostPipes, "send", "messages", lambda *_: 1),
            (HostProcess, "run", "repetitions", lambda _program, count=1, _first=0: count),
        ):
            patches.enter_context(patch.object(kind, method, _make_counting(kind, method, counted, name, count)))
        yield


def _make_counting(kind: type, method: str, counted: Counter[str], name: str, count: Callable[..., int]) -> Any:
    original = getattr(kind, method)

    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        counted[name] += count(*arguments, **options)
        return original(self, *arguments, **options)

    return counting
