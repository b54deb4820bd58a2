"""The ways to integrate on the manifold, by name."""

from __future__ import annotations

from collections.abc import Mapping

from fmilin.ground.errors import UsageError
from fmilin.motion.simulation.baumgarte import Baumgarte
from fmilin.motion.simulation.local_form import LocalForm
from fmilin.motion.simulation.projection import Projection
from fmilin.motion.simulation.stabilization import Stabilization
from fmilin.motion.simulation.underlying import Underlying

__all__ = ["STABILIZATIONS", "Baumgarte", "LocalForm", "Projection", "Underlying", "stabilization_named"]

STABILIZATIONS: Mapping[str, Stabilization] = {
    "projection": Projection(),
    "local": LocalForm(),
    "baumgarte": Baumgarte(),
    "none": Underlying(),
}


def stabilization_named(name: str) -> Stabilization:
    """Return the stabilization that the command line calls ``name``."""
    try:
        return STABILIZATIONS[name]
    except KeyError:
        raise UsageError(f"'{name}' is no stabilization: use {', '.join(STABILIZATIONS)}.") from None
