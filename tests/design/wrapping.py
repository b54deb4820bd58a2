"""A pendulum and a rotor with a measured angle that wraps, beside the same with the angle itself."""

from __future__ import annotations

from typing import Any

import numpy as np

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray

SAMPLE_TIME = 0.01


def pendulum(output: str, angle: float = 3.0, speed: float = 6.0) -> fl.Model:
    """A pendulum with friction, whose measured angle is an expression."""
    return OdeModel(
        "pendulum",
        {"theta": "w", "w": "-9.81*sin(theta) - 0.05*w + u"},
        inputs=["u"],
        outputs={"a": output},
        start={"theta": angle, "w": speed},
    )


WRAPPED, PLAIN = "atan2(sin(theta), cos(theta))", "theta"


def measured(samples: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Measurements of the pendulum's angle, (samples,), that go on beyond half a turn, and that wrap."""
    motion = fl.simulate(pendulum(PLAIN), stop_time=samples * SAMPLE_TIME, step=SAMPLE_TIME)
    noise = 0.05 * np.random.default_rng(seed).standard_normal(samples)
    y = motion["theta"][1:] + noise
    return y, np.angle(np.exp(1j * y))


def estimator(model: fl.Model, kind: str = "ekf", **choices: Any) -> fl.design.Estimator:
    """A filter on the pendulum."""
    options: dict[str, Any] = {
        "outputs": ["a"],
        "process_noise": {"u": 1e-2},
        "measurement_noise": {"a": 2.5e-3},
        "sample_time": SAMPLE_TIME,
        "initial_covariance": {"theta": 1e-2, "w": 1e-1},
        "kind": kind,
    }
    return fl.design.estimator(model, **(options | choices))


def linear_rotor(output: str) -> fl.LinearModel:
    """A rotor with an angle measured in degrees, of which the linear model is exact."""
    model = OdeModel(
        "rotor", {"theta": "w", "w": "-0.1*w + u"}, inputs=["u"], outputs={"a": output}, start={"theta": 3.0, "w": 6.0}
    )
    return fl.linearize(model)


def rotor_filter(output: str) -> fl.design.KalmanFilter:
    """A Kalman filter on the rotor."""
    return fl.design.kalman_filter(linear_rotor(output), SAMPLE_TIME, process={"u": 1e-2}, measured={"a": 9.0})


DEGREES, WRAPPED_DEGREES = "180/pi*theta", "180/pi*atan2(sin(theta), cos(theta))"


def measured_degrees(samples: int) -> tuple[FloatArray, FloatArray]:
    """Measurements of the rotor's angle in degrees that go on beyond half a turn, and that wrap."""
    t = SAMPLE_TIME * np.arange(samples)
    angle = 3.0 + 6.0 * (1 - np.exp(-0.1 * t)) / 0.1
    y = np.degrees(angle) + 3 * np.random.default_rng(1).standard_normal(samples)
    return y, (y + 180) % 360 - 180
