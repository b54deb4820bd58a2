"""The second linearization of one model object: faster, with the same matrices, and no more gullible than the first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation
from fmilin.manifold.manifold_verification import recall_facts
from fmilin.manifold.operating_points import assemble_start
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar
from tests.by_hand import FunctionModel as ByHand
from tests.by_hand import Parts

G = 9.81


def rates(_: float, s: FloatArray, u: FloatArray) -> FloatArray:
    """A pendulum of length 1 in Cartesian coordinates, with a force along x."""
    x, y, vx, vy = s
    tension = vx * vx + vy * vy + u[0] * x - G * y
    return np.array([vx, vy, u[0] - tension * x, -G - tension * y])


def pendulum(law: Callable[..., FloatArray] = rates, kind: type[FunctionModel] = FunctionModel) -> FunctionModel:
    return kind(
        "pendulum",
        {"x": 0.0, "y": -1.0, "vx": 0.0, "vy": 0.0},
        law,
        inputs=["F"],
        constraints=["x^2 + y^2 - 1"],
        analytic=True,
    )


class Liar(FunctionModel):
    """Its products are wrong to the right of x = 0.5, by one percent of one entry."""

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        told = super().products(t, x, u, dx, du)
        assert told is not None
        if x[0] > 0.5:
            told.derivatives[2] += 0.01 * G * dx[0]
        return told


@pytest.mark.parametrize("make", [cartesian_pendulum, four_bar, pendulum])
def test_the_second_call_finds_the_matrices_of_a_first_one(make: Callable[[], fl.Model]) -> None:
    model, name = make(), "phi" if make is four_bar else "x"
    first = fl.linearize(model)
    for value in (0.2, 0.5, 0.9):
        values = {name: value, **({"vx": 0.3} if name == "x" else {"w": 1.5})}
        point = fl.operating_point(model, values)
        warm, cold = fl.linearize(model, point), fl.linearize(make(), point)
        assert warm.method.evaluations <= 0.6 * cold.method.evaluations
        assert warm.method.evaluations <= 0.6 * first.method.evaluations
        for warm_matrix, cold_matrix in ((warm.A, cold.A), (warm.B, cold.B), (warm.C, cold.C), (warm.T, cold.T)):
            assert np.array_equal(warm_matrix, cold_matrix)
        assert warm.accuracy.A < 1e-7
        assert [w.kind for w in warm.warnings] == [w.kind for w in cold.warnings]


def test_products_that_are_wrong_elsewhere_are_found() -> None:
    model = pendulum(kind=Liar)
    assert fl.linearize(model).method.derivatives == "exact"
    point = fl.operating_point(model, {"x": 0.6})
    lin = fl.linearize(model, point)
    assert "directional-derivative" in [w.kind for w in lin.warnings]
    assert np.abs(lin.A - fl.linearize(pendulum(), point).A).max() < 1e-6


def test_a_kink_elsewhere_is_found() -> None:
    def law(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        vx, vy = s[2:]
        pushed = np.array([u[0] + (0.5 * (s[0] - 0.6) if s[0].real > 0.6 else 0.0)])
        return rates(t, np.array([*s[:2], vx, vy]), pushed)

    model = pendulum(law)
    fl.linearize(model)
    fl.linearize(model, fl.operating_point(model, {"x": 0.3}))
    with pytest.raises(fl.NumericalError, match="kink"):
        fl.linearize(model, fl.operating_point(model, {"x": 0.6}))


def rubbing(friction: float) -> ByHand:
    """x'' = -x - friction |x'|, whose directional derivatives are exact on both sides, and the mean of both at rest."""
    return ByHand(
        Parts(
            ["x", "v"],
            [0.0, 0.0],
            lambda t, s, u: np.array([s[1], -s[0] - friction * abs(s[1])]),
            jacobians=lambda t, s, u: (np.array([[0.0, 1.0], [-1.0, -friction * np.sign(s[1])]]), np.zeros((2, 0))),
        )
    )


@pytest.mark.parametrize("friction", [1.0, 0.02])
@pytest.mark.parametrize("before", [[], [0.5], [0.5, -0.4]])
def test_a_kink_that_no_central_difference_shows_is_refused_at_any_call(before: list[float], friction: float) -> None:
    """At rest the mean of both slopes is what products and a central difference agree on: no linear model of either."""
    model = rubbing(friction)
    for speed in before:
        lin = fl.linearize(model, fl.operating_point(model, {"v": speed}))
        np.testing.assert_array_equal(lin.A, [[0.0, 1.0], [-1.0, -friction * np.sign(speed)]])
    slopes = rf"d der\(v\) / d v is {friction:g} on the left and -{friction:g} on the right"
    with pytest.raises(fl.NumericalError, match=f"kink at the point: {slopes}"):
        fl.linearize(model, model.start)


