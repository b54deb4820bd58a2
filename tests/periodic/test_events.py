"""Motions that pass events, and those of a co-simulation FMU: deviations are measured beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.models import OdeModel
from tests.command_line import main
from tests.periodic.hybrids import BuckConverter, CompassWalker, RimlessWheel

STEPS = ((1e-5, 0.0), (0.0, 1e-5))


def test_a_rimless_wheel_loses_the_same_at_every_impact() -> None:
    """The speed w after an impact is cos(2 a) of that before it, so w^2 has the multiplier cos^2(2 a) (McGeer 1990)."""
    wheel = RimlessWheel()
    orbit = fl.periodic_orbit(wheel)
    keeps, gained = np.cos(0.6), 2 * (np.cos(0.08 - 0.3) - np.cos(0.08 + 0.3))
    before = gained / (1 - keeps**2)
    assert orbit.start.states == pytest.approx([0.0, np.sqrt(keeps**2 * before - 2 * (1 - np.cos(0.22)))], abs=1e-7)
    assert [event.jumped for event in orbit.events] == [("q", "w")]
    periodic = fl.linearize_periodic(wheel, orbit, points=32)
    floquet = periodic.floquet()
    assert floquet.multipliers == pytest.approx([1.0, keeps**2], abs=1e-8)
    assert (list(floquet.unit), floquet.stable) == (["the motion itself"], True)
    assert "Events       event indicator 1 at 0.86" in repr(orbit)
    smooth = r"change smoothly over the period, and this motion passes events"
    with pytest.raises(fl.UsageError, match=smooth):
        periodic.harmonic(2)
    with pytest.raises(fl.UsageError, match=smooth):
        periodic.lifted(2)


def gait(slope: float, size: float = 1.0) -> fl.PeriodicOrbit:
    """The long-period gait, looked for from a tenth of a second after an impact on the slope 0.009."""
    start = {"a": 0.181, "b": -0.199, "da": -0.1809, "db": -0.0037}
    return fl.periodic_orbit(CompassWalker(slope), {name: size * value for name, value in start.items()})


def test_the_simplest_walker_walks_as_published() -> None:
    """The fixed point with a thousandth of the mass in the feet is Bhounsule's, printed in the program of his lab."""
    angle, rate, between, relative = 0.200161072169750, -0.199906060087682, 0.400322144339512, -0.015805473227965
    walker, orbit = CompassWalker(), gait(0.009)
    impact = orbit.events[-1]
    x = fl.simulate(walker, orbit.start, stop_time=impact.time + 1e-9).point().states
    assert x[[0, 2]] == pytest.approx([angle, rate], abs=1e-8)
    assert [x[0] - x[1], x[2] - x[3]] == pytest.approx([between, relative], abs=1e-8)
    floquet = fl.linearize_periodic(walker, orbit, points=16).floquet()
    # The map from impact to impact, its slopes measured by another integrator; the impact leaves no fourth multiplier.
    J = np.array([(walker.stride(angle + h, rate + k) - walker.stride(angle - h, rate - k)) / 2e-5 for h, k in STEPS]).T
    assert np.sort_complex(floquet.multipliers[1:3]) == pytest.approx(np.sort_complex(np.linalg.eigvals(J)), abs=4e-5)
    assert floquet.multipliers[[0, 3]] == pytest.approx([1.0, 0.0], abs=4e-5)
    assert floquet.stable


@pytest.mark.parametrize(("slope", "stable"), [(0.0145, True), (0.0155, False)])
def test_the_gait_loses_stability_at_a_slope_of_0_015(slope: float, stable: bool) -> None:
    """Garcia, Chatterjee, Ruina and Coleman 1998: stable when 0 < slope < 0.015 rad, then the period doubles."""
    orbit = gait(slope, (slope / 0.009) ** (1 / 3))
    floquet = fl.linearize_periodic(orbit.model, orbit, points=16).floquet()
    assert floquet.stable == stable
    own = floquet.multipliers[np.abs(floquet.multipliers - 1) > 1e-3]
    assert own[np.argmax(np.abs(own))].real == pytest.approx(-1.0, abs=0.15)


