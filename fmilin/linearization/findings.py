"""What a user should know about a point and the coordinates at it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark, discrete_states_remarks, model_remarks, off_equilibrium, rate_of_change
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import DOUBTFUL, EQUILIBRIUM, SAME_ALONG
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.selection import NOT_TURNING
from fmilin.manifold.singular import singularity_of
from fmilin.manifold.steady import Motion
from fmilin.manifold.uniform import Change
from fmilin.model.counting import RememberingModel
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.rest import is_equilibrium

TURNING = (
    "they belong to coordinates that turn, and say nothing of stability. Where A stays they do: take the direction of "
    "the axis, an angle about it and rates in a frame that does not turn with the body (--independent takes "
    "expressions)."
)
INSTEAD_OF_TURNING = (
    "In axes of a body that turns A would not stay: the coordinates are the direction of its axis, or of what it turns "
    "about, angles about them, and what does not turn sees of its velocities. --independent takes others."
)
WITH_TIME = Remark("periodic", "The model depends on time.")
HUGE = 1e150  # rates and outputs whose squares overflow say nothing

FREE = "f0 keeps the motion."  # what it means for a model without constraints: there is no choice of coordinates


def visited_at(model: RememberingModel, point: OperatingPoint) -> Evaluation:
    """Visit the point itself and refuse NaN by name."""
    try:
        base = model.evaluate(point.time, point.states, point.inputs)
    except NumericalError as error:
        singular = singularity_of(model, point)
        raise NumericalError(singular, condition_number=error.condition_number) if singular else error from None
    for values, signals, what in (
        (base.derivatives, model.states, "derivative of the state"),
        (base.outputs, model.outputs, "output"),
        (base.residuals, model.constraints, "constraint"),
    ):
        if not (usable := np.abs(values) < HUGE).all():
            bad = [name for name, fine in zip(signals.names, usable, strict=True) if not fine]
            value = float(values[~usable][0])
            shown = f"{value:.3g}, more than can be reckoned with," if np.isfinite(value) else "no number"
            raise NumericalError(
                f"The model returns {shown} for the {what} '{bad[0]}' at the point"
                + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")
                + ". The point may be outside the model's domain: choose another with --set.",
                variable=bad[0],
            )
    return base


def remarks_on(model: RememberingModel, base: Evaluation, nearby: Neighbourhood, motion: Motion) -> list[Remark]:
    """Say what a user should know: a model with memory, a point in motion, doubtful coordinates, the model's notes."""
    frame = nearby.frame
    moves = motion.fastest is not None
    along = _on_motion(model, base, frame, motion) if moves else remarks_along(model, base, frame, motion, WITH_TIME)
    remarks = [*_of_memory(model, nearby), *along, *_prescribed(model, frame)]
    if frame.condition_number > DOUBTFUL:
        text = (
            f"The coordinates {', '.join(frame.signals.names)} are badly conditioned here (condition number "
            f"{frame.condition_number:.3g}); {frame.better} would be better."
        )
        remarks.append(Remark("conditioning", text))
    remarks += discrete_states_remarks(model.source.discrete_states())
    remarks += model_remarks(model.notes)
    remarks += model.remarks_at(nearby.point)
    return remarks


def motion_remarks(model: Model, base: Evaluation, scales: FloatArray, slopes: FloatArray, p: int) -> list[Remark]:
    """Say that the point moves, and what moves most; ``slopes`` (N, p + nu) of the rates, in sizes of y and u."""
    rates, speeds = base.derivatives, np.abs(base.derivatives) / scales
    if speeds.max(initial=0.0) <= EQUILIBRIUM and is_equilibrium(rates, scales, slopes, np.zeros(slopes.shape), p):
        return []
    i = int(speeds.argmax())
    what = rate_of_change(model.states.names[i], float(rates[i]), float(scales[i]))
    return [motion_remark(what, constrained=bool(len(model.constraints)))]


