"""Loops cut at wires, against systems of python-control that were cut by hand."""

from __future__ import annotations

import json
from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.systems import four_bar
from tests.command_line import main
from tests.composition.plants import oscillator, oscillator_fmu
from tests.composition.ssp_files import component, connection, connector, ssp, system

DT = 0.1
FREQUENCIES = np.logspace(-2, 3, 100)
Z = np.exp(1j * np.linspace(0.001, 0.99, 100) * np.pi)  # of a sampled loop
WIRES = ("plant.u", "law.u", "plant.y", "law.y")
EVERY_WAY = [("plant.y", "law.u", -1.0), ("law.y", "plant.u")]


def plant(feedthrough: float = 0.2) -> control.StateSpace:
    return control.ss([[0, 1], [-1, -0.3]], [[0], [1]], [[1, 0]], [[feedthrough]], inputs="u", outputs="y")


def law(feedthrough: float = 1.5, dt: float = 0.0) -> control.StateSpace:
    continuous = control.ss([[-5.0]], [[1.0]], [[2.0]], [[feedthrough]], inputs="u", outputs="y")
    return control.c2d(continuous, dt) if dt else continuous


def loop() -> ConnectedModel:
    return fl.connect({"plant": plant(), "law": law()}, EVERY_WAY)


def response(linear: fl.LinearModel, at: np.ndarray) -> np.ndarray:
    return np.moveaxis(linear.to_control()(at, squeeze=False), -1, 0)


@pytest.mark.parametrize("wire", WIRES)
def test_a_loop_with_feedthrough_on_both_sides(wire: str) -> None:
    s = 1j * FREQUENCIES
    L = -plant()(s) * law()(s)
    linear = fl.loop_transfer(loop(), wire)
    assert linear.inputs.names == linear.outputs.names == (wire,)
    np.testing.assert_allclose(response(linear, s)[:, 0, 0], L, rtol=1e-12)
    S, T = (response(f(loop(), wire), s)[:, 0, 0] for f in (fl.sensitivity, fl.complementary_sensitivity))
    np.testing.assert_allclose(S, 1 / (1 - L), rtol=1e-12)
    np.testing.assert_allclose(S + T, 1.0, rtol=1e-12)


def test_the_sensitivity_is_that_of_the_closed_system() -> None:
    """Against a sum written into the system: w = r + what the law gives."""
    adder = control.ss([], [], [], [[1.0, 1.0]], inputs=["a", "r"], outputs=["w"])
    wires = [("plant.y", "law.u", -1.0), ("law.y", "sum.a"), ("sum.w", "plant.u")]
    written = fl.connect({"plant": plant(), "law": law(), "sum": adder}, wires, inputs=["sum.r"], outputs=["sum.w"])
    S = fl.sensitivity(loop(), "plant.u")
    s = 1j * FREQUENCIES
    np.testing.assert_allclose(response(S, s), response(fl.linearize(written), s), rtol=1e-12)
    np.testing.assert_allclose(np.sort_complex(S.eigenvalues()), np.sort_complex(fl.linearize(written).eigenvalues()))


@pytest.mark.parametrize("wire", WIRES)
def test_a_sampled_loop(wire: str) -> None:
    held = control.c2d(plant(0.0), DT)
    system = fl.connect({"plant": plant(0.0), "law": law(dt=DT)}, EVERY_WAY)
    L = -held(Z) * law(dt=DT)(Z)
    linear = fl.loop_transfer(system, wire)
    assert linear.sample_time == DT
    np.testing.assert_allclose(response(linear, Z)[:, 0, 0], L, rtol=1e-10)
    S, T = (response(f(system, wire), Z)[:, 0, 0] for f in (fl.sensitivity, fl.complementary_sensitivity))
    np.testing.assert_allclose(S, 1 / (1 - L), rtol=1e-10)
    np.testing.assert_allclose(S + T, 1.0, rtol=1e-12)
    assert not any("approximation" in str(w) for w in linear.warnings)


def test_a_wire_between_continuous_members_of_a_sampled_loop_is_held_and_says_so() -> None:
    lag = control.ss([[-3.0]], [[3.0]], [[1.0]], [[0.0]], inputs="u", outputs="y")
    wires = [("plant.y", "law.u", -1.0), ("law.y", "lag.u"), ("lag.y", "plant.u")]
    system = fl.connect({"plant": plant(0.0), "lag": lag, "law": law(dt=DT)}, wires)
    assert any("held over 0.1 s" in str(w) for w in fl.loop_transfer(system, "plant.u").warnings)
    assert not any("held over" in str(w) for w in fl.loop_transfer(system, "lag.u").warnings)


