"""Pictures of a family of linear models: ``family.plot.root_locus()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fmilin.ground.verbs import perform
from fmilin.linear_model.plots import Pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class FamilyPlots(Pictures):
    """Draws a family; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    def eigenvalues(self) -> Figure:
        """Return the eigenvalues over the first axis (further ones at their first value), each mode one line."""
        return perform("FamilyPlots.eigenvalues", self._drawn)

    def root_locus(self) -> Figure:
        """Return how the eigenvalues walk through the complex plane, coloured by the last axis of the grid."""
        return perform("FamilyPlots.root_locus", self._drawn)

    def campbell(self, *, orders: Sequence[float] = (), hertz: bool = False) -> Figure:
        """Return frequencies and damping ratios of modes that swing over the axis, with lines at multiples of it."""
        return perform("FamilyPlots.campbell", self._drawn, orders=orders, hertz=hertz)

    def margins(self) -> Figure:
        """Return gain, phase and disk margins of loops over the last axis; none where one is unstable."""
        return perform("FamilyPlots.margins", self._drawn)

    def surface(self, quantity: str = "growth") -> Figure:
        """Return one number of every linear model over a grid of two axes, as colours with lines of equal height.

        ``quantity``: growth (largest real part), damping (smallest ratio), frequency (slowest that swings),
        accuracy (of A), or an entry as ``"A[w,phi]"``, by names or numbers from 1.
        """
        return perform("FamilyPlots.surface", self._drawn, quantity)
