"""The C runtime's manners: modes, settings, saved states, instances, messages."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sympy

from fmilin.fmi.write import build_fmu
from fmilin.signals import Signal, Signals
from tests.fmi.write import samples
from tests.fmi.write.running import FMICallException, Running

ERROR = 3


@pytest.fixture
def pendulum(tmp_path: Path, version: str) -> Path:
    return build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)


def refused(fmu: Running, call: Callable[[], Any], message: str) -> None:
    with pytest.raises(FMICallException) as caught:
        call()
    assert caught.value.status == ERROR
    assert message in fmu.messages[-1]


def test_versions_are_said(pendulum: Path, version: str) -> None:
    with Running(pendulum) as fmu:
        assert fmu.fmu.getVersion() == version
        if fmu.is_fmi2:
            assert fmu.fmu.getTypesPlatform() == "default"


def test_the_start_is_what_the_description_says(pendulum: Path) -> None:
    with Running(pendulum).start(time=1.5) as fmu:
        starts = {v.name: float(v.start) for v in fmu.description.modelVariables if v.start is not None}
        assert dict(zip(starts, fmu.get(*starts), strict=True)) == starts
        assert fmu.get("time") == [1.5]
        assert fmu.get_states() == [0.6, -0.8, 0.4, 0.3]
        assert fmu.nominals() == [1.0, 1.0, 2.0, 1.0]


def test_states_and_parameters_can_be_set_until_initialization_ends(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        fmu.set(m=5.0)
        fmu.enter_initialization()
        fmu.set(x=0.0, y=-1.0, vx=0.0, vy=0.0, g=1.0, F=10.0)
        assert fmu.get("der(vx)") == [pytest.approx(2.0)]
        fmu.fmu.exitInitializationMode()
        refused(fmu, lambda: fmu.set(m=1.0), "cannot be set now")
        fmu.set(F=5.0)
        fmu.update_discrete_states()
        fmu.fmu.enterContinuousTimeMode()
        assert fmu.get("der(vx)", "m", "x") == [pytest.approx(1.0), 5.0, 0.0]
        refused(fmu, lambda: fmu.set(g=1.0), "cannot be set now")


def test_states_can_be_set_as_variables_as_long_as_the_importer_integrates(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        fmu.set(vx=3.0)
        assert fmu.get_states()[2] == 3.0
        assert fmu.get("der(x)") == [3.0]


def test_a_call_that_is_refused_sets_nothing(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        refused(fmu, lambda: fmu.set(F=7.0, m=1.0), "cannot be set now")
        assert fmu.get("F", "m") == [0.5, 2.0]


def test_calculated_variables_and_time_are_never_set(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        for name in ("time", "der(vx)", "angle", "residual[1]", "rod.force"):
            refused(fmu, lambda name=name: fmu.set(**{name: 1.0}), "calculated variables never")  # type: ignore[misc]


def test_functions_at_the_wrong_time_are_refused_with_the_state_named(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        refused(fmu, fmu.fmu.enterContinuousTimeMode, "the instance is in the state 'instantiated'")
        refused(fmu, fmu.derivatives, "'instantiated'")
        refused(fmu, lambda: fmu.product(["der(x)"], ["x"], [1.0]), "'instantiated'")
        fmu.enter_initialization()
        refused(fmu, lambda: fmu.set_states([0.0] * 4), "'initialization mode'")
        refused(fmu, lambda: fmu.fmu.setTime(1.0), "'initialization mode'")
        fmu.fmu.exitInitializationMode()
        refused(fmu, fmu.fmu.completedIntegratorStep, "'event mode'")
        fmu.fmu.enterContinuousTimeMode()
        refused(fmu, fmu.update_discrete_states, "'continuous-time mode'")
        refused(fmu, fmu.fmu.exitInitializationMode, "'continuous-time mode'")
        fmu.fmu.terminate()
        refused(fmu, lambda: fmu.set(F=1.0), "'terminated'")
        refused(fmu, fmu.fmu.enterEventMode, "'terminated'")
        assert len(fmu.derivatives()) == 4


def test_initialization_mode_knows_derivatives_and_slopes(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        fmu.enter_initialization()
        assert fmu.derivatives()[:2] == [0.4, 0.3]
        assert fmu.product(["der(x)"], ["vx"], [2.0]) == [2.0]


def test_there_are_no_events(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        assert fmu.fmu.completedIntegratorStep() == (False, False)
        fmu.fmu.enterEventMode()
        assert fmu.update_discrete_states()[:5] == (False,) * 5
        indicators = (ctypes.c_double * 1)()
        fmu.fmu.getEventIndicators(indicators, 0)
        refused(fmu, lambda: fmu.fmu.getEventIndicators(indicators, 1), "room for 1 values was given, but there are 0")


def test_a_wrong_number_of_states_is_refused(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        refused(fmu, lambda: fmu.set_states([0.0] * 3), "room for 3 values was given, but there are 4")
        buffer = (ctypes.c_double * 5)()
        refused(fmu, lambda: fmu.fmu.getContinuousStates(buffer, 5), "room for 5 values")
        refused(fmu, lambda: fmu.fmu.getNominalsOfContinuousStates(buffer, 5), "room for 5 values")


def test_references_that_do_not_exist_are_named(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        fmu.reference |= {"nowhere": 999, "last": len(fmu.reference)}
        refused(fmu, lambda: fmu.get("nowhere"), "the value reference 999 is not a variable")
        refused(fmu, lambda: fmu.get("last"), "is not a variable of this model")
        refused(fmu, lambda: fmu.set(nowhere=1.0), "the value reference 999 is not a variable")
        refused(fmu, lambda: fmu.product(["nowhere"], ["x"], [1.0]), "is not a derivative, an output or a state")
        refused(fmu, lambda: fmu.product(["rod.force"], ["x"], [1.0]), "is not a derivative, an output or a state")
        refused(fmu, lambda: fmu.product(["angle"], ["der(x)"], [1.0]), "is not a known variable")


def test_reset_is_a_new_beginning(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        fmu.set(m=9.0)
        fmu.start(time=3.0)
        fmu.set_states([1.0, 2.0, 3.0, 4.0])
        fmu.fmu.reset()
        fmu.start()
        assert fmu.get("m", "x", "vy", "time") == [2.0, 0.6, 0.3, 0.0]


def test_instances_do_not_know_of_each_other(pendulum: Path) -> None:
    with Running(pendulum) as one, Running(pendulum) as other:
        one.set(m=4.0, F=4.0, x=0.0, y=-1.0)
        one.start()
        other.start()
        one.set_states([0.0, -1.0, 0.0, 0.0])
        assert one.get("m", "x") == [4.0, 0.0]
        assert other.get("m", "x") == [2.0, 0.6]
        assert one.get("der(vx)") == [pytest.approx(1.0)]


def test_two_instances_share_one_library_safely(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        library, first = fmu.fmu, fmu.fmu.component
        fmu._instantiate()
        second = library.component
        fmu.start()
        fmu.set_states([0.0, -1.0, 0.0, 0.0])
        library.component = first
        assert fmu.get("x") == [0.6]
        (library.fmi2FreeInstance if fmu.is_fmi2 else library.fmi3FreeInstance)(second)


def test_a_saved_state_brings_everything_back(pendulum: Path) -> None:
    with Running(pendulum) as fmu:
        fmu.set(m=3.0)
        fmu.start(time=0.5)
        fmu.set_states([0.1, 0.2, 0.3, 0.4])
        fmu.set(F=-2.0)
        everything = fmu.get(*fmu.reference)
        saved = fmu.fmu.getFMUState()
        fmu.fmu.setTime(9.0)
        fmu.set_states([1.0, 1.0, 1.0, 1.0])
        fmu.set(F=8.0)
        fmu.fmu.terminate()
        fmu.fmu.setFMUState(saved)
        assert fmu.get(*fmu.reference) == everything
        fmu.set_states([0.0, -1.0, 0.0, 0.0])  # in continuous-time mode again
        fmu.fmu.freeFMUState(saved)
        assert not saved
        fmu.fmu.freeFMUState(saved)


def test_a_saved_state_survives_as_bytes(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        fmu.set_states([0.1, 0.2, 0.3, 0.4])
        saved = fmu.fmu.getFMUState()
        content = fmu.fmu.serializeFMUState(saved)
        fmu.fmu.freeFMUState(saved)
    with Running(pendulum) as other:
        again = other.fmu.deserializeFMUState(content)
        other.fmu.setFMUState(again)
        assert other.get_states() == [0.1, 0.2, 0.3, 0.4]
        assert other.fmu.serializeFMUState(again) == content
        refused(other, lambda: other.fmu.deserializeFMUState(content[:-1]), "these bytes are no saved state")
        refused(other, lambda: other.fmu.deserializeFMUState(b"x" * len(content)), "these bytes are no saved state")
        other.fmu.freeFMUState(again)


def test_no_saved_state_is_no_saved_state(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        refused(fmu, lambda: fmu.fmu.setFMUState(None), "there is no saved state to restore")


def test_a_foreign_token_is_refused(pendulum: Path) -> None:
    with pytest.raises(Exception, match="Failed to instantiate"):
        Running(pendulum, token="{another}")


def test_other_types_have_no_variables(pendulum: Path) -> None:
    with Running(pendulum).start() as fmu:
        kinds = ["Integer", "Boolean", "String"]
        if not fmu.is_fmi2:
            kinds = ["Float32", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", *kinds[1:]]
        for kind in kinds:
            get, put = getattr(fmu.fmu, f"get{kind}"), getattr(fmu.fmu, f"set{kind}")
            assert list(get([])) == []
            refused(fmu, lambda get=get: get([1]), "variables only")  # type: ignore[misc]
            value = "text" if kind == "String" else 0
            refused(fmu, lambda put=put, value=value: put([1], [value]), "variables only")  # type: ignore[misc]


def test_what_does_not_apply_to_fmi_2_says_so(tmp_path: Path) -> None:
    with Running(build_fmu(samples.decay(), tmp_path / "model.fmu")).start() as fmu:
        fmu.fmu.setDebugLogging(True, [])
        library, component = fmu.fmu.dll, ctypes.c_void_p(fmu.fmu.component)
        zero = ctypes.c_double(0.0)
        in_steps = "this instance is for model exchange"
        pending = "no step of this FMU is ever pending"
        calls: dict[str, tuple[tuple[Any, ...], str]] = {
            "fmi2DoStep": ((zero, zero, 0), in_steps),
            "fmi2SetRealInputDerivatives": ((None, 0, None, None), in_steps),
            "fmi2GetRealOutputDerivatives": ((None, 0, None, None), in_steps),
            "fmi2CancelStep": ((), pending),
            **{f"fmi2Get{k}Status": ((0, None), pending) for k in ("", "Real", "Integer", "Boolean", "String")},
        }
        for name, (arguments, reason) in calls.items():
            assert getattr(library, name)(component, *arguments) == ERROR
            assert fmu.messages[-1] == f"{name}: {reason}."


def test_what_does_not_apply_to_fmi_3_says_so(tmp_path: Path) -> None:
    with Running(build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version="3.0")).start() as fmu:
        fmu.fmu.setDebugLogging(True, [])
        library, instance = fmu.fmu.dll, ctypes.c_void_p(fmu.fmu.component)
        zero = ctypes.c_double(0.0)
        calls: dict[str, tuple[tuple[Any, ...], str]] = {
            "fmi3EnterStepMode": ((), "no event mode in co-simulation"),
            "fmi3DoStep": ((zero, zero, False, None, None, None, None), "this instance is for model exchange"),
            "fmi3GetOutputDerivatives": ((None, 0, None, None, 0), "this instance is for model exchange"),
            "fmi3ActivateModelPartition": ((0, zero), "no clocks"),
            "fmi3EnterConfigurationMode": ((), "no structural parameters"),
            "fmi3ExitConfigurationMode": ((), "no structural parameters"),
            "fmi3GetNumberOfVariableDependencies": ((1, None), "modelDescription.xml"),
            "fmi3GetVariableDependencies": ((1, None, None, None, None, 0), "modelDescription.xml"),
            "fmi3GetIntervalDecimal": ((None, 0, None, None), "no clocks"),
            "fmi3GetIntervalFraction": ((None, 0, None, None, None), "no clocks"),
            "fmi3GetShiftDecimal": ((None, 0, None), "no clocks"),
            "fmi3GetShiftFraction": ((None, 0, None, None), "no clocks"),
            "fmi3SetIntervalDecimal": ((None, 0, None), "no clocks"),
            "fmi3SetIntervalFraction": ((None, 0, None, None), "no clocks"),
            "fmi3SetShiftDecimal": ((None, 0, None), "no clocks"),
            "fmi3SetShiftFraction": ((None, 0, None, None), "no clocks"),
            "fmi3GetBinary": ((None, 1, None, None, 1), "variables only"),
            "fmi3SetBinary": ((None, 1, None, None, 1), "variables only"),
            "fmi3GetClock": ((None, 1, None), "variables only"),
            "fmi3SetClock": ((None, 1, None), "variables only"),
        }
        for name, (arguments, reason) in calls.items():
            assert getattr(library, name)(instance, *arguments) == ERROR
            assert fmu.messages[-1].startswith(f"{name}: ")
            assert reason in fmu.messages[-1]


def test_counts_of_fmi_3(tmp_path: Path) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version="3.0")).start() as fmu:
        library, instance = fmu.fmu.dll, ctypes.c_void_p(fmu.fmu.component)
        count = ctypes.c_size_t(99)
        assert library.fmi3GetNumberOfContinuousStates(instance, ctypes.byref(count)) == 0
        assert count.value == 4
        assert library.fmi3GetNumberOfEventIndicators(instance, ctypes.byref(count)) == 0
        assert count.value == 0
        fmu.fmu.enterEventMode()
        assert library.fmi3EvaluateDiscreteStates(instance) == 0
        one, values = (ctypes.c_uint * 1)(1), (ctypes.c_double * 2)()
        assert library.fmi3GetFloat64(instance, one, ctypes.c_size_t(1), values, ctypes.c_size_t(2)) == ERROR
        assert "room for 2 values was given, but there are 1" in fmu.messages[-1]


@pytest.mark.parametrize(
    ("interface", "reason"),
    [
        ("CoSimulation", "this FMU has no event mode in co-simulation"),
        ("ScheduledExecution", "this FMU is for model exchange and co-simulation only"),
    ],
)
def test_what_fmi_3_cannot_instantiate_says_so(tmp_path: Path, interface: str, reason: str) -> None:
    with Running(build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version="3.0")) as fmu:
        messages: list[str] = []
        log = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)(
            lambda _e, _s, _c, text: messages.append(text.decode())
        )
        instantiate = getattr(fmu.fmu.dll, f"fmi3Instantiate{interface}")
        instantiate.restype, instantiate.argtypes = ctypes.c_void_p, None
        rest = (True, False, None, 0, None, log, None) if interface == "CoSimulation" else (None, log, None, None, None)
        assert instantiate(b"a", b"t", None, False, False, *rest) is None
        assert messages == [f"fmi3Instantiate{interface}: {reason}."]


def test_messages_are_formats_in_fmi_2_and_texts_in_fmi_3(tmp_path: Path, version: str) -> None:
    x, w = sympy.Symbol("x"), sympy.Symbol("100% #1")
    system = replace(
        samples.decay(), derivatives=(w,), unknowns=(w,), matrix={(0, 0): x - 1}, right_hand_side=(sympy.Integer(1),),
        states=(x,), state_signals=Signals([Signal("x", start=1.0)]),
    )  # fmt: skip
    with Running(build_fmu(system, tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        with pytest.raises(FMICallException):
            fmu.derivatives()
        assert ("'100%% ##1'" if fmu.is_fmi2 else "'100% #1'") in fmu.messages[-1]


def test_no_logger_is_no_crash(tmp_path: Path) -> None:
    with Running(build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version="3.0")) as fmu:
        create = fmu.fmu.dll.fmi3InstantiateModelExchange
        create.restype = ctypes.c_void_p
        create.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_bool] * 2 + [ctypes.c_void_p] * 2
        instance = ctypes.c_void_p(create(b"a", fmu.description.guid.encode(), None, False, False, None, None))
        assert fmu.fmu.dll.fmi3EnterStepMode(instance) == ERROR
        assert create(b"a", b"wrong", None, False, False, None, None) is None
        fmu.fmu.dll.fmi3FreeInstance(instance)
        fmu.fmu.dll.fmi3FreeInstance(None)
        assert fmu.fmu.dll.fmi3Terminate(None) == ERROR
