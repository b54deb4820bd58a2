"""Everything that is decided about the manifold at one point: invariants, rank, coordinates, parametrization."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError
from fmilin.manifold.coordinates import Coordinates, LocalParametrization
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.nonlinear import has_expressions, select_expressions
from fmilin.manifold.nonvanishing import require_nonvanishing
from fmilin.manifold.position import SOLVED_FOR, position_remarks
from fmilin.manifold.projection import require_on_manifold
from fmilin.manifold.rank import RankDecision, decide_rank, independent_rows
from fmilin.manifold.selection import Manifold, Selection, carried_on, find_kinematic_pairs, linear_states, selected
from fmilin.manifold.verification import Verified, VerifiedFacts, conserved_quantities, verify_inputs, verify_invariance
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import DOUBTFUL

PER_DISTANCE = 100.0  # difference between gradients of redundant constraints over the distance from the manifold


@dataclass(frozen=True)
class Frame:
    """Independent coordinates at a point, checked."""

    parametrization: LocalParametrization
    selection: Selection  # the P coordinates, their kind and condition number
    residual: float  # distance of the point from the manifold, in sizes of the states
    manifold: Manifold  # what the choice was made from
    remarks: tuple[Remark, ...]
    verified: Verified | None  # how well the motion keeps the constraints; None without any

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates y = rho(x)."""
        return self.parametrization.coordinates

    @property
    def invariants(self) -> Invariants:
        """What the manifold is made of."""
        return self.parametrization.invariants

    @property
    def y0(self) -> FloatArray:
        """The coordinates of the point, shape (P,)."""
        return self.parametrization.y0

    @property
    def T(self) -> FloatArray:
        """DPsi at the point, shape (N, P)."""
        return self.parametrization.derivative

    def verify_inputs(self, f_u: FloatArray, error: FloatArray) -> None:
        """Check that no input leaves the manifold, from slopes of the rates and their errors, each (N, nu)."""
        if self.verified is not None:
            verify_inputs(self.parametrization, self.verified, (f_u, error))

    @cached_property
    def x_u(self) -> FloatArray:
        """dPsi/du: how the manifold moves with the inputs, shape (N, nu); zero unless they prescribe a motion."""
        return self.parametrization.along_inputs()

    @property
    def y_scales(self) -> FloatArray:
        """A size for each coordinate, shape (P,)."""
        return self.parametrization.y_scales


def frame_at(
    model: Model,
    point: OperatingPoint,
    *,
    named: Sequence[str] = (),
    advised: Sequence[str] = (),
    kind: str = "partition",
    previous: Selection | None = None,
    facts: VerifiedFacts | None = None,
    inputs_too: bool = True,
) -> Frame:
    """Find the manifold at ``point``, choose coordinates on it, and verify both.

    ``advised`` states, and ``previous`` coordinates on a path, are taken as long as they are good. ``facts`` are not
    verified again, those of this point are added; without ``inputs_too``, :meth:`Frame.verify_inputs` is for later.
    """
    facts = facts or VerifiedFacts()
    invariants = _invariants_at(model, point, facts, named)
    if facts.rank is None:
        require_nonvanishing(invariants, point.time, point.states)
    residual = require_on_manifold(invariants, point.time, point.states)
    manifold, rows, decision = manifold_at(invariants, point)
    is_exact = invariants.gradient(point.time, point.states).is_exact
    remarks = _rank_remarks(decision, residual, is_exact=is_exact)
    if not any(remark.kind == "position" for remark in point.remarks):
        remarks = (*remarks, *position_remarks(invariants, point.time, point.states))
    if previous is not None and not named:
        selection, carried = carried_on(manifold, previous)
        remarks = remarks if carried else (*remarks, _switch(previous, selection))
    else:
        selection, of_choice = _chosen(manifold, named, advised, kind, model.constraints.parameters)
        remarks = (*remarks, *of_choice)
    parametrization = LocalParametrization(
        invariants, rows, selection.coordinates, point.time, point.states, condition_number=selection.condition_number
    )
    verified = None
    if len(invariants):
        checked_before = facts.rank is not None
        verified = verify_invariance(parametrization, facts)
        if inputs_too:
            verify_inputs(parametrization, verified)
        facts.moving = invariants.moving
        if not checked_before:
            conserved = _conserved(parametrization)
            remarks = (*remarks, *conserved)
            facts.rank = None if conserved else facts.rank  # a remark at every point
    return Frame(parametrization, selection, residual, manifold, remarks, verified)


def with_selection(frame: Frame, point: OperatingPoint, selection: Selection) -> Frame:
    """Return the frame of other coordinates at the same point; what was verified of the manifold holds on."""
    own, condition = (frame.parametrization.rows, selection.coordinates), selection.condition_number
    parametrization = LocalParametrization(frame.invariants, *own, point.time, point.states, condition_number=condition)
    return replace(frame, parametrization=parametrization, selection=selection)


