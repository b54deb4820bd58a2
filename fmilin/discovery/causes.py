"""The reasons for which a channel may be zero: each function changes one thing, and names it if the channel answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fmilin.composition.linear_member import HeldMember, SampledMember
from fmilin.composition.sampled_loop import sampled_loop
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import NO_CHANGE, WireLink, qualify, split
from fmilin.discovery.channel import ExplainedChannel, clear_inaccurate_entries, find_reached_states, has_response
from fmilin.errors import FmilinError, NumericalError, join_first
from fmilin.linear_model.no_response import PUSH_SIZES
from fmilin.model.capabilities import read_second_order_form
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.signals import FloatArray

Answer = tuple[str, tuple[str, ...], str, bool]
SMALL_PUSH_SIZES = (1e-3, 1e-2)  # pushes, in sizes of the input, that a dead zone or a limit swallows
SMALL_POINT_DISTANCE, POINT_DISTANCES = (
    1e-3,
    (1e-3, 1.0, 30.0),
)  # how far another point is, in sizes of what moves; a factor shows at once
SYMMETRY_BREAKING_FRACTION = 0.1  # of a parameter that breaks a symmetry, relative
MAX_PARAMETERS = 40  # that are changed one by one
MAX_WIRES = 60  # tried between members that nothing joins


def find_held_outputs(channel: ExplainedChannel) -> Answer | None:
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
        if not has_response((linear.A, linear.B, linear.C, linear.D)):
            return None
    except FmilinError:
        return None
    text = (
        f"{_enumerate(names)} is sampled and holds its outputs between samples, so it transmits no signal in this "
        "linear model. fl.sampled_loop(system) is the model from sample to sample, which includes it."
    )
    return "held", names, text, True


def find_dead_zone_or_limit(channel: ExplainedChannel) -> Answer | None:
    """Limits, dead zones and friction: small pushes of the input move nothing at all, larger ones do."""
    model, j = channel.model, channel.model.inputs.index_of(channel.input)
    size = float(model.inputs.scales(channel.point.inputs)[j])
    undisturbed = _evaluate_displaced(channel, 0.0)
    if undisturbed is None or any(
        _differ_exactly(_evaluate_displaced(channel, sign * part * size), undisturbed)
        for part in SMALL_PUSH_SIZES
        for sign in (1, -1)
    ):
        return None
    sides = [
        s
        for s in (1, -1)
        if any(_differ_exactly(_evaluate_displaced(channel, s * part * size), undisturbed) for part in PUSH_SIZES)
    ]
    if not sides:
        return None
    value = float(channel.point.inputs[j])
    if len(sides) == 1:
        direction = "upwards" if sides[0] > 0 else "downwards"
        text = (
            f"'{channel.input}' is {value:g}, at or beyond a limit: only changes {direction} have an effect. Choose a "
            "point inside its range."
        )
        return "limit", (channel.input,), text, True
    text = (
        f"Small changes of '{channel.input}' have no effect in either direction, larger ones do: a dead zone, or "
        "static friction. Choose a point at which it moves, or make the friction smooth."
    )
    return "dead zone", (channel.input,), text, True


def _evaluate_displaced(channel: ExplainedChannel, displacement: float) -> FloatArray | None:
    model, inputs = channel.model, channel.point.inputs.copy()
    inputs[model.inputs.index_of(channel.input)] += displacement
    try:
        evaluation = model.evaluate(channel.point.time, channel.point.states, inputs)
    except FmilinError:
        return None
    return np.concatenate((evaluation.derivatives, evaluation.outputs))


def _differ_exactly(values: FloatArray | None, reference: FloatArray) -> bool:
    return values is not None and not np.array_equal(values, reference, equal_nan=True)


def find_symmetry(channel: ExplainedChannel) -> Answer | None:
    """Paths that cancel: what the input moves is odd, what the output sees is even."""
    linear = channel.linearize()
    if linear is None:
        return None
    clean = clear_inaccurate_entries(linear)
    moved_states = find_reached_states(clean.A, clean.B)
    if not (clean.D.any() or clean.C[:, moved_states].any()):  # no path
        return None
    added_states = [n for n, m, c in zip(linear.states.names, moved_states, clean.C[0], strict=True) if m and c != 0]
    model = channel.model
    breaking = []
    for name, value in model.parameters.items():
        try:
            if channel.responds(
                model.with_parameters({name: value + SYMMETRY_BREAKING_FRACTION * (abs(value) or 1.0)})
            ):
                breaking.append(name)
        except FmilinError:
            continue
    advice = f" Changing {_enumerate(breaking[:4])} breaks the symmetry." if breaking else ""
    text = (
        f"Paths lead from '{channel.input}' to '{channel.output}' and cancel: the excited motion is odd, the measured "
        f"one even (over {_enumerate(added_states)}). Measure one of them alone, or excite one side.{advice}"
    )
    return "symmetry", tuple(dict.fromkeys((*added_states, *breaking))), text, bool(breaking)


def find_zero_parameters(channel: ExplainedChannel) -> Answer | None:
    """Parameters that are zero."""
    zeros = [name for name, value in channel.model.parameters.items() if value == 0.0]

    def answers(names: Sequence[str]) -> bool:
        try:
            return channel.responds(channel.model.with_parameters(dict.fromkeys(names, 1.0)))
        except FmilinError:
            return False

    zero_names = _find_sufficient_change(zeros, answers)
    if not zero_names:
        return None
    text = (
        f"The parameter {_enumerate(zero_names)} is zero: with another value '{channel.input}' affects "
        f"'{channel.output}'."
    )
    return "parameter", zero_names, text, True


def find_cancelling_parameters(channel: ExplainedChannel) -> Answer | None:
    """Parameters with values at which the gain of a path is zero, such as a and b in ``(a - b) u`` where they agree."""
    model = channel.model
    values = _generic_values(channel)

    def answers(names: Sequence[str]) -> bool:
        try:
            return channel.responds(model.with_parameters({name: values[name] for name in names}))
        except FmilinError:
            return False

    names_to_change = _find_sufficient_change(list(values), answers)
    if not names_to_change:
        return None
    count = len(names_to_change)
    names_to_change = _add_alternatives(names_to_change, list(values), answers)
    values_text = join_first((f"{name} = {model.parameters[name]:g}" for name in names_to_change), 6)
    change = "that" if len(names_to_change) == 1 else f"{count} of them together" if count > 1 else "one of them"
    text = (
        f"A path leads from '{channel.input}' to '{channel.output}', and its gain is zero at these values of "
        f"parameters ({values_text}). Change {change} to open the channel."
    )
    return "parameter", names_to_change, text, True


def _generic_values(channel: ExplainedChannel) -> dict[str, float]:
    """Return other values of all parameters, each changed by another part, so that nothing cancels by chance."""
    return {
        name: value * (1.1 + 0.037 * (i % 11)) if value else 1.0 + 0.1 * (i % 7)
        for i, (name, value) in enumerate(channel.model.parameters.items())
    }


def find_vanishing_factor(channel: ExplainedChannel) -> Answer | None:
    """Search for a factor that is zero at the point: states, other inputs, the time."""
    model, point = channel.model, channel.point
    state_scales, input_scales = model.states.scales(point.states), model.inputs.scales(point.inputs)
    independent_states = channel.independent_states
    values = {n: (v, float(state_scales[model.states.index_of(n)])) for n, v in independent_states.items()}
    values |= {n: (float(point.inputs[i]), float(input_scales[i])) for i, n in enumerate(model.inputs.names)}
    values["time"] = (point.time, 1.0)
    for distance in POINT_DISTANCES:
        offsets = {name: distance * (1.0 + 0.13 * i % 0.5) for i, name in enumerate(values)}
        for sign in (1.0, -1.0):

            def answers(names: Sequence[str], offsets: Mapping[str, float] = offsets, sign: float = sign) -> bool:
                moved = channel.displace_point(
                    model, {n: values[n][0] + sign * offsets[n] * values[n][1] for n in names}
                )
                return moved is not None and channel.responds(None, moved)

            if names_to_change := _find_sufficient_change(list(values), answers):
                values_text = ", ".join(f"{n} = {values[n][0]:g}" for n in names_to_change)
                kind = "point" if distance == SMALL_POINT_DISTANCE else "limit"
                reason = (
                    "a factor on the path vanishes there" if kind == "point" else "a limit or a dead zone on the path"
                )
                text = (
                    f"It is due to the point ({values_text}): {reason}. At another value of "
                    f"{_enumerate(names_to_change)} the channel "
                    "is open: linearize there."
                )
                return kind, names_to_change, text, True
    return None


def find_point_and_parameters(channel: ExplainedChannel) -> Answer | None:
    """Look for factors that are zero at the point in addition to parameters that are zero or cancel, too."""
    values = _generic_values(channel)
    zeros = [name for name, value in channel.model.parameters.items() if value == 0.0]

    def at_another_point(names: Sequence[str]) -> Answer | None:
        try:
            return find_vanishing_factor(
                replace(channel, model=channel.model.with_parameters({n: values[n] for n in names}))
            )
        except FmilinError:
            return None

    names_to_change = _find_sufficient_change(zeros, lambda names: at_another_point(names) is not None)
    if not names_to_change and len(values) <= MAX_PARAMETERS:
        names_to_change = _find_sufficient_change(list(values), lambda names: at_another_point(names) is not None)
    answer = at_another_point(names_to_change) if names_to_change else None
    if answer is None:
        return None
    kind, culprits, text, confirmed = answer
    names_to_change = _add_alternatives(
        names_to_change, list(values), lambda names: at_another_point(names) is not None
    )
    predicate = "is zero" if set(names_to_change) <= set(zeros) else "makes the gain of a path zero"
    noun = "parameter" if len(names_to_change) == 1 else "parameters"
    predicate = predicate if len(names_to_change) == 1 else predicate.replace("is", "are").replace("makes", "make")
    text = f"The {noun} {_enumerate(names_to_change)} {predicate}, and with another value: {text}"
    return kind, (*names_to_change, *culprits), text, confirmed


def find_opposing_constraints(channel: ExplainedChannel) -> Answer | None:
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
        return has_response(_release_constraints(form, [i for i, name in enumerate(names) if name not in without]))

    labels = _find_sufficient_change(names, answers)
    if not labels:
        return None
    text = (
        f"The constraint {_enumerate(labels)} blocks the motion that '{channel.input}' would cause: without it "
        f"'{channel.output}' responds. Excite or measure along a remaining degree of freedom, or release the "
        "constraint."
    )
    return "constraint", labels, text, True


def _release_constraints(
    form: SecondOrderForm, rows: Sequence[int]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return A, B, C, D over all coordinates with some of the constraints, forces at the point included."""
    n, G = len(form.M), form.G[list(rows)]
    saddle = np.block([[form.M, G.T], [G, np.zeros((len(G), len(G)))]])
    right = np.hstack((form.force_states, form.force_inputs))
    a = np.linalg.lstsq(saddle, np.vstack((right, np.zeros((len(G), right.shape[1])))))[0]
    unknowns = np.zeros((form.output_unknowns.shape[1], right.shape[1]))
    unknowns[:n] = a[:n]
    output_matrix = np.hstack((form.output_states, form.output_inputs)) + form.output_unknowns @ unknowns
    order = np.concatenate((form.positions, form.velocities))
    A = np.vstack((np.hstack((np.zeros((n, n)), np.eye(n))), a[:n, : 2 * n][:, order]))
    B = np.vstack((np.zeros((n, right.shape[1] - 2 * n)), a[:n, 2 * n :]))
    return A, B, output_matrix[:, : 2 * n][:, order], output_matrix[:, 2 * n :]


