"""How points move: motions along which A stays the same, and how A changes along others.

One search serves one point and many. Its questions are those of :mod:`fmilin.manifold.uniform`, with a leading axis
over the points, in the coordinates in use. A motion may be steady in other coordinates: at one point they are searched
(:mod:`fmilin.manifold.steady_coordinates`), of a batch such points remain open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.manifold.continued_motion import (
    ContinuedBatch,
    ContinuedMotion,
    ContinuedPoint,
    Mask,
    Subset,
    continue_batch,
)
from fmilin.manifold.derivatives import TangentDerivatives
from fmilin.manifold.frame import Frame
from fmilin.manifold.nonlinear import detect_turns
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.manifold.selection import Selection
from fmilin.manifold.steady_coordinates import FunctionsOfStates, SteadyCoordinates
from fmilin.manifold.uniform import (
    COMPARISON_TIME,
    SLOWEST_RATE,
    Change,
    MovingBatch,
    UniformMotion,
    compare_motion,
    confirm_steady,
    detect_falls,
    find_comparable,
    find_fastest_states,
    find_uninfluential,
    is_straight,
    may_turn,
)
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import CONSTANT_JACOBIAN_TOLERANCE

DEPENDENT_STATE_TOLERANCE = 1e-13  # square of a singular value, over the largest: below it states are not coordinates


@dataclass(frozen=True, eq=False)
class MotionBatch:
    """How k points move."""

    fastest: NDArray[np.intp]  # (k,), the state that moves fastest in its size; -1 at rest
    steady: Mask  # (k,), where the motion is steady, in the coordinates in use or in those of ``selections``
    open: Mask  # (k,), where it may be steady in other coordinates, or change with time, and was not searched
    carried: Mask  # (k, P), coordinates on which nothing depends, with changing rates all the same
    later: FloatArray  # (k,), how much later A was the same, in s
    change: Change  # of A along the motion
    has_choice: bool = True  # whether there are constraints, and so other coordinates to choose
    selections: dict[int, Selection] = field(default_factory=dict)  # other coordinates, by number of the point

    @classmethod
    def not_searched(cls, fastest: NDArray[np.intp], order: int, *, has_choice: bool = True) -> MotionBatch:
        """Return that of points in ``order`` coordinates of which no more is known than their fastest states."""
        count = len(fastest)
        steady, is_open, carried = (np.zeros(shape, dtype=bool) for shape in (count, count, (count, order)))
        return cls(fastest, steady, is_open, carried, np.zeros(count), Change.not_compared(count), has_choice)

    def list_carried(self, k: int, names: Sequence[str]) -> tuple[str, ...]:
        """Return which coordinates, of such names, are carried at a point."""
        return tuple(name for name, carried in zip(names, self.carried[k].tolist(), strict=True) if carried)


@dataclass(frozen=True)
class KeptStates:
    """Coordinates that are states, at k points: the same questions as :class:`FunctionsOfStates` answers at one."""

    positions: list[int]

    def compute_accelerations(self, at: MovingBatch) -> FloatArray:
        """Return y'' (k, P), zero where it is rounding: that of the states."""
        return at.accelerations[:, self.positions]

    def compute_errors(self, at: MovingBatch) -> FloatArray:
        """Return the errors of the derivatives of y' along y, times the sizes of y, (k, P, P) or (k, P, 1)."""
        return at.f_y_error[:, self.positions]

    def find_free_states(self, at: MovingBatch, tied: Mask) -> Mask:
        """Return which states, of those that are not tied (k, N), have no effect on any rate, to first order."""
        free = ~tied  # states that are not coordinates have no columns
        free[:, self.positions] &= find_uninfluential(at.f_y, at.f_y_error, at.y_sizes)
        return free

    def find_leading(self, free: Mask) -> Mask:
        """Return which coordinates must be steady, (k, P): those that are not free."""
        return ~free[:, self.positions]

    def find_turning(self, at: MovingBatch, leading: Mask, units: Sequence[str]) -> Mask:
        """Return where A may turn with the motion without a change of its eigenvalues, (k,)."""
        return may_turn(at, self.positions, leading, units)


