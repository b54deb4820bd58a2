"""``delay`` in Modelica and the delays of the Standard Library against closed forms."""

import control
import numpy as np
import pytest
from scipy.special import lambertw

import fmilin as fl
from fmilin.export.files import save
from fmilin.formats import Writing
from fmilin.models import DelayedModel

W = np.geomspace(0.02, 30.0, 30)

LOOP = """model Loop
  parameter Real T = 1.0;
  parameter Real b = 2;
  input Real u;
  output Real y;
  Real x(start = 0.5);
equation
  der(x) = -x - b*delay(x, T) + u;
  y = delay(x + u, T/2, 1.0);
end Loop;
"""

BLOCKS = """model Loop
  Modelica.Blocks.Interfaces.RealInput u;
  Modelica.Blocks.Interfaces.RealOutput y;
  Modelica.Blocks.Math.Feedback feedback;
  Modelica.Blocks.Continuous.FirstOrder plant(T = 2, k = 3, initType = Modelica.Blocks.Types.Init.InitialState);
  Modelica.Blocks.Nonlinear.FixedDelay dead(delayTime = 0.25);
  Modelica.Blocks.Nonlinear.FixedDelay sensor(delayTime = 0.1);
equation
  connect(u, feedback.u1);
  connect(feedback.y, plant.u);
  connect(plant.y, dead.u);
  connect(dead.y, feedback.u2);
  connect(dead.y, sensor.u);
  connect(sensor.y, y);
end Loop;
"""

CART = """model Cart
  input Real F;
  output Real y = x;
  Real x, v, force;
equation
  der(x) = v;
  2*der(v) = force;
  force = F - 5*x - 0.7*delay(v, 0.3);
end Cart;
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "model.mo"
        path.write_text(text)
        return str(path)

    return write


def test_delay_is_an_exact_internal_delay(written):
    model = fl.load(written(LOOP))
    assert isinstance(model, DelayedModel)
    assert fl.trim(model).states == pytest.approx([0.0], abs=1e-12)
    s = 1j * W
    for T in (1.0, 0.6):
        changed = model.with_parameters({"T": T, "b": 2 * T})
        lin = fl.linearize(changed)
        assert lin.delays == {"x": T, "x+u": T / 2}
        assert (lin.inputs.names, lin.outputs.names) == (("u",), ("y",))
        x = 1 / (s + 1 + 2 * T * np.exp(-T * s))
        assert np.abs(lin.frequency_response(W)[0, 0] - np.exp(-T / 2 * s) * (x + 1)).max() < 1e-12
        exact = np.array([lambertw(-2 * T * T * np.exp(T), k) / T - 1 for k in (0, -1)])
        assert np.abs(np.sort_complex(lin.eigenvalues(2)) - np.sort_complex(exact)).max() < 1e-12
    assert fl.load(written(LOOP), parameters={"T": 0.3}).delays == {"x": 0.3, "x+u": 0.15}
    with pytest.raises(fl.UsageError, match="and this is not made for delays"):
        fl.simulate(model, stop_time=1.0)


def test_equations_with_algebraic_variables_have_delays(written):
    lin = fl.linearize(fl.load(written(CART)))
    s = 1j * W
    exact = 1 / (2 * s**2 + 5 + 0.7 * s * np.exp(-0.3 * s))
    assert np.abs(lin.frequency_response(W)[0, 0] / exact - 1).max() < 1e-12


def test_fixed_delays_of_the_standard_library_are_exact(written, standard_library):
    lin = fl.linearize(fl.load(written(BLOCKS), options={"library": [standard_library]}))
    assert sorted(lin.delays.values()) == [0.1, 0.25]
    s = 1j * W
    loop = 3 / (2 * s + 1) * np.exp(-0.25 * s)
    exact = loop / (1 + loop) * np.exp(-0.1 * s)
    assert np.abs(lin.frequency_response(W)[0, 0] - exact).max() < 1e-12
    assert len(lin.states) == 1


def test_a_linear_model_with_delays_is_read_back_from_its_modelica_file(tmp_path):
    plant = fl.models.OdeModel(
        "plant",
        {"x": "-x*x - 2*delay(x, 0.5) + u"},
        inputs=["u"],
        outputs={"y": "x + delay(u, 0.25)"},
        start={"x": 0.5},
    )
    lin = fl.linearize(plant, fl.trim(plant, fixed={"x": 0.5}, free=["u"]), delays={"y": 0.1})
    path = tmp_path / "late.mo"
    for options in ({}, {"modelica": "equations"}, {"deviation": True}):
        save(lin, path, Writing(**options))
        back = fl.linearize(fl.load(path))
        assert sorted(back.delays.values()) == [0.1, 0.25, 0.5]
        assert back.is_equilibrium
        assert np.abs(back.frequency_response(W) - lin.frequency_response(W)).max() < 1e-14
    assert back.with_delay_values({}).eigenvalues(2) == pytest.approx(lin.eigenvalues(2), abs=1e-13)


PADE = """model Loop
  Modelica.Blocks.Interfaces.RealInput u;
  output Real y[3] = {first.y, balanced.y, lower.y};
  Modelica.Blocks.Nonlinear.PadeDelay first(delayTime = 0.4);
  Modelica.Blocks.Nonlinear.PadeDelay balanced(delayTime = 0.4, n = 3, m = 3, balance = true);
  Modelica.Blocks.Nonlinear.PadeDelay lower(delayTime = 0.4, n = 4, m = 2);
equation
  connect(u, first.u);
  connect(u, balanced.u);
  connect(u, lower.u);
end Loop;
"""


def test_pade_delays_of_the_library_are_the_pade_approximations_of_their_orders(written):
    """The quotient of sum (n+m-k)! m! / ((n+m)! k! (m-k)!) (-s T)^k and the same of s T and n."""

    def polynomial(degree: int, other: int, z: np.ndarray) -> np.ndarray:
        coefficients = [1.0]
        for k in range(degree):
            coefficients.append(coefficients[-1] * (degree - k) / ((degree + other - k) * (k + 1)))
        return np.polynomial.Polynomial(coefficients)(z)

    lin = fl.linearize(fl.load(written(PADE)))
    assert len(lin.states) == 1 + 3 + 4
    gain = fl.linearize(fl.connect({"gain": control.ss([], [], [], [[1.0]], inputs="u", outputs="y")}))
    s = 1j * W
    for response, (n, m) in zip(lin.frequency_response(W)[:, 0], [(1, 1), (3, 3), (4, 2)], strict=True):
        exact = polynomial(m, n, -0.4 * s) / polynomial(n, m, 0.4 * s)
        np.testing.assert_allclose(response, exact, rtol=1e-11)
        if n == m:
            own = gain.with_delays(inputs={"gain.u": 0.4}).pade(n)
            np.testing.assert_allclose(response, own.frequency_response(W)[0, 0], rtol=1e-11)
