"""Algebraic variables that enter nonlinearly: one solution in numbers, C code, FMUs, CasADi and connected systems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import DenseFactors
from fmilin.codegen.c_source_export import PointCode
from fmilin.codegen.implicit import Guess, solve_implicit
from fmilin.fmi.write import build_fmu
from fmilin.models import DaeModel, OdeModel


def tanks(s: float = 2.0, **start: float) -> DaeModel:
    """Two tanks with a pipe whose flow is found from a cubic equation."""
    return DaeModel(
        "tanks",
        ["A*der(h1) = -q", "A*der(h2) = q - k*sqrt(h2) + u", "h1 - h2 = r*q + s*q^3", "w^5 + w = h1*h2"],
        inputs=["u"],
        parameters={"A": 1.0, "k": 0.1, "r": 0.5, "s": s},
        outputs={"q": "q", "w": "w"},
        start={"h1": 2.0, "h2": 1.0, "q": 0.5, "w": 1.0, "u": 0.3} | start,
    )


def slope_of_flow(h1: float, h2: float) -> float:
    """Return dq/dh1 by Cardano's formula: h1 - h2 = q/2 + 2 q^3."""
    d = h1 - h2
    root = np.sqrt((d / 4) ** 2 + (1 / 12) ** 3)
    q = np.cbrt(d / 4 + root) + np.cbrt(d / 4 - root)
    return float(1 / (0.5 + 6 * q**2))


def test_slopes_are_those_of_the_implicit_function() -> None:
    lin = fl.linearize(tanks())
    g = slope_of_flow(2.0, 1.0)
    assert np.abs(lin.A - [[-g, g], [g, -g - 0.05]]).max() < 1e-13


def test_compiled_code_finds_the_same_solutions_far_from_the_start() -> None:
    model, random = tanks(), np.random.default_rng(1)
    compiled = PointCode(model.in_graph()).compile()  # type: ignore[arg-type]
    for _ in range(100):
        x, u = random.uniform(0.1, 400.0, 2), random.uniform(-9.0, 9.0, 1)
        here = model.evaluate(0.0, x, u)
        values = compiled(0.0, x, u)
        assert values is not None
        expected = np.concatenate((here.derivatives, here.outputs))
        assert np.abs(values - expected).max() < 1e-12 * np.abs(expected).max()


def test_an_fmu_has_the_same_linear_model(tmp_path: Path) -> None:
    model = tanks()
    with fl.load(build_fmu(model, tmp_path / "tanks.fmu")) as fmu:
        a, b = fl.linearize(model), fl.linearize(fmu)
        assert b.method.derivatives == "exact"
        assert max(np.abs(getattr(a, n) - getattr(b, n)).max() for n in "ABCD") < 1e-14


def test_an_fmu_names_the_equation_that_it_does_not_solve(tmp_path: Path) -> None:
    model = DaeModel("well", ["der(x) = -z", "z^2 + z = x"], start={"x": 6.0, "z": 2.0})
    with fl.load(build_fmu(model, tmp_path / "well.fmu")) as fmu:
        assert abs(fmu.evaluate(0.0, np.array([0.0]), np.empty(0)).derivatives[0]) < 1e-12
        with pytest.raises(
            fl.NumericalError, match=r"no values of the algebraic variables at time 0: 'z\^2 \+ z = x' is left"
        ):
            fmu.evaluate(0.0, np.array([-3.0]), np.empty(0))


def test_casadi_solves_for_the_same_unknowns() -> None:
    model = tanks()
    rates = fl.to_casadi(model).f(x=[7.0, 3.0], u=0.1)["x_dot"].full().ravel()
    assert np.abs(rates - model.evaluate(0.0, np.array([7.0, 3.0]), np.array([0.1])).derivatives).max() < 1e-12


def test_derivatives_by_a_parameter_agree_with_differences() -> None:
    h = 1e-5
    exact = fl.linearize(tanks(), parameters=["s"]).derivatives["s"].A
    measured = (fl.linearize(tanks(2.0 + h)).A - fl.linearize(tanks(2.0 - h)).A) / (2 * h)
    assert np.abs(exact - measured).max() < 1e-8


