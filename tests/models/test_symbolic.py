"""Choosing inputs, outputs, constraints and parameters of a native model."""

from __future__ import annotations

import doctest
import importlib

import numpy as np
import pytest

from fmilin import Constraint, ConstraintError, UnknownNameError, UsageError
from fmilin.models import Labels, OdeModel, SymbolicModel
from fmilin.signals import FloatArray
from fmilin.systems import rolling_disk
from tests.exact import products_of

EMPTY = np.empty(0)


def cart() -> OdeModel:
    return OdeModel(
        "cart",
        {"x": "v", "v": "(push - drag*v + wind)/m"},
        inputs=["push", "wind"],
        parameters={"m": 2.0, "drag": 0.5},
        outputs={"where": "x", "power": "push*v", "pushed": "push"},
        start={"x": 1.0, "v": 2.0, "push": 3.0, "wind": 0.25},
    )


def outputs_at_start(model: SymbolicModel) -> FloatArray:
    return model.evaluate(0.0, model.start.states, model.start.inputs).outputs


def copies_of(model: SymbolicModel) -> dict[int, tuple[str, int]]:
    """Return which outputs are a state or an input, as kind and index by the number of the output."""
    return {k: (copy.kind, copy.index) for k, copy in model.copies.items()}


def test_outputs_that_are_states_or_inputs_are_known_to_be() -> None:
    assert copies_of(cart()) == {0: ("state", 0), 2: ("input", 0)}
    assert copies_of(cart().with_interface(outputs=["wind", "der(x)"])) == {0: ("input", 1), 1: ("state", 1)}


def test_any_known_quantity_may_be_an_output() -> None:
    model = cart().with_interface(outputs=["power", "der(v)", "v", "wind", "where"])
    assert model.outputs.names == ("power", "der(v)", "v", "wind", "where")
    assert outputs_at_start(model).tolist() == [6.0, (3.0 - 1.0 + 0.25) / 2, 2.0, 0.25, 1.0]


def test_the_unit_of_a_rate_follows_from_the_state() -> None:
    model = OdeModel("units", {"x": "v", "v": "0", "w": "0"}, labels=Labels(units={"x": "m", "v": "m/s"}))
    assert model.with_interface(outputs=["der(x)", "der(v)", "der(w)"]).outputs.units == ("m/s", "m/s2", "")


def test_inputs_left_out_stay_at_their_start_values() -> None:
    model = cart().with_interface(inputs=["wind"], outputs=["der(v)", "push"])
    assert model.inputs.names == ("wind",)
    assert model.parameters == {"m": 2.0, "drag": 0.5}  # what with_parameters can change
    graph = model.in_graph()
    assert graph is not None
    assert graph.parameter_signals.names == ("m", "drag", "push")
    assert graph.parameter_values.tolist() == [2.0, 0.5, 3.0]
    at = model.evaluate(0.0, np.array([0.0, 0.0]), np.array([1.0]))
    assert at.outputs.tolist() == [2.0, 3.0]
    assert copies_of(model) == {}


def test_inputs_left_out_may_come_back_and_keep_the_order_asked_for() -> None:
    model = cart().with_interface(inputs=[]).with_interface(inputs=["wind", "push"])
    assert model.inputs.names == ("wind", "push")
    assert model.start.inputs.tolist() == [0.25, 3.0]
    assert model.evaluate(0.0, np.zeros(2), np.array([1.0, 0.0])).derivatives.tolist() == [0.0, 0.5]


