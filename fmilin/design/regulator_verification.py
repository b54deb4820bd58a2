"""A regulator on the nonlinear model, disturbed from its operating point, and the prediction of the linear model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.design.closed_loop import closed_loop
from fmilin.design.shaped_regulator import ShapedRegulator
from fmilin.design.tracking_regulator import TrackingRegulator
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.operating_points import assemble_branch_point
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.simulation.trajectory import Trajectory
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIME_CONSTANTS = 5.0  # of the slowest pole that a motion is followed
MAX_SAMPLES = 4000
DECAYED_FRACTION = 0.1  # of the largest deviation, at the end: a smaller one has decayed
GROWTH_FACTOR = 2.0  # times the deviation of the start at the end: a larger one grows, if
STILL_GROWING_FRACTION = 0.95  # of the largest deviation is at the end


ReferencedRegulator = TrackingRegulator | ShapedRegulator
"""A regulator of a design: it follows references, is a linear model, and can be saved."""


@dataclass(frozen=True, eq=False, repr=False)
class RegulatorVerification(TableRepr):
    """The motion of the nonlinear model under a regulator."""

    _attributes = ".stable, .decay, .tracking_errors, .motion, .plot()"

    stable: bool | None  #: whether the deviations decay; None where the motion is too short to tell
    decay: float  #: the deviation at the end over the largest one, in sizes of the coordinates
    tracking_errors: Mapping[str, float]  #: at the end, of the tracked outputs, in their units
    motion: Trajectory  #: with all inputs as they were applied
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)  #: of the inputs, absolute

    @implemented_in("fmilin.report.regulator_report:show_verification_of_regulator")
    def _print_table(self, page: Sheet) -> None: ...

    def to_document(self) -> dict[str, Any]:
        """Return everything but the motion as plain data."""
        return {
            "stable": self.stable,
            "decay": self.decay,
            "duration": float(self.motion.times[-1] - self.motion.times[0]),
            "tracking_errors": dict(self.tracking_errors),
        }

    def plot(self, *names: str) -> Figure:
        """Return the motion of the signals ``names``, as ``Trajectory.plot`` does."""
        drawn = {name: pair for name, pair in self.limits.items() if not names or name in names}
        return self.motion.plot(*names, limits=drawn)


def verify_regulator(
    regulator: ReferencedRegulator,
    linear: LinearModel,
    poles: NDArray[np.complex128],
    model: Model,
    *,
    size: float,
    stop_time: float | None,
    limits: Mapping[str, tuple[float, float]],
    references: Mapping[str, float],
) -> RegulatorVerification:
    """Return the motion from a disturbed start, and whether it comes back."""
    if not (np.isfinite(size) and size >= 0):
        raise UsageError(f"The size of the disturbance is {size:g}: it must be finite and 0 or more.")
    missing = [name for name in model.states.names if name not in linear.point.states]
    if missing:
        raise UsageError(f"The regulator was not designed for '{model.info.name}': it knows no state '{missing[0]}'.")
    point = make_point(linear, model)
    h = regulator.sample_time
    slowest = float(np.abs(poles).max(initial=0.0))
    samples = TIME_CONSTANTS / max(-np.log(max(slowest, 1e-12)), 1e-12)
    duration = h * min(max(int(np.ceil(samples)), 20), MAX_SAMPLES) if stop_time is None else stop_time
    start = disturb(linear, model, point, size) if size > 0 else point
    before = dict(regulator.references)
    regulator.follow(references)
    try:
        motion = closed_loop(model, regulator, point, stop_time=point.time + duration, start=start, limits=limits)
    finally:
        regulator.references = before
    aim = motion.states[-1] if references else point.states
    deviations = np.max(np.abs(motion.states - aim) / model.states.scales(point.states), axis=1)
    largest = float(deviations.max(initial=0.0))
    tail = deviations[int(0.9 * len(deviations)) :]
    decay = float(tail.max(initial=0.0)) / largest if largest > 0 else 0.0
    has_grown = float(tail.max(initial=0.0)) > GROWTH_FACTOR * max(float(deviations[0]), 1e-300)
    grows = not np.isfinite(decay) or (has_grown and decay > STILL_GROWING_FRACTION)
    stable = True if decay <= DECAYED_FRACTION else (False if grows else None)
    errors = {}
    for name in regulator.tracked:
        value = references.get(name, float(linear.point.outputs[name]))
        errors[name] = float(motion[name][-1]) - value
    return RegulatorVerification(stable, decay, errors, motion, dict(limits))


def disturb(linear: LinearModel, model: Model, point: OperatingPoint, size: float) -> OperatingPoint:
    """Return the point with its coordinates off by ``size`` of their sizes, back on the manifold."""
    moved = linear.y0 + size * linear.states.scales(linear.y0)
    near = point.states + linear.T[[linear.full_states.index_of(n) for n in model.states.names]] @ (moved - linear.y0)
    if not len(model.constraints):
        return OperatingPoint(point.time, near, point.inputs, point.parameters)
    fixed = {name: value for name, value in zip(linear.states.names, moved.tolist(), strict=True)
             if model.states.has(name)}  # fmt: skip
    assembled = assemble_branch_point(PointEvaluator(model), point.time, near, point.inputs, fixed)
    return OperatingPoint(point.time, assembled.states, point.inputs, point.parameters)


def make_point(linear: LinearModel, model: Model) -> OperatingPoint:
    """Return the point of a linear model as one of its nonlinear model."""
    states = np.array([linear.point.states[name] for name in model.states.names])
    inputs = np.array([linear.point.inputs.get(s.name, s.start) for s in model.inputs])
    return OperatingPoint(linear.point.time, states, inputs, dict(linear.point.parameters))