def explain_missing_path(channel: ExplainedChannel) -> Answer:
    """No path at all: in a system the wire that is missing, else what is reached and what is seen."""
    if isinstance(channel.model, ConnectedModel) and (answer := _find_missing_wire(channel, channel.model)) is not None:
        return answer
    linear = channel.linearize()
    if linear is None:
        text = "There is no linear model at this point: linearize it first, and read the error."
        return "no path", (), text, False
    clean = clear_inaccurate_entries(linear)
    moved_states = [n for n, m in zip(clean.states.names, find_reached_states(clean.A, clean.B), strict=True) if m]
    sensed_states = [n for n, s in zip(clean.states.names, find_reached_states(clean.A.T, clean.C.T), strict=True) if s]
    movement = f"moves {_enumerate(moved_states)}" if moved_states else "affects no state"
    dependence = f"depends on {_enumerate(sensed_states)}" if sensed_states else "depends on no state"
    text = (
        f"There is no path at this point or near it: '{channel.input}' {movement}, '{channel.output}' {dependence}.  "
    )
    if channel.model.info.fmi_version:
        # Parameters of an FMU are fixed once it is initialized, so that cancelling ones look like a missing path.
        text += (
            "Parameters of an FMU are not varied: with other values, fl.load(source, parameters={'NAME': VALUE}), "
            "there may be a path, unless the equations lack the coupling."
        )
    else:
        text += "The equations do not couple them; choose another input or output."
    return "no path", tuple(dict.fromkeys((*moved_states, *sensed_states))), text, True


