"""How quickly results are shown: representations in milliseconds, and the report of a family of 1,000 points."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.export.nonlinear_control import nonlinear_view
from fmilin.report.web import report_html
from fmilin.systems import bicycle, cartesian_pendulum, double_wishbone, stewart_platform
from tests.systems.linkages import four_bar_mechanism

MILLISECONDS = 5.0
"""That looking at a result may take."""
SECONDS, MEGABYTES = 20.0, 10.0
"""That a report of 1,000 points may take."""

REPEATED = 9


def main() -> None:
    _representations()
    _reports()


def _representations() -> None:
    pendulum = cartesian_pendulum()
    linear = fl.linearize(pendulum)
    results: dict[str, Any] = {
        "LinearModel": linear,
        "LinearModel, 36 states": fl.linearize(stewart_platform()),
        "LinearFamily, 60 points": fl.sweep(pendulum, {"x": np.linspace(0.0, 0.6, 60)}),
        "Model": pendulum,
        "Mechanism": four_bar_mechanism(),
        "its description": four_bar_mechanism().description,
        "OperatingPoint": fl.operating_point(pendulum),
        "TrimReport": fl.trim(pendulum).report,
        "Verification": linear.verify(pendulum, horizon=0.3),
        "NonlinearView": nonlinear_view(pendulum),
    }
    rows = []
    for name, result in results.items():
        plain, html = _least(partial(repr, result)), _least(result._repr_html_)
        verdict = "kept" if max(plain, html) < MILLISECONDS else "MISSED"
        rows.append([name, f"{plain:.2f} ms", f"{html:.2f} ms", str(len(repr(result).splitlines())), verdict])
    columns = ["", "repr", "_repr_html_", "lines", f"< {MILLISECONDS:g} ms"]
    show("Representations", columns, rows, f"Processor time, the least of {REPEATED}; the first one loads modules.")


def _least(work: Callable[[], object]) -> float:
    """Return milliseconds."""
    work()
    found = []
    for _ in range(REPEATED):
        start = time.process_time()
        work()
        found.append(1e3 * (time.process_time() - start))
    return min(found)


def _reports() -> None:
    speeds = {"rear_rate": -np.linspace(0.5, 10.0, 1000) / bicycle().parameters["r_R"]}
    rolling = ("x", "y", "rear_wheel", "front_wheel", "rear_rate")
    families = {
        "bicycle, 1,000 speeds": fl.sweep(bicycle(), speeds, trim=fl.TrimRequest(steady=rolling)),
        "pendulum, 40 x 25": fl.sweep(cartesian_pendulum(), {"x": np.linspace(0, 0.5, 40), "F": np.linspace(0, 2, 25)}),
    }
    rows = [_row(name, family, limited=True) for name, family in families.items()]
    rows.append(_row("double wishbone, one model", fl.linearize(double_wishbone()), limited=False))
    columns = ["", "processor time", "size", "target"]
    show("Reports", columns, rows, f"Aims at 1,000 points: {SECONDS:g} s, {MEGABYTES:g} MB.")


def _row(name: str, result: fl.LinearModel | fl.LinearFamily, *, limited: bool) -> list[str]:
    start = time.process_time()
    size = len(report_html(result).encode("utf-8")) / 1e6
    seconds = time.process_time() - start
    kept = seconds < SECONDS and size < MEGABYTES
    return [name, f"{seconds:.1f} s", f"{size:.1f} MB", ("kept" if kept else "MISSED") if limited else ""]


if __name__ == "__main__":
    main()
