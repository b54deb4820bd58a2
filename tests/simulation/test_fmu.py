"""FMUs in motion: constraints from inside, events, steps that the FMU interrupts, modes that are begun anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.simulation import Method
from fmilin.systems import four_bar


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_an_fmu_moves_as_its_native_model(version: str, tmp_path: Path) -> None:
    native = four_bar()
    path = build_fmu(native, tmp_path / "four_bar.fmu", fmi_version=version)
    start = {"phi": 2.0}
    expected = fl.simulate(native, fl.operating_point(native, start), stop_time=1.0, step=0.1)
    with fl.load(path) as fmu:
        for stabilization in ("projection", "local", "baumgarte"):
            point = fl.operating_point(fmu, start)
            motion = fl.simulate(fmu, point, stop_time=1.0, step=0.1, stabilization=stabilization)
            np.testing.assert_allclose(motion.states, expected.states, atol=1e-7)
            assert motion.largest_drift < (1e-7 if stabilization == "baumgarte" else 1e-12)


def test_bounces_of_an_fmu(zoo: Callable[[str], Path]) -> None:
    """From 5 m at 10 m/s2 with half of the speed at each bounce: 1 s, 2 s, 2.5 s."""
    with fl.load(zoo("bounces")) as ball:
        motion = fl.simulate(ball, stop_time=2.6, step=0.2)
        hits = [e for e in motion.events if e.jumped]
        np.testing.assert_allclose([e.time for e in hits], [1.0, 2.0, 2.5], atol=1e-12)
        assert hits[0].jumped == ("x", "v")
        np.testing.assert_array_equal(np.unique(motion["bounces"]), [0, 1, 2, 3])
        again = fl.simulate(ball, stop_time=2.6, step=0.2)
        np.testing.assert_array_equal(again.states, motion.states)
        seen = [
            (p.time, ball.evaluate(p.time, p.states, p.inputs).outputs[0])
            for p in fl.snapshots(ball, times=[0.9, 1.1, 2.2])
        ]
        assert seen == [(0.9, 0), (1.1, 1), (2.2, 2)]


def test_the_mode_that_was_reached_is_what_is_linearized(zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("bounces")) as ball:
        point = fl.simulate(ball, stop_time=1.5).point()
        lin = fl.linearize(ball, point)
        np.testing.assert_allclose(lin.A, [[0, 1], [0, 0]], atol=1e-9)
        assert lin.point.outputs["bounces"] == 1


def test_bounces_that_accumulate(zoo: Callable[[str], Path]) -> None:
    """1 + 1 + 1/2 + 1/4 + ... = 3 s, where infinitely many bounces have been."""
    with (
        fl.load(zoo("bounces")) as ball,
        pytest.raises(fl.NumericalError, match=r"events follow each other at t = 3 s"),
    ):
        fl.simulate(ball, stop_time=4.0)


def test_events_after_steps_and_the_end_that_an_fmu_asks_for(zoo: Callable[[str], Path]) -> None:
    """x = 1 - t until it is negative at the end of a step; then x' = 2 until it is above 3."""
    with fl.load(zoo("interrupts")) as fmu:
        motion = fl.simulate(fmu, stop_time=9.0, step=0.5, method=Method("RK4", longest_step=0.3))
        (event,) = motion.events
        assert event.cause == "step"
        np.testing.assert_allclose(event.time, 1.2)
        np.testing.assert_allclose(motion["x"][motion.times <= 1.0], 1 - motion.times[motion.times <= 1.0], atol=1e-12)
        np.testing.assert_allclose(motion["x"][-1], -0.2 + 2 * (motion.times[-1] - 1.2), atol=1e-12)
        assert 3.0 < motion["x"][-1] <= 3.6 + 1e-9
        assert [r.kind for r in motion.remarks] == ["ended"]
        second = fl.simulate(fmu, stop_time=0.5, step=0.5)
        np.testing.assert_allclose(second["x"], [1.0, 0.5], atol=1e-12)


def test_an_event_in_time(zoo: Callable[[str], Path]) -> None:
    """It schedules 1.5 s, and at 1.5 s once more: the past is no event."""
    with fl.load(zoo("schedules_event")) as fmu:
        motion = fl.simulate(fmu, stop_time=3.0, step=0.5)
        assert [(e.time, e.cause) for e in motion.events] == [(1.5, "time")]
        np.testing.assert_allclose(motion["x"], np.cos(motion.times), atol=1e-8)


def test_steps_into_what_an_fmu_discards_are_tried_shorter(zoo: Callable[[str], Path]) -> None:
    """It discards x > 10; x = 9 cos t + v sin t gets there only with v > 4.36."""
    with fl.load(zoo("discards")) as fmu:
        inside = fl.OperatingPoint(0.0, np.array([9.0, 4.3]), np.zeros(1))
        motion = fl.simulate(fmu, inside, stop_time=5.0, step=0.25)
        np.testing.assert_allclose(motion["x"], 9 * np.cos(motion.times) + 4.3 * np.sin(motion.times), atol=1e-6)
        across = fl.OperatingPoint(0.0, np.array([9.0, 10.0]), np.zeros(1))
        with pytest.raises(fl.NumericalError, match=r"cannot continue at t = 0\.10\d* s\. .*discard.*out of range"):
            fl.simulate(fmu, across, stop_time=5.0)


def test_nan_of_an_fmu_is_named(zoo: Callable[[str], Path]) -> None:
    """x = cos t has no v' where it is negative."""
    expected = pytest.raises(fl.NumericalError, match=r"t = 1\.570\d* s\. The model returns NaN for .* 'v'")
    with fl.load(zoo("nan_derivative")) as fmu, expected:
        fl.simulate(fmu, stop_time=3.0)


def test_an_fmu_without_states(zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("no_states")) as fmu:
        motion = fl.simulate(fmu, stop_time=1.0, step=0.5)
        assert motion.states.shape == (3, 0)
        assert np.isfinite(motion.outputs).all()
