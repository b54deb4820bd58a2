"""Co-simulation FMUs of FMI 2.0 and 3.0: the same linear model by every method as from model exchange, and what they do
wrong in the wild."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Stepping
from fmilin.errors import ModelError, NumericalError, UsageError
from fmilin.fmi.read.stepped_model import SteppedFmu
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.options import FmuOptions
from fmilin.systems import four_bar
from tests.fmi.read.stepped import FOUR_BAR, PREFERRED, Made, assert_same, constraints_of, exchanged, remark

# ---------------------------------------------------------------------- the same system as model exchange


TOLERANCES = {"direct": 1e-9, "step": 1e-8, "response": 1e-5}


@pytest.mark.parametrize("method", ["direct", "step", "response"])
@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("name", ["motor", "order12", "four_bar"])
def test_every_way_agrees_with_model_exchange(
    made: Made, stepped: Callable[..., SteppedFmu], name: str, fmi: str, method: str
) -> None:
    independent = PREFERRED.get(name)
    model = stepped(made(name, fmi=fmi), constraints=constraints_of(name))
    linear = fl.linearize(model, independent=independent, stepping=Stepping(method=method))
    assert_same(linear, exchanged(made, name, independent), TOLERANCES[method])
    if independent:
        assert linear.states.names == independent


@pytest.mark.parametrize("name", ["motor", "order12", "four_bar"])
def test_hidden_states_are_found_from_responses(made: Made, stepped: Callable[..., SteppedFmu], name: str) -> None:
    linear = fl.linearize(stepped(made(name, hidden=True)))
    expected = exchanged(made, name, PREFERRED.get(name))
    assert_same(linear, expected, 1e-5)
    assert linear.method.derivatives == "responses"
    assert len(linear.states) == len(expected.states)


def test_the_constrained_linkage_shows_its_one_freedom_without_being_told_its_constraints(
    made: Made, stepped: Callable[..., SteppedFmu]
) -> None:
    """Responses know the manifold: 10 declared states, no constraint named, order 2."""
    linear = fl.linearize(stepped(made("four_bar")), stepping=Stepping(method="response"))
    np.testing.assert_allclose(linear.eigenvalues(), [-1j * FOUR_BAR, 1j * FOUR_BAR], atol=1e-7)
    assert linear.T.shape == (10, 2)
    assert set(linear.states.names) <= set(linear.full_states.names)


def test_outputs_that_nothing_moves_tell_nothing_of_the_solver(tmp_path: Path) -> None:
    """The residuals of the constraints are rounding: what they differ by between two steps is no error of a solver."""
    file = build_fmu(four_bar(), tmp_path / "four_bar.fmu")
    with fl.load(file, constraints=[], interface="cs") as model:
        linear = fl.linearize(model, stepping=Stepping(method="response"), keep_inaccurate=True)
    assert "residual[1]" in linear.outputs.names
    assert linear.accuracy.A < 1.0


def test_lightly_damped_modes_keep_their_damping(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    linear = fl.linearize(stepped(made("order12", hidden=True)))
    damping = sorted(m.damping_ratio for m in linear.modes())
    expected = sorted(m.damping_ratio for m in exchanged(made, "order12").modes())
    assert expected[0] < 1.1e-3
    np.testing.assert_allclose(damping, expected, rtol=1e-3)


def test_a_sampled_controller_gives_its_own_matrices(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    """z1+ = z1 + e, z2+ = 0.3 z2 + e, y = 2 e + 0.5 z1 - z2: poles 1 and 0.3, in every coordinate."""
    for fmi in ("2.0", "3.0"):
        model = stepped(made("controller", fmi=fmi))
        linear = fl.linearize(model, stepping=Stepping(lifted=True, step=0.02))
        assert linear.sample_time == 0.02
        np.testing.assert_allclose(np.sort(np.linalg.eigvals(linear.A).real), [0.3, 1.0], atol=1e-12)
        for z in (2.0, np.exp(0.7j), np.exp(2j)):
            answer = linear.C @ np.linalg.solve(z * np.eye(2) - linear.A, linear.B) + linear.D
            exact = 2 + 0.5 / (z - 1) - 1 / (z - 0.3)
            np.testing.assert_allclose(answer, [[exact, -exact]], atol=1e-11)


def test_a_sampled_controller_by_model_exchange_is_the_same(made: Made) -> None:
    """Its events in time, stepped over their own period, with discrete-time inputs set in event mode."""
    with fl.load(made("controller", interface="ModelExchange"), fmu=FmuOptions(sampled=True)) as model:
        linear = fl.linearize(model, stepping=Stepping(lifted=True))
    assert linear.sample_time == pytest.approx(0.02)
    assert linear.inputs.names == ("u1", "u2")
    for z in (2.0, np.exp(0.7j), np.exp(2j)):
        answer = linear.C @ np.linalg.solve(z * np.eye(2) - linear.A, linear.B) + linear.D
        exact = 2 + 0.5 / (z - 1) - 1 / (z - 0.3)
        np.testing.assert_allclose(answer, [[exact, -exact]], atol=1e-11)


def test_the_scheduled_event_that_is_named_is_the_one_after_the_point(made: Made) -> None:
    with fl.load(made("sampled_loop", interface="ModelExchange")) as model:
        assert "schedules an event at t = 0.2 s" in remark(fl.linearize(model), "model")
        (point,) = fl.snapshots(model, times=[1.5])
        assert "schedules an event at t = 1.6 s" in remark(fl.linearize(model, point), "model")


@pytest.mark.parametrize("interface", ["CoSimulation", "ModelExchange"])
def test_a_sampled_loop_is_closed_in_its_lifted_model(made: Made, interface: str) -> None:
    """x' = -x + z, z = u - x/2 sampled: x+ = e x + (1 - e) (u - x/2) with e = exp(-T)."""
    with fl.load(made("sampled_loop", interface=interface)) as model:
        linear = fl.linearize(model, stepping=Stepping(lifted=True, step=0.2))
    e = np.exp(-0.2)
    np.testing.assert_allclose(linear.A, [[e - (1 - e) / 2]], atol=1e-9)
    np.testing.assert_allclose(linear.C @ linear.B, [[1 - e]], atol=1e-9)


