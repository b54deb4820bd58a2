"""Measured angles among the inputs of a sampled law: what it predicts of them, and by which turn they wrap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.signals import FloatArray, Signals


@dataclass(frozen=True, eq=False)
class MeasuredAngles:
    """Inputs of a sampled law that are measured angles, and what its states predict of them.

    With s the deviations of its states and d those of its inputs, the law predicts d[columns] as
    ``offset + of_states s + of_inputs d``, and takes d[columns] less that modulo ``turns``.
    """

    columns: list[int]  # which inputs
    turns: FloatArray  # (n,)
    of_states: FloatArray  # (n, P)
    of_inputs: FloatArray  # (n, nu); zero in the columns of angles
    offset: FloatArray  # (n,)

    @classmethod
    def around_point(cls, inputs: Signals, order: int) -> MeasuredAngles | None:
        """Return the angles among inputs that deviate from their operating values; None without any."""
        columns = np.flatnonzero(inputs.turns).tolist()
        if not columns:
            return None
        n = len(columns)
        return cls(columns, inputs.turns[columns], np.zeros((n, order)), np.zeros((n, len(inputs))), np.zeros(n))


def describe_wrapped(outputs: Signals) -> str:
    """Return the names of outputs that wrap with their turns, as text; empty where none does."""
    names = [f"{s.name} ({_describe_turn(s.turn)}{f' {s.unit}' if s.unit else ''})" for s in outputs if s.turn]
    return ", ".join(names)


def _describe_turn(turn: float) -> str:
    ratio = turn / np.pi
    return f"{ratio:.6g} pi" if abs(ratio - round(ratio)) < 1e-12 else f"{turn:.6g}"
