"""Independent coordinates at a point of which the constraints are verified, for callers that do not linearize."""

from __future__ import annotations

from collections.abc import Sequence

from fmilin.manifold.checks import FRAME_CHECKS
from fmilin.manifold.checks.check import run_checks
from fmilin.manifold.checks.context import PointInCoordinates, PointOnManifold
from fmilin.manifold.frame import CoordinateChoice, Frame, choose_coordinates, constraint_manifold
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint

REQUIRED = [one for one in FRAME_CHECKS if one.error]
"""The checks that raise errors; the others only say what a user of a linear model should know."""


def build_frame(model: Model, point: OperatingPoint, *, named: Sequence[str] = (), kind: str = "partition") -> Frame:
    """Return coordinates at a point of a model with verified constraints; see :func:`verify_frame`."""
    return verify_frame(PointEvaluator(model), point, named=named, kind=kind)


def verify_frame(
    evaluator: PointEvaluator, point: OperatingPoint, *, named: Sequence[str] = (), kind: str = "partition"
) -> Frame:
    """Return coordinates at a point with verified constraints.

    Raises ConstraintError if the point is not on the manifold, or the motion or an input leaves it.
    """
    return require_frame(evaluator, point, VerifiedFacts(), CoordinateChoice(named, kind=kind))


def require_frame(
    evaluator: PointEvaluator, point: OperatingPoint, facts: VerifiedFacts, choice: CoordinateChoice
) -> Frame:
    """Return coordinates at a point; raise the error of the first check that fails, as soon as it has a meaning."""
    on_manifold = PointOnManifold(evaluator, point, facts, constraint_manifold(evaluator, point, facts, choice.named))
    run_checks(on_manifold, REQUIRED).raise_first(REQUIRED)
    frame = choose_coordinates(on_manifold.manifold, choice)
    remaining = [one for one in REQUIRED if not one.has_meaning(on_manifold)]
    in_coordinates = PointInCoordinates(evaluator, point, facts, on_manifold.manifold, frame)
    run_checks(in_coordinates, remaining).raise_first(remaining)
    return frame
