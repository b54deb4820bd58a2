"""Arrays of points (``fl.batch``): the time of a point with all checks beside its derivatives alone, and a single call.

Processor time of one thread, in turns within one run; elapsed time where threads share the points, as a ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import fmilin as fl
from benchmarks.mechanism import chain_of
from benchmarks.processor_time import measure_in_turns
from benchmarks.tables import show
from fmilin.families.batch import BatchLinearizer, count_cores
from fmilin.models.batch_graph import batch_graph
from fmilin.models.mechanism import Mechanism
from fmilin.signals import FloatArray
from fmilin.systems import four_bar, loader

POINTS = 20_000
ROUNDS = 5


def main() -> None:
    cores = count_cores()
    models = [four_bar(), Mechanism(chain_of(6)), loader(), Mechanism(chain_of(30))]
    rows = [measure(model, cores) for model in models]
    rows.append(measure(loader(), cores, ["bucket.mass", "lift.damping"]))
    columns = ["model", "states", "derivatives alone", "fl.batch", "single call", "ratio", f"{cores} threads"]
    show(
        "Arrays of points (fl.batch)",
        columns,
        rows,
        f"{POINTS} points near the start, per point, processor time of one thread. Ratio: a single call over fl.batch. "
        f"Last column: elapsed time of one thread over that of {cores}.",
    )


def measure(model: fl.Model, cores: int, varied: Sequence[str] = ()) -> list[str]:
    """Return a row of the table, with parameters that are other ones at each point."""
    alone = fl.batch(model, vary=varied, threads=1)
    shared = fl.batch(model, vary=varied, threads=cores)
    x, u = make_points(alone, model)
    generator = np.random.default_rng(53)
    columns = {name: generator.uniform(1500.0, 2500.0, len(x)) for name in varied}
    graph = batch_graph(model, varied)
    if graph is None:
        raise RuntimeError(f"'{model.info.name}' has no graph.")
    some = graph.parameters(1000, {name: column[:1000] for name, column in columns.items()})
    seconds = measure_in_turns(
        {
            "derivatives": partial(graph, 0.0, x[:1000], u[:1000], some),
            "batch": partial(alone, x, u, parameters=columns),
            "single": partial(fl.linearize, model, fl.OperatingPoint(0.0, x[1], u[1])),
        },
        rounds=ROUNDS,
    )
    times = {name: statistics.median(each) for name, each in seconds.items()}
    derivatives, batch = times["derivatives"] / 1000, times["batch"] / len(x)
    return [
        f"{model.info.name}, {len(varied)} parameters" if varied else model.info.name,
        str(len(model.states)),
        f"{1e6 * derivatives:.1f} us",
        f"{1e6 * batch:.1f} us",
        f"{1e6 * times['single']:.0f} us",
        f"{times['single'] / batch:.0f}",
        f"{compare_threads(partial(alone, x, u, parameters=columns), partial(shared, x, u, parameters=columns)):.2f}",
    ]


def make_points(linearize: BatchLinearizer, model: fl.Model) -> tuple[FloatArray, FloatArray]:
    """Return states and inputs of points on the manifold, near the start."""
    name = linearize.coordinates.names[0]
    start = linearize.linear.point.states[name]
    family = linearize.at({name: start + np.linspace(-0.01, 0.01, 500)})
    if not family.ok.all():
        raise RuntimeError(f"{(~family.ok).sum()} points of '{model.info.name}' have no linear model.")
    return np.tile(family.x0, (POINTS // 500, 1)), np.tile(family.u0, (POINTS // 500, 1))


def compare_threads(alone: Callable[[], object], shared: Callable[[], object]) -> float:
    """Return the elapsed time of one thread over that of several, the median of rounds in turns."""
    ratios = []
    for _ in range(ROUNDS):
        seconds = []
        for compute in (alone, shared):
            begin = time.perf_counter()
            compute()
            seconds.append(time.perf_counter() - begin)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)
