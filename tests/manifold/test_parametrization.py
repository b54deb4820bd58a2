"""The local parametrization: on the manifold, with the right coordinates, with the derivative of eq. (2.29)."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, OperatingPoint
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.manifold.coordinates import conditioning
from fmilin.manifold.frame import CoordinateChoice, Frame, choose_coordinates, constraint_manifold
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.selection import Selection
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.models import Labels, LagrangeModel, OdeModel
from fmilin.signals import FloatArray, Signal
from fmilin.systems import five_bar
from tests.by_hand import FunctionModel, Parts, pendulum


def sphere(radius: float = 2.0) -> FunctionModel:
    """A point on a sphere, carried around the z axis: first order, one velocity-like constraint, P = 2."""
    return FunctionModel(
        Parts(
            ["x", "y", "z"],
            [0.6 * radius, 0.0, 0.8 * radius],
            lambda t, s, u: np.array([-s[1], s[0], 0.0]),
            constraints=[f"x^2 + y^2 + z^2 - {radius}^2"],
        )
    )


@pytest.mark.parametrize("kind", ["partition", "tangent"])
@pytest.mark.parametrize("make", [sphere, lambda: pendulum(angle=0.7, rate=1.5)])
def test_psi_stays_on_the_manifold_and_keeps_its_coordinates(kind: str, make: object) -> None:
    model = make()  # type: ignore[operator]
    frame = build_frame(model, model.start, kind=kind)
    psi = frame.parametrization
    random = np.random.default_rng(3)
    rounding = 8 * len(psi.x0) * np.finfo(float).eps  # of sums with as many terms as there are states
    for size in (1e-6, 1e-3, 0.1):
        y = psi.y0 + size * random.uniform(-1, 1, len(psi.y0))
        x = psi.psi(y)
        R, terms = frame.coordinates.R, psi.invariants.gradient(0.0, x).reference
        assert (np.abs(psi.invariants.values(0.0, x)) <= rounding * np.maximum(terms, 1.0)).all()
        assert (np.abs(R @ x - y) <= rounding * (np.abs(R) @ np.abs(x))).all()


def test_points_a_radian_away_are_reached_though_the_first_steps_grow() -> None:
    model = five_bar()
    psi = build_frame(model, model.start, kind="partition").parametrization
    random = np.random.default_rng(1)
    for y in psi.y0 + random.uniform(-1, 1, (20, len(psi.y0))):
        assert np.abs(psi.invariants.values(0.0, psi.psi(y))).max() < 1e-12


@pytest.mark.parametrize("kind", ["partition", "tangent"])
def test_its_derivative_by_both_equations_of_the_thesis(kind: str) -> None:
    model = pendulum(angle=0.7, rate=1.5)
    frame = build_frame(model, model.start, kind=kind)
    psi, R = frame.parametrization, frame.coordinates.R
    h = 1e-5
    for x in (psi.x0, psi.psi(psi.y0 + 0.05)):
        H = psi.invariants.gradient(0.0, x).H[psi.rows]
        by_229 = np.linalg.solve(np.vstack((R, H)), np.vstack((np.eye(2), np.zeros((2, 2)))))
        np.testing.assert_allclose(psi.dpsi(x), by_229, atol=1e-13)  # (2.37) against (2.29)
        np.testing.assert_allclose(H @ psi.dpsi(x), 0.0, atol=1e-14)  # (2.18)
        y = R @ x
        measured = [(psi.psi(y + h * e) - psi.psi(y - h * e)) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(psi.dpsi(x), np.stack(measured, axis=1), atol=1e-9)


def test_partition_coordinates_are_kept_to_the_last_bit() -> None:
    model = pendulum(angle=0.7)
    psi = build_frame(model, model.start).parametrization
    y = psi.y0 + np.array([0.0123456789, -0.03])
    np.testing.assert_array_equal(psi.coordinates.R @ psi.psi(y), y)


def test_velocities_follow_their_positions() -> None:
    for angle, expected in ((0.2, ("x", "vx")), (1.4, ("y", "vy"))):
        model = pendulum(angle=angle, rate=0.5)
        frame = build_frame(model, model.start)
        assert frame.selection.signals.names == expected
        assert frame.selection.condition_number < 10


def test_tangent_coordinates_are_rates_of_each_other() -> None:
    model = pendulum(angle=0.7, rate=1.5)
    frame = build_frame(model, model.start, kind="tangent")
    R = frame.coordinates.R
    assert frame.selection.signals.names == ("tangent[x]", "tangent[vx]")
    np.testing.assert_allclose(R[0, :2], R[1, 2:])
    np.testing.assert_array_equal(R[0, 2:], 0.0)
    np.testing.assert_allclose(R @ R.T, np.eye(2), atol=1e-12)


def test_positions_alone_may_be_named() -> None:
    model = pendulum(angle=0.7)
    assert build_frame(model, model.start, named=["y"]).selection.signals.names == ("y", "vy")


def test_a_singular_choice_is_refused_with_a_better_one() -> None:
    model = pendulum()
    with pytest.raises(NumericalError, match=r"y do not determine the other states .* Use x, vx") as caught:
        build_frame(model, model.start, named=["y"])
    assert caught.value.condition_number is not None
    assert caught.value.condition_number > 1e8


@pytest.mark.parametrize("names", [["x", "vx", "y"], ["x", "y", "vx", "vy"]])
def test_a_wrong_number_of_coordinates_is_refused(names: list[str]) -> None:
    model = pendulum(angle=0.3)
    with pytest.raises(UsageError, match=r"independent coordinates were named, but the model has 2 \(or 1 positions\)"):
        build_frame(model, model.start, named=names)


def test_a_coordinate_that_is_no_state_is_refused() -> None:
    model = pendulum(angle=0.3)
    with pytest.raises(UnknownNameError, match="'vz' is not a state of the model"):
        build_frame(model, model.start, named=["x", "vz"])
    with pytest.raises(UsageError, match="named twice"):
        build_frame(model, model.start, named=["x", "x"])


def test_outside_its_neighbourhood_psi_fails_in_words() -> None:
    model = pendulum(angle=0.7)
    psi = build_frame(model, model.start).parametrization
    with pytest.raises(NumericalError, match="No point of the manifold was found"):
        psi.psi(psi.y0 + np.array([3.0, 0.0]))


def planar_loop_in_space(copies: int) -> FunctionModel:
    """A pendulum whose rod is declared several times over, with a spatial coordinate that never moves."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, y, _, vx, vy, _ = s
        mu = (-9.81 * y + vx**2 + vy**2) / (x**2 + y**2)
        return np.array([vx, vy, s[5], -mu * x, -9.81 - mu * y, 0.0])

    return FunctionModel(
        Parts(
            ["x", "y", "z", "vx", "vy", "vz"],
            [0.6, -0.8, 0.0, 0.4, 0.3, 0.0],
            rates,
            constraints=["x^2 + y^2 - 1", "z", *["1 - x^2 - y^2 + z"] * copies, "x*vx + y*vy"],
        )
    )


