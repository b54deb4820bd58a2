"""Maps as members of systems, several sample times and delays: against products and recursions written by hand."""

from __future__ import annotations

from collections.abc import Callable

import control
import numpy as np
import pytest
from scipy.linalg import expm

import fmilin as fl
from fmilin.composition.sampled_system import SampledSystem
from fmilin.composition.system import ConnectedModel
from fmilin.models import DiscreteModel, OdeModel
from fmilin.signals import FloatArray

A, B = np.array([[0.0, 1.0], [-4.0, -0.3]]), np.array([[0.0], [1.0]])


def make_plant() -> OdeModel:
    rates = {"x": "v", "v": "F + d - 4*x - 0.3*v"}
    return OdeModel("plant", rates, inputs=["F", "d"], outputs={"px": "x", "pv": "v"}, start={"x": 1.0})


def propagate(x: FloatArray, force: float, seconds: float) -> FloatArray:
    """Return the plant after some time with a constant force."""
    M = np.zeros((3, 3))
    M[:2, :2], M[:2, 2:] = A, B
    moved: FloatArray = expm(M * seconds) @ [*x, force]
    return moved[:2]


def simulate_at(system: fl.Model, point: fl.OperatingPoint, step: float, count: int) -> FloatArray:
    """Return the continuous states of a simulation at multiples of a step, (count + 1, N)."""
    motion = fl.simulate(system, point, stop_time=count * step, step=step)
    rows = [int(np.argmin(np.abs(motion.times - k * step))) for k in range(count + 1)]
    states: FloatArray = motion.states[rows]
    return states


def test_a_nonlinear_law_is_trimmed_linearized_and_simulated() -> None:
    """s+ = s + 0.1 (r - x), u = 3 s + s^3 - v: at x = r = 0.2 the force is 0.8 = 3 s + s^3."""
    h = 0.25
    law = DiscreteModel(
        "law", {"s": "s + 0.1*(r - x)"}, sample_time=h, inputs=["x", "v", "r"], outputs={"u": "3*s + s^3 - v"}
    )
    wires = [("plant.px", "law.x"), ("plant.pv", "law.v"), ("law.u", "plant.F")]
    loop = fl.connect({"plant": make_plant(), "law": law}, wires, inputs={"r": "law.r"}, outputs=["plant.px", "law.u"])
    assert isinstance(loop, SampledSystem)
    point = fl.trim(loop, fixed={"r": 0.2}, guess={"law.s": 0.3})
    s = float(point["law.s"])
    assert 3 * s + s**3 == pytest.approx(0.8, abs=1e-12)
    assert point["plant.x"] == pytest.approx(0.2, abs=1e-12)

    lin = fl.linearize(loop, point)
    gain = 3 + 3 * s**2
    columns = []
    for x, v, integral in np.eye(3):
        columns.append([*propagate(np.array([x, v]), gain * integral - v, h), integral - 0.1 * x])
    assert lin.states.names == ("plant.x", "plant.v", "law.s")
    assert lin.sample_time == h
    np.testing.assert_allclose(lin.A, np.transpose(columns), atol=1e-9)
    np.testing.assert_allclose(lin.B[:, 0], [0.0, 0.0, 0.1], atol=1e-9)
    np.testing.assert_allclose(lin.C, [[1.0, 0.0, 0.0], [0.0, -1.0, gain]], atol=1e-9)
    fewer = fl.linearize(loop, point, inputs=[], outputs=["law.s"])
    np.testing.assert_allclose(fewer.C, [[0.0, 0.0, 1.0]], atol=1e-12)

    start = fl.operating_point(loop, {"plant.x": 1.0, "law.s": 0.5, "r": 0.2})
    x, s, expected = np.array([1.0, 0.0]), 0.5, []
    for _ in range(9):
        expected.append(x)
        force = 3 * s + s**3 - x[1]
        x, s = propagate(x, force, h), s + 0.1 * (0.2 - x[0])
    np.testing.assert_allclose(simulate_at(loop, start, h, 8), expected, atol=1e-7)


