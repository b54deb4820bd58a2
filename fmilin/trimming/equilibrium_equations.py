"""The equations of an operating point: the invariants, the rates of the stationary states, and their changes.

In a steady motion some states may move and the others, Z, must not; in an equilibrium all states are stationary:
    h(t, x) = 0,    f_Z(t, x, u) = 0,    d/dt f_Z = (f_t + f_x f)_Z = 0

and what is read of the point (:mod:`fmilin.trimming.unknowns`) has the requested values. Without the third
row a pendulum that swings through its lowest point at any speed would pass for a steady motion.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import REFUSALS, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.model.interface import Evaluation
from fmilin.numerics.differences.differences import slopes
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray
from fmilin.trimming.together import PointAnswer, compute_jacobians, compute_residuals
from fmilin.trimming.unknowns import (
    Candidate,
    Reading,
    Unknowns,
    change_of_rates,
    compute_reading_derivatives,
    compute_reading_values,
)

FOLLOWED_STEPS = 32  # steps in which a steady motion is followed
STEADY_RATE = 1e-9  # change of a rate along a motion, relative to the fastest, that is rounding
MIN_INPUT_EFFECT_RATIO = (
    1e-3  # change of a rate, relative to the largest one that there is, at which the size of an input is known
)
LARGER_STEPS = 6  # how often the step of an input is made a thousand times larger until it is seen
COMPARISON_STEP_SIZE = 1e-5  # how far along a motion exact derivatives are compared, in sizes of the fastest state


WAITING_TIME_FACTOR = (
    5.0  # times the limit that may pass altogether: other processes compute, too, and models may run in others
)
_deadlines: ContextVar[tuple[float, float] | None] = ContextVar("deadlines", default=None)


class OutOfTimeError(Exception):
    """The time for an explanation is over. Not an error of fmilin: searches that go on after those must end here."""


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """End with :class:`OutOfTimeError` at the first evaluation after so many seconds of computing in this thread."""
    token = _deadlines.set((time.thread_time() + seconds, time.monotonic() + WAITING_TIME_FACTOR * seconds))
    try:
        yield
    finally:
        _deadlines.reset(token)


def require_time() -> None:
    """Raise :class:`OutOfTimeError` where the time is over."""
    deadlines = _deadlines.get()
    if deadlines is None:  # reading the clock of a thread takes as long as evaluating a small model
        return
    computing, waiting = deadlines
    if time.thread_time() > computing or time.monotonic() > waiting:
        raise OutOfTimeError


@dataclass(frozen=True, slots=True)
class Row:
    """One equation: its name, and what one unit of its scaled residual means."""

    kind: str  # ``"constraint"``, ``"rate"``, ``"change of rate"``, ``"target"`` or ``"total"``
    name: str
    size: float


class Equations:
    """The scaled residuals r(z) and their Jacobian; where any state may be ``moving``, d/dt f_Z is among them."""

    measures_noise = True

    def __init__(
        self,
        unknowns: Unknowns,
        at_rest: Sequence[int],
        pairs: Mapping[int, int],
        *,
        moving: bool,
        targets: Sequence[Reading] = (),
    ) -> None:
        self.unknowns = unknowns
        self.targets = tuple(targets)
        self.pairs = pairs
        self.moving = moving
        self.at_rest = np.array(at_rest, dtype=np.intp)
        self.columns_computed = 0  # of Jacobians, so far: what a search has cost
        self.totals: tuple[FloatArray, FloatArray] | None = None  # coefficients (k, N) and values (k,) of linear totals
        self._last: Invariants | None = None
        start = unknowns.start
        self.state_scales = start.model.states.scales(start.states)
        invariants = self._invariants(start)
        sizes = self._constraint_sizes(invariants, start)
        names = [start.model.states.names[i] for i in at_rest]
        rows = [Row("constraint", name, float(size)) for name, size in zip(invariants.names, sizes, strict=True)]
        for kind in ("rate", "change of rate") if moving else ("rate",):
            rows += [Row(kind, n, float(self.state_scales[i])) for n, i in zip(names, at_rest, strict=True)]
        rows += [Row("target", target.name, target.size) for target in self.targets]
        self.rows = tuple(rows)
        self.sizes = np.array([row.size for row in rows])
        self.first_order = ~self.kinds("change of rate")
        self._size_inputs()

    def _size_inputs(self) -> None:
        """Measure free inputs by what they do: one unit of z is then a force that the residual would show."""
        unknowns = self.unknowns
        if not len(unknowns.inputs):
            return
        candidate = unknowns.at(unknowns.z0)
        r = self.compute_values(candidate)
        # Where the model is undefined at the guess, inputs keep the sizes of their signals.
        if not np.isfinite(r).all():
            return
        # Newtons are too small for a mass of tons; an input's start (0) and its unit do not say how large it is.
        required_effect = max(1.0, float(np.max(np.abs(r[self.first_order]), initial=0.0)))
        steps = candidate.model.inputs.scales(candidate.inputs)
        first = [self._with_step(candidate, int(i), float(steps[i])) for i in unknowns.inputs]
        candidate.evaluator.evaluate_ahead([(each.time, each.states, each.inputs) for each in first])
        effects = np.array([self._effect(candidate, int(i), required_effect) for i in unknowns.inputs])
        unknowns.resize_inputs(np.where(effects > 0, required_effect / np.where(effects > 0, effects, 1.0), 0.0))

    def _effect(self, candidate: Candidate, i: int, required_effect: float) -> float:
        """Return the largest slope of a rate along an input, 0 where it has none: over steps that grow until seen."""
        step = float(candidate.model.inputs.scales(candidate.inputs)[i])
        base = self.compute_values(candidate)
        for _ in range(LARGER_STEPS):
            moved = self._with_step(candidate, i, step)
            change = np.abs(self.compute_values(moved) - base)[self.first_order]
            size = float(np.max(change, initial=0.0))
            # Beyond where the model is defined longer steps show nothing either.
            if not np.isfinite(size):
                return 0.0
            if size >= MIN_INPUT_EFFECT_RATIO * required_effect:
                return size / step
            step *= 1e3
        return 0.0

    def _with_step(self, candidate: Candidate, i: int, step: float) -> Candidate:
        """Return a candidate with an input moved by a step."""
        u = candidate.inputs.copy()
        u[i] += step
        return replace(candidate, inputs=u)

    def with_targets(self, targets: Sequence[Reading]) -> Equations:
        """Return the same equations with other targets."""
        other = copy(self)
        other.targets = tuple(targets)
        rows = [row for row in self.rows if row.kind not in ("target", "total")]
        totals = [row for row in self.rows if row.kind == "total"]
        other.rows = (*rows, *(Row("target", target.name, target.size) for target in targets), *totals)
        other.sizes = np.array([row.size for row in other.rows])
        other.first_order = ~other.kinds("change of rate")
        return other

    def with_totals(self, coefficients: FloatArray, values: FloatArray, names: Sequence[str]) -> Equations:
        """Return the equations with linear totals of the states, (k, N), that have these values (k,)."""
        other = copy(self)
        other.totals = coefficients, values
        sizes = np.maximum(np.abs(coefficients) @ self.state_scales, 1e-300).tolist()  # not 0: rows are divided by it
        other.rows = (*self.rows, *(Row("total", name, size) for name, size in zip(names, sizes, strict=True)))
        other.sizes = np.array([row.size for row in other.rows])
        other.first_order = ~other.kinds("change of rate")
        return other

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def kinds(self, kind: str) -> NDArray[np.bool_]:
        """Return which rows are of a kind."""
        return np.array([row.kind == kind for row in self.rows], dtype=bool)

    def values(self, z: FloatArray) -> FloatArray:
        """Return r, shape (m,), constraints in sizes of the states, rates in sizes per second; NaN where undefined."""
        return self.compute_values(self.unknowns.at(z))

    def compute_values(self, candidate: Candidate) -> FloatArray:
        """Return r of a candidate."""
        return self.compute_residual(candidate)

    def values_each(self, z: FloatArray) -> FloatArray:
        """Return r (k, m) at several z (k, n): the model is evaluated at all of them together where it can be."""
        return compute_residuals([self] * len(z), z)

    def balance(self, z: FloatArray) -> FloatArray:
        """Return the rows of r that are of first order."""
        return self._compute_residual(self.unknowns.at(z), None, first_order=True)

    def compute_residual(self, candidate: Candidate, answer: PointAnswer | None = None) -> FloatArray:
        """Return r of a candidate, where the model may have been evaluated already (``answer``)."""
        return self._compute_residual(candidate, answer, first_order=False)

    def _compute_residual(self, candidate: Candidate, answer: PointAnswer | None, *, first_order: bool) -> FloatArray:
        require_time()
        sizes = self.sizes[self.first_order] if first_order else self.sizes
        t, x, u = candidate.time, candidate.states, candidate.inputs
        try:
            visit = candidate.evaluator.evaluate(t, x, u) if answer is None else answer.evaluation
            h = self._invariants(candidate).values(t, x, u, None if answer is None else visit)
            parts = [h, visit.derivatives[self.at_rest]]
            if self.moving and not first_order:
                change = None if answer is None else answer.change
                if change is None:
                    change = change_of_rates(candidate, visit.derivatives, self.state_scales)
                parts.append(change[self.at_rest])
            if self.targets:
                target_values = [target.value for target in self.targets]
                parameters = {**candidate.model.parameters, **candidate.parameters}
                parts.append(compute_reading_values(self.targets, x, u, parameters, visit) - target_values)
            if self.totals is not None:
                parts.append(self.totals[0] @ x - self.totals[1])
        except REFUSALS:
            return np.full(len(sizes), np.nan)
        return np.asarray(np.concatenate(parts) / sizes)

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return dr/dz (m, n), and whether all first-order rows are exact; plain central differences if ``quick``."""
        n = len(self.unknowns)
        self.columns_computed += n
        if quick:
            jacobians, are_exact = compute_jacobians([self], z[None], self.values(z)[None], exact=exact)
            return jacobians[0], bool(are_exact[0, self.first_order].all())
        J = self.exact_jacobian(z) if exact else None
        if J is None:
            return self._measure(z, np.arange(n)), False
        missing = np.flatnonzero(~np.isfinite(J).all(axis=0))
        if not len(missing):
            return J, True
        is_exact = bool(np.isfinite(J[self.first_order]).all())
        J[:, missing] = np.where(np.isfinite(J[:, missing]), J[:, missing], self._measure(z, missing))
        return J, is_exact

    def entry_sizes(self, z: FloatArray) -> FloatArray:
        """Return the absolute entries of dr/dz for scales alone, NaN where they are not asked for."""
        J = self._compute_exact_jacobian(z, None, first_order=True)
        if J is None:
            J = compute_jacobians([self], z[None], self.values(z)[None], exact=False)[0][0]
        return np.abs(J)

    def describe_motion(self, candidate: Candidate) -> tuple[FloatArray, FloatArray | None]:
        """Return the rates f and, for a steady motion, how fast they change, (N,) each."""
        f = self._rates(candidate, 0.0, candidate.states)
        return f, change_of_rates(candidate, f, self.state_scales) if self.moving else None

    def follow_fastest_state(self, candidate: Candidate) -> FloatArray | None:
        """Return the rates when the fastest state has moved by its size, by Runge-Kutta steps; None if that fails."""
        f = self._rates(candidate, 0.0, candidate.states)
        size = float(np.max(np.abs(f) / self.state_scales, initial=0.0))
        if size == 0.0:
            return f
        h, x = 1.0 / (size * FOLLOWED_STEPS), candidate.states
        # States that rest are held, so that unstable motions are followed like stable ones.
        is_fixed = np.zeros(len(x), dtype=bool)
        is_fixed[self.at_rest] = True

        def slope(t: float, x: FloatArray) -> FloatArray:
            return np.where(is_fixed, 0.0, self._rates(candidate, t, x))

        try:
            # The straight line may leave where the model is defined, and the motion itself stay: then the steps decide.
            with suppress(*REFUSALS):
                # Whether straight on, half the way and all of it, every rate is as it was.
                w, limit, full_step = (
                    np.where(is_fixed, 0.0, f),
                    STEADY_RATE * size * self.state_scales,
                    h * FOLLOWED_STEPS,
                )
                later = [self._rates(candidate, s, candidate.states + s * w) for s in (full_step / 2, full_step)]
                if all(bool((np.abs(rates - f) <= limit).all()) for rates in later):
                    return f
            for t in h * np.arange(FOLLOWED_STEPS):
                x = runge_kutta_step(slope, t, x, h, slope(t, x))
            f = self._rates(candidate, FOLLOWED_STEPS * h, x)
        except REFUSALS:
            return None
        return f if np.isfinite(f).all() else None

    def _rates(self, candidate: Candidate, delay: float, x: FloatArray) -> FloatArray:
        return candidate.evaluator.evaluate(candidate.time + delay, x, candidate.inputs).derivatives

    def _invariants(self, candidate: Candidate) -> Invariants:
        """Return the invariants of a candidate's model; to be evaluated with the inputs of the candidate."""
        # To find hidden invariants takes evaluations: they are kept until a free parameter changes the model.
        if self._last is None or self._last.evaluator is not candidate.evaluator:
            self._last = Invariants(candidate.evaluator, candidate.inputs, self.pairs, self.state_scales)
        return self._last

    def constraint_terms(self, candidate: Candidate) -> FloatArray:
        """Return the sizes of the terms that the rows of the constraints' gradient are sums of, (m,)."""
        gradient = self._invariants(candidate).gradient(candidate.time, candidate.states, candidate.inputs)
        return gradient.reference

    def _constraint_sizes(self, invariants: Invariants, start: Candidate) -> FloatArray:
        if not len(invariants):
            return np.empty(0)
        H = invariants.gradient(start.time, start.states, start.inputs).H * self.state_scales
        size = np.linalg.norm(np.nan_to_num(H), axis=1)
        # A row that is rounding relative to the others keeps its unit: it must not be enlarged to their length.
        return np.where(size > 1e-9 * float(size.max()), size, 1.0)

    def exact_jacobian(self, z: FloatArray, slopes: Evaluation | None = None) -> FloatArray | None:
        """Return dr/dz (m, n) from derivatives of the model, NaN where it is silent; None without any.

        ``slopes`` are its derivatives along all states and inputs at z, where they were computed already.
        """
        return self._compute_exact_jacobian(z, slopes, first_order=False)

    def _compute_exact_jacobian(
        self, z: FloatArray, slopes: Evaluation | None, *, first_order: bool
    ) -> FloatArray | None:
        unknowns, candidate = self.unknowns, self.unknowns.at(z)
        n, nu, k = len(candidate.states), len(candidate.inputs), len(unknowns.inputs)
        dx, du = np.hstack((np.eye(n), np.zeros((n, k)))), np.zeros((nu, n + k))
        du[unknowns.inputs, n + np.arange(k)] = 1.0
        columns = np.concatenate((unknowns.state_columns, unknowns.input_columns))
        unknown_columns = np.concatenate((unknowns.states, n + np.arange(k)))
        try:
            # Rows of hidden constraints may be rounding, which their own gradient tells.
            if slopes is None or self._invariants(candidate).hidden:
                first_order_slopes = self.first_order_slopes(candidate, dx, du)
            else:
                varied = np.concatenate((np.arange(n), n + unknowns.inputs))
                first_order_slopes = (
                    slopes.residuals[:, varied],
                    slopes.derivatives[:, varied],
                    slopes.outputs[:, varied],
                )
            if first_order_slopes is None:
                return None
            h, rates, outputs = first_order_slopes
            parts = [h[:, unknown_columns], rates[np.ix_(self.at_rest, unknown_columns)]]
            if self.moving and first_order:
                parts.append(np.full((len(self.at_rest), len(unknown_columns)), np.nan))
            elif self.moving:
                parts.append(self._change(candidate, rates, dx, du)[np.ix_(self.at_rest, unknown_columns)])
            if self.targets:
                parts.append(compute_reading_derivatives(self.targets, dx, du, rates, outputs)[:, unknown_columns])
            if self.totals is not None:
                parts.append((self.totals[0] @ dx)[:, unknown_columns])
        except REFUSALS:
            return None
        J = np.full((len(self.rows), len(unknowns)), np.nan)
        J[:, columns] = np.concatenate(parts) * unknowns.scales[columns]
        return np.asarray(J / self.sizes[:, None])

    def first_order_slopes(
        self, candidate: Candidate, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return derivatives of the invariants, rates and outputs along columns, the first ones along the states."""
        t, x, u, n = candidate.time, candidate.states, candidate.inputs, len(candidate.states)
        answer = candidate.evaluator.products(t, x, u, dx, du)
        if answer is None:
            return None
        invariants = self._invariants(candidate)
        # A model differentiates its declared constraints alone, and leaves NaN where it does not.
        if not invariants.hidden and np.isfinite(answer.residuals).all():
            return answer.residuals, answer.derivatives, answer.outputs
        h = np.full((len(invariants), dx.shape[1]), np.nan)
        gradient = invariants.gradient(t, x, u)
        is_more_than_rounding = np.any(gradient.scaled != 0, axis=1, keepdims=True)
        h[:, :n] = np.where(is_more_than_rounding, gradient.H, 0.0)
        # Elsewhere NaN has these columns measured.
        if not invariants_see_inputs(invariants):
            h[:, n:] = 0.0
        return h, answer.derivatives, answer.outputs

    def _change(self, candidate: Candidate, rates: FloatArray, dx: FloatArray, du: FloatArray) -> FloatArray:
        """Return derivatives of d/dt f = f_t + f_x f along columns; that of f_x is a difference of exact ones."""
        t, x, u, n = candidate.time, candidate.states, candidate.inputs, len(candidate.states)
        f = self._rates(candidate, 0.0, x)
        # Of motions slower than 1e-3 sizes a second the step is limited: it is one of time, too.
        s = COMPARISON_STEP_SIZE / max(float(np.max(np.abs(f) / self.state_scales, initial=0.0)), 1e-3)
        ahead = candidate.evaluator.products(t + s, x + s * f, u, dx, du)
        behind = candidate.evaluator.products(t - s, x - s * f, u, dx, du)
        # NaN has these columns measured.
        if ahead is None or behind is None:
            return np.full_like(rates, np.nan)
        return rates[:, :n] @ rates + (ahead.derivatives - behind.derivatives) / (2 * s)

    def _measure(self, z: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
        """Return columns of the Jacobian by differences, NaN where that fails; what is within its error is zero."""
        base = self.values(z)
        if not np.isfinite(base).all():
            return np.full((len(base), len(columns)), np.nan)

        def line(j: int, s: float) -> FloatArray:
            displaced = z.copy()
            displaced[columns[j]] += s
            return self.values(displaced)

        try:
            measured = slopes(line, base, np.ones(len(columns)))
        except NumericalError:
            return np.full((len(base), len(columns)), np.nan)
        # The error is an estimate, which the true one may exceed: three times it is safe.
        return np.where(np.abs(measured.J) > 3 * measured.error, measured.J, 0.0)


def invariants_see_inputs(invariants: Invariants) -> bool:
    """Whether inputs may enter the invariants: in an expression, or through rates that only the model knows."""
    constraints = invariants.model.constraints
    # A constraint without an expression is code of the model, in which any input may stand.
    if not constraints.analytic.all():
        return True
    inputs = set(invariants.model.inputs.positions)
    # The expression of a constraint names an input itself.
    if any(inputs.intersection(row.expression.names) for row in constraints.rows):
        return True
    # The rate of a paired position is a state; that of any other state is computed from inputs as well.
    visible_rows = constraints.structure[invariants.hidden]
    unpaired = np.ones(visible_rows.shape[1], dtype=bool)
    unpaired[list(invariants.pairs)] = False
    return bool(visible_rows[:, unpaired].any())
