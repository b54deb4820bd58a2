"""The reasons for which a channel may be zero: each function changes one thing, and names it if the channel answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.composition.connect import sampled_loop
from fmilin.composition.declaration import NO_CHANGE, WireLink, qualify, split
from fmilin.composition.linear_member import HeldMember, SampledMember
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.discovery.channel import ExplainedChannel, moves, reached, without_errors
from fmilin.errors import FmilinError, NumericalError, join_first
from fmilin.linear_model.no_response import PUSH_SIZES
from fmilin.model.capabilities import read_second_order_form
from fmilin.model.equations import SecondOrderForm
from fmilin.signals import FloatArray

Answer = tuple[str, tuple[str, ...], str, bool]
SMALL_PUSH_SIZES = (1e-3, 1e-2)  # pushes, in sizes of the input, that a dead zone or a limit swallows
NEAR_DISTANCE, FAR_DISTANCES = (
    1e-3,
    (1e-3, 1.0, 30.0),
)  # how far another point is, in sizes of what moves; a factor shows at once
SYMMETRY_BREAKING_FRACTION = 0.1  # of a parameter that breaks a symmetry, relative
MOST_PARAMETERS = 40  # that are changed one by one
MAX_WIRES = 60  # tried between members that nothing joins


def held(channel: ExplainedChannel) -> Answer | None:
    """Members of a system that hold their outputs from sample to sample."""
    model = channel.model
    if not isinstance(model, ConnectedModel):
        return None
    names = tuple(name for name, m in model.members.items() if isinstance(m, HeldMember))
    if not names or not all(isinstance(model.members[name], SampledMember) for name in names):
        return None
    try:
        view = model.with_interface([channel.input], [channel.output])
        at = replace(channel.point, inputs=channel.point.inputs[[model.inputs.index_of(channel.input)]])
        linear = sampled_loop(view, at)
        if not moves((linear.A, linear.B, linear.C, linear.D)):
            return None
    except FmilinError:
        return None
    text = (
        f"{_enumerate(names)} is sampled and holds its outputs between its samples, so nothing passes in this linear "
        "model. fl.sampled_loop(system) is the one from sample to sample, in which it does."
    )
    return "held", names, text, True


def swallowed(channel: ExplainedChannel) -> Answer | None:
    """Limits, dead zones and friction: small pushes of the input move nothing at all, larger ones do."""
    model, j = channel.model, channel.model.inputs.index_of(channel.input)
    size = float(model.inputs.scales(channel.point.inputs)[j])
    base = _seen(channel, 0.0)
    if base is None or any(
        _differs(_seen(channel, sign * part * size), base) for part in SMALL_PUSH_SIZES for sign in (1, -1)
    ):
        return None
    sides = [s for s in (1, -1) if any(_differs(_seen(channel, s * part * size), base) for part in PUSH_SIZES)]
    if not sides:
        return None
    value = float(channel.point.inputs[j])
    if len(sides) == 1:
        way = "upwards" if sides[0] > 0 else "downwards"
        text = (
            f"'{channel.input}' stands at {value:g}, beyond a limit or at it: only pushes {way} move anything. Take a "
            "point at which it is inside its range."
        )
        return "limit", (channel.input,), text, True
    text = (
        f"Small pushes of '{channel.input}' move nothing in either direction, larger ones do: a dead zone, or friction "
        "at rest. Take a point at which it moves, or make the friction smooth."
    )
    return "dead zone", (channel.input,), text, True


def _seen(channel: ExplainedChannel, by: float) -> FloatArray | None:
    model, inputs = channel.model, channel.point.inputs.copy()
    inputs[model.inputs.index_of(channel.input)] += by
    try:
        evaluation = model.evaluate(channel.point.time, channel.point.states, inputs)
    except FmilinError:
        return None
    return np.concatenate((evaluation.derivatives, evaluation.outputs))


def _differs(one: FloatArray | None, other: FloatArray) -> bool:
    return one is not None and not np.array_equal(one, other, equal_nan=True)


def symmetric(channel: ExplainedChannel) -> Answer | None:
    """Paths that cancel: what the input moves is odd, what the output sees is even."""
    linear = channel.linear()
    if linear is None:
        return None
    clean = without_errors(linear)
    moved = reached(clean.A, clean.B)
    if not (clean.D.any() or clean.C[:, moved].any()):  # no path
        return None
    adds = [n for n, m, c in zip(linear.states.names, moved, clean.C[0], strict=True) if m and c != 0]
    model = channel.model
    breaking = []
    for name, value in model.parameters.items():
        try:
            if channel.answers(model.with_parameters({name: value + SYMMETRY_BREAKING_FRACTION * (abs(value) or 1.0)})):
                breaking.append(name)
        except FmilinError:
            continue
    why = f" Changing {_enumerate(breaking[:4])} breaks the symmetry." if breaking else ""
    text = (
        f"Paths lead from '{channel.input}' to '{channel.output}' and cancel: what is moved is odd, what is seen even "
        f"(over {_enumerate(adds)}). Sense one of them alone, or push on one side.{why}"
    )
    return "symmetry", tuple(dict.fromkeys((*adds, *breaking))), text, bool(breaking)


def zero_parameters(channel: ExplainedChannel) -> Answer | None:
    """Parameters that are zero."""
    zeros = [name for name, value in channel.model.parameters.items() if value == 0.0]

    def answers(names: Sequence[str]) -> bool:
        try:
            return channel.answers(channel.model.with_parameters(dict.fromkeys(names, 1.0)))
        except FmilinError:
            return False

    needed = _needed(zeros, answers)
    if not needed:
        return None
    text = f"The parameter {_enumerate(needed)} is zero: with another value '{channel.input}' moves '{channel.output}'."
    return "parameter", needed, text, True


def cancelling(channel: ExplainedChannel) -> Answer | None:
    """Parameters with values at which the gain of a path is zero, such as a and b in ``(a - b) u`` where they agree."""
    model = channel.model
    values = _generic_values(channel)

    def answers(names: Sequence[str]) -> bool:
        try:
            return channel.answers(model.with_parameters({name: values[name] for name in names}))
        except FmilinError:
            return False

    needed = _needed(list(values), answers)
    if not needed:
        return None
    count = len(needed)
    needed = _with_alternatives(needed, list(values), answers)
    shown = join_first((f"{name} = {model.parameters[name]:g}" for name in needed), 6)
    change = "that" if len(needed) == 1 else f"{count} of them together" if count > 1 else "one of them"
    text = (
        f"A path leads from '{channel.input}' to '{channel.output}', and its gain is zero at these values of "
        f"parameters ({shown}). Change {change}, and the channel answers."
    )
    return "parameter", needed, text, True


def _generic_values(channel: ExplainedChannel) -> dict[str, float]:
    """Return other values of all parameters, each changed by another part, so that nothing cancels by chance."""
    return {
        name: value * (1.1 + 0.037 * (i % 11)) if value else 1.0 + 0.1 * (i % 7)
        for i, (name, value) in enumerate(channel.model.parameters.items())
    }


def vanishing(channel: ExplainedChannel) -> Answer | None:
    """Look for a factor that is zero at the point: states, other inputs, the time."""
    model, point = channel.model, channel.point
    x, u = model.states.scales(point.states), model.inputs.scales(point.inputs)
    kept = channel.kept
    values = {n: (v, float(x[model.states.index_of(n)])) for n, v in kept.items()}
    values |= {n: (float(point.inputs[i]), float(u[i])) for i, n in enumerate(model.inputs.names)}
    values["time"] = (point.time, 1.0)
    for far in FAR_DISTANCES:
        offsets = {name: far * (1.0 + 0.13 * i % 0.5) for i, name in enumerate(values)}
        for sign in (1.0, -1.0):

            def answers(names: Sequence[str], offsets: Mapping[str, float] = offsets, sign: float = sign) -> bool:
                moved = channel.moved(model, {n: values[n][0] + sign * offsets[n] * values[n][1] for n in names})
                return moved is not None and channel.answers(None, moved)

            if needed := _needed(list(values), answers):
                shown = ", ".join(f"{n} = {values[n][0]:g}" for n in needed)
                kind = "point" if far == NEAR_DISTANCE else "limit"
                why = "a factor on the way vanishes there" if kind == "point" else "a limit or a dead zone on the way"
                text = (
                    f"It is due to the point ({shown}): {why}. At another value of {_enumerate(needed)} the channel "
                    "answers: linearize there."
                )
                return kind, needed, text, True
    return None


def together(channel: ExplainedChannel) -> Answer | None:
    """Look for factors that are zero at the point beside parameters that are zero or cancel, too."""
    values = _generic_values(channel)
    zeros = [name for name, value in channel.model.parameters.items() if value == 0.0]

    def at_another_point(names: Sequence[str]) -> Answer | None:
        try:
            return vanishing(replace(channel, model=channel.model.with_parameters({n: values[n] for n in names})))
        except FmilinError:
            return None

    needed = _needed(zeros, lambda names: at_another_point(names) is not None)
    if not needed and len(values) <= MOST_PARAMETERS:
        needed = _needed(list(values), lambda names: at_another_point(names) is not None)
    answer = at_another_point(needed) if needed else None
    if answer is None:
        return None
    kind, culprits, text, confirmed = answer
    needed = _with_alternatives(needed, list(values), lambda names: at_another_point(names) is not None)
    where = "is zero" if set(needed) <= set(zeros) else "makes the gain of a path zero"
    which = "parameter" if len(needed) == 1 else "parameters"
    where = where if len(needed) == 1 else where.replace("is", "are").replace("makes", "make")
    text = f"The {which} {_enumerate(needed)} {where}, and with another value: {text}"
    return kind, (*needed, *culprits), text, confirmed


def constrained(channel: ExplainedChannel) -> Answer | None:
    """Look for constraints without which the input would move the output."""
    model, point = channel.model, channel.point
    if not len(model.constraints):
        return None
    try:
        view = model.with_interface([channel.input], [channel.output])
        u = point.inputs[[model.inputs.index_of(channel.input)]]
        form = read_second_order_form(view, point.time, point.states, u)
    except (FmilinError, NumericalError):
        return None
    if form is None or 2 * len(form.M) != len(model.states):
        return None
    names = [c.label for c in model.constraints.declared][: len(form.G)]

    def answers(without: Sequence[str]) -> bool:
        return moves(_released(form, [i for i, name in enumerate(names) if name not in without]))

    needed = _needed(names, answers)
    if not needed:
        return None
    text = (
        f"The constraint {_enumerate(needed)} takes away the motion that '{channel.input}' would make: without it "
        f"'{channel.output}' is moved. Push or sense along a freedom that is left, or release it."
    )
    return "constraint", needed, text, True


def _released(form: SecondOrderForm, rows: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return A, B, C, D over all coordinates with some of the constraints, forces at the point included."""
    n, G = len(form.M), form.G[list(rows)]
    saddle = np.block([[form.M, G.T], [G, np.zeros((len(G), len(G)))]])
    right = np.hstack((form.force_states, form.force_inputs))
    a = np.linalg.lstsq(saddle, np.vstack((right, np.zeros((len(G), right.shape[1])))))[0]
    unknowns = np.zeros((form.output_unknowns.shape[1], right.shape[1]))
    unknowns[:n] = a[:n]
    seen = np.hstack((form.output_states, form.output_inputs)) + form.output_unknowns @ unknowns
    order = np.concatenate((form.positions, form.velocities))
    A = np.vstack((np.hstack((np.zeros((n, n)), np.eye(n))), a[:n, : 2 * n][:, order]))
    B = np.vstack((np.zeros((n, right.shape[1] - 2 * n)), a[:n, 2 * n :]))
    return A, B, seen[:, : 2 * n][:, order], seen[:, 2 * n :]


