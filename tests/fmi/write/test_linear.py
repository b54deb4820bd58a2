"""Linear models as FMUs: what comes back, and the file of matrices."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from numpy.testing import assert_allclose, assert_array_equal

import fmilin as fl
from fmilin.fmi.write import LinearFmu, linear_fmu
from fmilin.native.systems import four_bar
from tests.fmi.write.linear_samples import drifting, exact, outputs, outputs_at, sampled, written
from tests.fmi.write.running import Running
from tests.hand_made import sized

# ---------------------------------------------------------------------- what comes back


@pytest.mark.parametrize("deviation", [False, True])
def test_fmilin_finds_the_matrices_again_to_the_last_bit(tmp_path: Path, version: str, deviation: bool) -> None:
    linear = drifting()
    with fl.load(written(linear, tmp_path, version, deviation=deviation)) as model:
        again = fl.linearize(model, independent=linear.states.names, outputs=linear.outputs.names)
    for name in ("A", "B", "C", "D"):
        assert_array_equal(getattr(again, name), getattr(linear, name))
    assert again.states.names == linear.states.names
    assert_array_equal(again.y0, np.zeros(6) if deviation else linear.y0)
    assert_array_equal(again.f0, np.zeros(6) if deviation else linear.f0)
    assert again.point.outputs == (dict.fromkeys(linear.outputs.names, 0.0) if deviation else linear.point.outputs)


def test_dependent_states_are_there_with_their_own_slopes(tmp_path: Path, version: str) -> None:
    linear = drifting()
    with fl.load(written(linear, tmp_path, version)) as model:
        again = fl.linearize(model, independent=linear.states.names, outputs=["z[1]", "z[2]", "z[3]"])
    # They are no outputs of the FMU, so fmilin takes differences.
    assert_allclose(again.C, linear.T[6:], rtol=1e-10, atol=1e-12)
    assert_allclose(again.D, linear.T_u[6:], rtol=1e-10, atol=1e-12)
    assert again.point.outputs == {name: linear.point.states[name] for name in ("z[1]", "z[2]", "z[3]")}


def test_a_linearized_mechanism_keeps_names_units_and_motion(tmp_path: Path, version: str) -> None:
    model = four_bar()
    linear = fl.linearize(model, fl.operating_point(model), outputs=["phi", "der(w)", "x0"])
    description = fmpy.read_model_description(str(written(linear, tmp_path, version)))
    variables = {v.name: v for v in description.modelVariables}
    assert [v.name for v in description.modelVariables[:6]] == ["time", "phi", "w", "der(phi)", "der(w)", "torque"]
    assert (variables["phi"].unit, variables["phi"].causality) == ("rad", "output")
    assert float(variables["phi"].start) == linear.y0[0]
    assert variables["torque"].description == model.inputs[0].description
    assert [u.variable.name for u in description.outputs] == ["phi", "der(w)", "x0"]
    assert {name for name, v in variables.items() if v.causality == "local"} >= {"w", "der(phi)", "y0", "vx0"}
    with Running(tmp_path / "plant.fmu", co_simulation=True).start_stepping() as fmu:
        fmu.step(0.0, 2 * np.pi / 2.147676638502278)
        assert fmu.get("phi") == [pytest.approx(linear.y0[0], abs=1e-12)]


def test_fmpy_finds_nothing_wrong(tmp_path: Path, version: str) -> None:
    for linear in (drifting(), sampled(), drifting(0, 0, 2, 3), drifting(3, 0, 0, 0), drifting(0, 0, 0, 0)):
        path = written(linear, tmp_path, version)
        assert validate_fmu(str(path)) == []
        fmpy.read_model_description(
            str(path), validate=True, validate_variable_names=True, validate_model_structure=True
        )


def test_dependencies_are_the_non_zero_entries(tmp_path: Path, version: str) -> None:
    linear = drifting(2, 0, 2, 2)
    A, B = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[0.0, 0.0], [0.0, 4.0]])
    C, D = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 0.0], [5.0, 0.0]])
    linear = replace(linear, A=A, B=B, C=C, D=D)
    description = fmpy.read_model_description(str(written(linear, tmp_path, version)))

    def of(unknowns: Any) -> dict[str, set[str]]:
        return {u.variable.name: {v.name for v in u.dependencies} for u in unknowns}

    assert of(description.derivatives) == {"der(x[1])": {"x[2]"}, "der(x[2])": {"x[1]", "x[2]", "u[2]"}}
    assert of(description.outputs) == {"out[1]": set(), "out[2]": {"x[1]", "u[1]"}}
    held = replace(linear, sample_time=0.5)
    description = fmpy.read_model_description(str(written(held, tmp_path, version)))
    assert of(description.outputs) == {"out[1]": set(), "out[2]": {"u[1]"}}
    assert of(description.initialUnknowns)["out[2]"] == {"x[1]", "u[1]"}


def test_products_with_the_matrices_and_their_transposes(tmp_path: Path) -> None:
    linear = drifting()
    rng = np.random.default_rng(2)
    with Running(written(linear, tmp_path, "3.0")).start() as fmu:
        unknowns = [*(f"der(x[{i + 1}])" for i in range(6)), *linear.outputs.names, "z[2]", "x[3]"]
        knowns = [*linear.states.names, *linear.inputs.names, "time"]
        J = np.zeros((11, 9))
        J[:6] = np.hstack((linear.A, linear.B, np.zeros((6, 1))))
        J[6:9, :8] = np.hstack((linear.C, linear.D))
        J[9, :8] = np.concatenate((linear.T[7], linear.T_u[7]))
        J[10, 2] = 1.0
        direction, weights = rng.standard_normal(9), rng.standard_normal(11)
        assert_allclose(fmu.product(unknowns, knowns, list(direction)), J @ direction, rtol=1e-13, atol=1e-14)
        assert_allclose(fmu.adjoint(unknowns, knowns, list(weights)), weights @ J, rtol=1e-13, atol=1e-14)


def test_long_lists_of_everything_are_left_out(tmp_path: Path, version: str) -> None:
    path = written(drifting(300, 0, 1, 1), tmp_path, version)
    description = fmpy.read_model_description(str(path), validate_model_structure=True)
    assert all(u.dependencies is None for u in description.derivatives)


# ---------------------------------------------------------------------- the file of matrices


def test_a_damaged_or_missing_file_of_matrices_is_no_instance(tmp_path: Path, version: str) -> None:
    path = written(drifting(), tmp_path, version)
    folder = Path(fmpy.extract(str(path), unzipdir=str(tmp_path / "größe & Leer zeichen%20")))
    matrices = folder / "resources" / "linear.bin"
    content = matrices.read_bytes()
    messages = instantiated(folder, version)
    assert messages == []
    for damaged in (content[:-8], content + b"\0", b"x" + content[1:], content[:40] + b"\xff" * 8 + content[48:], b""):
        matrices.write_bytes(damaged)
        assert "'linear.bin' with the matrices is damaged" in instantiated(folder, version)[0]
    matrices.unlink()
    assert "cannot be opened (No such file or directory)" in instantiated(folder, version)[0]


@pytest.mark.parametrize("scheme", ["file://", "FILE://", "File:"])
@pytest.mark.parametrize("quoted", [True, False])
def test_the_matrices_are_found_however_the_place_is_written(tmp_path: Path, scheme: str, quoted: bool) -> None:
    """Some importers put the path behind the scheme as it is, with a "%20" that is the folder's own."""
    path = written(drifting(), tmp_path, "2.0")
    folder = Path(fmpy.extract(str(path), unzipdir=str(tmp_path / "a b%20c")))
    resources = f"{folder}/resources"
    location = f"{scheme}{quote(resources) if quoted else resources}"
    description = fmpy.read_model_description(str(folder))
    fmu = fmpy.fmi2.FMU2Slave(
        guid=description.guid, unzipDirectory=str(folder), modelIdentifier="plant", instanceName="one"
    )
    callbacks = fmpy.fmi2.fmi2CallbackFunctions()
    callbacks.logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(lambda *_: None)
    callbacks.allocateMemory = fmpy.fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.calloc)
    callbacks.freeMemory = fmpy.fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.free)
    make = fmu.fmi2Instantiate
    fmu.component = make(b"one", 1, description.guid.encode(), location.encode(), ctypes.byref(callbacks), 0, 0)
    assert fmu.component
    fmu.freeInstance()


