"""DAEs as they are written, linearized: a descriptor system in all states and algebraic variables.

With F(t, x', x, z, u) = 0 it is E = (F_x', 0), A = -(F_x, F_z), B = -F_u. Outputs that contain derivatives of states
get these as algebraic variables, d = x'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import DescriptorForm
from fmilin.native.dae.equations import DaeGraph


def descriptor_form(
    graph: DaeGraph,
    outputs: Sequence[str],
    inputs: Sequence[str],
    point: tuple[float, FloatArray, FloatArray],  # t, x, u as the graph has them
    solution: tuple[FloatArray, FloatArray],  # x' and z there
    order: int,
) -> DescriptorForm | None:
    """Return the form; None where an output is no expression of the graph."""
    symbols = _named(graph)
    if any(name not in symbols for name in outputs):
        return None
    seen = ca.vertcat(ca.SX(0, 1), *(symbols[name] for name in outputs))
    blocks = [ca.jacobian(e, s) for e in (graph.residuals, seen) for s in (graph.dx, graph.x, graph.z, graph.u)]
    arguments = [graph.time, graph.x, graph.u, graph.dx, graph.z, graph.p]
    function: Any = ca.Function("written", arguments, blocks)
    F_dx, F_x, F_z, F_u, c_dx, c_x, c_z, c_u = (m.full() for m in function(*point, *solution, graph.values))
    needed = np.flatnonzero(np.abs(c_dx).any(axis=0))
    n, m, k = len(graph.states), len(graph.algebraic), len(needed)
    E, A = np.zeros((n + m + k, n + m + k)), np.zeros((n + m + k, n + m + k))
    E[: n + m, :n], A[: n + m, :n], A[: n + m, n : n + m] = F_dx, -F_x, -F_z
    E[n + m + np.arange(k), needed] = A[n + m + np.arange(k), n + m + np.arange(k)] = 1.0
    f0 = E[:, :n] @ solution[0]
    columns = [graph.inputs.names.index(name) if name in graph.inputs.names else -1 for name in inputs]
    B, D = (np.hstack((a, np.zeros((len(a), 1))))[:, columns] for a in (-F_u, c_u))
    return DescriptorForm(
        E=E,
        A=A,
        B=np.vstack((B, np.zeros((k, len(inputs))))),
        C=np.hstack((c_x, c_z, c_dx[:, needed])),
        D=D,
        f0=f0,
        states=(*graph.states.names, *graph.algebraic.names, *(f"der({graph.states.names[i]})" for i in needed)),
        order=order,
    )


def _named(graph: DaeGraph) -> dict[str, Any]:
    """Return what may be an output, in the graph's own symbols."""
    rates = [f"der({name})" for name in graph.states.names]
    columns = ((graph.x, graph.states.names), (graph.dx, rates), (graph.z, graph.algebraic.names),
               (graph.u, graph.inputs.names))  # fmt: skip
    named = {name: s for column, names in columns for name, s in zip(names, column.elements(), strict=True)}
    return named | dict(graph.outputs)
