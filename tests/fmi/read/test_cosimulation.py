"""Co-simulation FMUs of FMI 2.0 and 3.0: the same linear model by every method as from model exchange, and what they do
wrong in the wild."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.read.archive import FmuOptions
from fmilin.fmi.read.stepped_model import SteppedFmu
from fmilin.fmi.write import build_fmu
from fmilin.ground.errors import ModelError, NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.stepping import Stepping
from fmilin.native.systems import four_bar
from tests.fmus.stepped.make import Kind, build

PREFERRED = {"four_bar": ("phi", "w"), "motor": ("i", "w", "angle")}
FOUR_BAR = 2.147676638502278
"""The true frequency of the four-bar linkage of González et al. with one loop, in rad/s."""

Made = Callable[..., Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Build FMUs of tests/fmus/stepped once."""
    folder, built, numbers = tmp_path_factory.mktemp("stepped"), dict[tuple[str, Kind], Path](), itertools.count()

    def get(name: str, *flags: str, **options: object) -> Path:
        kind = Kind(flags=flags, **options)  # type: ignore[arg-type]
        if (name, kind) not in built:
            built[name, kind] = build(name, folder / str(next(numbers)), kind)
        return built[name, kind]

    return get


@pytest.fixture
def opened() -> Iterator[Callable[..., SteppedFmu]]:
    """Load FMUs and close them at the end."""
    models: list[fl.Model] = []

    def get(path: Path, **options: object) -> SteppedFmu:
        models.append(fl.load(path, **options))  # type: ignore[arg-type]
        model = models[-1]
        assert isinstance(model, SteppedFmu)
        return model

    yield get
    for model in models:
        model.close()


def constraints_of(name: str) -> list[fl.Constraint]:
    if name != "four_bar":
        return []
    from fmilin.native.systems import four_bar

    return list(four_bar().constraints.declared)


def exchanged(made: Made, name: str, independent: tuple[str, ...] | None = None) -> LinearModel:
    """The linear model of the same plant by model exchange."""
    with fl.load(made(name, interface="ModelExchange"), constraints=constraints_of(name)) as model:
        return fl.linearize(model, independent=independent)


def transfer(linear: LinearModel, s: complex) -> np.ndarray:
    identity = np.eye(len(linear.A))
    return np.asarray(linear.C @ np.linalg.solve(s * identity - linear.A, linear.B.astype(complex)) + linear.D)


def assert_same(linear: LinearModel, expected: LinearModel, tolerance: float) -> None:
    """The same eigenvalues and transfer functions, and, in the same coordinates, the same matrices."""
    ours, theirs = (np.sort_complex(m.eigenvalues()) for m in (linear, expected))
    np.testing.assert_allclose(ours, theirs, atol=tolerance * max(np.max(np.abs(theirs)), 1.0))
    for w in (0.1, 0.7, 3.0, 12.0):
        H = transfer(expected, 0.3 + 1j * w)
        np.testing.assert_allclose(transfer(linear, 0.3 + 1j * w), H, atol=tolerance * np.max(np.abs(H)))
    if linear.states.names == expected.states.names:
        for name in "ABCDT":
            a, b = getattr(linear, name), getattr(expected, name)
            np.testing.assert_allclose(a, b, atol=tolerance * max(np.max(np.abs(b)), 1.0), err_msg=name)


def remark(linear: LinearModel, kind: str) -> str:
    return " ".join(str(w) for w in linear.warnings if w.kind == kind)


# ---------------------------------------------------------------------- the same system as model exchange


TOLERANCES = {"direct": 1e-9, "step": 1e-8, "response": 1e-5}


@pytest.mark.parametrize("method", ["direct", "step", "response"])
@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("name", ["motor", "order12", "four_bar"])
def test_every_way_agrees_with_model_exchange(
    made: Made, opened: Callable[..., SteppedFmu], name: str, fmi: str, method: str
) -> None:
    independent = PREFERRED.get(name)
    model = opened(made(name, fmi=fmi), constraints=constraints_of(name))
    linear = fl.linearize(model, independent=independent, stepping=Stepping(method=method))
    assert_same(linear, exchanged(made, name, independent), TOLERANCES[method])
    if independent:
        assert linear.states.names == independent


@pytest.mark.parametrize("name", ["motor", "order12", "four_bar"])
def test_hidden_states_are_found_from_responses(made: Made, opened: Callable[..., SteppedFmu], name: str) -> None:
    linear = fl.linearize(opened(made(name, hidden=True)))
    expected = exchanged(made, name, PREFERRED.get(name))
    assert_same(linear, expected, 1e-5)
    assert linear.method.derivatives == "responses"
    assert len(linear.states) == len(expected.states)


