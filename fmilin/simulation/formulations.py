"""The ways to integrate on the manifold, by name."""

from __future__ import annotations

from collections.abc import Mapping

from fmilin.errors import UsageError
from fmilin.simulation.baumgarte import Baumgarte
from fmilin.simulation.formulation import Formulation
from fmilin.simulation.local_form import LocalForm
from fmilin.simulation.projection import Projection
from fmilin.simulation.underlying import Underlying

__all__ = ["FORMULATIONS", "Baumgarte", "LocalForm", "Projection", "Underlying", "formulation_named"]

FORMULATIONS: Mapping[str, Formulation] = {
    "projection": Projection(),
    "local": LocalForm(),
    "baumgarte": Baumgarte(),
    "none": Underlying(),
}


def formulation_named(name: str) -> Formulation:
    """Return the formulation that the command line calls ``name``.

    Raises
    ------
    UsageError
        When there is none of that name.
    """
    try:
        return FORMULATIONS[name]
    except KeyError:
        raise UsageError(f"'{name}' is no formulation: use {', '.join(FORMULATIONS)}.") from None
