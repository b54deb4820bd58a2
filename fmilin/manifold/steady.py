"""Steady motions: coordinates in which they are uniform, so that A stays the same along them.

With x' = f(x) the second derivatives along the motion are x'' = J f, which the slopes tell without a visit. Where all
coordinates move uniformly, y(t) = y0 + t y', the states follow from the constraints alone, and whether that is the
motion is seen from the rates there: no integration is needed. A second A further on, seen along one direction through
all columns, confirms it. States that nothing depends on (where a wheel touches the ground) may turn and curve: their
rows of A change along the motion, the eigenvalues do not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import DOUBTFUL, EQUILIBRIUM, ROUNDING, SAME_ALONG, STEADY, UNIFORM
from fmilin.manifold.frame import Frame
from fmilin.manifold.other_coordinates import with_selection
from fmilin.manifold.rank import pivoted_qr
from fmilin.manifold.selection import Selection, select_states
from fmilin.manifold.slopes import TangentSlopes
from fmilin.model.interface import Evaluation, Model, OperatingPoint

FURTHER = 0.3
"""How far further on the motion is compared, in times that its fastest state takes to move by its size; three times
that of the slowest state."""

SLOWEST = 1e-3  # what moves more slowly than this fraction of the fastest is not waited for

ASIDE = 0.3
"""How far states on which nothing depends are moved, in their sizes: not as far as a quaternion's components go."""

STEP = 2.0**-13  # of the difference that shows the second A, in sizes of the coordinates
LESS = 1e-2  # weight of moving states beside states at rest
PARTS = (1.0, 0.3, 0.1)  # of the path further on that are tried, from the whole: no coordinates lead everywhere
ALIKE = 1 - 1e-9  # speeds above this part of the largest are as large
ATTEMPTS = 3  # choices of coordinates that are tried

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Steady:
    """Coordinates in which a motion is steady, confirmed further on."""

    selection: Selection
    carried: tuple[str, ...]  # those on which nothing depends and whose rates change all the same
    later: float  # how much later A was the same, in s


@dataclass(frozen=True, slots=True)
class Motion:
    """How the point moves."""

    fastest: int | None = None  # the state that moves fastest in its size; None at an equilibrium
    has_choice: bool = True  # whether there are constraints, and so other coordinates that might have been taken
    steady: Steady | None = None  # coordinates in which the motion is steady, if some were found


def motion_at(model: Model, point: OperatingPoint, base: Evaluation, frame: Frame, slopes: TangentSlopes) -> Motion:
    """Say how the point moves, and find coordinates in which that is steady: those of the frame if they are."""
    search = _Search(model, point, base, frame, slopes)
    fastest = search.fastest
    has_choice = bool(len(frame.manifold.H) and len(frame.y0))
    if fastest is None or not has_choice:
        return Motion(fastest, has_choice=has_choice)
    if frame.invariants.prescribing or frame.invariants.moving:
        return Motion(fastest)
    return Motion(fastest, steady=search.first_confirmed())


def first_fastest(speeds: FloatArray) -> NDArray[np.intp]:
    """Return the first of the largest speeds (..., N): of equally fast ones rounding must not choose."""
    return np.asarray(np.argmax(speeds >= ALIKE * speeds.max(axis=-1, keepdims=True), axis=-1))


class _FurtherPoint(NamedTuple):
    """A point further along the motion: coordinates, states, x' and y'."""

    later: float
    y: FloatArray
    x: FloatArray
    f: FloatArray
    rates: FloatArray


