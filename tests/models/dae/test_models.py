"""DAEs as they are written against closed forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin.models import DaeModel, Labels, der

PENDULUM = ["der(x) = vx", "der(y) = vy", "m*der(vx) = F - T*x", "m*der(vy) = -T*y - m*g", "x^2 + y^2 = L^2"]


def pendulum(**start: float) -> DaeModel:
    return DaeModel(
        "pendulum",
        PENDULUM,
        inputs=["F"],
        parameters={"m": 2.0, "g": 9.81, "L": 0.5},
        outputs={"tension": "T", "ax": "der(vx)"},
        start={"y": -0.5} | start,
    )


def test_a_cartesian_pendulum_of_index_three_keeps_all_states() -> None:
    model = pendulum()
    lin = fl.linearize(model, independent=["x", "vx"])
    assert model.index == 3
    assert model.states.names == ("x", "y", "vx", "vy")
    assert np.abs(lin.A - [[0.0, 1.0], [-9.81 / 0.5, 0.0]]).max() < 1e-13
    assert np.abs(lin.B - [[0.0], [0.5]]).max() < 1e-13
    assert np.abs(lin.C - [[0.0, 0.0], [-9.81 / 0.5, 0.0]]).max() < 1e-12


def test_unknowns_that_enter_nonlinearly_are_found_far_from_the_start() -> None:
    model = DaeModel("valve", ["der(x) = -z", "z^3 + z = x + u"], inputs=["u"], start={"x": 2.0, "z": 1.0})
    for z in (-40.0, 0.0, 0.3, 25.0):
        rates = model.evaluate(0.0, np.array([z**3 + z]), np.zeros(1)).derivatives
        assert abs(rates[0] + z) <= 1e-13 * abs(z) + 1e-15
    lin = fl.linearize(model)
    assert abs(lin.A[0, 0] + 0.25) < 1e-13
    assert abs(lin.B[0, 0] + 0.25) < 1e-13


def test_a_model_with_too_few_equations_is_refused() -> None:
    with pytest.raises(fl.UsageError, match=r"not balanced: 1 equations for 1 states and 1 algebraic"):
        DaeModel("short", ["der(x) = z"])


def test_a_model_that_is_singular_in_structure_names_equations_and_unknowns() -> None:
    with pytest.raises(fl.UsageError, match=r"'a = 1', 'a = x' are dependent, and 'b' are not determined"):
        DaeModel("singular", ["der(x) = -x", "a = 1", "a = x"], algebraic=["a", "b"])


@cache
def platform(**start: float) -> DaeModel:
    """A platform on three parallel cranks of length 2: one more than its motion needs."""
    equations, forces, turning = ["der(x) = vx", "der(y) = vy", "der(th) = w"], ["", ""], ""
    for k, a in enumerate((-1, 0, 1)):
        px, py = f"(x + ({a})*cos(th) - ({a}))", f"(y + ({a})*sin(th))"
        equations.append(f"{px}^2 + {py}^2 = 4")
        forces = [f"{forces[0]} - T{k}*{px}", f"{forces[1]} - T{k}*{py}"]
        turning += f" - T{k}*({py}*({a})*cos(th) - {px}*({a})*sin(th))"
    equations += [f"2*der(vx) = F{forces[0]}", f"2*der(vy) = -2*9.81{forces[1]}", f"der(w) = 0{turning}"]
    return DaeModel("platform", equations, inputs=["F"], start=start)


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_redundant_equations_of_an_overconstrained_loop_are_left_out_with_a_remark(angle: float) -> None:
    lin = fl.linearize(platform(x=2 * np.sin(angle), y=-2 * np.cos(angle)), independent=["x", "vx"])
    assert len(lin.A) == 2
    if not angle:
        assert np.abs(lin.A - [[0.0, 1.0], [-9.81 / 2, 0.0]]).max() < 1e-12
    assert abs(lin.B[1, 0] - np.cos(angle) ** 2 / 2) < 1e-12
    assert any("'T0', 'T1', 'T2' are not determined individually" in str(w) for w in lin.warnings)


def test_a_rope_that_is_driven_brings_the_derivatives_of_its_length_as_inputs() -> None:
    equations = [
        "der(s) = v", "der(x) = vx", "der(y) = vy", "M*der(v) = F + T*(x - s)", "m*der(vx) = -T*(x - s)",
        "m*der(vy) = -T*y - m*9.81", "(x - s)^2 + y^2 = L^2",
    ]  # fmt: skip
    start = {"y": -2.0, "L": 2.0, "T": 9.81}
    crane = DaeModel("crane", equations, inputs=["F", "L"], parameters={"M": 5.0, "m": 2.0}, start=start)
    lin = fl.linearize(crane, independent=["s", "x", "v", "vx"])
    assert lin.inputs.names == ("F", "L", "der(L)", "der(der(L))")
    stiff = 9.81 / 2  # of the rope's angle (x - s)/L
    truth = [[0, 0, 1, 0], [0, 0, 0, 1], [-stiff * 2 / 5, stiff * 2 / 5, 0, 0], [stiff, -stiff, 0, 0]]
    assert np.abs(lin.A - np.array(truth)).max() < 1e-12
    assert np.abs(lin.B[:, 0] - np.array([0, 0, 0.2, 0])).max() < 1e-12


def test_a_loop_of_capacitors_has_one_state_less() -> None:
    equations = ["C1*der(v1) = i1", "C2*der(v2) = i2", "v1 = v2", "i1 + i2 + i = u", "L*der(i) = v2 - R*i"]
    values = {"C1": 1e-3, "C2": 2e-3, "R": 10.0, "L": 0.1}
    network = DaeModel("network", equations, inputs=["u"], parameters=values)
    lin = fl.linearize(network, independent=["v2", "i"])
    assert network.index == 2
    assert np.abs(lin.A - [[0.0, -1 / 3e-3], [10.0, -100.0]]).max() < 1e-11
    assert np.abs(lin.B - [[1 / 3e-3], [0.0]]).max() < 1e-11


def test_a_gear_couples_two_inertias() -> None:
    equations = ["der(a) = wa", "der(b) = wb", "Ja*der(wa) = t - f", "Jb*der(wb) = n*f", "a = n*b"]
    gear = DaeModel("gear", equations, inputs=["t"], parameters={"Ja": 0.1, "Jb": 2.0, "n": 5.0})
    lin = fl.linearize(gear, independent=["a", "wa"])
    assert gear.index == 3
    assert np.abs(lin.B - [[0.0], [1 / (0.1 + 2.0 / 25)]]).max() < 1e-12


def test_a_parameter_that_divides_may_become_zero() -> None:
    equations = ["der(x) = -z", "a*z + b*y = x", "y = 2*z + x"]
    model = DaeModel("divisor", equations, parameters={"a": 1.0, "b": 0.5}, start={"x": 1.0})
    for values in ({"a": 0.0, "b": 1.0}, {"a": 3.0, "b": 0.0}):
        rate = model.with_parameters(values).evaluate(0.0, np.ones(1), np.zeros(0)).derivatives[0]
        assert abs(rate + (1 - values["b"]) / (values["a"] + 2 * values["b"])) < 1e-14


def test_states_that_are_preferred_become_coordinates_where_they_are_regular() -> None:
    equations = [e.replace("m", "2").replace("L", "1").replace("g", "9.81") for e in PENDULUM]
    for y, coordinates in ((-0.8, ("y", "vy")), (-1.0, ("x", "vx"))):
        start = {"x": np.sqrt(1 - y**2), "y": y}
        labels = Labels(independent=["y", "vy"])
        model = DaeModel("pendulum", equations, inputs=["F"], start=start, labels=labels)
        assert fl.linearize(model).states.names == coordinates


@pytest.mark.parametrize(
    ("equations", "given", "said"),
    [
        (["der(x) = -x +"], {}, r"the equation 'der\(x\) = -x \+' cannot be read"),
        (["der(x) = -z", "z = der(z)"], {"states": ["x"]}, r"contains der\(z\), and 'z' is not a state"),
        (["der(x) = -y"], {"algebraic": [], "inputs": []}, r"in the equation 'der\(x\) = -y': 'y' is not a variable"),
        (["der(x) = -x"], {"start": {"y": 1.0}}, r"start value for 'y', which the model does not have"),
        (["der(x) = -x"], {"outputs": {"o": "w"}}, r"in the output 'o': 'w' is not a variable"),
        (["der(x) = -x", "x = 1"], {}, r"2 equations for 1 states and 0 algebraic variables\. Leave out"),
        (["der(x) = -a", "a + b = x", "2*a + 2*b = 2*x"], {}, r"'b' are not determined"),
    ],
)
def test_what_is_wrong_is_said(equations: list[str], given: dict[str, Any], said: str) -> None:
    with pytest.raises(fl.UsageError, match=said):
        DaeModel("wrong", equations, **given)


def test_equations_in_sympy_are_read() -> None:
    x, z = sympy.symbols("x z")
    model = DaeModel("cube", [sympy.Eq(der(x), -z), z**3 - x], start={x: 8.0, z: 2.0})
    assert abs(fl.linearize(model).A[0, 0] + 1 / 12) < 1e-14


def test_a_motion_that_nothing_determines_in_numbers_is_refused() -> None:
    """Rows that are dependent for all values, though no term is missing in their structure."""
    equations = ["der(x) = -a", "a + b + c = x", "a + 2*b + 3*c = x^2", "2*a + 3*b + 4*c = x + x^2"]
    with pytest.raises(
        fl.NumericalError, match=r"motion of 'loose' is not determined: 'a', 'b', 'c' may have any value"
    ):
        DaeModel("loose", equations, start={"x": 1.0})
