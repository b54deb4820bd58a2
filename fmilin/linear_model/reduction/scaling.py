"""States in sizes of their own, so that no number is large or small because of a unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signal, Signals
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.transformation import transformed

__all__ = ["balance"]


def balance(linear: LinearModel, by: Literal["nominals", "norms"] = "nominals") -> LinearModel:
    """Return the linear model with every state divided by a size; inputs and outputs keep their units.

    ``by``: the states' nominal values, declared ones only; or powers of two that make rows and columns of A equally
    large (LAPACK's ``gebal``), which costs not a single rounding. A state ``p`` that is divided by 100000 is called
    ``p/100000``; one that keeps its size, as before.
    """
    s = _scales(linear, by)
    states = Signals(map(_scaled, linear.states, s.tolist()))
    kind = "scaled states" if np.any(s != 1) else ""
    return transformed(linear, np.diag(s), np.diag(1 / s), states, z0=linear.y0 / s, coordinates=kind)


def _scales(linear: LinearModel, by: str) -> FloatArray:
    if by == "norms":
        from scipy.linalg import matrix_balance

        if not len(linear.states):
            return np.ones(0)
        return np.asarray(matrix_balance(linear.A, permute=False, separate=True)[1][0], dtype=np.float64)
    if by != "nominals":
        raise UsageError(f"'{by}' is no way to balance a linear model: use nominals or norms.")
    declared = [s.nominal if s.nominal and np.isfinite(s.nominal) and s.nominal > 0 else None for s in linear.states]
    if declared and not any(declared):
        raise UsageError(
            "No state of this linear model has a nominal value to be divided by. Balance by norms instead "
            "(--balance norms)."
        )
    return np.array([1.0 if nominal is None else nominal for nominal in declared])


def _scaled(signal: Signal, size: float) -> Signal:
    if size == 1.0:
        return signal
    text = f"{size:g}" if float(f"{size:g}") == size else repr(size)
    return replace(
        signal,
        name=f"{signal.name}/{text}",
        unit="",
        nominal=1.0 if signal.nominal is None else signal.nominal / size,
        start=signal.start / size,
        description=f"{signal.description} in {text} {signal.unit}".strip(),
        aliases=(),
    )
