"""FMI 1.0: states that only the code knows, function names with a prefix, initialization without a mode of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError, UsageError
from fmilin.fmi.read import FmuModel, read_description
from fmilin.fmi.read.xml import parse_description
from fmilin.signals import FloatArray
from tests.fmi.read.conftest import Zoo
from tests.fmus.make import description_of

Opened = Callable[..., FmuModel]

# 2 v' = u - 8 x - 0.5 v, x' = v, y = 3 x + 2 u, minus_x = -x
A = np.array([[0.0, 1.0], [-4.0, -0.25]])
B, C, D = np.array([[0.0], [0.5]]), np.array([[3.0, 0.0], [-1.0, 0.0]]), np.array([[2.0], [0.0]])


def assert_same(actual: FloatArray, expected: FloatArray, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def assert_is_the_spring(lin: fl.LinearModel) -> None:
    assert_same(lin.A, A)
    assert_same(lin.B, B)
    assert_same(lin.C, C)
    assert_same(lin.D, D)


def test_the_linear_model_is_that_of_the_equations(opened: Opened) -> None:
    lin = fl.linearize(opened("spring1"))
    assert lin.states.names == ("x", "v")
    assert_is_the_spring(lin)
    assert [s.unit for s in lin.states] == ["m", "m/s"]


def test_states_are_known_by_all_their_names_and_derivatives_by_theirs(opened: Opened) -> None:
    model = opened("spring1")
    assert model.states[0].aliases == ("position", "-minus_x")
    assert model.states[0].nominal == 0.5
    view = model.with_interface(outputs=["der(v)", "position", "square", "der(x)"])
    evaluation = view.evaluate(0.0, np.array([0.5, 3.0]), np.array([1.0]))
    np.testing.assert_array_equal(evaluation.derivatives, [3.0, -2.25])
    np.testing.assert_array_equal(evaluation.outputs, [-2.25, 0.5, 0.25, 3.0])


def test_the_order_of_the_states_is_that_of_the_code(opened: Opened) -> None:
    lin = fl.linearize(opened("swapped1"), independent=["v", "x"])
    assert lin.full_states.names == ("v", "x")
    assert_same(lin.A, np.array([[-0.25, -4.0], [1.0, 0.0]]))


def test_a_state_that_is_no_variable_has_a_name_of_its_own(opened: Opened) -> None:
    model = opened("nameless1")
    assert model.states.names == ("x", "x[2]")
    assert_is_the_spring(fl.linearize(model))
    evaluation = model.with_interface(outputs=["der(x[2])", "v"]).evaluate(0.0, np.array([0.5, 3.0]), np.array([1.0]))
    np.testing.assert_array_equal(evaluation.outputs, [-2.25, 3.0])


def test_parameters_and_start_values_of_every_type_are_set_before_initialization(opened: Opened) -> None:
    model = opened("spring1", parameters={"mass": 8.0, "x": 0.25, "count": 5, "on": False, "label": "abcd", "u": 1.5})
    np.testing.assert_array_equal(model.start.states, [0.25, 0.0])
    np.testing.assert_array_equal(model.start.inputs, [1.5])
    assert_same(fl.linearize(model).A, np.array([[0.0, 1.0], [-1.0, -0.0625]]))
    assert model.start.parameters == {"mass": 8.0, "count": 5.0}


def test_constraints_hold_for_fmi_1_too(opened: Opened) -> None:
    """Two names of one state in a constraint, and a parameter that is read from the code."""
    with pytest.raises(fl.ConstraintError):
        fl.linearize(opened("spring1", constraints=[fl.Constraint.from_text("position - mass")]))


def test_a_negated_alias_is_an_output_with_the_opposite_sign(opened: Opened) -> None:
    model = opened("spring1")
    assert "minus_x" in model.outputs.names
    linear = fl.linearize(model.with_interface(outputs=["x", "minus_x"]))
    np.testing.assert_array_equal(linear.C[0], [1.0, 0.0])
    np.testing.assert_array_equal(linear.C[1], [-1.0, 0.0])
    moved = model.with_interface(outputs=["minus_x"]).evaluate(0.0, np.array([0.5, 3.0]), np.array([1.0]))
    np.testing.assert_array_equal(moved.outputs, [-0.5])


def test_a_negated_alias_sets_the_state_with_the_opposite_sign(opened: Opened) -> None:
    model = opened("spring1")
    assert fl.operating_point(model, {"minus_x": 0.25})["x"] == -0.25
    assert opened("spring1", parameters={"minus_x": 0.25}).start.states[0] == -0.25
    assert fl.linearize(model, independent=["minus_x", "v"]).states.names == ("x", "v")
    bounded = fl.trim(model, free=["u"], bounds={"minus_x": (0.25, 0.75)})
    assert -0.75 <= bounded["x"] <= -0.25
    with pytest.raises(UsageError, match="'minus_x' is the negative of 'x', and both have a value"):
        fl.trim(model, fixed={"x": 1.0, "minus_x": 1.0}, free=["u"])


def test_the_description_alone_says_how_many_states_there_are(zoo: Zoo) -> None:
    description = read_description(zoo("spring1"))
    assert [s.name for s in description.states] == ["x[1]", "x[2]"]
    assert any("names are known after the model is loaded" in note for note in description.notes)
    assert description.interfaces == ("ModelExchange",)
    assert description.by_name["mass"].is_parameter
    assert description.by_name["x"].unit == "m"
    assert description.by_name["x"].nominal == 0.5


def test_the_note_about_unnamed_states_goes_when_they_are_known(opened: Opened) -> None:
    assert not any("descriptions do not list the states" in note for note in opened("spring1").notes)


def test_initialization_that_fails_passes_the_reason_on(zoo: Zoo, scratch: Path) -> None:
    with pytest.raises(
        ModelError, match=r'fmiInitialize of .* returned error .* The FMU reported: "no solution for x after 17 steps"'
    ):
        fl.load(zoo("refuses1"))
    assert list(scratch.iterdir()) == []


def test_events_at_the_start_are_iterated_and_the_next_one_is_said(opened: Opened) -> None:
    model = opened("settles1")
    assert model.next_event_time() == 7.0
    assert any("schedules an event at t = 7 s" in note for note in model.notes)


def test_a_model_that_ends_at_its_start_is_refused(zoo: Zoo) -> None:
    with pytest.raises(ModelError, match="requests the end of the simulation at its start"):
        fl.load(zoo("terminates1"))


def test_a_wrong_guid_is_refused(zoo: Zoo, tmp_path: Path) -> None:
    from tests.fmus.make import build

    path = build("spring1", tmp_path, xml=description_of("spring1").replace('guid="{spring1}"', 'guid="{other}"'))
    with pytest.raises(ModelError, match="could not be instantiated"):
        fl.load(path)


def test_messages_reach_the_instance_that_speaks(zoo: Zoo, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fmilin.fmu")
    first, second = fl.load(zoo("spring1")), fl.load(zoo("swapped1"))
    first.close()
    second.close()
    assert caplog.messages == ["spring1.fmu: freed", "swapped1.fmu: freed"]


def test_fmi_1_and_fmi_2_at_once(opened: Opened) -> None:
    one, two = opened("spring1"), opened("pendulum")
    assert_is_the_spring(fl.linearize(one))
    assert len(fl.linearize(two).full_states) == 4
    assert_is_the_spring(fl.linearize(one))


def test_co_simulation_of_fmi_1_is_identified_from_its_responses(zoo: Zoo) -> None:
    with fl.load(zoo("slave1")) as model:
        lin = fl.linearize(model)
    assert_same(np.asarray(np.poly(lin.A), float), np.asarray(np.poly(A), float), 1e-5)
    gain = lin.D - lin.C @ np.linalg.solve(lin.A, lin.B)
    assert_same(gain, np.array([[3 / 8 + 2], [-1 / 8]]), 1e-6)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('numberOfContinuousStates="2"', 'numberOfContinuousStates="-2"', "numberOfContinuousStates is -2"),
        ('name="u" valueReference="4"', 'name="u"', "the input 'u' has no name, no type or no value reference"),
        (' modelIdentifier="spring1"', "", "modelIdentifier is missing"),
    ],
)
def test_flaws_that_leave_something_open_are_refused(old: str, new: str, message: str) -> None:
    xml = description_of("spring1")
    assert old in xml
    with pytest.raises(ModelError, match=message):
        parse_description(xml.replace(old, new).encode(), "m.fmu")


def test_more_states_than_declared_are_noticed(zoo: Zoo, tmp_path: Path) -> None:
    from tests.fmus.make import build

    xml = description_of("spring1").replace('numberOfContinuousStates="2"', 'numberOfContinuousStates="1"')
    with pytest.raises(ModelError, match=r"declares 1 continuous state\(s\), its code has 2"):
        fl.load(build("spring1", tmp_path, xml=xml))
