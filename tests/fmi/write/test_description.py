"""modelDescription.xml: valid, complete and true."""

from __future__ import annotations

import json
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import sympy
from fmpy import read_model_description
from fmpy.model_description import read_build_description
from fmpy.validation import validate_fmu

import fmilin as fl
from fmilin import Constraint
from fmilin.errors import ConstraintError, ModelError
from fmilin.fmi.write import build_fmu
from fmilin.signals import Signal, Signals
from tests.fmi.write import samples


def read(path: Path) -> Any:
    return read_model_description(str(path), validate=True, validate_variable_names=True, validate_model_structure=True)


def xml(path: Path) -> ElementTree.Element:
    with zipfile.ZipFile(path) as archive:
        return ElementTree.fromstring(archive.read("modelDescription.xml"))


def names(unknowns: list[Any]) -> list[str]:
    return [u.variable.name for u in unknowns]


def dependencies(unknowns: list[Any]) -> dict[str, set[str]]:
    return {u.variable.name: {v.name for v in u.dependencies} for u in unknowns}


@pytest.mark.parametrize("sample", samples.ALL)
def test_fmpy_finds_nothing_wrong(tmp_path: Path, version: str, sample: samples.Sample) -> None:
    path = build_fmu(sample(), tmp_path / "model.fmu", fmi_version=version)
    assert validate_fmu(str(path)) == []
    assert read(path).fmiVersion == version


def test_the_whole_interface_is_described(tmp_path: Path, version: str) -> None:
    description = read(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version))
    assert (description.modelName, description.description) == ("pendulum", "Point mass on a rod")
    assert description.generationTool == f"fmilin {fl.__version__}"
    assert description.variableNamingConvention == "structured"
    variables = {v.name: v for v in description.modelVariables}
    assert [n for n, v in variables.items() if v.causality == "input"] == ["F"]
    assert [n for n, v in variables.items() if v.causality == "parameter"] == ["m", "g", "L"]
    assert {v.variability for v in variables.values() if v.causality == "parameter"} == {"fixed"}
    outputs = ["angle", "accelerometer.x", "x", "accelerometer.y", "der(vy)", "residual[1]", "residual_rate[1]"]
    assert names(description.outputs) == outputs
    assert [(u.variable.name, u.variable.derivative.name) for u in description.derivatives] == [
        ("der(x)", "x"), ("der(y)", "y"), ("der(vx)", "vx"), ("der(vy)", "vy")
    ]  # fmt: skip
    vx, force = variables["vx"], variables["F"]
    assert (vx.unit, vx.nominal, vx.start, vx.initial) == ("m/s", "2.0", "0.4", "exact")
    assert (variables["vy"].nominal, variables["der(vx)"].unit) == (None, "m/s2")
    assert (force.unit, force.start, force.nominal, force.description) == ("N", "0.5", "10.0", "horizontal force")
    assert (variables["rod.force"].causality, variables["x"].causality) == ("local", "output")
    assert 'rod "length"' in variables["residual[1]"].description


def test_dependencies_go_through_the_linear_system_and_no_further(tmp_path: Path, version: str) -> None:
    description = read(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version))
    everything = {"x", "y", "vx", "vy", "F"}
    assert dependencies(description.derivatives) == {
        "der(x)": {"vx"}, "der(y)": {"vy"}, "der(vx)": everything, "der(vy)": everything
    }  # fmt: skip
    assert dependencies(description.outputs) == {
        "angle": {"x", "y"},
        "accelerometer.x": everything,
        "x": {"x"},
        "accelerometer.y": everything,
        "der(vy)": everything,
        "residual[1]": {"x", "y"},
        "residual_rate[1]": {"x", "y", "vx", "vy"},
    }
    initially = dependencies(description.initialUnknowns)
    assert initially["residual[1]"] == {"x", "y", "L"}
    assert initially["der(vy)"] == everything | {"m", "g"}
    assert initially["der(x)"] == {"vx"}
    assert "x" not in initially


def test_dependence_on_time_and_on_nothing_is_said(tmp_path: Path, version: str) -> None:
    description = read(build_fmu(samples.oscillator(), tmp_path / "model.fmu", fmi_version=version))
    assert dependencies(description.derivatives)["der(v)"] == {"x", "u", "time"}
    assert dependencies(description.outputs) == {"energy": {"x", "v"}, "seven": set()}


def test_capabilities_are_spelled_as_the_standard_has_them(tmp_path: Path) -> None:
    two = xml(build_fmu(samples.decay(), tmp_path / "2.fmu")).find("ModelExchange")
    three = xml(build_fmu(samples.decay(), tmp_path / "3.fmu", fmi_version="3.0")).find("ModelExchange")
    assert two is not None
    assert three is not None
    assert two.attrib == {
        "modelIdentifier": "decay",
        "completedIntegratorStepNotNeeded": "true",
        "canNotUseMemoryManagementFunctions": "true",
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true",
    }
    assert three.attrib == {
        "modelIdentifier": "decay",
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true",
        "providesAdjointDerivatives": "true",
    }
    bare = xml(build_fmu(samples.decay(), tmp_path / "b.fmu", directional_derivatives=False)).find("ModelExchange")
    assert bare is not None
    assert bare.get("providesDirectionalDerivative") == "false"


def test_units_are_defined_in_base_units(tmp_path: Path, version: str) -> None:
    root = xml(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version))
    units = {u.get("name"): u.find("BaseUnit") for u in root.iter("Unit")}
    assert set(units) == {"m", "m/s", "m/s2", "N", "rad", "kg", "s"}
    newton = units["N"]
    assert newton is not None
    assert newton.attrib == {"kg": "1", "m": "1", "s": "-2"}


