"""Calls in a loop: once a model is compiled, a point is a batch of one, and says what a first call says."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import systems
from fmilin.model.capabilities import has_compiled_derivatives
from fmilin.models import DaeModel, OdeModel, compiled_graph
from fmilin.models.mechanism import Mechanism
from tests.systems.skate_model import skate

Build = Callable[[], Mechanism]
MECHANISMS: dict[str, Build] = {name: getattr(systems, name) for name in ("slider_crank", "furuta_pendulum", "loader")}


def compiled(build: Build) -> Mechanism:
    model = build()
    model.matrices_along([model.start] * 3, compiled=True)
    return model


def points_of(model: Mechanism, count: int) -> list[fl.OperatingPoint]:
    """Return the start and points beside it, most of them in motion."""
    first = fl.linearize(model)
    random = np.random.default_rng(7)
    points = [fl.operating_point(model)]
    while len(points) < count:
        moved = first.y0 + 0.05 * random.normal(size=len(first.y0))
        points.append(fl.operating_point(model, dict(zip(first.states.names, moved.tolist(), strict=True))))
    return points


@pytest.mark.parametrize("checks", ["standard", "none"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_later_call_says_what_a_first_call_says(name: str, checks: str) -> None:
    model = compiled(MECHANISMS[name])
    fl.linearize(model, checks=checks)
    for point in points_of(model, 3):
        again = fl.linearize(model, point, checks=checks)
        alone = fl.linearize(MECHANISMS[name](), point, checks=checks)
        assert again.states.names == alone.states.names
        assert [warning.kind for warning in again.warnings] == [warning.kind for warning in alone.warnings]
        for matrix in "ABCDT":
            expected = getattr(alone, matrix)
            largest = np.abs(expected).max(initial=1e-12)
            np.testing.assert_allclose(getattr(again, matrix), expected, rtol=0, atol=1e-12 * largest)
        np.testing.assert_allclose(again.f0, alone.f0, rtol=0, atol=1e-12)
        assert again.accuracy.conditioning == pytest.approx(alone.accuracy.conditioning)
        assert again.method.derivatives == alone.method.derivatives
        assert again.point == alone.point


def test_the_errors_of_a_later_call_hold() -> None:
    model = compiled(systems.slider_crank)
    point = points_of(model, 2)[1]
    fl.linearize(model, point)
    later, exact = fl.linearize(model, point), fl.linearize(systems.slider_crank(), point)
    assert (np.abs(later.A - exact.A) <= later.errors.A + exact.errors.A).all()
    assert 0 < later.accuracy.A < 1e-10


def test_a_copied_model_remembers_nothing_of_the_calls() -> None:
    model = compiled(systems.furuta_pendulum)
    expected = fl.linearize(model)
    fl.linearize(model)
    np.testing.assert_allclose(fl.linearize(copy.copy(model)).A, expected.A, rtol=1e-12, atol=1e-12)
    fewer = fl.linearize(model, outputs=model.outputs.names[:1])
    np.testing.assert_allclose(fewer.C, expected.C[:1], rtol=1e-12, atol=1e-12)


def test_a_point_off_the_constraints_is_refused_in_a_loop() -> None:
    model = compiled(systems.slider_crank)
    point = fl.operating_point(model)
    for _ in range(2):
        fl.linearize(model, point)
    off = point.with_states(point.states + 0.01)
    with pytest.raises(fl.ConstraintError):
        fl.linearize(model, off)


def test_single_calls_of_a_model_of_kane_lead_to_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = fl.linearize(skate())
    monkeypatch.setattr(compiled_graph, "SECONDS_OF_LINEARIZATION", 1e3)  # so that one call pays for compiling
    model = skate()
    fl.linearize(model)
    assert has_compiled_derivatives(model)
    for _ in range(2):
        again = fl.linearize(model)
        assert again.states.names == alone.states.names
        assert [warning.message for warning in again.warnings] == [warning.message for warning in alone.warnings]
        for matrix in "ABCDT":
            np.testing.assert_allclose(getattr(again, matrix), getattr(alone, matrix), rtol=0, atol=1e-12)


def compile_by_calls(model: fl.Model) -> None:
    """Linearize at one point until the model is compiled, which pays for a small one after some tens of calls."""
    for _ in range(120):
        fl.linearize(model)


def test_coordinates_are_those_of_the_request_though_its_list_was_changed_meanwhile() -> None:
    model = systems.cartesian_pendulum(length=1.0, gravity=4.0)
    point = fl.operating_point(model, {"x": 0.6, "vx": 0.0})
    names = ["x", "vx"]
    for _ in range(150):
        fl.linearize(model, point, independent=names)
    names[:] = ["y", "vy"]
    assert fl.linearize(model, point, independent=names).states.names == ("y", "vy")
    assert fl.linearize(model, point, independent=["y", "vy"]).states.names == ("y", "vy")


def test_a_point_that_is_written_to_between_the_calls_changes_nothing_else() -> None:
    model = OdeModel("spring", {"q": "v", "v": "-4*sin(q) + u"}, inputs=["u"], start={"q": 0.3})
    compile_by_calls(model)
    point = fl.operating_point(model)
    for angle in (0.3, 0.9, 1.5):
        point.states[0] = angle
        linear = fl.linearize(model, point)
        np.testing.assert_allclose(linear.A, [[0.0, 1.0], [-4 * np.cos(angle), 0.0]], atol=1e-12)
        linear.A[...] = 7.0


def test_states_that_depend_on_each_other_at_one_point_are_named_in_a_loop_too() -> None:
    rates = {"a": "u + k*b*b - b*c", "b": "-c*a", "c": "a*b"}

    def build() -> OdeModel:
        return OdeModel("drift", rates, inputs=["u"], parameters={"k": 0.0}, start={"a": 1.0, "b": 0.3, "c": 0.2})

    model = build()
    compile_by_calls(model)
    for states in ({"a": 1.0, "b": 0.3, "c": 0.2}, {"a": 0.0, "b": 0.0, "c": 0.3}):
        point = fl.operating_point(model, states)
        kinds = [warning.kind for warning in fl.linearize(build(), point).warnings]
        assert [warning.kind for warning in fl.linearize(model, point).warnings] == kinds
    assert "dependent-states" in kinds


def test_a_dae_keeps_its_descriptor_system_in_a_loop() -> None:
    model = DaeModel("rc", ["der(v) = i", "v + 2*i = s"], inputs=["s"], outputs={"i": "i"})
    compile_by_calls(model)
    assert fl.linearize(model).descriptor is not None
