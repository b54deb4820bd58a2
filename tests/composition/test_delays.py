"""Delays on the wires of connected systems: loops, sensitivities and members with delays against closed forms."""

from __future__ import annotations

import math
from pathlib import Path

import control
import numpy as np
import pytest
from scipy.special import lambertw

import fmilin as fl
from fmilin.cli.main import main
from fmilin.composition.delayed_system import DelayedSystem
from fmilin.models import OdeModel
from tests.composition.plants import oscillator, oscillator_fmu
from tests.composition.ssp_files import component, connection, connector, ssp, system

W = np.geomspace(0.02, 50.0, 40)


def make_gain(value: float) -> control.StateSpace:
    """Return u = value e."""
    return control.ss([], [], [], [[value]], inputs="e", outputs="u")


def make_loop(**delays: float) -> fl.Model:
    """Return 1/(s + 1) with the gain -2 behind it."""
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    named = {name.replace("_", "."): seconds for name, seconds in delays.items()}
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    return fl.connect({"plant": plant, "law": make_gain(-2.0)}, wires, delays=named)


def linearize(system: fl.Model) -> fl.DelayedLinearModel:
    """Return the linear model of a system with delays."""
    lin = fl.linearize(system)
    assert isinstance(lin, fl.DelayedLinearModel)
    return lin


def test_eigenvalues_of_a_delayed_loop_are_lamberts() -> None:
    lin = linearize(make_loop(plant_u=0.75, law_e=0.25))
    lambert = np.array([lambertw(-2 * math.e, k) - 1 for k in range(-6, 6)])
    values = lin.eigenvalues(8)
    assert np.abs(values[:, None] - lambert).min(axis=1).max() < 1e-13
    assert (lin.eigenvalue_errors(8) < 1e-12).all()
    assert lin.delays == {"plant.u": 0.75, "law.e": 0.25}


@pytest.mark.parametrize("wire", ["plant.u", "law.e", "plant.y"])
def test_loops_and_sensitivities_contain_the_delays(wire: str) -> None:
    system = make_loop(plant_u=0.75, law_e=0.25)
    L = -2 * np.exp(-1j * W) / (1 + 1j * W)
    for function, exact in (
        (fl.loop_transfer, L),
        (fl.sensitivity, 1 / (1 - L)),
        (fl.complementary_sensitivity, -L / (1 - L)),
    ):
        response = function(system, wire).frequency_response(W)[0, 0]
        assert np.abs(response - exact).max() < 1e-12 * np.abs(exact).max()


def test_an_opened_wire_has_no_delay_and_the_others_keep_theirs() -> None:
    system = make_loop(plant_u=0.75, law_e=0.25)
    lin = fl.opened(system, ["plant.u"])
    response = lin.frequency_response(W)
    assert np.abs(response[0, 0] - 1 / (1 + 1j * W)).max() < 1e-14
    assert np.abs(response[1, 0] + 2 * np.exp(-0.25j * W) / (1 + 1j * W)).max() < 1e-14


def test_a_smith_predictor_takes_the_delay_out_of_the_loop() -> None:
    plant = control.ss(-1, 1, 1, 0, inputs="u", outputs="y")
    add = control.ss([], [], [], [[1.0, -1.0, -1.0, 1.0]], inputs=["r", "y", "fast", "late"], outputs="e")
    members = {"plant": plant, "fast": plant, "late": plant, "add": add, "law": make_gain(4.0)}
    wires = [
        ("add.e", "law.e"), ("law.u", "plant.u"), ("law.u", "fast.u"), ("law.u", "late.u"),
        ("plant.y", "add.y"), ("fast.y", "add.fast"), ("late.y", "add.late"),
    ]  # fmt: skip
    system = fl.connect(members, wires, inputs=["add.r"], outputs=["plant.y"], delays={"plant.u": 2.0, "add.late": 2.0})
    lin = linearize(system)
    exact = np.exp(-2j * W) * 4 / (1j * W + 5)
    assert np.abs(lin.frequency_response(W)[0, 0] - exact).max() < 1e-12
    step = lin.step_response(times=np.linspace(0.0, 6.0, 61))
    assert np.abs(step["plant.y"] - np.where(step.times > 2, 0.8 * (1 - np.exp(5 * (2 - step.times))), 0)).max() < 1e-11


