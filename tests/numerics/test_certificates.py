"""Trimmed points, periodic orbits and starts of DAEs say in the same form how well they are determined."""

import re

import pytest

import fmilin as fl
from tests.command_line import main

FACTS = ("Residual", "Newton step", "Regularity")


def _pendulum() -> fl.models.DaeModel:
    equations = ["der(x) = vx", "der(y) = vy", "m*der(vx) = -T*x", "m*der(vy) = -T*y - m*g", "x^2 + y^2 = L^2"]
    return fl.models.DaeModel(
        "pendulum", equations, parameters={"m": 2.0, "g": 9.81, "L": 0.5}, start={"y": -0.5, "T": 30.0}
    )


def _facts(text: str) -> list[str]:
    return [line.split("  ")[0] for line in text.splitlines() if line.startswith(FACTS)]


def test_a_start_at_a_double_root_is_known_to_the_root_of_rounding_only() -> None:
    """z^2 = x at x = 0: a residual of 1e-17 leaves z free by 1e-8."""
    model = fl.models.DaeModel("two", ["der(x) = -z", "z^2 = x"], start={"x": 0.0, "z": 0.1})
    certificate = model.certify_start()
    assert certificate is not None
    z = float(model.engine.reduced.find_start()[1][0])
    assert abs(z) > 1e-10
    assert certificate.distance["z"] >= abs(z)
    assert certificate.multiple == ("z",)
    assert certificate.regularity < 1e-3
    assert "several solutions meet in z" in repr(certificate)


def test_a_point_an_orbit_and_a_start_print_the_same_facts() -> None:
    point = fl.trim(fl.systems.cartesian_pendulum())
    oscillator = fl.models.OdeModel("oscillator", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 2.0})
    orbit = fl.periodic_orbit(oscillator)
    start = _pendulum().certify_start()
    assert start is not None
    printed = [repr(point), repr(orbit), repr(start), repr(point.report.certificate), repr(orbit.certificate)]
    assert [_facts(text) for text in printed] == [list(FACTS)] * 5


def test_the_start_of_a_dae_is_certified_with_a_bound_around_the_closed_form() -> None:
    model = _pendulum()
    start = model.certify_start()
    assert start is not None
    # m d^2/dt^2 (x^2 + y^2) / 2 = 0 at rest at the bottom: -T L^2 + m g L = 0.
    tension = float(
        model.with_interface(outputs=["T"]).evaluate(0.0, model.start.states, model.start.inputs).outputs[0]
    )
    assert abs(tension - 2.0 * 9.81 / 0.5) <= start.distance["T"] + 1e-14 * tension
    assert 0 <= start.distance["T"] < 1e-11
    assert abs(start.step["T"]) < 1e-11
    assert start.residual < 1e-12


def test_info_prints_how_well_the_start_of_a_dae_is_determined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["info", f"{__file__}:_pendulum"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"At start +solved for T", printed)
    assert _facts(printed) == list(FACTS)


def test_an_orbit_near_a_fold_of_cycles_is_less_regular() -> None:
    # r' = r (m + r^2 - r^4): two cycles meet at m = -1/4, r^2 = 1/2.
    def regularity(m: float) -> float:
        radius = ((1 + (1 + 4 * m) ** 0.5) / 2) ** 0.5
        rates = {"x": "x*(m + r2 - r2^2) - y", "y": "y*(m + r2 - r2^2) + x"}
        rates = {name: rate.replace("r2", "(x^2 + y^2)") for name, rate in rates.items()}
        model = fl.models.OdeModel("cycles", rates, parameters={"m": m}, start={"x": radius})
        return fl.periodic_orbit(model).certificate.regularity

    assert regularity(-0.2499) < 0.2 * regularity(-0.1)
