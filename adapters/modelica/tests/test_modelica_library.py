"""Models of the Modelica Standard Library: A against closed forms, start values, outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from benchmarks.modelica_models import CASES

# The front end takes some seconds for each: one of each kind here, all of them in ``python -m benchmarks modelica``.
CHOSEN = [c for c in CASES if c.name.endswith(("CauerLowPassAnalog", "PID_Controller", "Elementary.DoublePendulum"))]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name.rpartition(".")[2])
def test_a_linear_model_of_the_library(case, standard_library):
    model = fl.load(case.source, options={"library": [standard_library]})
    point = fl.operating_point(model, case.at)
    linear = fl.linearize(model, point, independent=list(case.coordinates))
    np.testing.assert_allclose(linear.A, case.A, rtol=1e-9, atol=1e-9 * np.abs(case.A).max())


def test_a_loop_closes_near_the_start_values_of_its_joints(standard_library):
    """The slider stays in front, at r cos(phi) + sqrt(L^2 - r^2 sin(phi)^2): bodies follow their joints."""
    file = Path(__file__).parent / "models" / "library.mo"
    model = fl.load(f"{file}:SliderCrank", options={"library": [standard_library]})
    start = dict(zip(model.states.names, model.start.states, strict=True))
    assert start["p.s"] == pytest.approx(0.3 * np.cos(0.5) + np.sqrt(0.49 - (0.3 * np.sin(0.5)) ** 2), rel=1e-9)


def test_the_output_of_a_block_that_is_its_state_is_an_output(standard_library):
    source = "modelica:Modelica.Blocks.Continuous.FirstOrder"
    model = fl.load(source, options={"library": [standard_library]}, parameters={"k": 2.0, "T": 0.5})
    linear = fl.linearize(model)
    assert (linear.inputs.names, linear.outputs.names) == (("u",), ("y",))
    for matrix, value in zip("ABCD", (-2.0, 4.0, 1.0, 0.0), strict=True):
        np.testing.assert_allclose(getattr(linear, matrix), [[value]], atol=1e-14)


def test_a_crane_hangs_as_its_model_says(standard_library):
    """The sway across the rail is that of a pendulum; the rope is in its start position, not nearest to zeros."""
    file = Path(__file__).parent / "models" / "library.mo"
    model = fl.load(f"{file}:GantryCrane", options={"library": [standard_library]})
    start = dict(zip(model.states.names, model.start.states, strict=True))
    assert [start[f"load.frame_a.r_0[{k}]"] for k in (1, 2, 3)] == pytest.approx([0, 0, -2.5], abs=1e-12)
    assert fl.operating_point(model, {"load.r_0[2]": 0.1})["load.frame_a.r_0[2]"] == 0.1
    eigenvalues = fl.linearize(model).eigenvalues()
    assert np.abs(eigenvalues - 1j * np.sqrt(9.80665 / 2.5)).min() < 1e-9


def test_rests_outside_of_the_data_of_a_table_are_left_out(tmp_path, standard_library):
    """The table is continued along its last two points: x = 3 is a rest there."""
    text = """model Tab
  Modelica.Blocks.Tables.CombiTable1Ds pump(table=[0, 1; 2, -1; 2.5, -0.5],
    extrapolation=Modelica.Blocks.Types.Extrapolation.LastTwoPoints);
  Real x(start=0.2);
equation
  pump.u = x;
  der(x) = pump.y[1];
end Tab;
"""
    (tmp_path / "tab.mo").write_text(text)
    model = fl.load(tmp_path / "tab.mo", options={"library": [standard_library]})
    rests = fl.operating_points(model, starts=4)
    assert [float(p.states[0]) for p in rests] == [pytest.approx(1.0)]
    far = fl.trim(model, guess={"x": 3.1})
    (said,) = (remark.message for remark in far.report.remarks if remark.kind == "extrapolated")
    assert "'pump.u' = 3 is outside of 0 to 2.5, the data of the table 'pump'" in said


STRINGS = """
model Vector "The letters of a vector group decide on the ratio of a transformer"
  constant String group = "Dy5";
  constant String first = Modelica.Utilities.Strings.substring(group, 1, 1);
  parameter Real k = (if first == "D" then 3 else 1) + Modelica.Utilities.Strings.length(group);
  Real x(start = 1, fixed = true);
equation
  der(x) = -k*x;
end Vector;
"""


def test_functions_of_strings_in_parameters(tmp_path, standard_library):
    file = tmp_path / "vector.mo"
    file.write_text(STRINGS)
    assert fl.linearize(fl.load(file, options={"library": [str(standard_library)]})).A[0, 0] == -(3 + 3)
