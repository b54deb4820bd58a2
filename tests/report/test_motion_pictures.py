"""Motions: panels by unit, inputs with limits, the linear model beside, events marked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.simulation.trajectory import EventRecord, Trajectory
from tests.families.plants import oscillator


@pytest.fixture(scope="module")
def motion() -> Trajectory:
    return fl.simulate(oscillator(), fl.operating_point(oscillator(), {"q": 0.3, "F": 0.5}), stop_time=2.0, step=0.05)


def test_signals_are_drawn_by_name_and_inputs_in_a_panel_of_their_own(motion: Trajectory) -> None:
    above, below = motion.plot(limits={"F": (-1.0, 1.0)}).axes
    labels = [str(line.get_label()) for line in above.lines]
    assert labels[0] == "position"
    np.testing.assert_array_equal(np.asarray(above.lines[0].get_ydata()), motion["position"])
    assert below.get_title(loc="left") == "inputs"
    assert {1.0, -1.0} <= {float(np.asarray(line.get_ydata())[0]) for line in below.lines}
    (single,) = motion.plot("v").axes
    np.testing.assert_array_equal(np.asarray(single.lines[0].get_ydata()), motion["v"])
    assert single.get_xlabel() == "time [s]"
    with pytest.raises(fl.UnknownNameError, match="'w'"):
        motion.plot("w")
    with pytest.raises(fl.UnknownNameError, match="a signal of the picture"):
        motion.plot("v", limits={"G": (0.0, 1.0)})


def test_a_linear_model_goes_beside_it(motion: Trajectory) -> None:
    (axes,) = motion.plot("q", linear=fl.linearize(oscillator())).axes
    nonlinear, linear = (np.asarray(line.get_ydata()) for line in axes.lines[:2])
    np.testing.assert_allclose(linear, nonlinear, atol=1e-7)  # the oscillator is linear
    assert "linear model" in [str(line.get_label()) for line in axes.lines]


def test_events_are_marked(motion: Trajectory) -> None:
    passed = (EventRecord(0.7, "event indicator 1", ("v",)), EventRecord(0.8, "time"))
    above = replace(motion, events=passed).plot().axes[0]
    assert "1 events" in [str(line.get_label()) for line in above.lines]  # samples of regulators are no marks
    marks = [np.asarray(line.get_xdata()).tolist() for line in above.lines]
    assert [0.7, 0.7] in marks
    assert [0.8, 0.8] not in marks


def test_signals_far_apart_have_panels_of_their_own_and_limits_of_a_loop_are_drawn(motion: Trajectory) -> None:
    far = motion.states.copy()
    far[:, 1] += 100.0
    units = type(motion.state_signals)([replace(s, unit="m") for s in motion.state_signals])
    moved = replace(motion, states=far, state_signals=units, limits={"F": (-1.0, 1.0)})
    position, speed, force = moved.plot("q", "v", "F").axes
    assert position.get_ylabel() == "q [m]"
    assert speed.get_ylabel() == "v [m]"
    assert {1.0, -1.0} <= {float(np.asarray(line.get_ydata())[0]) for line in force.lines}
    assert len(replace(moved, states=motion.states).plot("q", "v").axes) == 1
