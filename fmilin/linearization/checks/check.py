"""What a check of a linearization is, and how checks are run.

A check looks at what was computed and says what a user should know, or raises an error. It computes no linear model,
and no check depends on another one: they may run in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, TypeVar

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.linearization.batch_remarks import BatchRemarks, PointRemarks, SharedRemarks
from fmilin.linearization.context import (
    EvaluatedPoint,
    LinearizedBatch,
    LinearizedPoint,
    Mask,
    PointInCoordinates,
    PointOnManifold,
)
from fmilin.manifold.selection import CONDITION_LIMIT
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

    @abstractmethod
    def examine(self, at: P_contra) -> Sequence[Remark]:
        """Return what a user should know about a point, or raise an error."""

    def learn(self, at: P_contra, facts: VerifiedFacts) -> VerifiedFacts:
        """Return what is verified of the model as a whole, with what this check has shown at a point."""
        return facts

    def find_doubt(self, at: LinearizedBatch) -> Mask | None:
        """Return the points of a batch that have to be examined alone, (k,); None if no point has."""
        return None

    def describe_batch(self, at: LinearizedBatch, is_doubtful: Mask) -> PointRemarks | None:
        """Return the diagnostics of the points of a batch that are not in doubt; None if there are none."""
        return None


class ManifoldCheck(Check[PointOnManifold]):
    """A check of the constraints at a point."""


class CoordinateCheck(Check[PointInCoordinates]):
    """A check of the coordinates, or of the motion near the point."""


class LinearizationCheck(Check[LinearizedPoint]):
    """A check of derivatives or of the linear model."""


def check_batch(checks: Sequence[Check[LinearizedPoint]], at: LinearizedBatch) -> tuple[BatchRemarks, Mask]:
    """Return the diagnostics of each point of a batch, and which points have to be examined alone."""
    is_doubtful = np.zeros(len(at), dtype=bool)
    for one in checks:
        doubt = one.find_doubt(at)
        if doubt is not None:
            is_doubtful |= doubt
    descriptions = [one.describe_batch(at, is_doubtful) for one in checks]
    return BatchRemarks([each for each in descriptions if each is not None], len(at)), is_doubtful


def accept_batch(checks: Sequence[Check[LinearizedPoint]], at: LinearizedBatch) -> tuple[BatchRemarks, Mask]:
    """Return that no point was checked, and what was computed; points of singular coordinates have to stand alone.

    That belongs to the choice of coordinates: those of the reference are continued as long as they are regular.
    """
    is_regular = at.derivatives.find_finite(at.geometry.kept) & (at.geometry.condition_number <= CONDITION_LIMIT)
    descriptions = [one.describe_batch(at, ~is_regular) for one in checks if one.describes_computation]
    given = [each for each in descriptions if each is not None]
    return BatchRemarks([SharedRemarks((NOT_CHECKED,), len(at)), *given], len(at)), np.asarray(~is_regular)
