"""``evaluate_points``: many points by one call, against closed forms and ``evaluate`` at one point after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import Constraint, Evaluation, Model, systems
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.models.batch_graph import batch_graph
from fmilin.models.mechanism import Mechanism
from fmilin.signals import FloatArray
from tests.systems.linkages import four_bar_mechanism

Points = tuple[FloatArray, FloatArray, FloatArray]


def points_of(model: Model, count: int = 5) -> Points:
    random = np.random.default_rng(7)
    x = model.start.states + 1e-2 * random.standard_normal((count, len(model.states)))
    u = model.start.inputs + random.standard_normal((count, len(model.inputs)))
    return np.linspace(0.0, 2.0, count), x, u


def one_by_one(model: Model, points: Points) -> Evaluation:
    return Evaluation.joined([model.evaluate(float(t), x, u) for t, x, u in zip(*points, strict=True)])


def assert_equal(one: Evaluation, other: Evaluation) -> None:
    for part in ("derivatives", "outputs", "residuals"):
        np.testing.assert_allclose(getattr(one, part), getattr(other, part), rtol=1e-12, atol=1e-12)


def driven() -> OdeModel:
    x, v, force, time = sympy.symbols("x v force time")
    rates = {x: v, v: force * sympy.cos(3 * time) - 4 * x}
    return OdeModel("driven", rates, inputs=[force], outputs={"power": force * v}, start={x: 0.3})


@pytest.mark.parametrize("compiled", [False, True])
def test_every_point_has_its_own_time(compiled: bool) -> None:
    model = driven()
    if compiled:
        graph = batch_graph(model, ())
        assert graph is not None
        assert graph.stacks.compile()
    t, x, u = points_of(model)
    result = model.evaluate_points(t, x, u)
    wanted = np.column_stack((x[:, 1], u[:, 0] * np.cos(3 * t) - 4 * x[:, 0]))
    np.testing.assert_allclose(result.derivatives, wanted, rtol=1e-14)
    np.testing.assert_allclose(result.outputs[:, 0], u[:, 0] * x[:, 1], rtol=1e-14)
    assert result.residuals.shape == (5, 0)


@pytest.mark.parametrize("make", [systems.cartesian_pendulum, systems.four_bar, systems.rolling_disk])
def test_compiled_equations_give_the_same_at_many_points(make: type) -> None:
    model: Model = make()
    points = points_of(model)
    wanted = one_by_one(model, points)
    assert_equal(model.evaluate_points(*points), wanted)
    graph = batch_graph(model, ())
    assert graph is not None
    assert graph.stacks.compile()
    assert_equal(model.evaluate_points(*points), wanted)


def test_a_mechanism_answers_alike_by_recursion_and_by_compiled_code() -> None:
    model = four_bar_mechanism()
    assert isinstance(model, Mechanism)
    points = points_of(model, 300)  # more than one recursion evaluates
    wanted = one_by_one(model, points)
    assert_equal(model.evaluate_points(*points), wanted)
    model.matrices_along([model.start], compiled=True)
    assert model.is_compiled_for_many_points
    assert_equal(model.evaluate_points(*points), wanted)


def test_constraints_that_contain_time_are_evaluated_at_the_time_of_each_point() -> None:
    free = systems.furuta_pendulum()
    first, second = free.states.names[:2]
    texts = f"{first} - 0.1*sin(time)", f"{second} - time^2"
    model = free.with_constraints([Constraint.from_text(text) for text in texts])
    t, x, u = points_of(model)
    wanted = np.column_stack((x[:, 0] - 0.1 * np.sin(t), x[:, 1] - t**2))
    np.testing.assert_allclose(model.evaluate_points(t, x, u).residuals, wanted, rtol=1e-13, atol=1e-15)


def test_an_fmu_answers_at_many_points_what_it_answers_at_each(tmp_path: Path) -> None:
    with fl.load(build_fmu(systems.cartesian_pendulum(), tmp_path / "pendulum.fmu")) as model:
        points = points_of(model)
        wanted = one_by_one(model, points)
        result = model.evaluate_points(*points)
        np.testing.assert_array_equal(result.derivatives, wanted.derivatives)
        np.testing.assert_array_equal(result.outputs, wanted.outputs)
        np.testing.assert_array_equal(result.residuals, wanted.residuals)


def test_a_point_that_the_model_rejects_is_an_error_of_the_call() -> None:
    model = driven()
    t, x, u = points_of(model)
    with pytest.raises(ValueError, match="argument"):
        model.evaluate_points(t, x[:-1], u)
