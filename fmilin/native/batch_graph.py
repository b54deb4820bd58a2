"""A model with a graph, evaluated and differentiated at many points at once.

Rates, outputs and invariants of its constraints, and their slopes by states and inputs, from one function of the graph
(:class:`fmilin.numerics.codegen.stacks.Stacks`), which is compiled when there is a compiler and enough points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model
from fmilin.numerics.codegen.implicit import ImplicitSystem
from fmilin.numerics.codegen.stacks import Stacks

__all__ = ["BatchGraph", "Stack", "batch_graph"]


_graphs: WeakKeyDictionary[Model, BatchGraph] = WeakKeyDictionary()  # a second sweep finds the functions compiled


@dataclass(frozen=True, slots=True)
class Stack:
    """Values and slopes at k points; columns of the slopes are all states, then all inputs."""

    f: FloatArray  # (k, N), rates
    c: FloatArray  # (k, ny), outputs
    h: FloatArray  # (k, m), invariants
    f_z: FloatArray  # shape (k, N, N + nu)
    c_z: FloatArray  # shape (k, ny, N + nu)
    h_z: FloatArray  # shape (k, m, N + nu)


def batch_graph(model: Model, varied: Sequence[str]) -> BatchGraph | None:
    """Return the functions of a model; None where it has no graph, or its constraints are not in it.

    ``varied``: parameters that differ from point to point.
    """
    if not model.compilable or model.sparse or model.sparse_equations() is not None:
        return None
    found = _graphs.get(model) or _made(model)
    if found is None:
        return None
    used = {name for row in model.constraints.rows for name in row.expression.names}
    if any(name not in found.names or name in used for name in varied):
        return None
    return found


def _made(model: Model) -> BatchGraph | None:
    system, constraints = model.in_graph(), model.constraints
    if system is None or any(name not in system.further for name in constraints.observed):
        return None
    if model.states.names != system.state_signals.names:
        return None
    if {name for row in constraints.rows for name in row.expression.names} & set(model.inputs.names):
        return None
    found = _graphs[model] = BatchGraph(model, system)
    return found


class BatchGraph:
    """The functions of a model; see :func:`batch_graph`."""

    def __init__(self, model: Model, system: ImplicitSystem) -> None:
        import casadi as ca

        s = system
        self.names = s.parameter_signals.names
        self.values = s.parameter_values
        observed = ca.vertcat(ca.SX(0, 1), *(s.further[name] for name in model.constraints.observed))
        g = model.constraints.graph(s.time, s.states, s.inputs, observed)
        hidden = g[list(model.constraints.hidden)]
        moving = ca.vertcat(s.time, s.states)
        h = ca.vertcat(g, ca.mtimes(ca.jacobian(hidden, moving), ca.vertcat(1, s.derivatives)))
        self._ends = np.cumsum([s.derivatives.numel(), s.outputs.numel()])
        self.stacks = Stacks(s, ca.densify(ca.vertcat(s.derivatives, s.outputs, h)))

    def parameters(self, count: int, given: Mapping[str, FloatArray]) -> FloatArray:
        """Return the parameters of every point, shape (count, np)."""
        p = np.tile(self.values, (count, 1))
        for name, values in given.items():
            p[:, self.names.index(name)] = values
        return p

    def __call__(
        self, t: FloatArray | float, x: FloatArray, u: FloatArray, p: FloatArray, *, threads: int = 1
    ) -> Stack:
        """Return everything at points x (k, N), u (k, nu), p (k, np); t is a number or of shape (k, 1)."""
        z, slopes = self.stacks(t, x, u, p, threads=threads)
        return Stack(*np.split(z, self._ends, axis=1), *np.split(slopes, self._ends, axis=1))
