"""What other people's FMUs do: each cause of `fmus_in_the_wild`, with a small FMU that has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel, Stepping
from fmilin.errors import ModelError, NumericalError
from fmilin.loading.load import load_request
from fmilin.model.stepping import Stepped
from fmilin.options import FmuOptions, Loading
from fmilin.trimming.trim_request import PointRequest
from tests.fmus.make import build, compile_library, description_of, pack
from tests.fmus.stepped import make as stepped

MOTOR = [-4.618033988749895, -2.381966011250105, 0.0]
ONLY = 'canBeInstantiatedOnlyOncePerProcess="true"'
ONCE = f'{ONLY} canHandleVariableCommunicationStepSize="true"'


@pytest.fixture
def linear(tmp_path: Path) -> Iterator[Callable[..., LinearModel]]:
    """Linearize an FMU and close it."""
    models: list[fl.Model] = []

    def get(path: Path, *, fmu: FmuOptions | None = None, **options: object) -> LinearModel:
        models.append(fl.load(path, fmu=fmu))
        return fl.linearize(models[-1], **options)  # type: ignore[arg-type]

    yield get
    for model in models:
        model.close()


def motor(folder: Path, *flags: str, **options: object) -> Path:
    return stepped.build("motor", folder, stepped.Kind(flags=flags, **options))  # type: ignore[arg-type]


def eigenvalues(model: LinearModel) -> np.ndarray:
    return np.sort(model.eigenvalues().real)


def said(model: LinearModel, kind: str = "") -> str:
    return " ".join(str(w) for w in model.warnings if not kind or w.kind == kind)


def relabelled(path: Path, target: Path, change: Callable[[dict[str, bytes | str]], None]) -> Path:
    """Copy an FMU with other members."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members: dict[str, bytes | str] = {m: archive.read(m) for m in archive.namelist()}
    change(members)
    return pack(target, members)


def with_xml(path: Path, target: Path, *changes: tuple[str, str]) -> Path:
    """Copy an FMU with another model description."""

    def change(members: dict[str, bytes | str]) -> None:
        xml = members["modelDescription.xml"]
        text = xml.decode() if isinstance(xml, bytes) else xml
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        members["modelDescription.xml"] = text

    return relabelled(path, target, change)


# ---------------------------------------------------------------------- flags


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("hidden", [False, True])
def test_no_step_is_announced_as_one_that_may_be_taken_back(
    tmp_path: Path, linear: Callable[..., LinearModel], fmi: str, hidden: bool
) -> None:
    lin = linear(motor(tmp_path, "-DROLLS_BACK", fmi=fmi, hidden=hidden))
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-6)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_code_that_allows_one_instance_is_loaded_afresh_for_each(
    tmp_path: Path, linear: Callable[..., LinearModel], fmi: str
) -> None:
    """It cannot save its state, so every run needs a fresh instance."""
    lin = linear(motor(tmp_path, "-DONLY_ONCE", fmi=fmi, hidden=True, attributes=ONCE))
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-6)


def test_model_exchange_code_that_allows_one_instance(tmp_path: Path, linear: Callable[..., LinearModel]) -> None:
    xml = description_of("only_once").replace("<ModelExchange ", f"<ModelExchange {ONLY} ")
    lin = linear(build("only_once", tmp_path, xml=xml))
    np.testing.assert_array_equal(lin.A, [[0, 1], [-1, 0]])


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_the_solver_inside_is_asked_for_a_tolerance(
    tmp_path: Path, linear: Callable[..., LinearModel], fmi: str
) -> None:
    path = motor(tmp_path, "-DLOOSE", fmi=fmi, hidden=True)
    lin = linear(path)
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-6)
    assert "relative tolerance of 1e-10" in said(lin, "method")
    coarse = linear(path, fmu=FmuOptions(solver_tolerance=None), stepping=Stepping(step=0.01))
    assert "relative tolerance" not in said(coarse, "method")
    # Its steps are then coarse ones of a fixed size, and the plant behind them is told by the integrator.
    assert coarse.discrete is not None
    assert abs(eigenvalues(coarse.discrete)[0] - np.exp(0.01 * MOTOR[0])) > 1e-4
    np.testing.assert_allclose(eigenvalues(coarse), MOTOR, atol=1e-6)
    assert "explicit Euler method" in said(coarse, "integrator")


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
@pytest.mark.parametrize("attributes", ["", "canHandleVariableCommunicationStepSize='true'"])
def test_two_tolerances_are_compared_and_stated(
    tmp_path: Path, linear: Callable[..., LinearModel], fmi: str, attributes: str
) -> None:
    """An error of one root of the tolerance per second shows in no step, and is fitted exactly."""
    kind: dict[str, str] = {"attributes": attributes} if attributes else {}
    lin = linear(motor(tmp_path, "-DINEXACT=10", fmi=fmi, hidden=True, **kind))
    exact = np.array(MOTOR)
    wrong = np.abs(eigenvalues(lin) - exact).max()
    assert wrong == pytest.approx(10 * np.sqrt(1e-10), rel=0.01)
    text = said(lin)
    assert (
        "with a tolerance of 1e-10, which the model was identified from, and with a tolerance of 1e-11 differ" in text
    )
    assert wrong <= 10 * lin.errors.A.max()


