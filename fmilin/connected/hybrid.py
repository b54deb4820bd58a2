"""Connected models with events in their members, and which kind of connected model a declaration makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fmilin.connected.names import in_member
from fmilin.connected.system import ConnectedModel, Declaration
from fmilin.ground.signals import FloatArray
from fmilin.model.events import Hybrid, Passage
from fmilin.model.interface import Model

__all__ = ["HybridSystem", "system_of"]


def system_of(declaration: Declaration) -> ConnectedModel:
    """Return the model; a :class:`Hybrid` one where a member is."""
    hybrid = any(isinstance(model, Hybrid) for model in declaration.members.values())
    return (HybridSystem if hybrid else ConnectedModel)(declaration)


class HybridSystem(ConnectedModel, Hybrid):
    """A connected system with members that have events."""

    def _hybrids(self) -> dict[str, Hybrid]:
        return {part.name: part.model for part in self.coupling.parts if isinstance(part.model, Hybrid)}

    def restart(self) -> None:
        """Return all members to the mode in which they start."""
        self.coupling.forget()
        for name, member in self._hybrids().items():
            with in_member(name):
                member.restart()

    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out what happens at a point in every member, with the inputs that stood just before."""
        return self._passed(t, x, u, lambda m, own, v: m.pass_event(t, own, v))

    def completed_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Tell every member that a step was accepted."""
        return self._passed(t, x, u, lambda m, own, v: m.completed_step(t, own, v))

    def _passed(
        self, t: float, x: FloatArray, u: FloatArray, act: Callable[[Any, FloatArray, FloatArray], Passage]
    ) -> Passage:
        def of_hybrids(model: Model, own: FloatArray, v: FloatArray) -> Passage:
            return act(model, own, v) if isinstance(model, Hybrid) else Passage(own)

        found = self._at_members(t, x, u, of_hybrids)
        self.coupling.forget()
        states = np.concatenate([np.empty(0), *(p.states for p in found)])
        return Passage(states, any(p.wants_event for p in found), any(p.terminates for p in found))

    @property
    def remembers_mode(self) -> bool:
        """Whether every member does."""
        return all(member.remembers_mode for member in self._hybrids().values())

    def next_event_time(self) -> float | None:
        """Return when the first of the members' time events is due."""
        times = [t for member in self._hybrids().values() if (t := member.next_event_time()) is not None]
        return min(times, default=None)
