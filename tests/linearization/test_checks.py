"""Checks run behind the computation, in any order, and as often as ``checks=`` says."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.diagnostics import KINDS
from fmilin.errors import ConstraintError, FmilinError
from fmilin.linearization.algorithm import (
    check,
    check_batch,
    compute,
    compute_batch,
    describe_choice,
    linearize_point,
)
from fmilin.linearization.checks import CHECKS
from fmilin.linearization.checks.check import ResultCheck
from fmilin.linearization.linearize import along_motion
from fmilin.linearization.methods import compute_by_other_method
from fmilin.linearization.reference import Reference
from fmilin.linearization.request import Request
from fmilin.manifold.point_arrays import batch_points
from fmilin.models import FunctionModel
from fmilin.models.native_model import NativeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.linearization.test_singular import folded

G = 9.81


def pendulum(constraint: str = "x^2 + y^2 - 1", kink: float = 0.0) -> FunctionModel:
    """A pendulum of length 1 in Cartesian coordinates, at its lowest point, with a force along x."""

    def rates(_: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, vy = s
        force = u[0] + kink * abs(x)
        tension = vx * vx + vy * vy + force * x - G * y
        return np.array([vx, vy, force - tension * x, -G - tension * y])

    states = {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0}
    return FunctionModel("pendulum", states, rates, inputs=["F"], constraints=[constraint])


MODELS: list[Callable[[], fl.Model]] = [
    pendulum,
    four_bar,
    rolling_disk,
    lambda: pendulum("x*y - 1e-9*y"),
    lambda: pendulum("x^2 + y^2 - 2"),
    lambda: pendulum("sin(x)^2 + cos(x)^2 - 1"),
    lambda: pendulum(kink=1.0),
    lambda: pendulum().with_constraints([]),
]


def linearize_with_checks_in(order: list[int], model: fl.Model) -> LinearModel | str:
    """Return the linear model at the start of a model, or the error, with the checks run in an order."""
    request = Request()
    try:
        at = compute(model, model.start, request, describe_choice(model, request, None))
        return check(at, [CHECKS[i] for i in order])
    except FmilinError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_the_checks_makes_no_difference(make: Callable[[], fl.Model], seed: int) -> None:
    in_order = list(range(len(CHECKS)))
    shuffled = random.Random(seed).sample(in_order, len(in_order))
    first, other = (linearize_with_checks_in(order, make()) for order in (in_order, shuffled))
    if isinstance(first, str) or isinstance(other, str):
        assert first == other
        return
    assert first.warnings == other.warnings
    for name in "ABCDT":
        np.testing.assert_array_equal(getattr(first, name), getattr(other, name))
        np.testing.assert_array_equal(getattr(first.errors, name), getattr(other.errors, name))


OTHER_METHODS: list[tuple[Callable[[], tuple[fl.Model, fl.OperatingPoint]], dict[str, Any]]] = [
    (folded, {"at_singularity": True}),
    (lambda: (four_bar(), fl.operating_point(four_bar(), {"w": 1.0})), {"formulation": "mcs"}),
    (lambda: (four_bar(loops=100), four_bar(loops=100).start), {}),
]


@pytest.mark.parametrize(("make", "options"), OTHER_METHODS, ids=["singular", "formulation", "large"])
def test_the_order_of_the_checks_makes_no_difference_to_other_methods(
    make: Callable[[], tuple[fl.Model, fl.OperatingPoint]], options: dict[str, Any]
) -> None:
    at = compute_by_other_method(*make(), Request(**options))
    assert at is not None
    shuffled = random.Random(1).sample(list(CHECKS), len(CHECKS))
    assert check(at).warnings == check(at, shuffled).warnings
    assert sum(one.has_meaning(at) for one in CHECKS) >= 4


@pytest.mark.parametrize("checks", ["standard", "none"])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_the_checks_makes_no_difference_to_a_batch(checks: str, seed: int) -> None:
    """Points of a pendulum that swings, of a model with a note of its own: two checks tell something of each."""
    model = cartesian_pendulum()
    assert isinstance(model, NativeModel)
    model.engine.notes = ["The rod has no mass."]
    request = Request(checks=checks)
    points = [fl.operating_point(model, {"vx": speed}) for speed in (1.0, 2.0, 3.0)]
    linear, selection = linearize_point(model, points[0], request)
    reference = Reference(model, request, points[0], linear, selection, point_model=model)
    computed = compute_batch(reference, batch_points(points))
    shuffled = random.Random(seed).sample(list(CHECKS), len(CHECKS))
    first, other = check_batch(computed), check_batch(computed, shuffled)
    kinds = ["off-equilibrium", "periodic", "model"] if checks == "standard" else ["unchecked", "model"]
    assert [remark.kind for remark in first.diagnostics[0]] == kinds
    assert list(first.diagnostics) == list(other.diagnostics)
    np.testing.assert_array_equal(first.is_doubtful, other.is_doubtful)


def test_a_check_that_doubts_derivatives_requests_careful_ones_and_computes_none() -> None:
    """x' = -|x| x has the slope -2 |x|, where a complex step gives another."""
    model = FunctionModel("abs", {"x": 2.0}, lambda _t, s, _u: np.array([-abs(s[0]) * s[0].real]), analytic=True)
    request = Request()
    at = compute(model, model.start, request, describe_choice(model, request, None))
    requests = [one.request_care(at.differentiated) for one in CHECKS if isinstance(one, ResultCheck)]
    columns = [asked.suspicious.columns for asked in requests if asked is not None and asked.suspicious is not None]
    assert columns == [[0]]
    assert abs(at.differentiated.jacobians.f[0, 0, 0] + 4.0) > 1.0
    assert at.jacobians.f[0, 0, 0] == pytest.approx(-4.0, rel=1e-9)