def make_cascade(outer: float, inner: float, direct: float = 0.5) -> SampledSystem:
    """Return a plant under an inner law, whose reference comes from an outer one; both are maps."""
    slow = DiscreteModel(
        "slow", {"i": "0.9*i - x"}, sample_time=outer, inputs=["x"], outputs={"r": f"0.3*i - {direct}*x"}
    )
    fast = DiscreteModel(
        "fast", {"m": "0.5*m + r - v"}, sample_time=inner, inputs=["r", "v"], outputs={"u": "m + 2*r - 0.4*v"}
    )
    wires = [("plant.px", "slow.x"), ("slow.r", "fast.r"), ("plant.pv", "fast.v"), ("fast.u", "plant.F")]
    system = fl.connect({"fast": fast, "plant": make_plant(), "slow": slow}, wires, inputs=["plant.d"])
    assert isinstance(system, SampledSystem)
    return system


@pytest.mark.parametrize(("outer", "inner"), [(6, 2), (3, 2), (2, 3), (4, 4)])
def test_sample_times_with_a_rational_ratio_are_lifted_over_their_period(outer: int, inner: int) -> None:
    base = 0.05

    def run(start: FloatArray, d: float, steps: int) -> list[FloatArray]:
        x, m, i, r, u = start[:2], start[2], start[3], 0.0, 0.0
        rows = []
        for k in range(steps):
            rows.append(np.array([*x, m, i]))
            if k % outer == 0:
                i, r = 0.9 * i - x[0], 0.3 * i - 0.5 * x[0]
            if k % inner == 0:  # reads the answer of the outer law at the same instant
                m, u = 0.5 * m + r - x[1], m + 2 * r - 0.4 * x[1]
            x = propagate(x, u + d, base)
        return [*rows, np.array([*x, m, i])]

    system = make_cascade(outer * base, inner * base)
    lin = fl.linearize(system)
    period = int(np.lcm(outer, inner))
    assert lin.states.names == ("plant.x", "plant.v", "fast.m", "slow.i")
    assert lin.sample_time == pytest.approx(period * base, rel=1e-12)
    columns = [run(e, 0.0, period)[-1] for e in np.eye(4)]
    np.testing.assert_allclose(lin.A, np.transpose(columns), atol=1e-10)
    np.testing.assert_allclose(lin.B[:, 0], run(np.zeros(4), 1.0, period)[-1], atol=1e-10)
    states = simulate_at(system, fl.operating_point(system), base, 12)
    np.testing.assert_allclose(states, np.array(run(np.array([1.0, 0.0, 0.0, 0.0]), 0.0, 12))[:, :2], atol=1e-6)


def run_with_delays(
    delays: dict[str, int], h: int, count: int, base: float, disturbance: Callable[[int], float]
) -> FloatArray:
    """Return the plant every base step under u = -2 x - v + r with delays in base steps, from rest before 0."""
    x, u, rows, forces, disturbances = np.array([1.0, 0.0]), 0.0, [], {}, {}
    for k in range(count):
        rows.append(x)
        if k % h == 0:
            late = k - delays.get("law.x", 0)
            u = -2.0 * (rows[late][0] if late >= 0 else 0.0) - x[1]
        forces[k], disturbances[k] = u, disturbance(k)
        force = forces.get(k - delays.get("plant.F", 0), 0.0) + disturbances.get(k - delays.get("plant.d", 0), 0.0)
        x = propagate(x, force, base)
    return np.array(rows)