def manifold_at(invariants: Invariants, point: OperatingPoint) -> tuple[Manifold, list[int], RankDecision]:
    """Return the manifold at a point, which invariants are independent there, and how clear that is."""
    t, x, scales = point.time, point.states, invariants.scales
    gradient = invariants.gradient(t, x)
    if not np.isfinite(gradient.H).all():
        bad = [invariants.names[i] for i in np.flatnonzero(~np.isfinite(gradient.H).all(axis=1))]
        raise NumericalError(f"The gradient of the constraint '{bad[0]}' is not finite at the point.", variable=bad[0])
    decision = decide_rank(gradient.scaled, gradient.threshold)
    rows = independent_rows(gradient.scaled, decision.rank, invariants.declared)
    position = np.array(invariants.is_position_level, dtype=bool)[rows]

    def linear() -> NDArray[np.bool_]:
        if 2 * len(invariants.pairs) < len(x):
            return linear_states(invariants, t, x)
        return np.ones(len(x), dtype=bool)

    H, Hs, states = gradient.H[rows], gradient.scaled[rows], invariants.model.states
    return Manifold(states, H, Hs, position, linear, invariants.pairs, scales, x), rows, decision


def kept_states(
    model: Model, point: OperatingPoint, named: Sequence[str] = (), *, by_default: bool = False
) -> tuple[int, ...]:
    """Return which states a partition keeps at a point, unverified; ``by_default`` named ones where they do well."""
    manifold = manifold_at(_invariants_at(model, point, VerifiedFacts(), named), point)[0]
    given, advised = ((), named) if by_default else (named, ())
    return _chosen(manifold, given, advised, "partition", {})[0].kept or ()


def row_terms(model: Model, point: OperatingPoint) -> FloatArray:
    """Return the sizes of the terms that the rows of H are sums of at a point, (m,), in sizes of the states."""
    return _invariants_at(model, point, VerifiedFacts()).gradient(point.time, point.states).reference


def _invariants_at(model: Model, point: OperatingPoint, facts: VerifiedFacts, named: Sequence[str] = ()) -> Invariants:
    halved = 0 < len(named) < len(model.states)  # positions alone may have been named: their velocities go along
    pairs = facts.pairs
    if pairs is None and (len(model.constraints) or halved):
        pairs = facts.pairs = find_kinematic_pairs(model, point)  # None near points where it cannot be evaluated
    return Invariants(model, point.inputs, pairs or {}, model.states.scales(point.states), moving=facts.moving)


def _chosen(
    manifold: Manifold, named: Sequence[str], advised: Sequence[str], kind: str, parameters: Mapping[str, float]
) -> tuple[Selection, tuple[Remark, ...]]:
    """Return the coordinates that are named, or advised and regular, or chosen by ``kind``, and remarks."""
    if named or not advised:
        return _selected(manifold, named, kind, parameters), ()
    with suppress(NumericalError):
        selection = _selected(manifold, advised, kind, parameters)
        if selection.condition_number <= DOUBTFUL:
            return selection, ()
    alternative = _selected(manifold, (), kind, parameters)
    text = (
        f"The recommended independent states {', '.join(advised)} do not determine the others well at this point; "
        f"{', '.join(alternative.signals.names)} were taken instead."
    )
    return alternative, (Remark("conditioning", text),)


def _selected(manifold: Manifold, named: Sequence[str], kind: str, parameters: Mapping[str, float]) -> Selection:
    if has_expressions(named):
        return select_expressions(manifold, named, parameters)
    return selected(manifold, named, kind)


def _switch(previous: Selection, selection: Selection) -> Remark:
    return Remark(
        "coordinates-switched",
        f"The coordinates {', '.join(previous.signals.names)} of the point before are no longer regular here; "
        f"{', '.join(selection.signals.names)} are used from here on.",
    )


def _rank_remarks(decision: RankDecision, residual: float, *, is_exact: bool) -> tuple[Remark, ...]:
    doubtful = "The number of independent constraints is doubtful:"
    if not decision.is_clear:
        text = (
            f"{doubtful} the singular values show a gap of only {decision.gap:.3g} between what counts as independent "
            "and what does not."
        )
        return (Remark("rank", text),)
    # Gradients of redundant constraints differ by rounding, and by about the distance of the point from the manifold.
    if is_exact and decision.rejected > max(SOLVED_FOR, PER_DISTANCE * residual):
        text = (
            f"{doubtful} one counts as redundant that differs from the others by {decision.rejected:.2g} in sizes of "
            "the states, which is more than rounding. If it is to hold something else, write it so that it differs by "
            "more; otherwise leave it out."
        )
        return (Remark("rank", text),)
    return ()


def _conserved(parametrization: LocalParametrization) -> tuple[Remark, ...]:
    text = (
        "is not linear in the velocities: it may be a conserved quantity (energy, say) instead of a constraint. A "
        "conserved quantity must not be declared: it removes a true degree of freedom."
    )
    return tuple(Remark("conserved-quantity", f"'{name}' {text}") for name in conserved_quantities(parametrization))
