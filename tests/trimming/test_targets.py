"""Operating points by what should come out: closed forms of outputs, rates, bounds, preferences; what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import atan, cos, sin, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import FunctionModel, OdeModel
from fmilin.signals import Signal, Signals
from fmilin.systems import four_bar
from tests.cli.conftest import fmus, shell  # noqa: F401 - a fixture

G = 9.81


def tank() -> OdeModel:
    """Torricelli: a tank of 2 m2 with an outlet of a m2."""
    return OdeModel(
        "tank",
        {"h": f"(q - a*sqrt({2 * G}*h))/2"},
        inputs=["q"],
        parameters={"a": 0.01},
        outputs={"flow": f"a*sqrt({2 * G}*h)"},
        start={"h": 1.0},
    )


def car(*, measured: bool = False) -> fl.Model:
    """A point that is steered: u along its heading, held back by drag."""
    rates = {"x": "u*cos(psi)", "y": "u*sin(psi)", "psi": "r", "r": "8*(steer - r)", "u": "thrust - 0.02*u^2"}
    if not measured:
        return OdeModel("car", rates, inputs=["thrust", "steer"], outputs={"ay": "u*r"}, start={"u": 5.0})

    def slopes(_t: float, x: Any, u: Any) -> Any:
        _, _, psi, r, speed = x
        return np.array([speed * cos(psi), speed * sin(psi), r, 8 * (u[1] - r), u[0] - 0.02 * speed**2])

    states = Signals(Signal(n, start=5.0 if n == "u" else 0.0) for n in rates)
    return FunctionModel(
        "car",
        states,
        slopes,
        inputs=Signals([Signal("thrust"), Signal("steer")]),
        outputs={"ay": lambda _t, x, _u: x[4] * x[3]},
    )


def motors() -> OdeModel:
    """Two motors on one shaft, one with a gear of two."""
    return OdeModel(
        "motors",
        {"w": "a + 2*b - w"},
        inputs=["a", "b"],
        outputs={"y": "2*w", "power": "a^2 + b^2", "wave": "sin(a)", "three": "3"},
        start={"w": 1.0},
    )


class TestTargets:
    def test_a_flow_asks_for_a_level(self) -> None:
        point = fl.trim(tank(), fixed={"flow": 0.1}, free=["q"])
        assert point.states[0] == pytest.approx((0.1 / 0.01) ** 2 / (2 * G), rel=1e-12)
        assert point.inputs[0] == pytest.approx(0.1, rel=1e-12)
        assert point.report.targets == {"flow": pytest.approx(0.1)}
        assert point.report.distance["h"] < 1e-9

    def test_and_for_an_outlet(self) -> None:
        point = fl.trim(tank(), fixed={"flow": 0.1, "q": 0.1, "h": 2.0}, free=["a"])
        assert point.parameters["a"] == pytest.approx(0.1 / sqrt(2 * G * 2.0), rel=1e-12)

    def test_a_rate_lets_its_state_move(self) -> None:
        point = fl.trim(car(), fixed={"der(psi)": 0.3, "ay": 1.2}, free=["thrust", "steer"], steady=["x", "y"])
        assert dict(zip(("r", "u"), point.states[3:], strict=True)) == pytest.approx({"r": 0.3, "u": 4.0}, rel=1e-12)
        assert point.inputs == pytest.approx([0.02 * 16, 0.3], rel=1e-12)
        assert point.report.rate("psi") == pytest.approx(0.3, rel=1e-12)

    def test_targets_of_a_model_with_measured_slopes(self) -> None:
        request: dict[str, Any] = {"fixed": {"der(psi)": 0.3, "ay": 1.2}, "free": ["thrust", "steer"]}
        point = fl.trim(car(measured=True), steady=["x", "y"], **request)
        assert point.states[4] == pytest.approx(4.0, abs=point.report.distance["u"])
        assert point.report.distance["u"] < 1e-6

    def test_a_rate_that_no_steady_motion_has_is_of_an_instant(self) -> None:
        """A mass on a spring at one speed: x passes through, v is at rest where the force is there."""
        model = OdeModel("spring", {"x": "v", "v": "F - x"}, inputs=["F"], start={"x": 0.5})
        point = fl.trim(model, fixed={"der(x)": 2.0, "x": 0.5}, free=["F"])
        assert point.states[1] == pytest.approx(2.0)
        assert point.inputs[0] == pytest.approx(0.5)
        assert [r.kind for r in point.report.remarks if r.kind == "unsteady"] == ["unsteady"]

    def test_a_target_beyond_where_the_model_is_defined(self) -> None:
        """Two tanks below each other: no inflow makes a level negative, and the closest is none."""
        model = OdeModel(
            "tanks",
            {"h1": "q - sqrt(h1)", "h2": "sqrt(h1) - sqrt(h2)"},
            inputs=["q"],
            outputs={"level": "h2"},
            start={"h1": 1.0, "h2": 1.0},
        )
        with pytest.raises(fl.NumericalError, match=r"'level' = -1 prevents the solution: .* the closest value is 0\."):
            fl.trim(model, fixed={"level": -1.0}, free=["q"])

    def test_an_output_on_the_manifold(self) -> None:
        """The height of a four-bar's coupler, held by a torque: the closed loop decides about the angle."""
        model = four_bar()
        there = fl.trim(model, fixed={"phi": 1.2}, free=["torque"])
        height = float(model.evaluate(0.0, there.states, there.inputs).outputs[2])
        point = fl.trim(model, fixed={"coupler.y": height}, free=["torque"], guess={"phi": 1.0})
        assert point.states[4] == pytest.approx(1.2, abs=1e-9)
        assert point.inputs == pytest.approx(there.inputs, abs=1e-8)

    def test_an_fmu_s_output_and_rate_on_the_command_line(self, fmus: Path, tmp_path: Path) -> None:  # noqa: F811
        model = four_bar()
        there = fl.trim(model, fixed={"phi": 1.2}, free=["torque"])
        height = float(model.evaluate(0.0, there.states, there.inputs).outputs[2])
        fixed = ["--fix", f"coupler.y={height!r},der(phi)=0", "--guess", "phi=1.0", "--free", "torque"]
        done = shell(["trim", fmus / "four_bar.fmu", *fixed, "--json"], tmp_path)
        assert done.status == 0, done.err
        assert json.loads(done.out)["states"]["phi"] == pytest.approx(1.2, abs=1e-9)


