"""``python -m benchmarks discover``: constraints that nobody declared, found again, beside what is known of each system.

found, missed, false: constraints; those of the system that do not hold where the found ones do, and those found that do
not hold where the system's do, at random points; visits: rates asked for; dA: the linear model from the found constraints
beside that from the declared ones, in the same coordinates.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.model.interface import Model
from fmilin.systems import four_bar, slider_crank
from tests.discovery.systems import unconstrained
from tests.discovery.truth import CASES, LONGER_CASES, violated

RANDOM = 50

HEAD = f"{'system':28}{'states':>7}{'order':>7}{'found':>7}{'missed':>8}{'false':>7}{'time':>9}{'visits':>8}{'dA':>10}"


def main() -> None:
    print(HEAD)
    for case in (*CASES, *LONGER_CASES):
        _row(case.name, *case.models())
    with tempfile.TemporaryDirectory() as folder:
        for name, build in (("four-bar", four_bar), ("slider crank", slider_crank)):
            path = Path(folder, f"{name}.fmu")
            build_fmu(build(), path)
            for what, interface in (("FMU", "me"), ("co-simulation", "cs")):
                if interface == "cs" and name != "four-bar":
                    continue
                with fl.load(path) as true, fl.load(path, constraints=[], interface=interface) as bare:
                    _row(f"{name}, {what}", true, bare)
    _random()


def _row(name: str, true: Model, bare: Model) -> None:
    found = fl.discover(bare)
    again = true.with_constraints(found.declared)
    missed = violated(again, true.constraints.declared)
    false = violated(true, found.declared)
    lin = fl.linearize(true)
    try:
        ours = fl.linearize(again, independent=lin.states.names)
        dA = f"{np.abs(ours.A - lin.A).max() / max(np.abs(lin.A).max(), 1e-300):.0e}"
    except fl.FmilinError:
        dA = "other"
    numbers = f"{len(true.states):7}{found.order:7}{len(found.findings):7}{missed:8}{false:7}"
    print(f"{name:28}{numbers}{found.seconds:7.2f} s{found.visits:8}{dA:>10}", flush=True)


def _random() -> None:
    """Count what is invented where nothing is to be found."""
    everything = [fl.discover(unconstrained(seed)) for seed in range(RANDOM)]
    invented = sum(len(found.findings) for found in everything)
    seconds, visits = sum(f.seconds for f in everything), sum(f.visits for f in everything)
    print(f"{RANDOM} random systems without constraints: {invented} found, {seconds:.2f} s, {visits} visits")