def motion_remark(
    what: str,
    *,
    constrained: bool,
    steady: tuple[tuple[str, ...], tuple[str, ...], float] | None = None,
    in_use: bool = True,
) -> Remark:
    """Say whether A and its eigenvalues depend on the coordinates: not without constraints, nor in steady ones.

    ``steady`` are such coordinates, those among them on which nothing depends, and how much later A was the same, in s;
    ``in_use`` says whether A is in them.
    """
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
        f" Nothing depends on {', '.join(carried)}: their rates and rows of A may change, the eigenvalues stay."
        if carried
        else ""
    )
    return Remark(
        "steady",
        f"The point is no equilibrium but a steady motion: {what}, and {uniform} move uniformly. Along them A is the "
        f"same {later:.3g} s further on; its eigenvalues are those of the disturbed motion. f0 keeps the motion.{but}",
    )


def change_remarks(motion: Remark, change: Change | None, k: int = 0) -> list[Remark]:
    """Return a remark on a motion with what is to be said of A along it, at point ``k``."""
    if change is None or np.isnan(change.part[k]):
        return [motion]
    part, seen = float(change.part[k]), f"as seen {change.later[k]:.3g} s further on"
    changes = f"A changes by {100 * part:.2g} % along the motion, {seen}"
    if part <= SAME_ALONG:
        return [replace(motion, message=f"{motion.message} A is the same along it, {seen}.")]
    if change.turning[k]:
        return [replace(motion, message=f"{motion.message} {changes}, and its eigenvalues do not: {TURNING}")]
    return [
        motion,
        Remark(
            "periodic",
            f"{changes}: these are the eigenvalues of an instant, and say nothing of stability; where it repeats, "
            "'fmilin floquet' does.",
        ),
    ]


def remarks_along(model: Model, base: Evaluation, frame: Frame, motion: Motion, otherwise: Remark) -> list[Remark]:
    """Return what is to be said of A along a motion, ``otherwise`` first where no steady coordinates are known."""
    if motion.steady and motion.fastest is not None:
        return _on_motion(model, base, frame, motion)
    return [] if motion.change is None else change_remarks(otherwise, motion.change)[-1:]


def _on_motion(model: Model, base: Evaluation, frame: Frame, motion: Motion) -> list[Remark]:
    fastest = motion.fastest
    assert fastest is not None  # noqa: S101 - the point moves
    size = float(frame.invariants.scales[fastest])
    what = rate_of_change(model.states.names[fastest], float(base.derivatives[fastest]), size)
    steady, in_use = None, False
    if motion.steady is not None:
        selection = motion.steady.selection
        in_use = selection is frame.selection
        names = selection.signals.names if in_use else selection.texts
        steady = names, motion.steady.carried, motion.steady.later
    remark = motion_remark(what, constrained=motion.has_choice, steady=steady, in_use=in_use)
    if in_use and frame.kind == NOT_TURNING:
        remark = replace(remark, message=f"{remark.message} {INSTEAD_OF_TURNING}")
    return change_remarks(remark, motion.change)


def _of_memory(model: RememberingModel, nearby: Neighbourhood) -> list[Remark]:
    """Say it when a model says something else at the point after other visits: then it keeps memory."""
    point = nearby.point
    if model.exact_slopes(point.time, point.states, point.inputs) is not None:
        return []  # equations, no black box
    change = nearby.revisit_change if nearby.revisited else nearby.change_at_point()
    if not change.any():
        return []
    worst = int(np.argmax(change))
    reckoned = "the error estimates reckon with that" if nearby.revisited else "the error estimates do not cover that"
    return [
        Remark(
            "memory",
            f"The model does not repeat itself: evaluated again at the same point, {nearby.rows[worst]} differs by up "
            f"to {change[worst]:.3g}. It keeps memory between calls, and {reckoned}.",
        )
    ]


def _prescribed(model: RememberingModel, frame: Frame) -> list[Remark]:
    invariants = frame.invariants
    if not invariants.prescribing:
        return []
    names = model.inputs.names
    driven = ", ".join(f"'{names[j]}'" for j in invariants.prescribing)
    rates = ", ".join(f"'{names[j]}'" for j in invariants.chain.values()) or "none"
    return [
        Remark(
            "prescribed-motion",
            f"The inputs {driven} prescribe a motion: dependent states follow them at once (T_u), their derivatives "
            f"({rates}) are inputs of their own. with_prescribed_states() makes states of all but the highest.",
        )
    ]