def find_motion(
    evaluator: PointEvaluator,
    point: OperatingPoint,
    base: Evaluation,
    frame: Frame,
    derivatives: TangentDerivatives,
    *,
    spectra: bool = True,
) -> MotionBatch:
    """Describe how one point moves: a batch of one, with a search for coordinates in which its motion is steady.

    ``spectra``: whether the eigenvalues of A are compared where A changes.
    """
    model = evaluator.model
    sizes, order = frame.invariants.scales[None], derivatives.order
    fastest = find_fastest_states(derivatives, sizes)
    has_choice = bool(len(frame.manifold.H) and order)
    motion = MotionBatch.not_searched(fastest, order, has_choice=has_choice)
    # A prescribed motion goes on with its inputs, which are held here.
    if frame.invariants.prescribing or not order:
        return motion
    moves, coordinates = bool(fastest[0] >= 0), frame.coordinates
    if not moves and model.autonomous:
        return motion
    at = _describe_rates(model, derivatives, (coordinates.R @ base.derivatives)[None], sizes, frame.y_scales[None])
    independent, x = frame.selection.independent, point.states
    functions = FunctionsOfStates(coordinates, frame.selection.signals.names, model.states, x)
    search = _MotionSearch(
        model,
        x[None],
        frame.manifold.H[None],
        derivatives.T,
        functions.compute_A(derivatives.f_y[0], frame.T, base.derivatives)[None],
        at,
        functions if independent is None else KeptStates(list(independent)),
        fastest >= 0,
        together=continue_batch(evaluator, point, frame, derivatives) if moves else None,
        alone=ContinuedPoint(evaluator, point, frame),
        spectra=spectra,
    )
    if not moves:
        return replace(motion, change=search.compare_with_time())
    selections: dict[int, Selection] = {}
    steady = SteadyMotions.not_searched(1, order)
    # Constraints that depend on time may change A later, although it stays the same so far.
    if has_choice and not frame.invariants.moving:
        steady = search.find_steady()
        if not (steady.is_steady[0] or steady.is_fall[0]):
            other = SteadyCoordinates(evaluator, point, frame, derivatives.f_y[0], at, search.free[0]).find()
            if other is not None:
                later = np.array([other.later])
                steady = steady._replace(is_steady=np.array([True]), carried=other.carried[None], later=later)
                selections[0] = other.selection
    change = search.compare(steady, motion.open)
    return MotionBatch(
        fastest, steady.is_steady, motion.open, steady.carried, steady.later, change, has_choice, selections
    )


def find_motions(model: Model, derivatives: TangentDerivatives, parametrization: LocalParametrization) -> MotionBatch:
    """Describe how the points of a batch move; points that may be steady in other coordinates remain open."""
    independent, rates, order = parametrization.independent, derivatives.rates, derivatives.order
    fastest = find_fastest_states(derivatives, parametrization.sizes)
    has_choice = bool(parametrization.dependent_states and independent)
    moves = fastest >= 0
    if not order or (model.autonomous and not moves.any()):
        return MotionBatch.not_searched(fastest, order, has_choice=has_choice)
    search = _MotionSearch(
        model,
        parametrization.points.states,
        parametrization.H,
        derivatives.T,
        parametrization.coordinates.project(derivatives.f_y),
        _describe_rates(model, derivatives, rates[:, independent], parametrization.sizes, parametrization.y_sizes),
        KeptStates(independent),
        moves,
        ContinuedBatch(model, parametrization, np.arange(len(fastest))),
    )
    steady = SteadyMotions.not_searched(len(fastest), order)
    is_open = np.zeros(len(fastest), dtype=bool) if model.autonomous else search.find_time_dependent()
    change = steady.change
    if moves.any():
        # Without constraints there are no other coordinates: A is compared along the motion alone.
        if parametrization.dependent_states:
            steady = search.find_steady()
            is_open = is_open | search.find_open(steady)
        change = search.compare(steady, is_open)
        is_open = is_open | search.find_unreached(steady, is_open, change) | search.find_turning_bodies(change)
    return MotionBatch(fastest, steady.is_steady, is_open, steady.carried, steady.later, change, has_choice)


def _describe_rates(
    model: Model, derivatives: TangentDerivatives, y_rates: FloatArray, sizes: FloatArray, y_sizes: FloatArray
) -> MovingBatch:
    """Return how points with ``derivatives`` move; ``y_rates`` (k, P) are the rates of their coordinates."""
    return MovingBatch(
        derivatives.rates,
        y_rates,
        derivatives.f_y,
        derivatives.scaled_f_y_errors,
        derivatives.rate_sizes.largest,
        sizes,
        y_sizes,
        np.abs(derivatives.rates) / model.states.scales(),
    )


