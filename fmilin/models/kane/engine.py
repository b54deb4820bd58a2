"""Kane's equations as an engine: rates and outputs of a form, with signals and constraints, and all their slopes.

Along (dx, dr) Peterson et al. say M~ dx' = A~ dx + B~ dr, and their procedure says what a choice of states sees.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import sympy

from fmilin.codegen.functions import SystemFunctions
from fmilin.codegen.implicit import ImplicitSystem
from fmilin.errors import NumericalError
from fmilin.model.equations import SymbolicSystem
from fmilin.models.declaration import Declaration, Given, assembled
from fmilin.models.kane.form import KaneForm, constraints_of, solved_form
from fmilin.models.kane.functions import KaneFunctions, Numerics, check_constraints
from fmilin.models.symbolic import SystemEngine
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.signals import FloatArray


class KaneNumeric(SystemFunctions):
    """The functions of W w = r, with the kinematic equations first: where these are singular, that is said."""

    def __init__(self, system: ImplicitSystem, coordinate_rates: Sequence[str]) -> None:
        super().__init__(system)
        self.coordinate_rates = coordinate_rates

    def solver(self, W: Any, t: float) -> Factors:
        """Return the factors of W; singular kinematic or dynamic equations are refused."""
        try:
            return super().solver(W, t)
        except NumericalError:
            names = self.system.unknown_names
            n = sum(name in names for name in self.coordinate_rates)
            require_regular(DenseFactors(W[:n, :n]), "The kinematic equations", names[:n])
            require_regular(DenseFactors(W[n:, n:]), "The dynamic equations", names[n:])
            raise


class KaneEngine(SystemEngine):
    """Kane's equations: their form as functions, shared by all choices of inputs and outputs, beside W w = r."""

    visit_seconds = 1e-4
    whole_slopes = True

    def __init__(self, system: SymbolicSystem, functions: KaneFunctions) -> None:
        super().__init__(system)
        self.form_functions, self.form = functions, functions.form
        form, n = functions.form, len(functions.form.q)
        self.freedoms_known = not system.constraints and n == len(form.u)
        given = [str(s) for s in (form.time, *form.states, *system.inputs, *system.parameters)]
        self._order = np.array([given.index(str(s)) for s in functions.symbols], dtype=np.intp)
        # where the inputs stand among the columns of J
        self.input_columns = [1 + n + len(form.states) + form.inputs.index(r) for r in system.inputs]

    def arguments(self, t: FloatArray | float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return points t (...), x (..., N), u (..., nu) as the functions of the form take them: (t, q, u, r, p)."""
        p = np.broadcast_to(self.p, (*x.shape[:-1], len(self.p)))
        return np.concatenate((np.asarray(t)[..., None], x, u, p), axis=-1)[..., self._order]

    @cached_property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether no function in the equations and outputs has a kink."""
        return are_smooth((*self.form.expressions, *self.system.outputs))

    def functions(self, system: ImplicitSystem) -> KaneNumeric:
        """Return functions that say which equations are singular."""
        return KaneNumeric(system, [str(w) for w in self.form.q_dot])


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
