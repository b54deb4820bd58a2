"""How a model is visited: by one thread at a time, counted, and not twice at the same point."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, wraps
from math import prod
from typing import Any, ClassVar, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

from fmilin.constraints.declared import Constraint
from fmilin.errors import UsageError
from fmilin.model.capabilities import (
    HasBaumgarteStabilization,
    HasConstraintGradient,
    HasConstraintResiduals,
    HasContacts,
    HasDerivativeErrors,
    HasDirectionalDerivatives,
    HasDiscreteStates,
    HasEvents,
    HasExactJacobian,
    HasFormulas,
    HasGivenStates,
    HasGraph,
    HasRemarksAtPoints,
    HasSecondOrderForm,
    read_constraint_gradient,
    read_constraint_residuals,
    read_exact_slopes,
    read_products,
)
from fmilin.model.interface import Evaluation, ExactSlopes, Model
from fmilin.signals import FloatArray
from fmilin.support.kinds import require_kinds

P = ParamSpec("P")
R = TypeVar("R")


class _Held:
    locks: ClassVar[WeakKeyDictionary[object, threading.RLock]] = WeakKeyDictionary()
    guard = threading.Lock()


def _alone() -> None:
    """In a forked child there is one thread: nobody else can release a lock."""
    _Held.locks, _Held.guard = WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


def lock_of(thing: object) -> threading.RLock:
    """Return the lock of what is used by one thread at a time."""
    with _Held.guard:
        return _Held.locks.setdefault(thing, threading.RLock())


@contextmanager
def held(model: Model) -> Iterator[None]:
    """Wait until no other thread works with a model or with what it is made of, and let others wait meanwhile."""
    with ExitStack() as stack:
        for thing in sorted(model.used_alone, key=id):  # always in one order: two threads never wait for each other
            stack.enter_context(lock_of(thing))
        yield


def no_model(caller: str, thing: object) -> UsageError:
    """Return what to say where something else is given for a model."""
    return UsageError(
        f"{caller}() takes a model, and was given something of the type '{type(thing).__name__}'. Files are opened by "
        "fl.load; fl.connect({'plant': linear}, []) makes a model of a linear one."
    )


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Let the threads that call a function of a model, its first argument, take turns."""
    first = function.__code__.co_varnames[0]

    @wraps(function)
    def waiting(*arguments: P.args, **options: P.kwargs) -> R:
        model = arguments[0] if arguments else options.get(first)
        if not isinstance(model, Model):
            raise no_model(getattr(function, "__name__", "this"), model)
        require_kinds(function, arguments, options)
        with held(model):
            return function(*arguments, **options)

    return waiting


_Key = tuple[float, bytes, bytes]
REMEMBERED = 2_000_000  # numbers that are remembered at most


PASSED_ON: Mapping[type, tuple[str, ...]] = {
    HasBaumgarteStabilization: ("stabilized",),
    HasContacts: ("contact_forces", "with_held"),
    HasDerivativeErrors: ("product_errors",),
    HasDiscreteStates: ("discrete_states",),
    HasEvents: ("event_indicators",),
    HasFormulas: ("formula",),
    HasGivenStates: ("kept",),
    HasGraph: ("has_graph", "in_graph"),
    HasRemarksAtPoints: ("remarks_at",),
    HasSecondOrderForm: ("second_order_form",),
}
"""Capabilities that a wrapper has where its source has them, with their methods."""


def _pass_on(name: str) -> Callable[..., Any]:
    """Return a method that calls the method ``name`` of the source."""

    def method(self: CountedModel, *arguments: Any, **options: Any) -> Any:
        return getattr(self.source, name)(*arguments, **options)

    method.__name__ = name
    return method


@cache
def _with_capabilities(wrapper: type[CountedModel], source: type[Model]) -> type[CountedModel]:
    """Return the class of a wrapper that has the capabilities of its source, and no others."""
    capabilities = [c for c in PASSED_ON if issubclass(source, c) and not issubclass(wrapper, c)]
    methods = {name: _pass_on(name) for capability in capabilities for name in PASSED_ON[capability]}
    return type(wrapper.__name__, (wrapper, *capabilities), methods) if capabilities else wrapper


