"""A stack says of each of its points what is said of that point alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import KinkError
from fmilin.families import along, solver
from fmilin.models import OdeModel
from fmilin.models.batch_graph import batch_graph
from fmilin.systems import (
    bicycle,
    cartesian_pendulum,
    double_wishbone,
    five_bar,
    four_bar,
    rolling_disk,
    slider_crank,
    stewart_platform,
)
from tests.systems.linkages import five_bar_mechanism, parallel_robot

PATHS: Mapping[str, tuple[Callable[[], fl.Model], str, np.ndarray]] = {
    "pendulum at rest": (cartesian_pendulum, "x", np.linspace(0.0, 0.6, 12)),
    "linkage on the way": (four_bar, "w", np.linspace(0.5, 2.0, 12)),
    "disk, steady": (rolling_disk, "q1", np.linspace(0.0, 1.0, 12)),
    "disk at other speeds": (rolling_disk, "u3", np.linspace(1.0, 3.0, 12)),
    "bicycle, steady": (bicycle, "rear_rate", -np.linspace(5.0, 20.0, 12)),
    "five-bar": (five_bar, "q1", np.linspace(0.0, 0.05, 12)),
    "parallel robot": (parallel_robot, "phi1", np.linspace(0.0, 0.2, 12)),
    "crank": (slider_crank, "phi", np.linspace(0.1, 0.8, 12)),
    "platform, quaternions": (stewart_platform, "leg1.slide.q", np.linspace(0.0, 0.05, 12)),
}


def alone(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(along, "WORTH_A_BATCH", 10**9)
    patched.setattr(solver, "MIN_BATCH_POINTS", 10**9)


def in_stacks(family: fl.LinearFamily) -> int:
    return int((family.array("visits")[..., 0] == 0).sum())


def assert_same(stack: fl.LinearFamily, single: fl.LinearFamily) -> None:
    for k, (one, other) in enumerate(zip(stack, single, strict=True)):
        assert one.states.names == other.states.names
        assert one.method.coordinates == other.method.coordinates
        assert [str(w) for w in one.warnings] == [str(w) for w in other.warnings], k
        for name in ("A", "B", "C", "D", "T", "f0", "y0"):
            size = max(1.0, float(np.abs(getattr(other, name)).max(initial=0.0)))
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-10 * size)
        for name in "AT":  # the condition number is a bound, so the errors are
            least = 0.2 * float(getattr(other.errors, name).max(initial=0.0))
            assert getattr(one.errors, name).max(initial=0.0) >= least


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("case", PATHS)
def test_matrices_errors_and_remarks_along_a_path(case: str, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, name, values = PATHS[case]
    model = make()
    name = name if model.states.has(name) else model.states.names[0]
    start = (
        0.0
        if values[0] < 0 or case.startswith(("linkage", "disk at"))
        else float(model.start.states[model.states.positions[name]])
    )
    points = [fl.operating_point(model, {name: start + value}) for value in values]
    independent = fl.linearize(model, points[0]).states.names if named else None
    stack = fl.linearize_along(model, points, independent=independent)
    assert in_stacks(stack) >= len(points) - 2
    alone(monkeypatch)
    single = fl.linearize_along(make(), points, independent=independent)
    assert in_stacks(single) == 0
    assert_same(stack, single)


def test_a_sweep_whose_coordinates_are_named_goes_in_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = parallel_robot()
    lin = fl.linearize(robot)
    first = lin.states.names[0]
    start = float(robot.start.states[robot.states.positions[first]])
    vary = {first: start + np.linspace(0.0, 0.2, 12)}
    stack = fl.sweep(robot, vary, independent=lin.states.names)
    assert in_stacks(stack) == 11
    alone(monkeypatch)
    assert_same(stack, fl.sweep(robot, vary, independent=lin.states.names))


def test_every_speed_of_a_sweep_says_its_own_rate() -> None:
    rider, rolling = bicycle(), ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]
    rates = -np.linspace(2, 8, 7) / rider.parameters["r_R"]
    family = fl.sweep(rider, {"rear_rate": rates}, trim=fl.TrimRequest(steady=rolling))
    assert in_stacks(family) > 3
    for rate, linear in zip(rates, family, strict=True):
        assert [w.kind for w in linear.warnings] == ["steady"]
        assert f"'rear_wheel' changes at {rate:.6g} per second" in str(linear.warnings[0])


def test_a_kink_on_the_way_is_refused_in_a_stack_as_alone() -> None:
    valve = OdeModel("valve", {"x": "F - abs(x) - 2*x"}, inputs=["F"])
    graph = batch_graph(valve, ())
    assert graph is not None
    assert not graph.smooth
    family = fl.sweep(valve, {"x": np.linspace(-1.0, 1.0, 9)})
    assert family.ok.tolist() == [True] * 4 + [False] + [True] * 4
    assert "kink" in family.reasons[4]
    np.testing.assert_allclose(family.A[family.ok, 0, 0], [-1.0] * 4 + [-3.0] * 4)
    with pytest.raises(KinkError):
        fl.linearize_along(valve, [fl.operating_point(valve, {"x": x}) for x in np.linspace(-1.0, 1.0, 9)])


def test_an_input_that_reaches_nothing_at_one_point_says_so_there() -> None:
    plant = OdeModel("plant", {"x": "-x + F*z", "z": "-z"}, inputs=["F"], outputs={"y": "x"})
    family = fl.sweep(plant, {"z": np.linspace(-1.0, 1.0, 9)})
    kinds = [[w.kind for w in linear.warnings] for linear in family]
    assert ["no-response" in k for k in kinds] == [False] * 4 + [True] + [False] * 4


def test_a_path_off_the_manifold_is_refused_at_its_point() -> None:
    pendulum = cartesian_pendulum(length=1.0)
    points = [fl.operating_point(pendulum, {"x": x}) for x in np.linspace(0.0, 0.5, 8)]
    points[5] = points[5].with_states(points[5].states + np.array([0.0, 1e-3, 0.0, 0.0]))
    with pytest.raises(fl.ConstraintError):
        fl.linearize_along(pendulum, points)


@pytest.mark.parametrize(("rate", "value"), [("F - x - atan2(x, -1)", 0.0), ("F - tan(pi*x)", 0.5)])
def test_a_jump_between_finite_slopes_is_refused_in_a_stack_as_alone(rate: str, value: float) -> None:
    model = OdeModel("jumps", {"x": rate}, inputs=["F"])
    values = np.linspace(value - 0.25, value + 0.25, 9)
    points = [fl.operating_point(model, {"x": x}) for x in values]
    with pytest.raises(fl.NumericalError) as alone:
        fl.linearize(model, points[4])
    with pytest.raises(type(alone.value)):
        fl.linearize_along(model, points)
    assert fl.sweep(model, {"x": values}).ok.tolist() == [True] * 4 + [False] + [True] * 4


def test_what_one_held_state_leaves_open_is_in_a_stack_as_alone() -> None:
    robot = five_bar_mechanism()
    start = float(robot.start.states[robot.states.positions["q4"]])
    values = start + np.linspace(-5.6, 4.4, 9)
    family = fl.sweep(robot, {"q4": values})
    assert in_stacks(family) > 3
    for value, linear in zip(values, family, strict=True):
        x = fl.operating_point(robot, {"q4": value}).states
        np.testing.assert_allclose(list(linear.point.states.values()), x, rtol=0, atol=1e-9)


def test_an_angle_of_more_than_a_turn_is_remarked_on_where_parameters_vary() -> None:
    linkage, rider = four_bar(), bicycle()
    further = {"phi": float(linkage.start.states[linkage.states.positions["phi"]]) + 6.5}
    masses = linkage.parameters["m"] * np.linspace(1.0, 1.1, 6)
    for linear in fl.sweep(linkage, {"m": masses}, settings=further):
        assert "unit" in [w.kind for w in linear.warnings]
    yaw = np.linspace(5.6, 7.0, 8)
    # With the speed of the rear wheel given the points are determined, which stacks need.
    speed = {"rear_rate": float(rider.start.states[rider.states.positions["rear_rate"]])}
    gravity = rider.parameters["g"] * np.array([1.0, 1.01])
    family = fl.sweep(rider, {"g": gravity, "yaw": yaw}, settings=speed)
    assert in_stacks(family) > 0
    turned = [family.linear_model(k).point.states["yaw"] > 2 * np.pi for k in range(16)]
    assert sorted(turned) == [False] * 8 + [True] * 8
    assert ["unit" in [w.kind for w in family.linear_model(k).warnings] for k in range(16)] == turned


def test_points_of_a_path_keep_their_own_parameters() -> None:
    linkage = four_bar()
    models = [linkage.with_parameters({"m": m}) for m in (1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0)]
    points = [fl.operating_point(model, {"phi": 2.3}) for model in models]
    for point, linear in zip(points, fl.linearize_along(linkage, points), strict=True):
        alone = fl.linearize(linkage, point, independent=linear.states.names)
        np.testing.assert_allclose(linear.A, alone.A, rtol=0, atol=1e-10)


@pytest.mark.parametrize("chosen", [[1, 0], [0], []])
def test_chosen_inputs_of_a_sweep_are_in_stacks_as_alone(chosen: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    robot = parallel_robot()
    inputs = [robot.inputs.names[j] for j in chosen]
    first = fl.linearize(robot).states.names[0]
    vary = {first: robot.start.states[robot.states.positions[first]] + np.linspace(0.0, 0.2, 12)}
    stack = fl.sweep(robot, vary, inputs=inputs)
    assert in_stacks(stack) == 11
    assert stack.inputs.names == tuple(inputs)
    whole = fl.sweep(parallel_robot(), vary)
    np.testing.assert_array_equal(stack.B, whole.B[..., chosen])
    np.testing.assert_array_equal(stack.array("error_D"), whole.array("error_D")[..., chosen])
    alone(monkeypatch)
    single = fl.sweep(parallel_robot(), vary, inputs=inputs)
    assert_same(stack, single)
    for one, other in zip(stack, single, strict=True):
        assert one.point.inputs == other.point.inputs
        np.testing.assert_allclose(one.D, other.D, rtol=0, atol=1e-10)
        expected = one.errors.B.max() / np.abs(one.B).max() if chosen else 0.0
        np.testing.assert_equal(one.accuracy.B, expected)


@pytest.mark.parametrize("case", ["a mechanism at rest", "a stiff equation"])
def test_errors_are_stated_as_they_are_alone(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model: fl.Model = OdeModel("stiff", {"x": "F - x + sin(100*x)/100"}, inputs=["F"])
    name, values = "x", np.linspace(0.0, 0.1, 12)
    if case == "a mechanism at rest":
        model, name, values = double_wishbone(), "body.q", np.linspace(0.0, 0.02, 12)
    points = [fl.operating_point(model, {name: value}) for value in values]
    stack = fl.linearize_along(model, points)
    assert in_stacks(stack) >= 11
    alone(monkeypatch)
    single = fl.linearize_along(model, points)
    for one, other in list(zip(stack, single, strict=True))[1:]:
        for matrix in "ABCD":
            ours, stated = getattr(one.errors, matrix), getattr(other.errors, matrix)
            assert (ours >= 0.2 * stated).all()
            assert (ours <= 10 * stated).all()
