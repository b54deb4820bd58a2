"""Filters on models that step by themselves, maps and co-simulation FMUs, and filters of many members."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.design.estimation.ensembles import EnsembleFilter, ParticleFilter
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.write import build_fmu
from fmilin.model.stepping import Stepped
from fmilin.models import DiscreteModel, OdeModel
from fmilin.options import FmuOptions
from fmilin.signals import FloatArray
from tests.fmus.stepped.make import Kind, build

A = np.array([[0.9, 0.1], [-0.2, 0.8]])
B = np.array([[0.0], [1.0]])
C = np.array([[1.0, 0.0]])
Q, R = 0.04, 0.01
NOISE: dict[str, Any] = {
    "process_noise": {"u": Q},
    "measurement_noise": {"x": R},
    "initial_covariance": {"x": 0.3, "v": 0.2},
}


def linear_map() -> DiscreteModel:
    equations = {"x": "0.9*x + 0.1*v", "v": "-0.2*x + 0.8*v + u"}
    return DiscreteModel("linear", equations, sample_time=0.1, inputs=["u"], outputs={"x": "x"}, start={"x": 1.0})


def data(count: int = 25) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(12)
    u, x, y = np.sin(0.4 * np.arange(count))[:, None], np.array([0.7, -0.4]), []
    for command in u:
        x = A @ x + B @ (command + np.sqrt(Q) * random.standard_normal(1))
        y.append(C @ x + np.sqrt(R) * random.standard_normal(1))
    return u, np.array(y)


def kalman(u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the estimates and the last covariance of the Kalman filter, by its textbook recursion."""
    x, P, estimates = np.array([1.0, 0.0]), np.diag([0.3, 0.2]), []
    for command, measured in zip(u, y, strict=True):
        x, P = A @ x + B @ command, A @ P @ A.T + B @ B.T * Q
        K = P @ C.T / (C @ P @ C.T + R)
        x, P = x + K @ (measured - C @ x), P - K @ C @ P
        estimates.append(x)
    return np.array(estimates), P


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
def test_on_a_linear_map_every_kind_is_the_kalman_filter(kind: str) -> None:
    u, y = data()
    estimates, P = kalman(u, y)
    kf = fl.design.estimator(linear_map(), sample_time=0.1, kind=kind, **NOISE)
    for command, measured, expected in zip(u, y, estimates, strict=True):
        np.testing.assert_allclose(kf.step(command, measured), expected, atol=1e-10)
    np.testing.assert_allclose(kf.covariance, P, atol=1e-10)
    audit = fl.audit(kf)
    assert audit.ok
    assert len(audit.unchecked) == 1


@pytest.mark.parametrize("filter_class", [EnsembleFilter, ParticleFilter])
def test_many_members_come_near_the_kalman_filter(filter_class: type[EnsembleFilter | ParticleFilter]) -> None:
    """Their error is that of a mean of n members, P/n: 1000 members are within a few of its standard deviations."""
    u, y = data(10)
    estimates, P = kalman(u, y)
    kind = "enkf" if filter_class is EnsembleFilter else "particle"
    kf = fl.design.estimator(linear_map(), sample_time=0.1, kind=kind, **NOISE)
    assert isinstance(kf.method, filter_class)
    kf.method.members = 1000
    kf.reset()
    errors = np.array([kf.step(*sample) for sample in zip(u, y, strict=True)]) - estimates
    assert np.sqrt((errors**2 / np.diag(P)).mean()) < 0.15
    np.testing.assert_allclose(kf.covariance, P, atol=0.2 * np.abs(P).max())
    again = fl.design.estimator(linear_map(), sample_time=0.1, kind=kind, **NOISE)
    once = again.step(u[0], y[0])
    again.reset()
    np.testing.assert_array_equal(again.step(u[0], y[0]), once, "equal runs are equal")


@contextmanager
def count_messages() -> Iterator[list[bytes]]:
    """Collect what is sent to processes of FMUs."""
    messages: list[bytes] = []
    send = HostProcess._send

    def note(process: HostProcess, message: bytes) -> None:
        messages.append(message)
        send(process, message)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostProcess, "_send", note)
        yield messages


def pendulum() -> OdeModel:
    return OdeModel(
        "pendulum",
        {"angle": "w", "w": "-9.81*sin(angle) - 0.3*w + torque"},
        inputs=["torque"],
        outputs={"height": "1 - cos(angle)", "sine": "sin(angle)"},
        start={"angle": 0.8},
    )