def test_none_keeps_what_there_is() -> None:
    model = cart().with_interface(outputs=["v"]).with_interface(inputs=["push"])
    assert model.outputs.names == ("v",)
    assert model.inputs.names == ("push",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": ["pusch"]}, "'pusch' is not an input of 'cart'. Did you mean 'push'?"),
        ({"inputs": ["m"]}, "'m' is not an input"),
        ({"outputs": ["der(w)"]}, r"'der\(w\)' is not an output .* of 'cart'. Did you mean .*'der\(v\)'"),
    ],
)
def test_unknown_names_come_with_the_nearest(change: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        cart().with_interface(**change)


def test_parameters_change_and_are_remembered() -> None:
    model = cart().with_parameters({"m": 4.0}).with_parameters({"drag": 0.0})
    assert model.evaluate(0.0, np.zeros(2), np.array([2.0, 0.0])).derivatives.tolist() == [0.0, 0.5]
    assert model.start.parameters == {"m": 4.0, "drag": 0.0}
    assert list(model.system.parameters.values()) == [4.0, 0.0]
    assert model.system.parameter_signals.starts.tolist() == [4.0, 0.0]
    assert cart().start.parameters == {}


def test_start_values_change_and_are_remembered() -> None:
    model = cart().with_start({"v": 5.0, "wind": 1.0}).with_interface(inputs=["wind"])
    assert model.start.states.tolist() == [1.0, 5.0]
    assert model.start.inputs.tolist() == [1.0]
    assert cart().start.states.tolist() == [1.0, 2.0]
    with pytest.raises(UnknownNameError, match=r"'winds' is not a state or an input of 'cart'.*'wind'"):
        cart().with_start({"winds": 1.0})


def test_parameters_survive_a_change_of_interface() -> None:
    model = cart().with_parameters({"m": 4.0}).with_interface(inputs=["wind"])
    assert model.evaluate(0.0, np.zeros(2), np.zeros(1)).derivatives.tolist() == [0.0, 0.75]


def test_an_unknown_parameter_is_named_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"'dragg' is not a parameter, state or input of 'cart'. Did you mean 'drag'"
    ):
        cart().with_parameters({"dragg": 1.0})
    with pytest.raises(UsageError, match=r"'m' is not a number \(NaN\): give a finite number"):
        cart().with_parameters({"m": float("nan")})


def test_constraints_are_replaced_and_see_parameters() -> None:
    model = cart().with_constraints([Constraint.from_text("x - m")])
    assert model.evaluate(0.0, np.array([5.0, 0.0]), np.zeros(2)).residuals.tolist() == [3.0]
    changed = model.with_parameters({"m": 5.0})
    assert changed.evaluate(0.0, np.array([5.0, 0.0]), np.zeros(2)).residuals.tolist() == [0.0]


def test_constraints_may_observe_outputs_and_derivatives() -> None:
    model = cart().with_constraints([Constraint.from_text("power^2 - der(v)*x")])
    x, u = np.array([0.5, 2.0]), np.array([3.0, 0.25])
    assert model.constraints.observed == ("power", "der(v)")
    assert model.evaluate(0.0, x, u).outputs.shape == (3,)
    acceleration = (3.0 - 1.0 + 0.25) / 2
    assert model.evaluate(0.0, x, u).residuals[0] == pytest.approx(36.0 - acceleration / 2)
    exact = products_of(model, 0.0, x, u, np.eye(2, 4), np.eye(2, 4, 2)).residuals
    #       d/dx           d/dv                         d/dpush                  d/dwind
    slopes = [-acceleration, 2 * 6.0 * 3.0 + 0.25 * 0.5, 2 * 6.0 * 2.0 - 0.25, -0.25]
    np.testing.assert_allclose(exact, [slopes], rtol=1e-14)


def test_an_unknown_name_in_a_constraint_is_a_wrong_constraint() -> None:
    with pytest.raises(ConstraintError, match=r"'powr' is not a variable of the model. Did you mean 'power'"):
        cart().with_constraints([Constraint.from_text("powr - 1")])


def test_held_inputs_may_appear_in_constraints() -> None:
    model = cart().with_interface(inputs=[]).with_constraints([Constraint.from_text("x - push")])
    assert model.evaluate(0.0, np.array([5.0, 0.0]), EMPTY).residuals.tolist() == [2.0]


@pytest.mark.parametrize(
    "module", ["models.declaration", "models.ode", "systems.example_mechanisms", "systems.four_bar_linkage"]
)
def test_examples_in_docstrings_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"fmilin.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_public_names_are_those_listed() -> None:
    import fmilin.models
    import fmilin.systems

    for package in (fmilin.models, fmilin.systems):
        assert dir(package) == sorted(package.__all__)
        for name in package.__all__:
            assert callable(getattr(package, name))
        with pytest.raises(AttributeError, match="attribute nothing"):
            _ = package.nothing


def test_other_constraints_have_no_use_for_the_recommended_coordinates() -> None:
    model = rolling_disk()
    assert len(model.independent) == 8
    other = model.with_constraints(model.constraints.declared[1:])
    assert other.independent == ()