def unconnected(channel: ExplainedChannel) -> Answer:
    """No path at all: in a system the wire that is missing, else what is reached and what is seen."""
    if isinstance(channel.model, ConnectedModel) and (answer := _missing_wire(channel, channel.model)) is not None:
        return answer
    linear = channel.linear()
    if linear is None:
        text = "There is no linear model at this point: linearize it first, and read what stands in the way."
        return "no path", (), text, False
    clean = without_errors(linear)
    moved = [n for n, m in zip(clean.states.names, reached(clean.A, clean.B), strict=True) if m]
    sees = [n for n, s in zip(clean.states.names, reached(clean.A.T, clean.C.T), strict=True) if s]
    what = f"moves {_enumerate(moved)}" if moved else "moves no state"
    which = f"depends on {_enumerate(sees)}" if sees else "depends on no state"
    text = f"There is no path, here or beside: '{channel.input}' {what}, '{channel.output}' {which}. "
    if channel.model.info.fmi_version:
        # Parameters of an FMU are fixed once it is initialized, so that cancelling ones look like a missing path.
        text += (
            "Parameters of an FMU are not varied: with other values, fl.load(source, parameters={'NAME': VALUE}), "
            "there may be a path, unless the equations lack what leads from the one to the other."
        )
    else:
        text += "The equations lack what leads from the one to the other; choose another input or output."
    return "no path", tuple(dict.fromkeys((*moved, *sees))), text, True


