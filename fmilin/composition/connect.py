"""``fl.connect``: models wired together become one model, with events where members have them; sampled closed loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from fmilin.composition.cosimulation import Cosimulation, LinearizedMember, Master
from fmilin.composition.delayed_system import DelayedSystem, WireDelay, delay_system, expand_delays
from fmilin.composition.linear_member import SampledMember, at_rest, from_linear, linear_from_control, with_outputs
from fmilin.composition.master import base_step
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import (
    NO_CHANGE,
    Connection,
    Feed,
    SystemOutput,
    WireLink,
    in_member,
    qualify,
    resolve_inputs,
    resolve_links,
    resolve_outputs,
)
from fmilin.errors import UsageError
from fmilin.linear_model.model import DelayedLinearModel, LinearModel
from fmilin.linearization.linearize import linearize, linearize_as
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import model_at, operating_point
from fmilin.model.capabilities import (
    CutDelays,
    HasDiscreteStates,
    HasEvents,
    read_discrete_states,
    read_event_indicators,
)
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.model.stepping import Hybrid, Passage, Stepped
from fmilin.models.delayed_model import DelayedModel
from fmilin.options import Linearization
from fmilin.options.function_options import (
    CoordinateOptions,
    given_options,
    reject_without_meaning,
    takes_linearization,
)
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.kinds import kinds_checked
from fmilin.tolerances import MAX_SEPARATION_CONDITION_NUMBER

if TYPE_CHECKING:
    from control import StateSpace, TransferFunction


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
    Raises UsageError when this is no connected system, nothing is sampled, sample times have no common period, or one
    regulator feeds another.

    Parameters
    ----------
    model : ConnectedModel
        With sampled members, which feed continuous members only. Where their sample times differ, the model is lifted
        over their common period: inputs are held over it.
    point : OperatingPoint, optional
        Where the system starts by default.
    linearization : Linearization, optional
        How the plant is linearized; its options may be keywords instead.
    """
    return linearize_sampled_loop(model, point, Request.of("sampled_loop", linearization, options))


def linearize_sampled_loop(model: ConnectedModel, point: OperatingPoint | None, request: Request) -> LinearModel:
    """Return the loop that a request describes; see :func:`sampled_loop`."""
    reject_without_meaning("sampled_loop", given_options(request))
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    times = {m.linear.sample_time for m in sampled.values()}
    if not times:
        raise UsageError(f"No member of '{model.info.name}' is sampled: fl.linearize(system) returns its linear model.")
    step, periods = base_step(sorted(times))
    point = operating_point(model) if point is None else point
    model = model_at(model, point)  # type: ignore[assignment]
    continuous, declaration = _split(model, sampled)
    plant = linearize_as(continuous, _plant_point(continuous, model, point), request)
    loop_system = build_system(replace(declaration, members={_PLANT: from_linear(plant), **sampled}))
    parts = {_PLANT: plant, **{name: m.linear for name, m in sampled.items()}}
    members = tuple(
        LinearizedMember(
            part.name,
            with_outputs(member_linear, [member_linear.outputs.index_of(name) for name in part.model.outputs.names]),
        )
        for part in loop_system.coupling.parts
        for member_linear in (parts[part.name],)
    )
    master = Master("gauss-seidel", (*sampled, _PLANT))
    member_periods = {name: periods[m.linear.sample_time] for name, m in sampled.items()}
    loop = Cosimulation(loop_system, operating_point(loop_system), master, step, plant, members, member_periods)
    return _restore_names(loop.linear, model)


_PLANT = "plant of the loop"


def approximate_loop(model: ConnectedModel, point: OperatingPoint, request: Request) -> LinearModel:
    """Return a continuous approximation of the same, with :func:`continuous_law` for each regulator."""
    reject_without_meaning("sampled_loop", given_options(request))
    sampled = {name: m for name, m in model.members.items() if isinstance(m, SampledMember)}
    continuous, declaration = _split(model, sampled)
    plant = linearize_as(continuous, _plant_point(continuous, model, point), request)
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


