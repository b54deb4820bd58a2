"""``delay(x, T)`` in the texts of native models, against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import lambertw

import fmilin as fl
from fmilin.models import DaeModel, DelayedModel, LagrangeModel, OdeModel

W = np.geomspace(0.02, 50.0, 40)


def linearize(model: fl.Model, point: fl.OperatingPoint | None = None) -> fl.DelayedLinearModel:
    lin = fl.linearize(model, point)
    assert isinstance(lin, fl.DelayedLinearModel)
    return lin


def test_rightmost_eigenvalues_of_hayes_equation_are_lamberts() -> None:
    """x' = a x + b x(t - 1): s = a + W(b exp(-a))."""
    for a, b in ((-1.0, -2.0), (0.5, -1.2), (-3.0, 2.5)):
        exact = a + np.array([lambertw(b * math.exp(-a), k) for k in range(-4, 4)])
        rightmost = exact[np.argsort(-exact.real)][:4]
        values = linearize(OdeModel("Hayes", {"x": f"({a})*x + ({b})*delay(x, 1)"})).eigenvalues(4)
        assert np.abs(rightmost[:, None] - values).min(axis=1).max() < 1e-13


@pytest.mark.parametrize("a", [-1.5, -0.4, 0.6])
def test_the_stability_limit_is_hayes(a: float) -> None:
    """With v in (0, pi), v cot v = a, x' = a x + b x(t - 1) is stable for -v/sin v < b < -a (Hayes 1950)."""
    v = _solve(lambda angle: angle / math.tan(angle) - a, 1e-6, math.pi - 1e-6)
    model = OdeModel("Hayes", {"x": "a*x + b*delay(x, 1)"}, parameters={"a": a, "b": 0.0})
    for limit in (-v / math.sin(v), -a):
        values = [linearize(model.with_parameters({"b": limit + d})).eigenvalues(2)[-1].real for d in (-1e-6, 1e-6)]
        assert values[0] * values[1] < 0
        assert np.abs(values).max() < 3e-6


def _solve(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-14))


def test_a_nonlinear_delay_equation_is_trimmed_and_linearized() -> None:
    """The delayed logistic equation has s = -r exp(-s tau) at n = K, and is stable for r tau < pi/2 (Hutchinson)."""
    values = {"r": 1.0, "tau": 1.5, "K": 2.0}
    growth = OdeModel("growth", {"n": "r*n*(1 - delay(n, tau)/K)"}, parameters=values, start={"n": 1.5})
    point = fl.trim(growth)
    assert point.states == pytest.approx([2.0], abs=1e-12)
    s = linearize(growth, point).eigenvalues(2)
    assert np.abs(s * np.exp(1.5 * s) + 1).max() < 1e-13
    later = growth.with_parameters({"tau": math.pi / 2})
    assert isinstance(later, DelayedModel)
    assert later.delays == {"n": math.pi / 2}
    assert np.abs(np.abs(linearize(later, point).eigenvalues(2)) - 1).max() < 1e-12
    warnings = linearize(growth).warnings
    assert any("delayed signals count as constant before it" in warning.message for warning in warnings)


def test_models_of_every_form_of_equations_have_delays() -> None:
    """m q'' + c q' + k q = F - d q'(t - T1) with the output q(t - 0.1 - 0.3) + q'."""
    force, output = "F - k*q - c*v - d*delay(v, 2*T)", "delay(delay(q, 0.1), 0.3) + v"
    parameters = {"m": 2.0, "c": 0.3, "k": 5.0, "d": 0.7, "T": 0.25}
    models = [
        OdeModel("ode", {"q": "v", "v": f"({force})/m"}, inputs=["F"], parameters=parameters, outputs={"y": output}),
        LagrangeModel(
            "lagrange", {"q": "v"}, [["m"]], [force], inputs=["F"], parameters=parameters, outputs={"y": output}
        ),
        DaeModel(
            "dae",
            ["der(q) = v", "m*der(v) = f", f"f = {force}"],
            inputs=["F"],
            parameters=parameters,
            outputs={"y": output},
        ),
    ]
    s = 1j * W
    exact = (np.exp(-0.4 * s) + s) / (2 * s**2 + 0.3 * s + 5 + 0.7 * s * np.exp(-0.5 * s))
    for model in models:
        assert isinstance(model, DelayedModel)
        lin = linearize(model)
        assert sorted(lin.delays.values()) == [0.1, 0.3, 0.5]
        assert np.abs(lin.frequency_response(W)[0, 0] / exact - 1).max() < 1e-12
        chosen = fl.linearize(model.with_interface(["F"], ["q"]), inputs=[])
        assert chosen.outputs.names == ("q",)
        assert len(chosen.inputs) == 0