def instantiated(folder: Path, version: str) -> list[str]:
    """Instantiate from an unpacked folder; return what is said when that fails."""
    messages: list[str] = []
    kind = fmpy.fmi2.FMU2Slave if version == "2.0" else fmpy.fmi3.FMU3Slave
    description = fmpy.read_model_description(str(folder))
    fmu = kind(guid=description.guid, unzipDirectory=str(folder), modelIdentifier="plant", instanceName="one")
    log = {"logMessage": lambda _e, _s, _c, text: messages.append(text.decode())}
    callbacks = None
    if version == "2.0":
        callbacks = fmpy.fmi2.fmi2CallbackFunctions()
        callbacks.logger = fmpy.fmi2.fmi2CallbackLoggerTYPE(lambda _e, _n, _s, _c, text: messages.append(text.decode()))
        callbacks.allocateMemory = fmpy.fmi2.fmi2CallbackAllocateMemoryTYPE(fmpy.calloc)
        callbacks.freeMemory = fmpy.fmi2.fmi2CallbackFreeMemoryTYPE(fmpy.free)
        log = {"callbacks": callbacks}
    try:
        fmu.instantiate(**log)
    except Exception:  # noqa: BLE001 - FMPy's own class for a null pointer
        fmu.freeLibrary()
        return messages
    fmu.freeInstance()
    return messages


def test_the_same_model_gives_the_same_bytes_and_another_one_another_token() -> None:
    linear = drifting()
    first = linear_fmu(linear, LinearFmu())
    assert linear_fmu(linear, LinearFmu()) == first
    other = linear_fmu(replace(linear, A=linear.A + 1e-15), LinearFmu())
    tokens = [content[content.index(b"fmilin-linear-1") :][72:110] for content in (first, other)]
    assert tokens[0].startswith(b"{")
    assert tokens[0] != tokens[1]


def test_sizes_of_zero(tmp_path: Path, version: str) -> None:
    for order, inputs, count in ((0, 2, 3), (3, 0, 2), (3, 2, 0), (0, 0, 0)):
        linear = sized(order, 0, inputs, count)
        linear = replace(linear, point=replace(linear.point, outputs=dict.fromkeys(linear.outputs.names, 1.0)))
        with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping() as fmu:
            fmu.step(0.0, 0.25)
            assert_allclose(
                outputs(fmu, count),
                outputs_at(linear, exact(linear, linear.y0, np.full(inputs, -0.5), np.zeros(inputs), 0.25),
                           np.full(inputs, -0.5)),
                rtol=1e-12,
            )  # fmt: skip
