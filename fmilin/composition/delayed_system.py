"""Connected systems with delays on wires: a model that is linearized exactly.

The equations of such a system are not x' = f(t, x, u): it cannot be evaluated, so that code which is not made for
delays stops with a sentence. Its equilibria are those of the system without delays. For a linear model the delayed
wires are cut: what each of them carries becomes an input w, and what it brings an output z.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Self

import numpy as np

from fmilin.composition.linear_member import HeldMember
from fmilin.composition.sampled_loop import End, linearize_sampled_loop
from fmilin.composition.sampled_system import SampledSystem
from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import (
    NO_CHANGE,
    Feed,
    SystemOutput,
    WireLink,
    qualify,
    resolve_delays,
)
from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError, quote_first
from fmilin.linear_model.builder import find_inputs, with_inputs
from fmilin.linear_model.delay_channels import name_ends
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.model.capabilities import CutDelays, HasDelays, HasMembers, HasSamples
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.models.map_model import MapModel
from fmilin.signals import FloatArray, Signal
from fmilin.support.kinds import kinds_checked


@dataclass(frozen=True)
class WireDelay:
    """The delay of what reaches an input of a member."""

    name: str
    seconds: float
    # returns the seconds for other parameters of the member, where they depend on these
    compute: Callable[[Mapping[str, float]], float] | None = None


class DelayedSystem(Model, HasDelays, HasMembers):
    """A connected system with delays, which ``fl.connect(..., delays={"plant.u": 0.02})`` returns.

    ``fl.trim``, ``fl.operating_point``, ``fl.linearize``, ``fl.loop_transfer``, ``fl.sensitivity`` and ``fl.opened``
    take it; linear models of it have the delays. Other functions raise a UsageError. ``system`` is the same without
    delays.
    """

    _made_by = "fl.connect(members, connections, delays={'plant.u': 0.02}) makes one"

    def __init__(self, system: ConnectedModel, delays: Mapping[End, WireDelay]) -> None:
        self.system = system
        self.wire_delays = dict(delays)
        self.info = system.info
        self.states, self.inputs, self.outputs = system.states, system.inputs, system.outputs
        self.constraints, self.start = system.constraints, system.start
        self.parameters, self.moves_parameters = system.parameters, system.moves_parameters
        self.independent, self.independent_by_default = system.independent, system.independent_by_default

    @property
    def delays(self) -> Mapping[str, float]:
        """The delays in seconds, by the input at which the wire ends."""
        return {delay.name: delay.seconds for delay in self.wire_delays.values()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the system."""
        return self.system.notes

    @property
    def used_alone(self) -> tuple[object, ...]:
        """The resources of the members."""
        return self.system.used_alone

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Raise UsageError: derivatives depend on the past, too."""
        self._reject()

    def _reject(self) -> NoReturn:
        raise UsageError(
            f"'{self.info.name}' has delays ({quote_first(list(self.delays), 4)}), and this is not made for delays: it "
            "would ignore them. Linearize the system (fl.linearize) and use the linear model; system.system is the "
            "same without delays."
        )

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Self:
        """Return the system with chosen inputs and outputs, as :meth:`fmilin.Model.with_interface`."""
        return type(self)(self.system.with_interface(inputs, outputs), self.wire_delays)

    @kinds_checked
    def with_constraints(self, constraints: Sequence[Constraint]) -> Self:
        """Return the same system with these constraints instead of its members'."""
        return type(self)(self.system.with_constraints(constraints), self.wire_delays)

    @kinds_checked
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same system with other parameters of its members, ``member.name``; delays follow them."""
        system = self.system.with_parameters(values)
        delays = dict(self.wire_delays)
        for end, delay in self.wire_delays.items():
            if delay.compute is not None:
                delays[end] = replace(delay, seconds=delay.compute(system.members[end[0]].parameters))
        return type(self)(system, delays)

    def is_member_input(self, name: str) -> bool:
        """Return whether a name denotes inputs of a member."""
        return self.system.is_member_input(name)

    @kinds_checked
    def with_wire_delays(self, delays: Mapping[str, float]) -> DelayedSystem:
        """Return the system with other or further ``delays``, in seconds, by the names of inputs of members."""
        return delay_system(self.system, delays, self.wire_delays)

    def close(self) -> None:
        """Close the members."""
        self.system.close()

    def without_delays(self) -> ConnectedModel:
        """Return the system in which everything arrives at once; it has the same equilibria."""
        return self.system

    def cut_delays(self, point: OperatingPoint) -> CutDelays:
        """Return the system with delayed wires cut: its last inputs are w, its last outputs z."""
        if point.parameters:
            changed = self.with_parameters(point.parameters)
            return changed.cut_delays(replace(point, parameters={}))
        system = self.system
        values = system.coupling.settle(point.time, point.states, point.inputs).inputs
        names = system.coupling.wires.names
        d = system.declaration
        links = {link.target: link for link in d.links}
        cuts, of_inputs, shared_inputs = [], {}, {}
        feeds, outputs = list(d.feeds), list(d.outputs)
        shared: dict[str, tuple[Feed, WireDelay, float]] = {}
        for target, delay in self.wire_delays.items():
            if target in links:
                cuts.append((links[target], delay, float(values[names.index(qualify(*target))])))
                continue
            k = _find_feed(system, target)
            name = d.feeds[k].signal.name
            if len(d.feeds[k].targets) == 1:
                of_inputs[name] = delay
                continue
            behind, _ = name_ends(delay.name)
            value = float(point.inputs[system._chosen.index(k)])
            late = tuple(end for end in feeds[k].targets if end[0] == target)
            feeds[k] = replace(feeds[k], targets=tuple(end for end in feeds[k].targets if end[0] != target))
            signal = Signal(behind, d.feeds[k].signal.unit, start=value)
            shared[delay.name] = (Feed(signal, late), delay, value)
            shared_inputs[delay.name] = name
        for link, delay, value in cuts:
            behind, before = name_ends(delay.name)
            inputs = system.members[link.target[0]].inputs
            unit = inputs[inputs.positions[link.target[1]]].unit
            feeds.append(Feed(Signal(behind, unit, start=value), ((link.target, NO_CHANGE),)))
            outputs.append(SystemOutput(before, link.source, link.change, unit))
        chosen_before = list(range(len(d.feeds)) if d.chosen is None else d.chosen)
        feeds += [feed for feed, _, _ in shared.values()]
        opened = replace(
            d,
            links=[link for link in d.links if not any(link is cut for cut, _, _ in cuts)],
            feeds=feeds,
            outputs=outputs,
            chosen=[*chosen_before, *range(len(d.feeds), len(feeds))],
        )
        model = type(system)(opened, owner=False)
        inputs_at = np.concatenate((point.inputs, [value for _, _, value in (*cuts, *shared.values())]))
        return CutDelays(
            model=model,
            point=replace(point, inputs=inputs_at, names=((), ())),
            channels=[delay.name for _, delay, _ in (*cuts, *shared.values())],
            seconds=[delay.seconds for _, delay, _ in (*cuts, *shared.values())],
            of_inputs={name: delay.seconds for name, delay in of_inputs.items()},
            shared_inputs=shared_inputs,
            compute_seconds=self._make_rule([delay for _, delay, _ in (*cuts, *shared.values())]),
        )

    def _make_rule(self, delays: Sequence[WireDelay]) -> Callable[[Mapping[str, float]], Sequence[float]] | None:
        """Return the seconds of delays as a function of the system's parameters; None where none depends on one."""
        if all(delay.compute is None for delay in delays):
            return None
        members = {delay.name: end[0] for end, delay in self.wire_delays.items()}
        names = {name: list(member.parameters) for name, member in self.system.members.items()}

        def compute(parameters: Mapping[str, float]) -> Sequence[float]:
            seconds = []
            for delay in delays:
                member = members[delay.name]
                values = {name: parameters[qualify(member, name)] for name in names[member]}
                seconds.append(delay.seconds if delay.compute is None else delay.compute(values))
            return seconds

        return compute


