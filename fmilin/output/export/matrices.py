"""What the reports of a linear model have in common, whatever they are written in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel

__all__ = ["Sheet", "by_name", "sheets", "short"]

_DIGITS = 6


@dataclass(frozen=True)
class Sheet:
    """One matrix with the names of its rows and columns."""

    letter: str
    matrix: FloatArray  # shape (rows, columns)
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def sheets(linear: LinearModel) -> Iterator[Sheet]:
    """Yield A, B, C, D, T and T_u; those without entries are left out, and T_u when it is zero."""
    y, u, out = linear.states.names, linear.inputs.names, linear.outputs.names
    for sheet in (
        Sheet("A", linear.A, y, y),
        Sheet("B", linear.B, y, u),
        Sheet("C", linear.C, out, y),
        Sheet("D", linear.D, out, u),
        Sheet("T", linear.T, linear.full_states.names, y),
        Sheet("T_u", linear.T_u, linear.full_states.names, u),
    ):
        if sheet.matrix.size and (sheet.letter != "T_u" or sheet.matrix.any()):
            yield sheet


def by_name(values: Mapping[str, float], names: Sequence[str]) -> FloatArray:
    """Return values in the order of the names; 0 for one that is not known."""
    return np.array([values.get(name, 0.0) for name in names], dtype=np.float64)


def short(value: float) -> str:
    """Return a number with six digits, and zero as 0.

    >>> [short(v) for v in (0.0, -0.0, 1 / 3, -9.81, 1e-20)]
    ['0', '0', '0.333333', '-9.81', '1e-20']
    """
    return "0" if value == 0 else f"{value:.{_DIGITS}g}" if math.isfinite(value) else str(value)
