from __future__ import annotations

import gc
import locale
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from fmilin import Constraint
from fmilin.errors import ConstraintError, ModelCrashError, ModelError, NumericalError
from fmilin.fmi.read import FmuModel, open_fmu
from fmilin.fmi.read.early_instances import Instance2
from tests.fmi.read.conftest import Zoo
from tests.fmi.read.recorded import LOADING, UNLOADING, Recorded

Opened = Callable[..., FmuModel]


@pytest.fixture
def chosen_locale() -> Iterator[str]:
    before = locale.setlocale(locale.LC_ALL)
    yield locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    locale.setlocale(locale.LC_ALL, before)


def loaded_libraries() -> str:
    maps = Path("/proc/self/maps")
    return maps.read_text() if maps.exists() else ""


def test_closing_frees_the_component_the_library_and_the_files(
    zoo: Zoo, scratch: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fmilin.fmu")
    model = open_fmu(zoo("pendulum"))
    (folder,) = scratch.iterdir()
    model.close()
    assert "pendulum.fmu: freed" in caplog.messages
    assert str(folder) not in loaded_libraries()
    assert list(scratch.iterdir()) == []
    model.close()  # twice is no harm
    assert caplog.messages.count("pendulum.fmu: freed") == 1


def test_context_manager_closes_after_an_error(zoo: Zoo, scratch: Path) -> None:
    def fail() -> None:
        with open_fmu(zoo("pendulum")):
            assert len(list(scratch.iterdir())) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(scratch.iterdir()) == []


def test_views_share_one_instance_and_a_forgotten_view_holds_nothing(zoo: Zoo, scratch: Path) -> None:
    model = open_fmu(zoo("pendulum"))
    view = model.with_interface(outputs=["ax"])
    assert len(list(scratch.iterdir())) == 1
    view.close()
    assert model.evaluate(0.0, model.start.states, model.start.inputs).derivatives.shape == (4,)
    with pytest.raises(ModelError, match="was closed"):
        view.evaluate(0.0, model.start.states, model.start.inputs)
    del model
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_the_last_view_keeps_the_instance(zoo: Zoo, scratch: Path) -> None:
    view = open_fmu(zoo("pendulum")).with_interface(outputs=["ax"])
    gc.collect()
    assert view.evaluate(0.0, view.start.states, view.start.inputs).outputs.shape == (1,)
    view.close()
    assert list(scratch.iterdir()) == []


def test_closing_the_loaded_model_closes_its_views(zoo: Zoo, scratch: Path) -> None:
    model = open_fmu(zoo("pendulum"))
    view = model.with_interface(outputs=["ax"])
    model.close()
    assert list(scratch.iterdir()) == []
    with pytest.raises(ModelError, match="was closed"):
        view.evaluate(0.0, view.start.states, view.start.inputs)


@pytest.mark.parametrize(
    "stage", ["_instantiate", "_enter_initialization", "_settle", "_check_number_of_states", "nominals"]
)
def test_a_failure_half_way_leaves_nothing_behind(
    zoo: Zoo, scratch: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Instance2, stage, fail)
        with pytest.raises(KeyboardInterrupt):
            open_fmu(zoo("discards"))
    assert list(scratch.iterdir()) == []


def test_a_wrong_constraint_leaves_nothing_behind(zoo: Zoo, scratch: Path) -> None:
    with pytest.raises(ConstraintError, match="'nothing'"):
        open_fmu(zoo("pendulum"), constraints=[Constraint.from_text("nothing")])
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_initialization_that_fails_passes_the_reason_on(
    zoo: Zoo, scratch: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fmilin.fmu")
    with pytest.raises(
        ModelError,
        match=r"fmi2ExitInitializationMode of 'refuses_initialization.fmu' returned error .* The FMU reported: "
        r'"no solution for the start values after 17 iterations, residual of x is 0.5"',
    ) as caught:
        open_fmu(zoo("refuses_initialization"))
    assert caught.value.exit_status == 3
    assert "refuses_initialization.fmu: freed" in caplog.messages
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("refuses_initialization3", r'fmi3ExitInitializationMode .* returned error .* "the tank is empty"'),
        ("refuses_instance", r'could not be instantiated. The FMU reported: "no licence for refuses_instance"'),
        ("never_settles", r"do not settle at its start: 100 event iterations"),
        ("terminates", r'requests the end of the simulation at its start. The FMU reported: "the tank is empty"'),
        ("hidden_states", r"declares 0 continuous state\(s\), its code has 2"),
        ("careless_states", r"declares 0 continuous state\(s\), its code has 2"),
        ("hidden_states3", r"declares 1 continuous state\(s\), its code has 3"),
    ],
)
def test_models_that_cannot_start(zoo: Zoo, scratch: Path, name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        open_fmu(zoo(name))
    assert list(scratch.iterdir()) == []


def test_a_discarded_point_is_an_error_and_the_model_goes_on(opened: Opened) -> None:
    """The model has no solution there: a numerical failure, status 5, not a model that cannot be read."""
    model = opened("discards")
    with pytest.raises(
        NumericalError, match=r'fmi2GetDerivatives of .* returned discard \(status 2\).*"x = 20 is out of range"'
    ):
        model.evaluate(0.0, np.array([20.0, 0.0]), np.zeros(1))
    np.testing.assert_array_equal(model.evaluate(0.0, np.array([2.0, 1.0]), np.zeros(1)).derivatives, [1, -2])


def test_an_error_ends_the_instance_and_the_next_visit_starts_a_fresh_one(opened: Opened) -> None:
    model = opened("discards")
    with pytest.raises(ModelError, match=r"fmi2GetDerivatives of .* returned error \(status 3\)"):
        model.evaluate(0.0, np.array([200.0, 0.0]), np.zeros(1))
    np.testing.assert_array_equal(model.evaluate(0.0, np.array([2.0, 1.0]), np.zeros(1)).derivatives, [1, -2])


def test_refused_nominals_are_noted_and_the_model_starts_again(opened: Opened) -> None:
    model = opened("refuses_nominals", parameters={"x": 3.0})
    assert [s.nominal for s in model.states] == [None, None]
    (note,) = model.notes
    assert "The nominal values of the states are not known. fmi2GetNominalsOfContinuousStates" in note
    np.testing.assert_array_equal(model.start.states, [3.0, 0.0])
    np.testing.assert_array_equal(model.evaluate(0.0, np.array([2.0, 1.0]), np.zeros(1)).derivatives, [1, -2])


def test_after_a_fatal_error_a_fresh_process_answers(opened: Opened, scratch: Path) -> None:
    model = opened("discards")
    with pytest.raises(ModelError, match=r"returned fatal \(status 4\).* It is started again"):
        model.evaluate(0.0, np.array([2000.0, 0.0]), np.zeros(1))
    np.testing.assert_array_equal(model.evaluate(0.0, np.array([2.0, 1.0]), np.zeros(1)).derivatives, [1, -2])
    model.close()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("name", ["crashes", "aborts", "exits"])
def test_a_model_that_has_crashed_is_started_anew_for_the_next_question(opened: Opened, name: str) -> None:
    """It crashes in GetDerivatives alone."""
    model = opened(name)
    for _ in range(2):
        with pytest.raises(ModelCrashError, match=r"in fmi2GetDerivatives|ended the whole process"):
            model.evaluate(0.0, model.start.states, np.zeros(len(model.inputs)))
        assert model.read_value("x") == model.start.states[0]


def test_a_bad_guest_leaves_the_process_as_it_was(
    zoo: Zoo, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, chosen_locale: str
) -> None:
    before = Path.cwd()
    sys.stdout.write("before\n")
    with open_fmu(zoo("bad_guest")) as model:
        assert Path.cwd() == before
        assert locale.setlocale(locale.LC_CTYPE) == chosen_locale
        model.evaluate(0.0, model.start.states, model.start.inputs)
    sys.stdout.write("after\n")
    assert capfd.readouterr().out == "before\nafter\n"
    assert "bad_guest.fmu prints: hello from the model" in caplog.text
    assert "bad_guest.fmu prints: goodbye from the model" in caplog.text


PROGRAM = """
import logging, sys, threading
import numpy as np
import fmilin as fl

handler = logging.StreamHandler(sys.stdout)
logging.getLogger("fmilin.fmu").addHandler(handler)  # what an FMU tells its importer may go to standard output
waiting = threading.Event()
if sys.argv[2:]:
    threading.Thread(target=waiting.wait).start()
print("before")
with fl.load(sys.argv[1]) as model:
    for _ in range(2):
        model.evaluate(0.0, model.start.states, np.zeros(len(model.inputs)))
print("after")
waiting.set()
"""


@pytest.mark.parametrize("threads", [(), ("two threads",)], ids=["alone", "threads"])
def test_what_a_model_prints_is_logged(zoo: Zoo, threads: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, zoo("prints"), *threads], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if " prints: " not in line] == ["before", "after"]
    assert lines.count("prints.fmu prints: by the library") == lines.count("prints.fmu prints: past it") == 2


