"""What python-control has no helper for: sensors of dependent states, noise, sampled Kalman filters, closed loops."""

from __future__ import annotations

from fmilin.design.closed_loop import closed_loop
from fmilin.design.kalman import KalmanFilter, kalman_filter
from fmilin.design.measurement import measurement
from fmilin.design.noise import noise_through, sampled_noise
from fmilin.design.regulators import FunctionRegulator, KalmanRegulator, state_feedback

__all__ = [
    "FunctionRegulator",
    "KalmanFilter",
    "KalmanRegulator",
    "closed_loop",
    "kalman_filter",
    "measurement",
    "noise_through",
    "sampled_noise",
    "state_feedback",
]