def swinging(part: float) -> ByHand:
    """x'' = -sin(x) - x'/4, whose directional derivative along x is wrong by a part of itself right of x = 0.5."""

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        wrong = 1.0 + part * (s[0] > 0.5)
        return np.array([[0.0, 1.0], [-np.cos(s[0]) * wrong, -0.25]]), np.zeros((2, 0))

    return ByHand(
        Parts(["x", "v"], [0.0, 0.0], lambda t, s, u: np.array([s[1], -np.sin(s[0]) - s[1] / 4]), jacobians=jacobians)
    )


@pytest.mark.parametrize("part", [1e-2, 1e-4, 1e-5, 1e-6])
@pytest.mark.parametrize("called_before", [False, True])
def test_products_that_are_a_little_wrong_are_found(part: float, *, called_before: bool) -> None:
    """A part in a million is a thousand times what a quick difference of a smooth function leaves open."""
    model = swinging(part)
    if called_before:
        assert fl.linearize(model).method.derivatives == "exact"
    lin = fl.linearize(model, fl.operating_point(model, {"x": 0.8}))
    assert "directional-derivative" in [w.kind for w in lin.warnings]
    np.testing.assert_allclose(lin.A, [[0.0, 1.0], [-np.cos(0.8), -0.25]], atol=1e-9)


@pytest.mark.parametrize("part", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("called_before", [False, True])
def test_products_that_are_wrong_beside_noise_are_found(part: float, *, called_before: bool) -> None:
    """Noise of 1e-11 beside a slope of 1, then beside a rate of 1,000: one direction could tell too little of it."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([t - s[0] + 1e-11 * np.sin(1e16 * s[0])])

    def jacobians(t: float, s: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.array([[-1.0 - part * (t > 0)]]), np.zeros((1, 0))

    model = ByHand(Parts(["x"], [0.5], rates, jacobians=jacobians))
    if called_before:
        assert fl.linearize(model).method.derivatives == "exact"
    lin = fl.linearize(model, fl.OperatingPoint(1000.0, np.array([0.5]), np.zeros(0)))
    assert "directional-derivative" in [w.kind for w in lin.warnings]
    assert lin.A[0, 0] == pytest.approx(-1.0, abs=1e-7)


@pytest.mark.parametrize("strength", [0.1, 1e-3, 1e-4])
def test_a_motion_that_leaves_the_manifold_elsewhere_is_refused(strength: float) -> None:
    def law(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        wind = strength if s[0].real > 0.5 else 0.0
        moved: FloatArray = rates(t, s, u) + np.array([0.0, 0.0, wind, 0.0])
        return moved

    model = pendulum(law)
    fl.linearize(model)
    point = fl.operating_point(model, {"x": 0.3, "vx": 0.2})
    fl.linearize(model, point)
    with pytest.raises(fl.ConstraintError, match="does not keep these constraints"):
        fl.linearize(model, fl.operating_point(model, {"x": 0.6, "vx": 0.2}))


@pytest.mark.parametrize("part", [1.0, 1e-2, 1e-4])
def test_an_input_that_leaves_the_manifold_elsewhere_is_refused(part: float) -> None:
    def law(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        lifted = u[0] * (part if s[0].real > 0.5 else 0.0)
        moved: FloatArray = rates(t, s, u) + np.array([0.0, 0.0, 0.0, lifted])
        return moved

    model = pendulum(law)
    fl.linearize(model)
    with pytest.raises(fl.ConstraintError, match="The input 'F' moves the model off"):
        fl.linearize(model, fl.operating_point(model, {"x": 0.6}))


def test_a_singular_configuration_elsewhere_is_refused() -> None:
    model = four_bar(singular=True)
    singular = fl.operating_point(model)
    fl.linearize(model, fl.operating_point(model, {"phi": 1.0}))
    with pytest.raises(fl.NumericalError, match="singular configuration"):
        fl.linearize(model, singular)


def test_what_a_point_contradicts_is_forgotten() -> None:
    """A model with a switch inside: a rate that was the speed itself no longer is."""
    gear = [1.0]

    def law(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return rates(t, s, u) * gear[0]

    model = pendulum(law)
    moving = fl.operating_point(model, {"x": 0.1, "vx": 0.5})
    fl.linearize(model, moving)
    base = model.evaluate(moving.time, moving.states, moving.inputs)
    assert recall_facts(model, moving, base).pairs == {0: 2, 1: 3}
    gear[0] = 2.0
    base = model.evaluate(moving.time, moving.states, moving.inputs)
    assert recall_facts(model, moving, base).pairs is None


class Switched(ByHand):
    """Starts on a circle whose radius depends on its mode."""

    mode = "small"

    def discrete_states(self) -> dict[str, str]:
        return {"mode": self.mode}


def test_the_start_is_assembled_anew_in_another_mode_only() -> None:
    switched = Switched(Parts(["x", "y"], [1.0, 0.0], lambda t, s, u: np.array([-s[1], s[0]])))
    first = assemble_start(switched)
    assert assemble_start(switched) is first
    switched.mode = "large"
    second = assemble_start(switched)
    assert second is not first
    assert assemble_start(switched) is second