def test_an_unknown_unit_is_a_name_only(tmp_path: Path, version: str) -> None:
    system = replace(samples.decay(), state_signals=Signals([Signal("x", "furlong")]))
    root = xml(build_fmu(system, tmp_path / "model.fmu", fmi_version=version))
    assert {u.get("name"): len(u) for u in root.iter("Unit")} == {"furlong": 0, "furlong/s": 0, "s": 1}


def test_names_beyond_the_grammar_make_the_convention_flat(tmp_path: Path, version: str) -> None:
    name = 'größe <"&"> 100%'
    system = replace(samples.decay(), name="odd & <name>", state_signals=Signals([Signal(name, description="<&>")]))
    path = build_fmu(system, tmp_path / "model.fmu", fmi_version=version)
    description = read(path)
    assert description.variableNamingConvention == "flat"
    assert [v.name for v in description.modelVariables] == ["time", name, f"der({name})"]
    assert description.modelExchange.modelIdentifier == "odd_name"


def test_nominals_that_are_none_are_left_out(tmp_path: Path, version: str) -> None:
    for nominal in (0.0, -1.0, float("nan"), float("inf")):
        system = replace(samples.decay(), state_signals=Signals([Signal("x", nominal=nominal)]))
        description = read(build_fmu(system, tmp_path / "model.fmu", fmi_version=version))
        assert description.modelVariables[1].nominal is None


def test_constraints_travel_inside(tmp_path: Path, version: str) -> None:
    path = build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)
    with zipfile.ZipFile(path) as archive:
        content = tomllib.loads(archive.read("extra/org.fmilin/constraints.toml").decode())
    assert content == {
        "constraint": [
            {"variable": "residual[1]", "level": "position", "name": 'rod "length"', "rate": "residual_rate[1]"}
        ],
        "coordinates": {"independent": ["x", "vx"]},
    }


def test_a_model_without_constraints_has_no_such_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_fmu(samples.decay(), tmp_path / "model.fmu")) as archive:
        assert not [name for name in archive.namelist() if name.startswith("extra")]


def test_constraints_may_name_outputs_parameters_and_time(tmp_path: Path) -> None:
    texts = ["energy - 1", "`x` - cos(2*time)", "der(x) - 2*v", "k - 4"]
    system = replace(samples.oscillator(), constraints=tuple(map(Constraint.from_text, texts)))
    description = read(build_fmu(system, tmp_path / "model.fmu"))
    actual = dependencies(description.outputs)
    assert [actual[f"residual[{i}]"] for i in (1, 2, 3, 4)] == [{"x", "v"}, {"x", "time"}, {"v"}, set()]


def test_a_residual_gets_out_of_the_way_of_a_name(tmp_path: Path) -> None:
    system = samples.pendulum()
    system = replace(system, output_signals=Signals(["residual[1]", *system.output_signals[1:]]))
    path = build_fmu(system, tmp_path / "model.fmu")
    with zipfile.ZipFile(path) as archive:
        content = tomllib.loads(archive.read("extra/org.fmilin/constraints.toml").decode())
    assert content["constraint"][0]["variable"] == "fmilin_residual[1]"


def test_an_unknown_name_in_a_constraint_is_refused(tmp_path: Path) -> None:
    system = replace(samples.oscillator(), constraints=(Constraint.from_text("enrgy", name="typo"),))
    with pytest.raises(ConstraintError, match=r"In the constraint 'typo': 'enrgy' is not.*Did you mean 'energy'"):
        build_fmu(system, tmp_path / "model.fmu")


def test_everything_wrong_with_the_names_is_said_at_once(tmp_path: Path) -> None:
    system = samples.oscillator()
    system = replace(
        system, state_signals=Signals([Signal("x", start=float("nan")), "v\n"]), output_signals=Signals(["u", "v\n"])
    )
    with pytest.raises(ModelError) as caught:
        build_fmu(system, tmp_path / "model.fmu")
    text = str(caught.value)
    for part in ("'u' stands for several", r"'v\n' is not a name", "start value of 'x' is nan", "name of its own"):
        assert part in text
    assert not list(tmp_path.iterdir())


def test_the_build_description_is_valid(tmp_path: Path) -> None:
    path = build_fmu(samples.decay(), tmp_path / "model.fmu", fmi_version="3.0")
    (configuration,) = read_build_description(str(path), validate=True)
    assert configuration.modelIdentifier == "decay"
    assert configuration.sourceFileSets[0].sourceFiles == ["fmi3.c"]


def test_start_values_keep_their_last_digit(tmp_path: Path, version: str) -> None:
    value = 0.1 + 0.2
    system = replace(samples.decay(), state_signals=Signals([Signal("x", start=value)]))
    description = read(build_fmu(system, tmp_path / "model.fmu", fmi_version=version))
    assert json.loads(description.modelVariables[1].start) == value


def test_symbols_named_otherwise_than_their_signals(tmp_path: Path) -> None:
    x = sympy.Symbol("xi")
    system = replace(samples.decay(), states=(x,), derivatives=(-x,), outputs=(x,), output_signals=Signals(["x"]))
    description = read(build_fmu(system, tmp_path / "model.fmu"))
    assert dependencies(description.derivatives) == {"der(x)": {"x"}}
    assert names(description.outputs) == ["x"]
