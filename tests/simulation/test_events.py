"""Events in state and in time: found, located, passed, reported; modes that are begun anew."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ellipk

import fmilin as fl
from fmilin.numerics.steps import domains, first_crossing
from fmilin.simulation import Method
from tests.simulation.hybrids import Ball, Chatter, Clockwork, StoppedPendulum


def test_bounces_are_where_they_are_by_hand() -> None:
    """From 5 m at 10 m/s2: down after 1 s with 10 m/s; then up and down in 1 s, 0.5 s, 0.25 s."""
    ball = Ball()
    motion = fl.simulate(ball, stop_time=2.6, step=0.25)
    hits = [e for e in motion.events if e.jumped]
    np.testing.assert_allclose([e.time for e in hits], [1.0, 2.0, 2.5], atol=1e-12)
    assert {e.cause for e in hits} == {"event indicator 1"}
    assert all("v" in e.jumped for e in hits)
    assert ball.bounces == 3
    k = int(np.flatnonzero(motion["v"] > 4)[0])  # the sample after the first bounce
    np.testing.assert_allclose(motion["v"][k - 1 : k + 1], [-10.0, 5.0], atol=1e-9)
    assert motion.times[k - 1] == motion.times[k]
    t = motion.times
    between = (t > 1.0001) & (t < 1.9999)
    np.testing.assert_allclose(motion["x"][between], (5 * (t - 1) - 5 * (t - 1) ** 2)[between], atol=1e-9)
    assert motion["x"].min() > -1e-12


def test_a_second_run_begins_in_the_first_mode_again() -> None:
    ball = Ball()
    first = fl.simulate(ball, stop_time=2.6, step=0.5)
    second = fl.simulate(ball, stop_time=2.6, step=0.5)
    np.testing.assert_array_equal(first.states, second.states)
    assert (ball.bounces, ball.restarts) == (3, 2)


def test_a_hard_stop_on_a_manifold() -> None:
    """Quarter period to the stop, the same way back: the period is half of that of the free pendulum."""
    period = 4 / np.sqrt(10.0) * ellipk(np.sin(0.5) ** 2)
    for stabilization in ("projection", "local", "baumgarte", "none"):
        motion = fl.simulate(StoppedPendulum(1.0), stop_time=period, step=period / 8, stabilization=stabilization)
        hits = [e.time for e in motion.events if e.jumped]
        np.testing.assert_allclose(hits, [period / 4, 3 * period / 4], atol=1e-6)
        assert motion["x"].min() > -1e-7
        np.testing.assert_allclose(motion["x"][motion.times == period / 2], np.sin(1.0), atol=1e-6)
        np.testing.assert_allclose(motion.states[-1], motion.states[0], atol=1e-6)
        assert motion.largest_drift < (1e-12 if stabilization in ("projection", "local") else 1e-6)


def test_events_in_time_and_an_early_end() -> None:
    motion = fl.simulate(Clockwork(), stop_time=10.0, step=0.5)
    assert [e.time for e in motion.events] == [1.0, 2.0, 3.0, 4.0]
    assert {e.cause for e in motion.events} == {"time"}
    assert motion.times[-1] == 4.0
    np.testing.assert_allclose(motion["x"][-1], 0 + 1 + 2 + 3, atol=1e-12)
    (remark,) = motion.remarks
    assert remark.kind == "ended"
    assert "requested the end of the simulation at t = 4 s" in str(remark)


def test_chattering_is_noticed() -> None:
    with pytest.raises(fl.NumericalError, match=r"More than 100 events follow each other at t = 1 s .*chatters"):
        fl.simulate(Chatter(), stop_time=3.0)


def test_snapshots_see_the_mode_of_their_time() -> None:
    ball = Ball()
    seen = [(p.time, ball.bounces, p.states[0]) for p in fl.snapshots(ball, times=[0.5, 1.5, 2.25])]
    assert [(t, n) for t, n, _ in seen] == [(0.5, 0), (1.5, 1), (2.25, 2)]
    np.testing.assert_allclose([x for *_, x in seen], [3.75, 1.25, 0.3125], atol=1e-9)


def test_snapshots_after_the_end_do_not_exist() -> None:
    with pytest.raises(fl.UsageError, match=r"requested the end.*choose earlier times"):
        list(fl.snapshots(Clockwork(), times=[1.5, 5.0]))


@pytest.mark.parametrize("times", [[], [1.0, 0.5], [0.5, 0.5], [-1.0], [np.nan]])
def test_times_of_snapshots_must_increase(times: list[float]) -> None:
    with pytest.raises(fl.UsageError, match=r"times of the snapshots|An entry of 'times' is not a number"):
        list(fl.snapshots(Ball(), times=times))


def test_the_first_of_several_crossings_is_found_to_the_last_digit() -> None:
    found = first_crossing(lambda t: np.array([t - 0.7, 0.3 - t, 1.0]), domains(np.array([-1.0, 1.0, 1.0])), 0.0, 1.0)
    assert found is not None
    assert found.indicators == (1,)
    assert 0 <= found.time - 0.3 <= 1e-15


def test_a_short_dip_within_a_step_is_seen() -> None:
    before = domains(np.array([1.0]))
    dip = first_crossing(lambda t: np.array([abs(t - 0.5) - 0.05]), before, 0.0, 1.0)
    assert dip is not None
    np.testing.assert_allclose(dip.time, 0.45, atol=1e-15)
    assert first_crossing(lambda t: np.array([1.0]), before, 0.0, 1.0) is None


def test_zero_belongs_to_the_negative_side() -> None:
    np.testing.assert_array_equal(domains(np.array([0.0, -1.0, 1e-300])), [False, False, True])


def test_a_point_elsewhere_finds_its_mode_first() -> None:
    ball = Ball()
    below = fl.OperatingPoint(0.0, np.array([-0.5, -2.0]), np.empty(0))
    motion = fl.simulate(ball, below, stop_time=0.1, method=Method("RK4", longest_step=0.01))
    assert ball.bounces == 1
    np.testing.assert_allclose(motion.states[0], [0.0, 1.0])
