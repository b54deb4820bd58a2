"""FMUs of extended Kalman filters and of schedules: in FMPy they give the numbers of Python's steps."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import fmpy
import numpy as np
import pytest
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave
from fmpy.validation import validate_fmu

import fmilin as fl
from fmilin.design import Schedule
from fmilin.errors import UsageError
from fmilin.fmi.write import build_fmu
from fmilin.signals import FloatArray
from tests.design.scheduled import SAMPLE, answers, family_over, lqr, make_schedule, steps
from tests.export.test_estimator_c import at_rest, by_python, felt, swinging

VERSIONS = ["2.0", "3.0"]


class Running:
    """An FMU in co-simulation, from ``start``."""

    def __init__(self, path: Path, start: float = 0.0) -> None:
        self.description = fmpy.read_model_description(str(path))
        self.references = {v.name: v.valueReference for v in self.description.modelVariables}
        self.folder, self.time = fmpy.extract(str(path)), start
        kind = FMU2Slave if self.description.fmiVersion == "2.0" else FMU3Slave
        self.fmu: Any = kind(
            guid=self.description.guid,
            unzipDirectory=self.folder,
            modelIdentifier=self.description.coSimulation.modelIdentifier,
        )
        self.fmu.instantiate()
        if kind is FMU2Slave:
            self.fmu.setupExperiment(startTime=start)
            self.fmu.enterInitializationMode()
        else:
            self.fmu.enterInitializationMode(startTime=start)
        self.fmu.exitInitializationMode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fmu.terminate()
        self.fmu.freeInstance()
        shutil.rmtree(self.folder)

    def give(self, values: Mapping[str, float]) -> None:
        give = getattr(self.fmu, "setReal", None) or self.fmu.setFloat64
        give([self.references[name] for name in values], list(values.values()))

    def read(self, names: Sequence[str]) -> list[float]:
        read = getattr(self.fmu, "getReal", None) or self.fmu.getFloat64
        return list(read([self.references[name] for name in names]))

    def step(self, size: float) -> None:
        self.fmu.doStep(currentCommunicationPoint=self.time, communicationStepSize=size)
        self.time += size


def outputs_of(path: Path, names: Sequence[str], rows: FloatArray, h: float, start: float = 0.0) -> FloatArray:
    """Return what an FMU says at its samples, which it reaches in two steps each; a state is saved and restored."""
    assert validate_fmu(str(path)) == []
    said = []
    with Running(path, start) as running:
        outputs = [v.name for v in running.description.modelVariables if v.causality == "output"]
        assert [v.name for v in running.description.modelVariables if v.causality == "input"] == list(names)
        get, put = (
            ("getFMUState", "setFMUState") if hasattr(running.fmu, "getFMUState") else ("getFMUstate", "setFMUstate")
        )
        for k, row in enumerate(rows):
            running.give(dict(zip(names, row, strict=True)))
            said.append(running.read(outputs))
            if k == 3:
                state, time = getattr(running.fmu, get)(), running.time
                running.step(3 * h)
                running.give(dict(zip(names, row + 0.3, strict=True)))
                running.step(h)
                assert running.read(["time"]) == pytest.approx([7 * h])
                getattr(running.fmu, put)(state)
                running.time = time
                assert running.read(outputs) == said[-1]
            running.step(0.25 * h)
            running.give(dict(zip(names, row + 1, strict=True)))
            assert running.read(outputs) == said[-1] or np.isnan(said[-1]).any()
            running.step(0.75 * h)
    return np.array(said)


def run_plain_loop(path: Path, names: Sequence[str], rows: FloatArray, h: float) -> FloatArray:
    """Set inputs, do a step, get outputs, again and again: the loop of nearly every importer."""
    read = []
    with Running(path) as running:
        outputs = [v.name for v in running.description.modelVariables if v.causality == "output"]
        for row in rows:
            running.give(dict(zip(names, row, strict=True)))
            running.step(h)
            read.append(running.read(outputs))
    return np.array(read)


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("make", [swinging, lambda: at_rest("free")])
def test_a_plain_loop_with_a_filter_equals_the_steps_of_python(make: Any, fmi: Any, tmp_path: Path) -> None:
    kf, rows = make()
    kf.save(tmp_path / "filter.fmu", fmi=fmi)
    names = (*kf.model.inputs.names, *kf.model.outputs.names)
    read = run_plain_loop(tmp_path / "filter.fmu", names, rows, kf.sample_time)
    np.testing.assert_allclose(read, by_python(kf, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
def test_a_plain_loop_with_held_noise_equals_the_steps_of_python(kind: str, fmi: Any, tmp_path: Path) -> None:
    """An accelerometer sees the noise of the sample that ends; the noise states are not among the outputs."""
    kf, rows = felt(kind)
    kf.save(tmp_path / "filter.fmu", fmi=fmi)
    names = (*kf.model.inputs.names, *kf.model.outputs.names)
    read = run_plain_loop(tmp_path / "filter.fmu", names, rows, kf.sample_time)
    expected = by_python(kf, rows)
    np.testing.assert_allclose(read, expected, rtol=1e-12, atol=1e-12)
    assert read.shape[1] == len(kf.model.states) + 2


def accelerated_cart() -> fl.design.KalmanFilter:
    """A steady filter with an accelerometer, of noise that is held over each sample."""
    cart = fl.models.OdeModel(
        "cart", {"s": "v", "v": "(F + w - 0.5*v - 2*s)/2"}, inputs=["F", "w"], outputs={"acc": "der(v)", "s": "s"}
    )
    noise = {"w": 0.5, "F": 0.1}
    return fl.design.kalman_filter(
        fl.linearize(cart), SAMPLE, process=noise, measured={"acc": 1e-3, "s": 1e-4}, hold_noise=True
    )


@pytest.mark.parametrize("fmi", VERSIONS)
def test_a_plain_loop_with_a_steady_filter_of_held_noise_equals_the_steps_of_python(fmi: Any, tmp_path: Path) -> None:
    kf = accelerated_cart()
    kf.save(tmp_path / "filter.fmu", fmi=fmi)
    rows = np.random.default_rng(4).uniform(-0.2, 0.2, (40, 4))
    x, expected = kf.sampled.y0, []
    for row in rows:
        x, _ = kf.correct(kf.predict(x, row[:2]), row[:2], row[2:])
        expected.append(x)
    read = run_plain_loop(tmp_path / "filter.fmu", ["F", "w", "acc", "s"], rows, SAMPLE)
    np.testing.assert_allclose(read, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_a_plain_loop_with_a_regulator_that_feels_its_own_force_equals_python(fmi: Any, tmp_path: Path) -> None:
    """The accelerometer sees the force of the sample that ends, which the regulator knows."""
    kf = accelerated_cart()
    law = fl.design.KalmanRegulator(kf, np.array([[3.0, 2.0]]), drives=["F"])
    law.save(tmp_path / "lqg.fmu", fmi=fmi)
    rows = np.random.default_rng(4).uniform(-0.2, 0.2, (40, 2))
    expected = []
    law.restart()
    for k, y in enumerate(rows):
        expected.append(law.answer(k * SAMPLE, y))
        law.update_states(expected[-1])
    read = run_plain_loop(tmp_path / "lqg.fmu", ["acc", "s"], rows, SAMPLE)
    np.testing.assert_allclose(read, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_a_plain_loop_with_a_schedule_equals_the_steps_of_python(fmi: Any, tmp_path: Path) -> None:
    made: Schedule = make_schedule("lqg")
    rows = steps(made, 60)
    names = [*made.over, *made.measured.names]
    for i, name in enumerate(names):
        rows[:, i] = rows[:, names.index(name)]
    first = [names.index(name) for name in made.reads]
    made.save(tmp_path / "schedule.fmu", fmi=fmi)
    read = run_plain_loop(tmp_path / "schedule.fmu", made.reads, rows[:, first], SAMPLE)
    np.testing.assert_allclose(read, answers(made, rows), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_a_plain_loop_takes_every_sample_of_a_kalman_filter_once(fmi: Any, tmp_path: Path) -> None:
    """The steady filter, written out: x = A x + B u, then x = x + L (y - C x - D u)."""
    cart = fl.models.OdeModel("cart", {"s": "v", "v": "F - 0.5*v"}, inputs=["F"])
    lin = fl.linearize(cart, outputs=["s"])
    kf = fl.design.kalman_filter(lin, SAMPLE, process={"F": 1.0}, measured={"s": 1e-4})
    law = fl.design.KalmanRegulator(kf, np.array([[3.0, 2.0]]))
    law.save(tmp_path / "lqg.fmu", fmi=fmi)
    rows = np.random.default_rng(4).uniform(-0.2, 0.2, (40, 1))
    x, u = np.zeros(2), np.zeros(1)
    expected = []
    for k, y in enumerate(rows):
        if k > 0:
            x = kf.sampled.A @ x + kf.sampled.B @ u
        x = x + kf.gain @ (y - kf.sampled.C @ x)
        u = -law.gain @ x
        expected.append(u)
    read = run_plain_loop(tmp_path / "lqg.fmu", ["s"], rows, SAMPLE)
    np.testing.assert_allclose(read, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("order", ["read before the step", "read after the step"])
def test_two_fmus_in_a_loop_equal_the_closed_loop(order: str, fmi: Any, tmp_path: Path) -> None:
    cart = fl.models.OdeModel("cart", {"s": "v", "v": "F - 0.5*v - sin(s)"}, inputs=["F"], start={"s": 0.3})
    lin = fl.linearize(cart, fl.operating_point(cart, {"s": 0.0}), outputs=["s"])
    kf = fl.design.kalman_filter(lin, SAMPLE, process={"F": 1.0}, measured={"s": 1e-4})
    law = fl.design.KalmanRegulator(kf, np.array([[3.0, 2.0]]))
    law.save(tmp_path / "lqg.fmu", fmi=fmi)
    build_fmu(cart, tmp_path / "cart.fmu", fmi_version=fmi)
    expected = fl.closed_loop(cart, law, stop_time=60 * SAMPLE, step=SAMPLE)
    s = []
    with Running(tmp_path / "cart.fmu") as plant, Running(tmp_path / "lqg.fmu") as controller:
        for _ in range(61):
            s.append(plant.read(["s"])[0])
            controller.give({"s": s[-1]})
            if order == "read after the step":
                controller.step(SAMPLE)
            plant.give({"F": controller.read(["F"])[0]})
            if order == "read before the step":
                controller.step(SAMPLE)
            plant.step(SAMPLE)
    samples = np.searchsorted(expected.times, SAMPLE * np.arange(61) - 1e-9)  # a jump of an input is a time of its own
    np.testing.assert_allclose(s, expected.states[samples, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("make", [swinging, lambda: at_rest("free")])
def test_a_filter_as_an_fmu_gives_the_numbers_of_python(make: Any, fmi: Any, tmp_path: Path) -> None:
    kf, rows = make()
    path = tmp_path / "filter of mine.fmu"
    kf.save(path, fmi=fmi)
    names = (*kf.model.inputs.names, *kf.model.outputs.names)
    said = outputs_of(path, names, rows, kf.sample_time)
    np.testing.assert_allclose(said, by_python(kf, rows), rtol=1e-12, atol=1e-12)
    described = fmpy.read_model_description(str(path)).modelVariables
    outputs = [v.name.removeprefix("output.") for v in described if v.causality == "output"]
    assert outputs == [*kf.model.states.names, "nis", "failed"]


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("kind", ["two", "velocity", "lqg"])
def test_a_schedule_as_an_fmu_gives_the_numbers_of_python(kind: str, fmi: Any, tmp_path: Path) -> None:
    made: Schedule = make_schedule(kind)
    rows = steps(made, 100)
    names = [*made.over, *made.measured.names]
    for i, name in enumerate(names):
        rows[:, i] = rows[:, names.index(name)]  # a state over which it is scheduled is one input
    first = [names.index(name) for name in made.reads]
    for limits in ({}, {"torque": (-8.0, 6.0)}):
        made.save(tmp_path / "schedule.fmu", fmi=fmi, limits=limits)
        said = outputs_of(tmp_path / "schedule.fmu", made.reads, rows[:, first], SAMPLE)
        expected = answers(made, rows, *limits.values())
        np.testing.assert_allclose(said, expected, rtol=1e-12, atol=1e-12)


def test_inputs_begin_at_the_point(tmp_path: Path) -> None:
    made = make_schedule("two")
    made.save(tmp_path / "schedule.fmu")
    starts = {v.name: v.start for v in fmpy.read_model_description(str(tmp_path / "schedule.fmu")).modelVariables}
    assert float(starts["theta"]) == pytest.approx(-2)
    assert float(starts["L"]) == 0.8
    with Running(tmp_path / "schedule.fmu", 3.0) as running:
        trim = made.linear_model(made.table.first).point.outputs["torque"]
        assert running.read(["torque"]) == pytest.approx([trim], rel=1e-12)


def test_what_is_no_fmu_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a sample time"):
        fl.design.schedule(family_over("theta"), lqr).save(tmp_path / "gains.fmu")
    with pytest.raises(UsageError, match="'precision' is an option of C code"):
        make_schedule("one").save(tmp_path / "schedule.fmu", precision="single")
    kf, _ = swinging()
    with pytest.raises(UsageError, match="'precision' is an option of C code"):
        kf.save(tmp_path / "filter.fmu", precision="single")
    with pytest.raises(fl.UsageError, match=r"built for FMI 2\.0 or 3\.0"):
        kf.save(tmp_path / "filter.fmu", fmi="1.0")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_filter_of_a_regulator_is_told_its_limits(version: str, tmp_path: Path) -> None:
    cart = fl.models.OdeModel("cart", {"s": "v", "v": "F"}, inputs=["F"])
    lin = fl.linearize(cart, outputs=["s"])
    kf = fl.design.kalman_filter(lin, SAMPLE, process={"F": 1.0}, measured={"s": 1e-4})
    law = fl.design.KalmanRegulator(kf, np.array([[8.0, 4.0]]))
    law.save(tmp_path / "lqg.fmu", limits={"F": (-0.5, 0.3)}, fmi=version)  # type: ignore[arg-type]
    rows = np.random.default_rng(3).uniform(-0.2, 0.2, (30, 1))
    expected = []
    law.restart()
    for k, row in enumerate(rows):
        expected.append(np.clip(law.answer(k * SAMPLE, row), -0.5, 0.3))
        law.update_states(expected[-1])
    said = outputs_of(tmp_path / "lqg.fmu", ["s"], rows, SAMPLE)
    assert {-0.5, 0.3} < set(said.ravel().tolist())
    np.testing.assert_allclose(said, expected, rtol=1e-12, atol=1e-14)