def test_a_linear_model_with_delays_is_a_member() -> None:
    inner = linearize(make_loop(plant_u=0.75)).with_delays(outputs={"law.u": 0.5})
    members = {"inner": inner, "read": make_gain(1.0)}
    lin = linearize(fl.connect(members, [("inner.law.u", "read.e")], delays={"read.e": 0.25}))
    assert lin.delays == {"inner.plant.u": 0.75, "inner.law.u": 0.5, "read.e": 0.25}
    assert lin.outputs.names == ("inner.plant.y", "inner.law.u", "read.u")
    assert np.abs(lin.eigenvalues(4) - inner.eigenvalues(4)).max() < 1e-12


def test_equilibria_do_not_depend_on_delays_and_other_functions_stop() -> None:
    system = make_loop(plant_u=0.75)
    assert fl.trim(system, guess={"plant.x": 0.3}).states == pytest.approx([0.0], abs=1e-12)
    assert fl.operating_point(system, {"plant.x": 0.5}).states.tolist() == [0.5]
    for use in (lambda: fl.simulate(system, stop_time=1.0), lambda: fl.connect({"s": system}, []).start):
        with pytest.raises(fl.UsageError, match=r"'system' has delays \('plant\.u'\), and this is not made for delays"):
            use()
    with pytest.raises(fl.UsageError, match="leave stable= and steady= out"):
        fl.trim(system, stable=True)
    with pytest.raises(fl.UsageError, match="a delay is finite and not negative"):
        make_loop(plant_u=-1.0)
    with pytest.raises(fl.UnknownNameError, match="'v' is not an input"):
        make_loop(plant_v=1.0)


def test_a_delay_without_a_state_in_its_loop_is_neutral() -> None:
    members = {"a": make_gain(0.5), "b": make_gain(0.5)}
    system = fl.connect(members, [("a.u", "b.e"), ("b.u", "a.e")], delays={"a.e": 1.0})
    lin = linearize(system)
    with pytest.raises(fl.UsageError, match="The system is neutral"):
        lin.eigenvalues()


def make_two_laws() -> fl.Model:
    """Return 1/(s + 1) with the gains -2, behind 0.5 s, and -0.5 side by side, and 0.3 s at its input."""
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    add = control.ss([], [], [], [[1.0, 1.0]], inputs=["a", "b"], outputs="s")
    members = {"plant": plant, "late": make_gain(-2.0), "fast": make_gain(-0.5), "add": add}
    wires = [
        ("plant.y", "late.e"), ("plant.y", "fast.e"), ("late.u", "add.a"), ("fast.u", "add.b"), ("add.s", "plant.u"),
    ]  # fmt: skip
    return fl.connect(members, wires, delays={"late.e": 0.5, "plant.u": 0.3})


def test_wires_that_are_opened_beside_a_loop_keep_the_delays_of_the_others() -> None:
    system, P = make_two_laws(), 1 / (1 + 1j * W)
    late, fast = -2 * np.exp(-0.8j * W) * P, -0.5 * np.exp(-0.3j * W) * P
    for wire, opened, L in (("late.e", "fast.e", late), ("fast.e", "late.e", fast), ("plant.u", "fast.u", late)):
        response = fl.loop_transfer(system, wire, opened=[opened]).frequency_response(W)[0, 0]
        assert np.abs(response - L).max() < 1e-14
        response = fl.sensitivity(system, wire, opened=[opened]).frequency_response(W)[0, 0]
        assert np.abs(response - 1 / (1 - L)).max() < 1e-14


def test_an_output_that_feeds_a_delayed_and_an_undelayed_wire_is_cut_once() -> None:
    L = (-2 * np.exp(-0.8j * W) - 0.5 * np.exp(-0.3j * W)) / (1 + 1j * W)
    response = fl.loop_transfer(make_two_laws(), "plant.y").frequency_response(W)[0, 0]
    assert np.abs(response - L).max() < 1e-14


def test_an_input_may_reach_each_member_with_a_delay_of_its_own() -> None:
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    for delays in ({"a.u": 0.5}, {"a.u": 0.5, "b.u": 0.1}):
        members = {"a": plant, "b": plant}
        system = fl.connect(members, [], inputs={"r": ["a.u", "b.u"]}, outputs=["a.y", "b.y"], delays=delays)
        lin = linearize(system)
        exact = np.exp(-1j * W * np.array([[0.5], [delays.get("b.u", 0.0)]])) / (1 + 1j * W)
        assert np.abs(lin.frequency_response(W)[:, 0] - exact).max() < 1e-14
        assert lin.delays == delays
        assert fl.linearize(system, inputs=[]).delays == {}