@pytest.mark.parametrize(
    "delays", [{"plant.F": 4}, {"plant.F": 3}, {"plant.F": 9, "law.x": 5}, {"law.x": 8}, {"plant.d": 6, "law.x": 1}]
)
def test_delays_of_whole_samples_and_parts_are_exact(delays: dict[str, int]) -> None:
    base, h, samples = 0.05, 4, 8
    law = control.ss([], [], [], [[-2.0, -1.0]], h * base, inputs=["x", "v"], outputs=["u"])
    wires = [("plant.px", "law.x"), ("plant.pv", "law.v"), ("law.u", "plant.F")]
    seconds = {name: steps * base for name, steps in delays.items()}
    lin = fl.linearize(fl.connect({"plant": make_plant(), "law": law}, wires, inputs=["plant.d"], delays=seconds))
    assert lin.sample_time == pytest.approx(h * base)
    x, rows = np.zeros(len(lin.states)), []
    x[lin.states.index_of("plant.x")] = 1.0
    for k in range(samples):
        rows.append(x[:2])
        x = lin.A @ x + lin.B[:, 0] * (0.5 if k >= 2 else 0.0)
    expected = run_with_delays(delays, h, samples * h, base, lambda k: 0.5 if k >= 2 * h else 0.0)[::h]
    np.testing.assert_allclose(rows, expected, atol=1e-10)


def test_loops_margins_and_what_is_rejected() -> None:
    law = DiscreteModel("law", {"s": "0.9*s + x"}, sample_time=0.1, inputs=["x"], outputs={"u": "-2*s - x"})
    wires = [("plant.px", "law.x"), ("law.u", "plant.F")]
    loop = fl.connect({"plant": make_plant(), "law": law}, wires)
    L = fl.loop_transfer(loop, "plant.F")
    plant = control.c2d(control.ss(A, B, [[1.0, 0.0]], 0.0), 0.1)
    by_hand = control.ss([[0.9]], [[1.0]], [[-2.0]], [[-1.0]], 0.1) * plant
    w = np.array([0.3, 2.0, 9.0])
    np.testing.assert_allclose(L.frequency_response(w)[0, 0], by_hand(np.exp(0.1j * w)), rtol=1e-8)
    assert fl.design.margins(L).stable == fl.linearize(loop).stability().stable
    cascade = make_cascade(0.2, 0.3)
    with pytest.raises(fl.UsageError, match="have different sample times"):
        fl.sensitivity(cascade, "plant.F")
    for use in (
        lambda: loop.evaluate(0.0, loop.start.states, loop.start.inputs),
        lambda: fl.cosimulated(loop, step=0.1),
    ):
        with pytest.raises(fl.UsageError, match=r"has sampled members \(law\)"):
            use()
    late = fl.connect({"plant": make_plant(), "law": law}, wires, delays={"plant.F": 0.03})
    with pytest.raises(fl.UsageError, match="has delays"):
        fl.simulate(late, stop_time=1.0)
    with pytest.raises(fl.UsageError, match="L goes from sample to sample"):
        fl.loop_transfer(late, "plant.F")
    spring = OdeModel("spring", {"z": "x - z"}, inputs=["x"], outputs={"f": "-z"})
    both = {"plant": make_plant(), "spring": spring, "law": law}
    inner = [("plant.px", "law.x"), ("law.u", "plant.F"), ("plant.px", "spring.x"), ("spring.f", "plant.d")]
    with pytest.raises(fl.UsageError, match="has a delay between continuous members, in a loop with sampled ones"):
        fl.linearize(fl.connect(both, inner, delays={"spring.x": 0.1}))


def test_sampled_members_in_a_ring() -> None:
    """x+ = y_b and y_b = 0.5 x is no algebraic loop; two direct gains are one."""
    a = DiscreteModel("a", {"x": "v"}, sample_time=0.1, inputs=["v"], outputs={"y": "x"}, start={"x": 1.0})
    b = control.ss([], [], [], [[0.5]], 0.1, inputs=["v"], outputs=["y"])
    clock = OdeModel("clock", {"t": "y"}, inputs=["y"])
    ring = [("a.y", "b.v"), ("b.y", "a.v"), ("a.y", "clock.y")]
    system = fl.connect({"a": a, "b": b, "clock": clock}, ring)
    np.testing.assert_allclose(fl.linearize(system).A, [[1.0, 0.1], [0.0, 0.5]], atol=1e-12)
    states = simulate_at(system, fl.operating_point(system), 0.1, 4)[:, 0]
    np.testing.assert_allclose(states, [0.0, 0.1, 0.15, 0.175, 0.1875], atol=1e-9)
    direct = fl.connect({"a": b, "b": b, "clock": clock}, ring)
    for use in (lambda: fl.sampled_loop(direct), lambda: fl.simulate(direct, stop_time=1.0)):
        with pytest.raises(fl.NumericalError, match="The sampled members a, b form an algebraic loop"):
            use()