def test_a_tolerance_that_changes_much_is_said_loudly(tmp_path: Path, linear: Callable[..., LinearModel]) -> None:
    lin = linear(motor(tmp_path, "-DINEXACT=10", hidden=True), fmu=FmuOptions(solver_tolerance=1e-4))
    assert "with a tolerance of 0.0001, which" in said(lin, "accuracy")
    assert np.abs(eigenvalues(lin) - MOTOR).max() <= 10 * lin.errors.A.max()


def test_a_coarse_solver_does_not_overrule_derivatives(tmp_path: Path, linear: Callable[..., LinearModel]) -> None:
    lin = linear(motor(tmp_path, "-DLOOSE"), fmu=FmuOptions(solver_tolerance=None))
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-9)
    assert "solver is coarse: its responses change by" in said(lin, "solver")


def test_fifteen_inputs_and_outputs(tmp_path: Path, linear: Callable[..., LinearModel]) -> None:
    lin = linear(stepped.build("wide", tmp_path, stepped.Kind(hidden=True)))
    expected = linear(stepped.build("wide", tmp_path / "me", stepped.Kind(interface="ModelExchange")))
    np.testing.assert_allclose(eigenvalues(lin), eigenvalues(expected), atol=1e-5)


def test_clocks_of_fmi_3_tick_in_event_mode(tmp_path: Path, linear: Callable[..., LinearModel]) -> None:
    clock = '<Clock name="t" valueReference="50" causality="input" intervalVariability="fixed" intervalDecimal="0.2"/>'
    attributes = 'canHandleVariableCommunicationStepSize="true" hasEventMode="true" SAVES'
    kind = stepped.Kind(fmi="3.0", flags=("-DCLOCKED",), attributes=attributes, further=clock)
    lin = linear(stepped.build("sampled_loop", tmp_path / "3", kind), stepping=Stepping(lifted=True))
    expected = linear(stepped.build("sampled_loop", tmp_path / "2"), stepping=Stepping(lifted=True, step=0.2))
    assert lin.sample_time == pytest.approx(0.2)
    np.testing.assert_allclose(np.sort(lin.eigenvalues()), np.sort(expected.eigenvalues()), atol=1e-8)
    longer = linear(stepped.build("sampled_loop", tmp_path / "3", kind), stepping=Stepping(lifted=True, step=0.4))
    np.testing.assert_allclose(
        np.max(np.abs(longer.eigenvalues())), np.max(np.abs(expected.eigenvalues())) ** 2, atol=1e-8
    )


def early(folder: Path, *, clock: str = "output") -> Path:
    """The sampled loop, whose clock is triggered."""
    further = f'<Clock name="t" valueReference="50" causality="{clock}" intervalVariability="triggered"/>'
    attributes = 'canHandleVariableCommunicationStepSize="true" hasEventMode="true" SAVES'
    return stepped.build(
        "sampled_loop",
        folder,
        stepped.Kind(fmi="3.0", flags=("-DRETURNS_EARLY",), attributes=attributes, further=further),
    )


@pytest.mark.parametrize("step", [0.2, 0.4])
def test_an_event_of_the_fmu_s_own_ends_a_step_early(
    tmp_path: Path, linear: Callable[..., LinearModel], step: float
) -> None:
    """Each tick is one that the FMU asks for, in the middle of steps of 0.4 s, too."""
    lin = linear(early(tmp_path / "3"), stepping=Stepping(lifted=True, step=step))
    expected = linear(stepped.build("sampled_loop", tmp_path / "2"), stepping=Stepping(lifted=True, step=step))
    np.testing.assert_allclose(np.sort(lin.eigenvalues()), np.sort(expected.eigenvalues()), atol=1e-8)
    z = np.exp(0.3j)
    gains = [m.C @ np.linalg.solve(z * np.eye(len(m.A)) - m.A, m.B) + m.D for m in (lin, expected)]
    np.testing.assert_allclose(gains[0], gains[1], atol=1e-8)


def test_a_clock_that_nothing_triggers_is_told(tmp_path: Path) -> None:
    with fl.load(early(tmp_path, clock="input")) as model:
        assert isinstance(model, Stepped)
        assert "Nothing triggers 't' here: the values that it samples stay constant." in model.cadence.sampled


