"""A model of Python functions inside an FMU: stepped by FMPy, linearized again, refused where it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import fmpy
import fmpy.validation
import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError, UsageError
from fmilin.wrapping import wrap_as_fmu
from tests.command_line import main

MODEL = '''
import numpy as np
from fmilin.models.function import FunctionModel
from fmilin.signals import Signal, Signals

def swing(length=1.0, damping=0.0):
    """A damped pendulum in Cartesian coordinates, pushed sideways."""
    def rates(t, s, u):
        x, y, vx, vy = s
        fx, fy = u[0] - damping * vx, -9.81 - damping * vy
        tension = (vx**2 + vy**2 + fx * x + fy * y) / (x**2 + y**2)
        return np.array([vx, vy, fx - tension * x, fy - tension * y])
    states = Signals([Signal("x", "m"), Signal("y", "m", start=-length), Signal("vx", "m/s"), Signal("vy", "m/s")])
    return FunctionModel("swing", states, rates, inputs=Signals([Signal("F", "N")]),
        outputs={"angle": lambda t, s, u: np.arctan(-s[0] / s[1])},
        constraints=["x^2 + y^2 - L^2"], parameters={"L": length}, analytic=True)
'''


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrapped")
    (folder / "my_models.py").write_text(MODEL)
    return wrap_as_fmu(f"{folder / 'my_models.py'}:swing(length=2.0, damping=0.1)", folder / "swing.fmu")


@pytest.fixture
def native(wrapped: Path) -> fl.Model:
    return fl.load(f"{wrapped.parent / 'my_models.py'}:swing(length=2.0, damping=0.1)")


def test_its_description_is_a_valid_one(wrapped: Path) -> None:
    assert not fmpy.validation.validate_fmu(str(wrapped))
    description = fmpy.read_model_description(str(wrapped))
    assert description.coSimulation is not None
    assert [d.variable.name for d in description.derivatives] == ["der(x)", "der(y)", "der(vx)", "der(vy)"]
    assert {v.name: v.unit for v in description.modelVariables}["vx"] == "m/s"


def test_steps_stay_on_the_manifold_and_are_those_of_the_model(wrapped: Path, native: fl.Model) -> None:
    start = {"x": 1.2, "y": -1.6, "F": 0.7}
    names = ["angle", "x", "y", "vx", "vy"]
    script = (
        "import fmpy, json, sys; "
        "r = fmpy.simulate_fmu(sys.argv[1], stop_time=2.0, step_size=0.1, output_interval=0.1, "
        "output=json.loads(sys.argv[2]), start_values=json.loads(sys.argv[3])); "
        "print(json.dumps({n: r[n].tolist() for n in r.dtype.names}))"
    )
    command = [sys.executable, "-c", script, str(wrapped), json.dumps(names), json.dumps(start)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = {name: np.array(values) for name, values in json.loads(done.stdout.splitlines()[-1]).items()}
    motion = fl.simulate(native, fl.operating_point(native, start), stop_time=2.0, step=0.1)
    for name in names:
        assert found[name] == pytest.approx(motion[name], abs=1e-7)
    assert np.abs(found["x"] ** 2 + found["y"] ** 2 - 4.0).max() < 1e-12


TWO = """
import sys, fmpy
from fmpy.fmi2 import FMU2Slave

def started(path):
    description = fmpy.read_model_description(path)
    name = description.coSimulation.modelIdentifier
    fmu = FMU2Slave(guid=description.guid, unzipDirectory=fmpy.extract(path), modelIdentifier=name, instanceName="i")
    fmu.instantiate(), fmu.setupExperiment(), fmu.enterInitializationMode(), fmu.exitInitializationMode()
    return fmu, {v.name: v.valueReference for v in description.modelVariables}

def stepped(fmu, references):
    fmu.setReal([references["F"]], [1.0]), fmu.doStep(0.0, 0.1)
    return fmu.getReal([references["angle"]])[0]

def ended(fmu):
    fmu.terminate(), fmu.freeInstance()

one, other = started(sys.argv[1]), started(sys.argv[2])
found = [stepped(*one), stepped(*other)]
ended(one[0])
found.append(other[0].getReal([other[1]["angle"]])[0])
ended(other[0])
for k in range(6):
    again = started(sys.argv[1 + k % 2])
    found.append(stepped(*again))
    ended(again[0])
print(found)
"""


@pytest.mark.parametrize("same", [True, False])
def test_several_in_one_process_alive_together_and_in_a_row(wrapped: Path, tmp_path: Path, same: bool) -> None:
    other = wrapped
    if not same:
        (tmp_path / "others.py").write_text(MODEL)
        other = wrap_as_fmu(f"{tmp_path / 'others.py'}:swing(length=1.0)", tmp_path / "second.fmu", name="second")
    done = subprocess.run([sys.executable, "-c", TWO, wrapped, other], check=True, capture_output=True, text=True)
    one, second, *rest = json.loads(done.stdout.splitlines()[-1])
    assert (one == second) == same
    assert rest == [second, *[one, second] * 3]


def test_the_linear_model_of_the_fmu_is_that_of_the_model(
    wrapped: Path, native: fl.Model, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["linearize", str(wrapped), "--json"]) == 0
    lin = json.loads(capfd.readouterr().out)
    expected = fl.linearize(native)
    assert lin["states"] == ["x", "vx"]
    for name in "ABCD":
        assert np.array(lin[name]) == pytest.approx(getattr(expected, name), abs=1e-8)


def test_build_wraps_what_cannot_be_compiled(
    wrapped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(wrapped.parent)
    assert main(["build", "my_models.py:swing", "-o", str(tmp_path / "s.fmu")]) == 0
    assert "it runs Python" in capfd.readouterr().err
    assert main(["build", "my_models.py:swing", "-o", str(tmp_path / "t.fmu"), "--fmi", "3.0"]) == 2
    assert "--fmi 3.0 and --platforms are not available" in capfd.readouterr().err
    assert not (tmp_path / "t.fmu").exists()


def test_without_pythonfmu_there_is_one_sentence(wrapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.wrapping.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r'pip install "fmilin\[wrap\]"'):
        wrap_as_fmu(f"{wrapped.parent / 'my_models.py'}:swing", wrapped.with_name("other.fmu"))


@pytest.mark.parametrize(
    ("source", "message"),
    [("gone.py:swing", r"There is no file 'gone\.py'"), ("{folder}/my_models.py:swung", r"'swung'.*swing")],
)
def test_a_source_that_cannot_be_loaded_leaves_no_file(
    wrapped: Path, tmp_path: Path, source: str, message: str
) -> None:
    with pytest.raises(FmilinError, match=message):
        wrap_as_fmu(source.replace("{folder}", str(wrapped.parent)), tmp_path / "none.fmu")
    assert not list(tmp_path.iterdir())
