"""Operating points on the manifold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import ConstraintError, NumericalError, UnknownNameError, UsageError
from fmilin.manifold import projection
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.nonvanishing import require_nonvanishing
from fmilin.manifold.position import position_remarks
from fmilin.manifold.projection import followed
from fmilin.manifold.rank import singular_values
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.model.capabilities import HasGivenStates, read_discrete_states, read_sparse_equations, remove_delays
from fmilin.model.equation_forms import SparseEquations
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.memory import find_memory
from fmilin.signals import FloatArray, Signals, as_numbers
from fmilin.tolerances import DOUBTFUL_CONDITION_NUMBER, START_GAP_TOLERANCE

START_VALUE_TOLERANCE = 1e-3  # of a size: a smaller change of what was given is its rounding
WRONG = "The start values do not satisfy the constraints"
STEP_OF_MOTION = 0.1  # how far a prescribed input goes at once, in its size
STEPS = 1000  # at most, of a prescribed input that starts far away: then longer ones

START = (
    "If the constraints are right, change the start values: name the states to keep with fl.operating_point(model, "
    "{'NAME': VALUE}) and the others are solved for, or use the nearest consistent point with project=True."
)


@one_at_a_time
def operating_point(
    model: Model, values: Mapping[str, float] | None = None, *, time: float | None = None, project: bool = False
) -> OperatingPoint:
    """Return a consistent point: the named states held, the others solved for, nearest to their start values.

    Parameters
    ----------
    model : Model
    values : mapping of str to float, optional
        States and inputs by name, in the model's units.
    time : float, optional
        In seconds; the model's own start time by default.
    project : bool
        Accept start values that are off the manifold and take the nearest point. Without it, and when no state
        and no prescribed motion is named, the start values must satisfy the constraints within 1e-6.

    Raises
    ------
    UnknownNameError
        When a name is neither a state nor an input.
    UsageError
        When the time is not finite, or a value is not a number.
    ConstraintError
        When the start values violate the constraints, no point satisfies them with the named states held, or a
        constraint vanishes everywhere.
    """
    return assemble_point(PointEvaluator(remove_delays(model)), values or {}, time=time, project=project)


def assemble_point(
    evaluator: PointEvaluator, values: Mapping[str, float], *, time: float | None = None, project: bool = False
) -> OperatingPoint:
    """Return the point of :func:`operating_point`, with a model that remembers its evaluations."""
    model = evaluator.model
    t = model.start.time if time is None else float(time)
    if not np.isfinite(t):
        raise UsageError(f"The time of an operating point must be finite, not {t:g} s.")
    x, u = model.start.states.copy(), model.start.inputs.copy()
    pinned: list[int] = []
    for name, value in values.items():
        as_numbers(value, f"'{name}'")
        if (state := model.states.find_signed(name)) is not None:
            i, sign = state
            x[i] = sign * value
            pinned.append(i)
        elif (driven := model.inputs.find_signed(name)) is not None:
            j, sign = driven
            u[j] = sign * value
        else:
            names = [*model.states.positions, *model.inputs.positions]
            raise UnknownNameError.among(name, names, "a state or an input of the model")
    point = OperatingPoint(t, x, u, model.start.parameters, names=(model.states.names, model.inputs.names))
    if not len(model.constraints):
        return point
    scales = model.states.scales(x)
    if (equations := read_sparse_equations(model)) is not None:
        projected = consistent_states(model, equations, t, x, u, pinned, project=project)
        return _adjusted(point, projected, scales)
    invariants = _invariants(evaluator, u, scales)
    require_nonvanishing(invariants, t, model.start.states)
    # With states named the branch is followed to their values, and project=True asks for the nearest point.
    if model.constraints.prescribing and not (pinned or project):
        x = _followed(evaluator, t, x, u)
    if not pinned and not project:
        projection.require_on_manifold(
            invariants, t, x, nearer=START_GAP_TOLERANCE, otherwise=WRONG, advice=_advice(model)
        )
    remarks: tuple[Remark, ...] = ()
    if pinned:
        projected, remarks = _assembled(invariants, t, model.start.states, x, pinned)
    else:
        projected = _projected(invariants, t, x, ())
        # Between constraints that are nearly parallel a gap within the tolerance is a long way.
        remarks = (
            () if project else _describe_moved_states(model, x, projected, range(len(x)), "To satisfy the constraints")
        )
    remarks = (*remarks, *position_remarks(invariants, t, projected))
    return replace(_adjusted(point, projected, scales), remarks=remarks)


def _followed(evaluator: PointEvaluator, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """Let dependent states go with prescribed inputs in steps from the start: what is nearest may be folded."""
    model = evaluator.model
    start, driven = model.start.inputs, model.constraints.prescribing
    steps = np.abs((u - start)[driven] / model.inputs.scales(u)[driven]).max() / STEP_OF_MOTION
    for part in np.linspace(0.0, 1.0, 1 + min(int(np.ceil(steps)), STEPS))[1:]:
        between = _invariants(evaluator, start + part * (u - start), model.states.scales(x))
        x = _projected(between, t, x, ())
    return x


def _advice(model: Model) -> str:
    """Return what to do about start values that are wrong; a changed parameter does not move them."""
    changed = [f"{name} = {value:g}" for name, value in model.start.parameters.items()]
    if not changed:
        return START
    return (
        f"{', '.join(changed)} was set without changing the start values of the states. Use the nearest consistent "
        "point with project=True, or name states to keep with fl.operating_point(model, {'NAME': VALUE}) and the "
        "others are solved for."
    )


def assemble_branch_point(
    evaluator: PointEvaluator, t: float, start: FloatArray, u: FloatArray, values: Mapping[str, float]
) -> OperatingPoint:
    """Return the point with states held at ``values``, on the branch of ``start`` (N,), a neighbour on a grid, say."""
    model = evaluator.model
    x, pinned = start.copy(), [model.states.positions[name] for name in values]
    x[pinned] = list(values.values())
    invariants = _invariants(evaluator, u, model.states.scales(x))
    projected, remarks = _assembled(invariants, t, start, x, pinned)
    remarks = (*remarks, *position_remarks(invariants, t, projected))
    return OperatingPoint(t, projected, u, model.start.parameters, remarks=remarks)


def _invariants(evaluator: PointEvaluator, u: FloatArray, scales: FloatArray) -> Invariants:
    """Return what the point must satisfy; which rates are states is tested where the model starts, no farther off."""
    model, pairs = evaluator.model, None
    # Where the rates of constrained states are states, hidden constraints need no evaluation of the model.
    if model.constraints.hidden:
        pairs = find_kinematic_pairs(evaluator, model.start)
    return Invariants(evaluator, u, pairs or {}, scales)


def _easily(invariants: Invariants) -> Invariants:
    """Return the declared invariants alone where all are expressions, which need no evaluation of the model."""
    constraints = invariants.model.constraints
    if not (constraints.hidden and constraints.analytic.all()):
        return invariants
    return Invariants(invariants.evaluator, invariants.inputs, {}, invariants.scales, declared_alone=True)


def _projected(invariants: Invariants, t: float, x: FloatArray, pinned: Sequence[int]) -> FloatArray:
    """Return the nearest point with the held states; declared expressions first, as an FMU may fail off its loops."""
    alone = _easily(invariants)
    if alone is not invariants:
        try:
            return projection.project(invariants, t, projection.project(alone, t, x, pinned), pinned)
        except NumericalError:  # the model cannot be evaluated there: from where it can be
            pass
    return projection.project(invariants, t, x, pinned)


def _assembled(
    invariants: Invariants, t: float, start: FloatArray, x: FloatArray, pinned: Sequence[int]
) -> tuple[FloatArray, tuple[Remark, ...]]:
    """Return the point with the held states of x on the branch of the start values, or else the nearest one."""
    states = invariants.model.states
    try:
        origin: FloatArray | None = _projected(invariants, t, start, ())
    except (ConstraintError, NumericalError):
        # No point belongs to the start values: the nearest one with the named states is taken, on any branch.
        origin = None
    reached = 0.0
    if origin is not None:
        unchanged = select_kept_states(invariants.model, invariants.gradient(t, origin).scaled, pinned)
        # Other states that were given are kept if the branch leads there with them; otherwise they move.
        for further_states in (unchanged, []) if unchanged else ([],):
            fixed, target = [*pinned, *further_states], x.copy()
            target[further_states] = origin[further_states]
            solution, reached = followed(_easily(invariants), t, origin, target, fixed)
            if solution is not None:
                solution = _projected(invariants, t, solution, fixed)
                specified = let_go(invariants.model, pinned, further_states)
                return solution, (
                    *_describe_moved_states(invariants.model, start, solution, specified),
                    *_turns(states, x, pinned),
                )
    try:
        solution = _projected(invariants, t, x, pinned)
    except ConstraintError as error:
        hint = " ".join(remark.message for remark in _turns(states, x, pinned))
        if hint:
            raise ConstraintError(f"{error} {hint}", residuals=error.residuals) from error
        raise
    if origin is None:
        return solution, _turns(states, x, pinned)
    return solution, (_lost(states, origin, x, pinned, reached), *_turns(states, x, pinned))


def select_kept_states(model: Model, Hs: FloatArray, pinned: Sequence[int]) -> list[int]:
    """Return further states that keep their values; Hs (m, N) is the scaled gradient at the start."""

    def rank(free: np.ndarray) -> int:
        """Return how many constraints these states can follow easily."""
        sigma = singular_values(Hs[:, free]) if free.any() and len(Hs) else np.zeros(0)
        return int(np.count_nonzero(sigma * DOUBTFUL_CONDITION_NUMBER > np.max(sigma, initial=0.0)))

    free, unchanged = np.ones(Hs.shape[1], dtype=bool), []
    free[list(pinned)] = False
    full_rank = rank(free)
    for name in _states_to_keep(model, pinned):
        free[i := model.states.positions[name]] = False
        if rank(free) == full_rank:
            unchanged.append(i)
        else:
            free[i] = True
    return unchanged


def _states_to_keep(model: Model, pinned: Sequence[int]) -> Mapping[str, bool]:
    """Return the states to keep in addition to the held ones, the most important first, and whether each was given."""
    return (
        model.choose_kept_states([model.states.names[i] for i in pinned]) if isinstance(model, HasGivenStates) else {}
    )


def let_go(model: Model, pinned: Sequence[int], unchanged: Sequence[int]) -> list[int]:
    """Return the states that were given, and cannot be kept together with the held ones."""
    names = [name for name, was_given in _states_to_keep(model, pinned).items() if was_given]
    specified = [model.states.positions[name] for name in names]
    return [i for i in specified if i not in unchanged]


def _describe_moved_states(
    model: Model, specified: FloatArray, became: FloatArray, states: Sequence[int], why: str = "To keep what was set"
) -> tuple[Remark, ...]:
    """Return the diagnostic on states that were given and moved."""
    sizes = model.states.scales(specified)
    moved = [i for i in states if abs(became[i] - specified[i]) > START_VALUE_TOLERANCE * sizes[i]]
    listed = "; ".join(f"given {model.states.names[i]} = {specified[i]:.6g}, became {became[i]:.6g}" for i in moved)
    return (Remark("moved", f"{why}, start values had to move: {listed}."),) if moved else ()


def _lost(states: Signals, origin: FloatArray, x: FloatArray, pinned: Sequence[int], reached: float) -> Remark:
    """Return the diagnostic where the branch of the start values was left."""
    i = pinned[0]
    names = ", ".join(states.names[k] for k in pinned)
    if reached == 0.0:
        how = f"the start values are a turning point of {names}, which continues in more than one way: one was chosen"
    else:
        value = origin[i] + reached * (x[i] - origin[i])
        how = (
            f"the start values could be followed to {states.names[i]} = {value:.6g}, but not on to {x[i]:.6g} without "
            "a jump: the point may be assembled in another way"
        )
    choose = "Fix more states to choose another: fl.operating_point(model, {'NAME': VALUE})."
    return Remark("branch", f"Assembling the point, {how}. {choose}")


def _turns(states: Signals, x: FloatArray, pinned: Sequence[int]) -> tuple[Remark, ...]:
    """Return a hint where an angle in rad was given more than a turn: it may have been meant in degrees."""
    specified = [i for i in pinned if states[i].unit == "rad" and abs(x[i]) > 2 * np.pi]
    if not specified:
        return ()
    name, value = states.names[specified[0]], x[specified[0]]
    text = (
        f"'{name}' is in rad: {value:.6g} is {abs(value) / (2 * np.pi):.3g} turns. {value:.6g} degrees would be "
        f"{np.deg2rad(value):.6g}."
    )
    return (Remark("unit", text),)


def _adjusted(point: OperatingPoint, projected: FloatArray, scales: FloatArray) -> OperatingPoint:
    """Return the point with projected states; its own where they differ by rounding alone."""
    moved = np.abs(projected - point.states) / scales
    # Rounding of the projection: the states of the user are kept bit by bit.
    if np.max(moved, initial=0.0) <= 1e-14:
        projected, moved = point.states, np.zeros_like(moved)
    return point.with_states(projected, adjusted=float(np.max(moved, initial=0.0)))


def consistent_states(
    model: Model,
    sparse: SparseEquations,
    t: float,
    x: FloatArray,
    u: FloatArray,
    pinned: Sequence[int],
    *,
    project: bool,
) -> FloatArray:
    """Return the states of a large model on its manifold, nearest to x."""
    if not pinned and not project:
        distance = sparse.distance(x, u, t)
        if not distance <= START_GAP_TOLERANCE:
            gaps = sparse.residuals(t, x, u)
            i = int(np.argmax(np.abs(gaps)))
            away = f"The nearest point is {distance:.3g} sizes of the states away."
            residual = {model.constraints.names[i]: float(gaps[i])}
            raise projection.not_on_manifold(residual, otherwise=WRONG, advice=f"{away} {_advice(model)}")
        # Rounding: the states of the user are kept bit by bit.
        if distance <= 1e-14:
            return x
    return sparse.projected(t, x, u, pinned)


def assemble_start(model: Model) -> OperatingPoint:
    """Return the point of the manifold where a model starts; assembled anew when start values or mode have changed."""
    mode, start, memory = dict(read_discrete_states(model)), model.start, find_memory(model)
    start_and_mode = (start.time, start.states.tobytes(), start.inputs.tobytes()), mode
    remembered: tuple[object, OperatingPoint] | None = memory.get(assemble_start)
    if remembered is None or remembered[0] != start_and_mode:
        remembered = memory[assemble_start] = start_and_mode, operating_point(model)
    return remembered[1]


def apply_point_parameters(model: Model, point: OperatingPoint) -> Model:
    """Return ``model`` with the parameters of ``point``: a trimmed point may have others than the model."""
    require_sizes(model, point)
    changed = {n: v for n, v in point.parameters.items() if model.start.parameters.get(n) != v}
    return model.with_parameters(changed) if changed else model


def _is_plain(point: OperatingPoint, model: Model) -> bool:
    """Whether a point is as fmilin makes it, of numbers for this model: loops of calls have no time for more."""
    states, inputs = point.states, point.inputs
    if type(states) is not np.ndarray or type(inputs) is not np.ndarray or type(point.parameters) is not dict:
        return False
    if states.dtype != np.float64 or inputs.dtype != np.float64 or type(point.time) is not float:
        return False
    is_of_model = states.shape == (len(model.states),) and inputs.shape == (len(model.inputs),)
    return is_of_model and not (math.isnan(point.time) or np.isnan(states).any() or np.isnan(inputs).any())


def require_sizes(model: Model, point: OperatingPoint) -> None:
    """Reject a point of another model, and objects that are not points."""
    if not isinstance(point, OperatingPoint):
        raise UsageError(
            "The point must be made by fl.operating_point(model, {name: value}), not of the type "
            f"'{type(point).__name__}'."
        )
    if _is_plain(point, model):
        return
    for values, what in ((point.states, "The states"), (point.inputs, "The inputs"), ([point.time], "The time")):
        is_array = isinstance(values, np.ndarray) and values.dtype == np.float64
        numbers = np.asarray(values) if is_array else as_numbers(values, f"{what} of the point")
        if numbers.ndim != 1 or np.isnan(numbers).any():
            raise UsageError(f"{what} of the point: it needs one number each, and {values!r} was given.")
    for values, what in ((point.states, "The states"), (point.inputs, "The inputs")):
        if not isinstance(values, np.ndarray):
            raise UsageError(f"{what} of the point are of the type '{type(values).__name__}': give an array of numpy.")
    if not isinstance(point.parameters, Mapping):
        kind = type(point.parameters).__name__
        raise UsageError(f"The parameters of the point are of the type '{kind}': give values by name.")
    expected, counts = (len(model.states), len(model.inputs)), (len(point.states), len(point.inputs))
    if counts != expected:
        raise UsageError(
            f"The point has {counts[0]} states and {counts[1]} inputs, but '{model.info.name}' has {expected[0]} and "
            f"{expected[1]}: create it with fl.operating_point from values by name."
        )
