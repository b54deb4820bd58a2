"""The whole way from an FMU to a linear model, against closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint

Opened = Callable[..., fl.Model]
ROD = Constraint.from_text("pin.x^2 + pin.y^2 - L^2")
GAP = Constraint.from_text("rod.gap")  # a local variable: its slopes are always differences


def assert_close(actual: np.ndarray, expected: list[list[float]], tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(actual, np.array(expected, dtype=float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("derivatives", "tolerance"), [("auto", 1e-10), ("exact", 1e-10), ("differences", 1e-7)])
def test_pendulum_at_rest(opened: Opened, derivatives: str, tolerance: float) -> None:
    model = opened("pendulum", constraints=[ROD])
    lin = fl.linearize(model, independent=["pin.x", "pin.vx"], outputs=["ax", "right"], derivatives=derivatives)
    assert_close(lin.A, [[0, 1], [-9.81, 0]], tolerance)
    assert_close(lin.B, [[0], [0.5]], tolerance)
    assert_close(lin.C, [[-9.81, 0], [1, 0]], tolerance)
    assert lin.states.names == ("pin.x", "pin.vx")


def test_a_constraint_inside_the_model_gives_the_same(opened: Opened) -> None:
    lin = fl.linearize(opened("pendulum", constraints=[GAP]), independent=["pin.x", "pin.vx"])
    assert_close(lin.A, [[0, 1], [-9.81, 0]])


def test_products_that_are_wrong_are_reported_and_not_used(opened: Opened) -> None:
    lin = fl.linearize(opened("zero_products"))
    assert_close(lin.A, [[0, 1], [-1, 0]])
    assert_close(lin.C, [[3, 0]])
    assert {"directional-derivative"} <= {w.kind for w in lin.warnings}


@pytest.mark.parametrize("name", ["shifts_after_products", "moves_with_products", "dies_of_products"])
def test_products_with_side_effects_do_no_harm(opened: Opened, name: str) -> None:
    lin = fl.linearize(opened(name))
    assert_close(lin.A, [[0, 1], [-1, 0]])
    assert_close(lin.B, [[0], [1]])


def test_no_states(opened: Opened) -> None:
    lin = fl.linearize(opened("no_states"))
    assert (lin.A.shape, lin.B.shape, lin.C.shape) == ((0, 0), (0, 1), (1, 0))
    assert_close(lin.D, [[2.0]], 1e-12)
