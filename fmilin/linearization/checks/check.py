"""What a check of a linearization is, and how checks are run.

A check looks at what was computed and says what a user should know, or raises an error. It computes no linear model,
and no check depends on another one: they may run in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Literal, TypeVar

from fmilin.diagnostics import Remark
from fmilin.linearization.context import EvaluatedPoint, LinearizedPoint, PointInCoordinates, PointOnManifold

P_contra = TypeVar("P_contra", bound=EvaluatedPoint, contravariant=True)

Frequency = Literal["at every point", "once a model", "in doubt"]


class Check(ABC, Generic[P_contra]):
    """One check. The page of checks in the documentation is made from these descriptions."""

    verifies: ClassVar[str]  # one sentence
    needs: ClassVar[str]  # what it costs beyond the computation
    runs: ClassVar[Frequency]
    kinds: ClassVar[tuple[str, ...]] = ()  # of the diagnostics that it gives
    error: ClassVar[str] = ""  # the error that it raises, and when; empty if it raises none
    is_reported_first: ClassVar[bool] = False  # whether its diagnostics precede those on the point

    @abstractmethod
    def examine(self, at: P_contra) -> Sequence[Remark]:
        """Return what a user should know about a point, or raise an error."""


class ManifoldCheck(Check[PointOnManifold]):
    """A check of the constraints at a point."""


class CoordinateCheck(Check[PointInCoordinates]):
    """A check of the coordinates, or of the motion near the point."""


class LinearizationCheck(Check[LinearizedPoint]):
    """A check of derivatives or of the linear model."""


def run_checks(checks: Sequence[Check[P_contra]], at: P_contra) -> list[tuple[Check[P_contra], Sequence[Remark]]]:
    """Return each check with its diagnostics; raise the first error."""
    return [(one, one.examine(at)) for one in checks]


def find_failure(checks: Sequence[Check[P_contra]], at: P_contra) -> Exception | None:
    """Return the error of the first check that raises one; None if all pass."""
    try:
        run_checks(checks, at)
    except Exception as error:  # noqa: BLE001 - the caller explains a failed computation by it
        return error
    return None
