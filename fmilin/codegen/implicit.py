"""The one form from which all code is made, in nodes of a CasADi graph, and Newton's iteration for its unknowns.

    W(t, x, u, p) w = r(t, x, u, p),   x' = f(t, x, u, p, w),   outputs = c(t, x, u, p, w)

Equations R(t, x, u, p, w) = 0 that are not linear in w have a :class:`Guess` of w, W = dR/dw and r = -R: W^-1 r is then
a step of Newton's, from the point of the guess on in parts (Deuflhard, Newton Methods for Nonlinear Problems, 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import casadi as ca
import numpy as np

from fmilin.errors import NumericalError
from fmilin.numerics.factors import Factors
from fmilin.signals import FloatArray, Signals

Point = tuple[float, FloatArray, FloatArray, FloatArray]  # (t, x, u, p)
Linearized = Callable[[Point, FloatArray], tuple[Factors, FloatArray]]  # (point, w) -> factors of W, and r
ITERATIONS = 30
NEWTON_STEP_TOLERANCE = 1e-13  # the last step, in sizes of the unknowns: W is then right to as much
STALLED_STEP_TOLERANCE = 1e-8  # a step that no longer shrinks below this is rounding
CONTRACTION_RATIO = 0.5
MIN_STEP_FRACTION = 2.0**-12  # of the way from the guess to the point


@dataclass(frozen=True)
class Guess:
    """Where Newton's iteration begins."""

    unknowns: FloatArray  # (nw,), which solve the equations at the point below
    sizes: FloatArray  # (nw,), typical ones
    time: float
    states: FloatArray  # shape (N,)
    inputs: FloatArray  # shape (nu,)
    parameters: FloatArray  # shape (np,)
    equations: tuple[str, ...] = ()  # names of the rows of W, for messages

    @property
    def point(self) -> Point:
        """(t, x, u, p)."""
        return self.time, self.states, self.inputs, self.parameters

    def with_inputs(self, chosen: list[int], fixed_inputs: list[int]) -> Guess:
        """Return the guess of a system of which some inputs have become parameters."""
        parameters = np.concatenate((self.parameters, self.inputs[fixed_inputs]))
        return replace(self, inputs=self.inputs[chosen], parameters=parameters)


def solve_implicit(linearized: Linearized, guess: Guess, point: Point, name: str) -> tuple[Factors, FloatArray]:
    """Return the factors of W and w at a point; NumericalError names the equation with the largest residual."""
    direct = _correct(linearized, guess, point, guess.unknowns)
    if direct is not None:
        return direct
    w, gone, step = guess.unknowns, 0.0, 0.5
    while step >= MIN_STEP_FRACTION:
        to = min(1.0, gone + step)
        nearer = _correct(linearized, guess, _between(guess.point, point, to), w)
        if nearer is None:
            step /= 2
            continue
        w, gone, step = nearer[1], to, 2 * step
        if gone == 1.0:
            return nearer
    raise _no_solution_error(linearized, guess, point, w, name)


def _between(a: Point, b: Point, part: float) -> Point:
    if part == 1.0:
        return b
    t, x, u, p = ((1 - part) * np.asarray(p) + part * np.asarray(q) for p, q in zip(a, b, strict=True))
    return float(t), x, u, p


def _correct(linearized: Linearized, guess: Guess, point: Point, w: FloatArray) -> tuple[Any, FloatArray] | None:
    previous = np.inf
    for _ in range(ITERATIONS):
        try:
            factors, r = linearized(point, w)
        except NumericalError:  # singular here: no step
            return None
        dw = factors.solve(r)
        if not np.isfinite(dw).all():
            return None
        w = w + dw
        step = float(np.max(np.abs(dw) / np.maximum(np.abs(w), guess.sizes), initial=0.0))
        if step <= NEWTON_STEP_TOLERANCE or (step <= STALLED_STEP_TOLERANCE and step > CONTRACTION_RATIO * previous):
            return factors, w
        if step > CONTRACTION_RATIO * previous:
            return None
        previous = step
    return None


def _no_solution_error(linearized: Linearized, guess: Guess, point: Point, w: FloatArray, name: str) -> NumericalError:
    try:
        _, r = linearized(point, w)
    except NumericalError as singular:
        return singular
    where = f" '{guess.equations[int(np.argmax(np.abs(r)))]}' is left" if guess.equations else " they are left"
    return NumericalError(
        f"Newton's iteration did not solve the algebraic equations of '{name}' at time {point[0]:g}:{where} with a "
        f"residual of {np.max(np.abs(r), initial=0.0):.3g}. Choose a point nearer to the start values, give start "
        "values of the algebraic variables near their solution, or check that a solution exists."
    )


SX = Any  # casadi.SX: casadi ships no types
MAX_SHARED_ENTRIES = 5_000
"""Entries up to which common parts are searched: time and memory of CasADi's search grow with their square."""