class _Search:
    """The search for steady coordinates at one point."""

    def __init__(
        self, model: Model, point: OperatingPoint, base: Evaluation, frame: Frame, slopes: TangentSlopes
    ) -> None:
        self.model, self.point, self.frame, self.slopes = model, point, frame, slopes
        self.rates, self.sizes = base.derivatives, frame.invariants.scales
        self.pace = float(np.max(np.abs(self.rates) / model.states.scales(), initial=0.0))
        """In sizes of the states per second; how far an angle has turned already does not slow it down."""

    @cached_property
    def fastest(self) -> int | None:
        """The state that moves fastest, None at rest: rates that are rounding of the terms they sum are none."""
        slopes = self.slopes
        terms = np.abs(slopes.f_y) @ self.frame.y_scales
        terms = terms + np.abs(slopes.f_u) @ self.model.inputs.scales(self.point.inputs)
        moving = np.abs(self.rates) > np.maximum(EQUILIBRIUM * self.sizes, ROUNDING * terms)
        if not moving.any():
            return None
        return int(first_fastest(np.where(moving, np.abs(self.rates) / self.sizes, 0.0)))

    @cached_property
    def y_rates(self) -> FloatArray:
        """y', shape (P,)."""
        return self.frame.coordinates.R @ self.rates

    @cached_property
    def bends(self) -> FloatArray:
        """The second derivatives x'' (N,) beyond what their terms may leave, else 0; what a trim leaves is no bend."""
        moving = np.where(np.abs(self.y_rates) > STEADY * self.pace * self.frame.y_scales, self.y_rates, 0.0)
        second, terms = self.slopes.f_y @ moving, np.abs(self.slopes.f_y) @ np.abs(moving)
        noise = 10 * self.slopes.f_y_error @ np.abs(moving) + ROUNDING * self.pace**2 * self.sizes
        return np.where(np.abs(second) > UNIFORM * terms + noise, second, 0.0)

    @property
    def uniform(self) -> Mask:
        """Which states have x'' = 0 at the point, shape (N,)."""
        return np.asarray(self.bends == 0)

    @property
    def later(self) -> tuple[float, float]:
        """When the motion is compared, in s: soon, and when what moves or bends most slowly has come far enough."""
        moving = np.abs(self.rates) / self.model.states.scales()
        paces = np.concatenate((moving, np.sqrt(np.abs(self.bends) / self.sizes)))
        slowest = float(np.min(paces[paces > SLOWEST * self.pace], initial=self.pace))
        return FURTHER / self.pace, 3 * FURTHER / slowest

    @cached_property
    def free(self) -> Mask:
        """Which states can be moved alone and nothing depends on them, to first order, shape (N,)."""
        R = self.frame.coordinates.R
        seen, noise = np.abs(self.slopes.f_y @ R) * self.sizes, 10 * self.slopes.f_y_error @ np.abs(R) * self.sizes
        rounding = ROUNDING * seen.max(axis=1, initial=0.0, keepdims=True)
        tied = self.frame.manifold.H.any(axis=0)
        return cast("Mask", ~tied & (seen <= rounding + noise).all(axis=0))

    def first_confirmed(self) -> Steady | None:
        """Return the first coordinates that are confirmed: those in use, then those among uniform states."""
        if self._keeps_to_uniform() and (steady := self._confirmed(self.frame)[0]):
            return steady
        allowed = self.uniform | self.free
        for _ in range(ATTEMPTS):
            selection = self._selected(allowed)
            if selection is None:
                return None
            steady, changed = self._confirmed(with_selection(self.frame, self.point, selection))
            refuted = changed & allowed & ~self.free & (np.abs(self.rates) > EQUILIBRIUM * self.sizes)
            if steady or not refuted.any():
                return steady
            allowed = allowed & ~refuted
        return None

    def _keeps_to_uniform(self) -> bool:
        """Whether y'' = 0 in the coordinates in use, but for states on which nothing depends."""
        coordinates = self.frame.coordinates
        curved = coordinates.curvature(self.point.states, self.rates)
        second = coordinates.R @ self.bends + curved @ self.rates
        terms = np.abs(coordinates.R) @ np.abs(self.bends) + np.abs(curved) @ np.abs(self.rates)
        allowed = UNIFORM * terms + ROUNDING * self.pace**2 * self.frame.y_scales
        return bool((np.abs(second) <= allowed)[self._leading(self.frame)].all())

    def _leading(self, frame: Frame) -> Mask:
        """Which coordinates must be steady, shape (P,): not those that are a state on which nothing depends."""
        states = frame.selection.kept
        return np.ones(len(frame.y0), dtype=bool) if states is None else ~self.free[list(states)]

    def _selected(self, allowed: Mask) -> Selection | None:
        """Return well-conditioned coordinates among the allowed states, states at rest first; None without any."""
        p, candidates = len(self.frame.y0), np.flatnonzero(allowed)
        if len(candidates) < p:
            return None
        rows = np.linalg.qr(self.frame.T / self.sizes[:, None])[0][candidates]
        diagonal, order = pivoted_qr(rows.T)
        if diagonal[p - 1] * DOUBTFUL < diagonal[0]:
            return None
        at_rest = np.abs(self.rates[candidates]) <= EQUILIBRIUM * self.sizes[candidates]
        preferred = pivoted_qr((rows * np.where(at_rest, 1.0, LESS)[:, None]).T)[1]
        for choice in (preferred, order):
            states = sorted(int(candidates[i]) for i in choice[:p])
            selection = select_states(self.frame.manifold, states, "partition")
            if selection.condition_number <= DOUBTFUL:
                return selection
        return None

    def _confirmed(self, frame: Frame) -> tuple[Steady | None, Mask]:
        """Go on uniformly in these coordinates; return what is steady, and which states have other rates further on."""
        leading, start = self._leading(frame), frame.coordinates.R @ self.rates
        path = np.where(leading, start, 0.0)  # nothing depends on the others, wherever they are
        changed = np.zeros(len(self.sizes), dtype=bool)
        same = np.ones(len(start), dtype=bool)
        soon, late = self.later
        try:
            for later in (soon, late):
                further = self._reached(frame, path, later)
                changed |= ~(np.abs(further.f - self.rates) <= UNIFORM * self.pace * self.sizes)
                same &= np.abs(further.rates - start) <= UNIFORM * self.pace * frame.y_scales
                if not same[leading].all():
                    return None, changed
            same &= self._same_slopes(frame, further)
            if not (
                same[leading].all() and self._stays(frame, further, np.where(leading, 0.0, ASIDE * frame.y_scales))
            ):
                return None, changed
        except (ModelError, NumericalError):  # an event, or the border of the domain: nothing is confirmed further on
            return None, changed
        carried = tuple(name for name, unchanged in zip(frame.signals.names, same, strict=True) if not unchanged)
        return Steady(frame.selection, carried, further.later), changed

    def _reached(self, frame: Frame, path: FloatArray, later: float) -> _FurtherPoint:
        """Go on for so long, or as long as the coordinates lead."""
        for part in PARTS[:-1]:
            with suppress(NumericalError):
                return self._visited(frame, frame.y0 + part * later * path, part * later)
        return self._visited(frame, frame.y0 + PARTS[-1] * later * path, PARTS[-1] * later)

    def _same_slopes(self, frame: Frame, further: _FurtherPoint) -> Mask:
        """Compare A with a difference further on along one direction through all columns; row by row, shape (P,)."""
        size = frame.y_scales
        direction = np.random.default_rng(1851).uniform(0.5, 1.0, len(further.y)) * size
        ahead, behind = (
            self._visited(frame, further.y + s * STEP * direction, further.later, further.x).rates for s in (1.0, -1.0)
        )
        A = self._slopes_of_rates(frame)
        gap = np.abs((ahead - behind) / (2 * STEP) - A @ direction)
        largest = (np.abs(A) * size).max(axis=1, initial=0.0)
        return cast("Mask", gap <= SAME_ALONG * np.maximum(largest, self.pace * size))

    def _stays(self, frame: Frame, further: _FurtherPoint, displacement: FloatArray) -> bool:
        """Whether no rate changes when the states on which nothing depends are moved aside."""
        if not displacement.any():
            return True
        moved = self._visited(frame, further.y + displacement, further.later, further.x).rates
        return bool((np.abs(moved - further.rates) <= UNIFORM * self.pace * frame.y_scales).all())

    def _slopes_of_rates(self, frame: Frame) -> FloatArray:
        """Return A in the coordinates of a frame, shape (P, P)."""
        coordinates = frame.coordinates
        along = self.slopes.f_y @ np.linalg.inv(coordinates.R @ self.frame.T)
        bend = coordinates.curvature(self.point.states, self.rates)
        return coordinates.R @ along + bend @ frame.T

    def _visited(self, frame: Frame, y: FloatArray, later: float, near: FloatArray | None = None) -> _FurtherPoint:
        """Visit the model at coordinates y, so much later."""
        t, u = self.point.time, self.point.inputs
        x = frame.parametrization.psi(y, near=near)
        f = self.model.evaluate(t + later, x, u).derivatives
        before = self.model.event_indicators(t, self.point.states, u)
        if len(before) and ((self.model.event_indicators(t + later, x, u) > 0) != (before > 0)).any():
            raise NumericalError("An event lies on the way.")
        return _FurtherPoint(later, y, x, f, frame.coordinates.jacobian(x) @ f)