def test_a_loop_through_a_member_becomes_an_fmu(tmp_path: Path) -> None:
    controller = OdeModel("pi", {"e": "r - y"}, inputs=["r", "y"], outputs={"u": "0.5*e + 0.1*(r - y)"})
    links = [("plant.w", "pi.y"), ("pi.u", "plant.u")]
    system = fl.connect({"plant": tanks(), "pi": controller}, links, inputs=["pi.r"], outputs=["plant.q"])
    with fl.load(build_fmu(system, tmp_path / "loop.fmu")) as fmu:
        a, b = fl.linearize(system), fl.linearize(fmu)
        assert max(np.abs(getattr(a, n) - getattr(b, n)).max() for n in "ABCD") < 1e-13


def test_the_equation_that_is_not_solved_is_named() -> None:
    model = DaeModel("well", ["der(x) = -z", "z^2 = x"], start={"x": 1.0, "z": 1.0})
    with pytest.raises(
        fl.NumericalError, match=r"did not solve the algebraic equations of 'well' at time 0: 'z\^2 = x' is left"
    ):
        model.evaluate(0.0, np.array([-1.0]), np.empty(0))
    with pytest.raises(
        fl.NumericalError, match=r"'z\^2 = x' is left with a residual of .* at the start|at the start: 'z"
    ):
        DaeModel("well", ["der(x) = -z", "z^2 = x"], start={"x": -1.0, "z": 1.0})


def test_the_branch_of_the_guess_is_kept() -> None:
    """sin(z) = x/2 from z = 0 has |z| < pi/2 throughout; undamped iteration lands on other branches near the ends."""
    guess = Guess(np.zeros(1), np.ones(1), 0.0, np.zeros(1), np.empty(0), np.empty(0))
    for x in np.linspace(-1.9999, 1.9999, 41):

        def linearized(point: tuple[float, np.ndarray, np.ndarray, np.ndarray], w: np.ndarray):  # type: ignore[no-untyped-def]
            return DenseFactors(np.array([[np.cos(w[0])]])), point[1] / 2 - np.sin(w)

        w = solve_implicit(linearized, guess, (0.0, np.array([x]), np.empty(0), np.empty(0)), "sine")[1]
        assert abs(w[0] - np.arcsin(x / 2)) < 1e-12


def tank(law: str, **start: float) -> DaeModel:
    """V' = q_in - q with p = V, and a law of the flow q that starts at 0."""
    equations = ["der(V) = q_in - q", "p = V", law]
    return DaeModel("tank", equations, states=["V"], algebraic=["p", "q"], inputs=["q_in"], start={"V": 4.0, **start})


@pytest.mark.parametrize(
    ("law", "slope", "flow"), [("p = q*abs(q)", 0.25, 2.0), ("p = q^3", 4.0 ** (-2 / 3) / 3, 4.0 ** (1 / 3))]
)
@pytest.mark.parametrize("level", [4.0, -4.0])
def test_a_flow_without_a_slope_at_its_start_value(law: str, slope: float, flow: float, level: float) -> None:
    linear = fl.linearize(tank(law, V=level))
    np.testing.assert_allclose(linear.A, [[-slope]], rtol=1e-9)
    np.testing.assert_allclose(linear.f0, [-np.sign(level) * flow], rtol=1e-9)


def test_two_flows_that_start_between_them_are_asked_for() -> None:
    """q = 2 and q = -2 are as near to 0: none is taken without a word, and no state moves to where they meet."""
    with pytest.raises(fl.NumericalError, match=r"two solutions near .* give start values nearer"):
        fl.linearize(tank("p = q^2"))
    np.testing.assert_allclose(fl.linearize(tank("p = q^2", q=-1.0)).A, [[0.25]], rtol=1e-9)


def test_equations_without_a_solution_and_without_slopes_at_the_guess_are_named() -> None:
    with pytest.raises(fl.NumericalError, match="No values of the algebraic variables of 'm' were found"):
        fl.linearize(DaeModel("m", ["der(x) = -z", "sqrt(z) + z^2 + 1 = x^2/100"], start={"x": 1.0}))
