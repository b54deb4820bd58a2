"""Modelica files: which model, what is wrong with it, and linear models that are known in closed form."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

from fmilin_modelica import compiler_process, front_end

import fmilin as fl
from fmilin.errors import ConstraintError, ModelError, UnknownNameError, UsageError

PENDULUM = """
model Pendulum "In Cartesian coordinates"
  parameter Real L(unit = "m") = 1 "length";
  parameter Real m(unit = "kg") = 1 "mass";
  constant Real g(unit = "m/s2") = 9.81;
  Real x(unit = "m", start = 0) "to the right", y(unit = "m", start = -1);
  Real vx(unit = "m/s"), vy(unit = "m/s");
  Real F(unit = "N") "force of the rod";
  input Real push(unit = "N");
  output Real angle(unit = "rad") = atan2(x, -y);
equation
  der(x) = vx;
  der(y) = vy;
  m*der(vx) = -F*x/L + push;
  m*der(vy) = -F*y/L - m*g;
  x^2 + y^2 = L^2;
end Pendulum;
"""


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str, name: str = "model.mo") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return write


def test_a_pendulum_of_index_three_is_linearized_on_its_circle(written):
    model = fl.load(written(PENDULUM, "pendulum.mo"))
    assert (model.index, model.states.names) == (3, ("x", "y", "vx", "vy"))
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, [[0, 1], [-9.81, 0]], atol=1e-9)
    np.testing.assert_allclose(linear.B, [[0], [1]], atol=1e-9)
    np.testing.assert_allclose(linear.C, [[1, 0]], atol=1e-9)
    assert linear.states.names == ("x", "vx")
    assert (linear.states[0].unit, linear.states[0].description) == ("m", "to the right")


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped on this system")
def test_a_front_end_that_was_stopped_is_an_error(written, monkeypatch, tmp_path):
    script = tmp_path / "stopped.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n")
    monkeypatch.setattr(front_end, "FLATTENING_TIME", 0.5)
    monkeypatch.setattr(compiler_process, "__file__", str(script))
    with pytest.raises(ModelError, match=r"did not finish with .*model\.mo.* within 0\.5 s"):
        fl.load(written(PENDULUM.replace("Pendulum", "Stopped")))


def test_a_parameter_moves_the_start_and_the_model(written):
    source = written(PENDULUM)
    for model in (fl.load(source, parameters={"L": 2.0}), fl.load(source).with_parameters({"L": 2.0})):
        linear = fl.linearize(model, fl.operating_point(model, {"x": 0.0}, project=True))
        np.testing.assert_allclose(linear.A[1, 0], -9.81 / 2, rtol=1e-9)
    with pytest.raises(UnknownNameError, match="'l' is not a parameter"):
        fl.load(source, parameters={"l": 2.0})


def test_a_file_with_several_models_wants_a_name(written):
    text = "package P\nmodel A\n  Real x(start = 1);\nequation\n  der(x) = -x;\nend A;\n" + (
        "model B\n  Real x(start = 1);\nequation\n  der(x) = -2*x;\nend B;\nend P;\n"
    )
    source = written(text)
    assert pytest.approx(-2.0) == fl.linearize(fl.load(f"{source}:P.B")).A
    with pytest.raises(ModelError, match=r"several models: P.A, P.B. Name one of them, as in '.*model.mo:P.A'"):
        fl.load(source)
    with pytest.raises(ModelError, match=r"no model 'P\.C'"):
        fl.load(f"{source}:P.C")


def test_a_file_inside_a_package_is_read_with_it(written):
    written("package Plants\n  constant Real rate = 3;\nend Plants;\n", "Plants/package.mo")
    tank = "within Plants;\nmodel Tank\n  Real h(start = 1);\nequation\n  der(h) = -rate*h;\nend Tank;\n"
    model = fl.load(written(tank, "Plants/Tank.mo"))
    assert (model.info.name, fl.linearize(model).A) == ("Plants.Tank", pytest.approx(-3.0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model M\n  Real x;\nequation\n  der(x) = -x +;\nend M;\n", "^model.mo:4: .*unexpected `;` in line 4"),
        ("model M\n  Real x;\nequation\n  der(x) = -k*x;\nend M;\n", "^model.mo:4: .*unresolved .*'k'"),
        ("model M\n  Real x, y;\nequation\n  der(x) = -x;\nend M;\n", "unbalanced model: 1 equations, 2 unknowns"),
        (
            "model M\n  Real x;\nequation\n  der(x) = {1, 2};\nend M;\n",
            "^model.mo:4: .*array dimension mismatch",
        ),
        (
            "model M\n  Real x;\nequation\n  der(x) = -x\n    - delay(x, abs(x), 1.0);\nend M;\n",
            r"^model.mo:5: .* has 'delay' with a time that changes in 'der\(x\) = -x - delay\(x, abs\(x\), 1.0\)', ",
        ),
        (
            "model M\n  Real x;\ninitial equation\n  x = g(1);\nequation\n  der(x) = -x;\nend M;\n"
            'function g\n  input Real u;\n  output Real y;\n  external "C" y = gg(u);\nend g;\n',
            r"^model.mo:4: .* has the external function 'g' in 'x = g\(1\)', which the Modelica adapter",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(written, text, said):
    with pytest.raises((ModelError, UsageError), match=said):
        fl.load(written(text))


def test_a_library_that_is_not_there_is_asked_for(written, monkeypatch):
    monkeypatch.delenv("MODELICAPATH", raising=False)
    with pytest.raises(UsageError, match="the folder that contains"):
        fl.load(written(PENDULUM), options={"library": ["no/such/folder"]})
    with pytest.raises(ModelError, match="No library is available"):
        fl.load("modelica:Modelica.Mechanics.Rotational.Examples.First")
    with pytest.raises(UsageError, match="must be a sequence"):
        fl.load(written(PENDULUM), options={"library": "no/such/folder"})


def test_a_model_that_was_flattened_before_is_read_without_the_front_end_and_sympy(written, fresh_environment):
    path = written(PENDULUM, "pendulum.mo")
    fl.load(path)
    code = f"import fmilin as fl, sys; fl.load({path!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {"fmilin_jsbsim", "fmilin_mujoco", "fmilin_pinocchio", "mujoco", "pinocchio", "jsbsim", "fmpy", "control"}
    unneeded = {"rumoca", "IPython", "sympy", "matplotlib", "scipy.interpolate", "scipy.optimize", "scipy.special"}
    assert not (others | unneeded) & set(done.stdout.split())


def test_an_initial_equation_that_cannot_hold_is_named_with_its_line(written):
    """With x = 1 fixed and y = 3, x - y^2 is -8."""
    text = (
        "model M\n  Real x(start = 1, fixed = true), y(start = 2);\ninitial equation\n  x + y = 4;\n  x - y^2 =\n"
        "    7;\nequation\n  der(x) = -x;\n  der(y) = -y;\nend M;\n"
    )
    with pytest.raises(ConstraintError, match=r"'model.mo:5: x - y\^2 = 7' is left with"):
        fl.load(written(text))
