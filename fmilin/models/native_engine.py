"""What a native form of the equations supplies: signals, constraints, quantities; and visits to it by compiled code."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from fmilin.constraints.declared import Constraint
from fmilin.errors import ModelError, UsageError
from fmilin.model.capabilities import SecondOrderForm
from fmilin.model.interface import ModelInfo
from fmilin.models.contacts import Contact, Foot
from fmilin.signals import FloatArray, Signal, Signals, rate_unit

if TYPE_CHECKING:
    from fmilin.codegen.c99 import PointCode, PointValues
    from fmilin.codegen.evaluator import Evaluator
    from fmilin.codegen.implicit import ImplicitSystem


@dataclass(frozen=True, slots=True)
class Quantity:
    """What may be an output."""

    signal: Signal
    # ``("state", i)``, ``("rate", i)`` or ``("input", i)``, inputs counted among all of the engine; else what it is in
    # the engine's own terms: an expression, a function, a number
    source: Any


class QuantityEvaluator(ABC):
    """Rates, outputs and observed quantities of an engine as functions of t, x and all its inputs u."""

    @abstractmethod
    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rates (N,), outputs (ny,) and what constraints observe (nz,); an engine may take batches (..., N)."""

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the exact derivatives of all three along the columns of dx (N, k) and du (nu, k); None without any."""
        return None

    def observed(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return what constraints observe, without the rates; None where it costs as much as a visit."""
        return None

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations of motion taken apart, with columns for all inputs; None when they are not known."""
        return None


class NativeEngine(ABC):
    """A native form of the equations: its signals and constraints, and rates and quantities on demand."""

    info: ModelInfo
    # states, inputs: all of them, N and nu, with start values
    states: Signals
    inputs: Signals
    outputs: Sequence[str] = ()  # which quantities are the outputs when nobody chooses
    constraints: Sequence[Constraint] = ()  # over states, inputs, ``parameters`` and quantities
    independent: tuple[str, ...] = ()  # states that the author recommends to keep; may be empty
    independent_by_default = False  # whether nobody recommended them, so that others are taken where they are singular
    parameters: Mapping[str, float] = MappingProxyType({})  # what constraints may use beside
    notes: Sequence[str] = ()  # what a user should know about this model
    # names of the points at which its file offers to start, the one that was taken first; empty without any
    start_points: tuple[str, ...] = ()
    names_limits: bool = False  # whether the notes say which inputs are at limits
    batches: bool = False  # whether :meth:`QuantityEvaluator.visit` takes many points at once
    compilable: bool = False  # whether there is a graph, :meth:`in_graph`
    may_wrap: bool = True  # whether quantities may jump by a turn, as atan2 does: the graph is searched for that
    freedoms_known: bool = False  # whether the states certainly do not depend on each other
    contacts: Sequence[Contact] = ()  # feet that are held on the ground
    visit_seconds: float = 0.0  # what a visit takes, about; 0 where compiled code of the graph is not to take its place

    @property
    @abstractmethod
    def available(self) -> Mapping[str, Quantity]:
        """Everything that may be an output, by name; see :func:`offered`."""

    def quantity(self, name: str) -> Quantity | None:
        """Return one of ``available``, or None when there is none of that name."""
        return self.available.get(name)

    @abstractmethod
    def evaluator(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> QuantityEvaluator:
        """Return what computes these quantities."""

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem | None:
        """Return the equations, with all inputs, as a graph; None if there is none: if not ``compilable``."""
        return None

    @cached_property
    def point_codes(self) -> dict[tuple[tuple[str, ...], ...], CompiledVisits]:
        """What :mod:`fmilin.models.native_engine` keeps for the models of this engine, by names of quantities."""
        return {}

    def held(self, feet: Sequence[Foot], t: float, x: FloatArray, u: FloatArray) -> NativeEngine:
        """Return the same engine with feet held where they are at a point, which becomes its start."""
        raise UsageError(f"'{self.info.name}' has no parts that could be held as a foot: '{feet[0].name}' cannot be.")

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
        """Return force and torque on each foot of ``contacts``, (3,) or (6,) by its name; NaN where undetermined."""
        return {}

    def seen_at(self, t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the engine to linearize at a point: as ``HasInputLimits.seen_at`` of its model, with all inputs."""
        return self

    def close(self) -> None:  # noqa: B027 - most engines hold nothing
        """Give back what the engine holds."""


class AdjustableEngine(NativeEngine):
    """An engine whose parameters can be changed."""

    @abstractmethod
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same engine with other values of some of its parameters."""


def offered(
    states: Signals, inputs: Signals, declared: Iterable[Quantity] = (), further: Iterable[Quantity] = ()
) -> dict[str, Quantity]:
    """Return all that may be an output: ``further``, ``der(state)``, inputs, states, ``declared``; later names win."""
    own = [Quantity(Signal(f"der({s.name})", rate_unit(s.unit)), ("rate", i)) for i, s in enumerate(states)]
    own += [Quantity(s, ("input", i)) for i, s in enumerate(inputs)]
    own += [Quantity(s, ("state", i)) for i, s in enumerate(states)]
    return {q.signal.name: q for q in (*further, *own, *declared)}


Side = Literal["inside", "lower", "upper", "beyond"]

AT = 1e-12  # how near a limit counts as there, relative to the range


def side_of(value: float, low: float, high: float) -> Side:
    """Return where a value stands between two limits, one of which may be infinite."""
    near = AT * max(*(abs(limit) for limit in (low, high) if abs(limit) < float("inf")), abs(value), 0.0)
    if low + near < value < high - near:
        return "inside"
    if not low - near <= value <= high + near:
        return "beyond"
    return "lower" if value <= low + near else "upper"


def limit_remarks(beyond: Sequence[str], at: Sequence[str], pushed: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for controls beyond their range, one for those at a limit, and one for forces at theirs."""
    sentences = []
    if beyond:
        sentences.append(f"These controls are outside their range and move nothing: {'; '.join(beyond)}.")
    if at:
        sentences.append(
            f"These controls stand at a limit, and their columns hold for changes inwards: {'; '.join(at)}."
        )
    if pushed:
        sentences.append(
            f"These actuators are saturated, so that what drives them moves nothing: {'; '.join(pushed)}. Give a "
            "point at which they are not."
        )
    return tuple(sentences)


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
    """Visits for some quantities of an engine, shared by its models; near singular points it answers itself."""

    def __init__(self, engine: NativeEngine, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        from fmilin.codegen.compiler import CompilationBudget

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

        from fmilin.codegen.c99 import PointCode
        from fmilin.codegen.compiler import find_compiler
        from fmilin.codegen.evaluator import Evaluator
        from fmilin.codegen.implicit import jacobian

        find_compiler()  # without one nothing needs to be written down
        system = self._engine.in_graph(self._outputs, self._observed)
        names = [quantity.signal.name for quantity in self._observed]
        if system is None or any(name not in system.further for name in names):
            raise ModelError(f"The equations of '{self._engine.info.name}' are not written down as a graph.")
        observed = ca.vertcat(ca.SX(0, 1), *(system.further[name] for name in names))
        if not ca.depends_on(observed, ca.vertcat(system.time, system.inputs, system.parameters, system.unknowns)):
            self._gradient = Evaluator([system.states], [observed, jacobian(observed, system.states)])
        return PointCode(replace(system, outputs=ca.vertcat(system.outputs, observed)))
