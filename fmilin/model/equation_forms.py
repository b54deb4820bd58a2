"""The forms of equations that native descriptions reduce to: symbolic, and in sparse matrices for large models.

The symbolic ones are those of :mod:`fmilin.codegen.implicit`, and 0 = h(t, x, p): invariants, hidden ones
included. Lagrange's have W = [[M, G'], [G, 0]], r = (F, -Gdot v), w = (v', lambda): seed 002 eqs. (2.1b), (2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Level
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from fmilin.codegen.expression_graph import Graph
    from fmilin.codegen.implicit import ImplicitSystem
from collections.abc import Sequence
from typing import Protocol

Symbol = Any  # sympy.Symbol: sympy ships no types, and is imported only where it is used
Expr = Any  # sympy.Expr
SX = Any  # casadi.SX: casadi ships no types


@dataclass(frozen=True)
class Laws:
    """Constraints that the last unknowns, their multipliers, enforce: G v' + Gdot v = 0 and the forces -G' lambda."""

    # m of them: 0 = g(t, q) of level ``"position"``, 0 = a(t, q, v), linear in v, of level ``"velocity"``
    laws: tuple[tuple[Expr, Level], ...]
    velocities: Mapping[Symbol, Symbol]  # q to v, n of them
    # inputs to the inputs that are their rates: prescribed motions
    driven: Mapping[Symbol, Symbol] = field(default_factory=dict)

    def in_graph(self, graph: Graph, time: SX) -> tuple[SX, SX]:
        """Return G, shape (m, n), and Gdot v with all else that v' does not multiply, shape (m, 1)."""
        import casadi as ca

        from fmilin.codegen.implicit import jacobian

        q, v = graph.column(self.velocities), graph.column(self.velocities.values())
        moving = ca.vertcat(time, q, graph.column(self.driven))
        along = ca.vertcat(1, v, graph.column(self.driven.values()))
        holonomic = [k for k, (_, level) in enumerate(self.laws) if level == "position"]
        other_laws = [k for k, (_, level) in enumerate(self.laws) if level != "position"]
        g, a = (graph.column(self.laws[k][0] for k in laws) for laws in (holonomic, other_laws))
        rates = ca.vertcat(ca.jtimes(g, moving, along), a)
        order = np.argsort([*holonomic, *other_laws]).tolist()
        G: SX = ca.vertcat(jacobian(g, q), jacobian(a, v))
        Gdot_v: SX = ca.jtimes(rates, moving, along)
        return G[order, :], Gdot_v[order]


@dataclass(frozen=True)
class SymbolicSystem:
    """A model in symbols; see the module's text for the equations."""

    name: str  # a legal C identifier is made from it where one is needed
    time: Symbol
    # states, inputs: N and nu symbols; ``state_signals`` and ``input_signals`` hold their names, units and start values
    states: tuple[Symbol, ...]
    inputs: tuple[Symbol, ...]
    parameters: Mapping[Symbol, float]  # symbol to default value
    derivatives: tuple[Expr, ...]  # f, one per state, in (t, x, u, p, w)
    outputs: tuple[Expr, ...]  # c, in (t, x, u, p, w); ``output_signals`` holds their names
    state_signals: Signals
    input_signals: Signals
    output_signals: Signals
    parameter_signals: Signals
    unknowns: tuple[Symbol, ...] = ()  # w, maybe empty
    # W, by row and column: the entries that are not zero, in (t, x, u, p)
    matrix: Mapping[tuple[int, int], Expr] = field(default_factory=dict)
    right_hand_side: tuple[Expr, ...] = ()  # r
    laws: Laws | None = None  # constraints: their G and Gdot v are added to W and r
    # the declared ones and the hidden ones that were derived; their variables are state, input and parameter names
    constraints: tuple[Constraint, ...] = ()
    description: str = ""
    extra_names: Mapping[str, Expr] = field(default_factory=dict)
    """Further named quantities (lambda, reaction forces) that may be outputs."""
    intermediate: tuple[tuple[Symbol, Expr], ...] = ()
    """Quantities computed on the way, each over symbols and those before it; all expressions may use them."""
    independent: tuple[str, ...] = ()
    """States that the author recommends to keep as independent coordinates; empty without a recommendation."""

    def in_graph(self) -> ImplicitSystem:
        """Return the equations as a graph."""
        return self.graph()[1]

    def graph(self) -> tuple[Graph, ImplicitSystem]:
        """Return the graph of all expressions, which further ones may be added to, and the equations in it."""
        import casadi as ca

        from fmilin.codegen.expression_graph import Graph
        from fmilin.codegen.implicit import ImplicitSystem

        graph = Graph()
        time, states, inputs, parameters, unknowns = (
            graph.declare(s) for s in ((self.time,), self.states, self.inputs, tuple(self.parameters), self.unknowns)
        )
        for symbol, expression in self.intermediate:
            graph.define(symbol, expression)
        W = graph.matrix(self.matrix, (len(self.unknowns), len(self.unknowns)))
        r = graph.column(self.right_hand_side)
        if self.laws is not None and self.laws.laws:
            G, Gdot_v = self.laws.in_graph(graph, time)
            W, r = with_constraints(W, G), r - ca.vertcat(ca.SX(G.shape[1], 1), Gdot_v)
        system = ImplicitSystem(
            name=self.name,
            description=self.description,
            time=time,
            states=states,
            inputs=inputs,
            parameters=parameters,
            unknowns=unknowns,
            unknown_names=tuple(map(str, self.unknowns)),
            matrix=W,
            right_hand_side=ca.densify(r),
            derivatives=graph.column(self.derivatives),
            outputs=graph.column(self.outputs),
            further={name: graph.node(e) for name, e in self.extra_names.items()},
            state_signals=self.state_signals,
            input_signals=self.input_signals,
            output_signals=self.output_signals,
            parameter_signals=self.parameter_signals,
            parameter_values=np.array(list(self.parameters.values()), dtype=np.float64),
        )
        return graph, system


