"""A form as numbers with chosen inputs and outputs: rates, outputs, and their exact directional derivatives.

Along (dx, dr) the equations of Peterson et al. say M~ dx' = A~ dx + B~ dr: the products are their blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.native.kane.functions import Expansion, KaneFunctions, OutputFunctions

__all__ = ["KaneNumeric", "OutputSlopes"]

Point = tuple[float, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class OutputSlopes:
    """Outputs c(t, x, r, w) and their gradients at a point, w = (q', u', lambda)."""

    values: FloatArray
    """Shape (ny,)."""
    x: FloatArray
    """Shape (ny, N)."""
    r: FloatArray
    """Shape (ny, s), the chosen inputs."""
    w: FloatArray
    """Shape (ny, n + o + k)."""


class KaneNumeric:
    """What the models made of a symbolic system ask of their functions, from Kane's equations.

    ``functions``: shared by all choices of inputs and outputs. ``system``: with chosen inputs and outputs, inputs left
    out among its parameters.
    """

    def __init__(self, functions: KaneFunctions, system: SymbolicSystem) -> None:
        self.functions = functions
        self.system = system
        form, graph = functions.form, functions.graph
        arguments = [form.time, *form.states, *system.inputs, *system.parameters]
        place = {str(s): i for i, s in enumerate(arguments)}
        self._order = np.array([place[str(s)] for s in graph.symbols], dtype=np.intp)
        names = [str(r) for r in form.inputs]
        chosen = [names.index(str(r)) for r in system.inputs]
        n = len(form.states)
        self.input_columns = [1 + len(form.q) + n + i for i in chosen]
        """Where the chosen inputs stand among the columns of J."""
        self._inputs = [1 + n + i for i in chosen]
        """Where they stand among (t, q, u, r, p)."""
        self._outputs = OutputFunctions(functions, system.outputs)

    def known(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return (t, q, u, r, p) as the functions take it."""
        return np.concatenate(((t,), x, u, p))[self._order]

    def known_at(self, t: FloatArray, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return the same for k points: t (k,), x (k, N), u (k, nu) and p for all of them."""
        return np.hstack((t[:, None], x, u, np.broadcast_to(p, (len(t), len(p)))))[:, self._order]

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,)."""
        known = self.known(t, x, u, p)
        q_dot, w = self.functions.solve(known)
        return np.concatenate((q_dot, w[: len(self.functions.form.u)])), self._outputs.values(known, q_dot, w)

    def unknowns(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return (q', u', lambda)."""
        return np.concatenate(self.functions.solve(self.known(t, x, u, p)))

    def products(self, point: Point, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x', (N, k), and of the outputs, (ny, k), along the columns of (dx, du)."""
        known = self.known(*point)
        expansion = self.functions.at(known[None])
        dw = self.rates_along(expansion, dx, du)
        c = self.outputs(known, expansion)
        return dw[: len(dx)], c.x @ dx + c.r @ du + c.w @ dw

    def rates_along(self, expansion: Expansion, dx: FloatArray, du: FloatArray) -> FloatArray:
        """Return M~^-1 (A~ dx + B~ du): how (q', u', lambda) change, shape (n + o + k, columns)."""
        form = self.functions.form
        n, o = len(form.q), len(form.u)
        J = expansion.J[0, len(form.f_c) + len(form.velocity) :]
        A_dx = J[:, 1 : 1 + n] @ dx[:n] + J[:, 1 + 2 * n : 1 + 2 * n + o] @ dx[n:]
        along: FloatArray = expansion.solve(-(A_dx + J[:, self.input_columns] @ du)[None])[0]
        return along

    def outputs(self, known: FloatArray, expansion: Expansion) -> OutputSlopes:
        """Return the outputs and their gradients."""
        n = len(self.functions.form.q)
        q_dot, u_dot = expansion.rates[0, :n], expansion.rates[0, n:]
        w = np.concatenate((u_dot, expansion.multipliers[0]))
        values, c, c_w = self._outputs.gradients(known, q_dot, w)
        return OutputSlopes(values, c[:, 1 : 1 + n + len(u_dot)], c[:, self._inputs], c_w)