def test_a_wrong_constraint_is_an_error_unless_nothing_is_checked() -> None:
    model = pendulum("x*y - 1e-9*y")
    with pytest.raises(ConstraintError):
        fl.linearize(model)
    lin = fl.linearize(model, checks="none")
    assert [warning.kind for warning in lin.warnings] == ["unchecked"]


def test_a_sweep_without_checks_returns_the_same_matrices_and_says_so() -> None:
    values = {"x": np.linspace(0.1, 0.4, 12)}
    checked, unchecked = (fl.sweep(cartesian_pendulum(), values, checks=checks) for checks in ("standard", "none"))
    np.testing.assert_allclose(unchecked.A, checked.A, rtol=1e-12, atol=1e-12)
    assert [[warning.kind for warning in linear.warnings] for linear in unchecked] == [["unchecked"]] * 12
    assert "Nothing was verified" in repr(unchecked)
    assert "Nothing was verified" not in repr(checked)


def test_a_sweep_without_checks_leaves_singular_coordinates_as_a_checked_one_does() -> None:
    """At x = -1 and x = 1 the pendulum is horizontal, and x determines nothing."""
    values = {"x": np.linspace(-0.99999, 0.99999, 41)}
    checked, unchecked = (fl.sweep(cartesian_pendulum(), values, checks=checks) for checks in ("standard", "none"))
    assert np.isfinite(unchecked.array("error_A")).all()
    assert [linear.is_equilibrium for linear in unchecked] == [linear.is_equilibrium for linear in checked]
    np.testing.assert_allclose(unchecked.A, checked.A, rtol=1e-9, atol=1e-9)


def test_the_steady_coordinates_of_a_wheel_are_chosen_without_checks_too() -> None:
    """In states of the wheel's frame A would have the eigenvalues of its turning, which belong to no motion."""
    disks = [rolling_disk(2.5, radius=0.35, gravity=G) for _ in range(2)]
    for disk in disks:
        disk.independent = ()
    checked, unchecked = fl.linearize(disks[0]), fl.linearize(disks[1], checks="none")
    assert unchecked.states.names == checked.states.names
    np.testing.assert_allclose(unchecked.A, checked.A, rtol=1e-9, atol=1e-9)


def test_a_large_model_that_was_not_checked_says_so() -> None:
    assert [warning.kind for warning in fl.linearize(four_bar(loops=100), checks="none").warnings] == ["unchecked"]


def test_an_input_that_leaves_a_constraint_lets_no_motion_pass_for_steady() -> None:
    """A pendulum that a force along its rod would pull off the circle, and a rotor that turns."""

    def rates(_: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, y, vx, vy, _, w = s
        tension = vx * vx + vy * vy - G * y
        return np.array([vx, vy, -tension * x, -G - tension * y + u[0], w, 0.0])

    start = {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0, "phi": 0.0, "w": 1.0}
    model = FunctionModel("rotor", start, rates, inputs=["F"], constraints=["x^2 + y^2 - 1"])
    assert along_motion(model, model.start) == ([], None)


def test_a_sweep_with_all_checks_takes_nothing_from_its_first_point() -> None:
    family = fl.sweep(cartesian_pendulum(), {"x": np.linspace(0.1, 0.4, 4)}, checks="all")
    assert len({linear.method.evaluations for linear in family}) == 1
    assert family[0].method.evaluations > 20


def test_all_checks_verify_at_a_later_point_what_standard_ones_took_from_an_earlier_one() -> None:
    model = cartesian_pendulum(length=1.0, gravity=4.0)
    first = fl.linearize(model)
    point = fl.operating_point(model, {"x": 0.3})
    standard = fl.linearize(model, point)
    everything = fl.linearize(model, point, checks="all")
    assert standard.method.evaluations < 0.6 * first.method.evaluations
    anew = fl.linearize(cartesian_pendulum(length=1.0, gravity=4.0), point)
    assert everything.method.evaluations == anew.method.evaluations
    np.testing.assert_allclose(standard.A, everything.A, rtol=1e-9, atol=1e-9)


def test_other_methods_say_what_the_model_says_of_itself() -> None:
    model = four_bar()
    assert isinstance(model, NativeModel)
    model.engine.notes = ["The rod has no mass."]
    for options in ({"formulation": "mcs"}, {"formulation": "rcs"}, {"at_singularity": True}):
        warnings = fl.linearize(model, **options).warnings
        assert [warning.kind for warning in warnings] == ["model"]


def test_a_point_off_the_manifold_is_an_error_at_a_singular_configuration_too() -> None:
    model, point = folded()
    moved = point.with_states(point.states + 1e-4 * (np.arange(len(point.states)) == 0))
    with pytest.raises(ConstraintError):
        fl.linearize(model, moved, at_singularity=True)


def test_no_checks_take_fewer_evaluations_and_return_the_same_matrices() -> None:
    for make in (cartesian_pendulum, four_bar):
        checked, unchecked = fl.linearize(make()), fl.linearize(make(), checks="none")
        assert unchecked.method.evaluations < checked.method.evaluations
        np.testing.assert_allclose(unchecked.A, checked.A, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("one", CHECKS, ids=lambda one: type(one).__name__)
def test_each_check_describes_itself(one: object) -> None:
    described = next(check for check in CHECKS if check is one)
    assert described.verifies.endswith(".")
    assert described.needs.endswith(".")
    assert described.kinds or described.error
    assert set(described.kinds) <= set(KINDS)


def test_the_option_is_one_of_three_words() -> None:
    wrong: list[Any] = ["some", "ALL", 3, True, None, ["all"]]
    for value in wrong:
        with pytest.raises(fl.UsageError, match="checks"):
            fl.linearize(four_bar(), checks=value)
