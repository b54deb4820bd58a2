"""Constraints bound to a model's variables."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fmilin import Constraint
from fmilin.constraints import Constraints
from fmilin.errors import ConstraintError
from fmilin.signals import Signal, Signals

STATES = Signals([Signal("x", aliases=("pin.x",)), "y", "vx", "vy"])
INPUTS = Signals(["F"])


def bound(*texts: str, **parameters: float) -> Constraints:
    return Constraints(
        [Constraint.from_text(text) for text in texts],
        STATES,
        INPUTS,
        parameters=parameters,
        other={"loop.gap": "gap", "gap": "gap"}.get,
        offered=["gap", "loop.gap"],
    )


def test_residuals_and_partials_over_all_kinds_of_variables() -> None:
    constraints = bound("x*y - L + time^2 + 3*F + gap^2", "gap", "vx", L=2.0)
    t, x, u, z = 0.5, np.array([1.0, 3.0, 0.1, 0.2]), np.array([0.25]), np.array([0.125])
    assert constraints.observed == ("gap",)
    np.testing.assert_allclose(constraints.residuals(t, x, u, z), [3 - 2 + 0.25 + 0.75 + 1 / 64, 0.125, 0.1])
    p = constraints.partials(t, x, u, z)
    np.testing.assert_allclose(p.states, [[3, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_allclose(p.observed, [[0.25], [1.0], [0.0]])
    np.testing.assert_allclose(p.inputs, [[3], [0], [0]])
    np.testing.assert_allclose(p.time, [1, 0, 0])
    assert constraints.time_dependent
    assert constraints.analytic.tolist() == [False, False, True]


def test_two_names_of_one_variable_add_up() -> None:
    constraints = bound("x^2 + pin.x^2")
    p = constraints.partials(0.0, np.array([3.0, 0, 0, 0]), np.zeros(1), np.empty(0))
    np.testing.assert_allclose(p.states, [[12.0, 0, 0, 0]])
    assert constraints.structure.tolist() == [[True, False, False, False]]


def test_curvature_is_the_gradient_of_the_rate() -> None:
    constraints = bound("x^2*y - sin(time*x)")
    x, w, t = np.array([1.1, 0.4, 0, 0]), np.array([0.3, -0.8, 0, 0]), 0.7

    def rate(s: np.ndarray) -> float:
        p = constraints.partials(t, s, np.zeros(1), np.empty(0))
        return float(p.time[0] + p.states[0] @ w)

    h = 1e-6
    expected = [(rate(x + h * e) - rate(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(constraints.curvature(t, x, np.zeros(1), w).states[0], expected, atol=1e-9)


def test_a_rate_that_was_declared_is_a_row_of_its_own() -> None:
    declared = Constraint.from_text("x^2 + y^2 - 1", name="rod", rate="2*x*vx + 2*y*vy")
    constraints = Constraints([declared], STATES, INPUTS)
    assert constraints.names == ("rod", "rate of rod")
    assert [row.needs_rate for row in constraints.rows] == [False, False]
    assert [row.level for row in constraints.rows] == ["position", "velocity"]


@pytest.mark.parametrize(("text", "near"), [("x^2 + vv", "vx"), ("loop.gup", "loop.gap"), ("LL - x", "L")])
def test_an_unknown_variable_is_named_with_the_nearest_ones(text: str, near: str) -> None:
    with pytest.raises(ConstraintError, match=rf"is not a variable of the model\. Did you mean .*'{near}'"):
        bound(text, L=1.0)


def test_an_expression_that_cannot_be_read_is_a_wrong_constraint() -> None:
    with pytest.raises(ConstraintError, match="is not part of arithmetic"):
        Constraint.from_text("x == 1")


def test_residuals_at_many_points_are_those_of_the_points() -> None:
    x, u = np.arange(24.0).reshape(2, 3, 4), np.array([0.5])
    z = np.arange(6.0).reshape(2, 3, 1)
    for constraints in (bound("x*y - time + gap", "vx"), bound("gap", "vy", "F")):
        result = constraints.residuals(0.25, x, u, z[..., : len(constraints.observed)])
        each = [
            [constraints.residuals(0.25, x[i, j], u, z[i, j, : len(constraints.observed)]) for j in range(3)]
            for i in range(2)
        ]
        np.testing.assert_array_equal(result, each)


def test_what_one_call_returned_stays_as_it_is_in_the_next() -> None:
    constraints = bound("x^2", "x*y")
    first = constraints.residuals(0.0, np.ones(4), np.zeros(1), np.empty(0))
    partials = constraints.partials(0.0, np.ones(4), np.zeros(1), np.empty(0)).states
    constraints.residuals(0.0, np.full(4, 9.0), np.zeros(1), np.empty(0))
    constraints.partials(0.0, np.full(4, 9.0), np.zeros(1), np.empty(0))
    assert first.tolist() == [1.0, 1.0]
    assert partials[:, :2].tolist() == [[2.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(("text", "loaded"), [("x", False), ("`gap`", False), ("x^2", True)])
def test_constraints_that_are_variables_load_no_library(text: str, *, loaded: bool) -> None:
    program = f"""
import sys, numpy as np
from fmilin.constraints.declared import Constraint, Constraints
from fmilin.signals import Signals
g = Constraints([Constraint.from_text({text!r})], Signals(["x"]), Signals([]), other=lambda name: name)
g.residuals(0.0, np.ones(1), np.empty(0), np.ones(len(g.observed)))
g.partials(0.0, np.ones(1), np.empty(0), np.ones(len(g.observed)))
g.curvature(0.0, np.ones(1), np.empty(0), np.ones(1))
print("casadi" in sys.modules, "sympy" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert result.split() == [str(loaded), "False"]


def test_a_long_expression_has_a_short_label() -> None:
    constraint = Constraint.from_text(" + ".join(f"{i}*x" for i in range(200)))
    assert len(constraint.label) < 220
    assert constraint.label.startswith("0*x + 1*x")
    assert constraint.label.endswith("199*x")


def test_a_text_is_no_expression_and_levels_are_two() -> None:
    """Said at once, with what to write instead."""
    with pytest.raises(ConstraintError, match=r"Constraint.from_text\('x - y', level='velocity'\) does that"):
        Constraint("x - y", level="velocity")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="'position' or 'velocity', not 'acceleration'"):
        Constraint.from_text("x - y", level="acceleration")  # type: ignore[arg-type]
