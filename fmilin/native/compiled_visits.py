"""Visits of a native model by compiled code, from when the work asked for outweighs writing down and compiling it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fmilin.ground.errors import ModelError
from fmilin.ground.signals import FloatArray
from fmilin.native.native_engine import NativeEngine, Quantity

if TYPE_CHECKING:
    from fmilin.numerics.codegen.c99 import PointCode, PointValues
    from fmilin.numerics.codegen.evaluator import Evaluator

Visit = tuple[FloatArray, FloatArray, FloatArray]


def compiled_visits(
    engine: NativeEngine, outputs: Sequence[Quantity], observed: Sequence[Quantity]
) -> CompiledVisits | None:
    """Return what visits for these quantities by compiled code where that pays; None where it never does."""
    if not (engine.compilable and engine.visit_seconds):
        return None
    key = tuple(tuple(quantity.signal.name for quantity in some) for some in (outputs, observed))
    if key not in engine.point_codes:
        engine.point_codes[key] = CompiledVisits(engine, outputs, observed)
    visits: CompiledVisits = engine.point_codes[key]
    return visits


class CompiledVisits:
    """Visits for some outputs and observed quantities of an engine, shared by all its models that want these.

    The engine's own evaluator answers at first, always where there is no compiler, and wherever the equations are close
    to singular.
    """

    def __init__(self, engine: NativeEngine, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        from fmilin.numerics.codegen.compiler import CompilationBudget

        self._engine, self._outputs, self._observed = engine, outputs, observed
        n, ny = len(engine.states), len(outputs)
        self._parts = slice(0, n), slice(n, n + ny), slice(n + ny, None)
        self._budget = CompilationBudget.of_equations(engine.visit_seconds, n)
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

    def at(self, t: float, x: FloatArray, u: FloatArray) -> Visit | None:
        """Return rates, outputs and observed quantities at a point, with all inputs; None where the engine answers."""
        if not self._is_settled:
            self._prepare(1)
        z = None if self._values is None else self._values(t, x, u)
        if z is None:
            return None
        rates, outputs, observed = self._parts
        return z[rates], z[outputs], z[observed]

    def gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return observed quantities (nz,) and their slopes (nz, N) where states alone determine them; else None."""
        if self._gradient is None:
            return None
        observed, slopes = self._gradient(x)
        return observed[:, 0], slopes

    def _prepare(self, points: int, ahead: int = 0) -> None:
        """Go on towards compiled code as far as it pays: first the equations are printed, then they are compiled."""
        if self._is_settled or not self._budget.is_spent_by(points, ahead=ahead):
            return
        try:
            if self._code is None:
                self._code = self._printed()
                self._budget.add(self._code.price)
                if not self._budget.is_spent_by(0, ahead=ahead):
                    return
            self._values = self._code.compiled()
        except (ModelError, OSError) as error:  # no compiler, or equations that are not for it
            logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)
            self._gradient = None
        self._is_settled, self._code = True, None

    def _printed(self) -> PointCode:
        import casadi as ca

        from fmilin.numerics.codegen.c99 import PointCode
        from fmilin.numerics.codegen.compiler import find_compiler
        from fmilin.numerics.codegen.evaluator import Evaluator
        from fmilin.numerics.codegen.implicit import jacobian

        find_compiler()  # without one nothing needs to be written down
        system = self._engine.in_graph(self._outputs, self._observed)
        names = [quantity.signal.name for quantity in self._observed]
        if system is None or any(name not in system.further for name in names):
            raise ModelError(f"The equations of '{self._engine.info.name}' are not written down as a graph.")
        observed = ca.vertcat(ca.SX(0, 1), *(system.further[name] for name in names))
        if not ca.depends_on(observed, ca.vertcat(system.time, system.inputs, system.parameters, system.unknowns)):
            self._gradient = Evaluator([system.states], [observed, jacobian(observed, system.states)])
        return PointCode(replace(system, outputs=ca.vertcat(system.outputs, observed)))
