from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint
from fmilin.errors import ConstraintError, ModelError, UnknownNameError, UsageError
from fmilin.fmi.read import FmuModel

Opened = Callable[..., FmuModel]
G = 9.81
X = np.array([0.6, -0.7, 1.1, 0.4])
U = np.array([3.0])


def pendulum_rates(x: np.ndarray, force: float, mass: float = 2.0) -> np.ndarray:
    """Solve [M, G'; G, 0] (a, -lambda) = ... afresh: a second way to the accelerations."""
    matrix = np.array([[mass, 0, 2 * x[0]], [0, mass, 2 * x[1]], [2 * x[0], 2 * x[1], 0]])
    ax, ay, _ = np.linalg.solve(matrix, [force, -mass * G, -2 * (x[2] ** 2 + x[3] ** 2)])
    return np.array([x[2], x[3], ax, ay])


def test_names_units_and_order(opened: Opened) -> None:
    model = opened("pendulum")
    assert model.states.names == ("pin.x", "pin.y", "pin.vx", "pin.vy")
    assert model.states.units == ("m", "m", "m/s", "m/s")
    assert model.states[0].nominal == 0.5
    assert model.states[0].aliases == ("right",)
    assert model.inputs.names == ("F",)
    assert model.outputs.names == ("tension", "right")
    assert (model.info.name, model.info.guid, model.info.tool, model.info.fmi_version) == (
        "Pendulum", "{pendulum}", "by hand", "2.0",
    )  # fmt: skip


def test_outputs_that_are_no_continuous_numbers_are_left_out_and_listed(opened: Opened) -> None:
    assert (
        "Outputs that are not continuous numbers were left out: 'side (discrete Integer)'." in opened("pendulum").notes
    )


def test_start_is_what_the_model_holds(opened: Opened) -> None:
    model = opened("pendulum")
    np.testing.assert_array_equal(model.start.states, [0, -1, 0, 0])
    assert model.start.time == 0.25
    assert opened("pendulum", time=2.0).start.time == 2.0


def test_evaluation_against_the_equations_of_motion(opened: Opened) -> None:
    evaluation = opened("pendulum").evaluate(0.0, X, U)
    np.testing.assert_allclose(evaluation.derivatives, pendulum_rates(X, 3.0), rtol=1e-14)
    assert evaluation.outputs[1] == X[0]
    assert evaluation.residuals.shape == (0,)


def test_evaluation_does_not_hand_out_its_buffers(opened: Opened) -> None:
    model = opened("pendulum")
    first = model.evaluate(0.0, X, U)
    before = first.derivatives.copy()
    model.evaluate(0.0, 2 * X, U)
    np.testing.assert_array_equal(first.derivatives, before)


def test_any_continuous_variable_may_be_an_output(opened: Opened) -> None:
    names = ["lambda", "der(pin.vx)", "ax", "der(pin.x)", "pin.vy", "F", "time", "rod.gap", "der(right)"]
    model = opened("pendulum").with_interface(outputs=names)
    assert model.outputs.names == tuple(names)
    evaluation = model.evaluate(1.5, X, U)
    rates = pendulum_rates(X, 3.0)
    lam = 2.0 * (rates[2] - 1.5) / (-2 * X[0])  # m ax = F - 2 x lambda
    expected = [lam, rates[2], rates[2], X[2], X[3], 3.0, 1.5, X[0] ** 2 + X[1] ** 2 - 1, X[2]]
    np.testing.assert_allclose(evaluation.outputs, expected, rtol=1e-13)


def copies_of(model: fl.Model) -> dict[int, tuple[str, int]]:
    """Return which outputs are a state or an input, as kind and index by the number of the output."""
    return {k: (copy.kind, copy.index) for k, copy in model.copies.items()}


