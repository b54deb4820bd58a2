"""Filters and regulators of measured angles that wrap, as C99 files and FMUs: the numbers of Python, no warnings."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Literal

import fmpy
import numpy as np
import pytest

import fmilin as fl
from fmilin.signals import FloatArray
from tests.c_code import CCode
from tests.design.wrapping import (
    DEGREES,
    PLAIN,
    SAMPLE_TIME,
    WRAPPED,
    WRAPPED_DEGREES,
    estimator,
    measured,
    measured_degrees,
    pendulum,
    rotor_filter,
)

SAMPLES = 120
Version = Literal["2.0", "3.0"]


def run_fmu(path: Path, rows: FloatArray, version: str) -> FloatArray:
    """Return the outputs of an FMU for co-simulation in the loop of FMPy: set, step, get."""
    description: Any = fmpy.read_model_description(path)
    fmu: Any = fmpy.instantiate_fmu(fmpy.extract(path), description, "CoSimulation")
    if version == "2.0":
        fmu.setupExperiment(startTime=0.0)
        fmu.enterInitializationMode()
        set_values, get_values = fmu.setReal, fmu.getReal
    else:
        fmu.enterInitializationMode(startTime=0.0)
        set_values, get_values = fmu.setFloat64, fmu.getFloat64
    fmu.exitInitializationMode()
    inputs, outputs = (
        [v.valueReference for v in description.modelVariables if v.causality == causality]
        for causality in ("input", "output")
    )
    answers = []
    for k, row in enumerate(rows):
        set_values(inputs, row.tolist())
        fmu.doStep(k * SAMPLE_TIME, SAMPLE_TIME)
        answers.append(list(get_values(outputs)))
    fmu.terminate()
    fmu.freeInstance()
    return np.array(answers)


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
def test_an_estimator_in_c_follows_several_turns(kind: str, tmp_path: Path) -> None:
    y, wrapped = measured(SAMPLES)
    of_angle = estimator(pendulum(PLAIN), kind)
    estimator(pendulum(WRAPPED), kind).save(tmp_path / "filter.c")
    expected = [[*of_angle.step([0.0], [value]), of_angle.nis, 0.0] for value in y]
    answers = CCode(tmp_path / "filter.c").run(np.column_stack((np.zeros(SAMPLES), wrapped)))
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)
    assert "Innovations are taken modulo a turn: a (2 pi)." in (tmp_path / "filter.c").read_text()


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_an_estimator_as_an_fmu_follows_several_turns(version: Version, tmp_path: Path) -> None:
    y, wrapped = measured(SAMPLES)
    of_angle = estimator(pendulum(PLAIN))
    estimator(pendulum(WRAPPED)).save(tmp_path / "filter.fmu", fmi=version)
    expected = [of_angle.step([0.0], [value]) for value in y]
    answers = run_fmu(tmp_path / "filter.fmu", np.column_stack((np.zeros(SAMPLES), wrapped)), version)
    np.testing.assert_allclose(answers[:, :2], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("law", ["filter", "regulator"])
def test_a_linear_filter_and_its_regulator_in_c_follow_several_turns(law: str, tmp_path: Path) -> None:
    y, wrapped = measured_degrees(SAMPLES)
    gain = np.array([[1.0, 0.5]])
    for name, output in (("wrapped", WRAPPED_DEGREES), ("plain", DEGREES)):
        kf = rotor_filter(output)
        made = kf if law == "filter" else fl.design.KalmanRegulator(kf, gain)
        made.save(tmp_path / f"{name}.c")
    inputs = np.zeros((SAMPLES, 1 if law == "filter" else 0))
    answers = CCode(tmp_path / "wrapped.c").run(np.column_stack((inputs, wrapped)))
    expected = CCode(tmp_path / "plain.c").run(np.column_stack((inputs, y)))
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_a_linear_filter_as_an_fmu_follows_several_turns(version: Version, tmp_path: Path) -> None:
    y, wrapped = measured_degrees(SAMPLES)
    path = tmp_path / "filter.fmu"
    rotor_filter(WRAPPED_DEGREES).save(path, fmi=version)
    rotor_filter(DEGREES).save(tmp_path / "plain.c")
    expected = CCode(tmp_path / "plain.c").run(np.column_stack((np.zeros(SAMPLES), y)))
    answers = run_fmu(path, np.column_stack((np.zeros(SAMPLES), wrapped)), version)
    np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)
    assert fl.LinearModel.load(path).inputs.turns.tolist() == [0.0, 360.0]


@pytest.mark.parametrize("precision", ["double", "single"])
def test_compilers_have_nothing_to_say(precision: Any, tmp_path: Path) -> None:
    kf = rotor_filter(WRAPPED_DEGREES)
    kf.save(tmp_path / "linear.c", precision=precision)
    fl.design.KalmanRegulator(kf, np.array([[1.0, 0.5]])).save(tmp_path / "regulator.c", precision=precision)
    for kind in ("ekf", "ukf"):
        estimator(pendulum(WRAPPED), kind).save(tmp_path / f"{kind}.c", precision=precision)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Werror"]
    for file in sorted(tmp_path.glob("*.c")):
        subprocess.run(["gcc", *flags, "-c", file.name, "-o", "file.o"], cwd=tmp_path, check=True)


def scheduled(output: str) -> Any:
    """A schedule over the angle, from one side of half a turn to the other, that reads an angle."""
    axis = {"theta": np.linspace(2.4, 3.9, 6)}
    trim = fl.TrimRequest(fixed={"w": 0.0}, free=["u"])
    family = fl.sweep(pendulum(output, 2.4, 0.0), axis, trim=trim)

    def rule(linear: fl.LinearModel) -> FloatArray:
        return np.array([[10.0 - 3.0 * linear.y0[0], 2.0]])

    def filtered(linear: fl.LinearModel) -> fl.design.KalmanFilter:
        return fl.design.kalman_filter(linear, SAMPLE_TIME, process={"u": 1e-2}, measured={"a": 1e-3})

    return fl.design.schedule(family, rule, estimator=filtered)


def test_a_schedule_of_filters_reads_an_angle_on_both_sides_of_half_a_turn(tmp_path: Path) -> None:
    made = {output: scheduled(output) for output in (WRAPPED, PLAIN)}
    at = np.linspace(2.5, 3.8, SAMPLES)
    angles = at + 0.02 * np.sin(np.arange(SAMPLES))
    read = {WRAPPED: np.angle(np.exp(1j * angles)), PLAIN: angles}
    answers = {}
    for output, name in ((WRAPPED, "wrapped"), (PLAIN, "plain")):
        schedule = made[output]
        answers[name] = [schedule.step([theta], [y])[0] for theta, y in zip(at, read[output], strict=True)]
        schedule.save(tmp_path / f"{name}.c")
        in_c = CCode(tmp_path / f"{name}.c").run(np.column_stack((at, read[output])))
        np.testing.assert_allclose(in_c[:, 0], answers[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(answers["wrapped"], answers["plain"], rtol=1e-12, atol=1e-12)
    made[WRAPPED].save(tmp_path / "single.c", precision="single")
    in_single = CCode(tmp_path / "single.c").run(np.column_stack((at, read[WRAPPED])))
    np.testing.assert_allclose(in_single[:, 0], answers["plain"], atol=1e-3)
