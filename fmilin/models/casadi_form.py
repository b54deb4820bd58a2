"""A nonlinear model as functions of CasADi: what every kind of model has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray, Signal, Signals

Function = Any  # casadi.Function: casadi ships no types


class OutputSignals(Signals):
    """The outputs of a model, which give their values when they are called as the function ``c`` is."""

    def __init__(self, items: Iterable[Signal], function: Function) -> None:
        super().__init__(items)
        self._function = function

    def __call__(self, *arguments: Any, **named_arguments: Any) -> Any:
        """Return the outputs at numbers or symbols."""
        return self._function(*arguments, **named_arguments)


@dataclass(frozen=True)
class CasadiModel(ABC):
    """x' = f, out = c, 0 = g: functions of a model's states, its inputs u (nu,) and time, by position or name.

    With a symbolic form, states are all N states x, and functions take (x, u, t); other models are in independent
    coordinates y, and functions take (y, u). ``model.outputs(...)`` is ``c(...)``.
    """

    # states, inputs, outputs: names, units and start values of the entries of x or y, u and the outputs
    states: Signals
    inputs: Signals
    outputs: OutputSignals
    f: Function  # (x, u, t) -> ``x_dot`` (N,), or (y, u) -> ``y_dot`` (P,)
    c: Function  # with the same arguments -> ``out`` (ny,)
    g: Function  # with the same arguments -> ``residuals`` (m,) of the declared constraints: zero on the manifold
    model: Model  # where they come from

    @property
    def y0(self) -> FloatArray:
        """The values of ``states`` at the start or at the point, shape (N,) or (P,)."""
        return self.states.starts

    @abstractmethod
    def batch(self, count: int) -> CasadiModel:
        """Return the functions of ``count`` columns: (N, k) or (P, k), (nu, k)."""

    @abstractmethod
    def invariants(self, rows: Sequence[int]) -> Callable[[Any, Any, Any], Any]:
        """Return h(x, u, t), some ``rows`` of the constraints' residuals and then of their rates, for symbols."""

    @abstractmethod
    def in_independent_coordinates(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | None = None
    ) -> IndependentForm:
        """Return y' = F(y, u), out = C(y, u): the model on its manifold, as :func:`fmilin.linearize` sees it."""


@dataclass(frozen=True)
class IndependentForm:
    """y' = F(t, y, u), out = C(t, y, u) in P independent coordinates: functions of y (P,), u (nu,) and t."""

    # coordinates, inputs, outputs: names and units of the entries of y, u and the outputs; y starts at the point
    coordinates: Signals
    inputs: Signals
    outputs: Signals
    F: Function  # (y, u, t) -> ``y_dot`` (P,)
    C: Function  # (y, u, t) -> ``out`` (ny,)
    psi: Function  # (y, u, t) -> ``x`` (N,): all states
