"""Regulators, Kalman filters and closed loops around constrained models.

Enters: linear models, weights, noise, the nonlinear model for the loop.
Leaves: gains, filters, regulators that run, trajectories of closed loops.
Does not know: files, pictures.
"""

from __future__ import annotations

from fmilin.design.closed_loop import closed_loop
from fmilin.design.kalman import KalmanFilter, kalman_filter, noise_through, sampled_noise
from fmilin.design.margins import margins
from fmilin.design.measurement import measurement
from fmilin.design.regulators import FunctionRegulator, KalmanRegulator, state_feedback

__all__ = [
    "FunctionRegulator",
    "KalmanFilter",
    "KalmanRegulator",
    "closed_loop",
    "kalman_filter",
    "margins",
    "measurement",
    "noise_through",
    "sampled_noise",
    "state_feedback",
]