def test_the_constrained_linkage_shows_its_one_freedom_without_being_told_its_constraints(
    made: Made, opened: Callable[..., SteppedFmu]
) -> None:
    """Responses know the manifold: 10 declared states, no constraint named, order 2."""
    linear = fl.linearize(opened(made("four_bar")), stepping=Stepping(method="response"))
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


def test_lightly_damped_modes_keep_their_damping(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    linear = fl.linearize(opened(made("order12", hidden=True)))
    damping = sorted(m.damping_ratio for m in linear.modes())
    expected = sorted(m.damping_ratio for m in exchanged(made, "order12").modes())
    assert expected[0] < 1.1e-3
    np.testing.assert_allclose(damping, expected, rtol=1e-3)


def test_a_sampled_controller_gives_its_own_matrices(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    """z1+ = z1 + e, z2+ = 0.3 z2 + e, y = 2 e + 0.5 z1 - z2: poles 1 and 0.3, in every coordinate."""
    for fmi in ("2.0", "3.0"):
        model = opened(made("controller", fmi=fmi))
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
    made: Made, opened: Callable[..., SteppedFmu]
) -> None:
    path = made("sampled_loop")
    with pytest.raises(NumericalError, match=r"--lifted.*--method direct, sampled parts frozen"):
        fl.linearize(opened(path), stepping=Stepping(step=0.2))
    linear = fl.linearize(opened(path), stepping=Stepping(method="direct", step=0.2))
    np.testing.assert_allclose(linear.A, [[-1.0]], atol=1e-9)
    assert "misses held-out responses" in remark(linear, "poor-fit")


def test_a_sampled_controller_has_no_continuous_model(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    for step in (None, 0.02, 0.005, 0.1):
        with pytest.raises(NumericalError, match="--lifted"):
            fl.linearize(opened(made("controller")), stepping=Stepping(step=step))


def test_discrete_time_numbers_are_inputs_and_outputs_and_said_loudly(
    made: Made, opened: Callable[..., SteppedFmu]
) -> None:
    model = opened(made("controller"))
    assert (model.inputs.names, model.outputs.names) == (("u1", "u2"), ("y",))
    assert "discrete-time numbers: 'u1', 'u2', 'y'" in model.cadence.sampled[0]


def test_notes_about_the_description_come_with_measured_models(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    flag = '<Boolean name="on" valueReference="60" causality="input" variability="discrete" start="true"/>'
    linear = fl.linearize(opened(made("motor", fmi="3.0", hidden=True, further=flag)))
    assert "'on (discrete Boolean)'" in remark(linear, "model")
    assert "left out" in remark(linear, "model")


def test_the_period_of_a_clock_is_the_base_period(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    clock = '<Clock name="tick" valueReference="50" causality="local" intervalVariability="constant" INTERVAL/>'
    for interval in ('intervalDecimal="0.02"', 'resolution="1000" intervalCounter="20"'):
        path = made("controller", fmi="3.0", further=clock.replace("INTERVAL", interval))
        model = opened(path)
        assert model.cadence.period == pytest.approx(0.02)
        linear = fl.linearize(model, stepping=Stepping(lifted=True))
        assert linear.sample_time == pytest.approx(0.02)


# ---------------------------------------------------------------------- misbehaviour


@pytest.mark.parametrize(
    ("flag", "method", "said"),
    [
        ("-DSTALE", "steps", "calculates its outputs at the end of a step only"),
        ("-DDEAF_STATES", "responses", "does not keep the value that it is given"),
        ("-DREFUSES_STATES", "responses", "cannot be set between two steps, nor as start values"),
        ("-DSTRICT", "differences", "set as start values of fresh instances"),
        ("-DSTALE_RATES", "steps", "derivatives do not follow"),
        ("-DKEEPS_INPUTS", "differences", "does not restore the inputs, so every run is preceded"),
        ("-DRESTARTS", "differences", "method direct"),
        ("-DRESTORES_NOTHING", "differences", "method direct"),
        ("-DBREAKS_PROMISE", "differences", "every run starts from a fresh instance"),
        ("-DREFUSES_STEPS=0.05", "differences", "method direct"),
    ],
)
def test_misbehaviour_does_not_spoil_the_model(
    made: Made, opened: Callable[..., SteppedFmu], flag: str, method: str, said: str
) -> None:
    linear = fl.linearize(opened(made("motor", flag)))
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)
    assert linear.method.derivatives == method
    assert said in " ".join(map(str, linear.warnings))


@pytest.mark.parametrize("flag", ["-DKEEPS_INPUTS", "-DRESTORES_NOTHING", "-DBREAKS_PROMISE", "-DSTALE", "-DRESTARTS"])
def test_misbehaviour_does_not_spoil_what_is_found_from_responses(
    made: Made, opened: Callable[..., SteppedFmu], flag: str
) -> None:
    linear = fl.linearize(opened(made("motor", flag, hidden=True)))
    # a solver that restarts makes another error in the first step of each run
    assert_same(linear, exchanged(made, "motor"), 2e-3 if flag == "-DRESTARTS" else 1e-7)


def test_restoring_nothing_is_noticed_and_fresh_instances_used(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    linear = fl.linearize(opened(made("motor", "-DRESTORES_NOTHING", hidden=True)))
    assert "does not restore all of its state, so every run starts from a fresh instance" in remark(
        linear, "repetition"
    )


def test_without_saved_states_fresh_instances_are_led_to_the_point(
    made: Made, opened: Callable[..., SteppedFmu]
) -> None:
    path = made("motor", attributes="", hidden=True)
    linear = fl.linearize(opened(path))
    assert "cannot save its state" in remark(linear, "repetition")
    assert_same(linear, exchanged(made, "motor"), 1e-7)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("method", ["direct", "step"])
def test_an_fmu_that_keeps_to_the_standard_is_linearized_with_its_constraints(
    made: Made, opened: Callable[..., SteppedFmu], fmi: str, method: str
) -> None:
    """States can only be set until initialization ends: fresh instances take them as start values."""
    model = opened(made("four_bar", "-DSTRICT", fmi=fmi), constraints=constraints_of("four_bar"))
    linear = fl.linearize(model, independent=("phi", "w"), stepping=Stepping(method=method))
    assert_same(linear, exchanged(made, "four_bar", ("phi", "w")), 1e-8)
    point = fl.operating_point(model, {"phi": 2.0})
    elsewhere = fl.linearize(model, point, independent=("phi", "w"), stepping=Stepping(method=method))
    with fl.load(made("four_bar", interface="ModelExchange"), constraints=constraints_of("four_bar")) as exchange:
        expected = fl.linearize(exchange, point, independent=("phi", "w"))
    # a step from a point that is no equilibrium leads away from it
    np.testing.assert_allclose(elsewhere.A, expected.A, atol=1e-8 if method == "direct" else 1.0)
    assert elsewhere.point.states["phi"] == 2.0


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_a_point_may_be_the_first_thing_that_a_strict_fmu_is_asked_for(
    made: Made, opened: Callable[..., SteppedFmu], fmi: str
) -> None:
    """It moves by itself there: responses are compared for as long as it has not moved far."""
    constraints = constraints_of("four_bar")
    model = opened(made("four_bar", "-DSTRICT", fmi=fmi), constraints=constraints)
    point = fl.operating_point(model, {"phi": 2.0})
    linear = fl.linearize(model, point, independent=("phi", "w"))
    with fl.load(made("four_bar", interface="ModelExchange"), constraints=constraints) as exchange:
        expected = fl.linearize(exchange, point, independent=("phi", "w"))
    assert expected.f0.any()
    assert_same(linear, expected, 1e-8)
    assert "(method direct)" in remark(linear, "method")


def test_states_that_are_refused_in_every_way_are_one_sentence(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("four_bar", "-DREFUSES_STATES"), constraints=constraints_of("four_bar"))
    with pytest.raises(ModelError, match=r"states of 'four_bar.fmu' cannot be set between two steps, nor as start"):
        model.evaluate(model.start.time, model.start.states + 0.1, model.start.inputs)
    at_start = model.evaluate(model.start.time, model.start.states, model.start.inputs)
    assert np.isfinite(at_start.derivatives).all()


def test_states_cannot_be_set_on_the_way_of_a_strict_fmu(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("motor", "-DSTRICT"))
    later = model.advance(fl.operating_point(model, {"i": 1.0, "V": 2.0}), 0.5, 0.01)
    assert later.states[0] > 1.0
    linear = fl.linearize(model, later)
    assert linear.method.derivatives == "responses"
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)


def test_directional_derivatives_are_taken_where_states_cannot_be_set(
    made: Made, opened: Callable[..., SteppedFmu]
) -> None:
    attributes = 'canHandleVariableCommunicationStepSize="true" SAVES providesDirectionalDerivative="true"'
    linear = fl.linearize(opened(made("motor", "-DREFUSES_STATES", attributes=attributes)))
    assert_same(linear, exchanged(made, "motor", linear.states.names), 1e-7)
    assert linear.method.derivatives == "exact"
    assert "nothing else confirms them" in remark(linear, "method")


def test_noise_is_measured_and_multisines_hear_through_it(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    path = made("motor", "-DNOISE=1e-3", hidden=True)
    model = opened(path).with_interface(None, ["speed", "current"])
    linear = fl.linearize(model, stepping=Stepping(method="multisine", step=0.1, order=2))
    np.testing.assert_allclose(linear.eigenvalues(), [-4.618034, -2.381966], rtol=1e-2)
    assert "does not repeat itself: equal runs differ by" in remark(linear, "repetition")


def test_a_hidden_state_beside_declared_ones_is_noticed(
    made: Made, opened: Callable[..., SteppedFmu], tmp_path: Path
) -> None:
    """Only the current is declared: its derivative alone makes a model that responses refute."""
    from tests.fmus.make import pack
    from tests.fmus.stepped.make import PLANTS, description

    whole = made("motor")
    xml = description("motor", PLANTS["motor"], Kind())
    for name in ("w", "angle"):
        xml = xml.replace(f'name="der({name})" ', f'name="rate of {name}" ')
    import re
    import zipfile

    xml = re.sub(r' derivative="[23]"', "", xml).replace('<Unknown index="5"/><Unknown index="6"/></Deriv', "</Deriv")
    with zipfile.ZipFile(whole) as archive:
        members: dict[str, bytes | str] = {m: archive.read(m) for m in archive.namelist()}
    path = pack(tmp_path / "motor.fmu", members | {"modelDescription.xml": xml})
    model = opened(path)
    assert model.states.names == ("i",)
    linear = fl.linearize(model)
    assert "is off by" in remark(linear, "other-method")
    np.testing.assert_allclose(linear.eigenvalues().real, [-4.618034, -2.381966, 0.0], atol=1e-6)


@pytest.mark.parametrize("flags", [(), ("-DRESTARTS",), ("-DNOISE=1e-6",)], ids=str)
@pytest.mark.parametrize("method", ["step", "response"])
def test_estimated_errors_are_of_the_size_of_the_true_ones(
    made: Made, opened: Callable[..., SteppedFmu], flags: tuple[str, ...], method: str
) -> None:
    """A solver that restarts in each run errs without contradicting itself: only held-out responses tell."""
    states = PREFERRED["motor"]
    exact = exchanged(made, "motor", states)
    linear = fl.linearize(opened(made("motor", *flags)), independent=states, stepping=Stepping(method=method))
    for name in "ABCD":
        true = np.max(np.abs(getattr(linear, name) - getattr(exact, name)))
        assert true <= 10 * np.max(getattr(linear.errors, name)) + 1e-9, name
        assert np.max(getattr(linear.errors, name)) <= 0.01 * max(np.max(np.abs(getattr(exact, name))), 1.0)


# ---------------------------------------------------------------------- points, interfaces, limits


def test_a_point_on_the_way(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    """The pendulum-like spring of order12 is cubic: on the method it is stiffer than at rest."""
    model = opened(made("order12"))
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


def test_runs_start_from_states_that_are_set(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("motor"))
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
    with pytest.raises(UsageError, match=r"has no interface 'ModelExchange'; inside: CoSimulation"):
        fl.load(made("motor"), interface="me")
    with pytest.raises(UsageError, match="'xy' is no interface of an FMU: use me"):
        fl.load(made("motor"), interface="xy")


def test_another_time_cannot_be_asked(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("motor"))
    with pytest.raises(ModelError, match=r"stands at t = 0 s: it cannot be asked at t = 1 s. Let it run there"):
        model.evaluate(1.0, model.start.states, model.start.inputs)


def test_hidden_states_have_no_derivatives(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("motor", hidden=True))
    with pytest.raises(ModelError, match="declares no states, so there are no derivatives to evaluate"):
        model.evaluate(0.0, model.start.states, model.start.inputs)


def test_the_end_of_the_simulation_is_no_crash(made: Made, opened: Callable[..., SteppedFmu]) -> None:
    model = opened(made("motor", "-DENDS_AT=0.05", fmi="3.0"))
    with pytest.raises(NumericalError, match=r"asks to end the simulation at t = 0\.04 s"):
        model.respond(model.start, np.zeros((10, 2)), 0.02)
    again = model.respond(model.start, np.zeros((2, 2)), 0.02)  # a fresh instance
    assert np.isfinite(again.after).all()


def test_saved_states_are_given_back(made: Made) -> None:
    with fl.load(made("motor")) as model:
        assert isinstance(model, SteppedFmu)
        session = model._session
        assert session.restores
        fl.linearize(model)
    assert not session.restores
