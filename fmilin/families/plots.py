"""Pictures of a family of linear models: ``family.plot.root_locus()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fmilin.ground.verbs import perform
from fmilin.linear_model.plots import Pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FamilyPlots"]


class FamilyPlots(Pictures):
    """Draws a family; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    def eigenvalues(self) -> Figure:
        """Return real and imaginary parts of the eigenvalues over the axis, each mode tracked as one line.

        Of a grid of several axes the first is drawn at its first value; pick others as ``family[3].plot``.
        """
        return perform("FamilyPlots.eigenvalues", self._drawn)

    def root_locus(self) -> Figure:
        """Return how the eigenvalues walk through the complex plane, coloured by the last axis of the grid."""
        return perform("FamilyPlots.root_locus", self._drawn)

    def campbell(self, *, orders: Sequence[float] = (), hertz: bool = False) -> Figure:
        """Return frequencies and damping ratios of the modes that swing, over the axis (Campbell's diagram).

        ``orders``: straight lines at these multiples of the axis, in rad/s: where a rotor of that speed excites.
        ``hertz``: frequencies in Hz; the lines are then multiples divided by 2 pi.
        """
        return perform("FamilyPlots.campbell", self._drawn, orders=orders, hertz=hertz)

    def surface(self, quantity: str = "growth") -> Figure:
        """Return one number of every linear model over a grid of two axes, as colours with lines of equal height.

        ``quantity``: ``"growth"`` (largest real part), ``"damping"`` (smallest damping ratio), ``"frequency"`` (slowest
        of the modes that swing), ``"accuracy"`` (of A), or an entry as ``"A[w,phi]"``, by names or numbers from 1.
        """
        return perform("FamilyPlots.surface", self._drawn, quantity)
