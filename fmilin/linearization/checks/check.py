"""Base classes of checks of derivatives and of the linear model; see :mod:`fmilin.manifold.checks.check`."""

from __future__ import annotations

from fmilin.diagnostics import Remark
from fmilin.linearization.linearization_context import (
    AssembledPoint,
    DifferentiatedPoint,
    LinearizedBatch,
    LinearizedPoint,
)
from fmilin.manifold.checks.check import Check
from fmilin.manifold.differentiation import MoreCareful

NOT_CHECKED = Remark(
    "unchecked",
    "Nothing was verified: constraints, derivatives, the motion of the point and the accuracy of the entries were "
    "taken as they are (checks='none').",
)


class ResultCheck(Check[AssembledPoint, LinearizedBatch]):
    """A check of the linear model, by whatever method it was computed."""

    examines = AssembledPoint

    def request_care(self, at: DifferentiatedPoint) -> MoreCareful | None:
        """Return a request for derivatives that are computed more carefully, if what was computed is in doubt.

        The algorithm answers it before it goes on.
        """
        return None


class LinearizationCheck(Check[LinearizedPoint, LinearizedBatch]):
    """A check of derivatives or of the linear model."""

    examines = LinearizedPoint
