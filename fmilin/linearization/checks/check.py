"""What a check of a linearization is, and how checks are run.

A check looks at what was computed and says what a user should know, or raises an error. It computes no linear model,
and no check depends on another one: they may run in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from fmilin.diagnostics import Remark
from fmilin.linearization.batch_remarks import PointRemarks
from fmilin.linearization.context import (
    EvaluatedPoint,
    LinearizedBatch,
    LinearizedPoint,
    Mask,
    PointInCoordinates,
    PointOnManifold,
)
from fmilin.manifold.verification import VerifiedFacts

P_contra = TypeVar("P_contra", bound=EvaluatedPoint, contravariant=True)

Frequency = Literal["at every point", "once a model", "in doubt"]


NOT_CHECKED = Remark(
    "unchecked",
    "Nothing was verified: constraints, derivatives, the motion of the point and the accuracy of the entries were "
    "taken as they are (checks='none').",
)


class Check(ABC, Generic[P_contra]):
    """One check. The page of checks in the documentation is made from these descriptions."""

    verifies: ClassVar[str]  # one sentence
    needs: ClassVar[str]  # what it costs beyond the computation
    runs: ClassVar[Frequency]
    kinds: ClassVar[tuple[str, ...]] = ()  # of the diagnostics that it gives
    error: ClassVar[str] = ""  # the error that it raises, and when; empty if it raises none
    is_reported_first: ClassVar[bool] = False  # whether its diagnostics precede those on the point
    # whether its diagnostics tell what was computed: they cost nothing, and are given without checks, too
    describes_computation: ClassVar[bool] = False

    # whether it verifies something of the model as a whole, which is not verified again at other points
    verifies_model: ClassVar[bool] = False

    @abstractmethod
    def examine(self, at: P_contra) -> Sequence[Remark]:
        """Return what a user should know about a point, or raise an error."""

    def learn(self, at: P_contra, facts: VerifiedFacts) -> VerifiedFacts:
        """Return what is verified of the model as a whole, with what this check has shown, if it ``verifies_model``."""
        return facts

    @abstractmethod
    def find_doubt(self, at: LinearizedBatch) -> Mask | None:
        """Return the points of a batch that have to be examined alone, (k,); None if no point has.

        A check that has none says why.
        """

    def describe_batch(self, at: LinearizedBatch, is_doubtful: Mask) -> PointRemarks | None:
        """Return the diagnostics of the points of a batch that are not in doubt; None if there are none."""
        return None


class ManifoldCheck(Check[PointOnManifold]):
    """A check of the constraints at a point."""


class CoordinateCheck(Check[PointInCoordinates]):
    """A check of the coordinates, or of the motion near the point."""


class LinearizationCheck(Check[LinearizedPoint]):
    """A check of derivatives or of the linear model."""
