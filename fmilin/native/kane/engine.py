"""Kane's equations as an engine: the functions of a form, with signals and constraints."""

from __future__ import annotations

from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.native.assembly import Given, assembled
from fmilin.native.declaration import Declaration
from fmilin.native.kane.consistency import check_constraints
from fmilin.native.kane.form import KaneForm
from fmilin.native.kane.functions import KaneFunctions, Numerics
from fmilin.native.kane.numeric import KaneNumeric
from fmilin.native.kane.solved import constraints_of, solved_form
from fmilin.native.symbolic import SymbolicEngine

__all__ = ["KaneEngine", "engine_of"]


class KaneEngine(SymbolicEngine):
    """Kane's equations for the shell; the functions are shared by all choices."""

    def __init__(self, system: SymbolicSystem, functions: KaneFunctions) -> None:
        super().__init__(system)
        self.functions, self.form = functions, functions.form

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
