"""Margins of loops with delays against closed forms, and against a sweep over the delay."""

from __future__ import annotations

import math

import control
import numpy as np
import pytest
from scipy.optimize import brentq

import fmilin as fl


def make_loop(system: control.StateSpace, delay: float) -> fl.LinearModel:
    """Return the loop at the input of a plant that is closed by the gain -1, with a delay."""
    gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    return fl.loop_transfer(fl.connect({"plant": system, "law": gain}, wires, delays={"plant.u": delay}), "plant.u")


def test_the_delayed_integrator_bears_a_quarter_turn() -> None:
    integrator = control.ss(0, 1, 1, 0, inputs="u", outputs="y")
    for delay in (0.0, 0.3, 1.2):
        margins = fl.design.margins(make_loop(integrator, delay))
        assert margins.stable
        assert margins.delay == pytest.approx(math.pi / 2 - delay, abs=1e-12)
        assert math.radians(margins.phase) == pytest.approx(math.pi / 2 - delay, abs=1e-12)
        if delay:
            assert margins.gain[1] == pytest.approx(math.pi / 2 / delay, rel=1e-12)
    assert not fl.design.margins(make_loop(integrator, 1.6)).stable


def test_without_a_delay_they_are_those_of_the_loop_without_delays() -> None:
    plant = control.ss([[0, 1], [-2, -0.5]], [[0], [1]], [[1.5, 0.3]], [[0]], inputs="u", outputs="y")
    gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    plain = fl.design.margins(fl.loop_transfer(fl.connect({"plant": plant, "law": gain}, wires), "plant.u"))
    late = fl.design.margins(make_loop(plant, 0.0))
    for name in ("phase", "delay", "disk", "gain", "phase_frequency"):
        assert getattr(late, name) == pytest.approx(getattr(plain, name), rel=1e-8, nan_ok=True)


def test_the_delay_margin_is_where_an_eigenvalue_crosses_the_axis() -> None:
    rng = np.random.default_rng(4)
    for _ in range(4):
        A = rng.standard_normal((3, 3))
        A -= (np.linalg.eigvals(A).real.max() + 0.4) * np.eye(3)
        plant = control.ss(A, rng.standard_normal((3, 1)), rng.standard_normal((1, 3)), 0, inputs="u", outputs="y")
        gain = control.ss([], [], [], [[-1.0]], inputs="e", outputs="u")
        wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
        system = fl.connect({"plant": plant, "law": gain}, wires, delays={"plant.u": 0.05})
        margins = fl.design.margins(fl.loop_transfer(system, "plant.u"))
        closed = fl.linearize(system)
        assert isinstance(closed, fl.DelayedLinearModel)
        if not margins.stable or math.isinf(margins.delay):
            continue

        def grow(delay: float, closed: fl.DelayedLinearModel = closed) -> float:
            return float(closed.with_delay_values({"plant.u": delay}).eigenvalues(4).real.max())

        expected = 0.05 + margins.delay
        crossing = brentq(grow, 0.9 * expected, 1.1 * expected, xtol=1e-9)
        assert margins.delay == pytest.approx(crossing - 0.05, abs=1e-6)
