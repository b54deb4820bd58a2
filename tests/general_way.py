"""A model as one that has no exact procedure: what a procedure is compared with."""

from __future__ import annotations

from collections.abc import Sequence

from fmilin import Model
from fmilin.adapters import ExactSlopes
from fmilin.model.visits import CountedModel
from fmilin.signals import FloatArray

__all__ = ["GeneralWay"]


class GeneralWay(CountedModel):
    """Linearized from exact products, each compared with a difference."""

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return None."""
        del t, x, u
        return None

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Keep the way."""
        return GeneralWay(self.source.with_interface(inputs, outputs))
