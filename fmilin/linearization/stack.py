"""The general procedure at many points at once, in the coordinates of a point that was linearized before.

A point at which anything is not as usual (a doubtful rank, coordinates that are no longer good, an input that leaves
the manifold, a kink, a motion that may be steady in other coordinates) is left to the procedure at one point: what a
stack says of a point is what is said of it alone.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark, model_remarks, rate_of_change
from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.accuracy import comparable_sizes
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.assembly import Mask, Parts, connected_points, write_stack
from fmilin.linearization.checks.motion import change_remarks, motion_remark
from fmilin.linearization.evaluation import HUGE
from fmilin.linearization.request import Request
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import independent_rows, scaled
from fmilin.manifold.selection import CONDITION_LIMIT, Selection
from fmilin.manifold.slopes import SMALL_STEP, compared, random_direction, rounding_of, some_bits_further
from fmilin.manifold.stack import AT_ONCE, PointBatch, StackGeometry, StackSurroundings
from fmilin.manifold.steady_stack import StackMotion, stack_motion
from fmilin.manifold.verification import VerifiedFacts, verified_facts_of
from fmilin.manifold.zeros import find_structural_zeros
from fmilin.model.capabilities import (
    HasContacts,
    is_at_input_limits,
    read_discrete_states,
    read_event_indicators,
    read_sparse_equations,
)
from fmilin.model.interface import ExactSlopes, Model, OperatingPoint, TangentBatch
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, INACCURATE

AGREES = 1e-9  # matrices at the point before against the procedure's, over their largest entries
OF_EVERY_POINT = frozenset({"model", "off-equilibrium", "steady", "periodic", "coordinates-switched"})
"""Remarks at the point before that a stack says itself where they are true, or that are no matter of the next point."""

SLOPES_AT_ONCE = 2**18  # that are computed and looked at together: what fits into the processor's cache
RARE = 32  # of so many points about one shows what rounding changes in slopes, and a difference leaves open


@dataclass(frozen=True, eq=False)
class LinearStack:
    """What is said of the linear models at k points, and where they hold: others belong to the procedure at one."""

    remarks: Sequence[tuple[Remark, ...]]
    usual: Mask


@dataclass(eq=False)
class StackProcedure:
    """Linearizes stacks of points in the coordinates of the point before, which has ``linear``."""

    model: Model
    request: Request
    point: OperatingPoint
    linear: LinearModel
    selection: Selection | None
    _: KW_ONLY
    own: Model  # the model with the parameters of the point before, where some are varied
    varied: Sequence[str] = ()

    @cached_property
    def kept(self) -> list[int]:
        """The states that are the coordinates."""
        return list(self.selection.kept or ()) if self.selection is not None else []

    @cached_property
    def dependent(self) -> list[int]:
        """The other states."""
        return [i for i in range(len(self.model.states)) if i not in set(self.kept)]

    @cached_property
    def usable(self) -> bool:
        """Whether the model, the request and the point before are such that stacks are worth a try."""
        how, model, point, linear = self.request, self.model, self.point, self.linear
        if how.checks != "standard":
            return False
        plain = how.derivatives in ("auto", "exact") and not (how.descriptor or how.at_singularity or how.parameters)
        if self.selection is None or self.selection.kept is None or not plain or how.stepping or how.formulation:
            return False
        if type(model).tangents is Model.tangents or len(linear.inputs) != len(model.inputs):
            return False  # which has no answer
        said = OF_EVERY_POINT | {remark.kind for remark in point.remarks}
        if linear.method.derivatives != "exact" or any(w.kind not in said for w in linear.warnings):
            return False
        if is_at_input_limits(model) or model.constraints.prescribing or read_discrete_states(model):
            return False
        indicators = read_event_indicators(model, point.time, point.states, point.inputs)
        if len(indicators) or read_sparse_equations(model) is not None:
            return False
        facts = self._facts
        if facts.moving or (len(model.constraints) and (facts.rank is None or not facts.nothing_conserved)):
            return False
        # Products that did not all agree with differences are compared column by column at every point.
        return how.derivatives == "exact" or self._facts.precision is not None or self._by_procedure

    @cached_property
    def _facts(self) -> VerifiedFacts:
        point = self.point
        return verified_facts_of(self.own, point, self.own.evaluate(point.time, point.states, point.inputs))

    @cached_property
    def _before(self) -> TangentBatch:
        """The point before, as a stack of one."""
        point = self.point
        parameters = {name: np.array([point.parameters[name]]) for name in self.varied}
        return self.tangents(PointBatch(np.array([point.time]), point.states[None], point.inputs[None], parameters))

    @cached_property
    def _rows(self) -> list[int]:
        """Invariants that are independent at the point before, as many as there are dependent states."""
        sizes, H = self.model.states.scales(self.point.states), self._before.gradient[0]
        rows, _ = scaled(H, sizes, np.abs(H) @ sizes, np.zeros_like(H))
        return independent_rows(rows, len(self.dependent), len(self.model.constraints))

    @cached_property
    def _zeros(self) -> Mask:
        """Which slopes are zero by the structure of the model, shape (N + ny, P + nu)."""
        point, n = self.point, len(self.own.states)
        scales = self.own.states.scales(point.states)
        invariants = Invariants(self.own, point.inputs, self._facts.pairs or {}, scales)
        x_u = np.zeros((n, len(point.inputs)))  # where inputs prescribe a motion stacks are of no use
        zeros = find_structural_zeros(self.own, point, invariants, self.linear.T, x_u).copy()
        # rates and outputs that are states have the rows of T, and their errors
        zeros[[*invariants.pairs, *(n + row for row in self.own.copies)]] = False
        return zeros

    @cached_property
    def _agrees(self) -> bool:
        """Whether a stack says of the point before what the procedure at one point has said of it."""
        for name in "ABCDT":
            matrix, single = getattr(self._before, name)[0], getattr(self.linear, name)
            if single.shape != matrix.shape:
                return False
            if not np.abs(matrix - single).max(initial=0.0) <= AGREES * max(np.abs(single).max(initial=0.0), 1e-12):
                return False
        return True

    def tangents(self, points: PointBatch) -> TangentBatch:
        """Return what the model says at points, and its slopes along the coordinates; refuse what it cannot."""
        tangents = self.model.tangents(points.time, points.states, points.inputs, self.kept, points.parameters)
        if tangents is None:
            raise NumericalError("The model does not answer for many points at once.")
        return tangents

    def back(self, tangents: TangentBatch) -> FloatArray:
        """Return the step of the dependent states (k, M) that is too far from the manifold, to first order."""
        if not self._rows:
            return np.zeros((len(tangents.rates), 0))
        H = tangents.gradient[:, self._rows][:, :, self.dependent]
        return np.asarray(np.linalg.solve(H, tangents.residuals[:, self._rows, None])[..., 0])

    def __call__(self, points: PointBatch, parts: Parts, tangents: TangentBatch | None = None) -> LinearStack | None:
        """Linearize at the points into ``parts`` (k, ...), by name; None where stacks are of no use."""
        if not self.usable:
            return None
        try:
            with np.errstate(all="ignore"):
                if not self._agrees:
                    return None
                slopes = self._before.derivatives[0].size + self._before.outputs[0].size
                size = max(AT_ONCE, SLOPES_AT_ONCE // max(1, slopes))
                stacks = [
                    self._linearized(
                        points[some],
                        self.tangents(points[some]) if tangents is None else tangents[some],
                        {name: part[some] for name, part in parts.items()},
                    )
                    for some in (slice(i, min(i + size, len(points))) for i in range(0, len(points), size))
                ]
        except (FmilinError, np.linalg.LinAlgError):
            return None
        return LinearStack([r for s in stacks for r in s.remarks], np.concatenate([s.usual for s in stacks]))

    def _linearized(self, points: PointBatch, tangents: TangentBatch, parts: Parts) -> LinearStack:
        model, facts = self.model, self._facts
        geometry = StackGeometry(model, points, tangents, self._rows)
        surroundings = StackSurroundings(model, self._rows)
        errors, usual = self._row_errors(points, tangents, geometry, surroundings)
        write_stack(parts, model, facts, points, tangents, geometry, errors=errors, zeros=self._zeros)
        motion = stack_motion(model, points, tangents, geometry, surroundings, errors[:, : len(model.states)])
        usual &= (geometry.condition_number <= CONDITION_LIMIT) & geometry.is_regular(facts.rates) & ~motion.open
        usual &= geometry.is_finite & connected_points(parts)
        if not self._by_procedure:
            usual &= self._repeats(points, tangents, surroundings)
        return LinearStack(self._remarks(points, tangents, motion, usual), usual)

    def _row_errors(
        self, points: PointBatch, tangents: TangentBatch, geometry: StackGeometry, surroundings: StackSurroundings
    ) -> tuple[FloatArray, Mask]:
        """Return by what rows of slopes in sizes of y and u may be off (k, N + ny), and where none is in doubt (k,)."""
        count, facts = len(points), self._facts
        some = np.unique(np.linspace(0, count - 1, min(count, max(3, count // RARE))).astype(int))
        sizes = np.concatenate((geometry.slopes.sizes, geometry.output_slopes.sizes), axis=1)
        relative = 8 * EPS * geometry.condition_number + geometry.relative_error_of_T
        errors = sizes * relative[:, None]
        if facts.procedure or (self._procedure is not None and self._procedure.smooth):  # asked again, some bits on
            errors = np.fmax(errors, _most_nearby(self._rounding(points, tangents, geometry, some), count))
        if self.request.derivatives == "auto" and not (tangents.smooth and facts.procedure):
            seen = some if tangents.smooth else np.arange(count)  # a kink may lie at any point
            shown = self._compared(points, tangents, geometry, surroundings, seen)
            errors = np.maximum(errors, _most_nearby(shown, count) if tangents.smooth else shown)
        terms = np.concatenate((geometry.sizes, self.model.outputs.scales(tangents.values)), axis=1)
        rows = [*self.kept, *range(len(self.model.states), errors.shape[1])]
        accurate = errors <= INACCURATE * comparable_sizes(sizes, errors, terms)
        return errors, np.asarray(accurate[:, rows].all(axis=1))

    def _repeats(self, points: PointBatch, tangents: TangentBatch, surroundings: StackSurroundings) -> Mask:
        """Say where a model that only answers says the same after all other visits, and states are still rates."""
        again, before = surroundings.visited(points, self.kept), (tangents.rates, tangents.values)
        same = [(a == b) & (np.abs(a) < HUGE) for a, b in zip(again, before, strict=True)]
        pairs = self._facts.pairs or {}
        same.append(tangents.rates[:, list(pairs)] == points.states[:, list(pairs.values())])
        return np.asarray(np.concatenate(same, axis=1).all(axis=1))

    @cached_property
    def _procedure(self) -> ExactSlopes | None:
        point = self.point
        return self.own.exact_slopes(point.time, point.states, point.inputs)

    @property
    def _by_procedure(self) -> bool:
        """Whether slopes are those of the model's own procedure, else products."""
        return self._facts.procedure or self._procedure is not None

    def _rounding(
        self, points: PointBatch, tangents: TangentBatch, geometry: StackGeometry, some: NDArray[np.intp]
    ) -> FloatArray:
        """Return what rounding changes in the rows of slopes at some points, shape (k, N + ny)."""
        x, scales, count = points.states[some], geometry.scales[some, None], len(some)
        bits = some_bits_further(x, geometry.sizes[some]) - x
        sides = 2 if self._procedure is not None and self._procedure.points > 1 else 1  # as it is asked alone
        nearby = replace(points[np.tile(some, sides)], states=np.concatenate((x + bits, x - bits)[:sides]))
        again = self.tangents(nearby)
        rows = []
        for other, J in (again.derivatives, tangents.derivatives), (again.outputs, tangents.outputs):
            change = rounding_of([J[some], *(other[i : i + count] for i in range(0, sides * count, count))])
            rows.append((change * scales).max(axis=2, initial=0.0))
        return np.concatenate(rows, axis=1)

    def _compared(
        self,
        points: PointBatch,
        tangents: TangentBatch,
        geometry: StackGeometry,
        surroundings: StackSurroundings,
        some: NDArray[np.intp],
    ) -> FloatArray:
        """Return gaps to a difference along one direction that are no noise, (k, N + ny), infinite where they count."""
        p, scales, points, T = len(self.kept), geometry.scales[some], points[some], tangents.T[some]
        direction, back = random_direction(scales.shape[1]) * scales, geometry.back
        J = np.concatenate((tangents.derivatives[some], tangents.outputs[some]), axis=1)
        base = np.concatenate((tangents.rates[some], tangents.values[some]), axis=1)
        values, reached = [], np.ones(len(points), dtype=bool)
        for sign in (SMALL_STEP, -SMALL_STEP):
            guess = points.states + sign * (T @ direction[:, :p, None])[..., 0]
            guess[:, self.kept] = points.states[:, self.kept] + sign * direction[:, :p]
            moved = replace(points, inputs=points.inputs + sign * direction[:, p:])
            nearby = None if back is None else back[some]
            states, good = surroundings.reached(moved, self.kept, guess, geometry.sizes[some], nearby)
            values.append(np.concatenate(surroundings.visited(states, self.kept), axis=1))
            reached &= good
        precision = self._facts.precision if self._facts.precision is not None else EPS / SMALL_STEP
        agrees, shown = compared(J, scales, (values[0], base, values[1]), precision)
        return np.where((reached & agrees)[:, None], 0.0 if self._by_procedure else shown, np.inf)

    def _remarks(
        self, points: PointBatch, tangents: TangentBatch, motion: StackMotion, usual: Mask
    ) -> list[tuple[Remark, ...]]:
        """Return what is to be said of each point, in the order of the procedure at one point."""
        model = self.model
        notes = model_remarks(model.notes)
        constrained = bool(len(self._rows)) and bool(self.kept)
        names = tuple(model.states.names[i] for i in self.kept)
        point = self.point
        has_feet = isinstance(model, HasContacts) and model.contact_forces(point.time, point.states, point.inputs)
        own_remarks = has_feet or model.remarks_at(model.start)
        remarks = []
        sizes = model.states.scales(points.states)
        for k, fastest in enumerate(motion.fastest.tolist()):
            said: list[Remark] = []
            if fastest >= 0 and usual[k]:
                rate, size = float(tangents.rates[k, fastest]), float(sizes[k, fastest])
                what = rate_of_change(model.states.names[fastest], rate, size)
                uniform = None
                if motion.steady[k]:
                    carried = tuple(n for n, c in zip(names, motion.carried[k].tolist(), strict=True) if c)
                    uniform = names, carried, float(motion.later[k])
                remark = motion_remark(what, constrained=constrained, steady=uniform)
                said = change_remarks(remark, motion.change, k)
            said += notes
            if own_remarks:
                said += model.remarks_at(OperatingPoint(float(points.time[k]), points.states[k], points.inputs[k]))
            remarks.append(tuple(said))
        return remarks


def _most_nearby(rows: FloatArray, count: int) -> FloatArray:
    """Return for each of so many points the most that the three nearest show of those that ``rows`` were seen at."""
    padded = np.pad(rows, ((1, 1), (0, 0)), mode="edge")
    most = np.fmax(np.fmax(padded[:-2], padded[1:-1]), padded[2:])
    return np.asarray(most[np.linspace(0, len(rows) - 1, count).round().astype(int)])
