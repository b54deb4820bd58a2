"""A form as numbers with chosen inputs and outputs: rates, outputs, and their exact directional derivatives.

Along (dx, dr) the equations of Peterson et al. say M~ dx' = A~ dx + B~ dr: the products are their blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fmilin.codegen.program import Atom, Program
from fmilin.codegen.staged import Staged, leaf_names, staged
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.models.kane.functions import Expansion, KaneFunctions
from fmilin.signals import FloatArray

__all__ = ["KaneNumeric", "OutputSlopes"]

Symbol = Any  # sympy.Symbol: sympy ships no types

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
    """What :class:`fmilin.codegen.numeric.NumericSystem` offers, from Kane's equations.

    Parameters
    ----------
    functions : KaneFunctions
        Shared by all choices of inputs and outputs.
    system : SymbolicSystem
        With chosen inputs and outputs, inputs left out among its parameters.
    """

    def __init__(self, functions: KaneFunctions, system: SymbolicSystem) -> None:
        self.functions = functions
        self.system = system
        form = functions.form
        arguments = [form.time, *form.states, *system.inputs, *system.parameters]
        place = {str(s): i for i, s in enumerate(arguments)}
        self._order = np.array([place[str(s)] for s in functions.leaves[: functions.first_unknown]], dtype=np.intp)
        names = [str(r) for r in form.inputs]
        first = 1 + 2 * len(form.q) + len(form.u)
        self.input_columns = [first + names.index(str(r)) for r in system.inputs]
        """Where the chosen inputs stand among the columns of J."""

    def known(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return (t, q, u, r, p) as the functions take it."""
        return np.concatenate(((t,), x, u, p))[self._order]

    def known_at(self, t: FloatArray, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return the same for k points: t (k,), x (k, N), u (k, nu) and p for all of them."""
        return np.hstack((t[:, None], x, u, np.broadcast_to(p, (len(t), len(p)))))[:, self._order]

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,).

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        known = self.known(t, x, u, p)
        w = self.functions.solve(known)
        return w[: len(x)], self._output_values(np.concatenate((known, w)))

    def unknowns(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return (q', u', lambda).

        Raises
        ------
        NumericalError
            When they are not determined.
        """
        return self.functions.solve(self.known(t, x, u, p))

    def products(self, point: Point, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x', (N, k), and of the outputs, (ny, k), along the columns of (dx, du).

        Raises
        ------
        NumericalError
            When the rates are not determined.
        """
        known = self.known(*point)
        expansion = self.functions.at(known[None])
        dw = self.rates_along(expansion, dx, du)
        c = self.outputs(known, expansion)
        return dw[: len(dx)], c.x @ dx + c.r @ du + c.w @ dw

    def rates_along(self, expansion: Expansion, dx: FloatArray, du: FloatArray) -> FloatArray:
        """Return M~^-1 (A~ dx + B~ du): how (q', u', lambda) change, shape (n + o + k, columns)."""
        form = self.functions.form
        n, o = len(form.q), len(form.u)
        J = expansion.J[0, self.functions.count :]
        A_dx = J[:, 1 : 1 + n] @ dx[:n] + J[:, 1 + 2 * n : 1 + 2 * n + o] @ dx[n:]
        along: FloatArray = expansion.solve(-(A_dx + J[:, self.input_columns] @ du)[None])[0]
        return along

    def outputs(self, known: FloatArray, expansion: Expansion) -> OutputSlopes:
        """Return the outputs and their gradients."""
        form, s = self.functions.form, self.system
        leaves = np.concatenate((known, expansion.rates[0], expansion.multipliers[0]))
        visit = self._output_functions.visit()
        visit.leaves[0] = leaves
        values = visit.run("values")[0].copy()
        J = np.zeros((len(s.outputs), len(leaves)))
        rows, columns = self._output_places
        if rows:
            J[rows, columns] = visit.run("gradients")[0]
        n = len(form.states)
        inputs = [1 + n + form.inputs.index(r) for r in s.inputs]
        return OutputSlopes(values, J[:, 1 : 1 + n], J[:, inputs], J[:, self.functions.first_unknown :])

    def _output_values(self, leaves: FloatArray) -> FloatArray:
        visit = self._output_functions.visit()
        visit.leaves[0] = leaves
        values: FloatArray = visit.run("values")[0].copy()
        return values

    @cached_property
    def _output_program(self) -> tuple[Program, list[Atom], list[dict[int, Atom]]]:
        program = Program(leaf_names(self.functions.leaves))
        values = [program.add(c) for c in self.system.outputs]
        return program, values, program.gradients(values, self.functions.leaves)

    @cached_property
    def _output_places(self) -> tuple[Sequence[int], Sequence[int]]:
        places = [(i, j) for i, row in enumerate(self._output_program[2]) for j in row]
        return [i for i, _ in places], [j for _, j in places]

    @cached_property
    def _output_functions(self) -> Staged:
        program, values, gradients = self._output_program
        stages = {"values": values, "gradients": [atom for row in gradients for atom in row.values()]}
        return staged(program, stages, self.functions.numerics.backend)