def _split(model: ConnectedModel, sampled: Mapping[str, SampledMember]) -> tuple[ConnectedModel, SystemDeclaration]:
    """Return the continuous members as a system of their own, and how the regulators are wired to it."""
    d = model.declaration
    inner = [link for link in d.links if link.source[0] not in sampled and link.target[0] not in sampled]
    held_links = [link for link in d.links if link.source[0] in sampled and link.target[0] not in sampled]
    read = [link for link in d.links if link.source[0] not in sampled and link.target[0] in sampled]
    if len(inner) + len(held_links) + len(read) < len(d.links):
        raise UsageError("One sampled regulator feeds another: combine them into one first.")
    plant_feeds = [f for f in (d.feeds[i] for i in model._chosen) if any(t[0] not in sampled for t, _ in f.targets)]
    feeds = [replace(f, targets=tuple(x for x in f.targets if x[0][0] not in sampled)) for f in plant_feeds]
    feeds += [Feed(Signal(f"held {qualify(*k.target)}"), ((k.target, k.change),)) for k in held_links]
    direct_outputs = [w for w in d.outputs if w.source[0] not in sampled]
    sources = list(dict.fromkeys(link.source for link in read))
    plant_outputs = [*direct_outputs, *(SystemOutput(f"read {qualify(*s)}", s) for s in sources)]
    members = {name: m for name, m in model.members.items() if name not in sampled}
    plant = build_system(SystemDeclaration(_PLANT, members, inner, feeds, plant_outputs))
    links = [WireLink((_PLANT, f"read {qualify(*k.source)}"), k.target, k.change) for k in read]
    links += [WireLink(k.source, (_PLANT, f"held {qualify(*k.target)}"), NO_CHANGE) for k in held_links]
    outer = []
    for i in model._chosen:
        f = d.feeds[i]
        targets = [((_PLANT, f.signal.name), NO_CHANGE)] if any(t[0] not in sampled for t, _ in f.targets) else []
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


__all__ = ["Connection", "HybridSystem", "build_member", "build_system", "connect"]


def build_system(declaration: SystemDeclaration) -> ConnectedModel:
    """Return the model; a :class:`Hybrid` one where a member is."""
    hybrid = any(isinstance(model, Hybrid) for model in declaration.members.values())
    return (HybridSystem if hybrid else ConnectedModel)(declaration)


class HybridSystem(ConnectedModel, Hybrid, HasEvents, HasDiscreteStates):
    """A connected system with members that have events."""

    def _hybrids(self) -> dict[str, Hybrid]:
        return {part.name: part.model for part in self.coupling.parts if isinstance(part.model, Hybrid)}

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the event indicators of all members, one member after the other."""
        indicators = self._at_members(
            t, x, u, lambda m, member_states, v: read_event_indicators(m, t, member_states, v)
        )
        return np.concatenate([np.empty(0), *indicators])

    def discrete_states(self) -> Mapping[str, str]:
        """Return the discrete states of all members, each with the name of its member."""
        return {
            qualify(name, state): text
            for name, member in self.members.items()
            for state, text in read_discrete_states(member).items()
        }

    def restart(self) -> None:
        """Return all members to the mode in which they start."""
        self.coupling.forget()
        for name, member in self._hybrids().items():
            with in_member(name):
                member.restart()

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out what happens at a point in every member, with the inputs that stood just before."""
        return self._pass_to_members(t, x, u, lambda m, member_states, v: m.pass_event(t, member_states, v))

    def completed_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Tell every member that a step was accepted."""
        return self._pass_to_members(t, x, u, lambda m, member_states, v: m.completed_step(t, member_states, v))

    def _pass_to_members(
        self, t: float, x: FloatArray, u: FloatArray, act: Callable[[Any, FloatArray, FloatArray], Passage]
    ) -> Passage:
        passages = self._at_members(
            t,
            x,
            u,
            lambda model, member_states, v: (
                act(model, member_states, v) if isinstance(model, Hybrid) else Passage(member_states)
            ),
        )
        self.coupling.forget()
        states = np.concatenate([np.empty(0), *(p.states for p in passages)])
        return Passage(states, any(p.wants_event for p in passages), any(p.terminates for p in passages))

    @property
    def remembers_mode(self) -> bool:
        """Whether every member does."""
        return all(member.remembers_mode for member in self._hybrids().values())

    def next_event_time(self) -> float | None:
        """Return when the first of the members' time events is due."""
        times = [t for member in self._hybrids().values() if (t := member.next_event_time()) is not None]
        return min(times, default=None)


