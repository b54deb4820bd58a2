"""The one interface that every source of a model answers.

A source may be an FMU, a native description, or an engine behind an adapter: everything above this module sees a
:class:`Model` and does not know where it came from. It is longer than other files because it is one contract: most of
it is what the reference shows of a model, its point and its answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError, UsageError
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Changes = Mapping[str, FloatArray]  # values of changed parameters at many points, by name
UNCHANGED: Changes = MappingProxyType({})


@dataclass(slots=True, eq=False)  # not frozen: one is made at every evaluation, and that takes three times as long
class Evaluation:
    """The values of a source at one point, at k points, or (``HasDirectionalDerivatives.products``) along k directions.

    Arrays of k points, from :meth:`Model.evaluate_points`, have a leading axis: ``derivatives`` (k, N).
    """

    derivatives: FloatArray  #: shape (N,) or (N, k); time derivatives of all states
    outputs: FloatArray  #: shape (ny,) or (ny, k)
    residuals: FloatArray  #: shape (m,) or (m, k); of the declared constraints, in their order

    @staticmethod
    def joined(evaluations: Sequence[Evaluation]) -> Evaluation:
        """Return the evaluations at one point or more as one, each array with a leading axis."""
        parts = ("derivatives", "outputs", "residuals")
        return Evaluation(*(np.array([getattr(evaluation, part) for evaluation in evaluations]) for part in parts))

    @staticmethod
    def concatenate(evaluations: Sequence[Evaluation]) -> Evaluation:
        """Return evaluations at many points each as one."""
        if len(evaluations) == 1:
            return evaluations[0]
        parts = ("derivatives", "outputs", "residuals")
        return Evaluation(*(np.concatenate([getattr(each, part) for each in evaluations]) for part in parts))


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The identity of the model: travels with every linear model."""

    name: str  # the model's own name
    guid: str = ""  # GUID (FMI 1, 2), instantiation token (FMI 3); empty for native models
    tool: str = ""  # what generated it
    fmi_version: str = ""  # empty for native models


@dataclass(frozen=True, slots=True, repr=False)
class OperatingPoint(TableRepr):
    """A point of a model: all states, dependent ones included, and the inputs."""

    _attributes = ".states, .inputs, .parameters"
    _made_by = "fl.operating_point(model, {name: value}) makes one"

    time: float  #: in seconds
    states: FloatArray  #: shape (N,)
    inputs: FloatArray  #: shape (nu,)
    parameters: Mapping[str, float] = field(default_factory=dict)  #: only those changed from the model's own values
    #: how far the projection onto the manifold moved the states that were given, as the largest change relative to
    #: nominal values; 0 when nothing moved
    adjusted: float = 0.0
    remarks: tuple[Remark, ...] = ()  #: on how the point was computed; warnings of a linear model there
    #: of the states and of the inputs, where the point came from a model; empty where they are unknown
    names: tuple[tuple[str, ...], tuple[str, ...]] = field(default=((), ()), compare=False)
    #: shape (N, N); by how much the derivatives of the rates change over the distance within which the point is known;
    #: None
    #: where that is rounding. At a double root, which is known to the root of rounding, it decides about stability.
    slope_changes: FloatArray | None = field(default=None, repr=False, compare=False)
    #: states that move in the steady motion that a trim was asked for
    moving: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @implemented_in("fmilin.report.result_tables:show_plain_point")
    def _print_table(self, page: Sheet) -> None: ...

    def __getitem__(self, name: str) -> float:
        """Return a state or an input by its name: ``point["phi"]``, as at the point of a linear model."""
        for names, values in zip(self.names, (self.states, self.inputs), strict=True):
            if name in names and len(names) == len(values):
                return float(values[names.index(name)])
        raise UnknownNameError.among(name, [*self.names[0], *self.names[1]], "a state or an input of this point")

    def with_states(self, states: FloatArray, *, adjusted: float | None = None) -> OperatingPoint:
        """Return the same point with other ``states``, shape (N,), which were ``adjusted`` by so many nominal sizes."""
        states = np.array(states, dtype=np.float64)
        return replace(self, states=states, adjusted=self.adjusted if adjusted is None else adjusted)


@dataclass(frozen=True, slots=True)
class Copy:
    """Says that an output is nothing but a state or an input."""

    kind: Literal["state", "input"]
    index: int


@dataclass(frozen=True, slots=True)
class Tangent:
    """The linearization of a published procedure for a choice of coordinates: P independent states, and nu inputs."""

    T: FloatArray  # (N, P), dx = T dy + T_u du
    T_u: FloatArray  # (N, nu), zero unless inputs prescribe a motion
    derivatives: FloatArray  # (N, P + nu), derivatives of all rates along y, then along the inputs
    outputs: FloatArray  # shape (ny, P + nu)


