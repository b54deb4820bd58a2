"""Limits of controls and forces at a point: which side of them it is on, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["Side", "limit_remarks", "side_of"]

Side = Literal["inside", "lower", "upper", "beyond"]

AT = 1e-12
"""How near a limit counts as there, relative to the range."""


def side_of(value: float, low: float, high: float) -> Side:
    """Return where a value stands between two limits, one of which may be infinite."""
    near = AT * max(*(abs(limit) for limit in (low, high) if abs(limit) < float("inf")), abs(value), 0.0)
    if low + near < value < high - near:
        return "inside"
    if not low - near <= value <= high + near:
        return "beyond"
    return "lower" if value <= low + near else "upper"


def limit_remarks(beyond: Sequence[str], at: Sequence[str], pushed: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for controls beyond their range, one for those at a limit, and one for forces at theirs."""
    sentences = []
    if beyond:
        sentences.append(f"These controls are outside their range and move nothing: {'; '.join(beyond)}.")
    if at:
        sentences.append(
            f"These controls stand at a limit, and their columns hold for changes inwards: {'; '.join(at)}."
        )
    if pushed:
        sentences.append(
            f"These actuators are saturated, so that what drives them moves nothing: {'; '.join(pushed)}. Give a "
            "point at which they are not."
        )
    return tuple(sentences)
