"""A linear model beside the nonlinear one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.linear_response import compare
from fmilin.models import OdeModel
from fmilin.simulation import InputTable
from fmilin.systems import cartesian_pendulum, four_bar


def test_the_linear_model_moves_as_its_closed_form_says() -> None:
    """A pendulum of 1 m let go at x = 0.01 m: x = 0.01 cos(w t), whatever the amplitude."""
    lin = fl.linearize(cartesian_pendulum(), independent=["x"])
    start = fl.operating_point(cartesian_pendulum(), {"x": 0.01, "vx": 0.0})
    comparison = compare(fl.simulate(cartesian_pendulum(), start, stop_time=2.0, step=0.1), lin)
    motion = dict(zip(comparison.signals.names, comparison.linear.T, strict=True))
    np.testing.assert_allclose(motion["x"], 0.01 * np.cos(np.sqrt(9.81) * comparison.times), atol=1e-10)
    np.testing.assert_allclose(motion["angle"], motion["x"], atol=1e-12)
    np.testing.assert_allclose(motion["y"], -1.0, atol=1e-12)


def test_the_deviation_falls_with_the_square_of_the_amplitude_and_faster() -> None:
    model = four_bar()
    lin = fl.linearize(model)
    deviations = []
    for size in (0.02, 0.01):
        point = fl.operating_point(model, {"phi": 2.234331019017586 + size})
        comparison = compare(fl.simulate(model, point, stop_time=2.0, step=0.05), lin)
        deviations.append(comparison.deviations / comparison.ranges)
        assert comparison.signals.names[:3] == ("phi", "w", "coupler.y")
        assert set(model.states.names) <= set(comparison.signals.names)
        assert comparison.nonlinear.shape == comparison.linear.shape == (41, len(comparison.signals))
    np.testing.assert_allclose(deviations[0] / deviations[1], 2.0, rtol=0.1)
    assert deviations[1].max() < 0.05


@pytest.mark.parametrize("coordinates", ["partition", "tangent"])
def test_tables_and_names_drive_both(coordinates: str) -> None:
    model = four_bar()
    lin = fl.linearize(model, coordinates=coordinates)
    pulse = InputTable(np.array([0.0, 0.5, 0.5, 0.7, 0.7]), ("torque",), np.array([[0.0], [0.0], [0.2], [0.2], [0.0]]))
    motion = fl.simulate(model, stop_time=2.0, step=0.1, inputs=pulse)
    comparison = compare(motion, lin, inputs=pulse)
    assert comparison.ranges[0] > 1e-3
    assert (comparison.deviations[:3] < 0.05 * comparison.ranges[:3]).all()
    assert len(comparison.times) == len(np.unique(motion.times))
    wave = {"torque": lambda t: 0.05 * np.sin(3 * t)}
    again = compare(fl.simulate(model, stop_time=2.0, step=0.1, inputs=wave), lin, inputs=wave)
    assert (again.deviations[:3] < 0.05 * again.ranges[:3]).all()


def test_a_linear_model_with_fewer_inputs_gets_only_those() -> None:
    system = OdeModel("two", {"x": "-x + a + 2*b"}, inputs=["a", "b"], outputs={"y": "x"})
    lin = fl.linearize(system, inputs=["a"])
    given = {"a": 1.0, "b": 0.0}
    comparison = compare(fl.simulate(system, stop_time=1.0, step=0.5, inputs=given), lin, inputs=given)
    np.testing.assert_allclose(comparison.deviations, 0.0, atol=1e-8)
    rows = InputTable(np.array([0.0, 1.0]), ("b", "a"), np.array([[0.0, 0.0], [0.0, 1.0]]))
    comparison = compare(fl.simulate(system, stop_time=1.0, step=0.5, inputs=rows), lin, inputs=rows)
    np.testing.assert_allclose(comparison.deviations, 0.0, atol=1e-8)
    assert comparison.ranges[0] > 0.3


def test_what_does_not_belong_together() -> None:
    motion = fl.simulate(cartesian_pendulum(angle=0.1), stop_time=0.1)
    with pytest.raises(fl.UsageError, match="has the state 'x0', which the simulated model does not have"):
        compare(motion, fl.linearize(four_bar()))
    lin = fl.linearize(cartesian_pendulum())
    with pytest.raises(fl.UsageError, match=r"sampled \(every 0\.1 s\)"):
        compare(motion, replace(lin, sample_time=0.1))
    with pytest.raises(fl.UsageError, match="by name, or as a table"):
        compare(motion, lin, inputs=lambda t: np.zeros(1))
