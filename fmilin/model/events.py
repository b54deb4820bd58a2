"""What a model answers that does more than move smoothly: events in time, in state, and its own bookkeeping.

A :class:`~fmilin.Model` that is also a :class:`Hybrid` has a mode (the discrete part of its state, which
``evaluate`` never changes). Only the simulation drives the mode on; a linear model is that of the present mode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from fmilin.ground.signals import FloatArray

__all__ = ["Hybrid", "Passage"]


@dataclass(frozen=True, slots=True)
class Passage:
    """What a hybrid model says after an accepted step or after an event."""

    states: FloatArray  # (N,), the states to go on from
    wants_event: bool = False  # whether the model asks for an event here (after a step only)
    terminates: bool = False  # whether the model asks to end the simulation


class Hybrid(ABC):
    """A model with a mode. Its event indicators are those of :meth:`fmilin.Model.event_indicators`."""

    @abstractmethod
    def restart(self) -> None:
        """Return to the mode in which the model starts."""

    @abstractmethod
    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out what happens at a point: the mode changes, and states may jump.

        Shapes: u (nu,). ``x`` (N,): states just before the event.
        """

    def completed_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Take note that the integrator has accepted a step that ends here."""
        del t, u
        return Passage(x)

    @property
    def remembers_mode(self) -> bool:
        """Whether the model is still in the mode that it was led to; a failure may have cost it."""
        return True

    def next_event_time(self) -> float | None:
        """Return when the next event is due that depends on time alone, in seconds; None when there is none."""
        return None