def test_a_delay_of_whole_samples_is_a_register() -> None:
    """x+ = E x - 0.8 (1 - E) x[k - 5]: the wire of the loop that is cut has no delay in L."""
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    law = control.ss([], [], [], [[-0.8]], 0.1, inputs="e", outputs="u")
    wires = [("plant.y", "law.e"), ("law.u", "plant.u")]
    system = fl.connect({"plant": plant, "law": law}, wires, delays={"plant.u": 0.5})
    z = fl.linearize(system).eigenvalues()
    assert np.abs(z**6 - np.exp(-0.1) * z**5 + 0.8 * (1 - np.exp(-0.1))).max() < 1e-12
    E = np.exp(-0.1)
    L = fl.loop_transfer(system, "law.e")
    z = np.exp(0.1j * W[W < 30])
    exact = -0.8 * (1 - E) / (z - E) / z**5
    np.testing.assert_allclose(L.frequency_response(W[W < 30])[0, 0], exact, atol=1e-13)
    with pytest.raises(fl.UsageError, match="L goes from sample to sample"):
        fl.loop_transfer(system, "plant.u")


def test_linearize_delays_wires_inputs_and_outputs_by_name() -> None:
    named = {"plant.u": 0.75, "law.e": 0.25}
    system = make_loop(plant_u=0.75, law_e=0.25)
    assert isinstance(system, DelayedSystem)
    closed, loop = linearize(system), system.without_delays()
    lin = fl.linearize(loop, delays=named)
    assert isinstance(lin, fl.DelayedLinearModel)
    assert lin.delays == closed.delays
    assert np.abs(lin.eigenvalues(6) - closed.eigenvalues(6)).max() < 1e-13
    L = fl.loop_transfer(loop, "plant.u", delays=named).frequency_response(W)[0, 0]
    assert np.abs(L + 2 * np.exp(-1j * W) / (1 + 1j * W)).max() < 1e-14
    S = fl.sensitivity(loop, "plant.u", delays=named).frequency_response(W)[0, 0]
    assert np.abs(S - 1 / (1 - L)).max() < 1e-13
    plant = OdeModel("plant", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    response = fl.linearize(plant, delays={"u": 0.5, "y": 0.25}).frequency_response(W)[0, 0]
    assert np.abs(response - np.exp(-0.75j * W) / (1 + 1j * W)).max() < 1e-14
    with pytest.raises(fl.UnknownNameError, match="'v' is not an input or output of the linear model, to be delayed"):
        fl.linearize(plant, delays={"v": 0.5})
    with pytest.raises(
        fl.UsageError, match="'y' is not an input of a member of 'system': delays of loops are on wires"
    ):
        fl.loop_transfer(loop, "plant.u", delays={"y": 0.5})
    with pytest.raises(fl.UsageError, match="Derivatives by parameters are not computed of models with delays"):
        fl.linearize(loop, delays=named, parameters=["plant.k"])
    moving = fl.operating_point(plant, {"x": 0.5})
    warnings = fl.linearize(plant, moving, delays={"y": 0.5}).warnings
    assert any("delayed signals count as constant before it" in warning.message for warning in warnings)


def test_connections_of_ssp_files_and_inputs_of_fmus_have_delays(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = fl.linearize(oscillator(), outputs=["px"]).frequency_response(W)[0, 0]
    ends = [connector("F", "input"), connector("px", "output")]
    elements = [component(name, "resources/osc.fmu", ends) for name in ("one", "two")]
    wires = [connection("one.px", "two.F"), connection("F", "one.F"), connection("two.px", "px")]
    file = oscillator_fmu()
    path = ssp(tmp_path / "two.ssp", system("root", elements, wires, ends), {"resources/osc.fmu": file})
    with fl.load(path) as model:
        lin = fl.linearize(model, delays={"two.F": 0.25, "F": 0.5, "px": 0.125})
    assert np.abs(lin.frequency_response(W)[0, 0] - np.exp(-0.875j * W) * alone**2).max() < 1e-9
    with fl.load(file) as model:
        late = fl.linearize(model, delays={"F": 0.5}, outputs=["px"])
    assert np.abs(late.frequency_response(W)[0, 0] - np.exp(-0.5j * W) * alone).max() < 1e-9
    program = tmp_path / "late.m"
    assert main(["linearize", str(path), "--delay", "two.F=0.25", "-o", str(program)]) == 0
    assert "setDelayModel(sys, [0.25])" in program.read_text(encoding="utf-8")
    assert main(["linearize", str(file), "--delay", "F=0.5"]) == 0
    assert "Delays       F by 0.5 s" in capfd.readouterr().out
    assert main(["linearize", str(file), "--delay", "F=0.5", "--snapshots", "1,2"]) == 2
    assert "--delay has no meaning with --snapshots" in capfd.readouterr().err
