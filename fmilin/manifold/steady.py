"""Steady motions: coordinates in which they are uniform (:mod:`fmilin.manifold.uniform`), so that A stays the same.

Rows of A of states that nothing depends on (where a wheel touches the ground) may change, the eigenvalues do not.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fmilin.errors import ModelError, NumericalError, UsageError
from fmilin.manifold import uniform as motions
from fmilin.manifold.coordinates import Coordinates
from fmilin.manifold.frame import Frame, with_selection
from fmilin.manifold.nonlinear import Turn, charts, expressed, select_expressions, turns_of
from fmilin.manifold.rank import independent_rows, pivoted_qr, scaled
from fmilin.manifold.selection import NOT_TURNING, Selection, select_states
from fmilin.manifold.slopes import TangentSlopes
from fmilin.manifold.stack import PointBatch, StackSurroundings
from fmilin.manifold.steady_stack import BeyondStack
from fmilin.manifold.uniform import STEP, ZEROS, Asides, Bend, Beyond, Change, Mask, Moving, Times, Uniform, Visited
from fmilin.model.capabilities import has_graph, read_event_indicators, read_exact_slopes
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import DOUBTFUL, EQUILIBRIUM, ROUNDING, SAME_ALONG, UNIFORM

LESS = 1e-2  # weight of moving states beside states at rest
PARTS = (1.0, 0.3, 0.1)  # of the path further on that are tried, from the whole: no coordinates lead everywhere
BENDING = 2.0**-5  # of the step of a difference that is taken where coordinates bend
SHORTER = (0.03, 0.01)  # such parts in coordinates that bend: angles turn by less than a round
ATTEMPTS = 3  # choices of coordinates that are tried


@dataclass(frozen=True, slots=True)
class Steady:
    """Coordinates in which a motion is steady, confirmed further on."""

    selection: Selection
    carried: tuple[str, ...]  # those on which nothing depends and whose rates change all the same
    later: float  # how much later A was the same, in s


@dataclass(frozen=True, slots=True)
class PointMotion:
    """How the point moves."""

    fastest: int | None = None  # the state that moves fastest in its size; None at an equilibrium
    has_choice: bool = True  # whether there are constraints, and so other coordinates that might have been taken
    steady: Steady | None = None  # coordinates in which the motion is steady, if some were found
    change: Change | None = None  # of A along it, where that was looked at


def motion_at(
    model: Model, point: OperatingPoint, base: Evaluation, frame: Frame, slopes: TangentSlopes, *, spectra: bool = True
) -> PointMotion:
    """Say how the point moves, and find coordinates in which that is steady; ``spectra``: ask whether A only turns."""
    search = _Search(model, point, base, frame, slopes)
    fastest = search.fastest
    has_choice = bool(len(frame.manifold.H) and len(frame.y0))
    if frame.invariants.prescribing or not len(frame.y0):
        return PointMotion(fastest, has_choice=has_choice)
    if fastest is None:
        return PointMotion(
            None, has_choice, change=None if model.autonomous else search.change_with_time(spectra=spectra)
        )
    searchable = has_choice and not frame.invariants.moving
    if searchable and (falling := search.fall()):
        return PointMotion(fastest, has_choice, change=falling)
    if searchable and (steady := search.first_confirmed()):
        return PointMotion(fastest, steady=steady)
    return PointMotion(fastest, has_choice, change=search.change(spectra=spectra))


class _Search:
    """The search for steady coordinates at one point."""

    def __init__(
        self, model: Model, point: OperatingPoint, base: Evaluation, frame: Frame, slopes: TangentSlopes
    ) -> None:
        self.model, self.point, self.frame, self.slopes = model, point, frame, slopes
        self.rates, self.sizes = base.derivatives, frame.invariants.scales

    @cached_property
    def fastest(self) -> int | None:
        """The state that moves fastest, None at rest."""
        slopes = self.slopes
        J = np.hstack((slopes.f_y, slopes.f_u))
        columns = np.concatenate((self.frame.y_scales, self.model.inputs.scales(self.point.inputs)))
        errors = np.hstack((slopes.f_y_error, slopes.f_u_error)) * columns
        terms, p = (np.abs(J) @ columns)[None], len(self.frame.y0)
        rates, sizes = self.rates[None], self.sizes[None]
        fastest = int(motions.fastest_states(rates, sizes, terms, (J[None], columns[None]), errors[None], p)[0])
        return None if fastest < 0 else fastest

    @cached_property
    def at(self) -> Moving:
        """The point in motion, as a stack of one."""
        rates, slopes = self.rates, self.slopes
        paces = np.abs(rates) / self.model.states.scales()
        along = self.frame.coordinates.R @ rates, slopes.f_y, slopes.f_y_error * self.frame.y_scales
        return Moving(*(part[None] for part in (rates, *along, self.sizes, self.frame.y_scales, paces)))

    @property
    def uniform(self) -> Mask:
        """Which states have x'' = 0 at the point, shape (N,)."""
        return np.asarray(self.at.bends[0] == 0)

    @cached_property
    def free(self) -> Mask:
        """Which states can be moved alone and nothing depends on them, to first order, shape (N,)."""
        R = self.frame.coordinates.R
        slopes, errors = self.slopes.f_y @ R, self.slopes.f_y_error @ np.abs(R) * self.sizes
        tied = self.frame.manifold.H.any(axis=0)
        return np.asarray(~tied & motions.unseen(slopes[None], errors[None], self.sizes[None])[0])

    def first_confirmed(self) -> Steady | None:
        """Return the first coordinates that are confirmed: those in use, then those among uniform states."""
        if self._keeps_to_uniform() and (steady := self._confirmed(self.frame)[0]):
            return steady
        allowed, steady = self.uniform | self.free, None
        for _ in range(ATTEMPTS):
            selection = self._selected(allowed)
            if selection is None:
                break
            steady, changed = self._confirmed(with_selection(self.frame, self.point, selection))
            refuted = changed & allowed & ~self.free & (np.abs(self.rates) > EQUILIBRIUM * self.sizes)
            if steady or not refuted.any():
                break
            allowed = allowed & ~refuted
        return steady or self._without_turning()

    def _without_turning(self) -> Steady | None:
        """Return the first coordinates that are confirmed among those that do not turn with bodies."""
        names, x, second = self.model.states.names, self.point.states, self.at.bends[0]
        pairs = self.frame.invariants.pairs
        for texts, replaced in charts(self._turns, names, pairs, x, self.rates, second):
            every = [*texts, *(name for i, name in enumerate(names) if i not in replaced)]
            with suppress(NumericalError, UsageError):  # singular there, or called like a state
                selection = self._selected_of(every)
                if selection and (steady := self._confirmed(with_selection(self.frame, self.point, selection))[0]):
                    return steady
        return None

    @property
    def _turns(self) -> list[Turn]:
        """The bodies that turn by quaternions."""
        structure, frame, x = self.model.constraints.structure, self.frame, self.point.states
        H = frame.invariants.gradient(self.point.time, x).H[: len(structure)]
        return turns_of(x, self.rates, H=H, structure=structure, T=frame.T, f_y=self.slopes.f_y)

    def fall(self) -> Change | None:
        """Return what A does along a fall, which no coordinates make steady; None where that is none, or not seen."""
        if self._beyond is None or not self._keeps_to_uniform() or not self._second.any():
            return None
        leading = self._leading(self.frame)[None]
        uniform = Uniform(self.at.y_rates, self.at.y_sizes, self._slopes_of_rates(self.frame)[None], leading)
        change = motions.falls_on(self.at, uniform, self._second[None], self._beyond)
        return None if np.isnan(change.part[0]) else change

    @cached_property
    def _beyond(self) -> BeyondStack | None:
        """The model further on as a stack of one, where its own equations answer for many visits at once."""
        model, (t, x, u), kept = self.model, self._at_point, self.frame.selection.kept
        if kept is None or not model.batches or read_exact_slopes(model, t, x, u) is None:
            return None
        if len(read_event_indicators(model, t, x, u)) or self.frame.invariants.moving:
            return None
        gradient, others = self.frame.invariants.gradient(t, x), sorted(set(range(len(x))).difference(kept))
        Hs, _ = scaled(gradient.H, self.sizes, gradient.reference, gradient.error)
        rows = independent_rows(Hs, len(others), len(model.constraints))
        back = np.asarray(np.linalg.inv(gradient.H[np.ix_(rows, others)])[None], np.float64) if rows else None
        points, surroundings = PointBatch(np.array([t]), x[None], u[None]), StackSurroundings(model, rows)
        return BeyondStack(points, list(kept), self.frame.T[None], self.sizes[None], back, surroundings, model)

    @property
    def _at_point(self) -> tuple[float, FloatArray, FloatArray]:
        return self.point.time, self.point.states, self.point.inputs

    def change(self, *, spectra: bool) -> Change | None:
        """Compare A along the motion, in the coordinates in use."""
        R, A, at, bend = self.frame.coordinates.R, self._slopes_of_rates(self.frame)[None], self.at, self._second[None]
        wanted, leading = motions.compared(at, bend, A, np.abs(R) @ at.f_y_error)
        if not wanted[0]:
            return None
        uniform = Uniform(at.y_rates, at.y_sizes, A, leading)
        turns, kept = np.array([spectra]), self.frame.selection.kept
        if spectra and kept is not None:
            turns = motions.may_turn(at, kept, leading, self.model.states.units)
        change = None if self._beyond is None else motions.change_along(at, uniform, bend, self._beyond, turns)
        if change is None or np.isnan(change.part[0]):
            change = motions.change_along(at, uniform, bend, _BeyondPoint(self.model, self.point, self.frame), turns)
        return change

    def change_with_time(self, *, spectra: bool) -> Change | None:
        """Compare A at a rest as time goes on, over the times of its own eigenvalues; None where it stays."""
        A, still = self._slopes_of_rates(self.frame), np.zeros((1, len(self.frame.y0)))
        moduli = np.abs(np.linalg.eigvals(A))
        if not self._differs(motions.FURTHER / (moduli.max() or 1.0)):
            return None  # nothing depends on time
        slowest = moduli.min(where=moduli > motions.SLOWEST * moduli.max(), initial=moduli.max())
        paces = np.resize([moduli.max(), slowest] if moduli.any() else [1.0], self.at.paces.shape)
        uniform = Uniform(still, self.at.y_sizes, A[None], np.ones(still.shape, dtype=bool))
        at, beyond = replace(self.at, paces=paces), _BeyondPoint(self.model, self.point, self.frame)
        change = motions.change_along(at, uniform, still, beyond, np.array([spectra]))
        return change if change.part[0] > SAME_ALONG else None

    def _differs(self, later: float) -> bool:
        """Whether any bit of rates, residuals or event indicators is another so much later, beside the point."""
        (t, x, u), model, seen = self._at_point, self.model, []
        nearby = x + self.frame.T @ (STEP * self.frame.y_scales)  # the way from there to the manifold costs more
        try:
            for time in (t, t + later):
                visit = model.evaluate(time, nearby, u)
                seen.append((visit.derivatives, visit.residuals, read_event_indicators(model, time, nearby, u)))
        except (ModelError, NumericalError):
            return True  # that cannot be told there
        return not all(np.array_equal(*parts) for parts in zip(*seen, strict=True))

    @cached_property
    def _second(self) -> FloatArray:
        """The second derivatives y'' (P,) in the coordinates in use, without what is rounding."""
        second, terms = self._second_of(self.frame.coordinates)
        return np.where(self.at.vanishes(second, terms)[0], 0.0, second)

    def _second_of(self, coordinates: Coordinates) -> tuple[FloatArray, FloatArray]:
        """Return the second derivatives of coordinates, and the size of their terms."""
        R, curved, bends = coordinates.R, coordinates.curvature(self.point.states, self.rates), self.at.bends[0]
        terms = np.abs(R) @ np.abs(bends) + np.abs(curved) @ np.abs(self.rates)
        return R @ bends + curved @ self.rates, terms

    def _keeps_to_uniform(self) -> bool:
        """Whether y'' = 0 in the coordinates in use, but for states on which nothing depends."""
        return not self._second[self._leading(self.frame)].any()

    def _leading(self, frame: Frame) -> Mask:
        """Which coordinates must be steady, shape (P,): not those that are a state on which nothing depends."""
        return ~self._are_free(frame.selection.signals.names)

    def _are_free(self, names: Sequence[str]) -> Mask:
        """Which coordinates are a state that can be moved alone and nothing depends on it."""
        positions = self.model.states.positions
        return np.array([name in positions and self.free[positions[name]] for name in names], dtype=bool)

    def _selected(self, allowed: Mask) -> Selection | None:
        """Return well-conditioned coordinates among the allowed states, states at rest first; None without any."""
        candidates = np.flatnonzero(allowed)
        at_rest = np.abs(self.rates[candidates]) <= EQUILIBRIUM * self.sizes[candidates]
        for choice in self._choices(self._tangents[candidates], at_rest):
            selection = select_states(self.frame.manifold, candidates[choice].tolist(), "partition")
            if selection.condition_number <= DOUBTFUL:
                return selection
        return None

    def _selected_of(self, texts: Sequence[str]) -> Selection | None:
        """Return well-conditioned coordinates among functions of the states that move uniformly; None without any."""
        functions, pace = expressed(self.frame.manifold, texts), self.at.pace[0]
        R, (second, terms) = functions.R, self._second_of(functions)
        sizes, rates = np.abs(R) @ self.sizes, R @ self.rates
        uniform = np.abs(second) <= UNIFORM * terms + ROUNDING * pace**2 * sizes
        candidates = np.flatnonzero(uniform | self._are_free(texts))
        rows = ((R * self.sizes) @ self._tangents / sizes[:, None])[candidates]
        for choice in self._choices(rows, (np.abs(rates) <= EQUILIBRIUM * sizes)[candidates]):
            with suppress(NumericalError):
                chosen = [texts[i] for i in candidates[choice]]
                selection = replace(select_expressions(self.frame.manifold, chosen, {}), kind=NOT_TURNING)
                if selection.condition_number <= DOUBTFUL:
                    return selection
        return None

    @cached_property
    def _tangents(self) -> FloatArray:
        """An orthonormal basis of the tangent space in sizes of the states, shape (N, P)."""
        return np.asarray(np.linalg.qr(self.frame.T / self.sizes[:, None])[0])

    def _choices(self, rows: FloatArray, at_rest: Mask) -> Iterator[list[int]]:
        """Yield independent ones of so many rows (k, P), those at rest first, then the best; none where P are not."""
        p = rows.shape[1]
        if len(rows) < p:
            return
        diagonal, order = pivoted_qr(rows.T)
        if diagonal[p - 1] * DOUBTFUL < diagonal[0]:
            return
        yield sorted(int(i) for i in pivoted_qr((rows * np.where(at_rest, 1.0, LESS)[:, None]).T)[1][:p])
        yield sorted(int(i) for i in order[:p])

    def _confirmed(self, frame: Frame) -> tuple[Steady | None, Mask]:
        """Go on uniformly in these coordinates; return what is steady, and which states have other rates further on."""
        rates, A, leading = frame.coordinates.R @ self.rates, self._slopes_of_rates(frame), self._leading(frame)
        uniform = Uniform(rates[None], frame.y_scales[None], A[None], leading[None])
        beyond = _BeyondPoint(self.model, self.point, frame)
        steady, carried, later, changed, _ = motions.confirmed(self.at, uniform, beyond)
        if not steady[0]:
            return None, changed[0]
        names = tuple(name for name, moved in zip(frame.selection.signals.names, carried[0], strict=True) if moved)
        return Steady(frame.selection, names, float(later[0])), changed[0]

    def _slopes_of_rates(self, frame: Frame) -> FloatArray:
        """Return A in the coordinates of a frame, shape (P, P)."""
        coordinates = frame.coordinates
        f_y, here = self.slopes.f_y, frame is self.frame  # R T is one
        along = f_y if here else f_y @ np.linalg.inv(coordinates.R @ self.frame.T)
        bend = coordinates.curvature(self.point.states, self.rates)
        return coordinates.R @ along + bend @ frame.T


class _BeyondPoint(Beyond):
    """The model further along the motion of one point; nothing beyond an event, or the border of the domain."""

    def __init__(self, model: Model, point: OperatingPoint, frame: Frame) -> None:
        self._model, self._point, self._frame = model, point, frame
        self._before = read_event_indicators(model, point.time, point.states, point.inputs) > 0
        self.exact = has_graph(model) and frame.coordinates.is_linear  # where they bend, short steps show too little

    def further(self, path: FloatArray, times: Times, bend: Bend = 0.0, asides: Asides = ZEROS) -> Iterator[Visited]:
        """Go on in y, from the tangent."""
        parts = PARTS if self._frame.coordinates.is_linear else (*PARTS, *SHORTER)
        for (later,), aside in zip(times, asides, strict=False):
            steps = [(part * later, (part * later) ** 2 / 2) for part in parts]
            yield self._first([(self._frame.y0 + (t * path + half * bend + aside)[0], t) for t, half in steps])

    def displaced(self, far: Visited, displacements: Sequence[FloatArray]) -> Iterator[Visited]:
        """Move y, from the states further on."""
        y = self._frame.coordinates.values(far.x[0])
        for (displacement,) in displacements:
            yield self._first([(y + displacement, float(far.later[0]))], far.x[0])

    def slopes(self, far: Visited, direction: FloatArray) -> tuple[FloatArray, Mask]:
        """Return the slopes by shorter steps where coordinates bend, as Euler's angles do beside their pole."""
        part = 1.0 if self._frame.coordinates.is_linear else BENDING
        slopes, good = super().slopes(far, part * direction)
        return slopes / part, good

    def _first(self, steps: Sequence[tuple[FloatArray, float]], near: FloatArray | None = None) -> Visited:
        """Visit the model at the first coordinates, so much later, to which a way leads; none from nowhere."""
        steps = [] if near is not None and np.isnan(near).any() else steps
        with suppress(ModelError):
            for y, later in steps:
                with suppress(NumericalError):
                    return self._visited(y, later, near)
        nothing = np.full((1, len(self._point.states)), np.nan)
        return Visited(np.zeros(1), nothing, nothing, np.full((1, len(self._frame.y0)), np.nan), np.array([False]))

    def _visited(self, y: FloatArray, later: float, near: FloatArray | None) -> Visited:
        t, u = self._point.time, self._point.inputs
        x = self._frame.parametrization.psi(y, time=t + later, near=near)
        f = self._model.evaluate(t + later, x, u).derivatives
        if not np.isfinite(f).all():
            raise NumericalError("The model is not defined further on.")
        if len(self._before) and ((read_event_indicators(self._model, t + later, x, u) > 0) != self._before).any():
            raise NumericalError("An event lies on the way.")
        rates = self._frame.coordinates.jacobian(x) @ f
        return Visited(np.array([later]), x[None], f[None], rates[None], np.array([True]))