def adjustable_loop() -> ConnectedModel:
    """x' = -a x + u, held over 0.5 s, with s+ = s + k (r - x) and u = s + (r - x)/2."""
    plant = OdeModel("plant", {"x": "-a*x + u"}, inputs=["u"], outputs={"y": "x"}, parameters={"a": 1.0})
    law = DiscreteModel(
        "law",
        {"s": "s + k*(r - y)"},
        sample_time=0.5,
        inputs=["y", "r"],
        outputs={"u": "s + (r - y)/2"},
        parameters={"k": 0.25},
    )
    wires = [("plant.y", "law.y"), ("law.u", "plant.u")]
    return fl.connect({"plant": plant, "law": law}, wires, inputs={"r": "law.r"})


def test_sweeps_of_systems_with_sampled_members_have_the_matrices_of_the_closed_form() -> None:
    """With e = exp(-a h), A is [[e - (1 - e)/(2 a), (1 - e)/a], [-k, 1]]; at rest x = r and s = a r."""
    rates, gains = [0.5, 2.0], [0.1, 0.3]
    family = fl.sweep(adjustable_loop(), {"plant.a": rates, "law.k": gains}, trim=fl.TrimRequest(fixed={"r": 3.0}))
    assert family.ok.all()
    assert family.sample_time == 0.5
    for i, a in enumerate(rates):
        for j, k in enumerate(gains):
            e = np.exp(-0.5 * a)
            np.testing.assert_allclose(family.A[i, j], [[e - (1 - e) / (2 * a), (1 - e) / a], [-k, 1]], atol=1e-13)
            point = family[i, j].point
            assert point.parameters == {"plant.a": a, "law.k": k}
            np.testing.assert_allclose([point.states["plant.x"], point.states["law.s"]], [3.0, 3.0 * a], atol=1e-12)
    delayed = fl.connect(
        dict(adjustable_loop().members), [("plant.y", "law.y"), ("law.u", "plant.u")], delays={"plant.u": 0.5}
    )
    late = fl.sweep(delayed, {"law.k": gains}).A
    alone = fl.linearize(delayed.with_parameters({"law.k": 0.3}))
    assert alone.A.shape == (3, 3)
    np.testing.assert_allclose(late[1], alone.A, atol=1e-12)


def test_sweeps_of_loops_with_sampled_members_have_their_margins() -> None:
    loops = fl.sweep(adjustable_loop(), {"law.k": [0.1, 0.3]}, loop_at="plant.u", trim=fl.TrimRequest())
    for i, k in enumerate((0.1, 0.3)):
        alone = fl.design.margins(fl.loop_transfer(adjustable_loop().with_parameters({"law.k": k}), "plant.u"))
        np.testing.assert_allclose(loops.margins()[i].gain, alone.gain, rtol=1e-9)


def test_what_needs_rates_says_that_members_are_sampled() -> None:
    system = adjustable_loop()
    with pytest.raises(fl.UsageError, match="with sampled members"):
        fl.sweep(system, {"r": [1.0]}, parameters=["law.k"])
    with pytest.raises(fl.UsageError, match="has sampled members"):
        fl.to_casadi(system)
    with pytest.raises(fl.UnknownNameError, match=r"'law\.k'"):
        fl.sweep(system, {"law.q": [1.0]})