# ---------------------------------------------------------------------- descriptions


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_derivatives_that_belong_to_no_state_are_left_out_in_cosimulation(
    tmp_path: Path, linear: Callable[..., LinearModel], fmi: str
) -> None:
    path = motor(tmp_path, fmi=fmi)
    xml = stepped.description("motor", stepped.PLANTS["motor"], stepped.Kind(fmi=fmi))
    rates = re.findall(r' derivative="\d+"', xml)
    lin = linear(with_xml(path, tmp_path / "orphans.fmu", *((rate, "") for rate in rates)))
    assert "listed as the derivative of no state, and left out" in said(lin)
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-6)


def test_model_exchange_needs_the_states_of_its_derivatives(tmp_path: Path) -> None:
    xml = description_of("zero_nominals").replace('derivative="1"', "")
    with pytest.raises(ModelError, match="is listed as the derivative of no state"):
        fl.load(build("zero_nominals", tmp_path, xml=xml))


@pytest.mark.parametrize("name", ["no_states", "spring1", "singles3"])
def test_a_library_with_another_name_is_taken_when_it_is_the_only_one(
    tmp_path: Path, linear: Callable[..., LinearModel], name: str
) -> None:
    def rename(members: dict[str, bytes | str]) -> None:
        (library,) = [m for m in members if m.startswith("binaries/")]
        members[library.replace(name, "another")] = members.pop(library)

    path = relabelled(build(name, tmp_path), tmp_path / "renamed.fmu", rename)
    lin = linear(path)
    assert "The library 'another" in said(lin)
    assert compile_library(name).name not in said(lin)


@pytest.mark.parametrize("interface", ["ModelExchange", "CoSimulation"])
def test_drafts_of_fmi_3_are_described_but_not_called(tmp_path: Path, interface: str) -> None:
    xml = description_of("singles3").replace('"3.0"', '"3.0-beta.2"').replace("ModelExchange", interface)
    path = build("singles3", tmp_path, xml=xml)
    from fmilin.fmi.read import read_description

    assert read_description(path).fmi_version == "3.0-beta.2"
    with pytest.raises(ModelError, match=r"made for a draft of FMI 3\.0"):
        fl.load(path)


@pytest.mark.parametrize(
    ("interface", "hidden"), [("ModelExchange", False), ("CoSimulation", False), ("CoSimulation", True)]
)
def test_structural_parameters_set_the_sizes_of_arrays_first(tmp_path: Path, interface: str, hidden: bool) -> None:
    """A chain of n lags: everything that is an array of n has the size that was set, whatever the description says."""
    xml = description_of("arrays3").replace('causality="output"><Alias name="sum"/>', 'causality="output">')
    if interface == "CoSimulation":
        saves = 'canGetAndSetFMUState="true" canHandleVariableCommunicationStepSize="true"'
        xml = xml.replace(
            '<ModelExchange modelIdentifier="arrays3"', f'<CoSimulation modelIdentifier="arrays3" {saves}'
        )
        xml = xml.replace(' providesDirectionalDerivatives="true"', "")
    if hidden:  # no state is declared, but an array of variables
        xml = xml.replace('derivative="0"', "").replace('<ContinuousStateDerivative valueReference="1"/>', "")
    at = PointRequest(settings={"n": 5, "k[5]": 2.0, **{f"k[{i}]": 1.0 for i in range(1, 5)}})
    with load_request(build("arrays3", tmp_path, xml=xml), Loading(), at) as model:
        lin = fl.linearize(model)
        assert model.start.parameters["n"] == 5
    expected = np.array([-2.0, -1.0, -1.0, -1.0, -1.0])
    assert len(lin.A) == 5
    assert np.trace(lin.A) == pytest.approx(np.sum(expected), abs=1e-4)
    assert np.linalg.det(lin.A) == pytest.approx(-2.0, abs=1e-3)
    static = lin.D - lin.C @ np.linalg.solve(lin.A, lin.B)
    x = np.linalg.solve(np.diag([1.0, 1.0, 1.0, 1.0, 2.0]) - np.eye(5, k=1), np.arange(1.0, 6.0))
    np.testing.assert_allclose(static[lin.outputs.names.index("total"), 0], np.sum(x), rtol=1e-5)


# ---------------------------------------------------------------------- calls that fail


def test_states_without_references_have_names_all_the_same(linear: Callable[..., LinearModel], tmp_path: Path) -> None:
    lin = linear(build("no_references1", tmp_path))
    assert lin.states.names == ("x[1]", "x[2]")
    with fl.load(build("spring1", tmp_path)) as model:
        np.testing.assert_allclose(lin.A, fl.linearize(model).A, atol=1e-9)


def test_a_question_about_states_spoils_no_model_without_any(
    linear: Callable[..., LinearModel], tmp_path: Path
) -> None:
    lin = linear(build("spoilt", tmp_path))
    np.testing.assert_allclose(lin.D, [[2.0]], rtol=1e-9)


