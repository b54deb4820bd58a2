"""Meshed networks of nonlinear conductors with a few capacitors: many algebraic variables, and an independent solution.

Node voltages v on a square grid, currents g d + 0.3 d^3 for the voltage d across each conductor. The independent
computation uses arrays alone: Newton's iteration on Kirchhoff's laws with the capacitors' voltages held, and the Schur
complement of its Jacobian.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from fmilin import LinearModel, Signal, Signals
from fmilin.models import DaeGraph

Array = NDArray[np.float64]
CAPACITORS = 10
BENT = 0.3  # A/V^3


@dataclass(frozen=True)
class Network:
    """A network as a DAE, and as arrays."""

    graph: DaeGraph
    edges: NDArray[np.intp]  # shape (k, 2)
    conductances: Array  # shape (k,)
    capacitors: NDArray[np.intp]  # their nodes
    capacities: Array

    def error(self, lin: LinearModel) -> float:
        """Return the largest difference of A and B from the independent computation, of the largest entry."""
        A, B = self.solve_by_arrays()
        order = [self.graph.states.names.index(n) for n in lin.states.names]
        wrong = max(np.abs(lin.A - A[np.ix_(order, order)]).max(), np.abs(lin.B - B[order]).max())
        return float(wrong / np.abs(A).max())

    def solve_by_arrays(self) -> tuple[Array, Array]:
        """Return A and B by an independent computation, the capacitors' voltages in order of their nodes."""
        count = int(self.edges.max()) + 1
        k = len(self.edges)
        incidence = sparse.csr_array(
            (np.repeat([1.0, -1.0], k), (np.tile(np.arange(k), 2), self.edges.T.ravel())), shape=(k, count)
        )
        ground = np.zeros(count)
        ground[-1] = 1.0
        held, v = self.capacitors, np.zeros(count)
        free = np.setdiff1d(np.arange(count), held)
        v[held] = self.graph.states.starts
        for _ in range(50):
            d = incidence @ v
            flow = incidence.T @ (self.conductances * d + BENT * d**3) + ground * v
            flow[0] -= self.graph.inputs.starts[0]
            J = (incidence.T @ sparse.diags_array(self.conductances + 3 * BENT * d**2) @ incidence
                 + sparse.diags_array(ground)).tocsc()  # fmt: skip
            v[free] -= splu(J[free][:, free]).solve(flow[free])
        inner = splu(J[free][:, free])
        from_held = inner.solve(J[free][:, held].toarray())
        source = np.zeros((count, 1))
        source[0] = 1.0
        A = -(J[held][:, held].toarray() - J[held][:, free] @ from_held)
        B = source[held] - J[held][:, free] @ inner.solve(source[free])
        return A / self.capacities[:, None], B / self.capacities[:, None]


def network(side: int, seed: int = 0) -> Network:
    """Return a grid of ``side`` x ``side`` nodes, fed by a current at one corner and grounded at the other."""
    rng = np.random.default_rng(seed)
    nodes = np.arange(side**2).reshape(side, side)
    pairs = ((nodes[1:], nodes[:-1]), (nodes[:, 1:], nodes[:, :-1]))
    edges = np.vstack([np.column_stack((a.ravel(), b.ravel())) for a, b in pairs])
    g, held = rng.uniform(0.5, 2.0, len(edges)), np.sort(rng.choice(side**2, CAPACITORS, replace=False))
    capacities = rng.uniform(0.5, 2.0, CAPACITORS)
    v, i, u = ca.SX.sym("v", side**2), ca.SX.sym("i", CAPACITORS), ca.SX.sym("u")
    x, dx = ca.SX.sym("x", CAPACITORS), ca.SX.sym("dx", CAPACITORS)
    leaving: list[ca.SX] = [ca.SX(0)] * side**2
    for (a, b), conductance in zip(edges.tolist(), g.tolist(), strict=True):
        d = v[a] - v[b]
        flow = conductance * d + BENT * d**3
        leaving[a], leaving[b] = leaving[a] + flow, leaving[b] - flow
    leaving[0] -= u
    leaving[-1] += v[side**2 - 1]
    for k, node in enumerate(held.tolist()):
        leaving[node] += i[k]
    charging = [capacities[k] * dx[k] - i[k] for k in range(CAPACITORS)]
    graph = DaeGraph(
        name="network",
        residuals=ca.vertcat(*leaving, *charging, *(v[n] - x[k] for k, n in enumerate(held.tolist()))),
        x=x, dx=dx, z=ca.vertcat(v, i), u=u,
        states=Signals(Signal(f"x[{k + 1}]", "V", start=0.1 * k) for k in range(CAPACITORS)),
        algebraic=Signals([f"v[{k + 1}]" for k in range(side**2)] + [f"i[{k + 1}]" for k in range(CAPACITORS)]),
        inputs=Signals([Signal("u", "A", start=1.0)]),
    )  # fmt: skip
    return Network(graph, edges, g, held, capacities)
