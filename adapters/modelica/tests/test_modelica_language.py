"""Functions, loops, records, arrays and tables as the walk converts them: outputs against the same in Python."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import Akima1DInterpolator

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import casadi as ca
from fmilin_modelica.fills import write_fills_as_comprehensions
from fmilin_modelica.initial_algorithms import write_initial_algorithms_as_equations
from fmilin_modelica.tables import interpolated

import fmilin as fl
from fmilin.errors import ConstraintError

FILE = Path(__file__).parent / "models" / "language.mo"
X = 1.3

EXPECTED = {
    "horner": X**2 + 2 * X + 3,
    "slope": 2 * X + 2,
    "halves": X * (0.125 + 0.25 + 0.5 + 1),
    "field": 3 * (X**2 + 2),
    "total": 10 * X,
    "times": 6 * X,
    "product12": X + 2,
    "entrywise[1]": 3 * X,
    "entrywise[2]": 2 * X,
    "whole": 3 + 1.5 + 3 + 1,
    "extreme": 2 * X - 0.2,
    "folded": (1 + 6) * X + (2 + 2 * X) * X,
    "chosen": X**2,
    "last": X,
    "diagonals": (1 + X) + 2 + 4 * X + 3,
    "turned": X,
    "angle": math.atan2(X, 2) + X + math.sqrt(X) + math.log10(X),
    "joined": X + 3,
}


def test_every_construct_has_its_value_and_its_slope():
    model = fl.load(f"{FILE}:Language.Words")
    assert set(model.outputs.names) == set(EXPECTED)
    values = dict(
        zip(model.outputs.names, model.evaluate(0.0, model.start.states, model.start.inputs).outputs, strict=True)
    )
    for name, value in EXPECTED.items():
        assert values[name] == pytest.approx(value, rel=1e-14), name
    linear = fl.linearize(model)
    slopes = dict(zip(linear.outputs.names, linear.C[:, 0], strict=True))
    assert slopes["slope"] == pytest.approx(2)
    assert slopes["chosen"] == pytest.approx(2 * X)
    assert slopes["folded"] == pytest.approx(7 + 2 + 4 * X)


def test_an_integer_parameter_flattens_the_model_again():
    model = fl.load(f"{FILE}:Language.Words", parameters={"n": 3})
    assert fl.linearize(model, outputs=["total"]).C[0, 0] == pytest.approx(6)
    with pytest.raises(fl.FmilinError, match="type integer"):
        fl.load(f"{FILE}:Language.Words", parameters={"n": 2.5})


DATA = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 4.0], [3.0, 9.0], [4.0, 5.0]])


@pytest.mark.parametrize("u", [-0.5, 0.0, 0.3, 1.0, 2.7, 4.0, 4.5])
@pytest.mark.parametrize("smoothness", [1, 2, 3])
@pytest.mark.parametrize("extrapolation", [1, 2, 3])
def test_a_table(u, smoothness, extrapolation):
    x, y = DATA.T
    inside = x[0] + (u - x[0]) % (x[-1] - x[0]) if extrapolation == 3 else min(max(u, x[0]), x[-1])
    if smoothness == 3:
        expected = y[min(np.searchsorted(x, inside, side="right") - 1, len(x) - 1)]
    elif smoothness == 1:
        expected = np.interp(inside, x, y)
    else:
        expected = Akima1DInterpolator(x, y)(inside)
    if extrapolation == 2 and smoothness != 3 and u != inside:
        curve = Akima1DInterpolator(x, y) if smoothness == 2 else None
        k = 0 if u < x[0] else len(x) - 2
        slope = (y[k + 1] - y[k]) / (x[k + 1] - x[k]) if curve is None else curve(inside, 1)
        expected += slope * (u - inside)
    assert interpolated(DATA, 1, smoothness, extrapolation, u) == pytest.approx(expected)
    symbol = ca.SX.sym("u")
    graph = ca.Function("table", [symbol], [interpolated(DATA, 1, smoothness, extrapolation, symbol)])
    assert float(graph(u)) == pytest.approx(expected)


def test_quotients_have_their_values_inside_and_outside_of_functions():
    u = 20.25
    w = u % 6 + math.fmod(u, 4)
    w = w - 10 if w > 5 else w
    z = u % 6 + u // 3 + w
    v = z % 6 + math.fmod(z, 4) + math.fmod(u, 7)
    linear = fl.linearize(fl.load(f"{FILE}:Language.Quotients"))
    np.testing.assert_allclose(linear.A, [[-1 + w + 10 * z + 100 * v]], rtol=1e-12)


def test_a_branch_that_is_not_taken_may_lie_outside_of_a_domain():
    """x' = -x + 2 + 1 + 1 + 3; what the other branches contain is infinite or not a number."""
    linear = fl.linearize(fl.load(f"{FILE}:Language.Domains"))
    np.testing.assert_allclose(linear.A, [[-1]], rtol=1e-14)
    np.testing.assert_allclose(linear.f0, [6], rtol=1e-14)


