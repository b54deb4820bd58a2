"""Hidden constraints, and the check that the declared manifold is the one the model moves on."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, Model, linearize, operating_point
from fmilin.errors import ConstraintError, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.selection import kinematic_pairs
from fmilin.manifold.verified_frame import build_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.models import function as functions
from fmilin.signals import FloatArray
from fmilin.systems import double_wishbone
from tests.by_hand import FunctionModel, Parts, pendulum


def invariants_of(model: Model) -> Invariants:
    x = model.start.states
    return Invariants(
        PointEvaluator(model), model.start.inputs, kinematic_pairs(model, model.start), model.states.scales(x)
    )


def observed_pendulum(*, exact: bool = False, rate: float = 1.5, angle: float = 0.7) -> FunctionModel:
    """The pendulum whose rod length is a variable computed inside the model."""
    m = pendulum(angle=angle, rate=rate, exact=exact)
    m.parts.constraints = ["gap"]
    m.parts.observed = {"gap": lambda t, s, u: float(s[0] ** 2 + s[1] ** 2 - 1.3**2)}
    return FunctionModel(m.parts)


def test_pairs_of_positions_and_velocities_are_found() -> None:
    assert kinematic_pairs(pendulum(), pendulum().start) == {0: 2, 1: 3}


def test_equality_by_chance_makes_no_pair() -> None:
    model = FunctionModel(Parts(["a", "b"], [0.0, 0.0], lambda t, s, u: np.array([s[1] * (1 + s[0]), 0.0])))
    assert kinematic_pairs(model, model.start) == {}


def test_the_hidden_constraint_of_a_second_order_model_costs_no_visit() -> None:
    model = pendulum(angle=0.7, rate=1.5)
    invariants = invariants_of(model)
    visits = []
    evaluate = model.evaluate
    model.evaluate = lambda *a: visits.append(a) or evaluate(*a)  # type: ignore[method-assign, func-returns-value]
    x = np.array([0.3, -1.2, 0.5, 0.9])
    np.testing.assert_allclose(invariants.values(0.0, x), [0.09 + 1.44 - 1.69, 2 * (0.15 - 1.08)])
    np.testing.assert_allclose(invariants.gradient(0.0, x).H, [[0.6, -2.4, 0, 0], [1.0, 1.8, 0.6, -2.4]])
    assert not visits


@pytest.mark.parametrize("exact", [True, False])
def test_a_constraint_inside_the_model_gives_the_same_manifold(exact: bool) -> None:
    reference, hidden = pendulum(angle=0.7, rate=1.5), observed_pendulum(exact=exact)
    x = reference.start.states + 0.01
    a, b = invariants_of(reference), invariants_of(hidden)
    np.testing.assert_allclose(b.values(0.0, x), a.values(0.0, x), atol=1e-9)
    g = b.gradient(0.0, x)
    np.testing.assert_allclose(g.H, a.gradient(0.0, x).H, atol=1e-6)
    assert (np.abs(g.H - a.gradient(0.0, x).H) <= 10 * g.error + 1e-12).all()


def turning(q: float = 0.4, u: float = 0.8) -> FunctionModel:
    """Kane-like: positions (a, b) on a circle driven by one speed u; der(a) is no state."""
    return FunctionModel(
        Parts(
            ["a", "b", "u"],
            [np.cos(q), np.sin(q), u],
            lambda t, s, _: np.array([-s[1] * s[2], s[0] * s[2], -s[0]]),
            constraints=["a^2 + b^2 - 1"],
        )
    )


def test_a_redundant_hidden_constraint_is_dropped() -> None:
    model = turning()
    frame = build_frame(model, model.start)
    assert len(frame.parametrization.rows) == 1
    assert frame.selection.signals.names == ("b", "u")


def skate(speed: float = 1.2, heading: float = 0.5, turn: float = 0.7) -> FunctionModel:
    """A skate on ice with Cartesian velocities: nonholonomic, vx sin(psi) = vy cos(psi)."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        _, _, psi, vx, vy, w = s
        forward = vx * np.cos(psi) + vy * np.sin(psi)
        a = np.array([-np.sin(psi), np.cos(psi)]) * w * forward  # centripetal only: no force along the blade
        return np.array([vx, vy, w, *a, 0.0])

    start = [0, 0, heading, speed * np.cos(heading), speed * np.sin(heading), turn]
    no_slip = Constraint.from_text("vx*sin(psi) - vy*cos(psi)", level="velocity", name="no slip")
    return FunctionModel(Parts(["px", "py", "psi", "vx", "vy", "w"], start, rates, constraints=[no_slip]))


def test_a_nonholonomic_constraint_takes_a_speed_and_no_position() -> None:
    model = skate()
    frame = build_frame(model, model.start)
    assert frame.selection.signals.names == ("px", "py", "psi", "vx", "w")


