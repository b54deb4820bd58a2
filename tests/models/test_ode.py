"""Models in first-order form, with and without a mass matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import Constraint, UsageError
from fmilin.models import Labels, OdeModel, SymbolicConstraint, der
from tests.exact import products_of

x, y, v, F, k, m = sympy.symbols("x y v F k m")


def oscillator() -> OdeModel:
    return OdeModel(
        "oscillator",
        {x: v, v: (F - k * x) / m},
        inputs=[F],
        parameters={k: 3.0, m: 2},
        outputs={"acceleration": der(v), "position": x, "push": F, "speed": der(x)},
        start={x: 0.5, F: 1.5},
        labels=Labels(units={x: "m", v: "m/s", "acceleration": "m/s2"}, nominals={x: 0.1}, descriptions={F: "push"}),
    )


def test_an_explicit_model_says_what_its_equations_say() -> None:
    model = oscillator()
    at_start = model.evaluate(0.0, model.start.states, model.start.inputs)
    assert at_start.derivatives.tolist() == [0.0, 0.0]
    moved = model.evaluate(0.0, np.array([1.0, 4.0]), np.array([0.0]))
    assert moved.derivatives.tolist() == [4.0, -1.5]
    assert moved.outputs.tolist() == [-1.5, 1.0, 0.0, 4.0]


def test_names_units_and_starts_reach_the_signals() -> None:
    model = oscillator()
    assert model.states.names == ("x", "v")
    assert model.states.units == ("m", "m/s")
    assert model.states[0].nominal == 0.1
    assert model.inputs[0].description == "push"
    assert model.outputs.units == ("m/s2", "", "", "")
    assert model.start.states.tolist() == [0.5, 0.0]
    assert model.start.inputs.tolist() == [1.5]


def test_text_and_symbols_mean_the_same() -> None:
    text = OdeModel(
        "oscillator", {"x": "v", "v": "(F - k*x)/m"}, inputs=["F"], parameters={"k": 3, "m": 2}, outputs={"a": "der(v)"}
    )
    point = np.array([0.3, -0.2]), np.array([0.7])
    for ours, theirs in zip(
        (text.evaluate(0.0, *point).derivatives, text.evaluate(0.0, *point).outputs),
        (oscillator().evaluate(0.0, *point).derivatives, oscillator().evaluate(0.0, *point).outputs[:1]),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_assumptions_of_the_symbols_do_not_matter() -> None:
    positive = sympy.Symbol("x", positive=True)
    model = OdeModel("leak", {positive: -sympy.Abs(x)})
    slopes = products_of(model, 0.0, np.array([-2.0]), np.empty(0), np.eye(1), np.empty((0, 1)))
    assert slopes.derivatives.tolist() == [[1.0]]


def test_time_is_the_symbol_named_time() -> None:
    model = OdeModel("clock", {x: sympy.sin(sympy.Symbol("time"))}, outputs={"t": "2*time"})
    at = model.evaluate(0.5, np.zeros(1), np.empty(0))
    assert at.derivatives[0] == np.sin(0.5)
    assert at.outputs[0] == 1.0


def test_floats_in_expressions_keep_all_digits() -> None:
    number = 1.0 / 3.0 + 0.1
    model = OdeModel("number", {x: number * sympy.Symbol("x")})
    assert model.evaluate(0.0, np.ones(1), np.empty(0)).derivatives[0] == number


def test_a_mass_matrix_is_solved_and_simple_rows_stay_explicit() -> None:
    E = [[1, 0, 0], [k * x, m, y], [0, x, 2 + y**2]]
    F_ = [v, -x, y * v]
    model = OdeModel("implicit", dict(zip((x, y, v), F_, strict=True)), parameters={k: 0.3, m: 1.5}, mass_matrix=E)
    assert [str(w) for w in model.system.unknowns] == ["der(y)", "der(v)"]
    a, b, c = state = np.array([0.4, -0.7, 1.1])
    dense = np.array([[1, 0, 0], [0.3 * a, 1.5, b], [0, a, 2 + b * b]])
    expected = np.linalg.solve(dense, [c, -a, b * c])
    np.testing.assert_allclose(model.evaluate(0.0, state, np.empty(0)).derivatives, expected, rtol=1e-14)


def test_rows_of_the_mass_matrix_may_stand_in_any_order() -> None:
    model = OdeModel("swapped", {x: y, y: -x}, mass_matrix=sympy.Matrix([[0, 2], [1, 0]]))
    assert model.system.unknowns == ()
    assert model.evaluate(0.0, np.array([3.0, 5.0]), np.empty(0)).derivatives.tolist() == [-3.0, 2.5]


def test_products_of_the_implicit_form_agree_with_differences() -> None:
    E = [[1 + x**2, y * F], [sympy.sin(y), 3]]
    model = OdeModel("implicit", {x: y * x, y: F * x}, inputs=[F], mass_matrix=E, outputs={"a": der(x) * y})
    s, u, h = np.array([0.3, 0.8]), np.array([0.5]), 1e-5
    exact = products_of(model, 0.0, s, u, np.eye(2, 3), np.eye(1, 3, 2))
    for k_ in range(3):
        dx, du = h * np.eye(2, 3)[:, k_], h * np.eye(1, 3, 2)[:, k_]
        ahead, behind = model.evaluate(0.0, s + dx, u + du), model.evaluate(0.0, s - dx, u - du)
        slope = (ahead.derivatives - behind.derivatives) / (2 * h)
        np.testing.assert_allclose(exact.derivatives[:, k_], slope, atol=1e-9)
        np.testing.assert_allclose(exact.outputs[:, k_], (ahead.outputs - behind.outputs) / (2 * h), atol=1e-9)


def test_the_hidden_constraint_is_written_down_where_the_rows_are_explicit() -> None:
    vx, vy = sympy.symbols("vx vy")
    lam = (vx**2 + vy**2) / (x**2 + y**2)
    model = OdeModel("circle", {x: vx, y: vy, vx: -lam * x, vy: -lam * y}, constraints=[x**2 + y**2 - 1])
    assert [row.needs_rate for row in model.constraints.rows] == [False, False]
    point = np.array([0.6, 0.8, 2.0, -1.5])
    residuals = model.evaluate(0.0, point, np.empty(0)).residuals
    np.testing.assert_allclose(residuals, [0.0, 2 * (0.6 * 2.0 - 0.8 * 1.5)], atol=1e-15)


def test_a_time_dependent_constraint_keeps_its_time_derivative() -> None:
    model = OdeModel("moving", {x: v, v: 0}, constraints=["x - 3*time"])
    assert model.evaluate(2.0, np.array([6.0, 1.0]), np.empty(0)).residuals.tolist() == [0.0, -2.0]


@pytest.mark.parametrize(
    ("equations", "mass_matrix"),
    [({x: v, v: -x}, [[k, 0], [0, k]]), ({x: v + F, v: -x}, None), ({x: y, y: -x, v: 0}, None)],
    ids=["in the linear system", "driven by an input", "nothing hidden"],
)
def test_no_hidden_constraint_is_invented(equations: dict[sympy.Symbol, object], mass_matrix: object) -> None:
    model = OdeModel(
        "open",
        equations,
        inputs=[F],
        parameters={k: 1},
        mass_matrix=mass_matrix,
        constraints=[x**2 + (y if y in equations else 0) ** 2],
    )
    assert [row.name for row in model.constraints.rows] == [model.constraints.declared[0].label]


def test_constraints_of_velocity_level_are_complete() -> None:
    rolling = SymbolicConstraint(v - 2 * y, name="no slip", level="velocity")
    model = OdeModel("roll", {x: v, v: 0, y: 0}, constraints=[rolling, Constraint.from_text("y - 1", level="velocity")])
    assert [(row.name, row.level) for row in model.constraints.rows] == [("no slip", "velocity"), ("y - 1", "velocity")]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    values: dict[Any, Any] = {k: float("nan"), m: "heavy"}
    with pytest.raises(UsageError) as caught:
        OdeModel(
            "bad",
            {x: v * sympy.Symbol("kk"), v: sympy.Function("f")(x), y: "1 +"},
            inputs=[F, x],
            parameters=values,
            outputs={"x": v, "a": der("w"), "i": sympy.I},
            constraints=["x - q"],
            mass_matrix=[[1, 0], [0, 1]],
            start={"z": 1.0, v: float("inf")},
            labels=Labels(units={"zz": "m"}, nominals={x: 0.0}, independent=["p"]),
        )
    message = str(caught.value)
    for part in (
        "The declaration of the model 'bad' is not complete",
        "the equation of 'x' contains 'kk', which has no value (did you mean 'k'?)",
        "the equation of 'v' contains f(x)",
        "the equation of 'y' cannot be read",
        "'x', an input, is declared twice",
        "the value of 'k' is nan",
        "the value of 'm', 'heavy', is not a number",
        "the output 'x' has the name of another quantity",
        "the output 'a' contains 'der(w)'",
        "the output 'i' is not a real expression",
        "the constraint 'x - q' contains 'q'",
        "the mass matrix is 2 by 2 and should be 3 by 3",
        "there is a start value for 'z'",
        "the start value of 'v' is inf",
        "there is a unit for 'zz'",
        "the nominal of 'x' is not positive",
        "the independent coordinate 'p' is not a state",
    ):
        assert part in message


def test_derivatives_inside_equations_ask_for_the_mass_matrix_form() -> None:
    with pytest.raises(UsageError, match="mass-matrix form"):
        OdeModel("implicit", {x: v, v: -der(x)})


def test_a_model_without_states_has_outputs_all_the_same() -> None:
    model = OdeModel("gain", {}, inputs=[F], parameters={k: 4}, outputs={"y": k * F})
    at = model.evaluate(0.0, np.empty(0), np.array([2.0]))
    assert at.derivatives.shape == (0,)
    assert at.outputs.tolist() == [8.0]
    assert products_of(model, 0.0, np.empty(0), np.array([2.0]), np.empty((0, 1)), np.eye(1)).outputs.tolist() == [
        [4.0]
    ]


def test_a_rate_that_cancels_over_a_common_denominator_is_left_out() -> None:
    rates = {"u1": "C2/(C1 + C2)*u", "u2": "C1/(C1 + C2)*u", "u3": "u"}
    capacitors = {"C1": 0.3, "C2": 0.6}
    model = OdeModel("capacitors", rates, inputs=["u"], parameters=capacitors, constraints=["u1 + u2 - u3"])
    lin = fl.linearize(model, independent=["u1", "u3"])
    assert lin.A.tolist() == [[0, 0], [0, 0]]
    assert lin.B[:, 0].tolist() == pytest.approx([2 / 3, 1], rel=1e-15)
