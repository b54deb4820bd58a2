"""A symbolic system with some of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.signals import Signals

__all__ = ["with_inputs"]


def with_inputs(system: SymbolicSystem, kept: Sequence[int]) -> SymbolicSystem:
    """Return ``system`` with some of its inputs, in that order; the others become parameters at their start values."""
    held = [i for i in range(len(system.inputs)) if i not in kept]
    columns = [*range(len(system.states)), *(len(system.states) + i for i in kept)]
    return replace(
        system,
        inputs=tuple(system.inputs[i] for i in kept),
        input_signals=system.input_signals.select(kept),
        parameters={**system.parameters, **{system.inputs[i]: system.input_signals[i].start for i in held}},
        parameter_signals=Signals([*system.parameter_signals, *system.input_signals.select(held)]),
        slopes=tuple(tuple(row[j] for j in columns) for row in system.slopes),
    )
