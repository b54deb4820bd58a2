"""The base classes of checks, and how checks are run.

A check examines what was computed and says what a user should know, or raises an error. It computes no linear model,
and no check depends on another one: they may run in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Generic, Literal, TypeVar, cast

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError
from fmilin.manifold.checks.batch_remarks import PointRemarks
from fmilin.manifold.checks.context import BatchInCoordinates, ExaminedPoint, Mask, PointInCoordinates, PointOnManifold
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.support.dataclass import dataclass

P_contra = TypeVar("P_contra", bound=ExaminedPoint, contravariant=True)
B_contra = TypeVar("B_contra", bound=BatchInCoordinates, contravariant=True)
AnyPoint = TypeVar("AnyPoint", bound=ExaminedPoint)
AnyBatch = TypeVar("AnyBatch", bound=BatchInCoordinates)

Frequency = Literal["at every point", "once a model", "in doubt"]


class Check(ABC, Generic[P_contra, B_contra]):
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

    examines: ClassVar[type[ExaminedPoint]]  # what has to be computed before the check has a meaning

    def has_meaning(self, at: ExaminedPoint) -> bool:
        """Whether all that the check examines was computed at a point."""
        return isinstance(at, self.examines)

    @abstractmethod
    def examine(self, at: P_contra) -> Sequence[Remark]:
        """Return what a user should know about a point, or raise an error."""

    def learn(self, at: P_contra, facts: VerifiedFacts) -> VerifiedFacts:
        """Return what is verified of the model as a whole, with what this check has shown, if it ``verifies_model``."""
        return facts

    @abstractmethod
    def find_doubt(self, at: B_contra) -> Mask | None:
        """Return the points of a batch that have to be examined alone, (k,); None if no point has.

        A check that has none says why.
        """

    def describe_batch(self, at: B_contra, is_doubtful: Mask) -> PointRemarks | None:
        """Return the diagnostics of the points of a batch that are not in doubt, or None."""
        return None


class ManifoldCheck(Check[PointOnManifold, BatchInCoordinates]):
    """A check of the constraints at a point."""

    examines = PointOnManifold


class CoordinateCheck(Check[PointInCoordinates, BatchInCoordinates]):
    """A check of the coordinates, or of the motion near the point."""

    examines = PointInCoordinates


@dataclass(frozen=True, eq=False)
class CheckResults:
    """The results of the checks at a point."""

    diagnostics: Mapping[object, Sequence[Remark]]  # by check
    errors: Mapping[object, FmilinError]  # of checks that failed
    facts: VerifiedFacts  # what is verified of the model

    def list_remarks(self, checks: Iterable[object]) -> list[Remark]:
        """Return the diagnostics of these checks, in their order."""
        return [remark for one in checks for remark in self.diagnostics.get(one, ())]

    def raise_first(self, checks: Iterable[object]) -> None:
        """Raise the error of the first of these checks that has failed."""
        for one in checks:
            if one in self.errors:
                raise self.errors[one]


def run_checks(at: ExaminedPoint, checks: Iterable[Check[AnyPoint, AnyBatch]]) -> CheckResults:
    """Return what those of some checks show that have a meaning at a point. They run in the order in which they come.

    That makes no difference to the result: each examines what was computed, and none at what another has shown.
    """
    diagnostics: dict[object, Sequence[Remark]] = {}
    errors: dict[object, FmilinError] = {}
    facts = at.facts
    for one in checks:
        if not one.has_meaning(at):
            continue
        examined = cast("AnyPoint", at)
        try:
            diagnostics[one] = one.examine(examined)
            if one.verifies_model:
                facts = one.learn(examined, facts)
        except FmilinError as error:
            errors[one] = error
    return CheckResults(diagnostics, errors, facts)
