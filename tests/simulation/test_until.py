"""Points of a motion where something comes true, or just after an event."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import acos, cos, pi, sin, sqrt
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum
from tests.cli.conftest import shell
from tests.simulation.hybrids import Ball

G = 9.81
FALL = f"""from fmilin.models import OdeModel
fall = OdeModel("fall", {{"h": "v", "v": "-{G}"}}, outputs={{"momentum": "h*v"}}, start={{"h": 10.0}})
"""


def fall() -> OdeModel:
    return OdeModel("fall", {"h": "v", "v": f"-{G}"}, outputs={"product": "h*v"}, start={"h": 10.0})


def test_where_a_state_crosses_a_value() -> None:
    (point,) = fl.snapshots(fall(), until="h < 3")
    assert point.time == pytest.approx(sqrt(2 * 7 / G), rel=1e-12)
    assert point.states == pytest.approx([3.0, -sqrt(2 * 7 * G)], rel=1e-9)


def test_expressions_over_outputs_and_times_on_the_way() -> None:
    points = list(fl.snapshots(fall(), times=[0.1, 0.5], until="2*product <= -40"))
    t = np.roots([G**2 / 2, 0.0, -10 * G, 20.0])  # (10 - g t^2/2)(-g t) = -20
    assert [p.time for p in points] == pytest.approx([0.1, min(t[t > 0])], rel=1e-9)


@pytest.mark.parametrize("phase", [0.5, 2.0, 3.5, 5.5])
def test_what_holds_for_a_part_of_a_step(phase: float) -> None:
    """A state is beyond 0.99999 for 9 ms of a period, and the integrator's steps are half a second long."""
    oscillator = OdeModel("oscillator", {"x": "v", "v": "-x"}, start={"x": cos(phase), "v": -sin(phase)})
    (point,) = fl.snapshots(oscillator, until="x > 0.99999", stop_time=20.0)
    assert point.time == pytest.approx(2 * pi - phase - acos(0.99999), abs=1e-6)


def test_on_the_manifold() -> None:
    """From rest at 1 rad the speed at an angle follows from the energy."""
    (point,) = fl.snapshots(cartesian_pendulum(angle=1.0), until="x < sin(0.5)")
    assert acos(-point.states[1]) == pytest.approx(0.5, abs=1e-9)
    assert np.hypot(*point.states[2:]) == pytest.approx(sqrt(2 * G * (cos(0.5) - cos(1.0))), rel=1e-8)


def test_what_holds_at_the_start_ends_there() -> None:
    (point,) = fl.snapshots(fall(), until="h > 5")
    assert point.time == 0.0


def test_after_the_first_event() -> None:
    (point,) = fl.snapshots(Ball(), until="event")
    assert point.time == pytest.approx(1.0, abs=1e-12)
    assert point.states == pytest.approx([0.0, 5.0], abs=1e-9)


def test_of_an_fmu_beyond_its_events(zoo: Callable[[str], Path]) -> None:
    """It falls for a second, and comes up at 5 m/s, 2.5 m/s, ...: a jump makes one true, the flight another."""
    with fl.load(zoo("bounces")) as ball:
        (after,) = fl.snapshots(ball, until="event")
        (jumped,) = fl.snapshots(ball, until="v > 2")
        assert [after.time, jumped.time] == pytest.approx([1.0, 1.0], abs=1e-9)
        assert jumped.states == pytest.approx([0.0, 5.0], abs=1e-7)
        (high,) = fl.snapshots(ball, until="x*v > 1")
        assert high.time > 1.0
        assert high.states[0] * high.states[1] == pytest.approx(1.0, abs=1e-9)


def test_what_never_comes_is_said_with_how_near_it_was() -> None:
    with pytest.raises(
        fl.NumericalError, match=r"'h > 12' does not become true before t = 2 s: the closest value is off by 2"
    ):
        list(fl.snapshots(fall(), until="h > 12", stop_time=2.0))
    with pytest.raises(fl.NumericalError, match=r"'event' does not become true before t = 2 s\. .*Simulate longer"):
        list(fl.snapshots(fall(), until="event", stop_time=2.0))


@pytest.mark.parametrize(
    ("until", "message"),
    [
        ("h", "not a comparison"),
        ("h > ", "not a comparison"),
        ("hh > 2", "Did you mean 'h'"),
        ("h + > 2", "not a complete"),
    ],
)
def test_conditions_that_are_none(until: str, message: str) -> None:
    with pytest.raises(fl.FmilinError, match=message) as refused:
        list(fl.snapshots(fall(), until=until))
    assert refused.value.exit_status == 2


def test_a_linear_model_where_it_comes_true_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "fall.py").write_text(FALL)
    done = shell(["linearize", "fall.py:fall", "--simulate-until", "h < 3", "--json"], tmp_path)
    assert done.status == 0, done.err
    point = json.loads(done.out)["point"]
    assert point["time"] == pytest.approx(sqrt(2 * 7 / G), rel=1e-12)
    refused = shell(["linearize", "fall.py:fall", "--simulate-until", "h > 12", "--simulate-to", "2"], tmp_path)
    assert refused.status == 5
    assert refused.is_one_paragraph()
