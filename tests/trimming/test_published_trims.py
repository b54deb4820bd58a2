"""Trims that books, reports and toolboxes print, to their last digit; models in ``benchmarks/published_trims.py``."""

from __future__ import annotations

from math import degrees, pi, sin
from typing import Any

import pytest

import fmilin as fl
from benchmarks import published_trims as published


def values(model: fl.Model, **request: Any) -> dict[str, float]:
    point = fl.trim(model, **request)
    states = dict(zip(model.states.names, point.states.tolist(), strict=True))
    return states | dict(zip(model.inputs.names, point.inputs.tolist(), strict=True))


@pytest.mark.parametrize(
    ("V", "h", "guess", "printed"),
    [
        (170, 0, {"alpha": 0.3, "elev": -20.0}, (0.297, -25.7, 22.1)),
        (500, 0, {}, (0.293, 2.46, 0.580)),
        (500, 30000, {}, (0.204, -4.10, 5.43)),
    ],
)
def test_the_transport_of_stevens_and_lewis(
    V: float, h: float, guess: dict[str, float], printed: tuple[float, float, float]
) -> None:
    fixed = {"V": V, "h": h, "gamma": 0.0}
    trimmed = values(published.transport(), fixed=fixed, free=["thtl", "elev"], guess=guess)
    assert trimmed["thtl"] == pytest.approx(printed[0], abs=5.1e-4)
    assert trimmed["elev"] == pytest.approx(printed[1], abs=5.1e-2 if V == 170 else 5.1e-3)
    assert degrees(trimmed["alpha"]) == pytest.approx(printed[2], abs=5.1e-2 if V == 170 else 5.1e-3)


def test_the_civil_aircraft_of_garteur() -> None:
    """Airspeed and climb angle are outputs; the engines share the thrust by a preference."""
    trimmed = values(
        published.rcam(),
        fixed={"VA": 85.0, "gamma": 0.0, "v": 0.0, "psi": 0.0},
        free=["ail", "stab", "rud", "th1", "th2"],
        minimize="th1^2 + th2^2",
    )
    assert (trimmed["u"], trimmed["w"], trimmed["theta"]) == pytest.approx((84.9905, 1.2713, 0.0150), abs=5.1e-5)
    assert (trimmed["stab"], trimmed["th1"], trimmed["th2"]) == pytest.approx((-0.1780, 0.0821, 0.0821), abs=5.1e-5)


@pytest.mark.parametrize(
    ("posture", "torques"),
    [
        ((0, pi / 4, pi, 0, pi / 4, 0), (0, 31.6399, 6.0351, 0, 0.0283, 0)),
        ((0, 0, -pi / 2, 0, 0, 0), (0, 46.0069, 8.7722, 0, 0.0283, 0)),
        ((0, pi / 2, -pi / 2, 0, 0, 0), (0, -0.7752, 0.2489, 0, 0, 0)),
    ],
)
def test_the_torques_that_hold_a_puma(posture: tuple[float, ...], torques: tuple[float, ...]) -> None:
    fixed = {f"j{i}.q": q for i, q in enumerate(posture, start=1)}
    point = fl.trim(published.puma(), fixed=fixed, free=[f"tau{i}" for i in range(1, 7)])
    assert point.inputs == pytest.approx(torques, abs=5.1e-5)


def test_the_reactor_of_klatt_and_engell() -> None:
    trimmed = values(published.klatt_engell(), fixed={"F": 14.19, "Q": -1113.5})
    assert (trimmed["cA"], trimmed["cB"]) == pytest.approx((2.14, 1.09), abs=5.1e-3)
    assert (trimmed["T"], trimmed["TK"]) == pytest.approx((114.2, 112.9), abs=5.1e-2)


def test_rests_that_textbooks_call_stable() -> None:
    assert values(published.beer_disk(), stable=True)["theta"] == pytest.approx(0.902, abs=5.1e-4)
    assert degrees(values(published.hibbeler_link(), stable=True)["theta"]) == pytest.approx(53.8, abs=5.1e-2)


def test_a_fighter_turns_and_pulls_up() -> None:
    """Tables 3.6-2 and 3.6-3 of Stevens and Lewis, which come from a simplex search: to three digits."""
    surfaces = ["thtl", "el", "ail", "rdr"]
    turn = values(
        published.f16(0.3),
        fixed={"VT": 502.0, "h": 0.0, "psi": 0.0, "der(psi)": 0.3, "ay": 0.0},
        steady=["pn", "pe"],
        free=surfaces,
        guess={"alpha": 0.2, "phi": 1.3, "q": 0.3, "el": -6.0, "thtl": 0.8},
    )
    printed = {
        "alpha": 0.2485,
        "phi": 1.367,
        "theta": 0.05185,
        "p": -0.01555,
        "q": 0.2934,
        "thtl": 0.8499,
        "el": -6.256,
    }
    assert {name: turn[name] for name in printed} == pytest.approx(printed, rel=1e-3)
    pulled = fl.trim(
        published.f16(0.3),
        fixed={"VT": 502.0, "h": 0.0, "psi": 0.0, "der(theta)": 0.3, "der(h)": 0.0, "phi": 0.0, "p": 0.0, "r": 0.0},
        steady=["pn", "pe"],
        free=surfaces,
        guess={"alpha": 0.25, "theta": 0.25, "q": 0.3, "el": -6.0, "thtl": 0.8},
    )
    assert (pulled.states[1], pulled.inputs[0], pulled.inputs[1]) == pytest.approx((0.3006, 1.023, -7.082), rel=1.1e-3)
    assert "unsteady" in {remark.kind for remark in pulled.report.remarks}


def test_a_climb_through_thinner_air_is_of_an_instant() -> None:
    """The state that is listed moves as the angle says, and the remark says for how long."""
    model = published.transport()
    point = fl.trim(model, fixed={"V": 500.0, "h": 0.0, "gamma": 0.1}, free=["thtl", "elev"], steady=["h"])
    assert point.report.rate("h") == pytest.approx(500 * sin(0.1), rel=1e-12)
    assert "unsteady" in {remark.kind for remark in point.report.remarks}
    assert max(abs(point.report.rates[:4])) < 1e-9
