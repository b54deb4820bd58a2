"""The interface of models with more than smooth motion: a mode that events change, or a solver of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

WHOLE_STEP_TOLERANCE = 1e-6  # of a step, by which a multiple of the solver's own steps may differ from it


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a run of K steps, in chronological order."""

    at_once: FloatArray  # (K, ny), outputs read at t_k, after the input of step k was set and before the step
    after: FloatArray  # (K, ny), outputs read at t_(k+1), the end of step k, its input still standing
    states: FloatArray  # (K, N), declared states at t_(k+1)


@dataclass(frozen=True, slots=True)
class Cadence:
    """The steps and sampling of a model."""

    step: float | None = None  # a step that suits it, in seconds
    period: float | None = None  # the base period of its sampled parts, in seconds, where it is declared
    internal: float | None = None  # a fixed step of its own solver: steps are multiples of it
    sampled: tuple[str, ...] = ()  # why it looks sampled, one sentence each: clocks, discrete-time numbers, time events
    declared: float | None = None  # the step that the description states itself, in seconds


class Stepped(ABC):
    """A model that can be run in steps from an operating point; see :class:`fmilin.Model` for the rest."""

    cadence: Cadence
    steps: int = 0  # steps taken so far
    repeats: bool = True  # whether equal runs were equal when :meth:`make_repeatable` looked

    @abstractmethod
    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run from the restored state of the point, row k of ``inputs`` (K, nu) held during step k."""

    def respond_points(self, point: OperatingPoint, states: FloatArray, inputs: FloatArray, step: float) -> Response:
        """Take one step from each of several states (k, N), with inputs (k, nu), at the time of the point.

        The rows of the response belong to the states. With a step of 0 outputs are read at the states, and the rest of
        the response is empty.
        """
        length = step or self.cadence.step or 1.0
        responses = [
            self.respond(replace(point, states=x, inputs=u), u[None], length)
            for x, u in zip(states, inputs, strict=True)
        ]
        at_once = np.concatenate([response.at_once for response in responses])
        if not step:
            return Response(at_once, np.empty((0, at_once.shape[1])), np.empty((0, states.shape[1])))
        after = np.concatenate([response.after for response in responses])
        return Response(at_once, after, np.concatenate([response.states for response in responses]))

    @abstractmethod
    def advance(self, point: OperatingPoint, to: float, step: float | None = None) -> OperatingPoint:
        """Run from the point to the time ``to``, inputs held, and stay there: the returned point is the new start."""

    @abstractmethod
    def why_not_direct(self, point: OperatingPoint) -> str:
        """Return why derivatives cannot be read at given states, one sentence; empty when they can."""

    @abstractmethod
    def why_not_settable(self, point: OperatingPoint) -> str:
        """Return why runs cannot start from given states, one sentence; empty when they can."""

    @property
    def solver_tolerance(self) -> float | None:
        """Return the relative tolerance that the solver inside works to; None where it cannot be read."""
        return None

    def respond_accurately(self, tolerance: float, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run as :meth:`respond` does, the solver inside set to another relative tolerance this once."""
        raise UsageError(f"The solver inside has no tolerance that could be set to {tolerance:g}.")

    def respond_elsewhere(self, factor: float, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        """Run as :meth:`respond` does, from start values times ``factor`` this once."""
        raise UsageError(f"The model cannot be started from {factor:g} times its start values.")

    def how_it_solves(self) -> str:
        """Return the settings of its solver, one sentence; empty without."""
        return ""

    def how_states_are_set(self) -> str:
        """Return what is remarkable about that, one sentence; empty when nothing is."""
        return ""

    def make_repeatable(self, point: OperatingPoint, step: float) -> str:
        """Make equal runs give equal answers, and say what that took or what is left; empty when they do anyway."""
        return ""


def respond_in_whole_steps(
    respond: Callable[[OperatingPoint, FloatArray, float], Response],
    point: OperatingPoint,
    inputs: FloatArray,
    step: float,
    internal: float,
) -> Response:
    """Run a model that always takes steps of ``internal`` seconds, as one with steps of ``step`` would."""
    count = round(step / internal)
    if count < 1 or abs(count * internal - step) > WHOLE_STEP_TOLERANCE * step:
        raise NumericalError(
            f"The model takes whole steps of {internal:g} s only. A step of {step:g} s is not a multiple of that. Use "
            f"one that is: fl.Stepping(step={internal:g})."
        )
    response = respond(point, np.repeat(inputs, count, axis=0), internal)
    ends = slice(count - 1, None, count)
    return Response(response.at_once[::count], response.after[ends], response.states[ends])


@dataclass(frozen=True, slots=True)
class Passage:
    """The result of an accepted step or of an event of a hybrid model."""

    states: FloatArray  # (N,), the states to go on from
    wants_event: bool = False  # whether the model asks for an event here (after a step only)
    terminates: bool = False  # whether the model asks to end the simulation


class Hybrid(ABC):
    """A model with a mode; with state events it is a :class:`fmilin.model.capabilities.HasEvents` as well."""

    @abstractmethod
    def restart(self) -> None:
        """Return to the mode in which the model starts."""

    @abstractmethod
    def pass_event(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Carry out the event at a point, x (N,) just before it: the mode changes, and states may jump."""

    def complete_step(self, t: float, x: FloatArray, u: FloatArray) -> Passage:
        """Take note that the integrator has accepted a step that ends here."""
        return Passage(x)

    @property
    def remembers_mode(self) -> bool:
        """Whether the model is still in the mode that it was led to; a failure may have cost it."""
        return True

    def next_event_time(self) -> float | None:
        """Return when the next event is due that depends on time alone, in seconds, or None."""
        return None
