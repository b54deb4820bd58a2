"""The interface of a model: outputs and defaults of inputs, names of aliases, parameters without values."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from fmilin.errors import UsageError

FILE = Path(__file__).parent / "models" / "interface.mo"


def load(name, **options):
    return fl.load(f"{FILE}:Interface.{name}", **options)


def starts(signals):
    return {signal.name: signal.start for signal in signals}


def test_outputs_of_every_kind_appear_in_the_order_of_their_declaration():
    model = load("Outputs")
    linear = fl.linearize(model)
    x, u, k = 0.7, 4.0, 3.0
    rows = {  # value, slopes by (state, states[1], states[2]), slopes by (u, pair[1], pair[2])
        "state": (x, [1, 0, 0], [0, 0, 0]),
        "of_input": (u, [0, 0, 0], [1, 0, 0]),
        "of_parameter": (k, [0, 0, 0], [0, 0, 0]),
        "of_constant": (4, [0, 0, 0], [0, 0, 0]),
        "of_array[1]": (5, [0, 0, 0], [0, 1, 0]),
        "of_array[2]": (6, [0, 0, 0], [0, 0, 1]),
        "states[1]": (7, [0, 1, 0], [0, 0, 0]),
        "states[2]": (8, [0, 0, 1], [0, 0, 0]),
        "on": (1, [0, 0, 0], [0, 0, 0]),
        "count": (1, [0, 0, 0], [0, 0, 0]),
        "double": (2 * x, [2, 0, 0], [0, 0, 0]),
        "negative": (-x, [-1, 0, 0], [0, 0, 0]),
        "rate": (u - x, [-1, 0, 0], [1, 0, 0]),
        "clock": (0, [0, 0, 0], [0, 0, 0]),
        "held": (2, [0, 0, 0], [0, 0, 0]),
        "record_.a": (x + u, [1, 0, 0], [1, 0, 0]),
        "record_.b": (k, [0, 0, 0], [0, 0, 0]),
        "connector_": (8, [0, 0, 1], [0, 0, 0]),
    }
    assert model.outputs.names == tuple(rows)
    assert linear.states.names == ("state", "states[1]", "states[2]")
    assert model.inputs.names == ("u", "pair[1]", "pair[2]")
    np.testing.assert_allclose(
        list(linear.point.outputs.values()), [value for value, _, _ in rows.values()], rtol=1e-12
    )
    np.testing.assert_allclose(linear.C, [row for _, row, _ in rows.values()], atol=1e-14)
    np.testing.assert_allclose(linear.D, [row for _, _, row in rows.values()], atol=1e-14)


def test_the_output_of_a_circuit_is_its_current(tmp_path):
    path = tmp_path / "rl.mo"
    path.write_text(
        "model RL\n  parameter Real R = 2, L = 0.5;\n  input Real v;\n  output Real i(start = 0, fixed = true);\n"
        "equation\n  L*der(i) = v - R*i;\nend RL;\n"
    )
    linear = fl.linearize(fl.load(str(path)))
    for matrix, value in zip("ABCD", (-4.0, 2.0, 1.0, 0.0), strict=True):
        np.testing.assert_allclose(getattr(linear, matrix), [[value]], atol=1e-14)


@pytest.mark.parametrize(("name", "k", "number"), [("Defaults", 3.0, 2.0), ("Modified", 5.0, 7.0)])
def test_the_default_of_an_input_is_its_value_at_the_point(name, k, number):
    model = load(name)
    expected = {
        "number": number,
        "of_parameters": k**2 + 1,
        "array[1]": k,
        "array[2]": -2.0,
        "chosen": k / 2,
        "entrywise[1]": 1.0,
        "entrywise[2]": 4.0,
        "functions": 2 + math.sin(k) + math.atan2(k, 2) + math.sqrt(k),
        "started": 4.0,
        "of_start[1]": 1.0,
        "of_start[2]": 2.0,
        "of_input": 8.0,
        "of_time": 1.0,
        "both": 8.0,
        "moving": 0.0,
    }
    found = starts(model.inputs)
    assert found == {name: pytest.approx(value, rel=1e-14) for name, value in expected.items()}
    assert any("default of 'moving' is not a number" in note for note in model.notes)
    np.testing.assert_allclose(fl.linearize(model).A, [[-number]], rtol=1e-12)


def test_a_default_follows_the_parameters_of_its_expression():
    for model in (load("Defaults", parameters={"k": 4.0}), load("Defaults").with_parameters({"k": 4.0})):
        assert starts(model.inputs)["of_parameters"] == 17.0


def test_a_name_of_an_alias_is_as_good_as_that_of_the_state():
    model = load("Aliases")
    point = fl.operating_point(model, {"modified.y": 3.0, "top": 4.0})
    assert (point["modified.x"], point["below.x"]) == (3.0, 4.0)
    names = ["plain.y", "modified.x", "negative.x", "is_fixed.y", "both.x", "top"]
    linear = fl.linearize(model, point, independent=names, outputs=["below.y", "modified.minus"])
    np.testing.assert_allclose(linear.A, -np.eye(6), atol=1e-14)
    np.testing.assert_allclose(linear.C, [[0, 0, 0, 0, 0, 1], [0, -1, 0, 0, 0, 0]], atol=1e-14)


def test_a_name_of_the_negative_of_a_state_stands_for_it_with_the_opposite_sign():
    """x' = v + 0.1 w_minus, v' = -4 x - 0.3 v + u, x_minus = -x, v_minus + v = 0, w_minus = -w."""
    model = load("Negatives")
    point = fl.operating_point(model, {"x_minus": 3.0, "v_minus": -0.5, "w_minus": 0.25})
    assert (point["x"], point["v"], point["w"]) == (-3.0, 0.5, -0.25)
    outputs = ["x_minus", "der(x_minus)", "der(x_again)", "v_minus"]
    linear = fl.linearize(model, point, independent=["x_minus", "v"], outputs=outputs)
    np.testing.assert_allclose(linear.A, [[0, 1], [-4, -0.3]], atol=1e-14)
    np.testing.assert_allclose(linear.C, [[-1, 0], [0, -1], [0, 1], [0, -1]], atol=1e-14)
    np.testing.assert_allclose(linear.D, [[0, 0], [0, 0.1], [0, -0.1], [0, 0]], atol=1e-14)
    assert linear.outputs.names == tuple(outputs)
    fixed = fl.trim(model, fixed={"x_minus": 3.0}, free=["u"])
    assert (fixed["x"], fixed["u"]) == (pytest.approx(-3.0), pytest.approx(-12.0))
    bounded = fl.trim(model, bounds={"x_minus": (-0.7, -0.6)}, free=["u"])
    assert 0.6 <= bounded["x"] <= 0.7
    moving = fl.trim(model, fixed={"der(x_minus)": -0.4}, free=["u"])
    assert moving["v"] == pytest.approx(0.4)


@pytest.mark.parametrize("action", [
    lambda model: fl.linearize(model, inputs=["w_minus"]),
    lambda model: fl.sweep(model, {"w_minus": [1.0, 2.0]}),
])  # fmt: skip
def test_the_negative_of_an_input_is_neither_an_input_nor_an_axis(action):
    with pytest.raises(UsageError, match="'w_minus' is the negative of 'w', and its name cannot be used here"):
        action(load("Negatives"))


def test_the_command_line_takes_the_name_of_a_negative():
    command = [sys.executable, "-m", "fmilin", "linearize", f"{FILE}:Interface.Negatives", "--json"]
    command += ["--set", "x_minus=3", "--independent", "x_minus,v_minus", "--outputs", "x_minus"]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (answer["point"]["states"]["x"], answer["C"]) == (-3.0, [[-1.0, 0.0]])


def test_parameters_without_values_are_named_in_one_sentence():
    model = load("NoValues")
    with pytest.raises(
        UsageError, match=r"parameters h, area and m of 'Interface.NoValues' have no value in the model"
    ):
        fl.linearize(model)
    with pytest.raises(UsageError, match=r"The parameter m of"):
        fl.linearize(model.with_parameters({"h": 2.0, "area": 3.0}))
    for complete in (
        load("NoValues", parameters={"h": 2.0, "area": 3.0, "m": 4.0}),
        model.with_parameters({"h": 2.0}).with_parameters({"area": 3.0, "m": 4.0}),
    ):
        np.testing.assert_allclose(fl.linearize(complete).A, [[-1.5]], rtol=1e-14)


def test_a_model_without_states_gives_its_feedthrough():
    """z^3 + z = 5 u gives dz/du = 5/(3 z^2 + 1), with z = 2 at u = 2."""
    linear = fl.linearize(load("Static"))
    assert (linear.A.shape, linear.B.shape, linear.C.shape) == ((0, 0), (0, 2), (2, 0))
    np.testing.assert_allclose(linear.D, [[3, 0], [5 / 13, 1]], rtol=1e-12)


def test_what_changes_at_instants_of_time_is_held_at_its_start():
    """The period began at 0.5 + integer(-0.25)*2 = -1.5, and the source has ended."""
    model = load("Periodic")
    (note,) = model.notes
    assert "begun = -1.5" in note
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, [[-1]], atol=1e-14)
    np.testing.assert_allclose(linear.f0, [-1], atol=1e-14)


DESCRIBED = """
package Library
  partial model Base "no model to choose"
    parameter Real m(unit = "kg") = 2 "Mass";
  end Base;
  model Cart "end Cart; in a comment"
    extends Base;
    parameter Real c[2](each unit = "N/m") = {3, 4} "Stiffness";
    Real x(start = 1), v;
  equation
    der(x) = v;
    m*der(v) = -c[1]*x - c[2]*x;
  end Cart;
  block Gain
    input Real u;
    output Real y = 2*u;
  end Gain;
end Library;
"""


def test_info_shows_units_and_descriptions_of_parameters_and_the_models_of_a_file(tmp_path):
    file = tmp_path / "library.mo"
    file.write_text(DESCRIBED)
    with pytest.raises(fl.FmilinError, match=r"several models: Library\.Cart, Library\.Gain\. Name one"):
        fl.load(file)
    command = [sys.executable, "-m", "fmilin", "info", f"{file}:Library.Cart", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    parameters = {p["name"]: (p["unit"], p["description"]) for p in json.loads(done.stdout)["parameters"]}
    assert parameters == {
        "m": ("kg", "Mass"),
        "c[1]": ("N/m", "Stiffness"),
        "c[2]": ("N/m", "Stiffness"),
    }
