"""Everything that is decided about the manifold at one point: invariants, rank, coordinates, parametrization."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError
from fmilin.manifold.coordinates import Coordinates
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.nonlinear import has_expressions, select_expressions
from fmilin.manifold.point_parametrization import PointParametrization
from fmilin.manifold.projection import distances, require_on_manifold
from fmilin.manifold.rank import RankDecision, decide_rank, independent_rows
from fmilin.manifold.selection import (
    NOT_TURNING,
    Manifold,
    Selection,
    continue_selection,
    find_kinematic_pairs,
    find_linear_states,
    selected,
)
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import DOUBTFUL_CONDITION_NUMBER


@dataclass(frozen=True)
class ConstraintManifold:
    """The manifold h(t, x) = 0 at a point: its invariants, which of them are independent, and how clear that is."""

    invariants: Invariants
    tangent: Manifold  # what a choice of coordinates is made from
    rows: list[int]  # M independent invariants
    rank: RankDecision
    time: float
    states: FloatArray  # (N,), the point
    facts: VerifiedFacts  # of the model, with its kinematic pairs and whether constraints depend on time

    @cached_property
    def distance(self) -> FloatArray:
        """Distance of the point from each invariant, in sizes of the states, shape (m,)."""
        return distances(self.invariants, self.time, self.states)

    @property
    def residual(self) -> float:
        """Distance of the point from the manifold, in sizes of the states."""
        return float(self.distance.max(initial=0.0))

    def require_point(self) -> None:
        """Raise ConstraintError if the point is not on the manifold."""
        require_on_manifold(self.invariants, self.time, self.states)


@dataclass(frozen=True)
class CoordinateChoice:
    """How coordinates are to be chosen.

    ``named`` states or expressions are taken, ``advised`` ones as long as they are well conditioned, those of a
    ``previous`` point of a path as long as they are regular; otherwise they are chosen by ``kind``.
    """

    named: Sequence[str] = ()
    advised: Sequence[str] = ()
    kind: str = "partition"
    previous: Selection | None = None


@dataclass(frozen=True)
class Frame:
    """Independent coordinates at a point of the manifold."""

    parametrization: PointParametrization
    selection: Selection  # the P coordinates, their kind and condition number
    constraint_manifold: ConstraintManifold
    manifold: Manifold  # what the choice was made from
    invariants: Invariants  # of the constraints
    remarks: tuple[Remark, ...] = ()  # on the choice of the coordinates

    @property
    def residual(self) -> float:
        """Distance of the point from the manifold, in sizes of the states."""
        return self.constraint_manifold.residual

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates y = rho(x)."""
        return self.parametrization.coordinates

    @property
    def y0(self) -> FloatArray:
        """The coordinates of the point, shape (P,)."""
        return self.parametrization.y0

    @property
    def T(self) -> FloatArray:
        """DPsi at the point, shape (N, P)."""
        return self.parametrization.derivative

    @cached_property
    def x_u(self) -> FloatArray:
        """dPsi/du: how the manifold moves with the inputs, shape (N, nu); zero unless they prescribe a motion."""
        return self.parametrization.along_inputs()

    @property
    def y_scales(self) -> FloatArray:
        """A size for each coordinate, shape (P,)."""
        return self.parametrization.y_scales


def constraint_manifold(
    evaluator: PointEvaluator, point: OperatingPoint, facts: VerifiedFacts, named: Sequence[str] = ()
) -> ConstraintManifold:
    """Return the manifold at a point and its rank. ``named`` coordinates may be positions alone.

    Raises NumericalError if the gradient of a constraint is not finite.
    """
    invariants, facts = _find_invariants(evaluator, point, facts, named)
    is_moving = invariants.find_time_dependence(point.time, point.states)
    facts = facts if facts.moving is is_moving else replace(facts, moving=is_moving)
    manifold, rows, rank = build_manifold(invariants, point)
    return ConstraintManifold(invariants, manifold, rows, rank, point.time, point.states, facts)


def choose_coordinates(manifold: ConstraintManifold, choice: CoordinateChoice) -> Frame:
    """Return independent coordinates with their local parametrization.

    Raises NumericalError if they do not determine the other states, UsageError if names do not fit the model.
    """
    parameters = manifold.invariants.model.constraints.parameters
    previous, named = choice.previous, choice.named
    if previous is None or named:
        selection, remarks = _chosen(manifold.tangent, named, choice.advised, choice.kind, parameters)
    else:
        selection, remarks = _continue(manifold.tangent, previous, parameters)
    parametrization = PointParametrization(
        manifold.invariants,
        manifold.rows,
        selection.coordinates,
        manifold.time,
        manifold.states,
        condition_number=selection.condition_number,
    )
    return Frame(parametrization, selection, manifold, manifold.tangent, manifold.invariants, remarks)


