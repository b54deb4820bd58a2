"""The inputs and outputs of a symbolic system, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fmilin.errors import UnknownNameError
from fmilin.models.symbolic_system import SymbolicSystem
from fmilin.signals import Signal, Signals, rate_unit

__all__ = ["available_outputs", "with_chosen_inputs", "with_chosen_outputs"]


def available_outputs(system: SymbolicSystem) -> dict[str, tuple[Signal, Any]]:
    """Return everything of ``system`` that may be asked for as an output: its signal and its expression, by name.

    These are the outputs, states, inputs, ``der(state)`` and the further names that the system offers; a
    declared output goes before another quantity of the same name.
    """
    further = {name: (Signal(name), expression) for name, expression in system.extra_names.items()}
    rates = {
        f"der({s.name})": (Signal(f"der({s.name})", rate_unit(s.unit)), f)
        for s, f in zip(system.state_signals, system.derivatives, strict=True)
    }
    inputs = _by_name(system.input_signals, system.inputs)
    states = _by_name(system.state_signals, system.states)
    return further | rates | inputs | states | _by_name(system.output_signals, system.outputs)


def with_chosen_outputs(system: SymbolicSystem, names: Sequence[str]) -> SymbolicSystem:
    """Return ``system`` with the outputs ``names``, in that order.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    available = available_outputs(system)
    for name in names:
        if name not in available:
            raise UnknownNameError.among(name, available, f"an output or another quantity of '{system.name}'")
    chosen = [available[name] for name in names]
    return replace(system, output_signals=Signals(signal for signal, _ in chosen), outputs=tuple(c for _, c in chosen))


def with_chosen_inputs(system: SymbolicSystem, names: Sequence[str]) -> SymbolicSystem:
    """Return ``system`` with the inputs ``names``, in that order; the others become parameters at their start values.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    """
    order = [system.input_signals.index_of(name, f"an input of '{system.name}'") for name in names]
    held = [i for i in range(len(system.inputs)) if i not in order]
    parameters = dict(system.parameters) | {system.inputs[i]: system.input_signals[i].start for i in held}
    return replace(
        system,
        inputs=tuple(system.inputs[i] for i in order),
        input_signals=system.input_signals.select(order),
        parameters=parameters,
        parameter_signals=Signals([*system.parameter_signals, *system.input_signals.select(held)]),
    )


def _by_name(signals: Signals, expressions: Sequence[Any]) -> dict[str, tuple[Signal, Any]]:
    return {s.name: (s, expression) for s, expression in zip(signals, expressions, strict=True)}
