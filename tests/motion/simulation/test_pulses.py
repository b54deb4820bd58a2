"""Pulses that are shorter than the integrator's steps: areas in closed form."""

from collections.abc import Callable

import numpy as np
import pytest

import fmilin as fl
from fmilin.native import DaeModel, OdeModel

PULSES = {
    "a hat": ("1e6*max(0, 0.0015 - abs(time - 3))", 2.25),
    "a bell": ("1000*exp(-((time - 3)/0.001)^2)", np.sqrt(np.pi)),
    "two bells": ("1000*exp(-((time - 1)/0.001)^2) + 500*exp(-((time - 4)/0.001)^2)", 1.5 * np.sqrt(np.pi)),
    "a box of tanh": ("500*(tanh((time - 3)/1e-5) - tanh((time - 3.003)/1e-5))", 3.0),
    "a resonance": ("100/(1 + ((time - 3)/1e-3)^2)", 0.2 * np.arctan(3000.0)),
    "a train": ("max(0, cos(20*pi*time) - 0.9999)*1e5", None),
}


@pytest.mark.parametrize("name", PULSES)
def test_pulses_of_a_graph_are_not_stepped_over(name: str) -> None:
    text, area = PULSES[name]
    if area is None:  # 60 pulses, the first and the last of them halves
        end = np.arccos(0.9999)
        area = 60 * 1e5 * 2 * (np.sin(end) - 0.9999 * end) / (20 * np.pi)
    motion = fl.simulate(OdeModel("m", {"x": text}), stop_time=6.0)
    assert motion.states[-1, 0] == pytest.approx(area, rel=1e-7)
    damped = fl.simulate(OdeModel("m", {"x": f"-x + {text}"}), stop_time=6.0, method="RK45")
    assert 0 < damped.states[-1, 0] < area


def test_a_pulse_of_a_dae_is_not_stepped_over() -> None:
    model = DaeModel("m", ["der(x) = z", "z = 1e6*max(0, 0.0015 - abs(time - 3))"])
    assert fl.simulate(model, stop_time=6.0).states[-1, 0] == pytest.approx(2.25, rel=1e-7)


def pulse(width: float) -> Callable[[float], float]:
    """Return a box at 2.999 s with the area of its width times 1000."""
    return lambda t: 1000.0 * (2.999 < t < 2.999 + width)


def test_boxes_of_an_input_function_are_found_or_declared() -> None:
    model = OdeModel("m", {"x": "u"}, inputs=["u"])
    found = fl.simulate(model, stop_time=6.0, inputs={"u": pulse(3e-3)})
    assert found.states[-1, 0] == pytest.approx(3.0, rel=1e-7)
    assert [remark.kind for remark in found.remarks] == ["pulses"]

    short = pulse(3e-4)
    short.knots = [2.999, 2.9993]  # type: ignore[attr-defined]
    declared = fl.simulate(model, stop_time=6.0, inputs={"u": short})
    assert declared.states[-1, 0] == pytest.approx(0.3, rel=1e-7)
    assert not declared.remarks


def test_an_orbit_meets_its_pulses() -> None:
    """x' = -x + h(t), with period 6: x(0) is the integral of h(t) e^t over e^6 - 1."""
    model = OdeModel("m", {"x": "-x + 1e6*max(0, 0.0015 - abs(time - 3))"})
    orbit = fl.periodic_orbit(model, period=6.0, inputs=None)
    hat = 1e6 * (2 * np.cosh(0.0015) - 2)  # the integral of hat(s) e^s
    assert orbit.start.states[0] == pytest.approx(hat * np.exp(-3.0) / (1 - np.exp(-6.0)), rel=1e-8)