def test_fmu_messages_never_reach_standard_output(zoo: Zoo, capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("fmilin.fmu").setLevel(logging.DEBUG)
    try:
        open_fmu(zoo("pendulum")).close()
    finally:
        logging.getLogger("fmilin.fmu").setLevel(logging.NOTSET)
    assert capfd.readouterr().out == ""


def test_messages_go_to_the_instance_that_speaks(zoo: Zoo, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fmilin.fmu")
    first, second = open_fmu(zoo("pendulum")), open_fmu(zoo("discards"))
    with pytest.raises(NumericalError, match="x = 20 is out of range"):
        second.evaluate(0.0, np.array([20.0, 0.0]), np.zeros(1))
    first.close()
    second.close()
    assert caplog.messages == ["discards.fmu: x = 20 is out of range", "pendulum.fmu: freed"]


def test_the_running_function_is_noted_for_whoever_finds_the_crash(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded(monkeypatch)
    with open_fmu(zoo("pendulum")) as model:
        assert recorded.names[:2] == [LOADING, "fmi2Instantiate"]
        assert "fmi2ExitInitializationMode" in recorded.names
        recorded.clear()
        model.evaluate(0.0, model.start.states, model.start.inputs)
        assert recorded.names == [
            "fmi2SetTime", "fmi2SetContinuousStates", "fmi2SetReal", "fmi2GetContinuousStates",
            "fmi2GetDerivatives", "fmi2GetReal",
        ]  # fmt: skip
        recorded.clear()
        model.evaluate(0.0, model.start.states + 1.0, model.start.inputs)
        assert recorded.names == [
            "fmi2SetContinuousStates", "fmi2GetContinuousStates", "fmi2GetDerivatives", "fmi2GetReal",
        ]  # fmt: skip
        model.products(0.0, model.start.states, model.start.inputs, np.eye(4, 1), np.zeros((1, 1)))
        assert "fmi2GetDirectionalDerivative" in recorded.names
    assert recorded.names[-3:] == ["fmi2Terminate", "fmi2FreeInstance", UNLOADING]


def test_residuals_are_read_without_derivatives_and_outputs(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_fmu(zoo("pendulum"), constraints=[Constraint.from_text("rod.gap")]) as model:
        x, u = model.start.states, model.start.inputs
        for step in (0.0, 0.1):  # the first two visits find out whether it can be done
            model.constraint_residuals(0.0, x + step, u)
        recorded = Recorded(monkeypatch)
        moved = x + np.array([0.3, 0.0, 0.0, 0.0])
        residuals = model.constraint_residuals(0.0, moved, u)
        assert recorded.names == ["fmi2SetContinuousStates", "fmi2GetContinuousStates", "fmi2GetReal"]
        np.testing.assert_array_equal(residuals, model.evaluate(0.0, moved, u).residuals)


def test_variables_that_are_calculated_with_the_derivatives_only_are_found_out(opened: Opened) -> None:
    """Read alone, the gap is that of the point before: residuals are then those of whole evaluations."""
    model = opened("late_variables", constraints=[Constraint.from_text("gap")])
    for x in (3.0, 4.0, 5.0):
        residuals = model.constraint_residuals(0.0, np.array([x]), np.empty(0))
        assert residuals is None or residuals == x - 1
    assert residuals is None


def test_time_and_inputs_are_set_again_whenever_something_else_may_have_moved_them(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_fmu(zoo("pendulum")) as model:
        t, x, u = 0.0, model.start.states, model.start.inputs

        def sets_all() -> bool:
            recorded.clear()
            model.evaluate(t, x, u)
            return {"fmi2SetTime", "fmi2SetReal"} <= set(recorded.names)

        recorded = Recorded(monkeypatch)
        assert sets_all()
        assert not sets_all()
        model.products(t, x, u, np.eye(4, 1), np.zeros((1, 1)))
        assert sets_all()
        model.pass_event(t, x, u)
        assert sets_all()
        model.restart()
        assert sets_all()
        model.evaluate(t + 1.0, x, u)
        assert sets_all()
        view = model.with_interface(inputs=[])
        view.evaluate(t, x, np.empty(0))
        assert not sets_all()  # the same time and inputs through another view
        model.evaluate(t, x, u + 1.0)
        view.evaluate(t, x, np.empty(0))
        assert recorded.names.count("fmi2SetReal") == 2


def test_after_a_discarded_point_everything_is_set_again(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_fmu(zoo("discards")) as model:
        good, u = np.array([2.0, 1.0]), np.zeros(1)
        model.evaluate(0.0, good, u)
        with pytest.raises(NumericalError):
            model.evaluate(0.0, np.array([20.0, 0.0]), u)
        recorded = Recorded(monkeypatch)
        model.evaluate(0.0, good, u)
        assert recorded.names[0] == "fmi2SetTime"


def test_nan_as_time_or_input_is_set_each_time(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_fmu(zoo("pendulum")) as model:
        recorded = Recorded(monkeypatch)
        for _ in range(2):
            assert np.isnan(model.evaluate(0.0, model.start.states, np.array([np.nan])).derivatives[2])
            model.evaluate(np.nan, model.start.states, model.start.inputs)
        assert recorded.names.count("fmi2SetTime") == 4