def test_outputs_that_are_states_or_inputs_are_copies(opened: Opened) -> None:
    model = opened("pendulum").with_interface(outputs=["pin.vy", "right", "F", "lambda"])
    assert copies_of(model) == {0: ("state", 3), 1: ("state", 0), 2: ("input", 0)}


def test_a_rate_that_is_another_state_is_a_copy(opened: Opened) -> None:
    model = opened("rate_is_state")
    assert model.inputs.names == ("force",)
    assert model.inputs[0].aliases == ("f", "push")
    assert model.outputs.names == ("speed", "push", "acc")
    assert copies_of(model.with_interface(outputs=["der(x)", "x_rate", "f"])) == {
        0: ("state", 1), 1: ("state", 1), 2: ("input", 0),
    }  # fmt: skip


def test_inputs_by_alias_and_left_out_ones_stay_at_their_start(opened: Opened) -> None:
    model = opened("arrays3")
    one = model.with_interface(inputs=["force[2]"], outputs=["y[2,1]", "y[2,2]"])
    assert one.inputs.names == ("force[2]",)
    assert one.inputs[0].aliases == ("u[2]",)
    np.testing.assert_array_equal(one.start.inputs, [0.25])
    model.evaluate(0.0, model.start.states, np.array([7.0, 8.0]))
    np.testing.assert_array_equal(one.evaluate(0.0, model.start.states, np.array([9.0])).outputs, [0.5, 9.0])


def test_no_inputs_and_no_outputs(opened: Opened) -> None:
    model = opened("pendulum").with_interface([], [])
    evaluation = model.evaluate(0.0, X, np.empty(0))
    assert (evaluation.outputs.shape, len(model.inputs)) == ((0,), 0)
    np.testing.assert_allclose(evaluation.derivatives, pendulum_rates(X, 0.0), rtol=1e-14)


def test_no_states(opened: Opened) -> None:
    model = opened("no_states")
    assert model.start.states.shape == (0,)
    np.testing.assert_array_equal(model.start.inputs, [3.0])
    np.testing.assert_array_equal(model.evaluate(0.0, np.empty(0), np.array([5.0])).outputs, [10.0])


def test_arrays_are_taken_apart_row_by_row(opened: Opened) -> None:
    model = opened("arrays3")
    assert model.states.names == ("x[1]", "x[2]", "x[3]")
    assert model.states[1].aliases == ("position[2]",)
    assert (model.states[2].unit, model.states[2].nominal, model.states[2].start) == ("m", 0.01, 3.0)
    assert model.inputs.names == ("u[1]", "u[2]")
    assert model.outputs.names == ("y[1,1]", "y[1,2]", "y[2,1]", "y[2,2]", "total")
    evaluation = model.evaluate(0.0, np.array([1.0, 2, 4]), np.array([10.0, 20]))
    np.testing.assert_array_equal(evaluation.derivatives, [-1 + 2 + 10, -2 + 4 + 20, -4 + 30])
    np.testing.assert_array_equal(evaluation.outputs, [1, 2, 10, 20, 7])


def test_elements_and_rates_of_arrays_may_be_outputs(opened: Opened) -> None:
    names = ["rates[2]", "der(x[2])", "der(position[3])", "sum", "position[1]", "time", "hidden"]
    model = opened("arrays3").with_interface(outputs=names)
    np.testing.assert_array_equal(
        model.evaluate(0.5, np.array([1.0, 2, 4]), np.zeros(2)).outputs, [2, 2, -4, 7, 1, 0.5, 2]
    )


def test_structural_parameter_changes_the_number_of_states(opened: Opened) -> None:
    model = opened("arrays3", parameters={"n": 5, "k": [1, 3, 1, 1, 1]})
    assert model.states.names == tuple(f"x[{i}]" for i in range(1, 6))
    rates = model.evaluate(0.0, np.ones(5), np.zeros(2)).derivatives
    np.testing.assert_array_equal(rates, [0, -2, 0, 0, -1])
    assert model.start.parameters == {"n": 5.0}


