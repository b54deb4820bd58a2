"""What every native source has in common: chosen inputs and outputs, copies, constraints, parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from fmilin import Constraint, ConstraintError, Evaluation, Model, UnknownNameError, UsageError
from fmilin.adapters import Engine, EngineModel, ModelInfo, NativeModel
from fmilin.model.capabilities import read_products
from fmilin.model.interface import Copy
from fmilin.models import FunctionModel, NullSpaceModel, OdeModel
from fmilin.models.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription, Sensor
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.systems import flexible_double_pendulum, four_bar, rolling_disk
from tests.systems.skate_model import skate


class Cart(Engine):
    """v' = (push - v + wind)/2, with the name of a state among its quantities."""

    info = ModelInfo("cart")
    states = Signals([Signal("x", "m", start=1.0), Signal("v", "m/s", start=2.0)])
    inputs = Signals([Signal("push", start=3.0), Signal("wind", start=0.25)])
    quantities = Signals([Signal("power", "W"), Signal("x")])
    outputs = ("power",)

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([x[1], (u[0] - x[1] + u[1]) / 2]), np.array([u[0] * x[1], np.nan])

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        power = du[0] * x[1] + u[0] * dx[1]
        return np.array([dx[1], (du[0] - dx[1] + du[1]) / 2]), np.array([power, power])


def functions() -> FunctionModel:
    return FunctionModel(
        "cart",
        Cart.states,
        lambda _t, x, u: np.array([x[1], (u[0] - x[1] + u[1]) / 2]),
        inputs=Cart.inputs,
        outputs={"power": lambda _t, x, u: u[0] * x[1]},
        analytic=True,
    )


def ode() -> OdeModel:
    return OdeModel(
        "cart",
        {"x": "v", "v": "(push - drag*v + wind)/2"},
        inputs=["push", "wind"],
        parameters={"drag": 1.0},
        outputs={"power": "push*v"},
        start={"x": 1.0, "v": 2.0, "push": 3.0, "wind": 0.25},
    )


def mechanism() -> Mechanism:
    rods = [Body(name, 1.0, (0.5, 0, 0), (0, 0.1, 0.1)) for name in ("left", "right")]
    joints = [Joint("a", "revolute", "ground", "left", position=0.3, axis=(0, 1, 0)),
              Joint("b", "revolute", "left", "right", position=-0.2, axis=(0, 1, 0))]  # fmt: skip
    motors = [JointForce("first", "a", start=0.7), JointForce("second", "b", start=-0.4)]
    return Mechanism(
        MechanismDescription("arm", rods, joints, inputs=motors, sensors=[Sensor("angle", "joint_position", "b")])
    )


@dataclass(frozen=True)
class Source:
    """A model with two inputs, and the name of a quantity that is neither state, rate nor input."""

    make: Callable[[], NativeModel]
    quantity: str


SOURCES = {
    "engine": Source(lambda: EngineModel(Cart()), "power"),
    "functions": Source(functions, "power"),
    "ode": Source(ode, "power"),
    "lagrange": Source(four_bar, "lambda[1]"),
    "null space": Source(lambda: NullSpaceModel(four_bar()), "lambda[1]"),
    "kane": Source(skate, "acceleration"),
    "kane, redundant": Source(rolling_disk, "contact.y"),
    "sparse": Source(lambda: flexible_double_pendulum(1), "lambda[1]"),
    "mechanism": Source(mechanism, "right.vx"),
}


@pytest.fixture(params=SOURCES, scope="module")
def source(request: pytest.FixtureRequest) -> Source:
    found = SOURCES[request.param]
    model = found.make()
    return Source(lambda: model, found.quantity)


def at_start(model: Model) -> tuple[float, FloatArray, FloatArray]:
    return 0.0, model.start.states, model.start.inputs


def directions(model: Model) -> tuple[FloatArray, FloatArray]:
    n, k = len(model.states), len(model.inputs)
    return np.eye(n, n + k), np.eye(k, n + k, n)


