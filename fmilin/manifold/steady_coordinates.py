"""Other coordinates in which the motion of one point is steady, so that A stays the same along it.

They are chosen among states that move uniformly, then, of bodies that turn by quaternions, among functions of the
states that do not turn with the bodies. Rows of A of states that nothing depends on (where a wheel touches the ground)
may change; the eigenvalues do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.continued_motion import ContinuedPoint, Mask
from fmilin.manifold.coordinates import Coordinates
from fmilin.manifold.frame import Frame, with_selection
from fmilin.manifold.nonlinear import Turn, charts, detect_turns, expressed, select_expressions
from fmilin.manifold.rank import pivoted_qr
from fmilin.manifold.selection import NOT_TURNING, Selection, select_states
from fmilin.manifold.uniform import MovingBatch, UniformMotion, confirm_steady, find_uninfluential
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import (
    DOUBTFUL_CONDITION_NUMBER,
    EQUILIBRIUM_RATE_TOLERANCE,
    ROUNDING_TOLERANCE,
    UNIFORM_RATE_TOLERANCE,
)

MOVING_WEIGHT = 1e-2  # of states that move, over that of states at rest, which are preferred
MAX_ATTEMPTS = 3  # choices of coordinates that are tried


@dataclass(frozen=True)
class FunctionsOfStates:
    """Coordinates y = rho(x) of any kind at one point x, described as a batch of one."""

    coordinates: Coordinates
    names: Sequence[str]
    states: Signals
    x: FloatArray  # (N,)

    def compute_A(self, f_y: FloatArray, T: FloatArray, rates: FloatArray) -> FloatArray:
        """Return the derivatives of y' along y, (P, P), from those of the rates (N,) along y and from T (N, P)."""
        projected = self.coordinates.project(
            f_y
        )  # of states it is a part of f_y, and takes no product of large matrices
        return projected if self.coordinates.is_linear else projected + self.coordinates.curvature(self.x, rates) @ T

    def compute_second_derivatives(self, at: MovingBatch) -> tuple[FloatArray, FloatArray]:
        """Return y'' and the size of its terms, each (P,)."""
        R, rates, accelerations = self.coordinates.R, at.rates[0], at.accelerations[0]
        curvature = self.coordinates.curvature(self.x, rates)
        terms = np.abs(R) @ np.abs(accelerations) + np.abs(curvature) @ np.abs(rates)
        return R @ accelerations + curvature @ rates, terms

    def compute_accelerations(self, at: MovingBatch) -> FloatArray:
        """Return y'' (1, P), zero where it is rounding."""
        second, terms = self.compute_second_derivatives(at)
        rounding = UNIFORM_RATE_TOLERANCE * terms + ROUNDING_TOLERANCE * at.fastest_rate[0] ** 2 * at.y_sizes[0]
        return np.where(np.abs(second) <= rounding, 0.0, second)[None]

    def compute_errors(self, at: MovingBatch) -> FloatArray:
        """Return the errors of the derivatives of y' along y, times the sizes of y, (1, P, P)."""
        return np.abs(self.coordinates.R) @ at.f_y_error

    def find_free_states(self, at: MovingBatch, tied: Mask) -> Mask:
        """Return which states, of those that are not tied (1, N), have no effect on any rate, to first order."""
        R = self.coordinates.R
        errors = (at.f_y_error / at.y_sizes[:, None]) @ np.abs(R) * at.sizes[:, None]
        return ~tied & find_uninfluential(at.f_y @ R, errors, at.sizes)

    def find_leading(self, free: Mask) -> Mask:
        """Return which coordinates must be steady, (1, P): not those that are a free state."""
        return ~find_free_names(self.names, self.states, free[0])[None]

    def find_turning(self, at: MovingBatch, leading: Mask, units: Sequence[str]) -> Mask:
        """Return that A may turn: speeds in each unit are not read off functions of states."""
        return np.ones(len(at.rates), dtype=bool)


def find_free_names(names: Sequence[str], states: Signals, free: Mask) -> Mask:
    """Return which names are those of a free state (N,)."""
    positions = states.positions
    return np.array([name in positions and free[positions[name]] for name in names], dtype=bool)


@dataclass(frozen=True, eq=False)
class SteadySelection:
    """Coordinates in which a motion is steady, confirmed further on."""

    selection: Selection
    carried: Mask  # (P,), those on which nothing depends, with changing rates all the same
    later: float  # how much later A was the same, in s