class DelayedSampledSystem(DelayedSystem, HasSamples):
    """A connected system with delays and sampled members.

    Linear models go from sample to sample, with a ``sample_time``. They are exact: a delay is whole samples and a part
    of one, after which what is held changes. Delays between continuous members are rejected.
    """

    def without_samples(self) -> Model:
        """Return the system without delays, with its fixed points."""
        return self.system.without_samples() if isinstance(self.system, SampledSystem) else self.system

    def hold_samples(self, point: OperatingPoint) -> tuple[Model, OperatingPoint]:
        """Raise UsageError: delays are not simulated."""
        self._reject()

    def linearize_samples(self, point: OperatingPoint, request: Request) -> LinearModel:
        """Return the linear model from sample to sample, with the delays."""
        if point.parameters:
            changed = self.with_parameters(point.parameters)
            return linearize_request(changed, replace(point, parameters={}), request)
        delays = {end: delay.seconds for end, delay in self.wire_delays.items() if delay.seconds}
        if isinstance(self.system, SampledSystem):
            return self.system.linearize_samples(point, request, delays)
        system = self.system.with_interface(None, request.outputs)
        how = replace(request, inputs=None, outputs=None)
        linear = linearize_sampled_loop(system, point, how, delays)
        return linear if request.inputs is None else with_inputs(linear, find_inputs(linear.inputs, request.inputs))


