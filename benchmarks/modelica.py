"""DAEs as they are written: random ones against the small systems that they hide, large ones; models in Modelica."""

from __future__ import annotations

import time
from collections import Counter

import fmilin as fl
from benchmarks.dae_models import MIXINGS, random_dae
from benchmarks.dae_networks import Network, network
from benchmarks.dae_power import PowerSystem, ieee_300
from benchmarks.modelica_library import main as models_in_modelica
from benchmarks.tables import show
from fmilin.models import DaeModel

COUNT = 300
RIGHT = 1e-8  # some are mixed by ill-conditioned functions


def main() -> None:
    random_daes()
    networks()
    models_in_modelica()


def random_daes() -> None:
    """Print how many of the random DAEs are right, rejected and wrong."""
    outcomes: Counter[tuple[int, str, str]] = Counter()
    largest = 0.0
    for seed in range(COUNT):
        dae = random_dae(seed)
        try:
            error = dae.error(fl.linearize(DaeModel.from_graph(dae.graph)))
            outcome = "right" if error <= RIGHT else "wrong"
            largest = max(largest, error)
        except fl.FmilinError:
            outcome = "refused"
        outcomes[dae.index, dae.mixing, outcome] += 1
    rows = [
        [str(index), mixing, *(str(outcomes[index, mixing, outcome]) for outcome in ("right", "refused", "wrong"))]
        for index in (1, 2, 3)
        for mixing in MIXINGS
    ]
    total = {outcome: sum(n for (*_, o), n in outcomes.items() if o == outcome) for outcome in ("refused", "wrong")}
    columns = ["index", "equations mixed", f"right to {RIGHT:g}", "refused", "wrong"]
    show(
        "Random DAEs", columns, rows, f"Of {COUNT}: {total['wrong']} wrong, {total['refused']} refused; {largest:.1e}."
    )


def networks() -> None:
    """Print what networks take, and how far they are from an independent computation."""
    made: list[tuple[str, Network | PowerSystem]] = [("conductors, nonlinear", network(side)) for side in (10, 20, 45)]
    try:
        made.append(("IEEE 300 buses, 69 machines", ieee_300()))
    except ImportError:
        print("PYPOWER is not installed: the network of 300 buses is left out")
    rows = []
    for name, net in made:
        graph = net.graph
        began = time.perf_counter()
        model = DaeModel.from_graph(graph)
        built = time.perf_counter()
        lin = fl.linearize(model)
        first = time.perf_counter()
        fl.linearize(model)
        seconds = built - began, first - built, time.perf_counter() - first
        count = f"{len(graph.algebraic)}"
        rows.append([name, count, *(f"{s:.3f} s" for s in seconds), f"{net.error(lin):.1e}"])
    columns = ["network", "algebraic variables", "to be built", "first linear model", "the next", "difference"]
    show(
        "Networks",
        columns,
        rows,
        "Differences from the Schur complement of arrays, at the solution of Newton's iteration.",
    )
