"""The one form from which all code is made, in nodes of a CasADi graph.

States x (N), inputs u, parameters p and time t; some unknowns w (accelerations, multipliers) solve a
small linear system at each point:

    W(t, x, u, p) w = r(t, x, u, p)
    x'      = f(t, x, u, p, w)
    outputs = c(t, x, u, p, w)

Equations R(t, x, u, p, w) = 0 that are not linear in w have a :class:`Guess` of w, W = dR/dw and r = -R: there W and r
contain w, and W^-1 r is a step of Newton's iteration. An explicit model x' = f has no w. A mass-matrix model E x' = F
has W = E, r = F, w = x'. Lagrange's equations have W = [[M, G'], [G, 0]], r = (F, -Gdot v), w = (v', lambda): seed 002
eqs. (2.1b), (2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import casadi as ca
import numpy as np

from fmilin.ground.signals import FloatArray, Signals
from fmilin.numerics.codegen.newton import Guess

SX = Any  # casadi.SX: casadi ships no types

LARGEST_SHARED = 5_000
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
        held = [i for i in range(k) if i not in chosen]
        columns = [*range(n), *(n + i for i in chosen)]
        signals = self.input_signals.select(held)
        return replace(
            self,
            inputs=ca.vertcat(ca.SX(0, 1), *(self.inputs[i] for i in chosen)),
            input_signals=self.input_signals.select(chosen),
            parameters=ca.vertcat(self.parameters, *(self.inputs[i] for i in held)),
            parameter_signals=Signals([*self.parameter_signals, *signals]),
            parameter_values=np.concatenate((self.parameter_values, signals.starts)),
            slopes=None if self.slopes is None else self.slopes[:, columns],
            guess=None if self.guess is None else self.guess.with_inputs(list(chosen), held),
        )

    @property
    def remainder(self) -> SX:
        """What the equations leave of r: r - W w, or r itself where a solution of W w = r is a step of Newton's."""
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
    """Return the exact sparse Jacobian of a column. What is in it several times is differentiated once."""
    return ca.sparsify(ca.jacobian(ca.cse(e) if cse_option(e)["cse"] else e, columns))


def sparse(entries: Mapping[tuple[int, int], SX], shape: tuple[int, int]) -> SX:
    """Return a matrix of its nodes by (row, column), without those that are zero."""
    positions = sorted(entries, key=lambda position: position[::-1])  # column by column, as CasADi keeps them
    rows, columns = [i for i, _ in positions], [j for _, j in positions]
    nonzeros = ca.vertcat(ca.SX(0, 1), *(entries[position] for position in positions))
    return ca.sparsify(ca.SX(ca.Sparsity.triplet(*shape, rows, columns), nonzeros))


def cse_option(*results: SX) -> dict[str, bool]:
    """Return the option by which a function of these results computes once what they have in common."""
    return {"cse": sum(result.nnz() for result in results) <= LARGEST_SHARED}
