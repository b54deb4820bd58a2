"""Measured angles that wrap of models that show no equations: FMUs, Python functions, mechanisms, engines."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.design.wrapping import PLAIN, SAMPLE_TIME, WRAPPED, estimator, measured, pendulum

SAMPLES = 120


def compute_expected_states() -> tuple[FloatArray, FloatArray]:
    """Return measurements that wrap, and what a filter makes of the angle itself."""
    y, wrapped = measured(SAMPLES)
    kf = estimator(pendulum(PLAIN))
    return wrapped, np.array([kf.step([0.0], [value]) for value in y])


def without_turns(source: Path, path: Path) -> Path:
    """Return an FMU that does not tell which outputs wrap, as those of other tools."""
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            if not name.endswith("turns.json"):
                after.writestr(name, before.read(name))
    return path


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_an_fmu_tells_which_outputs_wrap(version: str, tmp_path: Path) -> None:
    wrapped, expected = compute_expected_states()
    with fl.load(build_fmu(pendulum(WRAPPED), tmp_path / "pendulum.fmu", fmi_version=version)) as model:
        assert model.output_turns == (2 * np.pi,)
        assert fl.linearize(model).outputs.turns.tolist() == [2 * np.pi]
        kf = estimator(model)
        answers = [kf.step([0.0], [value]) for value in wrapped]
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("angle", [3.0, np.pi, 0.0])
def test_an_output_of_a_foreign_fmu_is_followed_until_it_wraps(angle: float, tmp_path: Path) -> None:
    wrapped, expected = compute_expected_states()
    path = without_turns(build_fmu(pendulum(WRAPPED), tmp_path / "own.fmu"), tmp_path / "foreign.fmu")
    with fl.load(path) as model:
        assert model.output_turns == (None,)
        kf = estimator(model, point=model.start.with_states(np.array([angle, 6.0])))
        assert kf.wrapped_outputs == {"a": 2 * np.pi}
        if angle == 3.0:
            answers = [kf.step([0.0], [value]) for value in wrapped]
            np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("angle", [0.3, np.pi / 2, np.pi])
def test_an_output_is_followed_along_the_manifold(angle: float, tmp_path: Path) -> None:
    path = without_turns(build_fmu(cartesian_pendulum(), tmp_path / "own.fmu"), tmp_path / "foreign.fmu")
    start = cartesian_pendulum(angle=angle).start.states
    with fl.load(path) as model:
        kf = fl.design.estimator(
            model,
            outputs=["angle", "ax"],
            process_noise={"F": 1e-2},
            measurement_noise={"angle": 2.5e-3, "ax": 1e-2},
            sample_time=SAMPLE_TIME,
            point=model.start.with_states(start),
            initial_covariance={"x": 1e-2, "vx": 1e-2} if angle != np.pi / 2 else {"y": 1e-2, "vy": 1e-2},
            hold_noise=True,
        )
        assert kf.wrapped_outputs == {"angle": 2 * np.pi}


def turning(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """Return the rates of a pendulum."""
    return np.array([x[1], -np.sin(x[0]) + u[0]])


def test_outputs_of_functions_wrap_by_their_own_turns() -> None:
    outputs: dict[str, Any] = {
        "heading": lambda t, x, u: np.degrees(x[0]) % 360.0,
        "centered": lambda t, x, u: (np.degrees(x[0]) + 180.0) % 360.0 - 180.0,
        "doubled": lambda t, x, u: 2 * np.arctan2(np.sin(x[0]), np.cos(x[0])),
        "plain": lambda t, x, u: np.degrees(x[0]),
        "switch": lambda t, x, u: 180 * np.sign(np.sin(x[0])),
        "sawtooth": lambda t, x, u: x[0] % 1.0,
        "large": lambda t, x, u: 1e6 * x[0],
    }
    model = FunctionModel("function", {"theta": 3.0, "w": 0.5}, turning, inputs=["u"], outputs=outputs)
    kf = fl.design.estimator(
        model,
        process_noise={"u": 1e-2},
        measurement_noise=dict.fromkeys(outputs, 1.0),
        sample_time=SAMPLE_TIME,
        initial_covariance={"theta": 1e-2, "w": 1e-2},
    )
    assert kf.wrapped_outputs == pytest.approx({"heading": 360.0, "centered": 360.0, "doubled": 4 * np.pi})


def test_an_encoder_of_a_joint_that_wraps_is_named_or_seen() -> None:
    """A state does not wrap, but what is measured of it may: the user names it, or the filter sees the jump."""
    y, wrapped = measured(SAMPLES)
    model = FunctionModel(
        "joint",
        fl.Signals([fl.Signal("theta", "rad", start=3.0), fl.Signal("w", "rad/s", start=6.0)]),
        lambda t, x, u: np.array([x[1], -9.81 * np.sin(x[0]) - 0.05 * x[1] + u[0]]),
        inputs=["u"],
    )
    choices: dict[str, Any] = {"outputs": ["theta"], "measurement_noise": {"theta": 2.5e-3}}
    of_angle = estimator(model, **choices)
    expected = [of_angle.step([0.0], [value]) for value in y]
    named, seen = estimator(model, wrapped_outputs=["theta"], **choices), estimator(model, **choices)
    np.testing.assert_allclose([named.step([0.0], [v]) for v in wrapped], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([seen.step([0.0], [v]) for v in wrapped], expected, rtol=1e-12, atol=1e-12)
    assert seen.wrapped_outputs == {"theta": 2 * np.pi}
    assert [r.kind for r in seen.remarks if r.kind == "wrapped"] == ["wrapped"]
    seen.reset()
    assert seen.wrapped_outputs == {}