def test_outputs_of_openmodelica_are_read_before_the_derivatives_too(
    linear: Callable[..., LinearModel], tmp_path: Path
) -> None:
    described = description_of("stale_outputs")
    assert "generationTool" not in described
    named = described.replace("<fmiModelDescription", '<fmiModelDescription generationTool="OpenModelica Compiler"', 1)
    lin = linear(build("stale_outputs", tmp_path, xml=named))
    np.testing.assert_allclose(lin.C, [[3.0, 0.0]], atol=1e-9)


# ---------------------------------------------------------------------- no inputs, no outputs


@pytest.mark.parametrize("hidden", [False, True])
def test_without_inputs_the_free_motion_is_what_there_is(tmp_path: Path, hidden: bool) -> None:
    """The motor starts under a load: from the point it runs to another speed."""
    with fl.load(motor(tmp_path, hidden=hidden), parameters={"load": -0.1}) as model:
        view = model.with_interface(inputs=[])
        lin = fl.linearize(view)
    assert lin.B.shape == (len(lin.states), 0)
    np.testing.assert_allclose(eigenvalues(lin), MOTOR, atol=1e-4)
    if hidden:
        assert "that of its free motion" in said(lin, "no-response")


@pytest.mark.parametrize(("inputs", "outputs"), [([], None), (None, []), ([], [])])
def test_what_cannot_be_moved_or_seen_has_order_0(
    tmp_path: Path, inputs: list[str] | None, outputs: list[str] | None
) -> None:
    with fl.load(stepped.build("motor", tmp_path, stepped.Kind(hidden=True))) as model:
        view = model.with_interface(inputs, outputs)
        lin = fl.linearize(view)
    assert lin.A.shape == (0, 0)
    assert lin.D.shape == (len(view.outputs), len(view.inputs))
    assert "order 0" in said(lin, "no-response")


# ---------------------------------------------------------------------- one story


ONE_STORY = [
    stepped.Kind(interface="ModelExchange"),
    stepped.Kind(),
    stepped.Kind(hidden=True),
    stepped.Kind(fmi="3.0"),
]


@pytest.mark.parametrize("name", ["friction", "dead_zone"])
@pytest.mark.parametrize("kind", ONE_STORY, ids=["me", "cs", "hidden", "cs3"])
def test_friction_at_rest_is_refused_whatever_the_interface(tmp_path: Path, name: str, kind: stepped.Kind) -> None:
    with (
        fl.load(stepped.build(name, tmp_path, kind)) as model,
        pytest.raises(NumericalError, match=r"friction, or a dead zone|jumps with the smallest change of 'v'"),
    ):
        fl.linearize(model)


@pytest.mark.parametrize("kind", ONE_STORY, ids=["me", "cs", "hidden", "cs3"])
def test_friction_that_slides_is_linear_whatever_the_interface(tmp_path: Path, kind: stepped.Kind) -> None:
    """Pushed beyond what holds it, the mass follows further pushes: y = u / s^2."""
    with fl.load(stepped.build("friction", tmp_path, kind)) as model:
        moving = "v" if model.states else "u"
        point = fl.operating_point(model, {moving: 1.0})
        lin = fl.linearize(model, point)
    np.testing.assert_allclose(lin.C @ np.linalg.solve(2j * np.eye(2) - lin.A, lin.B), [[-0.25]], atol=1e-6)


def test_a_mass_that_is_locked_by_an_event_is_refused(linear: Callable[..., LinearModel], tmp_path: Path) -> None:
    path = build("sticks", tmp_path)
    with pytest.raises(NumericalError, match="Small changes of u have no effect"):
        linear(path)
    with_inaccurate = linear(path, keep_inaccurate=True)
    assert "NO INPUT MOVES ANY OUTPUT" in said(with_inaccurate, "no-response")


def test_friction_behind_hidden_states_can_be_had_as_it_stands(
    tmp_path: Path, linear: Callable[..., LinearModel]
) -> None:
    path = stepped.build("friction", tmp_path, stepped.Kind(hidden=True))
    lin = linear(path, keep_inaccurate=True)
    assert "Small changes of u have no effect" in said(lin, "stuck")
    assert "NO INPUT MOVES ANY OUTPUT" in said(lin, "no-response")


def test_a_table_of_gains_is_told_in_one_remark(linear: Callable[..., LinearModel]) -> None:
    folder = pytest.importorskip("gemseo_fmu.problems").__path__[0]
    lin = linear(Path(folder) / "fmu_files/linux/FMU3Model.fmu")
    # One output is a clock, no input moves the others, and five inputs of other types are left out.
    assert [w.kind for w in lin.warnings] == ["no-response", "method", "off-equilibrium", "held", "model"]
    assert "NO INPUT MOVES ANY OUTPUT" in str(lin.warnings[0])