def test_an_unscented_filter_on_a_cosimulation_fmu_is_that_of_its_equations(tmp_path: Path) -> None:
    path = build_fmu(pendulum(), tmp_path / "pendulum.fmu")
    choices: dict[str, Any] = {
        "process_noise": {"torque": 0.05},
        "measurement_noise": {"height": 1e-3, "sine": 1e-3},
        "initial_covariance": {"angle": 0.02, "w": 0.05},
        "sample_time": 0.05,
        "kind": "ukf",
    }
    native = fl.design.estimator(pendulum(), hold_noise=True, substeps=40, **choices)
    random = np.random.default_rng(4)
    with fl.load(path, interface="cs", fmu=FmuOptions(solver_tolerance=1e-11)) as fmu:
        kf = fl.design.estimator(fmu, **choices)
        for k in range(12):
            u, y = [0.5 * np.sin(k)], np.array([0.3, 0.7]) * np.cos(0.15 * k) + 0.03 * random.standard_normal(2)
            np.testing.assert_allclose(kf.step(u, y), native.step(u, y), atol=1e-6)
        np.testing.assert_allclose(kf.covariance, native.covariance, atol=1e-6)
        # 2 (2 + 1) + 1 sigma points: their steps are one message to the process of the FMU, their outputs another
        with count_messages() as messages:
            kf.step([0.1], [0.2, 0.5])
        assert len(messages) == 2
        with pytest.raises(fl.UsageError, match="its steps have no derivatives: take kind='ukf'"):
            fl.design.estimator(fmu, **choices | {"kind": "ekf"})


@pytest.mark.parametrize(("fmi", "saves", "expected"), [("2.0", True, 1), ("3.0", True, 1), ("2.0", False, None)])
def test_steps_from_many_points_are_those_of_each(tmp_path: Path, fmi: str, saves: bool, expected: int | None) -> None:
    """An FMU that restores its state takes all steps in one message; another begins each of them by itself."""
    attributes = 'canHandleVariableCommunicationStepSize="true"' + saves * " SAVES"
    with fl.load(build("motor", tmp_path, Kind(fmi=fmi, attributes=attributes)), interface="cs") as motor:
        assert isinstance(motor, Stepped)
        random = np.random.default_rng(7)
        states, inputs = random.standard_normal((9, 3)), random.standard_normal((9, 2))
        motor.respond_points(motor.start, states, inputs, 0.01)  # prepares the program
        with count_messages() as messages:
            together = motor.respond_points(motor.start, states, inputs, 0.01)
        assert expected is None or len(messages) == expected + 1  # and a return to the start before
        each = Stepped.respond_points(motor, motor.start, states, inputs, 0.01)
        for name in ("at_once", "after", "states"):
            np.testing.assert_array_equal(getattr(together, name), getattr(each, name))
        read = motor.respond_points(motor.start, states, inputs, 0.0)
        np.testing.assert_array_equal(read.at_once, each.at_once)
        assert read.states.shape == (0, 3)


def test_an_ensemble_on_a_constrained_model_stays_on_its_manifold() -> None:
    model = fl.systems.cartesian_pendulum(angle=0.3)
    kf = fl.design.estimator(
        model,
        outputs=["x"],
        process_noise={"F": 0.01},
        measurement_noise={"x": 1e-4},
        sample_time=0.02,
        kind="enkf",
        initial_covariance={"x": 1e-2, "vx": 1e-2},
    )
    for y in (0.31, 0.3, 0.29):
        x = kf.step([0.0], [y])
        assert abs(x[0] ** 2 + x[1] ** 2 - 1) < 1e-12


def test_what_such_filters_cannot_do_is_said() -> None:
    choices: dict[str, Any] = {**NOISE, "sample_time": 0.1}
    with pytest.raises(fl.UsageError, match=r"is sampled every 0\.1 s, and sample_time=0\.2 s is not that"):
        fl.design.estimator(linear_map(), **choices | {"sample_time": 0.2})
    with pytest.raises(fl.UsageError, match="no steady covariance is computed of it"):
        fl.design.estimator(linear_map(), **choices | {"initial_covariance": None})
    with pytest.raises(fl.UsageError, match="steps by itself: augment= is for models of rates"):
        fl.design.estimator(linear_map(), **choices, augment=["x.bias"])
