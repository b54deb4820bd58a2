"""Motions that repeat: Floquet's exponents against closed forms, published numbers, and what they cost."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import special

import fmilin as fl
from benchmarks.tables import show
from fmilin.cli.main import main as main_of
from fmilin.motion.periodic.floquet import mismatch
from fmilin.native import OdeModel
from fmilin.native.systems import slider_crank
from tests.families.periodic.rotors import SPEED, rotor

PERIOD = 6.6632868593231  # of van der Pol's oscillator, mu = 1 (Andersen and Geer 1982)


def main() -> None:
    """Print the tables."""
    rows = [_van_der_pol(), _pendulum(), *_rotors(), _fmu()]
    show("Periodic: numbers", ("case", "what", "difference", "wanted"), rows)
    wrong, points = _mathieu()
    row = ("Mathieu's chart, 1e-3 beside its lines", f"{points} points", f"{wrong} told wrongly", "0")
    show("Periodic: stability", ("case", "points", "verdicts", "wanted"), [row])
    show("Periodic: cost", ("case", "states", "processor time of orbit and exponents [s]"), _costs())


def _van_der_pol() -> tuple[str, ...]:
    model = OdeModel("van der Pol", {"x": "v", "v": "(1 - x**2)*v - x"}, start={"x": 2.0})
    orbit = fl.periodic_orbit(model)
    return "van der Pol", "period, relative", f"{abs(orbit.period / PERIOD - 1):.1e}", "1e-10"


def _pendulum() -> tuple[str, ...]:
    model = OdeModel("pendulum", {"q": "w", "w": "-9*sin(q)"}, start={"q": 1.0})
    orbit = fl.periodic_orbit(model)
    exact = 4 / 3 * special.ellipk(np.sin(0.5) ** 2)
    return "pendulum", "period, relative", f"{abs(orbit.period / exact - 1):.1e}", "1e-10"


def _rotors() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for blades in (3, 4):
        model = rotor(blades)
        orbit = fl.periodic_orbit(model, turn="psi", fixed={"v_psi": SPEED})
        periodic = fl.linearize_periodic(model, orbit)
        averaged = periodic.multiblade({"lag": "b*"}).averaged().eigenvalues()
        exponents = periodic.floquet().exponents
        swinging = np.array([s for s in averaged if abs(s) > 1e-6])
        gap = mismatch(swinging, exponents[np.abs(exponents) > 1e-6], orbit.period)
        rows.append((f"rotor of {blades} blades", "averaged multiblade and Floquet", f"{gap:.1e}", "1e-9"))
    return rows


def _fmu() -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crank.fmu"
        main_of(["build", "fmilin.systems:slider_crank", "-o", str(path)])
        models = (slider_crank(), fl.load(path))
        results = []
        for model in models:
            orbit = fl.periodic_orbit(model, {"phi": 0.3, "w": 100.0}, turn="phi")
            results.append((orbit.period, fl.linearize_periodic(model, orbit, points=256).floquet().exponents))
        gap = max(abs(results[0][0] / results[1][0] - 1), mismatch(results[0][1], results[1][1], results[0][0]))
    return "crank slider at 100 rad/s", "FMU and native", f"{gap:.1e}", "1e-8"


def _mathieu() -> tuple[int, int]:
    """Count verdicts that differ from the chart (a_n and b_n of McLachlan) beside 4 lines at 5 values of q."""
    wrong = points = 0
    rate = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    model = OdeModel("Mathieu", rate, parameters={"a": 1.0, "q": 0.1})
    for q in (0.5, 1.0, 2.0, 3.0, 5.0):
        even, odd = (
            [float(f(n, q)) for n in range(k, 4)] for k, f in enumerate((special.mathieu_a, special.mathieu_b))
        )
        lines = sorted([*even, *odd])
        values = [line + side for line in lines[:4] for side in (-1e-3, 1e-3)]
        chart = fl.floquet_chart(model, {"a": values, "q": [q]}, period=np.pi)
        expected = [(k // 2 % 2 == 0) == (k % 2 == 1) for k in range(len(values))]
        wrong += sum(a != b for a, b in zip(chart.stable[:, 0], expected, strict=True))
        points += len(values)
    return wrong, points


def _costs() -> list[tuple[str, ...]]:
    cases = [("crank slider", slider_crank(), {"phi": 0.3, "w": 100.0}, "phi")]
    rows: list[tuple[str, ...]] = []
    for name, model, start, turn in cases:
        begin = time.process_time()
        orbit = fl.periodic_orbit(model, start, turn=turn)
        fl.linearize_periodic(model, orbit).floquet()
        rows.append((name, str(len(model.states)), f"{time.process_time() - begin:.2f}"))
    chain = _chain(20)
    begin = time.process_time()
    orbit = fl.periodic_orbit(chain, period=2 * np.pi / 1.3)
    fl.linearize_periodic(chain, orbit).floquet()
    rows.append(("chain of 20 masses, cubic springs, driven", "40", f"{time.process_time() - begin:.2f}"))
    return rows


def _chain(masses: int) -> OdeModel:
    """Return masses between springs that harden, the first one driven."""
    rates: dict[str, str] = {}
    for k in range(1, masses + 1):
        left, right = (f"(q{k} - q{k - 1})" if k > 1 else f"q{k}"), (f"(q{k + 1} - q{k})" if k < masses else f"(-q{k})")
        rates[f"q{k}"] = f"v{k}"
        drive = " + cos(1.3*time)" if k == 1 else ""
        rates[f"v{k}"] = f"4*{right} - 4*{left} + 0.5*{right}**3 - 0.5*{left}**3 - 0.1*v{k}{drive}"
    return OdeModel("chain", rates)