@pytest.mark.parametrize(
    "quantity", ["x^2 + 1.01*y^2", "vx", "x + y"], ids=["almost the rod", "a velocity", "a sum of positions"]
)
def test_what_the_motion_does_not_keep_is_no_constraint(quantity: str) -> None:
    parts = pendulum(angle=0.7, rate=1.5).parts
    x, y, vx, _ = parts.start
    parts.parameters = {"start": {"x^2 + 1.01*y^2": x**2 + 1.01 * y**2, "vx": vx, "x + y": x + y}[quantity]}
    parts.constraints = [Constraint.from_text(f"{quantity} - start", level="velocity")]
    model = FunctionModel(parts)
    with pytest.raises(
        ConstraintError, match=rf"motion does not keep .*'{re.escape(quantity)}.*' changes at"
    ) as caught:
        build_frame(model, model.start)
    assert max(caught.value.residuals.values()) > 1e-3


def test_a_wrong_constraint_is_found_at_rest_too() -> None:
    """At an equilibrium H f = 0 whatever H is: only points beside it tell."""
    parts = pendulum().parts
    parts.constraints = [Constraint.from_text("x", level="velocity")]
    model = FunctionModel(parts)
    with pytest.raises(ConstraintError, match="motion does not keep"):
        build_frame(model, model.start)


def test_a_conserved_quantity_is_broken_by_the_input() -> None:
    parts = pendulum(angle=0.7, rate=1.5).parts
    parts.constraints = [
        "x^2 + y^2 - L^2",
        Constraint.from_text("(vx^2 + vy^2)/2 + 9.81*y - E", level="velocity", name="energy"),
    ]
    _, y, vx, vy = parts.start
    parts.parameters = {"L": 1.3, "E": (vx**2 + vy**2) / 2 + 9.81 * y}
    model = FunctionModel(parts)
    with pytest.raises(ConstraintError, match="input 'F' moves the model off the constraint 'energy'"):
        build_frame(model, model.start)


def energetic() -> FunctionModel:
    """A pendulum whose energy is declared as if it were a constraint."""
    parts = pendulum(angle=0.7, rate=1.5).parts
    _, y, vx, vy = parts.start
    parts.constraints = ["x^2 + y^2 - L^2", Constraint.from_text("(vx^2 + vy^2)/2 + 9.81*y - E", level="velocity")]
    parts.parameters = {"L": 1.3, "E": (vx**2 + vy**2) / 2 + 9.81 * y}
    parts.inputs = ()
    return FunctionModel(parts)


def test_a_conserved_quantity_without_inputs_is_warned_about() -> None:
    assert "conserved-quantity" in [w.kind for w in fl.linearize(energetic()).warnings]


def test_a_conserved_quantity_is_warned_about_at_every_point() -> None:
    model = energetic()
    for _ in range(3):
        assert "conserved-quantity" in [w.kind for w in fl.linearize(model).warnings]


def crossing() -> FunctionModel:
    """Two branches x = 0 and y = 0 cross at the origin: x y = 0 is singular there."""
    return FunctionModel(
        Parts(["x", "y"], [0.0, 0.0], lambda t, s, u: -s, constraints=[Constraint.from_text("x*y", level="velocity")])
    )


def test_a_singular_configuration_is_refused() -> None:
    model = crossing()
    with pytest.raises(NumericalError, match="singular configuration"):
        build_frame(model, model.start)


def test_a_motion_that_is_blocked_at_second_order_is_not_called_a_crossing() -> None:
    """x^2 + y^2 = 0 leaves no branch at all: x and y are free to first order only."""
    blocked = [Constraint.from_text("x**2 + y**2", level="velocity")]
    model = FunctionModel(Parts(["x", "y"], [0.0, 0.0], lambda t, s, u: -s, constraints=blocked))
    with pytest.raises(NumericalError, match="motion that is free to first order is blocked at second order"):
        build_frame(model, model.start)


def test_the_constraints_that_become_dependent_are_named() -> None:
    parts = crossing().parts
    parts.states, parts.start = ["x", "y", "z"], [0.0, 0.0, 0.0]
    parts.constraints = [Constraint.from_text("z", level="velocity", name="flat"), *parts.constraints]
    with pytest.raises(NumericalError, match=r"only 1 constraints .*, near it 2 \(dependent here: x\*y\)"):
        build_frame(FunctionModel(parts), FunctionModel(parts).start)


def test_two_positions_that_move_alike_share_no_velocity() -> None:
    model = FunctionModel(Parts(["a", "b", "v"], [0.0, 1.0, 2.0], lambda t, s, u: np.array([s[2], s[2], -s[0]])))
    assert kinematic_pairs(model, model.start) == {0: 2}