def _find_missing_wire(channel: ExplainedChannel, model: ConnectedModel) -> Answer | None:
    declaration = model.declaration
    input_members = {
        target[0]
        for i in model._chosen
        if declaration.feeds[i].signal.name == channel.input
        for target, _ in declaration.feeds[i].targets
    }
    output_members = {w.source[0] for w in declaration.outputs if w.name == channel.output} or {
        split(channel.output, model.members)[0]
    }
    downstream = _find_reachable(input_members, [(k.source[0], k.target[0]) for k in declaration.links])
    upstream = _find_reachable(output_members, [(k.target[0], k.source[0]) for k in declaration.links])
    if downstream & upstream:
        return None
    wired_inputs = {k.target for k in declaration.links}
    targets = [(m, s.name) for m in sorted(upstream) for s in model.members[m].inputs]
    targets.sort(key=lambda target: target in wired_inputs)  # those that no output feeds first
    sources = [(m, s.name) for m in sorted(downstream) for s in model.members[m].outputs]
    for target in targets[:MAX_WIRES]:
        for source in sources[: max(1, MAX_WIRES // max(len(targets), 1))]:
            links = [*(k for k in declaration.links if k.target != target), WireLink(source, target, NO_CHANGE)]
            if _has_response(channel, model, replace(_remove_input_wires(declaration, target), links=links)):
                wire = (qualify(*source), qualify(*target))
                text = (
                    f"No wire leads from {_enumerate(sorted(downstream))} to {_enumerate(sorted(upstream))}. With one "
                    f"from '{wire[0]}' to '{wire[1]}' the channel is open."
                )
                return "no path", wire, text, True
    start, end = _enumerate(sorted(downstream)), _enumerate(sorted(upstream))
    text = f"No wire leads from {start} to {end}, and no added wire that was tried opens the channel."
    return "no path", (*sorted(downstream), *sorted(upstream)), text, False


def _remove_input_wires(declaration: SystemDeclaration, target: tuple[str, str]) -> SystemDeclaration:
    """Return the declaration with no input of the system that feeds a member's input."""
    fewer = [
        (i, replace(f, targets=tuple(t for t in f.targets if t[0] != target))) for i, f in enumerate(declaration.feeds)
    ]
    nonempty = [(i, f) for i, f in fewer if f.targets]
    chosen = [k for k, (i, _) in enumerate(nonempty) if declaration.chosen is None or i in declaration.chosen]
    return replace(declaration, feeds=[f for _, f in nonempty], chosen=chosen)


def _has_response(channel: ExplainedChannel, model: ConnectedModel, declaration: SystemDeclaration) -> bool:
    try:
        changed_system = type(model)(declaration, owner=False)
        return channel.responds(changed_system, replace(channel.point, inputs=changed_system.start.inputs))
    except FmilinError:
        return False


def _find_reachable(start: set[str], edges: Sequence[tuple[str, str]]) -> set[str]:
    reachable = set(start)
    while more := {b for a, b in edges if a in reachable} - reachable:
        reachable |= more
    return reachable


def _find_sufficient_change(names: Sequence[str], answers: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """Return those of the names that must change for the channel to answer; none where all together do not help."""
    if not names or not answers(names):
        return ()
    for name in names:
        if answers([name]):
            return (name,)
    sufficient = list(names)
    for name in names:
        fewer = [n for n in sufficient if n != name]
        if fewer and answers(fewer):
            sufficient = fewer
    return tuple(sufficient)


def _add_alternatives(
    sufficient_names: Sequence[str], names: Sequence[str], answers: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Return also those names that do the same in the place of one of the needed ones, in the order of all names."""
    if len(names) > MAX_PARAMETERS:
        return tuple(sufficient_names)
    sufficient = set(sufficient_names)
    for name in sufficient_names:
        remaining = [other for other in sufficient_names if other != name]
        sufficient |= {other for other in names if other not in sufficient_names and answers([*remaining, other])}
    return tuple(name for name in names if name in sufficient)


def _enumerate(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names[:6]]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted) or "nothing"


Cause = Callable[[ExplainedChannel], Answer | None]
CAUSES: tuple[Cause, ...] = (
    find_held_outputs,
    find_dead_zone_or_limit,
    find_symmetry,
    find_zero_parameters,
    find_cancelling_parameters,
    find_vanishing_factor,
    find_point_and_parameters,
    find_opposing_constraints,
    explain_missing_path,
)
"""In the order in which they are asked for; the last one always answers."""
