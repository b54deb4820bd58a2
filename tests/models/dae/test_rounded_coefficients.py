"""Coefficients that are rounding decide nothing; parameters that change the structure have it reduced again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import DaeModel, Labels
from fmilin.signals import Signal, Signals

LEVER = ["der(x) = v", "m*der(v) = F - k*x"]


def lever(coefficient: str, **parameters: float) -> DaeModel:
    """A force that holds x at p where its own coefficient in the last equation is zero: F = k p + m p''."""
    return DaeModel(
        "lever",
        [*LEVER, f"{coefficient}*F = p - x"],
        inputs=["p"],
        outputs={"F": "F"},
        parameters={"m": 2.0, "k": 3.0, **parameters},
    )


@pytest.mark.parametrize("values", [(0.1, 0.2, 0.3), (0.25, 0.25, 0.5), (0.7, 0.1, 0.8), (1e5, 0.1, 100000.1)])
@pytest.mark.parametrize("text", ["(a + b - c)", "(a/2 + b/2 - c/2)", "cos(x)*(a + b - c)"])
def test_terms_that_cancel_are_zero_whatever_rounding_leaves(values: tuple[float, float, float], text: str) -> None:
    model = lever(text, **dict(zip("abc", values, strict=True)))
    lin = fl.linearize(model)
    assert (model.index, len(lin.A)) == (3, 0)
    assert np.abs(lin.D - [[3.0, 0.0, 2.0]]).max() < 1e-12


def test_a_coefficient_that_is_rounding_is_named_in_a_remark() -> None:
    lin = fl.linearize(lever("(a + b - c)", a=0.1, b=0.2, c=0.3))
    said = [str(w) for w in lin.warnings if "it is a rounding" in str(w)]
    assert len(said) == 1
    assert "'F' in '(a + b - c)*F = p - x' is 5.6e-17" in said[0]


def test_coefficients_that_cancel_when_unknowns_are_put_in_place_are_zero() -> None:
    """Terms 0.1 l1 + 0.2 l1 + 0.7 l1 - l1 vanish: a = b, l1 = -l2 = -a/2, a' = -1.5 a."""
    third = "0.1*l1 + 0.2*l1 + 0.7*l1 - l1 + a - b = 0"
    for last in ("l1 + l2 = 0", "l2 = -l1"):
        model = DaeModel("m", ["der(a) = -a + l1", "der(b) = -2*b + l2", third, last])
        lin = fl.linearize(model)
        assert model.index == 2
        assert np.abs(lin.A + 1.5).max() < 1e-14


@pytest.mark.parametrize("text", ["5.551115123125783e-17", "(0.1 + 0.2 - 0.3)", "1e-18", "-2.220446049250313e-16"])
def test_a_number_that_may_be_rounding_is_refused_by_name_where_it_decides(text: str) -> None:
    with pytest.raises(fl.NumericalError, match=r"the coefficient -?[0-9.]+e-1[678] of 'F' in .* Write 0 in its place"):
        lever(text)


def test_small_coefficients_that_are_meant_stay() -> None:
    """A femtofarad beside a kiloohm: the time constant is 5e-13 s; with nominal values even rounding is meant."""
    rc = DaeModel("rc", ["c*der(v) = i - v/r", "i = (u - v)/r"], inputs=["u"], parameters={"c": 1e-15, "r": 1e3})
    assert abs(fl.linearize(rc).A[0, 0] * 5e-13 + 1.0) < 1e-12
    labels = Labels(nominals={"F": 1e17})
    model = DaeModel("lever", ["der(x) = v", "2*der(v) = F - 3*x", "1e-17*F = p - x"], inputs=["p"], labels=labels)
    assert len(fl.linearize(model).A) == 2


