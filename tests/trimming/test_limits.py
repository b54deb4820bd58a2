"""What is just no equilibrium, no steady motion or no family any more."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import trim
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts, pendulum


def rates_at(model: fl.Model, point: fl.OperatingPoint) -> FloatArray:
    return model.evaluate(point.time, point.states, point.inputs).derivatives


@pytest.mark.parametrize("angle", [1e-6, 1e-8, 1e-9])
def test_a_guess_close_to_an_equilibrium_is_not_taken_for_one(angle: float) -> None:
    model = pendulum(angle=angle)
    point = trim(model)
    assert np.abs(rates_at(model, point)).max() <= 1e-10
    assert point.states[0] == pytest.approx(0.0, abs=1e-11)


def test_noise_excuses_no_motion_that_is_larger_than_noise_can_be() -> None:
    """x' is never below 2e-6, with noise of 1e-6: ten times the noise would excuse it, and the answer is no."""
    model = FunctionModel(Parts(["x"], [0.4], lambda t, s, u: np.array([3e-6 + 1e-6 * np.sin(1e13 * s[0])])))
    with pytest.raises(fl.NumericalError, match="no equilibrium was found"):
        trim(model)


def test_what_is_rounding_of_a_state_is_kept_where_the_model_minds() -> None:
    """A trace of 5e-16 lets the reaction run; without it there is another equilibrium, and this point is none."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([0.0, (1.0 if s[0] > 0 else 2.0) - s[1]])

    model = FunctionModel(
        Parts(
            ["trace", "speed"],
            [5e-16, 0.3],
            rates,
            jacobians=lambda t, s, u: (np.array([[0.0, 0.0], [0.0, -1.0]]), np.zeros((2, 0))),
        )
    )
    point = trim(model)
    assert np.abs(rates_at(model, point)).max() <= 1e-10


@pytest.mark.parametrize("slope", [1.0, 1e-3, 1e-5])
def test_a_rest_that_the_motion_ends_is_no_steady_one(slope: float) -> None:
    """v' = slope x vanishes at x = 0 only, where x passes by: its change says so."""
    model = OdeModel("ramp", {"x": "1 + 0*v", "v": "k*x - v"}, parameters={"k": slope}, start={"x": 0.1})
    with pytest.raises(fl.NumericalError, match="no steady motion in which only x may move"):
        trim(model, steady=["x"])


@pytest.mark.parametrize("speed", [1.0, 1e-4, 1e-7])
def test_a_slow_motion_is_no_rest(speed: float) -> None:
    model = OdeModel("cruise", {"x": "c + 0*v", "v": "-v"}, parameters={"c": speed}, start={"v": 0.5})
    report = trim(model, steady=["x"]).report
    assert report.moving == ("x",)
    assert not report.is_equilibrium


@pytest.mark.parametrize(("part", "varying"), [(0.1, ("x",)), (1e-4, ("x",)), (1e-9, ()), (0.0, ())])
def test_a_rate_that_hardly_varies_is_said_to_vary(part: float, varying: tuple[str, ...]) -> None:
    model = OdeModel("gait", {"x": "1 + c*sin(x)", "v": "-v"}, parameters={"c": part}, start={"v": 0.5})
    assert trim(model, steady=["x"], fixed={"x": 0.3}).report.varying == varying


@pytest.mark.parametrize("slope", [1.0, 1e-2, 1e-3])
def test_a_direction_that_the_products_forget_is_no_family(slope: float) -> None:
    """The model's products say that nothing depends on x; it goes back to 1 all the same, slowly."""
    model = FunctionModel(
        Parts(
            ["x", "v"],
            [1.0, 0.0],
            lambda t, s, u: np.array([slope * (1.0 - s[0]), -s[1]]),
            jacobians=lambda t, s, u: (np.array([[0.0, 0.0], [0.0, -1.0]]), np.zeros((2, 0))),
        )
    )
    point = trim(model)
    assert point.report.free_directions == ()
    assert point.states.tolist() == [1.0, 0.0]