def test_a_sampled_loop_is_open_in_its_derivatives_which_responses_refute(
    made: Made, stepped: Callable[..., SteppedFmu]
) -> None:
    path = made("sampled_loop")
    with pytest.raises(NumericalError, match=r"lifted=True.*method='direct', sampled parts frozen"):
        fl.linearize(stepped(path), stepping=Stepping(step=0.2))
    linear = fl.linearize(stepped(path), stepping=Stepping(method="direct", step=0.2))
    np.testing.assert_allclose(linear.A, [[-1.0]], atol=1e-9)
    assert "error for held-out responses" in remark(linear, "poor-fit")


def test_a_sampled_controller_has_no_continuous_model(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    for step in (None, 0.02, 0.005, 0.1):
        with pytest.raises(NumericalError, match="lifted=True"):
            fl.linearize(stepped(made("controller")), stepping=Stepping(step=step))


def test_discrete_time_numbers_are_inputs_and_outputs_and_said_loudly(
    made: Made, stepped: Callable[..., SteppedFmu]
) -> None:
    model = stepped(made("controller"))
    assert (model.inputs.names, model.outputs.names) == (("u1", "u2"), ("y",))
    assert "discrete-time numbers: 'u1', 'u2', 'y'" in model.cadence.sampled[0]


def test_notes_about_the_description_come_with_measured_models(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    flag = '<Boolean name="on" valueReference="60" causality="input" variability="discrete" start="true"/>'
    linear = fl.linearize(stepped(made("motor", fmi="3.0", hidden=True, further=flag)))
    assert "'on (discrete Boolean)'" in remark(linear, "model")
    assert "left out" in remark(linear, "model")


def test_the_period_of_a_clock_is_the_base_period(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    clock = '<Clock name="tick" valueReference="50" causality="local" intervalVariability="constant" INTERVAL/>'
    for interval in ('intervalDecimal="0.02"', 'resolution="1000" intervalCounter="20"'):
        path = made("controller", fmi="3.0", further=clock.replace("INTERVAL", interval))
        model = stepped(path)
        assert model.cadence.period == pytest.approx(0.02)
        linear = fl.linearize(model, stepping=Stepping(lifted=True))
        assert linear.sample_time == pytest.approx(0.02)


# ---------------------------------------------------------------------- points, interfaces, limits


def test_a_point_on_the_way(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    """The pendulum-like spring of order12 is cubic: on the method it is stiffer than at rest."""
    model = stepped(made("order12"))
    start = fl.operating_point(model, {"u1": 3.0})
    later = model.advance(start, 2.0, 0.01)
    assert later.time == pytest.approx(2.0)
    assert np.max(np.abs(later.states)) > 0.1
    with fl.load(made("order12", interface="ModelExchange")) as exchange:
        expected = fl.linearize(exchange, fl.OperatingPoint(later.time, later.states, later.inputs))
        assert np.max(np.abs(expected.A - fl.linearize(exchange).A)) > 1.0
    for method in ("direct", "step"):
        linear = fl.linearize(model, later, stepping=Stepping(method=method, step=1e-3))
        np.testing.assert_allclose(linear.A, expected.A, atol=2e-2 if method == "step" else 1e-6)
    np.testing.assert_allclose(linear.f0, expected.f0, atol=0.05 * np.max(np.abs(expected.f0)))


def test_runs_start_from_states_that_are_set(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("motor"))
    point = fl.operating_point(model, {"i": 2.0, "V": 1.0})
    seen = model.respond(point, np.tile(point.inputs, (1, 1)), 0.01)
    assert seen.states[0, 0] == pytest.approx(2.0 + 0.01 * (1 - 2) / 0.5, abs=2e-3)


def test_both_interfaces_of_one_fmu(made: Made) -> None:
    both = made("motor", attributes='/><ModelExchange modelIdentifier="motor"')
    with fl.load(both) as exchange, fl.load(both, interface="cs") as stepped:
        assert not isinstance(exchange, SteppedFmu)
        assert isinstance(stepped, SteppedFmu)
        np.testing.assert_allclose(fl.linearize(exchange).A, fl.linearize(stepped).A, atol=1e-9)


def test_an_interface_that_is_not_there(made: Made) -> None:
    with pytest.raises(
        UsageError, match=r"has no interface 'ModelExchange'. Choose one of its interfaces: CoSimulation"
    ):
        fl.load(made("motor"), interface="me")
    with pytest.raises(UsageError, match="'xy' is not an interface of an FMU: use me"):
        fl.load(made("motor"), interface="xy")


def test_another_time_cannot_be_asked(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("motor"))
    with pytest.raises(ModelError, match=r"is at t = 0 s: it cannot be evaluated at t = 1 s. Simulate to that time"):
        model.evaluate(1.0, model.start.states, model.start.inputs)


def test_hidden_states_have_no_derivatives(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("motor", hidden=True))
    with pytest.raises(ModelError, match="declares no states, so there are no derivatives to evaluate"):
        model.evaluate(0.0, model.start.states, model.start.inputs)


def test_the_end_of_the_simulation_is_no_crash(made: Made, stepped: Callable[..., SteppedFmu]) -> None:
    model = stepped(made("motor", "-DENDS_AT=0.05", fmi="3.0"))
    with pytest.raises(NumericalError, match=r"requests the end of the simulation at t = 0\.04 s"):
        model.respond(model.start, np.zeros((10, 2)), 0.02)
    again = model.respond(model.start, np.zeros((2, 2)), 0.02)  # a fresh instance
    assert np.isfinite(again.after).all()


def test_saved_states_are_given_back(made: Made) -> None:
    with fl.load(made("motor")) as model:
        assert isinstance(model, SteppedFmu)
        session = model._session
        assert session._saved is not None
        fl.linearize(model)
    assert session._saved is None


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_states_that_are_taken_at_the_start_only_are_set_there_one_after_the_other(tmp_path: Path, fmi: str) -> None:
    """h' = q - sqrt(h): the FMU refuses other states once it is initialized, and takes them as start values."""
    tank = OdeModel("tank", {"h": "q - sqrt(h)"}, inputs=["q"], start={"h": 1.0, "q": 1.0})
    with fl.load(build_fmu(tank, tmp_path / "tank.fmu", fmi_version=fmi), interface="cs") as model:
        for h in (4.0, 1.0, 9.0, 4.0, 1.0):
            rates = model.evaluate(0.0, np.array([h]), np.ones(1)).derivatives
            np.testing.assert_allclose(rates, [1 - np.sqrt(h)], atol=1e-15)