@pytest.mark.parametrize("text", ["a*F", "a*cos(x)*F"])
@pytest.mark.parametrize(("first", "second"), [(0.0, 2.0), (2.0, 0.0)])
def test_a_parameter_that_becomes_zero_or_stops_being_zero_changes_index_and_order(
    text: str, first: float, second: float
) -> None:
    changed = lever(text.removesuffix("*F"), a=first).with_parameters({"a": second})
    fresh = lever(text.removesuffix("*F"), a=second)
    lin, truth = fl.linearize(changed), fl.linearize(fresh)
    assert (changed.index, len(lin.A)) == (fresh.index, len(truth.A))
    assert lin.A.shape == (0, 0) if second == 0.0 else np.abs(lin.A[1] - [-(3 + 1 / second) / 2, 0]).max() < 1e-14
    assert np.abs(lin.D - truth.D).max() < 1e-14


def test_a_parameter_that_makes_a_coefficient_infinite_is_refused() -> None:
    """x' = u - x/(q + 1/p) has no limit that its coefficient could be divided by at p = 0."""
    model = DaeModel("m", ["der(x) + z = u", "z*(q + 1/p) = x"], inputs=["u"], parameters={"p": 2.0, "q": 1.0})
    assert fl.linearize(model).A[0, 0] == pytest.approx(-2 / 3)
    with pytest.raises(fl.NumericalError, match=r"derivative of 'z\*\(q \+ 1/p\) = x' by 'z' .* is infinite"):
        model.with_parameters({"p": 0.0})


def test_parameters_that_make_a_matrix_singular_without_a_zero_reduce_again() -> None:
    """[[a, 1], [1, 0.5]] is singular at a = 2 alone; there y + x is prescribed, and x' + 0.5 y' remains."""
    equations = ["a*der(x) + der(y) = u - y - 3*x", "der(x) + 0.5*der(y) = x - y"]
    for first, second in ((2.0, 1.0), (1.0, 2.0)):
        model = DaeModel("m", equations, inputs=["u"], parameters={"a": first}).with_parameters({"a": second})
        lin = fl.linearize(model)
        if second == 1.0:
            truth = np.linalg.solve([[1.0, 1.0], [1.0, 0.5]], [[-3.0, -1.0], [1.0, -1.0]])
            assert np.abs(np.sort(lin.eigenvalues()) - np.sort(np.linalg.eigvals(truth))).max() < 1e-12
        else:  # u - y - 3x = 2 (x - y): y = 5x - u
            assert np.abs(lin.eigenvalues() + 8.0 / 7.0).max() < 1e-12


@pytest.mark.parametrize(
    "double",
    [
        lambda h, p: ca.if_else(h > 1, 2 * p, 0),
        lambda h, p: ca.if_else(ca.fmax(h - 1, 0), 2 * p, 0),
        lambda h, p: (1 + ca.sign(h - 1)) * p,
        lambda h, p: 2 * ca.fmin(ca.floor(h), 1) * p,
    ],
    ids=["comparison", "number as a condition", "sign", "floor"],
)
def test_a_variable_that_decides_on_a_branch_is_not_dropped_for_its_slope_of_zero(
    double: Callable[[Any, Any], Any],
) -> None:
    """q = 2 p where h > 1, with p = 3 h: h' = -6 h at h = 2, 0 at h = 0.5."""
    h, rate, q, p = (ca.SX.sym(name) for name in ("h", "der(h)", "q", "p"))
    graph = fl.models.DaeGraph(
        name="branch",
        residuals=ca.vertcat(rate + q, q - double(h, p), p - 3 * h),
        x=h,
        dx=rate,
        z=ca.vertcat(q, p),
        states=Signals([Signal("h", start=2.0)]),
        algebraic=Signals(["q", "p"]),
    )
    model = fl.models.DaeModel.from_graph(graph)
    np.testing.assert_allclose(fl.linearize(model).A, [[-6]], rtol=1e-12)
    np.testing.assert_allclose(fl.linearize(model, fl.operating_point(model, {"h": 0.5})).A, [[0]], atol=1e-12)
