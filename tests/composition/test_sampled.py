"""Sampled regulators in a loop: against python-control, and the nonlinear loop simulated from sample to sample."""

from __future__ import annotations

from dataclasses import replace

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.simulation import InputTable
from fmilin.systems import four_bar
from tests.composition.plants import motor, oscillator
from tests.shared import shared

DT = 0.1


def regulator(dt: float = DT, gain: float = 0.7) -> control.StateSpace:
    return control.ss([[0.9]], [[0.1]], [[2.0]], [[gain]], dt, inputs=["e"], outputs=["F"])


def loop() -> ConnectedModel:
    wires = [("plant.px", "reg.e", -1.0), ("reg.F", "plant.F")]
    return fl.connect({"plant": oscillator(damper=0.3), "reg": regulator()}, wires)


def test_the_sampled_loop_of_python_control() -> None:
    lin = fl.sampled_loop(loop())
    plant = control.c2d(fl.linearize(oscillator(damper=0.3), outputs=["px"]).to_control(), DT)
    expected = control.feedback(plant * regulator(), 1).poles()
    np.testing.assert_allclose(np.sort_complex(lin.eigenvalues()), np.sort_complex(expected), atol=1e-12)
    assert lin.states.names == ("plant.x", "plant.v", "reg.x[0]")
    assert lin.sample_time == DT
    assert lin.point.states["plant.x"] == 1.0
    np.testing.assert_allclose(lin.C[2], [-0.7, 0.0, 2.0], atol=1e-14)  # reg.F at the sample, from e = -x


def test_the_simulated_loop_follows_it() -> None:
    model = loop()
    lin, ran = fl.sampled_loop(model), fl.simulate(model, stop_time=4.0, step=DT)
    x, rows = np.array([1.0, 0.0, 0.0]), []
    for _ in range(41):
        rows.append(x[:2])
        x = lin.A @ x
    positions = [int(np.flatnonzero(np.abs(ran.times - k * DT) < 1e-8)[0]) for k in range(41)]  # events are there twice
    np.testing.assert_allclose(ran.states[positions], rows, atol=1e-6)
    again = fl.simulate(model, stop_time=4.0, step=DT)  # the regulator begins anew
    np.testing.assert_array_equal(again.states, ran.states)


@pytest.mark.parametrize("pace", [1e-5, 1e7])
def test_samples_are_taken_at_their_time_at_any_pace(pace: float) -> None:
    """x' = pace u, held from sample to sample, with u = -x / 2: x halves a step of 1/pace."""
    plant = OdeModel("plant", {"x": f"{pace}*u"}, inputs=["u"], start={"x": 1.0})
    wires = [("plant.x", "reg.e"), ("reg.u", "plant.u")]
    reg = control.ss([], [], [], [[-0.5]], 1 / pace, inputs=["e"], outputs=["u"])
    ran = fl.simulate(fl.connect({"plant": plant, "reg": reg}, wires), stop_time=5 / pace, step=1 / pace)
    for k in range(6):
        at = int(np.argmin(np.abs(ran.times * pace - k)))
        assert ran.states[at, 0] == pytest.approx(0.5**k, rel=1e-6)


def test_a_constrained_fmu_under_a_sampled_regulator() -> None:
    """The four-bar and its motor between two samples are one plant: order 3, discretized exactly."""
    bar = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    wires = [("motor.torque", "bar.torque"), ("bar.w", "motor.w"), ("bar.phi", "reg.e", -1.0), ("reg.F", "motor.U")]
    with fl.connect({"bar": fl.load(bar), "motor": motor(), "reg": regulator(0.02)}, wires) as model:
        lin = fl.sampled_loop(model)
        assert lin.states.names == ("bar.phi", "bar.w", "motor.i", "reg.x[0]")
        plant = fl.connect({"bar": four_bar(), "motor": motor()}, wires[:2], inputs=["motor.U"], outputs=["bar.phi"])
        P = control.c2d(fl.linearize(plant).to_control(), 0.02)
        expected = control.feedback(P * regulator(0.02), 1).poles()
        np.testing.assert_allclose(np.sort_complex(lin.eigenvalues()), np.sort_complex(expected), atol=1e-10)
        assert any("sampled every 0.02 s" in note for note in model.notes)


