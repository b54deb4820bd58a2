"""What a check of derivatives or of the linear model is; see :mod:`fmilin.manifold.checks.check`."""

from __future__ import annotations

from fmilin.diagnostics import Remark
from fmilin.linearization.context import LinearizedBatch, LinearizedPoint
from fmilin.manifold.checks.check import Check

NOT_CHECKED = Remark(
    "unchecked",
    "Nothing was verified: constraints, derivatives, the motion of the point and the accuracy of the entries were "
    "taken as they are (checks='none').",
)


class LinearizationCheck(Check[LinearizedPoint, LinearizedBatch]):
    """A check of derivatives or of the linear model."""

    examines = LinearizedPoint
