"""DAEs as a graph, F(t, x', x, z, u, p) = 0: what a reduction, an engine and the Modelica adapter take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from fmilin.errors import UsageError, quote_first
from fmilin.model.ranges import TableRange
from fmilin.signals import FloatArray, Signals

SX = Any  # casadi.SX: casadi ships no types


@dataclass(frozen=True)
class DaeGraph:
    """F(t, x', x, z, u, p) = 0 in nodes of a CasADi graph, N + nz equations of any index.

    Every vector is a column of distinct ``casadi.SX`` symbols, in the order of its signals; their names are distinct
    among all of them; signals carry units, nominal values, start values and descriptions.
    """

    name: str  #: of the model
    residuals: SX  #: F, N + nz of them, zero on every motion
    x: SX = field(default_factory=lambda: ca.SX(0, 1))  #: N states
    dx: SX = field(default_factory=lambda: ca.SX(0, 1))  #: their derivatives
    z: SX = field(default_factory=lambda: ca.SX(0, 1))  #: nz algebraic variables; no derivative of theirs is in F
    u: SX = field(default_factory=lambda: ca.SX(0, 1))  #: nu inputs
    p: SX = field(default_factory=lambda: ca.SX(0, 1))  #: parameters that may change later; others may be numbers in F
    states: Signals = field(default_factory=Signals)  #: of x; start values are projected when a point is wanted
    algebraic: Signals = field(default_factory=Signals)  #: of z; Newton's iteration begins at their start values
    inputs: Signals = field(default_factory=Signals)  #: of u
    parameters: Signals = field(default_factory=Signals)  #: of p; start values are their values
    time: SX = field(default_factory=lambda: ca.SX.sym("time"))  #: the symbol of time, where F contains it
    outputs: Mapping[str, SX] = field(default_factory=dict)  #: over all of these symbols
    #: of the outputs, where they have units or descriptions; states, algebraic variables, inputs and ``der(x)`` may be
    #: outputs without being listed here
    output_signals: Signals = field(default_factory=Signals)
    equations: Sequence[str] = ()  #: a name for each residual, for messages (``"crane.mo:12: m*der(v) = f"``)
    fixed: Sequence[str] = ()  #: states with start values that stay when the others are made consistent
    preferred: Sequence[str] = ()  #: states wished as independent coordinates, the most wanted first, where regular
    notes: Sequence[str] = ()  #: what a user should know, as diagnostics of every linear model
    description: str = ""  #: of the model
    ranges: Sequence[tuple[TableRange, SX]] = ()  #: of inputs of tables, and expressions of these over all symbols

    def __post_init__(self) -> None:
        pairs = [("states", self.x), ("states", self.dx), ("algebraic", self.z), ("inputs", self.u)]
        wrong = [
            f"{len(getattr(self, what))} {what} for {symbols.numel()} symbols"
            for what, symbols in [*pairs, ("parameters", self.p)]
            if len(getattr(self, what)) != symbols.numel()
        ]
        if wrong:
            raise UsageError(f"The graph of the equations of '{self.name}' is inconsistent: {'; '.join(wrong)}.")
        free = ca.symvar(self.residuals)
        graph_symbols = {
            s.__hash__() for a in (self.time, self.x, self.dx, self.z, self.u, self.p) for s in a.elements()
        }
        foreign = [str(s) for s in free if s.__hash__() not in graph_symbols]
        if foreign:
            raise UsageError(
                f"The residuals of '{self.name}' contain {quote_first(foreign)}, which has no value. Declare it as a "
                "parameter."
            )
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
        names, count = tuple(self.equations), self.residuals.numel()
        return (*names, *(f"equation {i + 1}" for i in range(len(names), count)))

    @property
    def values(self) -> FloatArray:
        """Of the parameters, shape (np,)."""
        return self.parameters.starts


def require_balance(graph: DaeGraph) -> None:
    """Reject more or fewer equations than unknowns, with what is never used."""
    count, unknown_count = graph.residuals.numel(), graph.unknowns.numel()
    if count == unknown_count:
        return
    used = ca.jacobian_sparsity(graph.residuals, ca.vertcat(graph.unknowns, graph.x))
    columns = set(np.unique(used.get_triplet()[1]).tolist())
    n = len(graph.states)
    unused = [name for j, name in enumerate(graph.algebraic.names) if n + j not in columns]
    unused += [name for j, name in enumerate(graph.states.names) if not {j, unknown_count + j} & columns]
    which = f" No equation contains {quote_first(unused)}." if unused else ""
    raise UsageError(
        f"The model '{graph.name}' is not balanced: {count} equations for {n} states and {unknown_count - n} algebraic "
        f"variables.{which} {'Add the missing equations' if count < unknown_count else 'Leave out equations'}, or "
        "the external quantity as an input."
    )
