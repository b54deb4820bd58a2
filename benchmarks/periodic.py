"""Motions that repeat: Floquet's exponents against closed forms, published numbers, and what they cost."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, special

import fmilin as fl
from benchmarks.counting import count_calls
from benchmarks.tables import show
from fmilin.cli.main import main as main_of
from fmilin.fmi.read import FmuModel
from fmilin.models import OdeModel
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription, Placement
from fmilin.models.mechanism.mechanism_elements import JointForce
from fmilin.periodic.floquet import mismatch
from fmilin.periodic.fourier import derivative
from fmilin.systems import slider_crank
from tests.periodic.hybrids import BuckConverter, RimlessWheel
from tests.periodic.rotors import SPEED, helicopter, rotor

PERIOD = 6.6632868593231  # of van der Pol's oscillator, mu = 1 (Andersen and Geer 1982)


def main() -> None:
    """Print the tables."""
    rows = [*_van_der_pol(), _pendulum(), *_rotors(), _fmu(), *_events(), _riccati()]
    show("Periodic: numbers", ("case", "what", "difference", "wanted"), rows)
    show("Periodic: one lag damper out", ("case", "unstable between", "centre", "published"), [_helicopter()])
    wrong, points = _mathieu()
    row = ("Mathieu's chart, 1e-3 beside its lines", f"{points} points", f"{wrong} told wrongly", "0")
    show("Periodic: stability", ("case", "points", "verdicts", "wanted"), [row])
    heads = ("case", "states", "processor time of orbit and exponents [s]", "wanted", "visits a phase, of slopes")
    show("Periodic: cost", heads, _costs())


def _van_der_pol() -> list[tuple[str, ...]]:
    model = OdeModel("van der Pol", {"x": "v", "v": "(1 - x**2)*v - x"}, start={"x": 2.0})
    orbit = fl.periodic_orbit(model, points=128)
    exponent = fl.linearize_periodic(model, orbit, points=128).floquet().exponents[1].real
    divergence = float(np.mean(1 - orbit.states()[:-1, 0] ** 2))
    return [
        ("van der Pol", "period, relative", f"{abs(orbit.period / PERIOD - 1):.1e}", "1e-10"),
        ("van der Pol", "exponent and mean divergence", f"{abs(exponent - divergence):.1e}", "1e-8"),
    ]


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


def _events() -> list[tuple[str, ...]]:
    """A rimless wheel has the multiplier cos^2(2 a); a buck converter bifurcates at 24.516 V (Fossas and Olivar)."""
    wheel = RimlessWheel()
    multiplier = fl.linearize_periodic(wheel, fl.periodic_orbit(wheel), points=16).floquet().multipliers[1].real

    def beyond(supply: float) -> float:
        model = BuckConverter(supply)
        orbit = fl.periodic_orbit(model, period=model.PERIOD)
        return float(np.abs(fl.linearize_periodic(model, orbit, points=8).floquet().multipliers).max() - 1)

    supply = optimize.brentq(beyond, 24.4, 24.6, xtol=1e-5)
    return [
        ("rimless wheel", "multiplier", f"{abs(multiplier - np.cos(0.6) ** 2):.1e}", "1e-7"),
        ("buck converter", f"period doubles at {supply:.4f} V", f"{abs(supply - 24.516):.1e}", "1e-3"),
    ]


def _riccati() -> tuple[str, ...]:
    rates = {"x": "v", "v": "-(1 + 0.8*cos(2*time))*x + (1 + 0.5*sin(2*time))*u"}
    model = OdeModel("resonant", rates, inputs=["u"])
    periodic = fl.linearize_periodic(model, fl.periodic_orbit(model, period=np.pi))
    S, A = fl.design.periodic_lqr(periodic, np.eye(2), np.eye(1)).riccati, periodic.A
    B, At = periodic.B, np.swapaxes(A, 1, 2)
    residual = derivative(S, np.pi) + At @ S + S @ A - S @ B @ np.swapaxes(B, 1, 2) @ S + np.eye(2)
    return "periodic LQR", "residual of Riccati's equation", f"{np.abs(residual).max():.1e}", "1e-8"


def _helicopter() -> tuple[str, ...]:
    """Where Hammond's helicopter is unstable with one damper out, in revolutions a minute."""
    model = helicopter((0.0, 4067.5, 4067.5, 4067.5))

    def margin(speed: float) -> float:
        orbit = fl.periodic_orbit(model, turn="psi", fixed={"v_psi": speed * np.pi / 30})
        return fl.linearize_periodic(model, orbit, points=32).floquet().margin - 1e-3

    low, high = (optimize.brentq(margin, a, b, xtol=0.1) for a, b in ((150.0, 250.0), (250.0, 350.0)))
    published = "about 250 (its source could not be read)"
    return "Hammond's helicopter", f"{low:.1f} and {high:.1f} rpm", f"{(low + high) / 2:.1f} rpm", published


