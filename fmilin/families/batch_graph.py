"""A model with a graph, evaluated and differentiated at many points at once.

Unknowns w (accelerations, multipliers) solve W w = r at each point (:mod:`fmilin.codegen.implicit`); their slopes are
W w_z = d(r - W w)/dz, and those of rates, outputs and invariants follow by the chain rule. The graph gives the parts
at all points in one call, compiled when there is a compiler and enough points; LAPACK solves the stacks of systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.codegen.evaluator import Evaluator
from fmilin.model.interface import Model
from fmilin.signals import FloatArray

__all__ = ["BatchGraph", "Stack", "batch_graph"]


_graphs: WeakKeyDictionary[Model, BatchGraph] = WeakKeyDictionary()  # a second sweep finds the functions compiled


@dataclass(frozen=True, slots=True)
class Stack:
    """Values and slopes at k points; columns of the slopes are all states, then all inputs.

    Attributes
    ----------
    f, c, h : array, shapes (k, N), (k, ny), (k, m)
        Rates, outputs, invariants.
    f_z, c_z, h_z : array, shapes (k, N, N + nu), (k, ny, N + nu), (k, m, N + nu)
    """

    f: FloatArray
    c: FloatArray
    h: FloatArray
    f_z: FloatArray
    c_z: FloatArray
    h_z: FloatArray


def batch_graph(model: Model, varied: Sequence[str]) -> BatchGraph | None:
    """Return the functions of a model; None where it has no graph, or its constraints are not in it.

    Parameters
    ----------
    model : Model
    varied : sequence of str
        Parameters that differ from point to point.
    """
    if not model.compilable or model.sparse or model.sparse_equations() is not None:
        return None
    constraints = model.constraints
    system = model.in_graph()
    if system is None or any(name not in system.further for name in constraints.observed):
        return None
    names = system.parameter_signals.names
    used = {name for row in constraints.rows for name in row.expression.names}
    if any(name not in names or name in used for name in varied):
        return None
    if used & set(model.inputs.names) or model.states.names != system.state_signals.names:
        return None
    found = _graphs.get(model)
    if found is None:
        found = _graphs[model] = BatchGraph(model, system)
    return found


class BatchGraph:
    """The functions of a model; see :func:`batch_graph`.

    Parameters
    ----------
    model : Model
    system : ImplicitSystem
    """

    def __init__(self, model: Model, system: object) -> None:
        import casadi as ca

        from fmilin.codegen.implicit import ImplicitSystem, jacobian

        assert isinstance(system, ImplicitSystem)  # noqa: S101 - batch_graph made sure
        s = system
        self.names = s.parameter_signals.names
        self.values = s.parameter_values
        observed = ca.vertcat(ca.SX(0, 1), *(s.further[name] for name in model.constraints.observed))
        g = model.constraints.graph(s.time, s.states, s.inputs, observed)
        hidden = g[list(model.constraints.hidden)]
        moving = ca.vertcat(s.time, s.states)
        h = ca.vertcat(g, ca.mtimes(ca.jacobian(hidden, moving), ca.vertcat(1, s.derivatives)))
        z, w = s.motion, s.unknowns
        self._nw = w.numel()
        arguments = [s.time, s.states, s.inputs, s.parameters]
        dense = [s.derivatives, s.outputs, h]
        slopes = [jacobian(e, z) for e in dense]
        if self._nw:
            self._equations = Evaluator(arguments, [s.matrix, s.right_hand_side])
            slopes = [*slopes, *(jacobian(e, w) for e in dense), s.motion_slopes]
        self._parts = Evaluator([*arguments, w], [*dense, *slopes])

    def parameters(self, count: int, given: Mapping[str, FloatArray]) -> FloatArray:
        """Return the parameters of every point, shape (count, np)."""
        p = np.tile(self.values, (count, 1))
        for name, values in given.items():
            p[:, self.names.index(name)] = values
        return p

    def __call__(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> Stack:
        """Return everything at points x (k, N), u (k, nu), p (k, np).

        Raises
        ------
        numpy.linalg.LinAlgError
            When the rates are not determined at one of them.
        """
        if not self._nw:
            f, c, h, f_z, c_z, h_z = self._parts.at_points(t, x, u, p, np.zeros((len(x), 0)))
            return Stack(f[..., 0], c[..., 0], h[..., 0], f_z, c_z, h_z)
        W, r = self._equations.at_points(t, x, u, p)
        w = np.linalg.solve(W, r)[..., 0]
        f, c, h, f_z, c_z, h_z, f_w, c_w, h_w, m = self._parts.at_points(t, x, u, p, np.asarray(w, dtype=np.float64))
        w_z = np.linalg.solve(W, m)
        return Stack(f[..., 0], c[..., 0], h[..., 0], f_z + f_w @ w_z, c_z + c_w @ w_z, h_z + h_w @ w_z)
