"""A symbolic system as a Model, with exact directional derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from fmilin.codegen.numeric import NumericSystem
from fmilin.codegen.system import SymbolicSystem
from fmilin.constraints.expressions import Expression
from fmilin.model.interface import ModelInfo, SecondOrderForm
from fmilin.models.second_order import second_order_form
from fmilin.models.shell import AdjustableEngine, Evaluator, NativeModel, Quantity, offered
from fmilin.signals import FloatArray, Signal, Signals

__all__ = ["Numeric", "SymbolicEngine", "SymbolicEvaluator", "SymbolicModel"]


class Numeric(Protocol):
    """A symbolic system as numbers: rates and outputs, and their derivatives; p are the parameters' values."""

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,)."""

    def products(
        self, point: tuple[float, FloatArray, FloatArray, FloatArray], dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of both along the columns of dx (N, k) and du (nu, k)."""


class SymbolicEngine(AdjustableEngine):
    """A :class:`~fmilin.codegen.system.SymbolicSystem` for the shell.

    Parameters
    ----------
    system : SymbolicSystem
        As it was declared, with the parameter values in use.

    Attributes
    ----------
    p : array
        Values of the parameters, in the order of ``system.parameters``.
    """

    def __init__(self, system: SymbolicSystem) -> None:
        self._made: dict[tuple[str, ...], Any] = {}
        self._take(system)

    def _take(self, system: SymbolicSystem) -> None:
        self.system = system
        self.info = ModelInfo(system.name)
        self.states, self.inputs = system.state_signals, system.input_signals
        self.outputs, self.constraints = system.output_signals.names, system.constraints
        self.independent = system.independent
        self.parameters = {str(s): value for s, value in system.parameters.items()}
        self.p = np.array(list(system.parameters.values()), dtype=np.float64)

    def having(self, system: SymbolicSystem) -> Self:
        """Return the same engine with other values and start values; the functions are the same."""
        other = copy(self)
        other._take(system)
        return other

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same engine with other values: they are arguments of the functions."""
        system = self.system
        parameters = {s: values.get(str(s), value) for s, value in system.parameters.items()}
        signals = Signals(replace(s, start=values.get(s.name, s.start)) for s in system.parameter_signals)
        return self.having(replace(system, parameters=parameters, parameter_signals=signals))

    @property
    def available(self) -> Mapping[str, Quantity]:
        """The outputs, states, inputs, ``der(state)`` and the further names that the system offers."""
        return self._available

    @cached_property
    def _available(self) -> dict[str, Quantity]:
        system = self.system
        places: dict[Any, tuple[str, int]] = {s: ("input", i) for i, s in enumerate(system.inputs)}
        places |= {s: ("state", i) for i, s in enumerate(system.states)}
        declared = (
            Quantity(signal, places.get(c, c)) for signal, c in zip(system.output_signals, system.outputs, strict=True)
        )
        further = (Quantity(Signal(name), expression) for name, expression in system.extra_names.items())
        return offered(self.states, self.inputs, declared, further)

    def expression(self, quantity: Quantity) -> Any:
        """Return a quantity in symbols."""
        match quantity.source:
            case ("state", i):
                return self.system.states[i]
            case ("rate", i):
                return self.system.derivatives[i]
            case ("input", i):
                return self.system.inputs[i]
        return quantity.source

    def evaluator(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> SymbolicEvaluator:
        """Return the functions of these quantities; made once, whatever the parameters."""
        every = [*outputs, *observed]
        names = tuple(quantity.signal.name for quantity in every)
        if names not in self._made:
            expressions = tuple(self.expression(quantity) for quantity in every)
            signals = Signals(quantity.signal for quantity in every)
            self._made[names] = self.numeric(replace(self.system, outputs=expressions, output_signals=signals))
        return self._evaluator(self._made[names], len(outputs))

    def numeric(self, system: SymbolicSystem) -> Numeric:
        """Return ``system``, this one with other outputs, as numbers."""
        return NumericSystem(system)
