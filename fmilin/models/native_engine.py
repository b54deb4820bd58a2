"""The engine of a native model: equations with their signals and quantities, or foreign code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint
from fmilin.errors import ModelError, NumericalError, UnknownNameError, UsageError
from fmilin.manifold.rank import row_sizes
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import Evaluation, ExactSlopes, ModelInfo, Tangent
from fmilin.models.compiled_evaluations import CompiledEvaluations
from fmilin.models.contacts import Contact, Foot
from fmilin.signals import FloatArray, Signal, Signals, rate_unit
from fmilin.tolerances import RANK

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity that may be an output."""

    signal: Signal
    # ``("state", i)``, ``("rate", i)`` or ``("input", i)``, inputs counted among all of the engine; else what it is in
    # the engine's own terms: an expression, a function, a number
    source: Any


# quantities as an engine prepares them to be evaluated
Selection = TypeVar("Selection")

Values = tuple[
    FloatArray, FloatArray, FloatArray
]  # rates (N,), outputs (ny,), quantities that constraints observe (nz,)


class NativeEngine(ABC, Generic[Selection]):
    """Equations in a native form: signals, constraints and quantities, and what evaluates some of the quantities.

    All methods take the time t, all states x, shape (N,), and all inputs u, shape (nu,).
    """

    info: ModelInfo
    # states, inputs: all of them, N and nu, with start values
    states: Signals
    inputs: Signals
    outputs: Sequence[str] = ()  # which quantities are the outputs by default
    constraints: Sequence[Constraint] = ()  # over states, inputs, ``parameters`` and quantities
    independent: tuple[str, ...] = ()  # states that the author recommends to keep; may be empty
    independent_by_default = False  # whether ``independent`` is computed, so that others may replace singular ones
    parameters: Mapping[str, float] = MappingProxyType({})  # what else constraints may use
    notes: Sequence[str] = ()  # what a user should know about this model
    # names of the points at which its file offers to start, the one that was taken first; empty without any
    start_points: tuple[str, ...] = ()
    names_limits: bool = False  # whether the notes say which inputs are at limits
    batches: bool = False  # whether sweeps and paths evaluate many points together, by :meth:`evaluate_points`
    compilable: bool = False  # whether there is a graph, :meth:`in_graph`
    may_wrap: bool = True  # whether quantities may jump by a turn, as atan2 does: the graph is searched for that
    autonomous: bool = False  # whether rates and quantities certainly do not depend on time
    freedoms_known: bool = False  # whether the states certainly do not depend on each other
    contacts: Sequence[Contact] = ()  # feet that are held on the ground
    # whether :meth:`differentiate` knows all derivatives along the manifold, and whether nothing in them has a kink
    has_all_derivatives: bool = False
    smooth: bool = False
    evaluation_seconds: float = 0.0  # of an evaluation, about; 0 where compiled code of the graph is not to replace it

    sample_time: float = 0.0  # seconds between samples of a map, of which rates are increments; 0 for rates in time
    repetitions: int = 1  # of the map, which are one sample of the model

    @property
    @abstractmethod
    def available(self) -> Mapping[str, Quantity]:
        """Everything that may be an output, by name; see :func:`offered`."""

    def quantity(self, name: str) -> Quantity | None:
        """Return the one of ``available`` that has this name, or None."""
        return self.available.get(name)

    @abstractmethod
    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> Selection:
        """Prepare the evaluation of outputs and of quantities that constraints observe."""

    @abstractmethod
    def evaluate(self, selection: Selection, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates (N,), outputs (ny,) and observed quantities (nz,)."""

    def evaluate_points(self, selection: Selection, t: FloatArray, x: FloatArray, u: FloatArray) -> Values:
        """Return all three with a leading axis at times t (k,) and points x (k, N), u (k, nu), k > 0."""
        values = [self.evaluate(selection, *point) for point in zip(t.tolist(), x, u, strict=True)]
        rates, outputs, observed = (np.array(part) for part in zip(*values, strict=True))
        return rates, outputs, observed

    def differentiate(
        self, selection: Selection, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values | None:
        """Return the exact derivatives of all three along the columns of dx (N, k) and du (nu, k); None without any."""
        return None

    def differentiate_points(
        self, selection: Selection, t: FloatArray, x: FloatArray, u: FloatArray
    ) -> tuple[Values, Values] | None:
        """Return all three at points, and their derivatives (k, rows, N + nu) along all states and inputs.

        None where that is not a quicker than one point after the other.
        """
        return None

    def observe(self, selection: Selection, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the observed quantities without the rates; None where that costs as much as :meth:`evaluate`."""
        return None

    def differentiate_observed(
        self, selection: Selection, t: float, x: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return observed quantities (nz,) and their gradient (nz, N) without the rates; None if as costly as all."""
        return None

    def second_order_form(self, selection: Selection, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations of motion in their parts, with columns for all inputs; None if they are not known."""
        return None

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem | None:
        """Return the equations, with all inputs, as a graph, or None: if not ``compilable``."""
        return None

    @cached_property
    def point_codes(self) -> dict[tuple[tuple[str, ...], ...], CompiledEvaluations]:
        """Compiled code for the models of this engine, by names of quantities."""
        return {}

    def compile_evaluations(
        self, outputs: Sequence[Quantity], observed: Sequence[Quantity]
    ) -> CompiledEvaluations | None:
        """Return what evaluates these quantities by compiled code where that pays; None where it never does."""
        if not (self.compilable and self.evaluation_seconds):
            return None
        names = tuple(tuple(quantity.signal.name for quantity in quantities) for quantities in (outputs, observed))
        if names not in self.point_codes:
            sizes = len(self.states), len(outputs)
            write_graph = partial(self.in_graph, outputs, observed)
            visits = CompiledEvaluations(self.info.name, self.evaluation_seconds, sizes, names[1], write_graph)
            self.point_codes[names] = visits
        return self.point_codes[names]

    def held(self, feet: Sequence[Foot], t: float, x: FloatArray, u: FloatArray) -> NativeEngine[Selection]:
        """Return the same engine with feet held where they are at a point, which becomes its start."""
        raise UsageError(
            f"'{self.info.name}' has no parts that can be held as a foot: '{feet[0].name}' cannot be held."
        )

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
        """Return force and torque on each foot of ``contacts``, (3,) or (6,) by its name; NaN where undetermined."""
        return {}

    def resolve_limits(self, t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the engine to linearize at a point, with all inputs: see ``HasInputLimits.resolve_limits``."""
        return self

    def close(self) -> None:
        """Give back what the engine holds."""


class AdjustableEngine(ABC):
    """The additional members of an engine with adjustable parameters: ``class MyEngine(Engine, AdjustableEngine)``."""

    # those of :class:`NativeEngine`
    info: ModelInfo
    states: Signals
    inputs: Signals
    parameters: Mapping[str, float]

    @abstractmethod
    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the same engine with other values of some of its parameters."""

    def require_parameters(self, values: Mapping[str, float]) -> None:
        """Raise UnknownNameError for a name that is not a parameter, UsageError for a value that is not finite."""
        # An unknown name may be a misspelled state.
        names = [*self.parameters, *self.states.names, *self.inputs.names]
        for name, value in values.items():
            if name not in self.parameters:
                raise UnknownNameError.among(name, names, f"a parameter, state or input of '{self.info.name}'")
            if not np.isfinite(value):
                raise UsageError(
                    f"The parameter '{name}' of '{self.info.name}' cannot be {value}: give a finite number instead of "
                    "it."
                )


@dataclass(frozen=True, slots=True)
class InterfaceChoice:
    """The inputs, outputs, constraints and parameters chosen after the equations were given; None means unchanged."""

    inputs: tuple[int, ...] | None = None  # which inputs of the engine, in which order
    outputs: tuple[str, ...] | None = None
    constraints: tuple[Constraint, ...] | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)  # those that were changed


class InputSelection:
    """Chosen inputs of an engine, which takes all: the others stay at their start values."""

    def __init__(self, inputs: Signals, chosen: Sequence[int] | None) -> None:
        self.indices = list(range(len(inputs)) if chosen is None else chosen)
        self.is_complete = self.indices == list(range(len(inputs)))
        self._starts = inputs.starts
        self._columns = np.array(self.indices, dtype=np.intp)

    def complete(self, u: FloatArray) -> FloatArray:
        """Return all inputs, shape (..., nu), from the chosen ones."""
        if self.is_complete:
            return u
        if u.ndim == 1:
            full = self._starts.copy()
            full[self._columns] = u
            return full
        full = np.empty((*u.shape[:-1], len(self._starts)))
        full[...] = self._starts
        full[..., self._columns] = u
        return full

    def complete_directions(self, du: FloatArray) -> FloatArray:
        """Return changes of all inputs, shape (nu, k), from those of the chosen ones."""
        if self.is_complete:
            return du
        full = np.zeros((len(self._starts), du.shape[1]))
        full[self._columns] = du
        return full


class PointDerivatives(ExactSlopes):
    """Derivatives at one point, with a column for each state, then for each input, for all independent states."""

    def __init__(self, values: Evaluation, slopes: Evaluation, *, smooth: bool = False) -> None:
        self.values, self._slopes, self.smooth = values, slopes, smooth
        self._gradient = slopes.residuals[:, : len(slopes.derivatives)]
        self.constraint_gradient = self._gradient

    def rate_gradient(self) -> FloatArray:
        """Return the derivatives of all rates along all states."""
        return self._slopes.derivatives[:, : len(self._slopes.derivatives)]

    def along(self, independent: Sequence[int]) -> Tangent:
        """Return the derivatives along these states; the gradient of the residuals gives the others.

        Inputs that constraints contain prescribe a motion: they move the dependent states, too.
        """
        f, y = self._slopes.derivatives, self._slopes.outputs
        n, k = f.shape[0], f.shape[1] - f.shape[0]
        independent_states = list(independent)
        dependent_states = [i for i in range(n) if i not in set(independent_states)]
        T, T_u = np.zeros((n, len(independent_states))), np.zeros((n, k))
        T[independent_states, range(len(independent_states))] = 1.0
        if dependent_states:
            # The terms of a row are unknown: what is so much smaller than the other rows is rounding.
            H = self._gradient
            largest = np.full(len(H), np.linalg.norm(H, axis=1).max(initial=0.0))
            rows = self._slopes.residuals / row_sizes(H, largest)[:, None]
            moved = -rows[:, [*independent_states, *range(n, n + k)]]
            dependent, _, rank, _ = np.linalg.lstsq(rows[:, dependent_states], moved, rcond=RANK)
            if rank < len(dependent_states):
                raise NumericalError("The independent states do not determine the others at this point.")
            T[dependent_states], T_u[dependent_states] = np.hsplit(dependent, [len(independent_states)])
        rates, outputs = (np.hstack((a[:, :n] @ T, a[:, n:])) for a in (f, y))
        if T_u.any():
            rates[:, len(independent_states) :] += f[:, :n] @ T_u
            outputs[:, len(independent_states) :] += y[:, :n] @ T_u
        return Tangent(T, T_u, rates, outputs)


@dataclass(frozen=True, slots=True)
class PickedRows:
    """Where outputs and observed quantities stand in the column of rates, quantities, states and inputs."""

    outputs: NDArray[np.intp]
    observed: NDArray[np.intp]


class Engine(NativeEngine[PickedRows]):
    """Foreign code that computes x' = f(t, x, u) and quantities z = c(t, x, u) in one evaluation.

    ``constraints`` are over states, inputs, fixed ``parameters`` and quantities, with a ``rate`` where the time
    derivative is a quantity too. ``notes`` become warnings of every linear model.
    """

    # nz further results: sensors, positions of points, gaps of loops. May be empty
    quantities: Signals = Signals()

    @abstractmethod
    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, shape (N,), and all quantities, shape (nz,); x (N,), u (nu,)."""

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return exact derivatives of rates (N, k) and quantities (nz, k) along dx (N, k), du (nu, k); None without."""

    def kinematics(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return quantities (nz,) and derivatives (nz, N), NaN where dynamics are needed; None if not cheaper."""

    def positions(self, x: FloatArray) -> FloatArray | None:
        """Return the quantities (nz,) that :meth:`kinematics` knows, without their derivatives; None without it."""

    @cached_property
    def available(self) -> dict[str, Quantity]:
        """Quantities, rates, inputs and states; states and inputs go before quantities of the same name."""
        further = (Quantity(signal, ("quantity", i)) for i, signal in enumerate(self.quantities))
        return list_available_quantities(self.states, self.inputs, further=further)

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> PickedRows:
        """Return the rows of these quantities."""
        n, nz = len(self.states), len(self.quantities)
        first = {"rate": 0, "quantity": n, "state": n + nz, "input": 2 * n + nz}

        def rows(quantities: Sequence[Quantity]) -> NDArray[np.intp]:
            return np.array([first[kind] + i for kind, i in (q.source for q in quantities)], dtype=np.intp)

        return PickedRows(rows(outputs), rows(observed))

    def evaluate(self, selection: PickedRows, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Evaluate the point and select."""
        return self.pick(selection, *self.visit(t, x, u), x, u)

    def differentiate(
        self, selection: PickedRows, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values | None:
        """Pick among the derivatives."""
        slopes = self.slopes(t, x, u, dx, du)
        return None if slopes is None else self.pick(selection, *slopes, dx, du)

    def observe(self, selection: PickedRows, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Pick among the positions."""
        z = self.positions(x)
        if z is None:
            return None
        observed = self.pick(selection, np.full(len(x), np.nan), z, x, u)[2]
        return observed if np.isfinite(observed).all() else None

    def differentiate_observed(
        self, selection: PickedRows, t: float, x: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Pick among the kinematics; None if anything but quantities is observed, or dynamics are needed."""
        rows = selection.observed - len(self.states)
        if x.ndim > 1 or not rows.size or rows.min() < 0 or rows.max() >= len(self.quantities):
            return None
        kinematics = self.kinematics(t, x, u)
        if kinematics is None:
            return None
        z, gradient = kinematics[0][rows], kinematics[1][rows]
        return (z, gradient) if np.isfinite(z).all() and np.isfinite(gradient).all() else None

    def pick(
        self, selection: PickedRows, rates: FloatArray, quantities: FloatArray, x: FloatArray, u: FloatArray
    ) -> Values:
        """Return rates, outputs and observed quantities from all values, or from derivatives along columns."""
        n, nz = len(self.states), len(self.quantities)
        if len(rates) != n or len(quantities) != nz:
            raise ModelError(
                f"The evaluation of the model's equations ('{self.info.name}') returned {len(rates)} rates and "
                f"{len(quantities)} quantities for {n} states and {nz} quantities."
            )
        values = np.concatenate((rates, quantities, x, u))
        return values[:n], values[selection.outputs], values[selection.observed]


def list_available_quantities(
    states: Signals, inputs: Signals, declared: Iterable[Quantity] = (), further: Iterable[Quantity] = ()
) -> dict[str, Quantity]:
    """Return all that may be an output: ``further``, ``der(state)``, inputs, states, ``declared``; later names win."""
    standard_quantities = [
        Quantity(Signal(f"der({s.name})", rate_unit(s.unit)), ("rate", i)) for i, s in enumerate(states)
    ]
    standard_quantities += [Quantity(s, ("input", i)) for i, s in enumerate(inputs)]
    standard_quantities += [Quantity(s, ("state", i)) for i, s in enumerate(states)]
    return {q.signal.name: q for q in (*further, *standard_quantities, *declared)}


Side = Literal["inside", "lower", "upper", "beyond"]

LIMIT_TOLERANCE = 1e-12  # how near a limit counts as there, relative to the range


def classify_side(value: float, low: float, high: float) -> Side:
    """Return where a value stands between two limits, one of which may be infinite."""
    near = LIMIT_TOLERANCE * max(*(abs(limit) for limit in (low, high) if abs(limit) < float("inf")), abs(value), 0.0)
    if low + near < value < high - near:
        return "inside"
    if not low - near <= value <= high + near:
        return "beyond"
    return "lower" if value <= low + near else "upper"


def limit_remarks(beyond: Sequence[str], at: Sequence[str], pushed: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for controls beyond their range, one for those at a limit, and one for forces at theirs."""
    sentences = []
    if beyond:
        sentences.append(f"These controls are outside their range and have no effect: {'; '.join(beyond)}.")
    if at:
        sentences.append(
            f"These controls are at a limit, and their columns are valid for inward changes: {'; '.join(at)}."
        )
    if pushed:
        sentences.append(
            f"These actuators are saturated, so their controls have no effect: {'; '.join(pushed)}. Choose a point "
            "without saturation."
        )
    return tuple(sentences)
