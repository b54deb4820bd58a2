"""Requests that contradict themselves, and problems without a solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import trim, trim_each
from fmilin.model.evaluator import PointEvaluator
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum, four_bar
from fmilin.trimming.damped_newton import wake_inputs
from fmilin.trimming.failures import TrimError
from fmilin.trimming.search_algorithm import make_equations
from fmilin.trimming.trim_request import TrimRequest
from fmilin.trimming.unknowns import assemble_guess
from tests.by_hand import FunctionModel, Parts, pendulum

G = 9.81


def test_an_inconsistent_request_names_what_remains_and_what_would_help() -> None:
    with pytest.raises(TrimError, match=r"no equilibrium was found.*der\(vx\) = -4\.2.*Freeing 'F'") as failure:
        trim(cartesian_pendulum(), fixed={"x": 0.5})
    error = failure.value
    assert error.exit_status == 5
    # what remains is the tangential acceleration g sin(30 degrees), along (cos 30, sin 30)
    c, s = np.sqrt(0.75), 0.5
    assert error.residuals == pytest.approx({"der(vx)": -G * s * c, "der(vy)": -G * s * s}, rel=1e-6)
    assert error.point["x"] == 0.5
    assert error.point["y"] == pytest.approx(-c)


@pytest.mark.parametrize("effect", ["u", "max(u - 0.01, 0) + min(u + 0.01, 0)"], ids=["linear", "behind a dead zone"])
def test_a_rate_that_only_a_fixed_input_affects_names_the_input(effect: str) -> None:
    with pytest.raises(TrimError, match="Freeing 'u' would let it vanish"):
        trim(OdeModel("pushed", {"v": f"1 + {effect}"}, inputs=["u"]))


@pytest.mark.parametrize(("effect", "is_dead"), [("u^2", False), ("max(u - 0.01, 0)", True)])
def test_only_inputs_in_a_dead_zone_are_taken_out_of_it(effect: str, is_dead: bool) -> None:
    model = OdeModel("none", {"x": f"1 + x + {effect}"}, inputs=["u"], start={"u": 0.005})
    request = TrimRequest(free=("u",)).check(model)
    equations = make_equations(assemble_guess(PointEvaluator(model), request, {}, anywhere=True)[0], request)
    assert (wake_inputs(equations, equations.unknowns.z0) is not None) is is_dead


def test_a_point_that_no_configuration_has_leaves_the_constraint() -> None:
    with pytest.raises(TrimError, match=r"the constraint 'rod length' at 0\.625 instead of 0") as failure:
        trim(cartesian_pendulum(), fixed={"x": 1.5})
    assert failure.value.residuals["rod length"] == pytest.approx(0.625)


def test_a_bound_in_the_way_is_named() -> None:
    with pytest.raises(TrimError, match="with F = 1 at a bound"):
        trim(cartesian_pendulum(), fixed={"x": 0.5}, free=["F"], bounds={"F": (-1.0, 1.0)})


def test_a_fixed_speed_leaves_all_positions_moving() -> None:
    with pytest.raises(TrimError, match=r"der\(x0\) = -0\.39\d* m/s instead of 0; .*; and \d more") as failure:
        trim(four_bar(), fixed={"w": 0.5})
    assert failure.value.residuals["der(phi)"] == pytest.approx(0.5)


def test_no_equilibrium_at_all() -> None:
    model = OdeModel("runaway", {"x": "v", "v": "1 + x^2"})
    with pytest.raises(TrimError, match=r"der\(v\) = 1 instead of 0"):
        trim(model)
    with pytest.raises(TrimError, match="no equilibrium"):
        trim_each(model, [{"x": 1.0}, {"x": -3.0}])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"fixed": {"xx": 1.0}},
            r"'xx' is not a state, an input, a parameter, an output or another",
        ),
        ({"steady": ["F"]}, "'F' is not a state of the model"),
        ({"free": ["force"]}, "'force' is not a state, an input or a parameter"),
        ({"fixed": {"F": 1.0}, "free": ["F"]}, "'F' is both fixed and free"),
        ({"fixed": {"x": 0.1}, "bounds": {"x": (0.0, 1.0)}}, "'x' is both fixed and bounded"),
        ({"bounds": {"F": (0.0, 1.0)}}, "'F' has bounds but is fixed"),
        ({"bounds": {"y": (1.0, 1.0)}}, "the first must be the smaller one"),
        ({"guess": {"F": 1.0}}, "'F' is fixed at its value, so it needs no guess"),
        ({"guess": {"x": 0.1}, "fixed": {"x": 0.1}}, "'x' is fixed, so it needs no guess"),
        ({"fixed": {"x": float("nan")}}, "'x' is not a number"),
        ({"time": float("inf")}, "The time inf is not finite"),
    ],
)
def test_requests_that_contradict_themselves(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(fl.UsageError, match=message):
        trim(cartesian_pendulum(), **request_)


def test_no_guess_at_all() -> None:
    with pytest.raises(fl.UsageError, match="needs at least one guess"):
        trim_each(cartesian_pendulum(), [])


def test_a_source_that_cannot_change_its_parameters_says_so() -> None:
    with pytest.raises(fl.UnknownNameError, match="its parameters cannot be changed after loading"):
        trim(pendulum(), free=["L"])
    with pytest.raises(fl.UsageError, match=r"The parameters of 'by hand' \(L\) cannot be changed after loading"):
        pendulum().with_parameters({"L": 2.0})
    assert pendulum().with_parameters({}).states.names == ("x", "y", "vx", "vy")


def test_a_guess_where_the_model_is_not_defined() -> None:
    model = OdeModel("root", {"x": "-sqrt(x) - 1"}, start={"x": -100.0})
    with pytest.raises(fl.NumericalError, match=r"not defined where the search starts: 'x' is not a number there"):
        trim(model)


def test_nan_in_half_the_neighbourhood_is_walked_around() -> None:
    """log(x) is not defined left of 0, and the equilibrium is close to it."""
    point = trim(OdeModel("log", {"x": "-log(x) - 5"}, start={"x": 0.02}))
    assert point.states[0] == pytest.approx(np.exp(-5), rel=1e-10)


def test_a_crash_is_not_taken_for_a_missing_number() -> None:
    def crash(*_: object) -> np.ndarray:
        raise fl.ModelCrashError("gone")

    with pytest.raises(fl.ModelCrashError, match="gone"):
        trim(FunctionModel(Parts(["x"], [1.0], crash)))


@pytest.mark.parametrize(
    ("drag", "rests"), [(5.0, True), (30.0, False)], ids=["26 times the square", "901 times the square"]
)
def test_the_compromise_rests_unless_that_leaves_ten_times_as_much(drag: float, rests: bool) -> None:
    """x' = v, v' = 1 - b v: at rest 1 is left, at v = b/(1 + b^2) only 1/sqrt(1 + b^2)."""
    with pytest.raises(TrimError) as failure:
        trim(OdeModel("falling", {"x": "v", "v": f"1 - {drag}*v"}))
    left = failure.value.residuals
    if rests:
        assert "der(x)" not in left  # a few millionths are not worth saying
        assert left["der(v)"] == pytest.approx(1.0, rel=1e-3)
    else:
        assert left["der(x)"] == pytest.approx(drag / (1 + drag**2), rel=1e-6)
