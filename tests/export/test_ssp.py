"""Systems as SSP files: run by FMPy, read back."""

from __future__ import annotations

import zipfile
from pathlib import Path

import control
import numpy as np
import pytest
from fmpy.ssp.simulation import simulate_ssp
from fmpy.ssp.ssd import read_ssd

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar
from tests.composition.plants import oscillator, oscillator_fmu
from tests.shared import shared

REGULATOR = control.ss([[-3.0]], [[-1.0]], [[2.0]], [[-0.7]], inputs=["y"], outputs=["F"])
WIRES = [("plant.px", "reg.y"), ("reg.F", "plant.F")]


def test_fmpy_runs_a_plant_with_its_regulator(tmp_path: Path) -> None:
    path = fl.export.ssp(
        tmp_path / "closed.ssp", {"plant": oscillator_fmu(), "reg": REGULATOR}, WIRES, outputs={"x": "plant.px"}
    )
    h = 0.01
    found = simulate_ssp(str(path), stop_time=2.0, step_size=h)
    system = fl.connect({"plant": oscillator(), "reg": REGULATOR}, WIRES)
    linear = fl.cosimulated(system, step=h).linear
    assert linear.states.names == ("plant.x", "plant.v", "reg.x[0]", "reg.F")
    z, expected = np.array([1.0, 0.0, 0.0, 0.0]), []
    z = np.array([*_plant_step(h), 0.0, 0.0])  # FMPy's connectors start at zero, not at the first outputs
    for _ in range(len(found)):
        expected.append(z[0])
        z = linear.A @ z
    np.testing.assert_allclose(found["plant.px"], expected, atol=1e-6)


def _plant_step(h: float) -> np.ndarray:
    from scipy.linalg import expm

    return np.asarray(expm(np.array([[0.0, 1.0], [-1.0, -0.1]]) * h) @ np.array([1.0, 0.0]))


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    wires = [("plant.px", "reg.y", -2.0, 0.5), ("reg.F", "plant.F")]
    path = fl.export.ssp(
        tmp_path / "f.ssp", {"plant": oscillator(), "reg": REGULATOR}, wires, outputs={"speed": "plant.pv"}
    )
    read_ssd(str(path))  # valid by FMPy's schema
    members = {"plant": oscillator(), "reg": REGULATOR}
    expected = fl.linearize(fl.connect(members, wires, outputs={"speed": "plant.pv"}))
    with fl.load(path) as model:
        linear = fl.linearize(model)
        assert linear.outputs.names == ("speed",)
    np.testing.assert_allclose(linear.A, expected.A, atol=1e-13)
    np.testing.assert_allclose(linear.C, expected.C, atol=1e-13)


def test_a_linear_model_in_place_of_a_member_and_a_sampled_regulator(tmp_path: Path) -> None:
    bar = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    small = fl.linearize(four_bar())
    sampled = control.ss([[0.5]], [[-0.1]], [[1.0]], [[-0.2]], 0.05, inputs=["y"], outputs=["u"])
    wires = [("bar.phi", "reg.y"), ("reg.u", "bar.torque")]
    runs = {}
    for kind, member in (("whole", bar), ("small", small)):
        path = fl.export.ssp(tmp_path / f"{kind}.ssp", {"bar": member, "reg": sampled}, wires, inputs=None)
        runs[kind] = simulate_ssp(str(path), stop_time=0.3, step_size=0.05)["bar.phi"]
    np.testing.assert_allclose(runs["small"], runs["whole"], atol=2e-2)
    assert np.ptp(runs["whole"]) > 1e-3


def test_units_are_declared_and_inputs_led_in(tmp_path: Path) -> None:
    bar = shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))
    path = fl.export.ssp(
        tmp_path / "b.ssp", {"bar": bar}, [], inputs={"torque": "bar.torque"}, outputs={"angle": "bar.phi"}
    )
    text = zipfile.ZipFile(path).read("SystemStructure.ssd").decode()
    assert '<ssc:Unit name="N.m">' in text
    assert 'unit="rad"' in text
    with fl.load(path) as model:
        assert (model.inputs.names, model.outputs.names, model.outputs.units) == (("torque",), ("angle",), ("rad",))


def test_wrong_requests(tmp_path: Path) -> None:
    members = {"plant": oscillator_fmu(), "reg": REGULATOR}
    with pytest.raises(fl.UsageError, match=r"must end in \.ssp"):
        fl.export.ssp(tmp_path / "a.zip", members, WIRES)
    with pytest.raises(
        fl.UnknownNameError, match=r"'plant\.pxx' -> 'reg\.y': 'pxx' is not a real variable of 'plant'\. Did you mean"
    ):
        fl.export.ssp(tmp_path / "a.ssp", members, [("plant.pxx", "reg.y")])
    with pytest.raises(fl.UsageError, match=r"'plant\.F' is fed twice"):
        fl.export.ssp(tmp_path / "a.ssp", members, [*WIRES, ("plant.pv", "plant.F")])
    with pytest.raises(fl.UsageError, match="is not an input of its FMU"):
        fl.export.ssp(tmp_path / "a.ssp", members, [("plant.px", "plant.pv")])
    with pytest.raises(fl.ModelError, match="of the member 'plant' does not exist"):
        fl.export.ssp(tmp_path / "a.ssp", {"plant": "none.fmu"}, [])
    with (
        fl.load(members["plant"]) as loaded,
        pytest.raises(fl.UsageError, match="member 'plant' is a loaded FMU"),
    ):
        fl.export.ssp(tmp_path / "a.ssp", {"plant": loaded}, [])
    assert not list(tmp_path.iterdir())
