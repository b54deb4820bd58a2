"""The reference systems through the general linearizer, by exact products and by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel, Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.systems import test_four_bar, test_pendulum, test_rolling_disk
from tests.systems.oracle import relative_error

Derivatives = Literal["exact", "differences"]
ALLOWED = {"exact": 1e-10, "differences": 1e-7}

both = pytest.mark.parametrize("derivatives", ["exact", "differences"])


def check(lin: LinearModel, derivatives: Derivatives, A: FloatArray, B: FloatArray) -> None:
    """The errors of A and B are as small as promised, and the estimates that are reported cover them."""
    for found, expected, estimate in ((lin.A, A, lin.accuracy.A), (lin.B, B, lin.accuracy.B)):
        error = relative_error(found, expected)
        assert error <= ALLOWED[derivatives]
        assert error <= 10 * estimate


def at_states(model: Model, states: FloatArray) -> OperatingPoint:
    return OperatingPoint(0.0, states, model.start.inputs)


@both
@pytest.mark.parametrize(("angle", "rate"), test_pendulum.POINTS)
def test_pendulum_at_rest_and_moving(derivatives: Derivatives, angle: float, rate: float) -> None:
    length, mass, gravity = test_pendulum.L, test_pendulum.M, test_pendulum.G
    model = cartesian_pendulum(length, mass, gravity, angle=angle, rate=rate)
    lin = fl.linearize(model, independent=["x", "vx"], derivatives=derivatives)
    check(lin, derivatives, *test_pendulum.closed_form(angle, rate))


@both
@pytest.mark.parametrize("options", [{}, {"loops": 2}, {"damping": 1.0}, {"branch": "hanging"}, {"loops": 6}])
def test_four_bar_at_its_equilibria(derivatives: Derivatives, options: dict[str, Any]) -> None:
    model = four_bar(**options)
    N, c = options.get("loops", 1), options.get("damping", 0.0)
    lin = fl.linearize(model, derivatives=derivatives)
    assert lin.states.names == ("phi", "w")
    check(lin, derivatives, *test_four_bar.closed_form(N, c, float(lin.y0[0]), 0.0))
    np.testing.assert_allclose(lin.C, [[1, 0], [0, 1], [np.cos(lin.y0[0]), 0]], atol=1e-8)


@both
@pytest.mark.parametrize(("phi", "w"), [(2.0, 0.7), (1.1, 2.0), (-1.2, -3.0)])
def test_four_bar_in_motion(derivatives: Derivatives, phi: float, w: float) -> None:
    model = four_bar(2, damping=0.8)
    point = at_states(model, test_four_bar.posture(2, phi, w))
    lin = fl.linearize(model, point, independent=["phi", "w"], derivatives=derivatives)
    check(lin, derivatives, *test_four_bar.closed_form(2, 0.8, phi, w))


@both
@pytest.mark.parametrize("speed", test_rolling_disk.UPRIGHT)
def test_upright_disk(derivatives: Derivatives, speed: float) -> None:
    model = rolling_disk(speed)
    lin = fl.linearize(model, derivatives=derivatives)
    assert lin.states.names == test_rolling_disk.Y
    check(lin, derivatives, *test_rolling_disk.slopes(test_rolling_disk.independent(model), 1.0, 1.0, 1.0))


@both
@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize(("speed", "lean"), test_rolling_disk.TURNS)
def test_leaning_disk(derivatives: Derivatives, speed: float, lean: float, slow: int) -> None:
    model = test_rolling_disk.steady(speed, lean, slow)
    M, R, G = test_rolling_disk.M, test_rolling_disk.R, test_rolling_disk.G
    lin = fl.linearize(model, derivatives=derivatives)
    check(lin, derivatives, *test_rolling_disk.slopes(test_rolling_disk.independent(model), M, R, G))


@pytest.mark.parametrize(
    ("make", "order"), [(cartesian_pendulum, 2), (four_bar, 2), (lambda: four_bar(3), 2), (rolling_disk, 8)]
)
def test_the_order_is_found_from_the_constraints(make: Callable[[], Model], order: int) -> None:
    lin = fl.linearize(make())
    assert lin.A.shape == (order, order)
    assert lin.accuracy.constraint_residual < 1e-12
    assert lin.method.derivatives == "exact"


def test_the_singular_four_bar_is_refused() -> None:
    with pytest.raises(fl.NumericalError, match="singular"):
        fl.linearize(four_bar(singular=True))