@pytest.mark.parametrize("copies", [0, 1, 3])
def test_redundant_constraints_are_removed_by_rank(copies: int) -> None:
    model = planar_loop_in_space(copies)
    frame = build_frame(model, model.start)
    assert frame.selection.signals.names == ("x", "vx")
    assert len(frame.parametrization.rows) == 4
    assert frame.remarks == ()


def test_scales_decide_not_units() -> None:
    """The same pendulum in micrometres and gigametres per second chooses the same coordinates."""
    base = pendulum(angle=0.5, rate=0.3)

    def scaled(lengths: float) -> Frame:
        def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
            return base.parts.rates(t, s / lengths, u) * lengths

        states = [Signal(n, nominal=lengths) for n in base.states.names]
        model = FunctionModel(
            Parts(
                states,
                (base.start.states * lengths).tolist(),
                rates,
                constraints=["x^2 + y^2 - L^2"],
                parameters={"L": 1.3 * lengths},
                inputs=["F"],
            )
        )
        return build_frame(model, model.start)

    reference = scaled(1.0)
    for lengths in (1e-6, 1e9):
        frame = scaled(lengths)
        assert frame.selection.signals.names == reference.selection.signals.names
        assert frame.selection.condition_number == pytest.approx(reference.selection.condition_number, rel=1e-6)


