"""Pulses that are shorter than the integrator's steps: areas in closed form."""

from collections.abc import Callable

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.lyapunov import lyapunov_exponents
from fmilin.models import DaeModel, FunctionModel, OdeModel
from fmilin.simulation import InputTable

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


def test_an_interrupt_ends_the_search_for_pulses() -> None:
    """A black box that takes long would be evaluated thousands of times before the first step."""
    calls: list[float] = []

    def rates(t: float, x: np.ndarray, _u: np.ndarray) -> np.ndarray:
        calls.append(t)
        return np.array([np.cos(t) - x[0]])

    model = FunctionModel("slow", {"x": 0.0}, rates)
    motion = fl.simulate(model, stop_time=6.0, stop=lambda: len(calls) > 100)
    assert motion.remarks[0].kind == "interrupted"
    assert len(calls) < 200
    again = fl.simulate(model, stop_time=6.0)
    assert again.states[-1, 0] == pytest.approx((np.cos(6) + np.sin(6) - np.exp(-6)) / 2, abs=1e-8)


def test_a_pulse_between_two_samples_of_a_closed_loop_acts() -> None:
    """3 ms in a table, at no multiple of the sample time; a disturbance of the actuator with knots as well."""
    model = OdeModel(
        "plant", {"x": "v + w", "v": "u - v"}, inputs=["u", "w"], outputs={"x": "x"}, start={"x": 0.0, "v": 0.0}
    )
    begin, end = 0.3371, 0.3401
    times = np.array([0.0, begin, begin, end, end, 2.0])
    table = InputTable(times, ("w",), np.array([[0.0, 0.0, 100.0, 100.0, 0.0, 0.0]]).T)
    none = control.ss([[0.0]], [[0.0]], [[0.0]], [[0.0]], 0.1, inputs=["x"], outputs=["u"])
    motion = fl.design.closed_loop(model, none, stop_time=2.0, inputs=table)
    np.testing.assert_allclose(motion.states[-1], [0.3, 0.0], atol=1e-9)

    def push(t: float) -> float:
        return 100.0 * (begin <= t < end)

    push.knots = [begin, end]  # type: ignore[attr-defined]
    shaken = fl.design.closed_loop(model, none, stop_time=2.0, disturbances={"u": push})
    speed = 100 * (np.exp(end - 2) - np.exp(begin - 2))
    np.testing.assert_allclose(shaken.states[-1], [0.3 - speed, speed], atol=1e-9)


def test_a_pulse_times_a_state_that_is_zero_at_the_start_is_found_in_a_black_box() -> None:
    """y = 1 - e^-t, and x' = y for 3 ms, 1000 times."""

    def rates(t: float, x: np.ndarray, _u: np.ndarray) -> np.ndarray:
        return np.array([1000.0 * (2.999 < t < 3.002) * x[1], 1.0 - x[1]])

    motion = fl.simulate(FunctionModel("black box", {"x": 0.0, "y": 0.0}, rates), stop_time=6.0)
    assert motion.states[-1, 0] == pytest.approx(3.0 + 1000 * (np.exp(-3.002) - np.exp(-2.999)), rel=1e-7)
    assert [remark.kind for remark in motion.remarks] == ["pulses"]


def test_an_orbit_of_a_black_box_that_is_forced_says_what_cannot_be_told() -> None:
    model = FunctionModel("black box", {"x": 0.0}, lambda t, x, _: np.array([np.cos(t) - x[0]]))
    orbit = fl.periodic_orbit(model, period=2 * np.pi)
    assert orbit.start.states[0] == pytest.approx(0.5, abs=1e-9)
    assert "pulses" in [remark.kind for remark in orbit.remarks]


def test_a_pulse_counts_in_lyapunov_exponents() -> None:
    """The exponent of x' = a(t) x is the mean of a."""
    model = OdeModel("m", {"x": "x*(1e6*max(0, 0.0015 - abs(time - 3)) - 1)"}, start={"x": 1.0})
    assert lyapunov_exponents(model, 6.0).values == pytest.approx([2.25 / 6 - 1], rel=1e-6)