def slopes(model: Model, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
    found = read_products(model, t, x, u, *directions(model))
    assert found is not None
    return found


def names_of_everything(source: Source) -> list[str]:
    model = source.make()
    state, last = model.states.names[0], model.states.names[-1]
    return [*model.inputs.names[-1:], f"der({last})", state, source.quantity, f"der({state})", last]


def test_outputs_come_in_the_order_that_is_asked_for(source: Source) -> None:
    model, names = source.make(), names_of_everything(source)
    forward, backward = (model.with_interface(outputs=some) for some in (names, names[::-1]))
    assert type(forward) is type(model)
    assert forward.outputs.names == tuple(names)
    here, there = (m.evaluate(*at_start(m)) for m in (forward, backward))
    np.testing.assert_array_equal(here.outputs, there.outputs[::-1])
    np.testing.assert_array_equal(here.derivatives, model.evaluate(*at_start(model)).derivatives)
    expected = [*model.start.inputs[-1:], here.derivatives[-1], model.start.states[0]]
    near = 1e-12  # the rates may be solved for twice, and the mass matrices have condition numbers up to some hundreds
    np.testing.assert_allclose(here.outputs[: len(expected)], expected, rtol=near)
    np.testing.assert_allclose(here.outputs[-2:], [here.derivatives[0], model.start.states[-1]], rtol=near)


def test_slopes_of_chosen_outputs(source: Source) -> None:
    model = source.make().with_interface(outputs=names_of_everything(source))
    dx, du = directions(model)
    J = slopes(model, *at_start(model))
    k = len(model.inputs[-1:])
    np.testing.assert_array_equal(J.outputs[0], du[-1])
    np.testing.assert_array_equal(J.outputs[k : k + 2], [J.derivatives[-1], dx[0]])
    np.testing.assert_array_equal(J.outputs[-2:], [J.derivatives[0], dx[-1]])


def test_outputs_that_are_states_or_inputs_are_known_to_be(source: Source) -> None:
    model = source.make().with_interface(outputs=names_of_everything(source))
    n, k = len(model.states), len(model.inputs)
    expected = {0: Copy("input", k - 1), 2: Copy("state", 0), 5: Copy("state", n - 1)}
    assert {i: copy for i, copy in model.copies.items() if i != 4} == expected  # der(x) may be a state, too
    assert model.with_interface(inputs=[]).copies.keys() == model.copies.keys() - {0}  # a held input is a number


def test_inputs_left_out_stay_at_their_start_values(source: Source) -> None:
    model = source.make()
    name = model.inputs.names[-1]
    one, none = model.with_interface(inputs=[name]), model.with_interface(inputs=[])
    assert one.inputs.names == (name,)
    whole = model.evaluate(*at_start(model))
    for chosen in (one, none):
        found = chosen.evaluate(*at_start(chosen))
        np.testing.assert_array_equal(found.derivatives, whole.derivatives)
        np.testing.assert_array_equal(found.outputs, whole.outputs)
    moved = 1.5 * model.start.inputs[-1:] + 1.0
    u = np.concatenate((model.start.inputs[:-1], moved))
    theirs, ours = model.evaluate(0.0, model.start.states, u), one.evaluate(0.0, model.start.states, moved)
    np.testing.assert_array_equal(ours.derivatives, theirs.derivatives)


def test_columns_of_inputs_left_out_are_dropped(source: Source) -> None:
    model = source.make()
    n, k = len(model.states), len(model.inputs)
    order = list(range(k))[::-1]
    turned = model.with_interface(inputs=[model.inputs.names[i] for i in order])
    every, other = (slopes(m, *at_start(m)) for m in (model, turned))
    columns = [*range(n), *(n + i for i in order)]
    np.testing.assert_allclose(other.derivatives, every.derivatives[:, columns], rtol=1e-13)
    np.testing.assert_allclose(other.outputs, every.outputs[:, columns], rtol=1e-13)
    forms = [m.second_order_form(*at_start(m)) for m in (model, turned, model.with_interface(inputs=[]))]
    if all(form is None for form in forms):
        return
    whole, reversed_one, held = (form for form in forms if form is not None)
    np.testing.assert_array_equal(reversed_one.force_inputs, whole.force_inputs[:, order])
    np.testing.assert_array_equal(reversed_one.output_inputs, whole.output_inputs[:, order])
    assert held.constraint_inputs.shape == (len(whole.G), 0)


def test_inputs_may_be_chosen_again(source: Source) -> None:
    model = source.make()
    again = model.with_interface(inputs=[]).with_interface(inputs=model.inputs.names)
    np.testing.assert_array_equal(again.start.inputs, model.start.inputs)
    np.testing.assert_array_equal(
        again.evaluate(*at_start(again)).derivatives, model.evaluate(*at_start(model)).derivatives
    )


def test_unknown_names_come_with_the_nearest(source: Source) -> None:
    model = source.make()
    wrong = f"{source.quantity}_"
    with pytest.raises(UnknownNameError, match="is not an output or another quantity of") as caught:
        model.with_interface(outputs=[wrong])
    assert source.quantity in str(caught.value)
    with pytest.raises(UnknownNameError, match=f"is not an input of '{model.info.name}'"):
        model.with_interface(inputs=["nothing"])
    with pytest.raises(ConstraintError, match="nothing"):
        model.with_constraints([Constraint.from_text("nothing - 1")])


def test_other_constraints_over_everything(source: Source) -> None:
    model = source.make()
    held, state = model.inputs.names[:1], model.states.names[0]
    text = f"2*`{source.quantity}` + `{state}`^2" + "".join(f" + `{name}`" for name in held)
    other = model.with_constraints([Constraint.from_text(text, level="velocity")])
    assert other.independent == ()
    for chosen in (other, other.with_interface(inputs=[])):
        seen = chosen.with_interface(outputs=[source.quantity])
        found, start = seen.evaluate(*at_start(seen)), model.start
        expected = 2 * found.outputs[0] + start.states[0] ** 2 + start.inputs[:1].sum()
        np.testing.assert_allclose(found.residuals, [expected], rtol=1e-13)
        dx, du = directions(seen)
        J = slopes(seen, *at_start(seen))
        along = du[:1].sum(axis=0)
        np.testing.assert_allclose(J.residuals[0], 2 * J.outputs[0] + 2 * start.states[0] * dx[0] + along, rtol=1e-13)
    back = other.with_constraints(model.constraints.declared)
    assert back.independent == ()  # constraints that are declared anew come without a recommendation
    assert back.constraints.names == model.constraints.names


def test_slopes_of_a_constraint_that_bends_in_what_it_observes(source: Source) -> None:
    model = source.make().with_interface(outputs=[source.quantity])
    bent = model.with_constraints([Constraint.from_text(f"`{source.quantity}`^2", level="velocity")])
    t, x, u = at_start(model)
    for point in (x, x + 1e-3):  # where it was not evaluated before
        J = slopes(bent, t, point, u)
        value = model.evaluate(t, point, u).outputs[0]
        np.testing.assert_allclose(J.residuals[0], 2 * value * J.outputs[0], rtol=1e-12, atol=1e-300)


def test_residuals_alone(source: Source) -> None:
    model = source.make()
    t, x, u = at_start(model)
    alone = model.constraint_residuals(t, x + 0.1, u)
    if alone is not None:
        np.testing.assert_allclose(alone, model.evaluate(t, x + 0.1, u).residuals, rtol=1e-12, atol=1e-12)


def test_parameters_are_changed_where_they_can_be(source: Source) -> None:
    model = source.make()
    assert model.with_parameters({}) is model
    if not model.parameters:
        with pytest.raises(UsageError, match="cannot be changed after loading"):
            model.with_parameters({"drag": 1.0})
        return
    name, value = next((n, v) for n, v in model.parameters.items() if v)
    changed = model.with_parameters({name: 1.5 * value}).with_interface(outputs=[source.quantity], inputs=[])
    assert changed.parameters == {**model.parameters, name: 1.5 * value}
    assert changed.start.parameters == {name: 1.5 * value}
    assert changed.constraints.parameters[name] == 1.5 * value
    np.testing.assert_array_equal(changed.start.states, model.start.states)
    assert model.parameters[name] == value
    with pytest.raises(UnknownNameError, match=f"Did you mean .*{name[:3]}"):
        model.with_parameters({f"{name}x": 1.0})
    with pytest.raises(UsageError, match="give a finite number"):
        model.with_parameters({name: float("nan")})


def test_a_changed_parameter_changes_the_numbers() -> None:
    slow, held = ode().with_parameters({"drag": 3.0}), ode().with_interface(inputs=["wind"])
    both = held.with_parameters({"drag": 3.0})
    for model in (slow, both):
        assert model.evaluate(*at_start(model)).derivatives.tolist() == [2.0, (3.0 - 6.0 + 0.25) / 2]


def test_a_quantity_gives_way_to_a_state_but_an_output_does_not() -> None:
    engine = EngineModel(Cart()).with_interface(outputs=["x"])
    assert engine.evaluate(*at_start(engine)).outputs.tolist() == [1.0]
    named = FunctionModel("twice", {"x": 3.0}, lambda _t, x, _u: -x, outputs={"x": lambda _t, x, _u: 2 * x[0]})
    assert named.evaluate(*at_start(named)).outputs.tolist() == [6.0]
    assert named.copies == {}


def test_a_sensor_of_a_joint_is_a_copy() -> None:
    model = mechanism()
    assert model.copies == {0: Copy("state", 1)}
    assert model.outputs[0] == Signal("angle", "rad")


def test_what_was_made_is_shared_by_models_of_other_parameters() -> None:
    model = four_bar()
    first = model._selection.numeric
    assert model.with_parameters({"gy": -5.0})._selection.numeric is first
    assert model.with_interface(outputs=["lambda[1]"])._selection.numeric is not first
