"""``python -m benchmarks discover``: undeclared constraints, found again, with what is known of them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.fmi.write import build_fmu
from fmilin.model.interface import Model
from fmilin.systems import four_bar, slider_crank
from tests.discovery.systems import unconstrained
from tests.discovery.truth import CASES, LONGER_CASES, violated

RANDOM = 50

COLUMNS = ("system", "states", "order", "found", "time", "evaluations", "A")


def main() -> None:
    rows = [_row(case.name, *case.models()) for case in (*CASES, *LONGER_CASES)]
    with tempfile.TemporaryDirectory() as folder:
        for build, interfaces in ((four_bar, ("me", "cs")), (slider_crank, ("me",))):
            path = Path(folder, f"{build.__name__}.fmu")
            build_fmu(build(), path)
            for interface in interfaces:
                with fl.load(path) as true, fl.load(path, constraints=[], interface=interface) as bare:
                    rows.append(_row(f"{build.__name__}.fmu, {interface}", true, bare))
    rows.append(_nothing())
    show(
        "Discovery",
        COLUMNS,
        [[*row[:4], *row[6:]] for row in rows],
        "Systems without their constraints. evaluations: of the rates. A: error of A from the found constraints, "
        "relative to A from the declared ones. Constraints of the systems that do not hold where the found ones do, at "
        f"random consistent points: {_list_systems(rows, 4)}. Found ones that do not hold where those of the system "
        f"do: {_list_systems(rows, 5)}.",
    )


def _list_systems(rows: Sequence[Sequence[str]], column: int) -> str:
    """Return the systems with constraints that are counted in a column; ``none`` is the target."""
    return ", ".join(f"{row[column]} of {row[0]}" for row in rows if row[column] != "0") or "none"


def _row(name: str, true: Model, bare: Model) -> list[str]:
    found = fl.discover(bare)
    again = true.with_constraints(found.declared)
    missed = violated(again, true.constraints.declared)
    false = violated(true, found.declared)
    lin = fl.linearize(true)
    try:
        ours = fl.linearize(again, independent=lin.states.names)
        error = f"{np.abs(ours.A - lin.A).max() / max(np.abs(lin.A).max(), 1e-300):.0e}"
    except fl.FmilinError:
        error = "of another order"
    numbers = (len(true.states), found.order, len(found.findings), missed, false)
    return [name, *map(str, numbers), f"{found.seconds:.2f} s", str(found.visits), error]


def _nothing() -> list[str]:
    """Count what is invented where nothing is to be found."""
    everything = [fl.discover(unconstrained(seed)) for seed in range(RANDOM)]
    invented = str(sum(len(found.findings) for found in everything))
    seconds, visits = sum(f.seconds for f in everything), sum(f.visits for f in everything)
    return [f"{RANDOM} random systems", "2-8", "", invented, "0", invented, f"{seconds:.2f} s", str(visits), ""]
