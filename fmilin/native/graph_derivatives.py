"""How rates, outputs and invariants of a model with a graph, and their slopes, change along a direction: exactly.

With q = (f, c, h) over (x, u, p, w), W w = r and e = r - W w, w held, the slopes along s = (x, u) are q_s + q_w w_s,
w_s = W^-1 e_s. Along d = (dx, du, dp) w moves by W^-1 (e_d), each of q_s, q_w, e_s and W by its own directional
derivative, and w_s by W^-1 (de_s - dW w_s).
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.batch_graph import equations_of, invariants_in
from fmilin.numerics.codegen.evaluator import Backend, Evaluator
from fmilin.numerics.codegen.functions import SystemFunctions, has_kinks
from fmilin.numerics.codegen.implicit import ImplicitSystem, jacobian

_made: WeakKeyDictionary[Model, dict[tuple[str, ...], GraphDerivatives | None]] = WeakKeyDictionary()


def graph_derivatives(model: Model, outputs: Sequence[str]) -> GraphDerivatives | None:
    """Return the functions of a model with these outputs; None where it has no graph with parameters."""
    made = _made.setdefault(model, {})
    if tuple(outputs) not in made:
        made[tuple(outputs)] = _of(model.with_interface(None, outputs))
    return made[tuple(outputs)]


def _of(model: Model) -> GraphDerivatives | None:
    system = equations_of(model)
    if system is None or not len(system.parameter_signals):
        return None
    functions = GraphDerivatives(model, system)
    return functions if functions.smooth else None  # of others differences show whether the two sides agree


class GraphDerivatives:
    """The functions of a model; see :func:`graph_derivatives`."""

    def __init__(self, model: Model, system: ImplicitSystem) -> None:
        import casadi as ca

        s, w = system, system.unknowns
        self.names, self.values = s.parameter_signals.names, s.parameter_values
        nodes = dict(zip(self.names, s.parameters.elements(), strict=True))
        q = ca.densify(ca.vertcat(s.derivatives, s.outputs, invariants_in(model, s, nodes)))
        self._ends = np.cumsum([s.derivatives.numel(), s.outputs.numel()])
        parts = [s.matrix, jacobian(q, s.motion), jacobian(q, w), s.motion_slopes]
        directions = [ca.SX.sym(name, a.numel()) for name, a in zip("xupw", (*s.arguments[1:], w), strict=True)]
        arguments, along = [*s.arguments, w], ca.vertcat(s.states, s.inputs, s.parameters, w)
        self._parts = Evaluator(arguments, parts, Backend("casadi"))
        self.solving = SystemFunctions(s)

        d, dense = ca.vertcat(*directions), [ca.densify(part) for part in parts]
        slopes = [ca.reshape(ca.jtimes(ca.vec(part), along, d), part.shape) for part in dense]
        self._moved = Evaluator([*arguments, *directions], slopes)
        held = s.right_hand_side if s.guess is not None else s.right_hand_side - ca.mtimes(s.matrix, w)
        self._by_parameters = Evaluator(arguments, [ca.densify(ca.jacobian(a, s.parameters)) for a in (held, q)])

    @property
    def smooth(self) -> bool:
        """Whether no operation of the equations can have a kink."""
        return not has_kinks(self._parts.function)

    def at(self, point: OperatingPoint) -> AtPoint:
        """Return what is needed for directions from a point of the model, with the parameters that it changes."""
        p = np.array([point.parameters.get(n, v) for n, v in zip(self.names, self.values, strict=True)])
        return AtPoint(self, (point.time, point.states, point.inputs, p))


class AtPoint:
    """A point, with what all directions from it have in common; ``slopes`` (f, c, h) by (x, u)."""

    def __init__(self, functions: GraphDerivatives, point: tuple[float, FloatArray, FloatArray, FloatArray]) -> None:
        self._functions, self._point = functions, point
        self._w = functions.solving.unknowns(*point)
        self._W, q_s, self._q_w, e_s = functions._parts(*point, self._w)
        self._w_s = self._solved(e_s)
        e_p, q_p = functions._by_parameters(*point, self._w)
        self._w_p = self._solved(e_p)
        self._fixed = q_p + self._q_w @ self._w_p
        self.slopes = tuple(np.split(q_s + self._q_w @ self._w_s, functions._ends))

    def fixed(self, dp: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how rates (N,), outputs (ny,) and invariants (m,) change with the parameters while the point stays."""
        return tuple(np.split(self._fixed @ dp, self._functions._ends))  # type: ignore[return-value]

    def along(self, dx: FloatArray, du: FloatArray, dp: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how the slopes by (x, u), shapes (N, N + nu), (ny, N + nu), (m, N + nu), change along a direction."""
        dw = self._w_p @ dp + self._w_s @ np.concatenate((dx, du))
        dW, dq_s, dq_w, de_s = self._functions._moved(*self._point, self._w, dx, du, dp, dw)
        dw_s = self._solved(de_s - dW @ self._w_s)
        slopes = dq_s + dq_w @ self._w_s + self._q_w @ dw_s
        return tuple(np.split(slopes, self._functions._ends))  # type: ignore[return-value]

    def _solved(self, right: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(self._W, right), dtype=np.float64) if len(self._w) else right