def test_single_precision_inputs_and_outputs(opened: Opened) -> None:
    model = opened("singles3")
    evaluation = model.evaluate(0.0, np.array([0.1]), np.array([0.3]))
    assert evaluation.outputs[0] == np.float32(0.1 + 4 * np.float64(np.float32(0.3)))
    assert evaluation.derivatives[0] == np.float64(np.float32(0.3)) - 0.2


def test_nan_is_returned_as_it_is(opened: Opened) -> None:
    rates = opened("nan_derivative").evaluate(0.0, np.array([-1.0, 2.0]), np.zeros(1)).derivatives
    assert rates[0] == 2.0
    assert np.isnan(rates[1])


def test_unknown_output_suggests_the_nearest_names(opened: Opened) -> None:
    with pytest.raises(UnknownNameError, match=r"'pin.xx' is not a variable of the model. Did you mean 'pin.x'"):
        opened("pendulum").with_interface(outputs=["pin.xx"])


def test_unknown_input_suggests_the_nearest_names(opened: Opened) -> None:
    with pytest.raises(UnknownNameError, match=r"'G' is not a continuous input or a parameter of the model. Known: F"):
        opened("pendulum").with_interface(inputs=["G"])


@pytest.mark.parametrize("name", ["L", "side"])
def test_parameters_and_discrete_variables_are_no_outputs(opened: Opened, name: str) -> None:
    with pytest.raises(
        UnknownNameError, match=f"'{name}' cannot be an output of a linear model: it is not a continuous"
    ):
        opened("pendulum").with_interface(outputs=[name])


def test_one_input_under_two_names_is_refused(opened: Opened) -> None:
    with pytest.raises(UsageError, match="same input is named twice among force, f"):
        opened("rate_is_state").with_interface(inputs=["force", "f"])


def test_constraints_over_states_parameters_and_locals(opened: Opened) -> None:
    texts = [
        "pin.x^2 + pin.y^2 - L^2",
        "rod.gap",
        "lambda*pin.x - F",
        "der(pin.x) - pin.vx + time",
        "count - double.L*pin.x",
    ]
    model = opened("pendulum", parameters={"L": 1.5, "count": 4})
    bound = model.with_constraints([Constraint.from_text(text) for text in texts])
    assert set(bound.constraints.observed) == {"rod.gap", "lambda", "der(pin.x)"}
    evaluation = bound.evaluate(0.125, X, U)
    lam = bound.with_interface(outputs=["lambda"]).evaluate(0.125, X, U).outputs[0]
    gap = X[0] ** 2 + X[1] ** 2 - 1.5**2
    np.testing.assert_allclose(evaluation.residuals, [gap, gap, lam * X[0] - 3.0, 0.125, 4 - 3.0 * X[0]], rtol=1e-14)
    assert model.evaluate(0.0, X, U).residuals.shape == (0,)


def test_constraint_with_an_input_that_was_left_out_sees_its_start_value(opened: Opened) -> None:
    model = opened("pendulum", parameters={"F": 4.0}).with_interface(inputs=[])
    bound = model.with_constraints([Constraint.from_text("F - pin.x")])
    np.testing.assert_array_equal(bound.evaluate(0.0, X, np.empty(0)).residuals, [4.0 - X[0]])


def test_constraint_on_an_unknown_name(opened: Opened) -> None:
    with pytest.raises(ConstraintError, match=r"In the constraint 'pin.z': 'pin.z' is not a variable of the model"):
        opened("pendulum").with_constraints([Constraint.from_text("pin.z")])


def test_a_view_keeps_constraints_and_recommended_coordinates(opened: Opened) -> None:
    model = opened("pendulum", constraints=[Constraint.from_text("rod.gap")], independent=("pin.x", "pin.vx"))
    view = model.with_interface(outputs=["ax"])
    assert view.constraints.names == ("rod.gap",)
    assert view.independent == ("pin.x", "pin.vx")


