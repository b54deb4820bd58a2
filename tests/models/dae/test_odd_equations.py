"""Equations that are odd, undefined at the start or malformed give errors of fmilin only."""

from __future__ import annotations

from contextlib import suppress

import casadi as ca
import numpy as np
import pytest

import fmilin as fl
from fmilin.codegen.library_errors import explain_library_errors
from fmilin.models import DaeModel

ODD = (
    ["der(x) = -0.1", "sin(exp((z / time))) = -1.4"],
    ["der(x) = sqrt(z)", "log(1 + der(x)) = (x + 1)^2 - time/time^2"],
    ["der(x) = z + y", "der(y) = -x", "y + (exp(x)*exp(-x) - 1)*z = u"],
    ["der(x) = z", "tan(z^0.5) = time - x"],
    ["der(x) = x/der(x)", "z = log(der(x))"],
    ["0 = min(x/der(y), der(x)/a) - der(y)", "z = x - log(min(a, x))", "der(y) = u"],
    ["der(x) = z", "0*z = 0*x"],
    ["der(x) = a/a", "z^z = x"],
)
MALFORMED = (
    *("der(x) = ", "der(der(x)) = u", "der() = x", "x = 1e999*der(x)", "der(x) = \0", "der(x) = x if x else u"),
    *("der(x) == u", "der(x) = [1]", "der(1) = x", "der(x) = lambda", "der(x) = 1j", "der(x) = x0[", "", "="),
    *("der(x) = __import__('os')", "(((((der(x) = x", "der(x) = u = 1", "der(x) = é", "`der(x) = 1"),
)


@pytest.mark.parametrize("equations", [*ODD, *([text] for text in MALFORMED)])
@pytest.mark.parametrize("start", [0.0, 1e10])
def test_only_errors_of_fmilin_escape(equations: list[str], start: float) -> None:
    with suppress(fl.FmilinError):
        model = DaeModel("odd", equations, inputs=["u"], parameters={"a": 0.0}, start={"x": start} if start else {})
        assert all(np.isfinite(fl.linearize(model).A).ravel())


def test_a_state_of_another_size_does_not_end_the_search_for_combinations() -> None:
    equations = ["der(x) = der(y)", "der(y) = y", "der(z) = y"]
    lin = fl.linearize(DaeModel("m", equations, start={"x": -1.0, "z": 1e10}))
    assert np.abs(np.sort(lin.eigenvalues().real) - [0.0, 0.0, 1.0]).max() < 1e-12


def test_a_slope_that_is_not_a_number_is_named_with_its_equation() -> None:
    with pytest.raises(
        fl.NumericalError, match=r"The derivative of 'sin\(exp\(.* by 'z' in 'odd' is infinite or not a"
    ):
        DaeModel("odd", ODD[0], inputs=["u"])


def test_an_exception_of_casadi_is_told_in_words_and_kept_as_the_cause() -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("der(l1)")
    with (
        pytest.raises(fl.NumericalError, match=r"the equations of 'm' failed: .*der\(l1\)") as caught,
        explain_library_errors("the equations of 'm'"),
    ):
        ca.Function("f", [x], [x + y])
    assert isinstance(caught.value.__cause__, RuntimeError)
