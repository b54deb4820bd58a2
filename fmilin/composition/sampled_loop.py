"""Sampled members in a loop with continuous ones: exact discrete linear models, and continuous approximations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import lcm
from typing import Unpack

import numpy as np

from fmilin.composition.discrete_system import DiscreteSystem
from fmilin.composition.hybrid_system import build_system
from fmilin.composition.linear_member import SampledMember, at_rest, from_linear, with_outputs
from fmilin.composition.master import LinearizedMember, base_step
from fmilin.composition.sample_delays import DelayChains
from fmilin.composition.sampled_period import SamplingPattern, compute_period
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import NO_CHANGE, Feed, SystemOutput, WireLink, qualify
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize, linearize_request, linearize_samples
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.capabilities import HasSamples
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import (
    CoordinateOptions,
    given_options,
    reject_without_meaning,
    takes_linearization,
)
from fmilin.signals import Signal, Signals
from fmilin.tolerances import MAX_SEPARATION_CONDITION_NUMBER

End = tuple[str, str]  # a member and one of its inputs


@one_at_a_time
@takes_linearization
def sampled_loop(
    model: ConnectedModel,
    point: OperatingPoint | None = None,
    *,
    linearization: Linearization | None = None,
    **options: Unpack[CoordinateOptions],
) -> LinearModel:
    """Return the discrete linear model of a plant with sampled regulators, from sample to sample.

    It has a ``sample_time``, the states of the plant, then those of the regulators. The plant between two samples is
    exact: its outputs are read at t_k, every regulator answers at once, and what it answers is held until t_(k+1).
    Sampled members that feed each other are read at the same instant, in the order in which they depend on each other.
    Raises UsageError when this is not a connected system, nothing is sampled, or sample times have no common period;
    NumericalError for an algebraic loop among sampled members.

    Parameters
    ----------
    model : ConnectedModel
        With sampled members. Where their sample times differ, the model is lifted over their common period: inputs are
        held over it.
    point : OperatingPoint, optional
        Where the system starts by default.
    linearization : Linearization, optional
        How the plant is linearized; its options may be keywords instead.
    """
    return linearize_sampled_loop(model, point, Request.of("sampled_loop", linearization, options))


def linearize_sampled_loop(
    model: ConnectedModel,
    point: OperatingPoint | None,
    request: Request,
    delays: Mapping[End, float] | None = None,
) -> LinearModel:
    """Return the loop that a request describes; see :func:`sampled_loop`.

    ``delays`` in seconds are those of what reaches inputs of members from sampled members, from inputs of the system,
    and from the plant to sampled members.
    """
    reject_without_meaning("sampled_loop", given_options(request))
    if isinstance(model, HasSamples):
        return linearize_samples(model, operating_point(model) if point is None else point, request)
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    times = {m.linear.sample_time for m in sampled.values()}
    if not times:
        raise UsageError(f"No member of '{model.info.name}' is sampled: fl.linearize(system) returns its linear model.")
    point = operating_point(model) if point is None else point
    model = apply_point_parameters(model, point)  # type: ignore[assignment]
    continuous, declaration = _split(model, sampled, delays or {})
    feeds = [
        replace(feed, signal=feed.signal.with_start(value))
        for feed, value in zip(declaration.feeds, point.inputs.tolist(), strict=True)
    ]
    declaration = replace(declaration, feeds=feeds)
    plant = linearize_request(continuous, _plant_point(continuous, model, point), request)
    members: dict[str, Model] = {_PLANT: from_linear(plant), **sampled}
    chains = DelayChains(times)
    declaration = _insert_delays(declaration, members, chains, delays or {})
    step, multiples = base_step(sorted(times), sorted(chains.offsets))
    patterns = {name: SamplingPattern(multiples[m.linear.sample_time]) for name, m in sampled.items()}
    for name, member in chains.members.items():
        members[name] = SampledMember(member.linear)
        patterns[name] = SamplingPattern(
            multiples[member.linear.sample_time], multiples[member.offset] if member.offset else 0
        )
    loop_system = build_system(replace(declaration, members=members))
    linear_members = tuple(
        LinearizedMember(
            part.name,
            with_outputs(linear, [linear.outputs.index_of(name) for name in part.model.outputs.names]),
        )
        for part in loop_system.coupling.parts
        for linear in (plant if part.name == _PLANT else _get_sampled(members[part.name]),)
    )
    count = lcm(*(multiples[time] for time in times))
    lifted = f" over {count * step:g} s, over which inputs are held" if len(times) > 1 else ""
    text = (
        f"The discrete model of sampled members and the continuous ones between samples{lifted}: outputs are read, "
        "answered and held at the same instant."
    )
    discrete = DiscreteSystem(loop_system, operating_point(loop_system), plant, linear_members, count * step, text)
    linear = discrete.build(
        lambda changed: compute_period(loop_system, [m.linear for m in changed], patterns, step, count)
    )
    return _restore_names(linear, model)


def _get_sampled(member: Model) -> LinearModel:
    if not isinstance(member, SampledMember):
        raise TypeError(member)
    return member.linear


def _insert_delays(
    declaration: SystemDeclaration, members: Mapping[str, Model], chains: DelayChains, delays: Mapping[End, float]
) -> SystemDeclaration:
    """Return the wires of a loop with delays in them; ``chains`` collects the members that delay."""
    links = []
    late = {_place_in_plant(end): (end, seconds) for end, seconds in delays.items()}
    for link in declaration.links:
        end, seconds = late.get(link.target, (link.target, delays.get(link.target, 0.0)))
        if not seconds:
            links.append(link)
            continue
        inputs = members[link.target[0]].inputs
        start = float(inputs.starts[inputs.positions[link.target[1]]])
        source = members[link.source[0]]
        own_time = source.linear.sample_time if isinstance(source, SampledMember) else None
        reader = members[link.target[0]]
        read_time = reader.linear.sample_time if isinstance(reader, SampledMember) else None
        value = (start - link.change.offset) / link.change.factor if link.change.factor else 0.0
        names = chains.add(qualify(*end), seconds, own_time, read_time, value)
        ends = [link.source, *((name, variable) for name in names for variable in ("in", "out")), link.target]
        pairs = list(zip(ends[::2], ends[1::2], strict=True))
        links += [WireLink(a, b, NO_CHANGE) for a, b in pairs[:-1]]
        links.append(WireLink(*pairs[-1], link.change))
    feeds = []
    for feed in declaration.feeds:
        targets = []
        for target, change in feed.targets:
            end, seconds = late.get(target, (target, delays.get(target, 0.0)))
            if not seconds:
                targets.append((target, change))
                continue
            names = chains.add(qualify(*end), seconds, max(chains.times), None, feed.signal.start)
            if not names:
                targets.append((target, change))
                continue
            ends = [*((name, variable) for name in names for variable in ("in", "out")), target]
            targets.append((ends[0], NO_CHANGE))
            pairs = list(zip(ends[1::2], ends[2::2], strict=True))
            links += [WireLink(a, b, NO_CHANGE) for a, b in pairs[:-1]]
            links.append(WireLink(*pairs[-1], change))
        feeds.append(replace(feed, targets=tuple(targets)))
    return replace(declaration, links=links, feeds=feeds)


def _place_in_plant(end: End) -> End:
    """Return the input of the plant that stands for an input of one of its members."""
    return _PLANT, f"held {qualify(*end)}"


_PLANT = "plant of the loop"


def approximate_loop(model: ConnectedModel, point: OperatingPoint, request: Request) -> LinearModel:
    """Return a continuous approximation of the same, with :func:`continuous_law` for each regulator."""
    reject_without_meaning("sampled_loop", given_options(request))
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    continuous, declaration = _split(model, sampled, {})
    plant = linearize_request(continuous, _plant_point(continuous, model, point), request)
    laws = {name: from_linear(continuous_law(m.linear)) for name, m in sampled.items()}
    return _restore_names(
        linearize(build_system(replace(declaration, members={_PLANT: from_linear(plant), **laws}))), model
    )


def continuous_law(linear: LinearModel) -> LinearModel:
    """Return a sampled model, by Tustin's rule, w = s h/2, and Pade's (1 - s h/4)/(1 + s h/4) for what is held."""
    h, one, k = linear.sample_time, np.eye(len(linear.A)), len(linear.outputs)
    if np.linalg.cond(linear.A + one) > MAX_SEPARATION_CONDITION_NUMBER:
        raise UsageError(
            f"'{linear.model.name}' has a pole at z = -1, which no continuous system has: leave out continuous=True."
        )
    M = np.linalg.inv(linear.A + one)
    A, B = 2 / h * M @ (linear.A - one), 4 / h * M @ linear.B
    C, D = linear.C @ M, linear.D - linear.C @ M @ linear.B
    hold_states = Signals(Signal(f"hold of {s.name}", s.unit, s.nominal) for s in linear.outputs)
    matrices = (
        np.block([[A, np.zeros((len(A), k))], [8 / h * C, -4 / h * np.eye(k)]]),
        np.vstack((B, 8 / h * D)),
        np.hstack((-C, np.eye(k))),
        -D,
    )
    law = at_rest(linear.model, (Signals([*linear.states, *hold_states]), linear.inputs, linear.outputs), matrices, 0.0)
    start = {s.name: 0.0 for s in hold_states} | dict(zip(linear.states.names, linear.y0.tolist(), strict=True))
    y0 = np.concatenate((linear.y0, np.zeros(k)))
    return replace(law, y0=y0, point=replace(linear.point, states={s.name: start[s.name] for s in law.states}))


def _split(
    model: ConnectedModel, sampled: Mapping[str, SampledMember], delays: Mapping[End, float]
) -> tuple[ConnectedModel, SystemDeclaration]:
    """Return the continuous members as a system of their own, and how the regulators are wired to it."""
    d = model.declaration
    inner = [link for link in d.links if link.source[0] not in sampled and link.target[0] not in sampled]
    held_links = [link for link in d.links if link.source[0] in sampled and link.target[0] not in sampled]
    read = [link for link in d.links if link.source[0] not in sampled and link.target[0] in sampled]
    between = [link for link in d.links if link.source[0] in sampled and link.target[0] in sampled]
    if late := [link for link in inner if delays.get(link.target)]:
        raise UsageError(
            f"The wire to '{qualify(*late[0].target)}' has a delay between continuous members, in a loop with sampled "
            "ones, which has no finite model from sample to sample. Replace the delay by a Padé approximation."
        )
    chosen_feeds = [d.feeds[i] for i in model._chosen]
    plant_feeds, late_feeds = [], []
    for feed in chosen_feeds:
        ends = [end for end in feed.targets if end[0][0] not in sampled]
        prompt = tuple(end for end in ends if not delays.get(end[0]))
        late_feeds += [(feed, *end) for end in ends if delays.get(end[0])]
        if prompt:
            plant_feeds.append(replace(feed, targets=prompt))
    feeds = [*plant_feeds]
    feeds += [Feed(Signal(f"held {qualify(*k.target)}"), ((k.target, k.change),)) for k in held_links]
    feeds += [
        Feed(Signal(f"held {qualify(*end)}", start=feed.signal.start), ((end, change),))
        for feed, end, change in late_feeds
    ]
    direct_outputs = [w for w in d.outputs if w.source[0] not in sampled]
    sources = list(dict.fromkeys(link.source for link in read))
    plant_outputs = [*direct_outputs, *(SystemOutput(f"read {qualify(*s)}", s) for s in sources)]
    members = {name: m for name, m in model.members.items() if name not in sampled}
    plant = build_system(SystemDeclaration(_PLANT, members, inner, feeds, plant_outputs))
    links = [WireLink((_PLANT, f"read {qualify(*k.source)}"), k.target, k.change) for k in read]
    links += [WireLink(k.source, (_PLANT, f"held {qualify(*k.target)}"), NO_CHANGE) for k in held_links]
    links += between
    prompt_names = {feed.signal.name for feed in plant_feeds}
    outer = []
    for f in chosen_feeds:
        targets = [((_PLANT, f.signal.name), NO_CHANGE)] if f.signal.name in prompt_names else []
        targets += [((_PLANT, f"held {qualify(*end)}"), NO_CHANGE) for feed, end, _ in late_feeds if feed is f]
        targets += [x for x in f.targets if x[0][0] in sampled]
        outer.append(Feed(f.signal, tuple(targets)))
    out = [w if w.source[0] in sampled else SystemOutput(w.name, (_PLANT, w.name)) for w in d.outputs]
    return plant, SystemDeclaration(model.info.name, {}, links, outer, out)


def _plant_point(plant: ConnectedModel, model: ConnectedModel, point: OperatingPoint) -> OperatingPoint:
    at = model.coupling.settle(point.time, point.states, point.inputs)
    sources = {link.target: link.source for link in model.declaration.links}
    inputs = []
    for feed in plant.declaration.feeds:
        name = feed.signal.name
        if model.inputs.has(name):
            inputs.append(point.inputs[model.inputs.positions[name]])
        elif feed.targets[0][0] not in sources:  # an input of the system that comes late
            inputs.append(float(at.inputs[model.coupling.wires.names.index(qualify(*feed.targets[0][0]))]))
        else:
            inputs.append(at.outputs[model._taps[sources[feed.targets[0][0]]]])
    return OperatingPoint(point.time, point.states, np.array(inputs, dtype=float), {})


def _restore_names(linear: LinearModel, model: ConnectedModel) -> LinearModel:
    """Give the plant's states the names that they have in the system."""

    def strip_prefix(signal: Signal) -> Signal:
        return replace(signal, name=signal.name.removeprefix(f"{_PLANT}."), aliases=())

    point = linear.point
    states = {name.removeprefix(f"{_PLANT}."): value for name, value in point.states.items()}
    y, x = (Signals(map(strip_prefix, signals)) for signals in (linear.states, linear.full_states))
    return replace(linear, point=replace(point, states=states), states=y, full_states=x, model=model.info)
