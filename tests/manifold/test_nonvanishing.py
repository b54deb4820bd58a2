"""Constraints that vanish wherever the states are say nothing, and are refused; small ones are constraints."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import sympy

import fmilin as fl
from fmilin import Constraint
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum
from tests.by_hand import FunctionModel, Parts, pendulum

SAY_NOTHING = [
    "x - x",
    "0*x",
    "x/x - 1",
    "sin(x)^2 + cos(x)^2 - 1",
    "1e9*(sin(x)^2 + cos(x)^2 - 1)",
    "(x + y)^2 - x^2 - 2*x*y - y^2",
    "exp(log(abs(x) + 1)) - abs(x) - 1",
    "max(x, y) - max(y, x)",
]


@pytest.mark.parametrize("text", SAY_NOTHING)
@pytest.mark.parametrize("level", ["position", "velocity"])
def test_what_vanishes_identically_is_refused(text: str, level: Literal["position", "velocity"]) -> None:
    model = cartesian_pendulum().with_constraints([Constraint.from_text(text, level=level)])
    for act in (fl.operating_point, fl.linearize):
        with pytest.raises(fl.ConstraintError, match="vanishes identically") as refused:
            act(model)
        assert refused.value.exit_status == 4


def test_beside_a_true_constraint_too() -> None:
    model = cartesian_pendulum().with_constraints(
        [Constraint.from_text(c) for c in ("x^2 + y^2 - L^2", "y*0", "x - x")]
    )
    with pytest.raises(fl.ConstraintError, match=r"'y\*0', 'x - x' vanish identically"):
        fl.linearize(model)


@pytest.mark.parametrize("factor", ["1e-15", "1e12", "(1 + 0*y)"])
def test_small_and_large_constraints_are_constraints(factor: str) -> None:
    model = cartesian_pendulum().with_constraints([Constraint.from_text(f"{factor}*(x^2 + y^2 - L^2)")])
    assert fl.linearize(model).states.names == ("x", "vx")


def test_where_only_the_gradient_vanishes_at_the_point_it_is_a_constraint() -> None:
    """x^2 at x = 0."""
    parts = Parts(["x", "y"], [0.0, 1.0], lambda t, s, u: np.array([0.0, -s[1]]), constraints=["x^2"])
    fl.operating_point(FunctionModel(parts))


def test_sympy_expressions_as_well() -> None:
    x, v = sympy.symbols("x v")
    equations = {x: v, v: -x}
    model = OdeModel("ode", equations, start={x: 1.0}, constraints=[sympy.sin(x) ** 2 + sympy.cos(x) ** 2 - 1])
    with pytest.raises(fl.ConstraintError, match="vanishes identically"):
        fl.linearize(model)


@pytest.fixture(scope="module")
def as_fmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fmu(cartesian_pendulum(), tmp_path_factory.mktemp("fmu") / "pendulum.fmu")


@pytest.mark.parametrize("text", ["residual[1] - (x^2 + y^2 - L^2)/2", "0*residual[1]", "vx - vx"])
def test_what_an_fmu_shows_less_what_it_shows(as_fmu: Path, text: str) -> None:
    with pytest.raises(fl.ConstraintError, match="vanishes identically"):
        fl.linearize(fl.load(as_fmu, constraints=[text]))


def test_what_an_fmu_computes_is_a_constraint(as_fmu: Path) -> None:
    assert fl.linearize(fl.load(as_fmu, constraints=["residual[1]"])).states.names == ("x", "vx")


def test_an_output_that_is_a_state_less_the_state() -> None:
    parts = pendulum(angle=0.3).parts
    parts.constraints, parts.observed = ["x^2 + y^2 - L^2", "shown - x"], {"shown": lambda _t, s, _u: float(s[0])}
    with pytest.raises(fl.ConstraintError, match="'shown - x' vanishes identically"):
        fl.linearize(FunctionModel(parts))


@pytest.mark.parametrize(("reach", "is_refused"), [(0.1, False), (1.0, True), (10.0, True)])
def test_a_computed_residual_must_be_zero_at_two_points_at_least_before_it_is_called_zero(
    reach: float, is_refused: bool
) -> None:
    """x^16 is rounding 0.01 from its zero, the only displaced point where the first model is defined."""

    def residual(_t: float, states: np.ndarray, _u: np.ndarray) -> float:
        distance = float(np.max(np.abs(states - [0.0, 1.0])))
        if distance > reach:
            raise fl.ModelError("outside the range of the table")
        return 0.0 if is_refused else float(states[0]) ** 16

    def rates(_t: float, states: np.ndarray, _u: np.ndarray) -> np.ndarray:
        return np.array([0.0, -states[1]])

    parts = Parts(["x", "y"], [0.0, 1.0], rates, constraints=["gap"], observed={"gap": residual})
    if is_refused:
        with pytest.raises(fl.ConstraintError, match="'gap' vanishes identically"):
            fl.operating_point(FunctionModel(parts))
    else:
        fl.operating_point(FunctionModel(parts))