def _missing_wire(channel: ExplainedChannel, model: ConnectedModel) -> Answer | None:
    d = model.declaration
    ends = {
        target[0] for i in model._chosen if d.feeds[i].signal.name == channel.input for target, _ in d.feeds[i].targets
    }
    last = {w.source[0] for w in d.outputs if w.name == channel.output} or {split(channel.output, model.members)[0]}
    ahead = _closure(ends, [(k.source[0], k.target[0]) for k in d.links])
    behind = _closure(last, [(k.target[0], k.source[0]) for k in d.links])
    if ahead & behind:
        return None
    taken = {k.target for k in d.links}
    fed = [(m, s.name) for m in sorted(behind) for s in model.members[m].inputs]
    fed.sort(key=lambda target: target in taken)  # those that no output feeds first
    sources = [(m, s.name) for m in sorted(ahead) for s in model.members[m].outputs]
    for target in fed[:MAX_WIRES]:
        for source in sources[: max(1, MAX_WIRES // max(len(fed), 1))]:
            links = [*(k for k in d.links if k.target != target), WireLink(source, target, NO_CHANGE)]
            if _answers_with(channel, model, replace(_without(d, target), links=links)):
                wire = (qualify(*source), qualify(*target))
                text = (
                    f"No wire leads from {_enumerate(sorted(ahead))} to {_enumerate(sorted(behind))}. With one from "
                    f"'{wire[0]}' to '{wire[1]}' the channel answers."
                )
                return "no path", wire, text, True
    start, end = _enumerate(sorted(ahead)), _enumerate(sorted(behind))
    text = f"No wire leads from {start} to {end}, and none that was tried opens it."
    return "no path", (*sorted(ahead), *sorted(behind)), text, False


def _without(d: SystemDeclaration, target: tuple[str, str]) -> SystemDeclaration:
    """Return the declaration with no input of the system that feeds a member's input."""
    fewer = [(i, replace(f, targets=tuple(t for t in f.targets if t[0] != target))) for i, f in enumerate(d.feeds)]
    left = [(i, f) for i, f in fewer if f.targets]
    chosen = [k for k, (i, _) in enumerate(left) if d.chosen is None or i in d.chosen]
    return replace(d, feeds=[f for _, f in left], chosen=chosen)


def _answers_with(channel: ExplainedChannel, model: ConnectedModel, declaration: SystemDeclaration) -> bool:
    try:
        joined = type(model)(declaration, owner=False)
        return channel.answers(joined, replace(channel.point, inputs=joined.start.inputs))
    except FmilinError:
        return False


def _closure(start: set[str], edges: Sequence[tuple[str, str]]) -> set[str]:
    seen = set(start)
    while more := {b for a, b in edges if a in seen} - seen:
        seen |= more
    return seen


def _needed(names: Sequence[str], answers: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """Return those of the names that must change for the channel to answer; none where all together do not help."""
    if not names or not answers(names):
        return ()
    for name in names:
        if answers([name]):
            return (name,)
    left = list(names)
    for name in names:
        fewer = [n for n in left if n != name]
        if fewer and answers(fewer):
            left = fewer
    return tuple(left)


def _with_alternatives(
    needed: Sequence[str], names: Sequence[str], answers: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Return also those names that do the same in the place of one of the needed ones, in the order of all names."""
    if len(names) > MOST_PARAMETERS:
        return tuple(needed)
    sufficient = set(needed)
    for name in needed:
        others = [other for other in needed if other != name]
        sufficient |= {other for other in names if other not in needed and answers([*others, other])}
    return tuple(name for name in names if name in sufficient)


def _enumerate(names: Sequence[str]) -> str:
    shown = [f"'{name}'" for name in names[:6]]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown) or "nothing"


Cause = Callable[[ExplainedChannel], Answer | None]
CAUSES: tuple[Cause, ...] = (
    held, swallowed, symmetric, zero_parameters, cancelling, vanishing, together, constrained, unconnected,
)  # fmt: skip
"""In the order in which they are asked for; the last one always answers."""
