"""A trimmed point is on the manifold to a tolerance: differences see no kink in that, and need no more evaluations."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import OperatingPoint
from fmilin.signals import FloatArray
from tests.by_hand import FunctionModel, Parts

GRAVITY = 9.81
ANGLE = 0.6  # of the pendulum, held by a horizontal force


def compute_length(t: float, x: FloatArray, u: FloatArray) -> float:
    return float(x[0] ** 2 + x[1] ** 2 - 1)


def compute_slide(t: float, x: FloatArray, u: FloatArray) -> float:
    return float(x[0] * x[2] + x[1] * x[3])


def compute_rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    position, velocity = x[:2], x[2:]
    force = np.array([u[0], -GRAVITY])
    pull = (velocity @ velocity + position @ force) / (position @ position)
    return np.concatenate((velocity, force - pull * position))


def pendulum() -> FunctionModel:
    """Return a pendulum in Cartesian coordinates whose constraints the model computes: their gradient is measured."""
    start = [np.sin(ANGLE), -np.cos(ANGLE), 0.0, 0.0]
    observed = {"length": compute_length, "slide": compute_slide}
    return FunctionModel(
        Parts(
            ["x", "y", "vx", "vy"],
            start,
            compute_rates,
            ["f"],
            constraints=["length = 0", "slide = 0"],
            observed=observed,
        )
    )


@pytest.mark.parametrize("distance", [1e-13, 3e-12, 1e-10])
def test_a_point_slightly_beside_the_manifold_takes_no_more_evaluations(distance: float) -> None:
    model = pendulum()
    states, inputs = model.start.states, np.array([GRAVITY * np.tan(ANGLE)])
    on = fl.linearize(model, OperatingPoint(0.0, states, inputs), independent=["x", "vx"])
    moved = states + distance * np.array([0.0, 1.0, 0.0, 1.0])
    beside = fl.linearize(model, OperatingPoint(0.0, moved, inputs), independent=["x", "vx"])
    assert beside.method.evaluations < 1.5 * on.method.evaluations  # 4 to 7 times as many where each column is swept
    frequency = np.sqrt(GRAVITY / np.cos(ANGLE))  # of a pendulum in the field of gravity and of the force
    for linear in (on, beside):
        np.testing.assert_allclose(np.abs(linear.eigenvalues()), frequency, rtol=1e-9)
