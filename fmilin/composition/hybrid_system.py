"""Connected systems with members that have events, and the choice of the class of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fmilin.composition.linear_member import HeldMember
from fmilin.composition.members import MemberView
from fmilin.composition.sampled_period import sort_answers
from fmilin.composition.system import ConnectedModel, SystemDeclaration
from fmilin.composition.system_declaration import in_member, qualify
from fmilin.model.capabilities import (
    HasDiscreteStates,
    HasEvents,
    read_discrete_states,
    read_event_indicators,
)
from fmilin.model.stepping import Hybrid, Passage
from fmilin.signals import FloatArray


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
        return self._pass_events(t, x, u)

    def complete_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Tell every member that a step was accepted."""
        return self._pass_to_members(t, x, u, lambda m, member_states, v: m.complete_step(t, member_states, v))

    def _pass_events(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Let sampled members read each other's answers at the same instant, and all members pass what is due."""
        order = self._order_sampled_members()
        if not order:
            return self._pass_to_members(t, x, u, lambda m, member_states, v: m.pass_event(t, member_states, v))
        coupling = self.coupling
        before = coupling.compute_member_points(t, x, u)
        inputs = np.concatenate([np.empty(0), *(v for _, v in before)])
        answers = coupling.settle(t, x, u).outputs.copy()
        is_read = np.isin(coupling.wires.sources, self._list_sampled_rows())

        def read_answers(member: int) -> FloatArray:
            rows = np.arange(coupling.inputs[member].start, coupling.inputs[member].stop)
            rows = rows[is_read[rows]]
            inputs[rows] = coupling.wires.compute_inputs(rows, answers)
            values: FloatArray = inputs[coupling.inputs[member]]
            return values

        for member in order:
            model = coupling.parts[member].model
            if isinstance(model, HeldMember) and model.is_due(t):
                answers[coupling.outputs[member]] = model.peek(t, read_answers(member))
        passages = []
        for member, (part, (member_states, v)) in enumerate(zip(coupling.parts, before, strict=True)):
            with in_member(part.name):
                read = read_answers(member) if member in order else v
                passage = Passage(member_states)
                if isinstance(part.model, Hybrid):
                    passage = part.model.pass_event(t, member_states, read)
                passages.append(passage)
        coupling.forget()
        return _join(passages)

    def _list_sampled_rows(self) -> list[int]:
        """Return the outputs of sampled members among all outputs."""
        return _list_rows(self.coupling.parts, self.coupling.outputs)

    def _order_sampled_members(self) -> list[int]:
        """Return the sampled members in the order of their answers; none where they do not feed each other."""
        coupling = self.coupling
        models = {i: part.model for i, part in enumerate(coupling.parts) if isinstance(part.model, HeldMember)}
        if not np.isin(coupling.wires.sources, self._list_sampled_rows())[self._list_sampled_inputs()].any():
            return []
        owners = {row: i for i in models for row in range(coupling.outputs[i].start, coupling.outputs[i].stop)}
        before: dict[int, set[int]] = {}
        for i, model in models.items():
            structure = model.answer_structure()
            depends = [bool(structure[:, column].any()) for column in range(structure.shape[1])]
            sources = coupling.wires.sources[coupling.inputs[i]]
            before[i] = {
                owners[source]
                for source, is_direct in zip(sources.tolist(), depends, strict=True)
                if is_direct and source in owners
            }
        return sort_answers(before, [part.name for part in coupling.parts])

    def _list_sampled_inputs(self) -> list[int]:
        """Return the inputs of sampled members among all inputs."""
        return _list_rows(self.coupling.parts, self.coupling.inputs)

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
        return _join(passages)

    @property
    def remembers_mode(self) -> bool:
        """Whether every member does."""
        return all(member.remembers_mode for member in self._hybrids().values())

    def next_event_time(self) -> float | None:
        """Return when the first of the members' time events is due."""
        times = [t for member in self._hybrids().values() if (t := member.next_event_time()) is not None]
        return min(times, default=None)


def _join(passages: Sequence[Passage]) -> Passage:
    """Return the passage of all members as that of the system."""
    states = np.concatenate([np.empty(0), *(p.states for p in passages)])
    return Passage(states, any(p.wants_event for p in passages), any(p.terminates for p in passages))


def _list_rows(parts: Sequence[MemberView], slices: Sequence[slice]) -> list[int]:
    """Return the numbers of what belongs to sampled members."""
    sampled = [rows for part, rows in zip(parts, slices, strict=True) if isinstance(part.model, HeldMember)]
    return [row for rows in sampled for row in range(rows.start, rows.stop)]