def test_several_wires_at_once_are_a_matrix() -> None:
    s = 1j * FREQUENCIES
    P, K = plant()(s), law()(s)
    L = response(fl.loop_transfer(loop(), ["plant.u", "law.u"]), s)
    zero = np.zeros_like(P)
    np.testing.assert_allclose(L, np.moveaxis(np.array([[zero, K], [-P, zero]]), -1, 0), atol=1e-13)
    S = response(fl.sensitivity(loop(), ["plant.u", "law.u"]), s)
    np.testing.assert_allclose(S, np.linalg.inv(np.eye(2) - L), rtol=1e-11)


def test_another_wire_is_open_for_one_question() -> None:
    """An inner loop of the plant on itself, cut or not while the outer loop is asked for."""
    members = {
        "plant": plant(0.0),
        "law": law(0.0),
        "damper": control.ss([], [], [], [[-0.7]], inputs="u", outputs="y"),
    }
    adder = control.ss([], [], [], [[1.0, 1.0]], inputs=["a", "b"], outputs=["w"])
    wires = [*EVERY_WAY[:1], ("law.y", "sum.a"), ("damper.y", "sum.b"), ("sum.w", "plant.u"), ("plant.y", "damper.u")]
    system = fl.connect({**members, "sum": adder}, wires)
    s = 1j * FREQUENCIES
    P, K = plant(0.0)(s), law(0.0)(s)
    closed = response(fl.loop_transfer(system, "sum.a"), s)[:, 0, 0]
    np.testing.assert_allclose(closed, -K * P / (1 + 0.7 * P), rtol=1e-12, atol=1e-15)
    cut = response(fl.loop_transfer(system, "sum.a", opened=["sum.b"]), s)[:, 0, 0]
    np.testing.assert_allclose(cut, -K * P, rtol=1e-12, atol=1e-15)


def test_a_loop_inside_a_member_that_is_a_system() -> None:
    follower = control.ss([[-1.0]], [[1.0]], [[1.0]], [[0.0]], inputs="u", outputs="y")
    outer = fl.connect({"inner": loop(), "follower": follower}, [("inner.plant.y", "follower.u")])
    s = 1j * FREQUENCIES
    L = -plant()(s) * law()(s)
    np.testing.assert_allclose(response(fl.loop_transfer(outer, "inner.plant.u"), s)[:, 0, 0], L, rtol=1e-12)
    both = response(fl.loop_transfer(outer, ["inner.plant.u", "inner.law.u"]), s)
    np.testing.assert_allclose(both[:, 0, 1] * both[:, 1, 0], L, rtol=1e-12)


def test_opened_keeps_the_point_and_names_an_input() -> None:
    """A pendulum held by a spring at an angle: the linear model there is about what the wire carries."""
    pendulum = OdeModel(
        "p", {"q": "w", "w": "-9.81*sin(q) + u"}, inputs=["u"], outputs={"angle": "q"}, start={"q": 0.5}
    )
    spring = OdeModel("s", {}, inputs=["e", "r"], outputs={"u": "20*(r - e)"})
    system = fl.connect(
        {"pendulum": pendulum, "spring": spring}, [("pendulum.angle", "spring.e"), ("spring.u", "pendulum.u")]
    )
    point = fl.trim(system, fixed={"pendulum.q": 0.5}, free=["spring.r"])
    linear = fl.opened(system, ["pendulum.u"], point)
    assert linear.inputs.names == ("spring.r", "pendulum.u")
    assert linear.outputs.names == system.outputs.names
    np.testing.assert_allclose(linear.point.inputs["pendulum.u"], 9.81 * np.sin(0.5), rtol=1e-9)
    np.testing.assert_allclose(linear.A, [[0, 1], [-9.81 * np.cos(0.5), 0]], atol=1e-9)
    np.testing.assert_allclose(linear.f0, 0.0, atol=1e-9)


def test_a_constrained_member() -> None:
    regulator = control.ss([], [], [], [[4.0, 1.0]], inputs=["angle", "rate"], outputs=["torque"])
    wires = [("bar.phi", "law.angle", -1.0), ("bar.w", "law.rate", -1.0), ("law.torque", "bar.torque")]
    system = fl.connect({"bar": four_bar(), "law": regulator}, wires)
    L = fl.loop_transfer(system, "bar.torque")
    alone = fl.linearize(four_bar(), inputs=["torque"], outputs=["phi", "w"])
    s = 1j * FREQUENCIES
    expected = -(response(alone, s)[:, 0, 0] * 4.0 + response(alone, s)[:, 1, 0])
    assert len(L.states) == 2
    np.testing.assert_allclose(response(L, s)[:, 0, 0], expected, rtol=1e-10)