def test_a_regulator_answers_from_sample_to_sample_about_its_own_point() -> None:
    """x+ = 2 + f0 + A (x - 2) + B e and y = 6 + 3 (x - 2) + e, from x = 2."""
    continuous = fl.linearize(OdeModel("r", {"x": "-x + e"}, inputs=["e"], outputs={"y": "3*x + e"}, start={"x": 2.0}))
    linear = replace(continuous, A=np.array([[0.5]]), B=np.array([[0.25]]), f0=np.array([0.125]), sample_time=0.1)
    system = fl.connect({"law": linear, "clock": OdeModel("clock", {"x": "1"})}, inputs=["law.e"], outputs=["law.y"])
    errors = np.array([4.0, 4.0, 0.0, 0.0, -1.0, -1.0])
    steps = InputTable(np.array([0.0, 0.05, 0.05, 0.15, 0.15, 0.25]), ("law.e",), errors[:, None])
    for _ in range(2):  # a second run begins before the first sample again
        motion = fl.simulate(system, stop_time=0.25, step=0.05, inputs=steps)
        deviation = 0.0
        for sample, e in enumerate((4.0, 0.0, -1.0)):
            answer = motion["law.y"][np.isclose(motion.times, 0.1 * sample + 0.05)]
            assert answer == pytest.approx(6 + 3 * deviation + e, rel=1e-13)
            deviation = 0.125 + 0.5 * deviation + 0.25 * e


def two_rates(fast: float, slow: float) -> ConnectedModel:
    regs = {
        "a": control.ss([[0.9]], [[0.1]], [[2.0]], [[0.7]], fast, inputs=["e"], outputs=["F"]),
        "b": control.ss([[0.5]], [[0.3]], [[-1.0]], [[0.2]], slow, inputs=["e"], outputs=["F"]),
    }
    wires = [("plant.px", "a.e", -1.0), ("plant.pv", "b.e", -1.0), ("a.F", "plant.F"), ("b.F", "plant.G")]
    rates = {"x": "v", "v": "F + 2*G + d - 4*x - 0.3*v"}
    plant = OdeModel("plant", rates, inputs=["F", "G", "d"], outputs={"px": "x", "pv": "v"}, start={"x": 1.0})
    return fl.connect({"plant": plant, **regs}, wires, inputs=["plant.d"], outputs=["plant.px", "b.F"])


@pytest.mark.parametrize(("fast", "slow"), [(2, 6), (2, 3), (3, 2), (5, 5)])
def test_two_sample_times_are_lifted_over_their_common_period(fast: int, slow: int) -> None:
    """By hand: the plant over 0.02 s, and each regulator where it is due, from instant to instant."""
    lin = fl.sampled_loop(two_rates(0.02 * fast, 0.02 * slow))
    period = int(np.lcm(fast, slow))
    plant = control.c2d(control.ss([[0, 1], [-4, -0.3]], [[0, 0, 0], [1, 2, 1]], np.eye(2), np.zeros((2, 3))), 0.02)

    def after(state: FloatArray, d: float) -> FloatArray:
        x, a, b, F, G = state[:2], state[2], state[3], 0.0, 0.0
        for k in range(period):
            if k % fast == 0:
                a, F = 0.9 * a - 0.1 * x[0], 2.0 * a - 0.7 * x[0]
            if k % slow == 0:
                b, G = 0.5 * b - 0.3 * x[1], -b - 0.2 * x[1]
            x = plant.A @ x + plant.B @ [F, G, d]
        return np.array([*x, a, b])

    assert lin.states.names == ("plant.x", "plant.v", "a.x[0]", "b.x[0]")
    assert lin.sample_time == pytest.approx(0.02 * period, rel=1e-12)
    np.testing.assert_allclose(lin.A, np.column_stack([after(e, 0.0) for e in np.eye(4)]), atol=1e-12)
    np.testing.assert_allclose(lin.B[:, 0], after(np.zeros(4), 1.0), atol=1e-12)
    np.testing.assert_allclose(
        lin.C, np.array([[1.0, 0.0, 0.0, 0.0], [0.0, -0.2, 0.0, -1.0]]), atol=1e-14
    )  # b.F as it answers at the instant


def test_wrong_loops() -> None:
    with pytest.raises(fl.UsageError, match="No member of 'system' is sampled"):
        fl.sampled_loop(fl.connect({"m": oscillator()}))
    with pytest.raises(fl.UsageError, match="should be of the type ConnectedModel"):
        fl.sampled_loop(oscillator())  # type: ignore[arg-type]
    two = {"a": regulator(), "b": regulator(0.1 * np.sqrt(2)), "m": oscillator()}
    with pytest.raises(fl.UsageError, match=r"sample times 0\.1 s, 0\.141421 s have no short common period"):
        fl.sampled_loop(fl.connect(two))
    ring = fl.connect({"a": regulator(), "b": regulator()}, [("a.F", "b.e"), ("b.F", "a.e")])
    with pytest.raises(fl.NumericalError, match="The sampled members a, b form an algebraic loop"):
        fl.sampled_loop(ring)
    with pytest.raises(fl.UsageError, match="give it a dt"):
        fl.connect({"a": control.ss([[0.5]], [[1.0]], [[1.0]], [[0.0]], True)})
    with pytest.raises(fl.UsageError, match="the step is its sample time"):
        _ = fl.cosimulated(loop(), step=DT).largest_step