class SteadyCoordinates:
    """The search at one point; ``free`` states (N,) can be moved alone and nothing depends on them."""

    def __init__(
        self,
        evaluator: PointEvaluator,
        point: OperatingPoint,
        frame: Frame,
        f_y: FloatArray,
        at: MovingBatch,
        free: Mask,
    ) -> None:
        self._evaluator, self._model = evaluator, evaluator.model
        self._point, self._frame, self._f_y, self._at = point, frame, f_y, at
        self._free = free
        self._rates, self._sizes = at.rates[0], at.sizes[0]

    def find(self) -> SteadySelection | None:
        """Return the first coordinates that are confirmed."""
        return self._find_among_states() or self._find_among_charts()

    def _find_among_states(self) -> SteadySelection | None:
        """Choose among the states that move uniformly; leave out those with rates that change later."""
        allowed = (self._at.accelerations[0] == 0) | self._free
        for _ in range(MAX_ATTEMPTS):
            selection = self._select_states(allowed)
            if selection is None:
                return None
            steady, changed = self._confirm(with_selection(self._frame, self._point, selection))
            moving = np.abs(self._rates) > EQUILIBRIUM_RATE_TOLERANCE * self._sizes
            refuted = changed & allowed & ~self._free & moving
            if steady is not None or not refuted.any():
                return steady
            allowed = allowed & ~refuted
        return None

    def _find_among_charts(self) -> SteadySelection | None:
        """Choose among coordinates that do not turn with bodies."""
        names, pairs = self._model.states.names, self._frame.invariants.pairs
        second = self._at.accelerations[0]
        for texts, replaced in charts(self._list_turns(), names, pairs, self._point.states, self._rates, second):
            candidates = [*texts, *(name for i, name in enumerate(names) if i not in replaced)]
            with suppress(NumericalError, UsageError):  # singular there, or named like a state
                selection = self._select_functions(candidates)
                if selection is not None:
                    steady, _ = self._confirm(with_selection(self._frame, self._point, selection))
                    if steady is not None:
                        return steady
        return None

    def _list_turns(self) -> list[Turn]:
        """Return the bodies that turn by quaternions."""
        structure, x = self._model.constraints.structure, self._point.states
        H = self._frame.invariants.gradient(self._point.time, x).H[: len(structure)]
        return detect_turns(x, self._rates, H=H, structure=structure, T=self._frame.T, f_y=self._f_y)

    def _select_states(self, allowed: Mask) -> Selection | None:
        """Return well-conditioned coordinates among the allowed states, states at rest first; None without any."""
        candidates = np.flatnonzero(allowed)
        at_rest = np.abs(self._rates[candidates]) <= EQUILIBRIUM_RATE_TOLERANCE * self._sizes[candidates]
        for choice in _choose(self._tangents[candidates], at_rest):
            selection = select_states(self._frame.manifold, candidates[choice].tolist(), "partition")
            if selection.condition_number <= DOUBTFUL_CONDITION_NUMBER:
                return selection
        return None

    def _select_functions(self, texts: Sequence[str]) -> Selection | None:
        """Return well-conditioned coordinates among functions of the states that move uniformly; None without any."""
        functions = FunctionsOfStates(
            expressed(self._frame.manifold, texts), texts, self._model.states, self._point.states
        )
        R, (second, terms) = functions.coordinates.R, functions.compute_second_derivatives(self._at)
        sizes, rates = np.abs(R) @ self._sizes, R @ self._rates
        uniform = (
            np.abs(second)
            <= UNIFORM_RATE_TOLERANCE * terms + ROUNDING_TOLERANCE * self._at.fastest_rate[0] ** 2 * sizes
        )
        candidates = np.flatnonzero(uniform | find_free_names(texts, self._model.states, self._free))
        rows = ((R * self._sizes) @ self._tangents / sizes[:, None])[candidates]
        for choice in _choose(rows, (np.abs(rates) <= EQUILIBRIUM_RATE_TOLERANCE * sizes)[candidates]):
            with suppress(NumericalError):
                chosen = [texts[i] for i in candidates[choice]]
                selection = replace(select_expressions(self._frame.manifold, chosen, {}), kind=NOT_TURNING)
                if selection.condition_number <= DOUBTFUL_CONDITION_NUMBER:
                    return selection
        return None

    @cached_property
    def _tangents(self) -> FloatArray:
        """An orthonormal basis of the tangent space in sizes of the states, shape (N, P)."""
        return np.asarray(np.linalg.qr(self._frame.T / self._sizes[:, None])[0])

    def _confirm(self, frame: Frame) -> tuple[SteadySelection | None, Mask]:
        """Continue uniformly in these coordinates; return them if steady, and which states have other rates then."""
        coordinates, names = frame.coordinates, frame.selection.signals.names
        functions = FunctionsOfStates(coordinates, names, self._model.states, self._point.states)
        f_y = self._f_y @ np.linalg.inv(coordinates.R @ self._frame.T)
        A = functions.compute_A(f_y, frame.T, self._rates)
        leading = functions.find_leading(self._free[None])
        uniform = UniformMotion((coordinates.R @ self._rates)[None], frame.y_scales[None], A[None], leading)
        continued = ContinuedPoint(self._evaluator, self._point, frame)
        confirmation = confirm_steady(self._at, uniform, continued)
        if not confirmation.steady[0]:
            return None, confirmation.changed[0]
        steady = SteadySelection(frame.selection, confirmation.carried[0], float(confirmation.later[0]))
        return steady, confirmation.changed[0]


def _choose(rows: FloatArray, at_rest: Mask) -> Iterator[list[int]]:
    """Yield P independent ones of rows (k, P): those at rest first, then the best; nothing where fewer are."""
    p = rows.shape[1]
    if len(rows) < p:
        return
    diagonal, order = pivoted_qr(rows.T)
    if diagonal[p - 1] * DOUBTFUL_CONDITION_NUMBER < diagonal[0]:
        return
    weights = np.where(at_rest, 1.0, MOVING_WEIGHT)
    yield sorted(int(i) for i in pivoted_qr((rows * weights[:, None]).T)[1][:p])
    yield sorted(int(i) for i in order[:p])
