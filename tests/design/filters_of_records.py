"""Filters with records of measurements, on models of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import fmilin as fl
from fmilin.models import DaeModel, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.design.test_changing_coordinates import attitude_filter, flight

SAMPLES = 24
cached_four_bar, cached_disk = cache(four_bar), cache(rolling_disk)


@dataclass(frozen=True)
class Case:
    """A filter and what it reads."""

    kf: fl.design.Estimator
    inputs: FloatArray
    measured: FloatArray


def simulated(kf: fl.design.Estimator, seed: int, size: float) -> Case:
    """Return measurements along the motion of the model from its start, with noise, inputs that change."""
    random, motion, N = np.random.default_rng(seed), kf.motion, len(kf.start.x)
    x, t = kf.start.x, kf.start.time
    u = kf.settings.inputs + 0.1 * random.standard_normal((SAMPLES, len(kf.model.inputs)))
    y = np.empty((SAMPLES, len(kf.model.outputs)))
    for k in range(SAMPLES):
        x = motion.later(t, x, u[k], kf.sample_time)
        t += kf.sample_time
        y[k] = motion.evaluator.values(t, x, u[k])[1] + size * random.standard_normal(y.shape[1])
    assert len(x) == N
    return Case(kf, u, y)


def pendulum(kind: str, seed: int) -> Case:
    """A pendulum in Cartesian coordinates that change on the way, its length estimated, sensors with ends."""
    kf = fl.design.estimator(
        cartesian_pendulum(angle=1.2),
        outputs=["x", "vy"],
        process_noise={"F": 1e-3},
        measurement_noise=np.array([[1e-4, 2e-5], [2e-5, 1e-3]]),
        sample_time=0.05,
        kind=kind,
        limits={"vy": (-1.5, 9.0)},
        initial_covariance={"y": 1e-2, "vy": 1e-2, "L": 1e-3},
        augment=["L"],
    )
    return simulated(kf, seed, 1e-2)


def linkage(kind: str, seed: int) -> Case:
    """A four-bar linkage, with its loop among the constraints."""
    model = cached_four_bar()
    kf = fl.design.estimator(
        model,
        outputs=["phi", "x0"],
        process_noise={model.inputs.names[0]: 1e-2},
        measurement_noise={"phi": 1e-4, "x0": 1e-4},
        sample_time=0.01,
        kind=kind,
        initial_covariance=dict.fromkeys(model.states.names, 1e-2),
        substeps=2,
    )
    return simulated(kf, seed, 1e-2)


def attitude(kind: str, seed: int) -> Case:
    """A unit quaternion."""
    rates, measured, _ = flight(seed, SAMPLES)
    return Case(attitude_filter(kind), rates, measured)


def disk(kind: str, seed: int) -> Case:
    """Kane's equations of a rolling disk."""
    model = cached_disk()
    kf = fl.design.estimator(
        model,
        outputs=["lean", "yaw_rate"],
        process_noise={model.inputs.names[0]: 1e-4},
        measurement_noise={"lean": 1e-4, "yaw_rate": 1e-4},
        sample_time=0.01,
        kind=kind,
        initial_covariance=dict.fromkeys(model.states.names, 1e-2),
    )
    return simulated(kf, seed, 1e-2)


def press(kind: str, seed: int) -> Case:
    """An accelerometer, which sees the noise of a sample's force at once."""
    kf = fl.design.estimator(
        cartesian_pendulum(angle=0.4),
        outputs=["x", "der(vx)"],
        process_noise={"F": 0.2},
        measurement_noise={"x": 1e-4, "der(vx)": 1e-3},
        sample_time=0.02,
        kind=kind,
        initial_covariance={"x": 1e-2, "vx": 1e-2},
        hold_noise=True,
    )
    return simulated(kf, seed, 1e-2)


def wheel(kind: str, seed: int) -> Case:
    """An angle that wraps, equations that depend on time, and a direct effect of the input on an output."""
    model = OdeModel(
        "wheel",
        {"theta": "w", "w": "-9.81*sin(theta) - 0.1*w + torque + 0.2*cos(3*time)"},
        inputs=["torque"],
        outputs={"angle": "atan2(sin(theta), cos(theta))", "drive": "w + 0.5*torque"},
        start={"theta": 3.0, "w": 4.0},
    )
    kf = fl.design.estimator(
        model,
        process_noise=np.array([[0.04]]),
        measurement_noise={"angle": 1e-4, "drive": 1e-2},
        sample_time=0.04,
        kind=kind,
        initial_covariance={"theta": 1e-2, "w": 1e-1},
        hold_noise=True,
    )
    return simulated(kf, seed, 1e-2)


def tank(kind: str, seed: int) -> Case:
    """Equations with an unknown in which they are not linear."""
    model = DaeModel(
        "tank",
        ["der(x) = -z + u", "z + 0.3*z^3 = x"],
        inputs=["u"],
        outputs={"flow": "z"},
        start={"x": 1.0, "z": 0.8},
    )
    kf = fl.design.estimator(
        model,
        process_noise={"u": 0.1},
        measurement_noise={"flow": 1e-3},
        sample_time=0.1,
        kind=kind,
        initial_covariance={"x": 0.1},
    )
    return simulated(kf, seed, 1e-2)


def redundant(kind: str, seed: int) -> Case:
    """A constraint on velocities without its rate, which needs accelerations, and adds nothing."""
    plain = cartesian_pendulum(angle=1.2)
    along = fl.Constraint.from_text("x*vx + y*vy", level="position")
    kf = fl.design.estimator(
        plain.with_constraints([plain.constraints.declared[0], along]),
        outputs=["x"],
        process_noise={"F": 1e-3},
        measurement_noise={"x": 1e-4},
        sample_time=0.05,
        kind=kind,
        initial_covariance={"y": 1e-2, "vy": 1e-2},
    )
    return simulated(kf, seed, 1e-2)


CASES: dict[str, Callable[[str, int], Case]] = {
    "pendulum": pendulum,
    "four-bar": linkage,
    "attitude": attitude,
    "Kane": disk,
    "accelerometer": press,
    "angle": wheel,
    "DAE": tank,
    "hidden rate": redundant,
}