def test_a_velocity_constraint_takes_speeds_and_leaves_positions() -> None:
    """v1 = 10 q1 + v2, linear in a position too, and most of all: the dependent state is a speed all the same."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        _, q2, v1, v2 = s
        return np.array([v1, v2, 10 * v1 - q2, -q2])

    tie = Constraint.from_text("10*q1 - v1 + v2", level="velocity")
    model = FunctionModel(Parts(["q1", "q2", "v1", "v2"], [0.1, 0.2, 1.5, 0.5], rates, constraints=[tie]))
    names = build_frame(model, model.start).selection.signals.names
    assert names[:2] == ("q1", "q2")
    assert names[2] in ("v1", "v2")


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_condition_of_coordinates_is_one_of_angles(size: float) -> None:
    """Neither the length of a gradient nor the unit of a state matters: (1, 0) and (1, 1) stand at 45 degrees."""
    R, scales = np.array([[1.0, 0.0]]), np.array([3.0 * size, 2.0])
    upright = conditioning(R, np.array([[0.0, size]]), scales)
    assert upright == pytest.approx(1.0, rel=1e-14)
    slanting = conditioning(R, size * np.array([[2.0, 3.0 * size]]), scales)
    assert slanting == pytest.approx(1 + np.sqrt(2.0), rel=1e-12)
    assert conditioning(R, np.array([[size, 0.0]]), scales) > 1e15


def continue_coordinates(model: fl.Model, point: OperatingPoint, previous: Selection) -> Frame:
    return choose_coordinates(
        constraint_manifold(PointEvaluator(model), point, VerifiedFacts()), CoordinateChoice(previous=previous)
    )


def test_tangent_coordinates_are_carried_on_as_the_tangent_turns() -> None:
    """From 0.3 to 0.9 rad along the circle: again orthonormal and along it, and with the signs of before."""
    first, then = pendulum(angle=0.3, length=1.0), pendulum(angle=0.9, length=1.0)
    before = build_frame(first, first.start, kind="tangent")
    frame = continue_coordinates(then, then.start, before.selection)
    R, along = frame.coordinates.R, np.array([np.cos(0.9), np.sin(0.9)])
    np.testing.assert_allclose(R @ R.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(frame.T, R.T, atol=1e-12)
    np.testing.assert_allclose(np.abs(R[0, :2] @ along), 1.0, rtol=1e-12)
    assert R[0] @ before.coordinates.R[0] == pytest.approx(np.cos(0.6), rel=1e-12)


def test_tangent_coordinates_of_first_order_are_carried_on_over_a_sphere() -> None:
    model = sphere(1.0)
    before = build_frame(model, model.start, kind="tangent")
    normal = np.array([0.8, 0.36, 0.48])
    frame = continue_coordinates(model, OperatingPoint(0.0, normal, np.empty(0)), before.selection)
    R = frame.coordinates.R
    np.testing.assert_allclose(R @ R.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(R @ normal, 0.0, atol=1e-12)
    assert np.linalg.svdvals(R @ before.coordinates.R.T) == pytest.approx([1.0, normal @ [0.6, 0.0, 0.8]])


def test_a_point_that_is_not_reached_has_a_reason() -> None:
    psi = build_frame(model := pendulum(angle=0.7), model.start).parametrization
    with pytest.raises(NumericalError, match="Newton's iteration left the neighbourhood of the point"):
        psi.psi(psi.y0 + np.array([5.0, 0.0]))  # beyond the rod
    curve = OdeModel("log", {"x": "-x", "y": "-1"}, constraints=["y - log(x)"], start={"x": 1.0, "y": 0.0})
    psi = build_frame(curve, curve.start, named=["x"]).parametrization
    assert psi.psi(np.array([0.5]))[1] == pytest.approx(np.log(0.5))
    with pytest.raises(NumericalError, match="the constraints or coordinates are not defined there"):
        psi.psi(np.array([-0.5]))


def test_velocities_follow_their_positions_whatever_their_nominal_values() -> None:
    labels = Labels(nominals={"vx": 1.0, "vy": 1000.0})
    M, F = [[1, 0], [0, 1]], ["-x", "-y"]
    model = LagrangeModel("line", {"x": "vx", "y": "vy"}, M, F, constraints=["x + 0.9*y"], labels=labels)
    assert build_frame(model, model.start).selection.signals.names == ("y", "vy")