Operation = Callable[[SX, SX], SX]
plus: Operation = partial(ca.SX.binary, ca.OP_ADD)
"""The operations on scalars without the conversions of the operators, which take seven times as long."""
minus: Operation = partial(ca.SX.binary, ca.OP_SUB)
times: Operation = partial(ca.SX.binary, ca.OP_MUL)
over: Operation = partial(ca.SX.binary, ca.OP_DIV)


@dataclass(frozen=True)
class ImplicitSystem:
    """A model as a graph; see the module's text for the equations."""

    name: str
    time: SX  # a symbol, as are the entries of the next four
    states: SX  # shape (N, 1)
    inputs: SX  # shape (nu, 1)
    parameters: SX  # shape (np, 1)
    unknowns: SX  # shape (nw, 1)
    unknown_names: tuple[str, ...]
    matrix: SX  # (nw, nw), W, over (t, x, u, p); sparse
    right_hand_side: SX  # (nw, 1), r, over (t, x, u, p)
    # derivatives, outputs: f and c, over (t, x, u, p, w)
    derivatives: SX  # shape (N, 1)
    outputs: SX  # shape (ny, 1)
    # state_signals, input_signals, output_signals, parameter_signals: names, units and start values
    state_signals: Signals
    input_signals: Signals
    output_signals: Signals
    parameter_signals: Signals
    parameter_values: FloatArray  # shape (np,)
    # further named quantities (lambda, reaction forces) over (t, x, u, p, w)
    further: Mapping[str, SX] = field(default_factory=dict)
    # d(r - W w)/d(x, u) with w held, where there is a shorter way to it than differentiating r and W
    slopes: SX | None = None
    description: str = ""
    guess: Guess | None = None  # of w, where the equations are not linear in w

    @property
    def arguments(self) -> tuple[SX, SX, SX, SX]:
        """(t, x, u, p)."""
        return self.time, self.states, self.inputs, self.parameters

    @property
    def motion(self) -> SX:
        """(x, u), shape (N + nu, 1)."""
        return ca.vertcat(self.states, self.inputs)

    def with_inputs(self, chosen: Sequence[int]) -> Self:
        """Return the system with some of its inputs, in that order; the others become parameters at start values."""
        n, k = len(self.state_signals), len(self.input_signals)
        if list(chosen) == list(range(k)):
            return self
        fixed_inputs = [i for i in range(k) if i not in chosen]
        columns = [*range(n), *(n + i for i in chosen)]
        signals = self.input_signals.select(fixed_inputs)
        return replace(
            self,
            inputs=ca.vertcat(ca.SX(0, 1), *(self.inputs[i] for i in chosen)),
            input_signals=self.input_signals.select(chosen),
            parameters=ca.vertcat(self.parameters, *(self.inputs[i] for i in fixed_inputs)),
            parameter_signals=Signals([*self.parameter_signals, *signals]),
            parameter_values=np.concatenate((self.parameter_values, signals.starts)),
            slopes=None if self.slopes is None else self.slopes[:, columns],
            guess=None if self.guess is None else self.guess.with_inputs(list(chosen), fixed_inputs),
        )

    @property
    def remainder(self) -> SX:
        """The remainder of r: r - W w, or r itself where a solution of W w = r is a Newton step."""
        Ww = ca.mtimes(self.matrix, self.unknowns) if self.guess is None else 0
        return self.right_hand_side - Ww

    def residual_slopes(self, columns: SX) -> SX:
        """Return d(r - W w)/d ``columns`` with w held, shape (nw, columns)."""
        return jacobian(self.remainder, columns)

    @property
    def motion_slopes(self) -> SX:
        """d(r - W w)/d(x, u) with w held, shape (nw, N + nu)."""
        return self.residual_slopes(self.motion) if self.slopes is None else self.slopes


def jacobian(e: SX, columns: SX) -> SX:
    """Return the exact sparse Jacobian of a column. Common subexpressions are differentiated once."""
    return ca.sparsify(ca.jacobian(ca.cse(e) if cse_option(e)["cse"] else e, columns))


def sparse(entries: Mapping[tuple[int, int], SX], shape: tuple[int, int]) -> SX:
    """Return a matrix of its nodes by (row, column), without those that are zero."""
    positions = sorted(entries, key=lambda position: position[::-1])  # column by column, as CasADi keeps them
    rows, columns = [i for i, _ in positions], [j for _, j in positions]
    nonzeros = ca.vertcat(ca.SX(0, 1), *(entries[position] for position in positions))
    return ca.sparsify(ca.SX(ca.Sparsity.triplet(*shape, rows, columns), nonzeros))


def cse_option(*results: SX) -> dict[str, bool]:
    """Return the option by which a function of these results computes once what they have in common."""
    return {"cse": sum(result.nnz() for result in results) <= MAX_SHARED_ENTRIES}
