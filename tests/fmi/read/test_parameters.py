"""Parameters of an FMU as inputs of a linear model, for models without inputs above all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fmilin as fl
from fmilin.errors import UnknownNameError, UsageError
from tests.fmus.stepped import make as stepped

Zoo = Callable[[str], Path]


def test_fixed_and_tunable_parameters_of_model_exchange(zoo: Zoo) -> None:
    """x'' = -k x - c v, y = k x, at x = 1, v = 0.5; what the FMU refuses is not asked of it."""
    with fl.load(zoo("no_inputs")) as model:
        lin = fl.linearize(model, inputs=["k", "c"])
        assert_allclose(lin.A, np.array([[0, 1], [-4, -0.2]]), atol=1e-9)
        assert_allclose(lin.B, np.array([[0, 0], [-1, -0.5]]), atol=1e-9)
        assert_allclose(lin.D, np.array([[1, 0]]), atol=1e-9)
        assert lin.point.inputs == {"k": 4.0, "c": 0.2}


def test_views_with_and_without_a_parameter_do_not_disturb_each_other(zoo: Zoo) -> None:
    with fl.load(zoo("no_inputs")) as model:
        x, nothing = model.start.states, np.empty(0)
        tuned, other = model.with_interface(inputs=["c"]), model.with_interface(inputs=["k"])
        before = model.evaluate(0.0, x, nothing).derivatives
        assert_allclose(tuned.evaluate(0.0, x, np.array([1.0])).derivatives, np.array([0.5, -4.5]))
        assert_allclose(other.evaluate(0.0, x, np.array([3.0])).derivatives, np.array([0.5, -3.1]))
        assert_array_equal(model.evaluate(0.0, x, nothing).derivatives, before)


def test_parameters_that_were_set_are_where_they_begin(zoo: Zoo) -> None:
    with fl.load(zoo("no_inputs"), parameters={"k": 9.0}) as model:
        lin = fl.linearize(model, inputs=["c", "k"])
    assert lin.point.inputs == {"c": 0.2, "k": 9.0}
    assert_allclose(lin.A, np.array([[0, 1], [-9, -0.2]]), atol=1e-8)


def test_parameters_beside_inputs_and_constraints(zoo: Zoo) -> None:
    """m x'' = F cos^2 on the circle at rest: the slope along m is that along F times -F / m."""
    with fl.load(zoo("pendulum"), constraints=["pin.x^2 + pin.y^2 - L^2"]) as model:
        point = fl.operating_point(model, {"pin.x": 0.6, "F": 3.0})
        plain = fl.linearize(model, point)
        lin = fl.linearize(model, point, inputs=["mass", "F"])
        assert lin.inputs.names == ("mass", "F")
        assert_allclose(lin.A, plain.A, atol=1e-9)
        assert_allclose(lin.B[:, 1:], plain.B, atol=1e-9)
        assert_allclose(lin.B[:, 0], -3.0 / 2.0 * plain.B[:, 0], atol=1e-9)
        with pytest.raises(UsageError, match="'L' occurs in a constraint"):
            fl.linearize(model, point, inputs=["L"])


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("saves", ["SAVES", ""])
def test_tunable_parameters_of_a_co_simulation(tmp_path: Path, fmi: str, hidden: bool, saves: str) -> None:
    attributes = f'canHandleVariableCommunicationStepSize="true" {saves}'
    kind = stepped.Kind(fmi=fmi, hidden=hidden, attributes=attributes)
    with fl.load(stepped.build("motor", tmp_path / "inputs", kind)) as model:
        expected = fl.linearize(model)
    declared = stepped.Kind(fmi=fmi, hidden=hidden, attributes=attributes, tunable=True)
    with fl.load(stepped.build("motor", tmp_path / "parameters", declared)) as model:
        assert len(model.inputs) == 0
        lin = fl.linearize(model, inputs=["V", "load"])
        free = fl.linearize(model)
    w = 2.0
    gains = [m.C @ np.linalg.solve(1j * w * np.eye(len(m.A)) - m.A, m.B) + m.D for m in (expected, lin)]
    assert_allclose(gains[1], gains[0], atol=1e-6)
    assert free.B.shape[1] == 0


def test_fixed_parameters_of_a_co_simulation_are_refused(tmp_path: Path) -> None:
    kind = stepped.Kind(further='<Float64 name="R" valueReference="90" causality="parameter" start="1"/>', fmi="3.0")
    with (
        fl.load(stepped.build("motor", tmp_path, kind)) as model,
        pytest.raises(UsageError, match=r"'R' cannot be an input.*only if they are tunable"),
    ):
        fl.linearize(model, inputs=["V", "R"])


@pytest.mark.parametrize(
    ("name", "why"), [("count", "it is not a continuous number"), ("double.L", "it is calculated by the model")]
)
def test_parameters_that_are_no_inputs(zoo: Zoo, name: str, why: str) -> None:
    with fl.load(zoo("pendulum")) as model, pytest.raises(UsageError, match=why):
        fl.linearize(model, inputs=[name])


def test_a_name_that_is_nothing_has_neighbours_among_parameters_too(zoo: Zoo) -> None:
    with fl.load(zoo("pendulum")) as model, pytest.raises(UnknownNameError, match="Did you mean 'mass'"):
        fl.linearize(model, inputs=["mas"])


def test_the_table_says_that_there_is_but_a_free_response(zoo: Zoo) -> None:
    with fl.load(zoo("no_inputs")) as model:
        said = repr(fl.linearize(model))
    assert "Inputs       none: a free response" in said
    assert "-0.1 ± 1.9974984 i" in said


@pytest.mark.parametrize("varied", ["k", "c"])
def test_a_family_whose_inputs_are_parameters(zoo: Zoo, varied: str) -> None:
    values = np.array([1.0, 2.0])
    family = fl.sweep(str(zoo("no_inputs")), {varied: values}, inputs=["c", "k"])
    k, c = (values, np.full(2, 0.2)) if varied == "k" else (np.full(2, 4.0), values)
    assert_allclose(family.A[:, 1], np.column_stack((-k, -c)), atol=1e-8)
    assert_allclose(family.B[:, 1], np.tile([-0.5, -1.0], (2, 1)), atol=1e-8)


def test_a_fixed_parameter_is_an_input_on_the_way_too_but_not_behind_an_event(zoo: Zoo) -> None:
    with fl.load(zoo("no_inputs")) as model:
        (at_rest,) = fl.snapshots(model, times=[0.5])
        lin = fl.linearize(model, at_rest, inputs=["k"])
        assert_allclose(lin.B[:, 0], np.array([0.0, -at_rest.states[0]]), atol=1e-9)
        view = model.with_interface(inputs=["k"])
        assert isinstance(view, type(model))
        model.pass_event(0.5, at_rest.states, np.empty(0))  # type: ignore[attr-defined]
        with pytest.raises(UsageError, match="has passed an event since: its present mode would be lost"):
            view.evaluate(0.5, at_rest.states, np.array([5.0]))