@overload
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: None = None,
) -> ConnectedModel: ...
@overload
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: Mapping[str, float],
) -> DelayedSystem: ...
@kinds_checked
def connect(
    members: Mapping[str, Model | LinearModel | StateSpace | TransferFunction],
    connections: Iterable[Connection | Sequence[str | float]] = (),
    *,
    inputs: Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
    outputs: Sequence[str] | Mapping[str, str] | None = None,
    name: str = "system",
    delays: Mapping[str, float] | None = None,
) -> ConnectedModel | DelayedSystem:
    """Return models that are wired together as one model.

    It is a model like any other: states ``member.state``, the constraints of its members, exact derivatives through
    algebraic loops where all members have exact derivatives. ``linearize``, ``trim``, ``simulate``, ``verify``, exports
    and ``fmilin build`` take it. Closing it closes the members. Raises UsageError or UnknownNameError when a name is
    unknown, units do not fit, sizes differ, or an input is fed twice; NumericalError when an algebraic loop has no
    solution, or no single one: det(I - K D) = 0.

    Parameters
    ----------
    members : mapping of str to member
        By name: a :class:`~fmilin.Model` of any source, a :class:`~fmilin.LinearModel`, or a linear system of
        python-control. A co-simulation FMU is identified first. A sampled member holds its outputs between its samples:
        :func:`fmilin.sampled_loop`.
    connections : iterable of (source, target), (source, target, factor) or (source, target, factor, offset)
        ``("plant.y", "controller.u")``: an input gets factor times the output plus offset, after a conversion of units
        where both ends have one. An output may feed several inputs, an input takes one output. The name of an array
        means all its elements. :class:`Connection` says more.
    inputs : sequence of str, or mapping of str to str or sequence of str, optional
        Inputs of members that are inputs of the system; as a mapping, under names of their own. By default all that
        nothing feeds. Others stay at their start values.
    outputs : sequence of str, or mapping of str to str, optional
        Variables of members; by default all their outputs.
    name : str
        Of the system.
    delays : mapping of str to float, optional
        Dead time in seconds of what reaches inputs of members, ``{"plant.u": 0.02}``. The result is a
        :class:`~fmilin.composition.delayed_system.DelayedSystem`: it is trimmed and linearized, and linear models of it
        have these delays exactly. A member that is a linear model or a system with delays needs ``delays``, ``{}`` if
        no others are added.

    Examples
    --------
    >>> import control
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> spring = control.ss([], [], [], [[-3.0]], inputs=["x"], outputs=["force"])
    >>> plant = OdeModel("cart", {"s": "v", "v": "F"}, inputs=["F"], outputs={"x": "s"})
    >>> system = fl.connect({"cart": plant, "spring": spring}, [("cart.x", "spring.x"), ("spring.force", "cart.F")])
    >>> fl.linearize(system).A
    array([[ 0.,  1.],
           [-3.,  0.]])
    """
    if not isinstance(members, Mapping) or not members:
        raise UsageError("'members' must be a mapping of names to models, with at least one member.")
    models: dict[str, Model] = {}
    inner_links: list[WireLink] = []
    inner_delays: dict[tuple[str, str], WireDelay] = {}
    for member, source in members.items():
        if not isinstance(member, str) or not member:
            raise UsageError(f"The name of a member must be a text, not {member!r}.")
        with in_member(member):
            cut = None if delays is None else cut_member(source)
            models[member] = build_member(member, source if cut is None else cut.model)
        if cut is not None:
            more_links, more_delays = expand_delays(member, cut)
            inner_links += more_links
            inner_delays |= more_delays
    links = [*resolve_links(models, connections), *inner_links]
    feeds = resolve_inputs(models, links, inputs)
    chosen_outputs = resolve_outputs(models, outputs)
    if outputs is None:
        ends = {link.source for link in inner_links}
        chosen_outputs = [output for output in chosen_outputs if output.source not in ends]
    system = build_system(SystemDeclaration(name, models, links, feeds, chosen_outputs))
    fed = {link.target for link in links} | {target for feed in feeds for target, _ in feed.targets}
    inner_delays = {end: delay for end, delay in inner_delays.items() if end in fed}
    return system if delays is None else delay_system(system, delays, inner_delays)


def cut_member(source: object) -> CutDelays | None:
    """Return a member that has delays without them, with inputs and outputs where they were; None if it has none."""
    if isinstance(source, DelayedLinearModel):
        core = from_linear(source.core)
        return CutDelays(core, core.start, list(source.delays), list(source.delays.values()), {})
    if not isinstance(source, (DelayedModel, DelayedSystem)):
        return None
    cut = source.cut_delays(source.start)
    if own_inputs := dict.fromkeys(cut.shared_inputs.values()):
        raise UsageError(
            f"'{source.info.name}' delays its own inputs ({', '.join(own_inputs)}) for some of its members: delay the "
            "connections to them instead."
        )
    return cut


def build_member(name: str, source: Any) -> Model:
    """Return what is connected as a model."""
    if isinstance(source, LinearModel):
        return SampledMember(source) if source.sample_time else from_linear(source)
    if isinstance(source, Stepped):
        from fmilin.linearization.linearize import linearize

        return from_linear(linearize(source))  # type: ignore[arg-type]
    if isinstance(source, (DelayedSystem, DelayedModel)):
        source.evaluate(0.0, source.start.states, source.start.inputs)  # raises: connect(..., delays={}) keeps delays
    if isinstance(source, Model):
        source.require_rates("connect it as it is: connect its linear model")
        return source
    if isinstance(source, (str, bytes)) or hasattr(source, "__fspath__"):
        raise UsageError(f"The member '{name}' is a text or path: load it first, fl.load({str(source)!r}).")
    linear = linear_from_control(name, source)
    return SampledMember(linear) if linear.sample_time else from_linear(linear)
