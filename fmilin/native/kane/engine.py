"""Kane's equations as an engine: rates and outputs of a form, with signals and constraints, and all their slopes.

Along (dx, dr) Peterson et al. say M~ dx' = A~ dx + B~ dr, and their procedure says what a choice of states sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.model.equations import SymbolicSystem
from fmilin.model.interface import Evaluation, ExactSlopes, Tangent
from fmilin.native.declaration import Declaration, Given, assembled
from fmilin.native.kane.form import KaneForm, constraints_of, solved_form
from fmilin.native.kane.functions import Expansion, KaneFunctions, Numerics, check_constraints
from fmilin.native.kane.procedure import Partition, dependence, eliminate
from fmilin.native.symbolic import SymbolicEngine
from fmilin.numerics.codegen.evaluator import Evaluator

Point = tuple[float, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True)
class OutputSlopes:
    """Outputs c(t, x, r, w) and their gradients at a point, w = (q', u', lambda)."""

    values: FloatArray  # shape (ny,)
    x: FloatArray  # shape (ny, N)
    r: FloatArray  # shape (ny, s), the chosen inputs
    w: FloatArray  # shape (ny, n + o + k)


class KaneNumeric:
    """What models made of a symbolic system ask of its functions, which all choices of inputs and outputs share."""

    def __init__(self, functions: KaneFunctions, system: SymbolicSystem) -> None:
        self.functions = functions
        self.system = system
        form = functions.form
        arguments = [form.time, *form.states, *system.inputs, *system.parameters]
        index = {str(s): i for i, s in enumerate(arguments)}
        self._order = np.array([index[str(s)] for s in functions.symbols], dtype=np.intp)
        names = [str(r) for r in form.inputs]
        chosen = [names.index(str(r)) for r in system.inputs]
        n = len(form.states)
        self.input_columns = [1 + len(form.q) + n + i for i in chosen]
        """Where the chosen inputs stand among the columns of J."""
        self._inputs = [1 + n + i for i in chosen]
        """Where they stand among (t, q, u, r, p)."""

    def arguments(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return (t, q, u, r, p) as the functions take it."""
        return np.concatenate(((t,), x, u, p))[self._order]

    def stacked_arguments(self, t: FloatArray, x: FloatArray, u: FloatArray, p: FloatArray) -> FloatArray:
        """Return the same for k points: t (k,), x (k, N), u (k, nu) and p for all of them."""
        return np.hstack((t[:, None], x, u, np.broadcast_to(p, (len(t), len(p)))))[:, self._order]

    def values(self, t: float, x: FloatArray, u: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x', shape (N,), and the outputs, shape (ny,)."""
        arguments = self.arguments(t, x, u, p)
        q_dot, w = self.functions.solve(arguments)
        (c,) = self._values(arguments, q_dot, w)
        return np.concatenate((q_dot, w[: len(self.functions.form.u)])), c[:, 0]

    def products(self, point: Point, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of x', (N, k), and of the outputs, (ny, k), along the columns of (dx, du)."""
        arguments = self.arguments(*point)
        expansion = self.functions.at(arguments[None])
        dw = self.rates_along(expansion, dx, du)
        c = self.outputs(arguments, expansion)
        return dw[: len(dx)], c.x @ dx + c.r @ du + c.w @ dw

    def rates_along(self, expansion: Expansion, dx: FloatArray, du: FloatArray) -> FloatArray:
        """Return M~^-1 (A~ dx + B~ du): how (q', u', lambda) change, shape (n + o + k, columns)."""
        form = self.functions.form
        n, o = len(form.q), len(form.u)
        J = expansion.J[0, len(form.f_c) + len(form.velocity) :]
        A_dx = J[:, 1 : 1 + n] @ dx[:n] + J[:, 1 + 2 * n : 1 + 2 * n + o] @ dx[n:]
        along: FloatArray = expansion.solve(-(A_dx + J[:, self.input_columns] @ du)[None])[0]
        return along

    def outputs(self, arguments: FloatArray, expansion: Expansion) -> OutputSlopes:
        """Return the outputs and their gradients."""
        n = len(self.functions.form.q)
        q_dot, u_dot = expansion.rates[0, :n], expansion.rates[0, n:]
        w = np.concatenate((u_dot, expansion.multipliers[0]))
        values, c, c_w = self._values_and_gradients(arguments, q_dot, w)
        return OutputSlopes(values[:, 0], c[:, 1 : 1 + n + len(u_dot)], c[:, self._inputs], c_w)

    @cached_property
    def _values(self) -> Evaluator:
        return self.functions.outputs(self.system.outputs, gradients=False)

    @cached_property
    def _values_and_gradients(self) -> Evaluator:
        return self.functions.outputs(self.system.outputs, gradients=True)


class KaneEngine(SymbolicEngine):
    """Kane's equations; the functions are shared by all choices of inputs and outputs."""

    visit_seconds = 1e-4

    def __init__(self, system: SymbolicSystem, functions: KaneFunctions) -> None:
        super().__init__(system)
        self.functions, self.form = functions, functions.form
        self.freedoms_known = not system.constraints and len(self.form.q) == len(self.form.u)

    def numeric(self, system: SymbolicSystem) -> KaneNumeric:
        """Return the functions with the outputs of ``system``."""
        return KaneNumeric(self.functions, system)


def engine_of(declaration: Declaration, form: KaneForm, given: Given, numerics: Numerics | None) -> KaneEngine:
    """Return the engine of a form, checked against its own constraints."""
    declaration.raise_problems()
    equations = solved_form(form)
    declaration.derived |= equations.named()
    system = assembled(declaration, equations, constraints_of(form, equations), given)
    functions = KaneFunctions(form, numerics or Numerics())
    check_constraints(functions, system)
    return KaneEngine(system, functions)


_KINKED = (
    sympy.Abs, sympy.sign, sympy.Heaviside, sympy.floor, sympy.ceiling, sympy.Mod, sympy.Piecewise,
    sympy.Min, sympy.Max,
)  # fmt: skip


@lru_cache(maxsize=16)
def are_smooth(expressions: tuple[Any, ...]) -> bool:
    """Whether no function in sympy expressions has a kink: no absolute values, signs or case distinctions."""
    stack, seen = list(expressions), set()
    while stack:  # what expressions share is looked at once
        e = stack.pop()
        if isinstance(e, _KINKED):
            return False
        if e not in seen:
            seen.add(e)
            stack.extend(e.args)
    return True


class KaneSlopes(ExactSlopes):
    """The equations and their gradients at a point, ready for a choice of states of sizes ``scales`` (N,)."""

    def __init__(
        self,
        form: KaneForm,
        expansion: Expansion,
        input_columns: list[int],
        outputs: OutputSlopes,
        values: Evaluation,
        *,
        scales: FloatArray,
        smooth: bool,
    ) -> None:
        self._form, self._expansion, self._input_columns = form, expansion, input_columns
        self._seen, self._scales = outputs, scales
        self.values, self.smooth = values, smooth

    def rate_gradient(self) -> FloatArray:
        """Return d(q', u')/d(q, u), shape (N, N)."""
        form, count = self._form, len(self._form.f_c) + len(self._form.velocity)
        n, o = len(form.q), len(form.u)
        J = self._expansion.J[:, count:]
        A = -np.concatenate((J[:, :, 1 : 1 + n], J[:, :, 1 + 2 * n : 1 + 2 * n + o]), axis=2)
        return self._expansion.solve(A)[0, : n + o]

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return A', B', C and D with these states kept, in this order."""
        form, inputs = self._form, self._input_columns
        n, o = len(form.q), len(form.u)
        partition = Partition.keeping([i for i in independent if i < n], [i - n for i in independent if i >= n], n, o)
        if (len(partition.q_d), len(partition.u_d)) != (len(form.f_c), len(form.velocity)):
            raise NumericalError("The kept states are no partition of coordinates and speeds of their own.")
        C = dependence(form, self._expansion.J, inputs, partition, self._scales)
        if not np.isfinite(C.condition_number[0]):
            raise NumericalError("The kept states do not determine the others.", condition_number=np.inf)
        [matrices] = eliminate(form, self._expansion, inputs, partition, C)
        index = {state: i for i, state in enumerate(partition.states)}
        order = [index[i] for i in independent]
        T, T_u, A_prime, B_prime = matrices.T[:, order], matrices.T_u, matrices.A_prime[:, order], matrices.B_prime
        c, ny = self._seen, len(self.values.outputs)
        along_states = c.x[:ny] @ T + c.w[:ny] @ A_prime
        along_inputs = c.r[:ny] + c.x[:ny] @ T_u + c.w[:ny] @ B_prime
        return Tangent(
            T=T,
            T_u=T_u,
            derivatives=np.hstack((A_prime[: n + o], B_prime[: n + o])),
            outputs=np.hstack((along_states, along_inputs)),
        )
