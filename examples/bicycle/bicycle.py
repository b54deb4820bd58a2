"""A model for the command line: ``fmilin linearize examples/bicycle/bicycle.py:model``."""

from __future__ import annotations

from fmilin.models import KaneModel
from fmilin.systems import bicycle


def model(speed: float = 4.6) -> KaneModel:
    """Return the Whipple bicycle at a forward speed in m/s."""
    return bicycle(speed)