@pytest.mark.parametrize(("supply", "stable"), [(24.45, True), (24.58, False)])
def test_a_buck_converter_doubles_its_period_at_a_supply_of_24_5_volts(supply: float, stable: bool) -> None:
    """Fossas and Olivar found 24.516 V; the monodromy is that with the saltation matrix of the switch."""
    model = BuckConverter(supply)
    orbit = fl.periodic_orbit(model, period=model.PERIOD)
    (event,) = orbit.events
    A = np.array([[-1 / (model.R * model.C), 1 / model.C], [-1 / model.L, 0.0]])
    before = A @ expm(A * event.time) @ orbit.start.states
    normal, rise = np.array([model.GAIN, 0.0]), -(model.HIGH - model.LOW) / model.PERIOD
    S = np.eye(2) + np.outer([0.0, supply / model.L], normal) / (normal @ before + rise)
    exact = np.linalg.eigvals(expm(A * (model.PERIOD - event.time)) @ S @ expm(A * event.time))
    floquet = fl.linearize_periodic(model, orbit, points=16).floquet()
    assert np.sort(floquet.multipliers.real) == pytest.approx(np.sort(exact), abs=1e-7)
    assert floquet.stable == stable
    assert (floquet.multipliers.real < 0).all()


def test_events_survive_in_files(tmp_path: Path) -> None:
    wheel = RimlessWheel()
    periodic = fl.linearize_periodic(wheel, fl.periodic_orbit(wheel), points=16)
    for suffix in (".json", ".npz", ".mat", ".nc"):
        periodic.save(tmp_path / f"wheel{suffix}")
        again = fl.PeriodicModel.load(tmp_path / f"wheel{suffix}")
        assert again.floquet().multipliers == pytest.approx(periodic.floquet().multipliers, abs=1e-12)


def test_a_period_does_not_begin_at_an_event() -> None:
    wheel = RimlessWheel()
    begin = fl.periodic_orbit(wheel)
    late = fl.simulate(wheel, begin.start, stop_time=begin.events[0].time + 1e-9).point()
    start = fl.operating_point(wheel, dict(zip("qw", late.states, strict=True)))
    with pytest.raises(fl.UsageError, match=r"period begins at an event, at t = .*Begin between events"):
        fl.periodic_orbit(wheel, start, period=begin.period)


def test_a_motion_past_events_is_shot_in_one_piece_whatever_was_asked() -> None:
    orbit = fl.periodic_orbit(RimlessWheel(), segments=3)
    assert len(orbit.nodes) == 1


def test_a_relay_in_an_fmu_has_the_saltation_of_its_two_switches(zoo: Callable[[str], Path]) -> None:
    """x' = 3 cos t - sign x is odd over half a turn, so it switches at sin t = -pi/6 with rates 3 cos t +- 1."""
    model = fl.load(zoo("relay"))
    course = {"u": lambda t: 3 * np.cos(t)}
    orbit = fl.periodic_orbit(model, {"x": 1.0}, period=2 * np.pi, inputs=course)
    assert [event.time for event in orbit.events] == pytest.approx(
        [np.pi - np.arcsin(np.pi / 6), 2 * np.pi - np.arcsin(np.pi / 6)], abs=1e-8
    )
    rate = 3 * np.sqrt(1 - (np.pi / 6) ** 2)
    floquet = fl.linearize_periodic(model, orbit, points=32).floquet()
    assert floquet.multipliers == pytest.approx([((rate - 1) / (rate + 1)) ** 2], abs=1e-7)


def test_co_simulation_takes_its_own_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    equations = {"x": "v", "v": "-x - 0.3*x**3 - 0.2*v + 0.7*cos(2*time)"}
    (tmp_path / "models.py").write_text(
        f"from fmilin.models import OdeModel\n\ndef duffing():\n    return OdeModel('duffing', {equations!r})\n"
    )
    assert main(["build", f"{tmp_path}/models.py:duffing", "-o", f"{tmp_path}/duffing.fmu"]) == 0
    native = OdeModel("duffing", equations)
    stepped = fl.load(tmp_path / "duffing.fmu", interface="cs")
    seen = []
    for model in (native, stepped):
        orbit = fl.periodic_orbit(model, period=np.pi)
        seen.append((orbit.start.states, fl.linearize_periodic(model, orbit, points=32).floquet().multipliers))
    assert seen[1][0] == pytest.approx(seen[0][0], abs=1e-8)
    assert seen[1][1] == pytest.approx(seen[0][1], abs=1e-8)
    with pytest.raises(
        fl.UsageError, match=r"co-simulation FMU.*Its period cannot be found.*give the period \(period= alone\)"
    ):
        fl.periodic_orbit(stepped)
    monkeypatch.setattr(type(stepped), "why_not_settable", lambda self, point: "Its states do not stay.")
    with pytest.raises(fl.UsageError, match=r"analysed\. Its states do not stay. Otherwise export it"):
        fl.periodic_orbit(stepped, period=np.pi)