def make_delayed_system(system: ConnectedModel, delays: Mapping[End, WireDelay]) -> DelayedSystem:
    """Return a system with delays, of the class for systems with sampled members where it has some."""
    is_sampled = any(isinstance(member, HeldMember | MapModel) for member in system.members.values())
    return (DelayedSampledSystem if is_sampled else DelayedSystem)(system, delays)


def _find_feed(system: ConnectedModel, target: End) -> int:
    """Return the index, in the declaration, of the input of the system that feeds an input of a member."""
    for index in system._chosen:
        if any(end == target for end, _ in system.declaration.feeds[index].targets):
            return index
    raise UsageError(
        f"The delay of '{qualify(*target)}' delays nothing: no wire and no input of the system ends there."
    )


def delay_system(
    system: ConnectedModel, delays: Mapping[str, float], inner: Mapping[End, WireDelay] | None = None
) -> DelayedSystem:
    """Return a system with delays of wires and inputs, by the name of the input at which they end, in seconds."""
    wire_delays = dict(inner or {})
    for name, seconds in delays.items():
        if not (np.isfinite(seconds) and seconds >= 0):
            raise UsageError(f"The delay of '{name}' is {seconds:g} s: a delay is finite and not negative.")
        for target in resolve_delays(system.members, name):
            if target not in {link.target for link in system.declaration.links}:
                _find_feed(system, target)
            wire_delays[target] = WireDelay(qualify(*target), float(seconds))
    return make_delayed_system(system, wire_delays)


def add_wire_delays(system: ConnectedModel, delays: Mapping[str, float]) -> Model:
    """Return a system that has no delays with delays of what reaches inputs of its members."""
    return delay_system(system, delays)


def expand_delays(name: str, cut: CutDelays) -> tuple[list[WireLink], dict[End, WireDelay]]:
    """Return the links and delays by which a member that has delays is closed again."""
    links, delays = [], {}
    for number, (channel, seconds) in enumerate(zip(cut.channels, cut.seconds, strict=True)):
        behind, before = name_ends(channel)
        links.append(WireLink((name, before), (name, behind), NO_CHANGE))
        compute = None if cut.compute_seconds is None else _SecondsOfChannel(cut.compute_seconds, number)
        delays[name, behind] = WireDelay(qualify(name, channel), seconds, compute)
    for name_of_input, seconds in cut.of_inputs.items():
        delays[name, name_of_input] = WireDelay(qualify(name, name_of_input), seconds)
    return links, delays


@dataclass(frozen=True)
class _SecondsOfChannel:
    """The delay of one channel of a member as a function of the member's parameters."""

    compute_all: Callable[[Mapping[str, float]], Sequence[float]]
    number: int

    def __call__(self, parameters: Mapping[str, float]) -> float:
        """Return the seconds."""
        return float(self.compute_all(parameters)[self.number])
