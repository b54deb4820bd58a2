"""Schedules for tests: a pendulum x'' = -g sin(x) / L - d x' + torque / (m L^2) over its angle, length and mass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import control
import numpy as np

import fmilin as fl
from fmilin.design import KalmanFilter, Schedule, kalman_filter, schedule
from fmilin.models import OdeModel
from fmilin.signals import FloatArray

G, DAMPING, SAMPLE = 9.81, 0.1, 0.01
AXES = {"theta": np.linspace(-2, 2, 9), "L": np.array([0.8, 1.0, 1.5]), "m": np.array([0.5, 2.0])}


def pendulum() -> OdeModel:
    return OdeModel(
        "pendulum",
        {"theta": "w", "w": f"-{G}*sin(theta)/L - {DAMPING}*w + torque/(m*L**2)"},
        inputs=["torque"],
        outputs={"angle": "theta"},
        parameters={"L": 1.0, "m": 1.0},
    )


@cache
def family_over(*names: str) -> fl.LinearFamily:
    trim = fl.TrimRequest(fixed={"w": 0.0} | ({} if "theta" in names else {"theta": 0.5}), free=["torque"])
    vary = {name: AXES[name] for name in names}
    if len(names) > 1:
        vary["theta"] = AXES["theta"][:: 2 ** (len(names) - 1)]
    return fl.sweep(pendulum(), vary, trim=trim)


def lqr(linear: fl.LinearModel) -> FloatArray:
    K: FloatArray = control.lqr(linear.A, linear.B, np.diag([4.0, 1.0]), np.eye(1))[0]
    return K


def holed(linear: fl.LinearModel) -> FloatArray:
    """Refuse one point of the grid."""
    if abs(linear.point.states["theta"] - 1) < 1e-6 and linear.point.parameters.get("L", 1.0) == 1.0:
        raise ValueError("one cannot be used here")
    return lqr(linear)


def filtered(linear: fl.LinearModel) -> KalmanFilter:
    made: KalmanFilter = kalman_filter(linear, SAMPLE, process={"torque": 1e-2}, measured={"angle": 1e-4})
    return made


def every_kind() -> Mapping[str, Schedule]:
    """One of each form, over one, two and three variables, one with a hole."""
    return {kind: make_schedule(kind) for kind in ("one", "two", "three", "velocity", "lqg")}


def make_schedule(kind: str) -> Schedule:
    """Return one of :func:`every_kind`."""
    match kind:
        case "one":
            return schedule(family_over("theta"), lqr, outside="nearest", sample_time=SAMPLE)
        case "two":
            return schedule(family_over("theta", "L"), holed, ["L", "theta"], outside="nearest", sample_time=SAMPLE)
        case "three":
            return schedule(family_over("theta", "L", "m"), lqr, outside="nearest", sample_time=SAMPLE)
        case "velocity":
            return schedule(family_over("theta"), holed, form="velocity", outside="nearest", sample_time=SAMPLE)
        case "lqg":
            family = family_over("theta", "L")
            return schedule(family, holed, estimator=filtered, outside="nearest", sample_time=SAMPLE)
    raise KeyError(kind)


def steps(made: Schedule, count: int, seed: int = 1) -> FloatArray:
    """Return scheduling variables and readings of many steps, some of them outside the range."""
    rng = np.random.default_rng(seed)
    middles = [(a[0] + a[-1]) / 2 for a in made.table.axes]
    widths = [0.6 * (a[-1] - a[0]) for a in made.table.axes]
    at = np.array(middles) + np.array(widths) * rng.uniform(-1, 1, (count, len(middles)))
    return np.hstack([at, rng.standard_normal((count, len(made.measured)))])


def answers(made: Schedule, rows: FloatArray, limits: tuple[float, float] = (-np.inf, np.inf)) -> FloatArray:
    """Return what Python answers, limited."""
    made.restart()
    found = []
    for row in rows:
        found.append(np.clip(made.respond(*np.split(row, [len(made.over)])), limits[0], limits[1]))
        made.update_states(found[-1])
    return np.array(found)