def test_a_loop_of_an_ssp_file_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ends = [connector("F", "input"), connector("px", "output")]
    elements = [component(name, "resources/osc.fmu", ends) for name in ("one", "two")]
    wires = [connection("two.F", "one.px"), connection("one.F", "two.px")]
    path = ssp(tmp_path / "two.ssp", system("root", elements, wires), {"resources/osc.fmu": oscillator_fmu()})
    assert main(["linearize", str(path), "--loop-at", "one.F", "--json"]) == 0
    L = json.loads(capfd.readouterr().out)
    assert L["inputs"] == L["outputs"] == ["one.F"]
    alone = fl.linearize(oscillator(), outputs=["px"]).to_control()
    given = control.ss(
        *(
            np.array(L[name]).reshape(shape)
            for name, shape in zip("ABCD", [(4, 4), (4, 1), (1, 4), (1, 1)], strict=True)
        )
    )
    np.testing.assert_allclose(given(2.0j), alone(2.0j) ** 2, rtol=1e-9)
    assert main(["linearize", str(path), "--sensitivity-at", "one.F", "--open", "two.F"]) == 0
    assert "S at one.F (with two.F open)" in capfd.readouterr().out


def test_wires_that_are_none() -> None:
    with pytest.raises(UnknownNameError, match=r"not a wire of 'system'\. Did you mean 'plant\.y' or 'plant\.u'"):
        fl.loop_transfer(loop(), "plant.v")
    with pytest.raises(UsageError, match="has no wires: loops are cut in systems of several members"):
        fl.loop_transfer(four_bar(), "torque")
    with pytest.raises(UsageError, match=r"No wire ends at 'plant\.u': no output feeds this input"):
        fl.opened(fl.connect({"plant": plant(), "law": law()}, EVERY_WAY[:1]), "plant.u")
    with pytest.raises(UsageError, match=r"named twice among plant\.u, law\.y"):
        fl.loop_transfer(loop(), ["plant.u", "law.y"])
    with pytest.raises(UsageError, match="Name a wire"):
        fl.opened(loop(), [])


def test_a_loop_that_has_no_solution_when_it_is_cut() -> None:
    """a = b + r and b = a - e with e = b: as wired a = r; without the wire e, a follows itself one to one."""
    one = control.ss([], [], [], [[1.0, 1.0]], inputs=["b", "r"], outputs=["a"])
    two = control.ss([], [], [], [[1.0, -1.0]], inputs=["a", "e"], outputs=["b"])
    system = fl.connect({"one": one, "two": two}, [("two.b", "one.b"), ("one.a", "two.a"), ("two.b", "two.e")])
    with pytest.raises(NumericalError, match=r"With the wire to two\.e cut the system has no solution"):
        fl.loop_transfer(system, "two.e")


@pytest.mark.parametrize("step", [0.1, 0.05])
def test_a_continuous_approximation_of_a_sampled_regulator(step: float) -> None:
    """Tustin's rule and half a sample of delay leave (w h)^2/24 of the hold's gain, and terms of higher order."""
    system = fl.connect({"plant": plant(0.0), "law": law(dt=step)}, EVERY_WAY)
    exact, near = fl.loop_transfer(system, "plant.u"), fl.loop_transfer(system, "plant.u", continuous=True)
    assert near.sample_time == 0.0
    assert any("A continuous approximation of law (Tustin's rule" in str(w) for w in near.warnings)
    w = np.array([0.5, 1.0, 2.0, 4.0])
    true = response(exact, np.exp(1j * w * step))[:, 0, 0]
    off = np.abs(response(near, 1j * w)[:, 0, 0] - true) / np.abs(true)
    assert (off <= 1.5 * (w * step) ** 2 / 24).all()
    S = fl.sensitivity(system, "plant.u", continuous=True)
    np.testing.assert_allclose(response(S, 1j * w), 1 / (1 - response(near, 1j * w)), rtol=1e-10)


def test_what_samples_turn_has_no_continuous_approximation() -> None:
    turning = control.ss([[-1.0]], [[1.0]], [[0.1]], [[0.0]], DT, inputs="u", outputs="y")
    system = fl.connect({"plant": plant(0.0), "law": turning}, EVERY_WAY)
    with pytest.raises(UsageError, match="a pole at z = -1, which no continuous system has"):
        fl.loop_transfer(system, "plant.u", continuous=True)


def test_regulators_of_different_sample_times() -> None:
    members = {"plant": plant(0.0), "law": law(dt=DT), "slow": law(0.0, dt=2 * DT)}
    adder = control.ss([], [], [], [[1.0, 1.0]], inputs=["a", "b"], outputs=["w"])
    wires = [*EVERY_WAY[:1], ("plant.y", "slow.u", -1.0), ("law.y", "sum.a"), ("slow.y", "sum.b"), ("sum.w", "plant.u")]
    system = fl.connect({**members, "sum": adder}, wires)
    assert fl.loop_transfer(system, "slow.u").sample_time == pytest.approx(2 * DT)
    with pytest.raises(UsageError, match="different sample times"):
        fl.sensitivity(system, "slow.u")
    s = np.array([1.0j])
    S, L = (response(f(system, "slow.u", continuous=True), s) for f in (fl.sensitivity, fl.loop_transfer))
    np.testing.assert_allclose(S, 1 / (1 - L), rtol=1e-10)