@pytest.mark.parametrize("still", [0, 2])
def test_noise_at_rest_breaks_no_constraint(still: int) -> None:
    """x = y at rest: of their rates only noise is left, and the rates of others may be zero to the last bit."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        noise = 1e-10 * np.sin(1e11 * (s[0] + s[1]) + np.array([0.0, 2.0]))
        return np.concatenate((noise, np.zeros(still)))

    names, start = ["x", "y", "z", "w"][: 2 + still], [0.5, 0.5, 1.0, 2.0][: 2 + still]
    model = FunctionModel(Parts(names, start, rates, constraints=[Constraint.from_text("x - y", level="velocity")]))
    assert len(build_frame(model, model.start).selection.signals) == 1 + still


# -- assembling the point ---------------------------------------------------------------------------


def test_named_states_are_held_and_the_others_solved_for() -> None:
    model = pendulum(angle=0.7)
    point = operating_point(model, {"x": 0.5, "vx": 0.3, "F": 2.0})
    x, y, vx, vy = point.states
    assert (x, vx) == (0.5, 0.3)
    assert y == pytest.approx(-np.sqrt(1.69 - 0.25), rel=1e-14)
    assert x * vx + y * vy == pytest.approx(0.0, abs=1e-14)
    assert point.inputs.tolist() == [2.0]
    assert point.adjusted > 0.1


def test_inconsistent_start_values_are_refused_with_their_residuals() -> None:
    parts = pendulum(angle=0.7).parts
    parts.parameters = {"L": 1.301}
    with pytest.raises(
        ConstraintError, match=r"'x\^2 \+ y\^2 - L\^2' is -0\.0026.* fl.operating_point.*project=True"
    ) as caught:
        operating_point(FunctionModel(parts))
    assert caught.value.residuals["x^2 + y^2 - L^2"] == pytest.approx(1.3**2 - 1.301**2, rel=1e-6)


def test_the_nearest_consistent_point_on_request() -> None:
    parts = pendulum(angle=0.7).parts
    parts.parameters = {"L": 1.4}
    point = operating_point(FunctionModel(parts), project=True)
    np.testing.assert_allclose(point.states[:2], 1.4 * np.array([np.sin(0.7), -np.cos(0.7)]), rtol=0.02)
    assert np.hypot(*point.states[:2]) == pytest.approx(1.4, rel=1e-14)


def test_a_small_gap_is_projected_and_reported() -> None:
    parts = pendulum(angle=0.7).parts
    parts.start = [parts.start[0] + 1e-8, *parts.start[1:]]
    point = operating_point(FunctionModel(parts))
    assert 1e-9 < point.adjusted < 1e-7


def test_values_that_cannot_be_reached_are_refused() -> None:
    with pytest.raises(ConstraintError, match="cannot be satisfied with x held"):
        operating_point(pendulum(angle=0.7), {"x": 2.0})


def test_a_consistent_start_is_not_touched() -> None:
    model = pendulum(angle=0.7, rate=1.5)
    point = operating_point(model)
    np.testing.assert_array_equal(point.states, model.start.states)
    assert point.adjusted == 0.0


def test_a_start_where_a_gradient_vanishes_is_left() -> None:
    """Hanging at x = 0, the rod's gradient along x is zero: y = -1 is reached with x to one side all the same."""
    point = operating_point(pendulum(), {"y": -1.0})
    x, y, vx, vy = point.states
    assert y == -1.0
    assert abs(x) == pytest.approx(np.sqrt(1.69 - 1.0), rel=1e-12)
    assert (vx, vy) == (pytest.approx(0.0, abs=1e-14), pytest.approx(0.0, abs=1e-14))


def test_accelerations_that_are_rounding_alone_break_no_constraint() -> None:
    """An input that the constraints cancel in some states moves these by rounding; that is no violation."""

    def rates(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        noise = 1e-15 * (u[0] + 10.0)  # what elimination leaves of states that cannot move
        return np.array([x[3], x[4], x[5], u[0], 3 * noise, 2 * noise])

    start = {"a": 0.3, "b": 1.0, "c": 1.0, "va": 0.0, "vb": 0.0, "vc": 0.0}
    model = functions.FunctionModel("held", start, rates, inputs=["F"], constraints=["b - c", "b + 0.5*c - 1.5"])
    assert linearize(model).states.names == ("a", "va")


def test_many_points_are_visited_at_once_where_the_model_takes_batches() -> None:
    model = double_wishbone()
    x, invariants = model.start.states, invariants_of(model)
    X = x + 0.1 * np.random.default_rng(0).standard_normal((5, len(x)))
    visits = []
    residuals = model.constraint_residuals
    model.constraint_residuals = lambda *a: visits.append(a) or residuals(*a)  # type: ignore[method-assign, func-returns-value]
    values = invariants.evaluate_batch(0.0, X)
    assert len(visits) == 1
    np.testing.assert_allclose(values, [invariants.values(0.0, point) for point in X], rtol=1e-13, atol=1e-13)


def test_points_outside_the_domain_are_nan_among_the_others() -> None:
    model = FunctionModel(Parts(["a", "b"], [1.0, 2.0], lambda t, s, u: np.array([s[1], 0.0]), constraints=["log(a)"]))
    values = invariants_of(model).evaluate_batch(0.0, np.array([[1.0, 2.0], [-1.0, 2.0]]))
    assert values[0, 0] == 0.0
    assert np.isnan(values[1]).any()
