"""Closed loops that nobody declared, at points that move: suspected, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray
from tests.discovery import systems, tied


def suspicion(model: fl.Model) -> str:
    return " ".join(str(w) for w in fl.linearize(model).warnings if w.kind == "dependent-states")


def slider_crank(angle: float) -> fl.Model:
    """Crank and rod by their angles and the slider's way, 6 states: two loops; gravity pulls the crank."""
    r, rod = 0.2, 0.7

    def rates(_t: float, z: FloatArray, u: FloatArray) -> FloatArray:
        a, b, s, wa, wb, _ = z
        G = np.array([[-r * np.sin(a), -rod * np.sin(b), -1.0], [r * np.cos(a), rod * np.cos(b), 0.0]])
        turn = np.array([wa, wb]) ** 2
        gamma = np.array([r, rod]) * turn @ np.array([[np.cos(a), np.sin(a)], [np.cos(b), np.sin(b)]])
        W = G / np.array([0.1, 0.2, 0.3])
        F = np.array([u[0] - np.cos(a), 0.0, -2.0 * s])
        push = F + G.T @ np.linalg.solve(W @ G.T, gamma - W @ F)
        return np.concatenate((z[3:], push / np.array([0.1, 0.2, 0.3])))

    b = -np.arcsin(r * np.sin(angle) / rod)
    start = {
        "a": angle,
        "b": float(b),
        "s": float(r * np.cos(angle) + rod * np.cos(b)),
        "va": 0.0,
        "vb": 0.0,
        "vs": 0.0,
    }
    return FunctionModel("crank", start, rates, inputs=["torque"])


@pytest.mark.parametrize("angle", [0.0, np.pi, 1e-9, 0.7])
def test_a_loop_that_falls_from_its_dead_centre_is_suspected(angle: float) -> None:
    assert "2 combinations of them cannot change" in suspicion(slider_crank(angle))
    assert "fl.discover(model)" in suspicion(slider_crank(angle))


@pytest.mark.parametrize(
    "model", [systems.free_masses(), tied.gears(loaded=True), *map(systems.unconstrained, range(3, 60, 5))]
)
def test_what_is_free_is_not_suspected_where_it_moves(model: fl.Model) -> None:
    random = np.random.default_rng(1)
    moving = dict(zip(model.states.names, random.uniform(0.2, 1.0, len(model.states)).tolist(), strict=True))
    lin = fl.linearize(model, fl.operating_point(model, moving))
    assert not [w for w in lin.warnings if w.kind == "dependent-states"]


@pytest.mark.parametrize("drift", ["constant", "input", "second input", "position"])
def test_a_loop_of_what_are_not_the_speeds_of_the_positions_is_not_suspected(drift: str) -> None:
    """x' = u + drift: u and v keep x u' + y v' + u^2 + v^2 at zero, as on a circle, where they would be the speeds."""

    def rates(_t: float, z: FloatArray, inputs: FloatArray) -> FloatArray:
        x, y, u, v = z
        added = {"constant": 1.0, "input": inputs[0], "second input": inputs[1], "position": 0.5 * (x - 0.6)}
        pull = (u * u + v * v - 9.81 * y) / (x * x + y * y)
        return np.array([u + added[drift], v + added[drift], -pull * x, -pull * y - 9.81])

    model = FunctionModel("carried", {"x": 0.6, "y": -0.8, "u": 0.4, "v": 0.3}, rates, inputs=["wind", "gust"])
    assert not suspicion(model)


def test_the_loop_of_a_pendulum_between_its_positions_is_suspected() -> None:
    """The same with x' = u."""

    def rates(_t: float, z: FloatArray, _inputs: FloatArray) -> FloatArray:
        x, y, u, v = z
        pull = (u * u + v * v - 9.81 * y) / (x * x + y * y)
        return np.array([u, v, -pull * x, -pull * y - 9.81])

    model = FunctionModel("pendulum", {"x": 0.6, "y": -0.8, "u": 0.4, "v": 0.3}, rates, inputs=["wind", "gust"])
    assert "All 4 states were treated as independent, but 1 combination of them cannot change" in suspicion(model)
