"""Inputs that prescribe a motion: an FMU built from such a model says so, and linearizes as the model itself."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Model, Stepping
from fmilin.errors import UsageError
from fmilin.fmi.write import build_fmu
from fmilin.models import LagrangeModel, OdeModel
from tests.fmi.read.stepped import remark

MASS, LENGTH, GRAVITY = 0.5, 0.7, 9.81


def pendulum_on_a_moved_support() -> Model:
    """(px - x)^2 + py^2 = l^2 with x = s: l q'' = -g q - s'', and px = s + l q."""
    return LagrangeModel(
        "support",
        {"x": "vx", "px": "vpx", "py": "vpy"},
        [["M", 0, 0], [0, "m", 0], [0, 0, "m"]],
        ["0", "0", "-m*g"],
        constraints=["x - s", "(px - x)^2 + py^2 - l^2"],
        inputs=["s"],
        parameters={"M": 1.0, "m": MASS, "g": GRAVITY, "l": LENGTH},
        outputs={"px": "px"},
        start={"py": -LENGTH},
    )


def motor_without_inductance() -> Model:
    """J w' = K i - b w + T and U = R i + K w, from a row L i' of the mass matrix with L = 0."""
    return OdeModel(
        "motor",
        {"w": "K*i - b*w + T", "i": "U - R*i - K*w"},
        mass_matrix=[["J", 0], [0, "L"]],
        parameters={"K": 0.1, "b": 0.01, "R": 2.0, "J": 0.004, "L": 0.0},
        inputs=["U", "T"],
        outputs={"i": "i"},
        start={"U": 1.0, "i": 0.5},
    )


MODELS: dict[str, Callable[[], Model]] = {
    "support": pendulum_on_a_moved_support,
    "motor": motor_without_inductance,
}


@pytest.mark.parametrize("interface", ["me", "cs"])
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("name", MODELS)
def test_the_fmu_has_the_linear_model_of_its_source(name: str, version: str, interface: str, tmp_path: Path) -> None:
    native = MODELS[name]()
    expected = fl.linearize(native)
    path = build_fmu(native, tmp_path / f"{name}.fmu", fmi_version=version)
    with fl.load(path, interface=interface) as model:
        linear = fl.linearize(model, independent=expected.states.names, outputs=expected.outputs.names)
    assert linear.inputs.names == expected.inputs.names
    for matrix in "ABCDT":
        np.testing.assert_allclose(getattr(linear, matrix), getattr(expected, matrix), atol=1e-12, err_msg=matrix)
    assert "prescribe a motion" in remark(linear, "prescribed-motion")


def test_the_linear_models_are_those_of_the_closed_forms(tmp_path: Path) -> None:
    support = fl.linearize(fl.load(build_fmu(pendulum_on_a_moved_support(), tmp_path / "support.fmu")))
    np.testing.assert_allclose(np.abs(support.eigenvalues()), np.sqrt(GRAVITY / LENGTH), rtol=1e-12)
    motor = fl.linearize(fl.load(build_fmu(motor_without_inductance(), tmp_path / "motor.fmu")), independent=["w"])
    np.testing.assert_allclose(motor.A, [[-(0.01 + 0.1**2 / 2.0) / 0.004]], rtol=1e-12)
    np.testing.assert_allclose(motor.B, [[0.1 / 2.0 / 0.004, 1 / 0.004, 0.0]], atol=1e-12)


def test_the_constraints_inside_name_the_inputs(tmp_path: Path) -> None:
    path = build_fmu(pendulum_on_a_moved_support(), tmp_path / "support.fmu")
    with zipfile.ZipFile(path) as archive:
        content = tomllib.loads(archive.read("extra/org.fmilin/constraints.toml").decode())
    first, second = content["constraint"]
    assert first["expression"] == "residual[1] + 0*(s)"
    assert second["variable"] == "residual[2]"


def test_a_prescribed_motion_is_not_measured_by_steps_in_which_it_jumps(tmp_path: Path) -> None:
    path = build_fmu(motor_without_inductance(), tmp_path / "motor.fmu")
    with fl.load(path, interface="cs") as model:
        with pytest.raises(UsageError, match="'U' prescribe a motion, and steps in which they jump"):
            fl.linearize(model, stepping=Stepping(method="response"))
        linear = fl.linearize(model)
    assert "are predicted to" in remark(linear, "fit")  # by responses to the torque, which may jump


def test_responses_are_not_measured_where_all_inputs_prescribe_a_motion(tmp_path: Path) -> None:
    path = build_fmu(pendulum_on_a_moved_support(), tmp_path / "support.fmu")
    with fl.load(path, interface="cs") as model:
        linear = fl.linearize(model)
    assert "all inputs prescribe a motion" in remark(linear, "fit")
