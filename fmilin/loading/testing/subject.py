"""The model under test, at a consistent point: what all checks use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.procedure import linearize
from fmilin.model.interface import Evaluation, Model, OperatingPoint

PARTS = ("derivatives", "outputs", "residuals")


class ModelCheckError(AssertionError):
    """A model does not keep a promise; the message says which, where, and by how much."""


@dataclass(frozen=True)
class Subject:
    """The model, a consistent point of it, and what is known there."""

    model: Model
    point: OperatingPoint
    random: np.random.Generator
    tolerance: float

    def at_point(self) -> Evaluation:
        """Evaluate the model at the point."""
        return self.model.evaluate(self.point.time, self.point.states, self.point.inputs)

    def promise(self, is_kept: object, text: str) -> None:
        """Raise when a promise is not kept."""
        if not is_kept:
            self.fail(text)

    def fail(self, text: str) -> NoReturn:
        """Raise, and say which promise is not kept."""
        raise ModelCheckError(f"The model '{self.model.info.name}' does not keep a promise: {text}")


def nearby(s: Subject) -> FloatArray:
    """Return a point beside the point, off the manifold perhaps."""
    scales = s.model.states.scales(s.point.states)
    return np.asarray(s.point.states + 1e-3 * scales * s.random.standard_normal(len(scales)))


def linear(s: Subject, derivatives: str = "auto") -> LinearModel:
    """Return the linear model at the point."""
    return linearize(s.model, s.point, derivatives=derivatives)


def tangent(s: Subject) -> FloatArray:
    """Return directions along which the states may move, shape (N, P): f need not mean anything beside them."""
    if not len(s.model.constraints):
        return np.eye(len(s.model.states))
    return linear(s).T


def close(
    s: Subject,
    values: FloatArray,
    wanted: FloatArray,
    text: str,
    tolerance: float,
    *,
    rows: Any = None,
    allowed: FloatArray | float = 0.0,
) -> None:
    """Raise when ``values`` is off by more than ``allowed`` and ``tolerance`` of the largest entry of the row."""
    size = np.max(np.abs(np.nan_to_num(wanted)), axis=-1, initial=0.0, keepdims=True)
    size = np.maximum(size, 1e-6 * np.max(size, initial=0.0))
    off = np.abs(values - wanted) - allowed - tolerance * size
    bad = np.nan_to_num(off, nan=np.inf) > 0
    if rows is not None:
        bad &= np.asarray(rows)[:, None]
    positions = np.argwhere(bad)
    if len(positions):
        i = tuple(positions[0])
        s.fail(f"{text}: {values[i]:.12g} and {wanted[i]:.12g} at {[int(j) for j in i]}.")
