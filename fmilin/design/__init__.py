"""Regulators, Kalman filters and closed loops around constrained models.

Takes: linear models, weights, noise, the nonlinear model for the loop.
Returns: gains, filters, regulators that run, trajectories of closed loops.
Does not depend on: files, pictures.
"""

from fmilin.design.closed_loop import closed_loop
from fmilin.design.estimation.building import estimator
from fmilin.design.estimation.consistency import Filtered, filtered, nees, tuned_noise
from fmilin.design.estimation.estimator import Estimator
from fmilin.design.kalman import (
    KalmanFilter,
    kalman_filter,
    noise_through,
    sampled_noise,
)
from fmilin.design.loop_shaping import LoopShapingDesign, loop_shaping
from fmilin.design.lqg import LqgDesign, lqg
from fmilin.design.margins import Margins, margins
from fmilin.design.measurement import measurement
from fmilin.design.monte_carlo import MonteCarlo, monte_carlo
from fmilin.design.periodic_gains import PeriodicGain, periodic_kalman_filter, periodic_lqr
from fmilin.design.placing import IdentifiedParameters, ModeGoal, PlacedModes, identified_parameters, place_modes
from fmilin.design.regulator_verification import RegulatorVerification
from fmilin.design.regulators import (
    EstimatorRegulator,
    FunctionRegulator,
    KalmanRegulator,
    StateFeedback,
    state_feedback,
)
from fmilin.design.schedule import Schedule, schedule
from fmilin.design.tracking_regulator import TrackingRegulator
from fmilin.design.tuning import Tuned, tune

__all__ = [
    "Estimator",
    "EstimatorRegulator",
    "Filtered",
    "FunctionRegulator",
    "IdentifiedParameters",
    "KalmanFilter",
    "KalmanRegulator",
    "LoopShapingDesign",
    "LqgDesign",
    "Margins",
    "ModeGoal",
    "MonteCarlo",
    "PeriodicGain",
    "PlacedModes",
    "RegulatorVerification",
    "Schedule",
    "StateFeedback",
    "TrackingRegulator",
    "Tuned",
    "closed_loop",
    "estimator",
    "filtered",
    "identified_parameters",
    "kalman_filter",
    "loop_shaping",
    "lqg",
    "margins",
    "measurement",
    "monte_carlo",
    "nees",
    "noise_through",
    "periodic_kalman_filter",
    "periodic_lqr",
    "place_modes",
    "sampled_noise",
    "schedule",
    "state_feedback",
    "tune",
    "tuned_noise",
]
