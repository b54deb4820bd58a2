"""Checks of the constraints: they exist, the point obeys them, the motion and the inputs keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.manifold.checks.check import Check, CoordinateCheck, ManifoldCheck
from fmilin.manifold.checks.context import (
    BatchInCoordinates,
    ConstrainedPoint,
    Mask,
    PointInCoordinates,
    PointOnManifold,
)
from fmilin.manifold.manifold_verification import VerifiedFacts, drift, require_invariance, verify_inputs
from fmilin.manifold.nonvanishing import require_nonvanishing
from fmilin.manifold.position import NEWTON_SINGULAR_VALUE_TOLERANCE, position_remarks
from fmilin.tolerances import MANIFOLD_DISTANCE_TOLERANCE, RANK

MEASURED_ERRORS = 10.0  # of a gradient by differences, that what is left of a redundant constraint may be
REDUNDANCY_PER_DISTANCE = 100.0
"""Gradients of redundant constraints differ by rounding, and by this times the distance of the point from them."""


class ConstraintsDoNotVanish(ManifoldCheck):
    """sin(x)^2 + cos(x)^2 - 1 constrains nothing: with it, the unconstrained model would be returned."""

    verifies = "No constraint is zero for all states."
    needs = "The constraints at a few random points."
    runs = "once a model"
    verifies_model = True
    error = "ConstraintError."

    def examine(self, at: PointOnManifold) -> Sequence[Remark]:
        if not at.facts.nonvanishing:
            require_nonvanishing(at.manifold.invariants, at.point.time, at.point.states)
        return ()

    def learn(self, at: PointOnManifold, facts: VerifiedFacts) -> VerifiedFacts:
        return facts if facts.nonvanishing else replace(facts, nonvanishing=True)

    def find_doubt(self, at: BatchInCoordinates) -> None:
        """Return no doubt: that is a fact of the model, verified at the reference."""


class PointObeysConstraints(Check[ConstrainedPoint, BatchInCoordinates]):
    """A point off the manifold has no linear model in independent coordinates."""

    verifies = "The point satisfies all constraints and their rates."
    needs = "Nothing."
    runs = "at every point"
    error = "ConstraintError with the residuals by name."

    examines = ConstrainedPoint

    def examine(self, at: ConstrainedPoint) -> Sequence[Remark]:
        at.manifold.require_point()
        return ()

    def find_doubt(self, at: BatchInCoordinates) -> Mask:
        return np.asarray(~(at.geometry.distance <= MANIFOLD_DISTANCE_TOLERANCE))


class RankIsClear(ManifoldCheck):
    """The order of the linear model is N less the rank of H: a doubtful rank is a doubtful order."""

    verifies = "The singular values of H determine the number of independent constraints."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("rank",)

    def examine(self, at: PointOnManifold) -> Sequence[Remark]:
        rank, manifold = at.manifold.rank, at.manifold
        doubtful = "The number of independent constraints is doubtful:"
        if not rank.is_clear:
            text = (
                f"{doubtful} the singular values show a gap of only {rank.gap:.3g} between what counts as independent "
                "and what does not."
            )
            return (Remark("rank", text),)
        gradient = manifold.invariants.gradient(at.point.time, at.point.states)
        # A measured gradient leaves as much by its own errors: only an exact one shows a difference.
        if gradient.is_exact and rank.rejected > max(
            NEWTON_SINGULAR_VALUE_TOLERANCE, REDUNDANCY_PER_DISTANCE * manifold.residual
        ):
            text = (
                f"{doubtful} one counts as redundant that differs from the others by {rank.rejected:.2g} in sizes of "
                "the states, which is more than rounding. If it is a constraint of its own, write it so that it "
                "differs by more; otherwise leave it out."
            )
            return (Remark("rank", text),)
        return ()

    def find_doubt(self, at: BatchInCoordinates) -> Mask | None:
        """Check whether constraints that depend on others at the reference are independent of them here."""
        tangents, geometry = at.tangents, at.geometry
        redundant = sorted(set(range(tangents.gradient.shape[1])).difference(geometry.rows))
        if not redundant:
            return None
        rates = np.abs(tangents.gradient[:, redundant] @ (tangents.T * geometry.y_sizes[:, None]))
        largest = rates.max(axis=2, initial=0.0)
        errors = geometry.H_errors[:, redundant] @ np.abs(tangents.T * geometry.y_sizes[:, None])
        allowed = RANK * geometry.row_norms[:, redundant] + MEASURED_ERRORS * errors.max(axis=2, initial=0.0)
        return np.asarray(~(largest <= allowed).all(axis=1))


class PointIsReachable(ManifoldCheck):
    """Nearly parallel constraints may be satisfied far from the solution that they mean together."""

    verifies = "Newton's method predicts no solution of the constraints far from the point."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("position",)

    def examine(self, at: PointOnManifold) -> Sequence[Remark]:
        if any(remark.kind == "position" for remark in at.point.remarks):  # said when the point was assembled
            return ()
        return position_remarks(at.manifold.invariants, at.point.time, at.point.states)

    def find_doubt(self, at: BatchInCoordinates) -> None:
        """Return no doubt: near the manifold and well conditioned, no point is far from the solution that is meant."""


class MotionKeepsConstraints(CoordinateCheck):
    """H f = 0 (Spencer eq. 4.5): otherwise the constraint is not one of this model."""

    verifies = "The motion keeps every constraint, H f + h_t = 0, and the rank, at the point and near it."
    needs = "Three evaluations near the first point of a model."
    runs = "at every point"
    verifies_model = True
    error = "ConstraintError if one changes, NumericalError at a singular configuration."

    def examine(self, at: PointInCoordinates) -> Sequence[Remark]:
        if at.invariance is not None:
            require_invariance(at.frame.parametrization, at.invariance)
        return ()

    def learn(self, at: PointInCoordinates, facts: VerifiedFacts) -> VerifiedFacts:
        if at.invariance is None or at.invariance.rates is None:
            return facts
        return replace(facts, rank=at.invariance.rank, rates=at.invariance.rates)

    def find_doubt(self, at: BatchInCoordinates) -> Mask | None:
        H, f, sizes = at.tangents.gradient, at.tangents.rates, at.geometry.sizes
        if not H.shape[1]:
            return None
        known_rates = at.facts.rates
        typical = np.abs(f) if known_rates is None else np.maximum(np.abs(f), known_rates)
        terms = (np.abs(H) @ sizes[..., None])[..., 0]
        off, size = drift(H, f, typical, sizes, terms)
        off -= (at.geometry.H_errors @ np.abs(f)[..., None])[..., 0]
        return np.asarray(~(off <= at.geometry.invariant_tolerance * size).all(axis=1))


class NothingIsConserved(CoordinateCheck):
    """A declared conserved quantity would remove a true degree of freedom."""

    verifies = "Declared velocity constraints are linear in the velocities, as energies are not."
    needs = "Two evaluations of the constraints."
    runs = "once a model"
    verifies_model = True
    kinds = ("conserved-quantity",)

    def examine(self, at: PointInCoordinates) -> Sequence[Remark]:
        if at.facts.nothing_conserved or not len(at.manifold.invariants):
            return ()
        text = (
            "is not linear in the velocities: it may be a conserved quantity (energy, say) instead of a constraint. A "
            "conserved quantity must not be declared: it removes a true degree of freedom."
        )
        return tuple(Remark("conserved-quantity", f"'{name}' {text}") for name in at.conserved)

    def learn(self, at: PointInCoordinates, facts: VerifiedFacts) -> VerifiedFacts:
        is_new = not at.facts.nothing_conserved and len(at.manifold.invariants) > 0
        return replace(facts, nothing_conserved=not at.conserved) if is_new else facts

    def find_doubt(self, at: BatchInCoordinates) -> None:
        """Return no doubt: a model with such constraints has no batches."""


class InputsKeepConstraints(CoordinateCheck):
    """H f_u = 0: forces do not move the states off the manifold."""

    verifies = "No input moves the states off the manifold, H f_u = 0."
    needs = "Nothing."
    runs = "at every point"
    error = "ConstraintError with the input and the constraint."

    def examine(self, at: PointInCoordinates) -> Sequence[Remark]:
        parametrization = at.frame.parametrization
        # An input that prescribes a motion moves the manifold itself, which is verified at moved inputs.
        if parametrization.rows and not at.manifold.invariants.prescribing:
            verify_inputs(parametrization, *at.input_derivatives)
        return ()

    def find_doubt(self, at: BatchInCoordinates) -> Mask | None:
        if not at.tangents.gradient.shape[1]:
            return None
        H = at.tangents.gradient[:, at.geometry.rows]
        f_u = at.tangents.derivatives[..., len(at.tangents.independent) :]
        tolerance = at.geometry.invariant_tolerance
        return np.asarray(~(np.abs(H @ f_u) <= tolerance * (np.abs(H) @ np.abs(f_u))).all(axis=(1, 2)))
