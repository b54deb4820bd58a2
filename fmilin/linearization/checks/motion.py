"""Checks of how the point moves: equilibrium, steady motion, or a motion along which A changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark, off_equilibrium, rate_of_change
from fmilin.linearization.checks.check import ResultCheck
from fmilin.linearization.linearization_context import (
    AssembledPoint,
    LinearizedBatch,
    LinearizedPoint,
    Mask,
    SparseLinearizedPoint,
    SparseStatesPoint,
)
from fmilin.manifold.checks.batch_remarks import PointRemarks
from fmilin.manifold.checks.context import ExaminedPoint
from fmilin.manifold.frame import Frame
from fmilin.manifold.point_motion import MotionBatch
from fmilin.manifold.selection import NOT_TURNING
from fmilin.manifold.uniform import Change
from fmilin.model.interface import Evaluation, Model
from fmilin.numerics.balanced import is_equilibrium
from fmilin.tolerances import CONSTANT_JACOBIAN_TOLERANCE, EQUILIBRIUM_RATE_TOLERANCE

TURNING = (
    "they belong to rotating coordinates, and do not determine stability. Choose coordinates in which A stays the "
    "same: the direction of the axis, an angle about it and rates in a frame that does not turn with the body "
    "(independent= accepts expressions)."
)
INSTEAD_OF_TURNING = (
    "A would change in axes of a rotating body. The coordinates are therefore the direction of its axis of rotation, "
    "angles about it, and velocities in a frame that does not rotate. Choose others with independent=."
)
WITH_TIME = Remark("periodic", "The model depends on time.")
Along = tuple[tuple[str, ...], tuple[str, ...], float]  # coordinates, idle ones among them, and how much later in s
OFF = "The point is not an equilibrium"  # begins the diagnostic on any other point that moves
FREE = "f0 keeps the motion."  # what it means for a model without constraints: there is no choice of coordinates


class PointRests(ResultCheck):
    """Eigenvalues tell about stability at an equilibrium, or along a motion along which A stays the same."""

    verifies = "The point is an equilibrium, or A stays the same along its motion."
    needs = "Some evaluations along the motion, unless at an equilibrium."
    runs = "at every point"
    kinds = ("off-equilibrium", "steady", "periodic")

    def has_meaning(self, at: ExaminedPoint) -> bool:
        """Whether rates and their derivatives were computed."""
        return isinstance(at, (LinearizedPoint, SparseLinearizedPoint, SparseStatesPoint))

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        if isinstance(at, SparseLinearizedPoint):
            return describe_fastest(at)
        if not isinstance(at, (LinearizedPoint, SparseStatesPoint)):
            return ()
        frame = at.nearby.frame
        if at.motion.fastest[0] < 0:
            return report_motion(at.model, at.base, frame, at.motion, WITH_TIME)
        remarks = _remarks_on_motion(at.model, at.base, frame, at.motion)
        if not at.motion.change.part[0] <= CONSTANT_JACOBIAN_TOLERANCE:  # or NaN: A was not compared
            return remarks
        return [name_requested_motion(remark, at.point.moving) for remark in remarks]

    def find_doubt(self, at: LinearizedBatch) -> Mask:
        return at.motion.open

    def describe_batch(self, at: LinearizedBatch, is_doubtful: Mask) -> PointRemarks:
        return MotionRemarks(at, is_doubtful)


class MotionRemarks(PointRemarks):
    """How the points of a batch move, as numbers; it holds nothing as large as the linear models."""

    def __init__(self, at: LinearizedBatch, is_doubtful: Mask) -> None:
        reference, motion = at.reference, at.motion
        self.is_present = (motion.fastest >= 0) & ~is_doubtful
        self._motion = motion
        self._state_names = reference.model.states.names
        self._coordinate_names = reference.kept_names
        points, fastest = np.arange(len(at)), np.maximum(motion.fastest, 0)
        if self._state_names:
            self._rates, self._sizes = at.tangents.rates[points, fastest], at.geometry.sizes[points, fastest]

    def write(self, k: int) -> Sequence[Remark]:
        """Return the diagnostics on point ``k``."""
        if not self.is_present[k]:
            return ()
        motion = self._motion
        what = rate_of_change(self._state_names[motion.fastest[k]], float(self._rates[k]), float(self._sizes[k]))
        uniform = None
        if motion.steady[k]:
            carried = motion.list_carried(k, self._coordinate_names)
            uniform = self._coordinate_names, carried, float(motion.later[k])
        remark = motion_remark(what, constrained=motion.has_choice, steady=uniform)
        return change_remarks(remark, motion.change, k)


def describe_fastest(at: SparseLinearizedPoint) -> list[Remark]:
    """Say that a large model moves, and what moves most: A is not compared along its motion."""
    rates, sizes = at.base.derivatives, at.model.states.scales(at.point.states)
    slopes, speeds = at.derivatives.f[0] * at.derivatives.scales[0], np.abs(rates) / sizes
    is_slow = speeds.max(initial=0.0) <= EQUILIBRIUM_RATE_TOLERANCE
    if is_slow and is_equilibrium(rates, sizes, slopes, np.zeros(slopes.shape), at.derivatives.order):
        return []
    i = int(speeds.argmax())
    what = rate_of_change(at.model.states.names[i], float(rates[i]), float(sizes[i]))
    return [motion_remark(what, constrained=bool(len(at.model.constraints)))]


def motion_remark(what: str, *, constrained: bool, steady: Along | None = None, in_use: bool = True) -> Remark:
    """Say whether A depends on the coordinates; ``steady`` ones, the idle among them, how much later A was the same."""
    if not constrained:
        return off_equilibrium(what, FREE)
    if steady is None:
        return off_equilibrium(what)
    names, carried, later = steady
    if not in_use:
        return off_equilibrium(
            what,
            "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates. The motion is steady, but "
            f"not in these coordinates: in {', '.join(names)} A stays the same along it, and its eigenvalues are those "
            "of the disturbed motion.",
        )
    uniform = ", ".join(name for name in names if name not in carried)
    but = (
        f" No state depends on {', '.join(carried)}: their rates and rows of A may change, the eigenvalues do not."
        if carried
        else ""
    )
    return Remark(
        "steady",
        f"The point is not an equilibrium but a steady motion: {what}, and {uniform} move uniformly. Along them A is "
        f"the same {later:.3g} s further on; its eigenvalues are those of the disturbed motion. f0 keeps the "
        f"motion.{but}",
    )


def name_requested_motion(remark: Remark, moving: Sequence[str]) -> Remark:
    """Return the diagnostic on a point off equilibrium as one on the steady motion that a trim was asked for.

    Only for a motion along which A stays the same: eigenvalues at a "steady" point count as those of its stability.
    """
    if not moving or remark.kind != "off-equilibrium":
        return remark
    return Remark("steady", remark.message.replace(OFF, f"The point is on a steady motion of {', '.join(moving)}", 1))


def change_remarks(motion: Remark, change: Change, k: int = 0) -> list[Remark]:
    """Return a diagnostic on a motion with what is to be said of A along it, at point ``k``."""
    if not change.is_compared[k]:
        return [motion]
    part, when = float(change.part[k]), f"as seen {change.later[k]:.3g} s further on"
    changes = f"A changes by {100 * part:.2g} % along the motion, {when}"
    if part <= CONSTANT_JACOBIAN_TOLERANCE:
        return [replace(motion, message=f"{motion.message} A is the same along it, {when}.")]
    if change.turning[k]:
        return [replace(motion, message=f"{motion.message} {changes}, and its eigenvalues do not: {TURNING}")]
    instant = "these are the eigenvalues of an instant, and do not determine stability. For a periodic motion use"
    return [motion, Remark("periodic", f"{changes}: {instant} fl.periodic_orbit(model).")]


def report_motion(model: Model, base: Evaluation, frame: Frame, motion: MotionBatch, otherwise: Remark) -> list[Remark]:
    """Return what is to be said of A along a motion, ``otherwise`` first where no steady coordinates are known."""
    if motion.steady[0]:
        return _remarks_on_motion(model, base, frame, motion)
    return change_remarks(otherwise, motion.change)[-1:] if motion.change.is_compared[0] else []


def _remarks_on_motion(model: Model, base: Evaluation, frame: Frame, motion: MotionBatch) -> list[Remark]:
    fastest = int(motion.fastest[0])
    size = float(frame.invariants.scales[fastest])
    what = rate_of_change(model.states.names[fastest], float(base.derivatives[fastest]), size)
    steady, in_use = None, False
    if motion.steady[0]:
        selection = motion.selections.get(0, frame.selection)
        in_use = selection is frame.selection
        names = selection.signals.names
        carried = motion.list_carried(0, names)
        steady = names if in_use else selection.texts, carried, float(motion.later[0])
    remark = motion_remark(what, constrained=motion.has_choice, steady=steady, in_use=in_use)
    if in_use and frame.selection.kind == NOT_TURNING:
        remark = replace(remark, message=f"{remark.message} {INSTEAD_OF_TURNING}")
    return change_remarks(remark, motion.change)
