"""The procedure in symbols."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import NumericalError, UnknownNameError, UsageError
from fmilin.models import KaneModel, Labels
from fmilin.systems import bicycle, rolling_disk
from tests.models.kane.examples import bead, cartesian_lagrange
from tests.systems.skate_model import skate

r, g, v = sympy.symbols("r g v", real=True)


def upright() -> dict[str, object]:
    return {"q1": 0, "q2": 0, "q3": 0, "q6": -r, "u1": 0, "u2": -v / r, "u3": 0, "u4": v, "u5": 0, "u6": 0}


def test_eigenvalues_of_the_upright_disk_as_formulas() -> None:
    """Peterson et al.: +- 2 sqrt(1 - 3 v^2)/sqrt(5) for g = r = 1, and six zeros; here for any g and r."""
    found = rolling_disk().linearize_symbolic(upright())
    eigenvalues = found.A.eigenvals()
    assert eigenvalues[sympy.S.Zero] == 6
    squares = {sympy.simplify(s**2 - (4 * g / (5 * r) - 12 * v**2 / (5 * r**2))) for s in eigenvalues if s != 0}
    assert squares == {sympy.S.Zero}
    assert found.B.shape == (8, 2)


def test_symbols_and_numbers_agree_away_from_equilibrium() -> None:
    model = skate(2.0, yaw_rate=0.7, offset=0.3, slope=20, inertia=0.5)
    states = dict(zip(model.states.names, model.start.states, strict=True)) | {"psi": 0.4}
    numbers = fl.linearize(model.with_start(states))
    symbols = model.linearize_symbolic({"s": 0}, simplify=False)
    values = {sympy.Symbol(k, real=True): v for k, v in (states | dict(model.parameters)).items()}
    values |= {sympy.Symbol("push", real=True): 0, sympy.Symbol("torque", real=True): 0}
    for found, expected in ((symbols.A, numbers.A), (symbols.B, numbers.B), (symbols.T, numbers.T)):
        np.testing.assert_allclose(np.array(found.xreplace(values).evalf(), dtype=float), expected, atol=1e-14)


def test_latex_shows_the_equation() -> None:
    m, G = sympy.symbols("m g", real=True)
    model = KaneModel("bead", bead(), parameters={"m": 2, "g": 9.81}, labels=Labels(independent=("x", "vx")))
    found = model.linearize_symbolic({"x": 0, "y": 0, "vx": 0, "vy": 0})
    assert sympy.Matrix([[0, 1], [-G, 0]]) == found.A
    text = found.latex()
    assert text.startswith(r"\frac{d}{dt}\,\delta")
    assert r"- g & 0" in text
    assert "r" not in found.inputs
    assert skate().linearize_symbolic({"psi": 0, "s": 0}).latex().count("delta") == 3
    assert m not in found.A.free_symbols


def test_multipliers_are_solved_in_symbols_too() -> None:
    model = KaneModel.from_sympy(cartesian_lagrange(), parameters={"m": 2.0, "g": 9.81, "L": 0.5}, start={"y": 0.5})
    found = model.linearize_symbolic({"x": 0, "y": "L", "x_dot": 0, "y_dot": 0, "push": 0}, independent=["x", "x_dot"])
    L, m = sympy.symbols("L m", real=True)
    assert sympy.Matrix([[0, 1], [-g / L, 0]]) == found.A
    assert sympy.Matrix([0, 1 / m]) == found.B


def test_a_singular_choice_is_refused() -> None:
    with pytest.raises(NumericalError, match="singular at this point"):
        rolling_disk().linearize_symbolic(upright(), independent=["q1", "q6", "q3", "q4", "q5", "u1", "u2", "u3"])


def test_names_must_be_known_and_independent_states_given() -> None:
    with pytest.raises(UnknownNameError, match="'q9' is not a state, an input or a parameter"):
        rolling_disk().linearize_symbolic({"q9": 0})
    plain = KaneModel("bead", bead(), parameters={"m": 2, "g": 9.81})
    with pytest.raises(UsageError, match="name them"):
        plain.linearize_symbolic({})


def test_large_systems_are_referred_to_numbers() -> None:
    with pytest.raises(UsageError, match=r"'bicycle' have \d+ operations; .* Use linearize\(\)"):
        bicycle().linearize_symbolic({})