class SteadyMotions(NamedTuple):
    """Which of k points move steadily in the coordinates in use, and which fall."""

    is_steady: Mask  # (k,)
    carried: Mask  # (k, P), coordinates on which nothing depends, with changing rates all the same
    later: FloatArray  # (k,), how much later A was the same, in s
    is_fall: Mask  # (k,), where the motion is a fall, which no coordinates make steady
    change: Change  # of A along the falls that were compared

    @classmethod
    def not_searched(cls, count: int, order: int) -> SteadyMotions:
        """Return that of points in ``order`` coordinates at which nothing was searched."""
        none = np.zeros(count, dtype=bool)
        return cls(none, np.zeros((count, order), dtype=bool), np.zeros(count), none, Change.not_compared(count))


@dataclass(frozen=True, eq=False)
class _MotionSearch:
    """The search in the coordinates in use at k points, some of which move."""

    model: Model
    x: FloatArray  # (k, N)
    H: FloatArray  # (k, m, N), gradient of the constraints
    T: FloatArray  # (k, N, P)
    A: FloatArray  # (k, P, P)
    at: MovingBatch
    coordinates: KeptStates | FunctionsOfStates
    moving: Mask  # (k,), which points move
    together: ContinuedBatch | None  # the model further on, for all points
    alone: ContinuedPoint | None = None  # the same for a batch of one, where the first does not answer
    spectra: bool = True

    @property
    def sources(self) -> list[ContinuedMotion]:
        """The sources of the model further on, in the order in which they are used."""
        return [source for source in (self.together, self.alone) if source is not None]

    @cached_property
    def curvature(self) -> FloatArray:
        """The second derivatives y'' (k, P)."""
        return self.coordinates.compute_accelerations(self.at)

    @cached_property
    def free(self) -> Mask:
        """Which states can be moved alone and nothing depends on them, to first order, shape (k, N)."""
        return self.coordinates.find_free_states(self.at, (self.H != 0).any(axis=1))

    @cached_property
    def keeps_uniform(self) -> Mask:
        """Where y'' = 0 in the coordinates in use, except states on which nothing depends, shape (k,)."""
        return self.moving & is_straight(self.curvature, self.coordinates.find_leading(self.free))

    def select(
        self, subset: Subset, leading: Mask, source: ContinuedMotion
    ) -> tuple[MovingBatch, UniformMotion, ContinuedMotion]:
        """Return some points, their motion in y, and the model further on."""
        part = self.at if isinstance(subset, slice) else self.at[subset]
        return (
            part,
            UniformMotion(part.y_rates, part.y_sizes, self.A[subset], leading[subset]),
            _continue_some(source, subset),
        )

    def find_steady(self) -> SteadyMotions:
        """Return falls and steady motions in the coordinates in use."""
        count, order = self.A.shape[:2]
        is_steady, carried, later = np.zeros(count, dtype=bool), np.zeros((count, order), dtype=bool), np.zeros(count)
        change, leading = Change.not_compared(count), self.coordinates.find_leading(self.free)
        # Falls of a point that is evaluated alone are those of confirm_steady.
        if self.together is not None:
            for subset in _groups(self.keeps_uniform & self.curvature.any(axis=1)):
                part, uniform, continued = self.select(subset, leading, self.together)
                change.write(subset, detect_falls(part, uniform, self.curvature[subset], continued))
        falls = change.is_compared
        unknown = self.keeps_uniform & ~falls
        for source in self.sources:
            for subset in _groups(unknown):
                confirmation = confirm_steady(*self.select(subset, leading, source))
                is_steady[subset], carried[subset] = confirmation.steady, confirmation.carried
                later[subset] = confirmation.later
                falls[subset] = confirmation.falls
                unknown[subset] = ~confirmation.good
        return SteadyMotions(is_steady, carried, later, falls, change)

    def find_open(self, steady: SteadyMotions) -> Mask:
        """Return where the motion may be steady in other coordinates, shape (k,)."""
        is_open = self.keeps_uniform & ~steady.is_steady & ~steady.is_fall
        straight = (self.at.accelerations == 0) | self.free
        order = self.A.shape[2]
        rest = np.flatnonzero(self.moving & ~self.keeps_uniform & (straight.sum(axis=1) >= order))
        if len(rest):
            # Whether the states that move uniformly may determine all others.
            scaled = self.T[rest] / self.at.sizes[rest, :, None]
            tangents = np.linalg.qr(scaled)[0] * straight[rest][..., None]
            values = np.linalg.eigvalsh(np.swapaxes(tangents, 1, 2) @ tangents)
            is_open[rest] = values[:, 0] > DEPENDENT_STATE_TOLERANCE * values[:, -1]
        return np.asarray(is_open)

    @cached_property
    def comparable(self) -> tuple[Mask, Mask]:
        """Where A can be compared along the motion (k,), and in which rows (k, P)."""
        return find_comparable(self.at, self.curvature, self.A, self.coordinates.compute_errors(self.at))

    def compare(self, steady: SteadyMotions, is_open: Mask) -> Change:
        """Return how A changes along motions that are not steady, nor open; along falls as it was compared."""
        change = steady.change.copy()
        varying = self.moving & ~steady.is_steady & ~is_open & ~change.is_compared
        if not varying.any():
            return change
        comparable, leading = self.comparable
        straight = is_straight(self.curvature, leading)
        for source in self.sources:
            remaining = varying & comparable & ~change.is_compared
            for subset in (*_groups(remaining & straight), *_groups(remaining & ~straight)):
                part, uniform, continued = self.select(subset, leading, source)
                turns = np.zeros(len(part.rates), dtype=bool)
                if self.spectra:
                    turns = self.coordinates.find_turning(part, uniform.leading, self.model.states.units)
                change.write(subset, compare_motion(part, uniform, self.curvature[subset], continued, turns))
        return change

    def find_unreached(self, steady: SteadyMotions, is_open: Mask, change: Change) -> Mask:
        """Return where the model could not be evaluated so far on: a point alone is followed over a part of the way."""
        remaining = self.moving & ~steady.is_steady & ~is_open & ~change.is_compared
        return remaining & self.comparable[0] if remaining.any() else remaining

    def find_turning_bodies(self, change: Change) -> Mask:
        """Return where A changes, and bodies turn so that it may stay in coordinates that do not turn with them."""
        changing = np.asarray(change.part > CONSTANT_JACOBIAN_TOLERANCE)
        if not changing.any():
            return changing
        structure, rates = self.model.constraints.structure, self.at.rates
        turns = detect_turns(
            self.x[0], rates[0], H=self.H[0, : len(structure)], structure=structure, T=self.T[0], f_y=self.at.f_y[0]
        )
        turning = [turn.may_be_steady(self.x, rates, self.at.accelerations) for turn in turns]
        return np.asarray(changing & np.any(turning, axis=0)) if turning else np.zeros_like(changing)

    def find_time_dependent(self) -> Mask:
        """Return which points at rest have other rates after the time of the fastest eigenvalue, shape (k,)."""
        answers = np.zeros(len(self.x), dtype=bool)
        for subset in _groups(~self.moving):
            A = self.A[subset]
            moduli = np.abs(np.linalg.eigvals(np.where(np.isfinite(A), A, 0.0))).max(axis=1)
            later = COMPARISON_TIME / np.where(moduli > 0, moduli, 1.0)
            answers[subset] = _continue_some(self.sources[-1], subset).depends_on_time(later)
        return answers

    def compare_with_time(self) -> Change:
        """Return how A changes at one point at rest as time goes on, over the times of its own eigenvalues."""
        if self.alone is None or not self.find_time_dependent()[0]:
            return Change.not_compared(len(self.x))
        moduli = np.abs(np.linalg.eigvals(self.A[0]))
        fastest = moduli.max()
        slowest = moduli.min(where=moduli > SLOWEST_RATE * fastest, initial=fastest)
        # A that is zero has no time of its own: a second.
        rates = np.resize([fastest, slowest] if moduli.any() else [1.0], self.at.relative_rates.shape)
        at, still = replace(self.at, relative_rates=rates), np.zeros_like(self.at.y_rates)
        uniform = UniformMotion(still, at.y_sizes, self.A, np.ones(still.shape, dtype=bool))
        change = compare_motion(at, uniform, still, self.alone, np.array([self.spectra]))
        # Of an A that stays at rest there is nothing to report.
        return change if change.part[0] > CONSTANT_JACOBIAN_TOLERANCE else Change.not_compared(len(self.x))


def _continue_some(source: ContinuedMotion, subset: Subset) -> ContinuedMotion:
    """Return the model further on for points of a group; see :func:`_groups`."""
    return source if isinstance(subset, slice) else source.select(subset)


def _groups(chosen: Mask) -> list[Subset]:
    """Return these points as one group, which is a slice where it has all of them; none where there are none."""
    if not chosen.any():
        return []
    return [slice(None)] if chosen.all() else [np.flatnonzero(chosen)]
