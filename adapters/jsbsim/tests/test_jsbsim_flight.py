"""Trimmed flight: ten aircraft at two speeds each, turns, what cannot fly so, and linear models there."""

from __future__ import annotations

import numpy as np
import pytest
from fmilin_jsbsim import Flight, trim_flight

import fmilin as fl

LEVEL = [
    ("c172x", 150.0, 180.0, 4000.0), ("c172p", 160.0, 200.0, 3000.0), ("c182", 180.0, 210.0, 4000.0),
    ("Camel", 120.0, 140.0, 3000.0), ("737", 500.0, 650.0, 20000.0), ("B747", 700.0, 800.0, 30000.0),
    ("MD11", 650.0, 800.0, 30000.0), ("A4", 500.0, 700.0, 10000.0), ("f16", 600.0, 800.0, 15000.0),
    ("T38", 500.0, 700.0, 10000.0),
]  # fmt: skip


def seen(model: fl.Model, point: fl.OperatingPoint, *more: str) -> dict[str, float]:
    view = model.with_interface(outputs=[*model.outputs.names, *more])
    return dict(zip(view.outputs.names, view.evaluate(0.0, point.states, point.inputs).outputs.tolist(), strict=True))


@pytest.mark.parametrize(("name", "slow", "fast", "altitude"), LEVEL, ids=[name for name, *_ in LEVEL])
def test_ten_aircraft_fly_level_at_two_speeds(
    name: str, slow: float, fast: float, altitude: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weight is carried, but for what the Earth's turning and curvature take; faster wants a smaller alpha."""
    if name != "c172x":  # three quarters of the time: whether A stays along the flight, which is not asked here
        monkeypatch.setattr("fmilin.trimming.trim_procedure._assess_motion", lambda _, point: point)
    model = fl.load(f"jsbsim:{name}")
    alphas = []
    for speed in (slow, fast):
        point = trim_flight(model, Flight(speed, altitude))
        rates = model.evaluate(0.0, point.states, point.inputs).derivatives
        assert np.abs(rates[2:13]).max() < 5e-5  # 1.6e-6 g: the control laws of the f16 keep a memory that is not moved
        values = seen(model, point, "nz")
        assert values["VT"] == pytest.approx(speed, rel=1e-9)
        assert values["h"] == pytest.approx(altitude, rel=1e-9)
        assert values["phi"] == pytest.approx(0.0, abs=1e-7)
        lighter = (2 * 7.292e-5 * speed * np.cos(0.6) + speed**2 / 2.09e7) / 32.17  # Eotvos
        # Gravity itself is smaller by 0.1 % at this latitude, and by 0.3 % at 30000 ft.
        assert values["nz"] == pytest.approx(np.cos(values["theta"]) - lighter, abs=4e-3)
        alphas.append(values["alpha"])
    assert alphas[1] < alphas[0]


def test_a_turn_has_the_bank_of_mechanics() -> None:
    """Without sideslip tan(phi) = V psi' / g, but for the small force across the body."""
    model = fl.load("jsbsim:737")
    point = trim_flight(model, Flight(600.0, 20000.0, turn_rate=0.02))
    rates = model.evaluate(0.0, point.states, point.inputs).derivatives
    assert np.abs(rates[[2, *range(7, 13)]]).max() < 1e-8
    values = seen(model, point)
    assert np.tan(values["phi"]) == pytest.approx(600.0 * 0.02 / 32.1, rel=0.03)
    assert values["beta"] == pytest.approx(0.0, abs=1e-9)
    assert point.remarks[0].kind == "unsteady"


@pytest.mark.parametrize(
    ("speed", "told"),
    [
        (np.nan, "The speed of a flight must be a finite number, not nan"),
        (-180.0, "The speed of a flight must be above zero, not"),
        ("fast", "The speed of a flight is 'fast': a number is needed"),
    ],
)
def test_a_flight_without_a_speed_never_reaches_the_simulator(speed: float, told: str) -> None:
    """NaN would stay in JSBSim's engines, and every later flight of the model would fail."""
    with pytest.raises(fl.UsageError, match=told):
        Flight(speed, 4000.0)


def test_no_such_flight() -> None:
    model = fl.load("jsbsim:737")
    with pytest.raises(fl.NumericalError, match="No flight of '737' at 200 ft/s and 20000 ft was found"):
        trim_flight(model, Flight(200.0, 20000.0))
    with pytest.raises(fl.NumericalError, match=r"would take a 'throttle' of .*, and the range is 0 to 1"):
        trim_flight(fl.load("jsbsim:c172x"), Flight(180.0, 4000.0, climb_rate=8.0))
    with pytest.raises(fl.UsageError, match="is not an aircraft of JSBSim"):
        trim_flight(fl.systems.cartesian_pendulum(), Flight(200.0, 5000.0))


def test_the_linear_model_is_in_independent_coordinates_and_forgets_where_it_is() -> None:
    """12 states of 13: the attitude's constraint is gone. Nothing depends on the longitude: its column is zero."""
    model = fl.load("jsbsim:737")
    linear = fl.linearize(model, trim_flight(model, Flight(600.0, 20000.0)))
    assert linear.A.shape == (12, 12)
    assert np.abs(linear.A[:, linear.states.index_of("lon")]).max() < 1e-9
    assert any("n1, n2 of the turbines follow the throttle at once" in w.message for w in linear.warnings)
    # The phugoid of Lanchester (1908) has the frequency sqrt(2) g / V, without compressibility and the speed's damping.
    pairs = [v for v in linear.eigenvalues() if v.imag > 1e-3]
    phugoid = min(pairs, key=abs)
    assert abs(phugoid) == pytest.approx(np.sqrt(2) * 32.1 / 600.0, rel=0.35)
