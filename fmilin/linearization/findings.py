"""What a user should know about a point and the coordinates at it."""

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark, discrete_states_remarks, model_remarks, off_equilibrium, rate_of_change
from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import PUSHES, dead_zone_error
from fmilin.manifold.frame import Frame
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.rank import singularity_of
from fmilin.manifold.selection import NOT_TURNING, select_partition
from fmilin.manifold.steady import Motion
from fmilin.manifold.uniform import Change
from fmilin.model.capabilities import read_discrete_states, read_event_indicators
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.model.stepping import Hybrid
from fmilin.model.visits import RememberingModel
from fmilin.numerics.balanced import is_equilibrium
from fmilin.numerics.steps import Domains, domains
from fmilin.signals import FloatArray
from fmilin.tolerances import DOUBTFUL, EQUILIBRIUM, SAME_ALONG

TURNING = (
    "they belong to coordinates that turn, and say nothing of stability. Where A stays they do: take the direction of "
    "the axis, an angle about it and rates in a frame that does not turn with the body (independent= takes "
    "expressions)."
)
INSTEAD_OF_TURNING = (
    "In axes of a body that turns A would not stay: the coordinates are the direction of its axis, or of what it turns "
    "about, angles about them, and what does not turn sees of its velocities. Choose others with independent=."
)
WITH_TIME = Remark("periodic", "The model depends on time.")
Along = tuple[tuple[str, ...], tuple[str, ...], float]  # coordinates, idle ones among them, and how much later in s
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
                + ". The point may be outside the model's domain. Choose another: "
                "fl.operating_point(model, {'NAME': VALUE}).",
                variable=bad[0],
            )
    return base


def remarks_on(model: RememberingModel, base: Evaluation, nearby: Neighbourhood, motion: Motion) -> list[Remark]:
    """Say what a user should know: a model with memory, a point in motion, doubtful coordinates, the model's notes."""
    frame = nearby.frame
    moves = motion.fastest is not None
    along = _on_motion(model, base, frame, motion) if moves else remarks_along(model, base, frame, motion, WITH_TIME)
    remarks = [*_of_memory(model, nearby), *along, *_prescribed(model, frame)]
    if frame.selection.condition_number > DOUBTFUL:
        better = ", ".join(select_partition(frame.manifold).signals.names) or "none"
        text = (
            f"The coordinates {', '.join(frame.selection.signals.names)} are badly conditioned here (condition number "
            f"{frame.selection.condition_number:.3g}); {better} would be better."
        )
        remarks.append(Remark("conditioning", text))
    remarks += discrete_states_remarks(read_discrete_states(model.source))
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
    instant = "these are the eigenvalues of an instant, and say nothing of stability; where it repeats"
    return [motion, Remark("periodic", f"{changes}: {instant}, fl.periodic_orbit(model) does.")]


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
    if in_use and frame.selection.kind == NOT_TURNING:
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
    text = (
        f"The model does not repeat itself: evaluated again at the same point, {nearby.rows[worst]} differs by up "
        f"to {change[worst]:.3g}. It keeps memory between calls, and {reckoned}."
    )
    return [Remark("memory", text)]


def _prescribed(model: RememberingModel, frame: Frame) -> list[Remark]:
    invariants = frame.invariants
    if not invariants.prescribing:
        return []
    names = model.inputs.names
    driven = ", ".join(f"'{names[j]}'" for j in invariants.prescribing)
    rates = ", ".join(f"'{names[j]}'" for j in invariants.chain.values()) or "none"
    text = (
        f"The inputs {driven} prescribe a motion: dependent states follow them at once (T_u), their derivatives "
        f"({rates}) are inputs of their own. with_prescribed_states() makes states of all but the highest."
    )
    return [Remark("prescribed-motion", text)]


AHEAD = 1e-6  # seconds that the model is followed, times the size of its time


def chattering_at(model: Model, point: OperatingPoint) -> str:
    """Return a sentence when events at the point never end, else nothing; the model ends in the mode of its start."""
    if not isinstance(model, Hybrid):
        return ""
    from fmilin.simulation.integration_loop import ChatteringError
    from fmilin.simulation.run import RunRequest, simulate_at

    ahead = AHEAD * max(abs(point.time), 1.0)
    try:
        simulate_at(model, point, np.array([point.time, point.time + ahead]), RunRequest(stabilization="none"))
    except ChatteringError:
        return (
            f"The model chatters at the point (t = {point.time:g} s): events follow each other without end, because "
            "the motion on either side of a switch leads back to it. There is no linear model of either side that "
            "the motion keeps. Move the point away from the switch, stay in the present mode with hold_modes=True, "
            "or replace the ideal switch by a smooth one in the model."
        )
    except FmilinError:
        return ""
    finally:
        model.restart()
    return ""


SMALL = (1e-3, 1e-2)  # small pushes, in sizes of the input


def refuse_dead_zones(linear: LinearModel, model: Model, point: OperatingPoint) -> LinearModel:
    """Return a linear model that no input moves, unless larger pushes than those of a derivative move the model."""
    if model.names_limits:
        return linear
    sizes = model.inputs.scales(point.inputs)
    dead = [name for j, name in enumerate(model.inputs.names) if _has_dead_zone(model, point, j, float(sizes[j]))]
    if dead:
        raise dead_zone_error(dead)
    return linear


def _has_dead_zone(model: Model, point: OperatingPoint, j: int, size: float) -> bool:
    try:
        base, here = _seen(model, point, point.inputs)
        small = [_pushed(model, point, j, sign * part * size) for part in SMALL for sign in (1.0, -1.0)]
    except FmilinError:
        return False
    if any(_moved(base, seen) for seen, _ in small):
        return False
    for part in PUSHES:
        for sign in (1.0, -1.0):
            try:
                seen, domain = _pushed(model, point, j, sign * part * size)
            except FmilinError:
                continue
            if _moved(base, seen) or not np.array_equal(domain, here):
                return True
    return False


def _pushed(model: Model, point: OperatingPoint, j: int, by: float) -> tuple[Evaluation, Domains]:
    inputs = point.inputs.copy()
    inputs[j] += by
    return _seen(model, point, inputs)


def _seen(model: Model, point: OperatingPoint, inputs: FloatArray) -> tuple[Evaluation, Domains]:
    evaluation = model.evaluate(point.time, point.states, inputs)
    return evaluation, domains(read_event_indicators(model, point.time, point.states, inputs))


def _moved(base: Evaluation, seen: Evaluation) -> bool:
    """Whether rates or outputs are no longer those of ``base``, to the last bit."""
    same = np.array_equal(base.derivatives, seen.derivatives, equal_nan=True)
    return not (same and np.array_equal(base.outputs, seen.outputs, equal_nan=True))
