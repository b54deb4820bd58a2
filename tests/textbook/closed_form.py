"""A model of the textbook gate at a point, with its linear model in closed form.

A row of the table is a model at a point. Its states, inputs and outputs have the names of the textbook; a source that
has other coordinates says how they are related (:class:`tests.textbook.sources.Coordinate`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["GRAVITY", "MarginsInClosedForm", "Textbook", "margins_of_a_lag", "margins_of_second_order"]

GRAVITY = 9.81


@dataclass(frozen=True)
class MarginsInClosedForm:
    """Margins of the loop that is closed around a model by one controller."""

    gain: tuple[float, float]  #: factors between which the closed loop is stable
    phase: float | None = None  #: in degrees; None where the textbook states none


@dataclass(frozen=True)
class Textbook:
    """A model at a point, in closed form."""

    name: str
    title: str
    parameters: Mapping[str, float]
    states: Mapping[str, float]  #: independent ones, with their values at the point
    inputs: Mapping[str, float]
    outputs: Mapping[str, float]
    A: Sequence[Sequence[float]]
    B: Sequence[Sequence[float]]
    C: Sequence[Sequence[float]]
    D: Sequence[Sequence[float]]
    eigenvalues: Sequence[complex]
    trim_guess: Mapping[str, float] = field(default_factory=dict)  #: a trim from there ends at the point
    is_equilibrium: bool = True  #: whether the point is one
    undetermined: Sequence[str] = ()  #: states with any value at an equilibrium
    has_equilibrium: bool = True  #: with the inputs of the point; where it has none, a trim must say so
    output_period: Mapping[str, float] = field(default_factory=dict)  #: outputs that are angles: one turn
    margins: MarginsInClosedForm | None = None
    controller: Mapping[str, float] = field(default_factory=dict)  #: gains, and the sample time if it is sampled
    input_moves_nothing: bool = False  #: B = 0 on a whole interval: fmilin returns that with keep_inaccurate only

    @property
    def matrices(self) -> dict[str, np.ndarray[Any, Any]]:
        """A, B, C, D with their shapes, also where a model has no inputs."""
        sizes = {"A": (len(self.states), len(self.states)), "B": (len(self.states), len(self.inputs))}
        sizes |= {"C": (len(self.outputs), len(self.states)), "D": (len(self.outputs), len(self.inputs))}
        return {name: np.array(getattr(self, name), dtype=float).reshape(size) for name, size in sizes.items()}


def margins_of_a_lag(gain: float, pole: float) -> MarginsInClosedForm:
    """Return the margins of gain/(s + pole), gain > pole > 0: the modulus is 1 at w = sqrt(gain^2 - pole^2)."""
    w = math.sqrt(gain**2 - pole**2)
    return MarginsInClosedForm((0.0, math.inf), 180 - math.degrees(math.atan2(w, pole)))


def margins_of_second_order(gain: float, damping: float, stiffness: float) -> MarginsInClosedForm:
    """Return the margins of gain/(s^2 + damping s + stiffness), gain > abs(stiffness): one crossing of modulus 1.

    The closed loop is stable where stiffness + factor*gain > 0.
    """
    half = damping**2 / 2 - stiffness
    w = math.sqrt(-half + math.sqrt(half**2 + gain**2 - stiffness**2))
    phase = 180 - math.degrees(math.atan2(damping * w, stiffness - w**2))
    return MarginsInClosedForm((max(0.0, -stiffness / gain), math.inf), phase)