@dataclass(frozen=True, slots=True)
class TangentBatch:
    """A model at k points, differentiated along P kept states and nu inputs."""

    independent: tuple[int, ...]  # the P states, in the order of the columns
    rates: FloatArray  # (k, N)
    values: FloatArray  # (k, ny), of the outputs
    residuals: FloatArray  # (k, m), of all invariants, hidden ones last
    gradient: FloatArray  # (k, m, N), of the residuals on the states
    T: FloatArray  # (k, N, P), dx = T dy; NaN where the kept states do not determine the others
    derivatives: FloatArray  # (k, N, P + nu), derivatives of the rates along y, then along the inputs
    outputs: FloatArray  # (k, ny, P + nu)
    smooth: bool = True  # whether the equations can have no kink

    def __getitem__(self, points: slice) -> TangentBatch:
        return replace(self, **{name: array[points] for name, array in self._arrays.items()})

    @property
    def _arrays(self) -> dict[str, Any]:
        names = ("rates", "values", "residuals", "gradient", "T", "derivatives", "outputs")
        return {name: getattr(self, name) for name in names}

    @property
    def _of_independent(self) -> FloatArray:
        in_order = self.independent == tuple(range(len(self.independent)))  # a view then
        return self.derivatives[..., slice(len(self.independent)) if in_order else list(self.independent), :]

    @property
    def A(self) -> FloatArray:
        """Derivatives of the kept states' rates along them, shape (k, P, P)."""
        return self._of_independent[..., : len(self.independent)]

    @property
    def B(self) -> FloatArray:
        """The same along the inputs, shape (k, P, nu)."""
        return self._of_independent[..., len(self.independent) :]

    @property
    def C(self) -> FloatArray:
        """Derivatives of the outputs along the kept states, shape (k, ny, P)."""
        return self.outputs[..., : len(self.independent)]

    @property
    def D(self) -> FloatArray:
        """The same along the inputs, shape (k, ny, nu)."""
        return self.outputs[..., len(self.independent) :]

    @property
    def f0(self) -> FloatArray:
        """Rates of the kept states, shape (k, P)."""
        return self.rates[..., list(self.independent)]

    @staticmethod
    def joined(batches: Sequence[TangentBatch]) -> TangentBatch:
        """Return the points of several batches, which keep the same states, one after the other."""
        if len(batches) == 1:
            return batches[0]
        parts = [batch._arrays for batch in batches]
        joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return replace(batches[0], **joined)

    def replace_points(self, points: NDArray[np.intp], right: TangentBatch) -> TangentBatch:
        """Return the same with some points of another batch."""
        arrays: dict[str, Any] = {name: array.copy() for name, array in self._arrays.items()}
        for name, array in arrays.items():
            array[points] = right._arrays[name]
        return replace(self, **arrays)

    def without_points(self, points: NDArray[np.intp]) -> TangentBatch:
        """Return the same with NaN at some points, where there is no linear model."""
        arrays: dict[str, Any] = {name: array.copy() for name, array in self._arrays.items()}
        for array in arrays.values():
            array[points] = np.nan
        return replace(self, **arrays)

    def with_columns(self, independent: Sequence[int]) -> TangentBatch:
        """Return the same with the kept states in another order."""
        if tuple(independent) == self.independent:
            return self
        order = [self.independent.index(i) for i in independent]
        columns = [*order, *range(len(order), self.derivatives.shape[-1])]
        derivatives, outputs = self.derivatives[..., columns], self.outputs[..., columns]
        return replace(
            self, independent=tuple(independent), T=self.T[..., order], derivatives=derivatives, outputs=outputs
        )


class ExactSlopes(ABC):
    """A model differentiated at one point by the procedure of its own kind, one choice of coordinates away from A."""

    values: Evaluation  # what :meth:`Model.evaluate` says at the point
    # (m, N), of all residuals, where the procedure has it at hand; None where the constraints are expressions
    constraint_gradient: FloatArray | None = None
    # whether the equations can have no kink. Derivatives that may be one-sided are compared at every point
    smooth: bool = True
    points: int = 1  # at which the equations were examined

    def rate_gradient(self) -> FloatArray | None:
        """Return the derivatives of all rates along all states, shape (N, N); None where they are not at hand."""
        return None

    @abstractmethod
    def along(self, independent: Sequence[int]) -> Tangent:
        """Return the derivatives with these states kept, in this order, by the published recursion."""

    def rounding(self, independent: Sequence[int]) -> FloatArray | None:
        """Return how much derivatives of rates and outputs, (N + ny, P + nu), differ some bits away, where known."""
        return None


