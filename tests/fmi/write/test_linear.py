"""Linear models as FMUs: what comes back, and the file of matrices.

Which variables an FMU of a linear model has: names that are legal and taken once, values that are known.
"""

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
from fmilin import LinearModel
from fmilin.errors import UsageError
from fmilin.fmi.write import LinearFmu, linear_fmu
from fmilin.fmi.write.linear_model_fmu import LinearLayout, lay_out_linear
from fmilin.signals import Signal, Signals
from fmilin.systems import four_bar
from tests.fmi.write.linear_samples import drifting, exact, outputs, outputs_at, sampled, written
from tests.fmi.write.running import Running
from tests.hand_made import LONG, pendulum, sized

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


def names(layout: LinearLayout) -> list[str]:
    return [v.name for v in layout.variables]


def shown(layout: LinearLayout) -> list[str]:
    return [layout.variables[r].name for r in layout.outputs]


def oscillator(outputs: list[str], C: list[list[float]], D: list[list[float]], inputs: str = "u") -> LinearModel:
    """States x and v, x'' = -4 x + u."""
    base = drifting(2, 0, 1, len(outputs))
    states = Signals([Signal("x", "m"), Signal("v", "m/s")])
    return replace(
        base,
        A=np.array([[0.0, 1.0], [-4.0, 0.0]]),
        B=np.array([[0.0], [1.0]]),
        C=np.array(C),
        D=np.array(D),
        T=np.eye(2),
        f0=np.zeros(2),
        y0=np.array([0.25, 0.0]),
        states=states,
        full_states=states,
        inputs=Signals([inputs]),
        outputs=Signals(outputs),
        point=replace(
            base.point, states={"x": 0.25, "v": 0.0}, inputs={inputs: 1.0}, outputs=dict.fromkeys(outputs, 0.25)
        ),
    )


def test_an_output_that_is_a_state_or_a_derivative_is_that_variable() -> None:
    linear = oscillator(["x", "der(v)"], [[1.0, 0.0], [-4.0, 0.0]], [[0.0], [1.0]])
    layout = lay_out_linear(linear, deviation=False)
    assert names(layout) == ["time", "x", "v", "der(x)", "der(v)", "u"]
    assert shown(layout) == ["x", "der(v)"]
    assert layout.n_outputs == 0
    assert layout.equations.C.shape == (0, 2)


def test_an_output_with_such_a_name_but_another_row_is_a_variable_of_its_own() -> None:
    linear = oscillator(["x", "der(v)", "u"], [[2.0, 0.0], [-4.0, 1e-9], [0.0, 0.0]], [[0.0], [1.0], [1.0]])
    layout = lay_out_linear(linear, deviation=False)
    assert names(layout) == ["time", "x", "v", "der(x)", "fmilin_der(v)", "u", "output.x", "der(v)", "output.u"]
    assert shown(layout) == ["output.x", "der(v)", "output.u"]


def test_an_output_that_stands_elsewhere_than_its_state_is_its_own() -> None:
    linear = oscillator(["x"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, point=replace(linear.point, outputs={"x": 0.5}))
    assert shown(lay_out_linear(linear, deviation=False)) == ["output.x"]
    assert shown(lay_out_linear(linear, deviation=True)) == ["x"]


def test_an_input_may_have_the_name_of_a_derivative() -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]], inputs="der(v)")
    assert names(lay_out_linear(linear, deviation=False)) == [
        "time",
        "x",
        "v",
        "der(x)",
        "fmilin_der(v)",
        "der(v)",
        "y",
    ]


def test_a_state_may_be_called_time() -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, states=Signals(["time", "v"]))
    assert names(lay_out_linear(linear, deviation=False))[:3] == ["fmilin.time", "time", "v"]


def test_names_that_xml_cannot_have_become_legal_and_stay_different(tmp_path: Path, version: str) -> None:
    odd = ["a\nb", "a\tb", "", "\x01", "größe 🙂", LONG, 'quo"te<&>']
    linear = oscillator(odd, [[1.0, float(i)] for i in range(len(odd))], [[0.0]] * len(odd))
    path = written(linear, tmp_path, version)
    assert validate_fmu(str(path)) == []
    description = fmpy.read_model_description(str(path))
    actual = [u.variable.name for u in description.outputs]
    assert actual == ["a_b", "output.a_b", "unnamed", "_", "größe 🙂", LONG, 'quo"te<&>']
    with fl.load(path) as model:
        assert model.outputs.names == tuple(actual)


def test_a_description_keeps_what_xml_can_have(tmp_path: Path, version: str) -> None:
    linear = oscillator(["y"], [[1.0, 0.0]], [[0.0]])
    linear = replace(linear, outputs=Signals([Signal("y", description="one\x02 <two>")]))
    description = fmpy.read_model_description(str(written(linear, tmp_path, version)))
    assert next(v for v in description.modelVariables if v.name == "y").description == "one <two>"


def test_absolute_values_need_a_point_and_deviations_none() -> None:
    linear = drifting()
    bare = replace(linear, point=replace(linear.point, outputs={}))
    with pytest.raises(UsageError, match=r"the output 'out\[1\]' has no value there. Write deviations instead"):
        lay_out_linear(bare, deviation=False)
    layout = lay_out_linear(bare, deviation=True)
    for array in (layout.equations.x0, layout.equations.u0, layout.equations.g0, layout.equations.f0):
        assert not array.any()
    assert {v.start for v in layout.variables if v.start is not None} == {0.0}


@pytest.mark.parametrize("name", ["A", "D", "f0", "T_u"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(name: str, value: float) -> None:
    linear = drifting()
    array = getattr(linear, name).copy()
    array.flat[0] = value
    with pytest.raises(UsageError, match=f"The matrix {name} contains NaN or infinite entries"):
        lay_out_linear(replace(linear, **{name: array}), deviation=False)


def test_dependent_states_are_local_and_known_ones_are_not_repeated() -> None:
    layout = lay_out_linear(pendulum(), deviation=False)
    assert names(layout) == [
        "time", "pin.x", "pin.vx", "der(pin.x)", "fmilin_der(pin.vx)", "F", "der(pin.vx)", LONG, "pin.y", "pin.vy"
    ]  # fmt: skip
    y = layout.variables[-2]
    assert (y.causality, y.unit) == ("local", "m")
    assert layout.equations.g0[-2] == -1.0


def test_stability_is_said(tmp_path: Path, version: str) -> None:
    linear = drifting()
    assert "unstable" not in fmpy.read_model_description(str(written(linear, tmp_path, version))).description
    exact = replace(linear.errors, A=np.zeros_like(linear.A))  # else the errors would leave it open
    grown = replace(linear, A=-linear.A, errors=exact)
    assert fmpy.read_model_description(str(written(grown, tmp_path, version))).description.endswith("; unstable")