class TestPreferences:
    def test_the_smallest_sum_of_squares(self) -> None:
        """min a^2 + b^2 with a + 2 b = 5: (1, 2), and d min/dy = 2 y/20."""
        point = fl.trim(motors(), fixed={"y": 10.0}, free=["a", "b"], minimize="a^2 + b^2")
        assert point.inputs == pytest.approx([1.0, 2.0], rel=1e-10)
        assert point.report.preferred == pytest.approx(5.0)
        assert point.report.multipliers == {"y": pytest.approx(1.0)}
        assert not point.report.free_directions
        assert max(point.report.distance.values()) < 1e-9

    def test_a_bound_that_binds_has_a_price(self) -> None:
        """B <= 1.5 leaves a = 2; the price is d/db ((5 - 2 b)^2 + b^2) = -4 (5 - 2 b) + 2 b = -5."""
        request: dict[str, Any] = {"fixed": {"y": 10.0}, "free": ["a", "b"], "minimize": "power"}
        point = fl.trim(motors(), bounds={"b": (-1.0, 1.5)}, **request)
        assert point.inputs == pytest.approx([2.0, 1.5], rel=1e-12)
        assert point.report.multipliers["b"] == pytest.approx(-5.0)
        assert point.report.at_bounds == ("b",)
        loose = fl.trim(motors(), bounds={"b": (-1.0, 2.5)}, **request)
        assert set(loose.report.multipliers) == {"y"}

    def test_a_bound_of_an_output_is_kept(self) -> None:
        point = fl.trim(motors(), fixed={"y": 10.0}, free=["a", "b"], bounds={"power": (7.0, 20.0)})
        a, b = point.inputs
        assert a + 2 * b == pytest.approx(5.0)
        assert a**2 + b**2 >= 7.0 - 1e-9

    def test_as_near_as_possible(self) -> None:
        """Minimize ((y - 10)/10)^2 + ((p - 3)/3)^2 along the best split b = 2 a, p = y^2/20."""
        point = fl.trim(motors(), near={"y": 10.0, "power": 3.0}, free=["a", "b"])
        roots = np.roots([1 / 900, 0, 1 / 50 - 1 / 15, -1 / 5])
        y = float(max(roots.real[abs(roots.imag) < 1e-9]))
        assert point.report.targets["y"] == pytest.approx(y, rel=1e-9)
        assert point.report.missed == {"y": pytest.approx(y - 10), "power": pytest.approx(y**2 / 20 - 3)}

    def test_the_least_fuel_of_a_turn_on_the_manifold(self) -> None:
        """Of all rests of a four-bar the least torque squared is none: an equilibrium."""
        point = fl.trim(four_bar(), guess={"phi": 2.0}, free=["torque"], minimize="torque^2")
        assert point.inputs[0] == pytest.approx(0.0, abs=1e-6)
        assert point.states[4] == pytest.approx(2.234331019017586, abs=1e-6)

    def test_what_has_no_least_value(self) -> None:
        with pytest.raises(fl.NumericalError, match=r"'a' has no least value: 'a' grows without limit.*bounds={'a': "):
            fl.trim(motors(), fixed={"y": 10.0}, free=["a", "b"], minimize="a")


