"""Compiled code of the equations at single points, made as soon as it pays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fmilin.errors import ModelError
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.codegen.c_source_export import PointCode, PointValues
    from fmilin.codegen.graph_evaluator import Evaluator
    from fmilin.codegen.implicit import ImplicitSystem


class CompiledEvaluations:
    """Evaluations of a system by compiled code, once that pays; near singular points it gives none.

    Parameters
    ----------
    name : str
        Of the model.
    seconds : float
        What an evaluation takes without compiled code, about.
    sizes : tuple of int
        The numbers of states and of outputs.
    observed : sequence of str
        Names of the quantities that constraints observe.
    write_graph : callable
        Returns the equations as a graph in which these quantities have their names, or None.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        sizes: tuple[int, int],
        observed: Sequence[str],
        write_graph: Callable[[], ImplicitSystem | None],
    ) -> None:
        from fmilin.codegen.compiler import CompilationBudget

        self._name, self._observed, self._write_graph = name, observed, write_graph
        n, ny = sizes
        self._parts = slice(0, n), slice(n, n + ny), slice(n + ny, None)
        self._budget = CompilationBudget.of_equations(seconds, n)
        self._code: PointCode | None = None  # printed, not yet compiled
        self._values: PointValues | None = None
        self._gradient: Evaluator | None = None
        self._is_settled = False  # nothing quicker is to come

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code answers."""
        return self._values is not None

    def expect(self, evaluations: int) -> None:
        """Take note of evaluations that are certain to come."""
        self._prepare(0, evaluations)

    def at(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return rates, outputs and observed quantities at a point, with all inputs; None where there is no code."""
        if not self._is_settled:
            self._prepare(1)
        z = None if self._values is None else self._values(t, x, u)
        if z is None:
            return None
        rates, outputs, observed = self._parts
        return z[rates], z[outputs], z[observed]

    def gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return observed quantities (nz,) and derivatives (nz, N) where states alone determine them; else None."""
        if self._gradient is None:
            return None
        observed, slopes = self._gradient(x)
        return observed[:, 0], slopes

    def _prepare(self, points: int, ahead: int = 0) -> None:
        """Go on towards compiled code as far as it pays: first the equations are printed, then they are compiled."""
        if self._is_settled or not self._budget.count_toward_compilation(points, ahead=ahead):
            return
        try:
            if self._code is None:
                self._code = self._generate_code()
                self._budget.add(self._code.price)
                if not self._budget.count_toward_compilation(0, ahead=ahead):
                    return
            self._values = self._code.compile()
        except (ModelError, OSError) as error:  # no compiler, or equations that are not for it
            logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)
            self._gradient = None
        self._is_settled, self._code = True, None

    def _generate_code(self) -> PointCode:
        import casadi as ca

        from fmilin.codegen.c_source_export import PointCode
        from fmilin.codegen.compiler import find_compiler
        from fmilin.codegen.graph_evaluator import Evaluator
        from fmilin.codegen.implicit import jacobian

        find_compiler()  # without one nothing needs to be written down
        system, names = self._write_graph(), self._observed
        if system is None or any(name not in system.further for name in names):
            raise ModelError(f"The equations of '{self._name}' are not written down as a graph.")
        observed = ca.vertcat(ca.SX(0, 1), *(system.further[name] for name in names))
        if not ca.depends_on(observed, ca.vertcat(system.time, system.inputs, system.parameters, system.unknowns)):
            self._gradient = Evaluator([system.states], [observed, jacobian(observed, system.states)])
        return PointCode(replace(system, outputs=ca.vertcat(system.outputs, observed)))
