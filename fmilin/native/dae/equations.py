"""DAEs as a graph, as they were written: F(t, x', x, z, u, p) = 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray, Signals

SX = Any  # casadi.SX: casadi ships no types

SHOWN = 6  # names in a message


@dataclass(frozen=True)
class DaeGraph:
    """F(t, x', x, z, u, p) = 0 in nodes of a CasADi graph, N + nz equations of any index.

    Every vector is a column of distinct ``casadi.SX`` symbols, in the order of its signals, whose names are distinct
    among all of them; signals carry units, nominal values, start values and descriptions.

    Parameters
    ----------
    name : str
    residuals : SX, shape (N + nz, 1)
        F, zero on every motion.
    x, dx : SX, shape (N, 1)
        The states and their derivatives.
    z : SX, shape (nz, 1)
        The algebraic variables: no derivative of theirs is in F.
    u : SX, shape (nu, 1)
    p : SX, shape (np, 1)
        Parameters that may be changed later; others may stand in F as numbers.
    states, algebraic, inputs, parameters : Signals
        Of x, z, u and p. Start values of states are projected onto the manifold when a point is wanted, those of
        algebraic variables are where Newton's iteration begins; those of parameters are their values.
    time : SX
        The symbol of time, where F contains it.
    outputs : mapping of str to SX
        Over all of these symbols.
    output_signals : Signals
        Of the outputs, where they have units or descriptions; states, algebraic variables, inputs and ``der(x)`` may be
        outputs without being listed here.
    equations : sequence of str
        A name for each residual, for messages (``"crane.mo:12: m*der(v) = f"``).
    fixed : sequence of str
        States whose start values are to stay as they are when the others are made consistent.
    preferred : sequence of str
        States that are wished as independent coordinates, the most wanted first; taken as far as they are regular.
    notes : sequence of str
        What a user should know: remarks of every linear model.
    description : str
    """

    name: str
    residuals: SX
    x: SX = field(default_factory=lambda: ca.SX(0, 1))
    dx: SX = field(default_factory=lambda: ca.SX(0, 1))
    z: SX = field(default_factory=lambda: ca.SX(0, 1))
    u: SX = field(default_factory=lambda: ca.SX(0, 1))
    p: SX = field(default_factory=lambda: ca.SX(0, 1))
    states: Signals = field(default_factory=Signals)
    algebraic: Signals = field(default_factory=Signals)
    inputs: Signals = field(default_factory=Signals)
    parameters: Signals = field(default_factory=Signals)
    time: SX = field(default_factory=lambda: ca.SX.sym("time"))
    outputs: Mapping[str, SX] = field(default_factory=dict)
    output_signals: Signals = field(default_factory=Signals)
    equations: Sequence[str] = ()
    fixed: Sequence[str] = ()
    preferred: Sequence[str] = ()
    notes: Sequence[str] = ()
    description: str = ""

    def __post_init__(self) -> None:
        pairs = [("states", self.x), ("states", self.dx), ("algebraic", self.z), ("inputs", self.u)]
        wrong = [
            f"{len(getattr(self, what))} {what} for {symbols.numel()} symbols"
            for what, symbols in [*pairs, ("parameters", self.p)]
            if len(getattr(self, what)) != symbols.numel()
        ]
        if wrong:
            raise UsageError(f"The graph of '{self.name}' does not fit: {'; '.join(wrong)}.")
        free = ca.symvar(self.residuals)
        own = {s.__hash__() for a in (self.time, self.x, self.dx, self.z, self.u, self.p) for s in a.elements()}
        foreign = [str(s) for s in free if s.__hash__() not in own]
        if foreign:
            raise UsageError(f"The residuals of '{self.name}' contain {listed(foreign)}, which has no value.")
        require_balance(self)

    @cached_property
    def unknowns(self) -> SX:
        """(x', z), the first N + nz."""
        return ca.vertcat(self.dx, self.z)

    @cached_property
    def unknown_names(self) -> tuple[str, ...]:
        """Of x' and z."""
        return (*(f"der({name})" for name in self.states.names), *self.algebraic.names)

    @cached_property
    def equation_names(self) -> tuple[str, ...]:
        """One for each residual."""
        given, count = tuple(self.equations), self.residuals.numel()
        return (*given, *(f"equation {i + 1}" for i in range(len(given), count)))

    @property
    def values(self) -> FloatArray:
        """Of the parameters, shape (np,)."""
        return self.parameters.starts


def require_balance(graph: DaeGraph) -> None:
    """Refuse more or fewer equations than unknowns, with what is never used."""
    count, wanted = graph.residuals.numel(), graph.unknowns.numel()
    if count == wanted:
        return
    used = ca.jacobian_sparsity(graph.residuals, ca.vertcat(graph.unknowns, graph.x))
    columns = set(np.unique(used.get_triplet()[1]).tolist()) if count else set()
    n = len(graph.states)
    unused = [name for j, name in enumerate(graph.algebraic.names) if n + j not in columns]
    unused += [name for j, name in enumerate(graph.states.names) if not {j, wanted + j} & columns]
    which = f" No equation contains {listed(unused)}." if unused else ""
    raise UsageError(
        f"The model '{graph.name}' is not balanced: {count} equations for {n} states and {wanted - n} algebraic "
        f"variables.{which} {'Add the missing equations' if count < wanted else 'Leave out equations'}, or declare "
        "what is given from outside as an input."
    )


def listed(names: Sequence[str]) -> str:
    """Return some names for a message."""
    return ", ".join(f"'{name}'" for name in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