class TestWhatCannotBe:
    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"fixed": {"three": 2.0}, "free": ["a"]}, r"No free quantity affects 'three'.*the closest value is 3\."),
            (
                {"fixed": {"wave": 2.0}, "free": ["a", "b"]},
                r"'wave' = 2 prevents .* closest value is 1\.",
            ),
            (
                {"fixed": {"y": 10.0, "power": 2.0}, "free": ["a", "b"]},
                rf"'y' = 10 prevents .* value is {sqrt(40):.6g}\..*'power' = 2 prevents .* value is 5\.",
            ),
            (
                {"fixed": {"y": 10.0, "power": 10.0, "wave": 0.3}, "free": ["a", "b"]},
                r"3 targets have only 2 free quantities\.",
            ),
            (
                {"fixed": {"y": 10.0}, "free": ["a"], "bounds": {"a": (-9.0, 3.0)}},
                r"a = 3 at a bound.*closest value is 6\.",
            ),
            (
                {"fixed": {"y": 10.0}, "free": ["a", "b"], "bounds": {"power": (0.0, 3.0)}},
                r"No point at which 'power' keeps its bound 3 was.*bound 'power' = 3 prevents .* closest value is 5\.",
            ),
        ],
    )
    def test_is_said_with_how_near_one_can_come(self, request_: dict[str, Any], message: str) -> None:
        with pytest.raises(fl.NumericalError, match=message) as refused:
            fl.trim(motors(), **request_)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"fixed": {"yy": 1.0}}, r"'yy' is not a state, .* Did you mean 'y'"),
            ({"fixed": {"y": 1.0}, "bounds": {"y": (0, 2)}}, r"'y' is both fixed and bounded"),
            ({"fixed": {"y": 1.0}, "near": {"y": 2.0}}, r"'y' is both fixed and wished for"),
            ({"near": {"a": 2.0}}, r"'a' is preferred but is fixed"),
            ({"near": {"y": 2.0}, "minimize": "a"}, r"contradict each other"),
            ({"minimize": "a +"}, r"not a complete arithmetic expression"),
            ({"minimize": "aa"}, r"'aa' is not"),
            ({"fixed": {"der(x)": 2.0}}, r"'der\(x\)' is not"),
            ({"fixed": {"y": float("nan")}}, r"'y' is not a number \(NaN\): give a finite number"),
        ],
    )
    def test_requests_that_are_wrong(self, request_: dict[str, Any], message: str) -> None:
        with pytest.raises(fl.UsageError, match=message):
            fl.trim(motors(), **request_)


def test_wrong_targets_on_the_command_line(fmus: Path, tmp_path: Path) -> None:  # noqa: F811
    for fixed, status, message in (
        ("coupler.yy=1", 2, "Did you mean 'coupler.y'"),
        ("coupler.y=9", 5, "'coupler.y' = 9 m prevents"),
    ):
        done = shell(["trim", fmus / "four_bar.fmu", "--fix", fixed, "--free", "torque"], tmp_path)
        assert done.status == status, done.err
        assert done.is_one_paragraph()
        assert message in done.err