def with_constraints(W: SX, G: SX) -> SX:
    """Return [[M, G'], [G, 0]] for W, shape (n + m, n + m), that holds M alone."""
    import casadi as ca

    m, n = G.shape
    return ca.blockcat([[W[:n, :n], G.T], [G, ca.SX(m, m)]])


Sparse = Any  # a scipy.sparse array: imported only where it is used


class SparseEquations(Protocol):
    """W w = r, W = [[M, G'], [G, 0]], r = (F, -Gdot v), w = (v', lambda), of 2n states (q, v) and m constraints."""

    @property
    def n(self) -> int:
        """How many coordinates there are."""

    def matrix(self, t: float, x: FloatArray, u: FloatArray) -> tuple[Sparse, FloatArray]:
        """Return W, shape (n + m, n + m), and r, shape (n + m,)."""

    def solver(self, W: Sparse) -> Any:
        """Return what solves with W, with its reciprocal condition number ``rcond``."""

    def slopes(self, t: float, x: FloatArray, u: FloatArray, w: FloatArray) -> Sparse:
        """Return d(r - W w)/d(q, v, u) at a point and any w, held, shape (n + m, 2n + nu)."""

    def turning(self, t: float, x: FloatArray, u: FloatArray) -> Sparse:
        """Return d(G v)/dq with v held, shape (m, n)."""

    def residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return (g, G v), shape (2m,)."""

    def distance(self, x: FloatArray, u: FloatArray, t: float) -> float:
        """Return the distance to the manifold to first order, in sizes of the states."""

    def projected(self, t: float, x: FloatArray, u: FloatArray, pinned: Sequence[int]) -> FloatArray:
        """Return the nearest states with g = 0 and G v = 0, some of them held."""


@dataclass(frozen=True)
class SecondOrderForm:
    """M v' + G' lambda = F, G v' = -Gdot v at a point, in its parts; v' and lambda of least norm where G loses rank."""

    # positions, velocities: (n,), which states are q and v
    positions: NDArray[np.intp]
    velocities: NDArray[np.intp]
    M: FloatArray  # shape (n, n)
    G: FloatArray  # shape (m, n)
    multipliers: FloatArray  # (m,), lambda, of least norm
    accelerations: FloatArray  # shape (n,)
    force_states: FloatArray  # (n, N), d(F - M v' - G' lambda)/dx, v' and lambda held
    force_inputs: FloatArray  # shape (n, nu)
    output_states: FloatArray  # shape (ny, N)
    output_inputs: FloatArray  # shape (ny, nu)
    output_unknowns: FloatArray  # (ny, n + m), d outputs / d(v', lambda)
    bend: Callable[[FloatArray], FloatArray]  # a (n,) -> D^2 g [a, a], shape (m,)
    constraint_states: FloatArray  # (m, N), d(G v' + Gdot v)/dx, v' held
    constraint_inputs: FloatArray  # (m, nu), d(G v' + Gdot v)/du: not zero where inputs prescribe a motion

    def with_inputs(self, chosen: Sequence[int]) -> SecondOrderForm:
        """Return the form with the columns of chosen inputs."""
        return replace(
            self,
            force_inputs=self.force_inputs[:, chosen],
            output_inputs=self.output_inputs[:, chosen],
            constraint_inputs=self.constraint_inputs[:, chosen],
        )


@dataclass(frozen=True, eq=False)
class DescriptorForm:
    """E z' = f0 + A (z - z0) + B (u - u0), out - out0 = C (z - z0) + D (u - u0): the equations as they are written."""

    E: FloatArray  # shape (k, k)
    A: FloatArray  # shape (k, k)
    B: FloatArray  # shape (k, nu)
    C: FloatArray  # shape (ny, k)
    D: FloatArray  # shape (ny, nu)
    f0: FloatArray  # shape (k,)
    states: tuple[str, ...]  # names of z: all states, then algebraic variables
    order: int  # how many finite eigenvalues there are