def test_models_with_delays_are_members_of_systems() -> None:
    plant = OdeModel("plant", {"x": "u - delay(x, 0.5)"}, inputs=["u"], outputs={"y": "x"})
    law = OdeModel("law", {"z": "e - z"}, inputs=["e"], outputs={"u": "-z"})
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    lin = linearize(fl.connect({"plant": plant, "law": law}, wires, delays={"law.e": 0.25}))
    assert lin.delays == {"plant.x": 0.5, "law.e": 0.25}
    s = lin.eigenvalues(6)
    assert np.abs((s + np.exp(-0.5 * s)) * (s + 1) + np.exp(-0.25 * s)).max() < 1e-10


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("delay(x)", "delay takes an expression and a time"),
        ("delay(x, x)", "the time contains 'x', and may contain numbers and parameters only"),
        ("delay(x, -1)", "a delay is finite and not negative"),
        ("delay(x, (1)", "is not closed"),
        ("delay(x, delay(x, 1))", "contains a delay itself"),
    ],
)
def test_delays_that_cannot_be_read_are_rejected(equation: str, message: str) -> None:
    with pytest.raises(fl.UsageError, match=message):
        OdeModel("a", {"x": equation})


def test_functions_that_are_not_made_for_delays_stop() -> None:
    model = OdeModel("a", {"x": "-delay(x, 1)"})
    for use in (
        lambda: fl.simulate(model, stop_time=1.0),
        lambda: fl.connect({"a": model}, []),
        lambda: model.evaluate(0.0, np.zeros(1), np.zeros(0)),
    ):
        with pytest.raises(fl.UsageError, match="and this is not made for delays: it would ignore them"):
            use()
    with pytest.raises(fl.UsageError, match="families hold matrices, which linear models with delays do not have"):
        fl.sweep(model, {"x": [0.0, 1.0]})
    with pytest.raises(fl.UsageError, match=r"delay\(x, T\) stands in equations of OdeModel"):
        OdeModel("a", {"x": "-x"}, constraints=["delay(x, 1)"])
    with pytest.raises(fl.UsageError, match="stands in an equation that has to be differentiated"):
        DaeModel("d", ["der(x) = v", "der(v) = L", "x = delay(u, 1)"], inputs=["u"])
    with pytest.raises(fl.UsageError, match="The system is neutral"):
        linearize(DaeModel("n", ["der(x) = -x - 0.5*delay(der(x), 1)"])).eigenvalues()
    with pytest.raises(fl.UsageError, match="has delays"):
        fl.connect({"a": OdeModel("a", {"x": "-delay(x, T)"}, parameters={"T": 1.0})}, [])


@pytest.mark.parametrize("lobe", [1, 4])
def test_the_stability_lobes_of_turning_are_those_of_the_literature(lobe: int) -> None:
    """x'' + 2 zeta x' + x = -w (x - x(t - tau)): the lobes of Stépán (1989) and Insperger and Stépán (2011).

    w = ((1 - s^2)^2 + 4 zeta^2 s^2)/(2 (s^2 - 1)) and tau = 2 (j pi - atan((s^2 - 1)/(2 zeta s)))/s at the frequency s
    of chatter; the smallest depth of cut of every lobe is w = 2 zeta (1 + zeta), at s^2 = 1 + 2 zeta.
    """
    zeta = 0.02
    s = math.sqrt(1 + 2 * zeta)
    w = ((1 - s**2) ** 2 + 4 * zeta**2 * s**2) / (2 * (s**2 - 1))
    assert w == pytest.approx(2 * zeta * (1 + zeta), rel=1e-12)
    tau = 2 * (lobe * math.pi - math.atan((s**2 - 1) / (2 * zeta * s))) / s
    cut = OdeModel(
        "turning",
        {"x": "v", "v": "-2*zeta*v - x - w*(x - delay(x, tau))"},
        parameters={"zeta": zeta, "w": w, "tau": tau},
    )
    assert abs(linearize(cut).eigenvalues(2)[-1] - 1j * s) < 1e-12
    shallower, deeper = (linearize(cut.with_parameters({"w": w * factor})) for factor in (0.999, 1.001))
    assert shallower.stability().stable is True
    assert deeper.stability().stable is False
    wide = linearize(cut.with_parameters({"w": 1.5 * w}))
    for square in np.roots([1.0, 4 * zeta**2 - 2 - 3 * w, 1 + 3 * w]).tolist():  # s^2 at both flanks, at 1.5 w
        s = math.sqrt(square)
        flank = 2 * (lobe * math.pi - math.atan((square - 1) / (2 * zeta * s))) / s
        (change,) = wide.sweep_delays({"x": [0.999 * flank, 1.001 * flank]}).changes
        assert change.delays["x"] == pytest.approx(flank, rel=1e-9)
        assert change.frequency == pytest.approx(s, rel=1e-9)