def _mathieu() -> tuple[int, int]:
    """Count verdicts that differ from the chart (a_n and b_n of McLachlan) near 4 lines at 5 values of q."""
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
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "chain.py", Path(folder) / "chain.fmu"
        source.write_text(
            "from benchmarks.periodic import chain\n\n\ndef model():\n    return chain(6, filtered=True)\n"
        )
        main_of(["build", f"{source}:model", "-o", str(path)])
        drive = {"drive": lambda t: 2 * np.cos(3 * t)}
        return [
            _cost("crank slider", slider_crank(), "2", start={"phi": 0.3, "w": 100.0}, turn="phi"),
            _cost("chain of 6 masses and a filter, FMU", fl.load(path), "2", period=2 * np.pi / 1.3),
            _cost("chain of 20 masses, cubic springs, driven", chain(20), "5", period=2 * np.pi / 1.3),
            _cost("mechanism of 20 links, driven", _links(20), "5", period=2 * np.pi / 3, inputs=drive),
        ]


def _cost(name: str, model: fl.Model, wanted: str, **motion: Any) -> tuple[str, ...]:
    begin = time.process_time()
    orbit = fl.periodic_orbit(model, **motion)
    with count_calls(model) if isinstance(model, FmuModel) else nullcontext(Counter[str]()) as calls:
        fl.linearize_periodic(orbit.model, orbit).floquet()
    spent = time.process_time() - begin
    visits = f"{calls['evaluations'] / 64:.0f} (60)" if calls["evaluations"] else "in one stack"
    return name, str(len(model.states)), f"{spent:.2f}", wanted, visits


def _links(count: int) -> Mechanism:
    """Return a hanging chain of links on springs, the first one driven."""
    bodies = [Body(f"b{k}", 1.0, center=(0, 0, -0.1), inertia=(0.01, 0.01, 0.001)) for k in range(count)]
    joints = [
        Joint(f"j{k}", "revolute", f"b{k - 1}" if k else "ground", f"b{k}", Placement((0, 0, -0.2 if k else 0)),
              axis=(0, 1, 0), damping=0.05, stiffness=2.0)
        for k in range(count)
    ]  # fmt: skip
    return Mechanism(MechanismDescription("links", bodies, joints, inputs=[JointForce("drive", "j0")]))


def chain(masses: int, *, filtered: bool = False) -> OdeModel:
    """Return masses between springs that harden, the first one driven, through a filter or not."""
    rates: dict[str, str] = {}
    for k in range(1, masses + 1):
        left, right = (f"(q{k} - q{k - 1})" if k > 1 else f"q{k}"), (f"(q{k + 1} - q{k})" if k < masses else f"(-q{k})")
        rates[f"q{k}"] = f"v{k}"
        drive = (" + f" if filtered else " + cos(1.3*time)") if k == 1 else ""
        rates[f"v{k}"] = f"4*{right} - 4*{left} + 0.5*{right}**3 - 0.5*{left}**3 - 0.1*v{k}{drive}"
    if filtered:
        rates["f"] = "-f + 2*cos(1.3*time)"
    return OdeModel("chain", rates)
