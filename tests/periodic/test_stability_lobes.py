"""Charts of the stability of delayed systems: boundaries in closed form, batches of coefficients, pictures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import mathieu_a, mathieu_b

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.periodic.delayed_floquet import CoefficientReader
from tests.periodic.test_delayed_floquet import milling


def hayes() -> OdeModel:
    return OdeModel("Hayes", {"x": "-k*delay(x, T)"}, parameters={"k": 1.0, "T": 1.0})


def test_the_boundary_of_hayes_equation() -> None:
    """x' = -k x(t - T) is stable for 0 < k T < pi/2."""
    lobes = fl.stability_lobes(hayes(), {"T": [1.0, 2.0], "k": [-0.5, 0.1, 3.0]}, period=1.0)
    T, k = lobes.boundary.T
    assert T.tolist() == [1.0, 1.0, 2.0, 2.0]
    np.testing.assert_allclose(k * T, [0.0, np.pi / 2] * 2, atol=1e-7)
    assert lobes.stable.tolist() == [[False, True, False]] * 2
    assert "2 stable, 4 unstable" in repr(lobes)


def test_boundaries_of_the_delayed_mathieu_equation_are_lines() -> None:
    """Insperger and Stepan (2002): stiffness = a/4 + mu gain with mu = +-1 and a characteristic value of Mathieu's."""
    rates = {"x": "v", "v": "-(s + 0.5*cos(time))*x + b*delay(x, 6.283185307179586)"}
    model = OdeModel("delayed Mathieu", rates, parameters={"s": 1.0, "b": 0.1})
    lobes = fl.stability_lobes(model, {"b": [0.1], "s": np.linspace(0.9, 1.5, 4)}, period=2 * np.pi)
    values = [float(mathieu_a(n, 1.0)) / 4 for n in range(5)] + [float(mathieu_b(n, 1.0)) / 4 for n in range(1, 5)]
    lines = np.array([value + sign * 0.1 for value in values for sign in (-1, 1)])
    assert len(lobes.boundary) >= 1
    assert np.abs(lobes.boundary[:, 1, None] - lines).min(axis=1).max() < 1e-6


def test_lobes_of_turning_are_those_of_the_closed_form() -> None:
    """Stepan (1989): w = ((1 - c^2)^2 + 4 z^2 c^2)/(2 (c^2 - 1)) at the chatter frequency c, least at sqrt(1 + 2 z).

    The least depth of cut of any speed is 2 z (1 + z) times the stiffness.
    """
    damping = 0.05
    rates = {"x": "v", "v": f"-{2 * damping}*v - x + w*(delay(x, T) - x)"}
    model = OdeModel("turning", rates, parameters={"T": 6.0, "w": 0.05})
    chatter = np.array([np.sqrt(1 + 2 * damping), 1.1])
    lobes = np.array([1, 2])
    revolution = 2 * (lobes * np.pi - np.arctan((chatter**2 - 1) / (2 * damping * chatter))) / chatter
    depth = ((1 - chatter**2) ** 2 + 4 * damping**2 * chatter**2) / (2 * (chatter**2 - 1))
    assert depth[0] == pytest.approx(2 * damping * (1 + damping), rel=1e-14)
    for T, w in zip(revolution, depth, strict=True):
        chart = fl.stability_lobes(model, {"T": [float(T)], "w": [0.02, 0.3]}, period=1.0)
        np.testing.assert_allclose(chart.boundary, [[T, w]], rtol=1e-7)


def test_a_period_follows_the_parameters_and_the_chart_is_drawn() -> None:
    model = OdeModel(
        "milling",
        {"x": "v", "v": "-127*v - 5793^2*x - 1e6*d/0.03993*(300*sin(2*w*time)+200*sin(w*time)^2)*(x - delay(x, pi/w))"
         .replace("pi", repr(float(np.pi)))},
        parameters={"w": 942.0, "d": 1e-3},
    )  # fmt: skip
    lobes = fl.stability_lobes(model, {"w": [900.0, 942.0], "d": [1e-3, 4e-3]}, period=lambda p: np.pi / p["w"])
    w, d = lobes.boundary[-1]
    at = fl.delayed_floquet(model.with_parameters({"w": float(w), "d": float(d)}), period=np.pi / w)
    assert abs(at.multipliers[0]) == pytest.approx(1.0, abs=1e-6)
    axes = lobes.plot().axes[0]
    assert axes.get_xlabel() == "w"
    (points,) = [line for line in axes.lines if "boundary" in str(line.get_label())]
    assert np.size(points.get_xdata()) == len(lobes.boundary)


def test_batches_have_the_coefficients_of_linear_models(monkeypatch: pytest.MonkeyPatch) -> None:
    model = milling(5e-4, 900.0, teeth=2)
    quick = fl.delayed_floquet(model, period=np.pi / 900)
    monkeypatch.setattr(CoefficientReader, "prepare", lambda *_: None)
    np.testing.assert_allclose(quick.multipliers, fl.delayed_floquet(model, period=np.pi / 900).multipliers, rtol=1e-12)


def test_what_is_no_parameter_is_refused() -> None:
    with pytest.raises(fl.UsageError, match="'q' is not a parameter of 'Hayes': k, T"):
        fl.stability_lobes(hayes(), {"q": [1.0]}, period=1.0)