@pytest.mark.parametrize("name", ["mode", "switches"])
def test_a_variable_that_is_no_continuous_one(zoo: Callable[[str], Path], name: str, tmp_path: Path) -> None:
    with fl.load(zoo("relay")) as relay, pytest.raises(fl.UsageError, match=f"'{name}' changes at events only"):
        fl.trim(relay, fixed={name: 1.0})
    done = shell(["trim", zoo("relay"), "--fix", f"{name}=1"], tmp_path)
    assert done.status == 2, done.err
    assert done.is_one_paragraph()


def test_a_sweep_over_what_is_held_with_a_target() -> None:
    family = fl.sweep(motors(), {"b": [0.0, 1.0, 2.0]}, trim=fl.TrimRequest(fixed={"y": 10.0}, free=["a"]))
    assert [family[i].point.inputs["a"] for i in range(3)] == pytest.approx([5.0, 3.0, 1.0])


def test_the_bank_of_a_coordinated_turn() -> None:
    """tan(bank) = V w / g, from the rate of heading and no sideways force."""
    model = OdeModel(
        "turn",
        {"psi": "L*sin(bank)/V", "V": "thrust - 0.01*V^2", "h": "w", "w": f"L*cos(bank) - {G} - w"},
        inputs=["thrust", "L", "bank"],
        outputs={"load": f"L/{G}"},
        start={"V": 50.0},
    )
    point = fl.trim(model, fixed={"der(psi)": 0.2, "V": 60.0}, free=["thrust", "L", "bank"], guess={"L": 9.0})
    assert point.inputs[2] == pytest.approx(atan(60 * 0.2 / G), rel=1e-10)
    climbing = fl.trim(
        model,
        fixed={"der(h)": 5.0, "load": 1.6, "V": 60.0},
        free=["thrust", "L", "bank"],
        guess={"bank": 0.5},
        steady=["psi"],
    )
    assert sin(climbing.inputs[2]) > 0
    assert cos(climbing.inputs[2]) == pytest.approx((G + 5) / (1.6 * G), rel=1e-10)


def test_what_a_search_says_stands_in_the_document(tmp_path: Path) -> None:
    request = ["--fix", "coupler.y=0.9", "--free", "torque", "--guess", "phi=1.0", "--minimize", "torque^2"]
    for suffix in ("json", "toml"):
        done = shell(["trim", "fmilin.systems:four_bar", *request, "-o", f"point.{suffix}"], tmp_path)
        assert done.status == 0, done.err
        again = shell(["linearize", "fmilin.systems:four_bar", "--point", f"point.{suffix}", "--json"], tmp_path)
        assert again.status == 0, again.err
    document = json.loads((tmp_path / "point.json").read_text())
    assert document["targets"] == {"coupler.y": pytest.approx(0.9)}
    assert set(document["multipliers"]) == {"coupler.y"}
    assert document["unstable"] == 1


def test_a_point_with_nothing_free_is_looked_at_as_it_is() -> None:
    """Neither is anything searched for nor is there a slope to be checked."""
    arm = OdeModel("arm", {"q": "w", "w": "u - sin(q)"}, inputs=["u"])
    assert fl.trim(arm, fixed={"q": 0.0, "w": 0.0, "u": 0.0}).states.tolist() == [0.0, 0.0]
    with pytest.raises(fl.NumericalError, match="no equilibrium was found"):
        fl.trim(arm, fixed={"q": 1.0, "w": 0.0, "u": 0.0})


def test_a_wish_that_stops_at_a_bound_of_what_is_free() -> None:
    """sin x = u holds a pendulum: as near to 2 rad as the torque 1/2 allows, on the branch of the guess."""
    model = OdeModel("held", {"x": "v", "v": "u - sin(x) - 0.1*v"}, inputs=["u"])
    point = fl.trim(model, near={"x": 2.0}, free=["u"], bounds={"u": (-0.5, 0.5)})
    assert [point["x"], point["u"]] == pytest.approx([np.pi / 6, 0.5], abs=1e-9)
    assert point.report.at_bounds == ("u",)
    assert point.report.missed["x"] == pytest.approx(np.pi / 6 - 2, abs=1e-9)
