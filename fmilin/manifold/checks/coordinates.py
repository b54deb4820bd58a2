"""The check of how independent coordinates were chosen."""

from __future__ import annotations

from collections.abc import Sequence

from fmilin.diagnostics import Remark
from fmilin.manifold.checks.check import CoordinateCheck
from fmilin.manifold.checks.context import BatchInCoordinates, PointInCoordinates


class CoordinatesAreAsRequested(CoordinateCheck):
    """Recommended coordinates may be singular at a point, and those of a path may end."""

    verifies = "The recommended coordinates, and those of the point before on a path, determine the other states."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("conditioning", "coordinates-switched")
    describes_computation = True

    def examine(self, at: PointInCoordinates) -> Sequence[Remark]:
        return at.frame.remarks

    def find_doubt(self, at: BatchInCoordinates) -> None:
        """Return no doubt: a batch has the coordinates of its reference; how regular they are is another check."""