def test_a_number_outside_of_a_domain_that_counts_is_said_in_words():
    with pytest.raises(fl.NumericalError, match="returns NaN for the derivative of the state 'x'"):
        fl.linearize(fl.load(f"{FILE}:Language.NoNumber"))


ROCKET = """
model Rocket "It loses mass: der(m*v) and der(x - x0) are derivatives of expressions"
  input Real F(start = 6);
  parameter Real x0 = 1;
  Real m(start = 2, fixed = true), v(start = 3, fixed = true), x(start = 1, fixed = true), y = 4;
  Real rate = der(m^2);
equation
  der(m) = -0.5;
  der(m*v) = F - 0.5*v;
  der(x - y) = v;
end Rocket;
"""


def test_derivatives_of_expressions(tmp_path):
    """The momentum p = m*v is a state: p' = F - p/(2 m), v = p/m, (m^2)' = -m."""
    file = tmp_path / "rocket.mo"
    file.write_text(ROCKET)
    momentum = "der_argument_2"
    linear = fl.linearize(fl.load(file), independent=["m", momentum, "x"], outputs=["rate", "v"])
    np.testing.assert_allclose(linear.A, [[0, 0, 0], [0.75, -0.25, 0], [-1.5, 0.5, 0]], atol=1e-12)
    np.testing.assert_allclose(linear.C, [[-1, 0, 0], [-1.5, 0.5, 0]], atol=1e-12)
    np.testing.assert_allclose(linear.f0, [-0.5, 6 - 1.5, 3], atol=1e-12)


@pytest.mark.parametrize("declared", ["parameter Real L = 2; Real x(start = 1);", "extends Sizes; Real x(start = 1);"])
def test_the_derivative_of_a_difference_to_a_parameter(tmp_path, declared):
    path = tmp_path / "model.mo"
    sizes = "model Sizes\n  parameter Real L = 2;\nend Sizes;\n"
    path.write_text(f"{sizes}model M\n  {declared}\nequation\n  der(x - L) = -L*x;\nend M;\n")
    linear = fl.linearize(fl.load(f"{path}:M"))
    np.testing.assert_allclose(linear.eigenvalues(), [-2])


def test_homotopy_is_its_actual_expression(tmp_path):
    path = tmp_path / "model.mo"
    path.write_text(
        "model M\n  Real x(start = 2);\nequation\n  der(x) = homotopy(actual = -x^2, simplified = -x);\nend M;\n"
    )
    np.testing.assert_allclose(fl.linearize(fl.load(str(path))).A, [[-4]])


def test_a_start_without_a_path_from_the_actual_equations_comes_from_the_simplified_ones(tmp_path):
    """u^3 - 2u + 2 = 0 for u = x - b: from u = 1 Newton's steps alternate between 0 and 1, damped ones end near 0.8.

    A minimum without a zero is there. With der(x) = 0 the parameter is b = 1/(1 + x), and der(x) has the slope -b.
    """
    path = tmp_path / "model.mo"
    path.write_text(
        "model M\n  parameter Real b(fixed = false);\n  Real x(start = 1);\ninitial equation\n  der(x) = 0;\n"
        "  homotopy(actual = (x - b)^3 - 2*(x - b) + 2, simplified = x - b + 2) = 0;\n"
        "equation\n  der(x) = 1 - x*b - b;\nend M;\n"
    )
    model = fl.load(str(path))
    [u] = [root.real for root in np.roots([1, 0, -2, 2]) if abs(root.imag) < 1e-9]
    x = max(np.roots([1, 1 - u, -u - 1]), key=lambda root: root)
    np.testing.assert_allclose([model.start.states[0], model.parameters["b"]], [x, x - u], rtol=1e-9)
    np.testing.assert_allclose(fl.linearize(model).A, [[u - x]], rtol=1e-9)
    path.write_text(path.read_text().replace("simplified = x - b + 2", "simplified = (x - b)^3 - 2*(x - b) + 2"))
    with pytest.raises(ConstraintError, match=r"model\.mo:6: homotopy"):
        fl.load(str(path))


INITIAL = """package P
  model World
    parameter Real c = 2;
    Real phi = 3*time + c;
  end World;
  model Body
    outer World world;
    parameter Real p0(fixed = false);
    Real v[2](each start = 0);
  initial algorithm
    p0 := world.c + 1;
    v := {p0, 2*p0};
  equation
    der(v) = -p0*v + {world.phi, 1};
  end Body;
  model M
    inner World world;
    Body body;
  end M;
end P;
"""


def test_an_initial_algorithm_is_read_together_with_scalars_of_an_outer_component_in_arrays(tmp_path):
    path = tmp_path / "model.mo"
    path.write_text(INITIAL)
    model = fl.load(f"{path}:P.M")
    start = model.start
    np.testing.assert_allclose(start.states, [3, 6])
    rates = model.evaluate(start.time, start.states, start.inputs).derivatives
    np.testing.assert_allclose(rates, [-9 + 2, -18 + 1])