def _continue(
    manifold: Manifold, previous: Selection, parameters: Mapping[str, float]
) -> tuple[Selection, tuple[Remark, ...]]:
    """Return the coordinates of the point before as long as they are regular, and a diagnostic where others follow."""
    # Angles in such expressions are centred anew at each point; where they are singular, other coordinates follow.
    if previous.kind == NOT_TURNING:
        with suppress(NumericalError):
            return replace(_selected(manifold, previous.texts, "partition", parameters), kind=NOT_TURNING), ()
    selection, is_continued = continue_selection(manifold, previous)
    return selection, () if is_continued else (_switch(previous, selection),)


def with_selection(frame: Frame, point: OperatingPoint, selection: Selection) -> Frame:
    """Return the frame of other coordinates at the same point; what was verified of the manifold holds on."""
    equations, condition = (frame.parametrization.rows, selection.coordinates), selection.condition_number
    parametrization = PointParametrization(
        frame.invariants, *equations, point.time, point.states, condition_number=condition
    )
    return replace(frame, parametrization=parametrization, selection=selection)


def build_manifold(invariants: Invariants, point: OperatingPoint) -> tuple[Manifold, list[int], RankDecision]:
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
        # Where all states come in pairs the speeds are taken, which needs no test of linearity.
        if 2 * len(invariants.pairs) < len(x):
            return find_linear_states(invariants, t, x)
        return np.ones(len(x), dtype=bool)

    H, Hs, states = gradient.H[rows], gradient.scaled[rows], invariants.model.states
    return Manifold(states, H, Hs, position, linear, invariants.pairs, scales, x), rows, decision


def kept_states(
    model: Model, point: OperatingPoint, named: Sequence[str] = (), *, by_default: bool = False
) -> tuple[int, ...]:
    """Return which states a partition keeps at a point, unverified; ``by_default`` named ones where they do well."""
    manifold = build_manifold(_find_invariants(PointEvaluator(model), point, VerifiedFacts(), named)[0], point)[0]
    user_choice, advised = ((), named) if by_default else (named, ())
    return _chosen(manifold, user_choice, advised, "partition", {})[0].independent or ()


def row_terms(model: Model, point: OperatingPoint) -> FloatArray:
    """Return the sizes of the terms that the rows of H are sums of at a point, (m,), in sizes of the states."""
    return (
        _find_invariants(PointEvaluator(model), point, VerifiedFacts())[0].gradient(point.time, point.states).reference
    )


def _find_invariants(
    evaluator: PointEvaluator, point: OperatingPoint, facts: VerifiedFacts, named: Sequence[str] = ()
) -> tuple[Invariants, VerifiedFacts]:
    """Return the invariants at a point, and the facts with the kinematic pairs that they were made of."""
    model = evaluator.model
    halved = 0 < len(named) < len(model.states)  # positions alone may have been named: their velocities go along
    if facts.pairs is None and (len(model.constraints) or halved):
        facts = replace(facts, pairs=find_kinematic_pairs(evaluator, point))  # None if that fails near the point
    scales = model.states.scales(point.states)
    return Invariants(evaluator, point.inputs, facts.pairs or {}, scales, moving=facts.moving), facts


def _chosen(
    manifold: Manifold, named: Sequence[str], advised: Sequence[str], kind: str, parameters: Mapping[str, float]
) -> tuple[Selection, tuple[Remark, ...]]:
    """Return the coordinates that are named, or advised and regular, or chosen by ``kind``, and diagnostics."""
    if named or not advised:
        return _selected(manifold, named, kind, parameters), ()
    with suppress(NumericalError):
        selection = _selected(manifold, advised, kind, parameters)
        if selection.condition_number <= DOUBTFUL_CONDITION_NUMBER:
            return selection, ()
    alternative = _selected(manifold, (), kind, parameters)
    text = (
        f"The recommended independent states {', '.join(advised)} do not determine the others well at this point; "
        f"{', '.join(alternative.signals.names)} are used instead."
    )
    return alternative, (Remark("conditioning", text),)


def _selected(manifold: Manifold, named: Sequence[str], kind: str, parameters: Mapping[str, float]) -> Selection:
    if has_expressions(named):
        return select_expressions(manifold, named, parameters)
    return selected(manifold, named, kind)


def _switch(previous: Selection, selection: Selection) -> Remark:
    return Remark(
        "coordinates-switched",
        f"The coordinates {', '.join(previous.signals.names)} of the previous point are no longer regular here; "
        f"{', '.join(selection.signals.names)} are used from here on.",
    )