class CountedModel(Model, HasDirectionalDerivatives, HasExactJacobian, HasConstraintResiduals, HasConstraintGradient):
    """Passes every request on and counts it: ``evaluations``, and ``directions`` of exact products.

    It has the capabilities of its source: those that are not counted are passed on as they are, those that are counted
    return None if the source does not have them.
    """

    def __new__(cls, source: Model) -> Self:
        """Choose the class by the capabilities of the source."""
        chosen: Any = _with_capabilities(cls, type(source))
        return object.__new__(chosen)  # type: ignore[no-any-return]

    def __init__(self, source: Model) -> None:
        self.source = source
        self.info, self.states, self.inputs, self.outputs = source.info, source.states, source.inputs, source.outputs
        self.constraints, self.start, self.copies = source.constraints, source.start, source.copies
        self.independent, self.structure = source.independent, source.structure
        self.independent_by_default = source.independent_by_default
        self.parameters, self.batches = source.parameters, source.batches
        self.evaluations = 0
        self.directions = 0

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Pass on and count the points."""
        self.evaluations += prod(x.shape[:-1])
        return self.source.evaluate(t, x, u)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Pass on and count the directions."""
        result = read_products(self.source, t, x, u, dx, du)
        self.directions += 0 if result is None else dx.shape[1]
        return result

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Pass on and count the points."""
        procedure = read_exact_slopes(self.source, t, x, u)
        self.evaluations += 0 if procedure is None else procedure.points
        return procedure

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Pass on and count the points."""
        residuals = read_constraint_residuals(self.source, t, x, u)
        self.evaluations += 0 if residuals is None else x.size // max(x.shape[-1], 1)
        return residuals

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Pass on and count."""
        gradient = read_constraint_gradient(self.source, t, x, u)
        self.evaluations += 0 if gradient is None else 1
        return gradient

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        """As the source."""
        return self.source.autonomous

    @property
    def output_turns(self) -> tuple[float | None, ...]:
        """Those of the source."""
        return self.source.output_turns

    @property
    def notes(self) -> tuple[str, ...]:
        """Those of the source, as they are now."""
        return self.source.notes

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_interface(inputs, outputs))

    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_constraints(constraints))

    def with_parameters(self, values: Mapping[str, float]) -> Model:
        """Pass on; the count starts anew."""
        return CountedModel(self.source.with_parameters(values))


class RememberingModel(CountedModel):
    """Visits each point once and remembers what the model said, during one task and one mode of a model with events."""

    def __init__(self, source: Model) -> None:
        super().__init__(source)
        self._most = max(64, REMEMBERED // (len(source.states) + len(source.outputs) + 1))
        self._seen: dict[_Key, Evaluation] = {}
        self._residuals: dict[_Key, FloatArray | None] = {}
        self._procedures: dict[_Key, ExactSlopes | None] = {}
        self._gradients: dict[_Key, tuple[FloatArray, FloatArray] | None] = {}

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return what is remembered of the point, or visit it; batches are not remembered."""
        if x.ndim > 1:
            return super().evaluate(t, x, u)
        key = (t, x.tobytes(), u.tobytes())
        evaluation = self._seen.get(key)
        if evaluation is None:
            evaluation = super().evaluate(t, x, u)
            if len(self._seen) < self._most:
                self._seen[key] = evaluation
        return evaluation

    def evaluate_again(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Visit a point even if it is remembered: a model with memory says something else."""
        return super().evaluate(t, x, u)

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the procedure at the point; what it says of the point itself is remembered, too."""
        key = (t, x.tobytes(), u.tobytes())
        if key not in self._procedures:
            procedure = self._procedures[key] = super().exact_slopes(t, x, u)
            if procedure is not None:
                self._seen[key] = procedure.values
        return self._procedures[key]

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals as remembered, or visit the point; batches are not remembered."""
        if x.ndim > 1:
            return super().constraint_residuals(t, x, u)
        key = (t, x.tobytes(), u.tobytes())
        if key in self._seen:
            return self._seen[key].residuals
        if key not in self._residuals:
            self._residuals[key] = super().constraint_residuals(t, x, u)
        return self._residuals[key]

    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return what is remembered of the point, or visit it; the residuals are remembered then, too."""
        key = (t, x.tobytes(), u.tobytes())
        if key not in self._gradients:
            procedure = self._procedures.get(key)
            if procedure is not None and procedure.constraint_gradient is not None:
                return procedure.values.residuals, procedure.constraint_gradient
            gradient = self._gradients[key] = super().constraint_gradient(t, x, u)
            if gradient is not None:
                self._residuals[key] = gradient[0]
        return self._gradients[key]