def test_an_array_is_filled_with_vectors(tmp_path):
    path = tmp_path / "model.mo"
    path.write_text(
        "model M\n  parameter Integer n = 2;\n  Real v[3, n](start = transpose(fill({1, 2, 3}, n)));\nequation\n"
        "  der(v) = -transpose(fill({1, 2, 3}*time, n)) - fill(2, 3, n).*v;\nend M;\n"
    )
    model = fl.load(str(path))
    start = model.start
    np.testing.assert_allclose(start.states, [1, 1, 2, 2, 3, 3])
    rates = model.evaluate(2.0, start.states, start.inputs).derivatives
    np.testing.assert_allclose(rates, [-4, -4, -8, -8, -12, -12])


def test_fills_with_numbers_or_in_several_dimensions_stay():
    text = "model M Real a[2] = fill(1.5, 2), b[2, 3] = fill(x, 2, 3), c[2] = fill(x,\n2); end M;"
    assert write_fills_as_comprehensions(text) == text.replace("fill(x,\n2)", "{x for fill_index in 1:2}\n")


def test_initial_algorithms_with_conditions_or_two_values_of_a_variable_stay_algorithms():
    for body in ("if a then b := 1; end if;", "b := 1; b := b + 1;"):
        text = f"model M initial algorithm {body} equation end M;"
        assert write_initial_algorithms_as_equations(text) == text


OUTER = """package P
  record Frame
    Real T[2, 2];
  end Frame;
  function turn
    input Frame R;
    input Real v[2];
    output Real y[2] = R.T*v;
  algorithm
    annotation (Inline = true);
  end turn;
  model World
    Frame R;
    Real g[2];
  equation
    g = {0, -9.81};
    R.T = {{0, -1}, {1, 0}};
  end World;
  model Body
    outer World world;
    Real v[2](start = {1, 2}, each fixed = true);
  equation
    der(v) = world.g - turn(world.R, v);
  end Body;
  model Falling
    inner World world;
    Body body;
  end Falling;
end P;
"""


def test_equations_use_arrays_and_records_of_outer_components(tmp_path):
    file = tmp_path / "outer.mo"
    file.write_text(OUTER)
    linear = fl.linearize(fl.load(f"{file}:P.Falling"))
    np.testing.assert_allclose(linear.A, [[0, 1], [-1, 0]], atol=1e-12)
    np.testing.assert_allclose(linear.f0, [2, -9.81 - 1], atol=1e-12)


ROADS = """package P
  partial model Base
    Real g;
    replaceable function height
      input Real x;
      output Real y;
    algorithm
      y := 0;
    end height;
  end Base;
  model Flat
    extends Base;
    parameter Real slope = 3;
  equation
    g = 2*time + slope;
  end Flat;
  model Body
    outer Base road;
    Real v(start = 1, fixed = true);
  equation
    der(v) = -road.g*v;
  end Body;
  model Car
    inner Flat road;
    Body body;
  end Car;
end P;
"""


@pytest.mark.parametrize("kind", ["partial model", "model"])
def test_an_outer_component_may_be_of_a_more_general_class(tmp_path, kind):
    path = tmp_path / "roads.mo"
    path.write_text(ROADS.replace("partial model", kind), encoding="utf-8")
    linear = fl.linearize(fl.load(f"{path}:P.Car"))
    assert linear.A[0, 0] == pytest.approx(-3.0, rel=1e-12)


BUSES = """package P
  connector RealInput = input Real;
  connector RealOutput = output Real;
  expandable connector Bus "Signals of a plant"
  end Bus;
  expandable connector InnerBus
    Real known;
  end InnerBus;
  block Source
    RealOutput y;
    Real x(start = 1, fixed = true);
    parameter Real a = 2;
  equation
    der(x) = -a*x;
    y = x;
  end Source;
  model Plant
    Bus bus;
    Real z(start = 0, fixed = true);
    RealInput u;
  equation
    connect(u, bus.speed);
    der(z) = u - 5*z;
  end Plant;
  model A
    InnerBus bus;
    Source source, other(a = 3);
    Plant plant;
  equation
    connect(source.y, bus.speed);
    connect(other.y, bus.known);
    connect(bus, plant.bus);
  end A;
end P;
"""


def test_expandable_connectors_have_the_members_that_connections_name(tmp_path):
    path = tmp_path / "buses.mo"
    path.write_text(BUSES, encoding="utf-8")
    linear = fl.linearize(fl.load(f"{path}:P.A"), independent=["source.x", "other.x", "plant.z"])
    np.testing.assert_allclose(linear.A, [[-2, 0, 0], [0, -3, 0], [1, 0, -5]])
