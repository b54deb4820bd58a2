"""Model-exchange FMUs with a discrete part: it is held at the point and listed, and chattering is refused."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import NumericalError
from fmilin.fmi.read import FmuModel
from fmilin.fmi.read.instance import Instance

Opened = Callable[..., FmuModel]


def held(linear: fl.LinearModel) -> str:
    return " ".join(str(w) for w in linear.warnings if w.kind == "held")


def test_discrete_states_and_inputs_that_are_no_numbers_are_listed(opened: Opened) -> None:
    linear = fl.linearize(opened("relay"))
    assert "switches = 0, mode = 1, on = 1, gear = 2" in held(linear)
    assert all(w.is_information for w in linear.warnings if w.kind == "held")
    assert "'on (discrete Boolean)', 'gear (discrete Enumeration)'" in " ".join(map(str, linear.warnings))


def test_inputs_that_are_no_numbers_are_held_where_they_are_set(opened: Opened) -> None:
    linear = fl.linearize(opened("relay", parameters={"on": "false", "gear": 1}))
    assert "on = 0, gear = 1" in held(linear)


def test_the_mode_of_a_snapshot_is_the_one_that_is_listed(opened: Opened) -> None:
    """x = 1 - t with the mode 1; from x = -1 on (u = 0) it comes back: the mode is -1 there."""
    model = opened("relay")
    below = fl.operating_point(model, {"x": -1.0})
    (point,) = fl.snapshots(model, below, times=[0.5])
    linear = fl.linearize(model, point)
    assert "mode = -1" in held(linear)
    assert linear.f0 == pytest.approx([1.0])


def test_a_point_at_which_the_model_chatters_is_refused(opened: Opened) -> None:
    model = opened("relay")
    with pytest.raises(NumericalError, match=r"chatters at the point \(t = 0 s\).*Move the point away"):
        fl.linearize(model, fl.operating_point(model, {"x": 0.0}))


def test_the_present_mode_is_held_where_that_is_asked_for(opened: Opened) -> None:
    model = opened("relay")
    linear = fl.linearize(model, fl.operating_point(model, {"x": 0.0}), hold_modes=True)
    np.testing.assert_allclose((linear.A[0, 0], linear.B[0, 0], linear.f0[0]), (0.0, 1.0, -1.0), atol=1e-12)
    assert "mode = 1" in held(linear)
    assert "valid in this mode only" in held(linear)
    clutch = opened("sticks")
    for point in (fl.operating_point(clutch, {"u": 0.3}), clutch.start):
        np.testing.assert_allclose(fl.linearize(clutch, point, hold_modes=True).B, 0.0, atol=1e-12)


def test_a_point_that_the_motion_crosses_is_no_chattering(opened: Opened) -> None:
    model = opened("relay")
    with pytest.raises(NumericalError, match=r"A state event lies at the point.*one_sided="):
        fl.linearize(model, fl.operating_point(model, {"x": 0.0, "u": 2.0}))


def test_a_motion_that_ends_in_chattering_is_refused_on_the_way(opened: Opened) -> None:
    with pytest.raises(NumericalError, match=r"at t = 1 s without progress in time.*chatters"):
        list(fl.snapshots(opened("relay"), times=[2.0]))


def test_a_smooth_model_holds_nothing(opened: Opened) -> None:
    model = opened("projects")
    assert model.discrete_states() == {}
    assert np.isfinite(fl.linearize(model).A).all()


def test_a_variable_that_cannot_be_read_is_a_note_and_no_failure(opened: Opened) -> None:
    model = opened("arrays3")
    linear = fl.linearize(model)
    assert "The discrete variable 'mode' cannot be read. fmi3GetInt32" in " ".join(model.notes)
    np.testing.assert_allclose(np.diag(linear.A), -1.0)


def test_states_are_not_set_again_to_read_event_indicators_where_they_stand(opened: Opened) -> None:
    model = opened("relay")
    t, x, u = model.start.time, model.start.states, model.start.inputs
    model.evaluate(t, x, u)
    with patch.object(Instance, "visit", autospec=True, side_effect=Instance.visit) as visit:
        at_point = model.event_indicators(t, x, u)
        assert not visit.called
        beside = model.event_indicators(t, x - 0.5, u)
        model.complete_step(t, x, u)
        visits = visit.call_count
        np.testing.assert_array_equal(model.event_indicators(t, x, u), at_point)
        assert visit.call_count == visits + 1  # a step that is completed may have moved the states
    assert (beside != at_point).all()
