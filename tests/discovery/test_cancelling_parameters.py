"""Channels that are zero because parameters cancel: the path is there, and its gain is zero at their values."""

from __future__ import annotations

import pytest

import fmilin as fl
from fmilin.models import OdeModel


@pytest.mark.parametrize(
    ("gain", "parameters", "culprits"),
    [
        ("(a - b)", {"a": 1.0, "b": 1.0}, {"a", "b"}),
        ("(a*b - 6)", {"a": 2.0, "b": 3.0, "c": 4.0}, {"a", "b"}),
        ("(a - b)*k", {"a": 1.0, "b": 1.0, "k": 0.0}, {"a", "b", "k"}),
        ("(a - b)*(c - d)", {"a": 1.0, "b": 1.0, "c": 2.0, "d": 2.0}, {"a", "b", "c", "d"}),
        ("k", {"k": 0.0, "a": 1.0}, {"k"}),
    ],
)
def test_the_parameters_are_named(gain: str, parameters: dict[str, float], culprits: set[str]) -> None:
    model = OdeModel("m", {"x": f"-x + {gain}*u"}, inputs=["u"], outputs={"y": "x"}, parameters=parameters)
    why = fl.explain(model, None, "u", "y")
    assert (why.kind, set(why.culprits), why.confirmed) == ("parameter", culprits, True)
    assert "no path" not in why.text


def test_parameters_that_cancel_and_a_factor_that_vanishes_at_the_point_are_named_together() -> None:
    rates = {"x": "-x + (a - b)*sin(z)*u", "z": "-z"}
    model = OdeModel("m", rates, inputs=["u"], outputs={"y": "x"}, parameters={"a": 1.0, "b": 1.0})
    why = fl.explain(model, None, "u", "y")
    assert why.kind == "point"
    assert set(why.culprits) == {"a", "b", "z"}


def test_parallel_paths_that_cancel_name_what_breaks_their_balance() -> None:
    rates = {"x": "-k*x + a*u", "z": "-k*z + b*u"}
    parameters = {"a": 1.0, "b": 1.0, "k": 2.0}
    model = OdeModel("m", rates, inputs=["u"], outputs={"y": "x - z"}, parameters=parameters)
    why = fl.explain(model, None, "u", "y")
    assert {"a", "b"} <= set(why.culprits)
    assert "cancel" in why.text


def test_without_any_path_it_says_so() -> None:
    model = OdeModel("m", {"x": "-x", "z": "-z + u"}, inputs=["u"], outputs={"y": "x"}, parameters={"a": 1.0, "b": 1.0})
    assert fl.explain(model, None, "u", "y").kind == "no path"
