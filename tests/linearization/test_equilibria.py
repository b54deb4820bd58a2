"""What is called an equilibrium, at points whose rates are small: closed forms of where the nearest one is."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from tests.by_hand import FunctionModel, Parts

SOIL = {"T": "(283 - T)/1e7"}
SMALL = [
    (SOIL, {"T": 283.2}, False),  # 0.2 K away, at 2e-8 K/s
    (SOIL, {"T": 283.0}, True),
    (SOIL, {"T": 283.0 + 1e-6}, True),
    ({"x": "5e-11 - x"}, {"x": 0.0}, True),  # 5e-11 away
    ({"x": "exp(-x)"}, {"x": 24.0}, False),  # there is none
    ({"r": "v", "v": "24*(2/r^13 - 1/r^7) - 0.1*v"}, {"r": 46.55, "v": 0.0}, False),
    ({"r": "v", "v": "1/r^3 - 1/r^2"}, {"r": 185961.0, "v": 0.0}, False),
    ({"x": "5e-11"}, {"x": 0.0}, False),  # nothing balances it
    ({"x": "v", "v": "5e-11"}, {"x": 0.0, "v": 0.0}, False),
    ({"x": "v", "v": "-v"}, {"x": 5.0, "v": 0.0}, True),  # a free integrator stands anywhere
    ({"x": "v", "v": "1e-11 - v"}, {"x": 5.0, "v": 0.0}, False),  # and goes on for ever where a force is left
    ({"x": "-x^3"}, {"x": 1e-4}, True),  # a third of 1e-4 away
    ({"fast": "-1e6*fast + T", "T": "(283 - T)/1e7"}, {"fast": 283.2e-6, "T": 283.2}, False),
]


@pytest.mark.parametrize(("rates", "start", "at_rest"), SMALL)
def test_small_rates_are_judged_by_the_way_that_is_left(
    rates: dict[str, str], start: dict[str, float], at_rest: bool
) -> None:
    model = OdeModel("small", rates, start=start)
    lin = fl.linearize(model)
    assert ("off-equilibrium" not in {w.kind for w in lin.warnings}) is at_rest
    name, value = next(iter(start.items()))
    stack = fl.sweep(model, {name: value + max(abs(value), 1e-3) * np.array([0.0, 1e-9, 2e-9])})
    assert [("off-equilibrium" not in {w.kind for w in stack[k].warnings}) for k in range(3)] == [at_rest] * 3


@pytest.mark.parametrize("start", [283.2, 283.0])
def test_a_black_box_is_judged_alike(start: float) -> None:
    model = FunctionModel(Parts(["T"], [start], lambda _t, x, _u: np.array([(283.0 - x[0]) / 1e7])))
    assert ("off-equilibrium" in {w.kind for w in fl.linearize(model).warnings}) is (start != 283.0)


def test_the_table_says_how_far_rest_is() -> None:
    for start, word in ((283.2, "a Newton step of -0.2 in T from equilibrium"), (283.1, "a Newton step of -0.1 in T")):
        text = repr(fl.linearize(OdeModel("soil", SOIL, start={"T": start})))
        assert word in " ".join(text.split())