class Model(TableRepr, ABC):
    """A dynamic model ``x' = f(t, x, u)``, ``out = c(t, x, u)``; its states may obey constraints.

    Threads may share one: the functions of fmilin that take a model take turns. Models of their own work side by side.
    """

    _attributes = ".states, .outputs, .parameters, .constraints"
    _made_by = "fl.load opens a file, and fl.connect({'plant': linear}, []) makes a model of a linear one"

    info: ModelInfo
    states: Signals  #: N of them in the model's order, like ``inputs`` (nu) and ``outputs`` (ny); any may be empty
    inputs: Signals
    outputs: Signals
    constraints: Constraints  #: what was declared, bound to the states; may be empty
    start: OperatingPoint  #: where the model starts, as it says itself: not yet projected onto the manifold
    #: outputs that are a state or an input, by position: their rows of C and D are copies
    copies: Mapping[int, Copy] = MappingProxyType({})
    #: coordinates that the model's author recommends to keep; where they are singular, a linearization raises an error
    independent: tuple[str, ...] = ()
    #: whether ``independent`` is a partition that the equations came with: where it is singular, another is taken
    independent_by_default: bool = False
    #: shape (N + ny, N + nu): which derivatives and outputs depend on which states and inputs; None: not declared
    structure: NDArray[np.bool_] | None = None
    parameters: Mapping[str, float] = MappingProxyType({})  #: values of those that :meth:`with_parameters` can change
    moves_parameters: bool = False  #: whether :meth:`with_interface` takes parameters as inputs
    start_points: tuple[str, ...] = ()  #: names of points at which its file offers to start, the one taken first
    batches: bool = False  #: whether sweeps and paths evaluate many points together, by :meth:`evaluate_points`
    #: seconds between two samples of a map, of which ``derivatives`` are increments x[k+1] - x[k]; 0 for a model with
    #: rates in time. A plant that is integrated between samples of a regulator is not a map, whatever its sample time
    map_period: float = 0.0
    autonomous: bool = False  #: whether its rates and outputs certainly do not depend on time
    freedoms_known: bool = False  #: whether its states certainly do not depend on each other: joints of an open tree
    views_are_stable: bool = False  #: whether a view with other outputs stays what it is: it is made once then

    def require_rates(self, purpose: str) -> None:
        """Check that the model has rates in time, which ``purpose`` takes, a verb phrase.

        Raises
        ------
        UsageError
            When the model is sampled.
        """
        if self.map_period:
            raise UsageError(
                f"'{self.info.name}' is sampled every {self.map_period:g} s and has no rates in time, so fmilin "
                f"cannot {purpose}. Use its linear model (fl.linearize) or the map itself (fl.simulate, model.orbit)."
            )

    @implemented_in("fmilin.report.notebook:show_model")
    def _print_table(self, page: Sheet) -> None: ...

    def __repr__(self) -> str:
        if not hasattr(self, "constraints"):  # still being built: a debugger asks
            return object.__repr__(self)
        return super().__repr__()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on this model, such as omissions: warnings of every linear model."""
        return ()

    @property
    def output_turns(self) -> tuple[float | None, ...]:
        """By how much each output jumps where it wraps, as an angle does; None where it is not known to wrap."""
        return tuple(signal.turn for signal in self.outputs)

    @property
    def wrapped_outputs(self) -> Signals:
        """The outputs, with their turns."""
        if type(self).output_turns is Model.output_turns:
            return self.outputs
        return self.outputs.with_turns(self.output_turns)

    @abstractmethod
    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point, in one evaluation.

        Raises ModelError when the source rejects. NaN is returned as it is: the caller names the variable.

        Parameters
        ----------
        t : float
            In seconds.
        x : array, shape (N,)
        u : array, shape (nu,)
        """

    def evaluate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives (k, N), outputs (k, ny) and residuals (k, m) at k points.

        The numbers are those of :meth:`evaluate`, which this method calls for one point after another. Models that
        evaluate many points together override it. Raises ModelError when the source rejects one of the points.

        >>> import numpy as np
        >>> from fmilin.systems import cartesian_pendulum
        >>> pendulum = cartesian_pendulum()
        >>> x = np.tile(pendulum.start.states, (3, 1))
        >>> pendulum.evaluate_points(np.zeros(3), x, np.zeros((3, len(pendulum.inputs)))).derivatives.shape
        (3, 4)

        Parameters
        ----------
        t : array, shape (k,)
            In seconds.
        x : array, shape (k, N)
        u : array, shape (k, nu)
        """
        if not len(t):
            sizes = len(self.states), len(self.outputs), len(self.constraints)
            return Evaluation(*(np.empty((0, size)) for size in sizes))
        return Evaluation.joined([self.evaluate(*point) for point in zip(t.tolist(), x, u, strict=True)])

    @abstractmethod
    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
        """Return the same model with chosen inputs and outputs, in the given order; None keeps what there is.

        Inputs that are left out stay at their values of ``start``. Any continuous variable may be an output, states,
        inputs and ``der(state)`` included. UnknownNameError with the nearest names.
        """

    @abstractmethod
    def with_constraints(self, constraints: Sequence[Constraint]) -> Model:
        """Return the same model with these constraints instead of its own; ConstraintError of unknown variables."""

    def with_parameters(self, values: Mapping[str, float]) -> Model:
        """Return the same model with other parameter values. States and inputs keep their start values.

        Raises
        ------
        UnknownNameError
            With the nearest names, when there is no such parameter.
        UsageError
            When this source cannot change its parameters.
        """
        if not values:
            return self
        raise UsageError(
            f"The parameters of '{self.info.name}' ({', '.join(values)}) cannot be changed after loading. Give their "
            "values when you load it: fl.load(source, parameters={'NAME': VALUE})."
        )

    @property
    def used_alone(self) -> tuple[object, ...]:
        """Resources that one thread at a time may use, shared with other views of the model; functions wait."""
        return (self,)

    def close(self) -> None:
        """Give back what the source holds (an FMU's instance and files). Further calls are errors."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