def test_structure_is_what_the_description_declares(opened: Opened) -> None:
    structure = opened("pendulum").structure
    assert structure is not None
    expected = np.ones((6, 5), dtype=bool)
    expected[0] = [False, False, True, False, False]  # der(pin.x) depends on pin.vx
    expected[5] = [True, False, False, False, False]  # 'right' is a state, whatever its empty list says
    np.testing.assert_array_equal(structure, expected)


def test_structure_with_arrays_and_a_choice_of_inputs(opened: Opened) -> None:
    structure = opened("arrays3").with_interface(inputs=["u[2]"], outputs=["total", "hidden", "u[1]"]).structure
    assert structure is not None
    np.testing.assert_array_equal(structure[3:], [[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]])


def test_structure_is_none_when_nothing_is_declared(opened: Opened) -> None:
    assert opened("discards").structure is None


def test_states_that_the_model_changes_are_read_back_and_noted_once(opened: Opened) -> None:
    model = opened("projects").with_interface(outputs=["x", "v"])
    assert not model.notes
    evaluation = model.evaluate(0.0, np.array([5.0, 1.0]), np.zeros(1))
    np.testing.assert_array_equal(evaluation.outputs, [2.0, 1.0])
    model.evaluate(0.0, np.array([6.0, 1.0]), np.array([0.5]))
    assert model.notes == (
        "The state 'x' was set to 5, but the model has 2: it changes given states.",
    )  # fmt: skip
    held = model.read_back()
    np.testing.assert_array_equal(held.states, [2.0, 1.0])
    np.testing.assert_array_equal(held.inputs, [0.5])


@pytest.mark.parametrize("states", [np.zeros(3), np.zeros((4, 2))])
def test_a_point_of_the_wrong_size_is_refused(opened: Opened, states: np.ndarray) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        opened("pendulum").evaluate(0.0, states, U)


def test_nominal_values_that_only_the_code_knows(opened: Opened) -> None:
    assert [s.nominal for s in opened("tells_nominals").states] == [None, 250.0]


def test_nominal_values_of_zero_are_missing(opened: Opened) -> None:
    model = opened("zero_nominals")
    assert [s.nominal for s in model.states] == [None, None]
    assert model.notes == ("'x', 'v': a nominal value that is not positive was treated as missing.",)


def test_scheduled_event_is_noted(opened: Opened) -> None:
    assert any("schedules an event at t = 1.5 s" in note for note in opened("schedules_event").notes)


def test_event_indicators(opened: Opened) -> None:
    model = opened("switches")
    np.testing.assert_array_equal(model.event_indicators(0.0, np.array([0.75, 2.0]), np.array([0.5])), [0.25, 2.0])
    assert opened("pendulum").event_indicators(0.0, X, U).shape == (0,)


def test_refused_event_indicators_are_noted_and_the_model_goes_on(opened: Opened) -> None:
    model = opened("refuses_indicators")
    x, u = np.array([1.0, 2.0]), np.zeros(1)
    assert model.event_indicators(0.0, x, u).shape == (0,)
    assert any("Event indicators were declared but failed" in note for note in model.notes)
    np.testing.assert_array_equal(model.evaluate(0.0, x, u).derivatives, [2.0, -1.0])
    assert model.event_indicators(0.0, x, u).shape == (0,)


def test_a_rate_without_a_unit_has_that_of_its_state_per_second(opened: Opened) -> None:
    model = opened("pendulum").with_interface(outputs=["ax", "der(pin.x)", "der(pin.vy)", "lambda"])
    assert model.outputs.units == ("m/s2", "m/s", "m/s2", "")


def test_closed_model_refuses(opened: Opened) -> None:
    model = opened("pendulum")
    model.close()
    with pytest.raises(ModelError, match=r"'pendulum.fmu' was closed; load it again"):
        model.evaluate(0.0, X, U)
