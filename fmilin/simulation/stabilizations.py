"""The ways to integrate on the manifold, by name."""

from __future__ import annotations

from collections.abc import Mapping

from fmilin.errors import UsageError
from fmilin.simulation.baumgarte import Baumgarte
from fmilin.simulation.local_form import LocalForm
from fmilin.simulation.projection import Projection
from fmilin.simulation.stabilization import Stabilization
from fmilin.simulation.underlying import Underlying

__all__ = ["STABILIZATIONS", "Baumgarte", "LocalForm", "Projection", "Underlying", "stabilization_named"]

STABILIZATIONS: Mapping[str, Stabilization] = {
    "projection": Projection(),
    "local": LocalForm(),
    "baumgarte": Baumgarte(),
    "none": Underlying(),
}


def stabilization_named(name: str) -> Stabilization:
    """Return the stabilization that the command line calls ``name``.

    Raises
    ------
    UsageError
        When there is none of that name.
    """
    try:
        return STABILIZATIONS[name]
    except KeyError:
        raise UsageError(f"'{name}' is no stabilization: use {', '.join(STABILIZATIONS)}.") from None
