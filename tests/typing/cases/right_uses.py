"""Results have the types that users expect: both type checkers accept every line."""

from typing import assert_type

import control
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel
from fmilin.signals import Signal
from fmilin.systems import four_bar

assert_type(fl.load("plant.fmu"), fl.Model)
model = four_bar()
assert_type(fl.operating_point(model), fl.OperatingPoint)
lin = fl.linearize(model)
assert_type(lin, fl.LinearModel)
assert_type(lin.A, NDArray[np.float64])
assert_type(lin.eigenvalues(), NDArray[np.complex128])
assert_type(lin.states[0], Signal)
assert_type(lin.states.names, tuple[str, ...])
assert_type(lin.to_control(), control.StateSpace)
assert_type(lin.plot.bode(), Figure)
assert_type(lin.verify(model), fl.Verification)

family = fl.sweep(model, {"phi": np.arange(4) * 0.1})
assert_type(family, fl.LinearFamily)
assert_type(family[3], fl.LinearModel)
assert_type(family[np.argmax([1.0, 2.0])], fl.LinearModel)
assert_type(family[1:], fl.LinearFamily)
assert_type(family[:, 0], fl.LinearFamily)

assert_type(fl.trim(model), fl.TrimmedPoint)
assert_type(fl.simulate(model, stop_time=1.0), fl.Trajectory)
assert_type(fl.descriptor(model).states, tuple[str, ...])
pendulum: fl.Model = OdeModel("pendulum", {"x": "v", "v": "-x"})

gain = control.lqr(lin.A, lin.B, np.eye(2), np.eye(1))[0]
assert_type(design.state_feedback(lin, gain, sample_time=0.01), design.StateFeedback)
assert_type(design.state_feedback(lin, [[1.0, 2.0]], sample_time=0.01), design.StateFeedback)
kalman = design.kalman_filter(lin, 0.01, process={"torque": 1.0}, measured={"phi": 1e-4, "w": 1e-4})
assert_type(kalman, design.KalmanFilter)
assert_type(kalman.predict([0.0, 0.0], [0.0]), NDArray[np.float64])
errors: list[fl.FmilinError] = [fl.UsageError(""), fl.ConstraintError(""), fl.NumericalError("")]
