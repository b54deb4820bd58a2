"""Optional capabilities of models: one Protocol for each capability, checked with ``isinstance``.

>>> from fmilin.model.capabilities import HasContacts
>>> from fmilin.systems import four_bar
>>> isinstance(four_bar(), HasContacts)
True

A class has a capability when it defines its methods. The classes of this package inherit from the Protocol as well,
so that a type checker compares the signatures.

The file is longer than others because it is one list of declarations with their docstrings.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fmilin.model.interface import UNCHANGED, Changes

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.constraints.expressions import Expression
    from fmilin.diagnostics import Remark
    from fmilin.model.equation_forms import DescriptorForm, SecondOrderForm, SparseEquations
    from fmilin.model.interface import Evaluation, ExactSlopes, Model, OperatingPoint, TangentBatch
    from fmilin.model.sparse_model_derivatives import SparseJacobian
    from fmilin.signals import FloatArray, Signal


class _CapabilityType(type(Protocol)):  # type: ignore[misc]
    """Makes ``isinstance`` examine the class of a model alone.

    A Protocol examines the attributes of the object at every call, which takes up to 25 us in Python 3.11. The answer
    for a class is remembered and takes 0.3 us; linearizing a point asks dozens of times.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return ABCMeta.__subclasscheck__(cls, type(instance))


class CutDelays(NamedTuple):
    """A model with delays in which each delayed signal has become an input, and what is delayed an output."""

    model: Model  # its last inputs are the delayed signals w, its last outputs z, which they were a delay ago
    point: OperatingPoint
    channels: Sequence[str]  # the names of the delayed signals
    seconds: Sequence[float]
    of_inputs: Mapping[str, float]  # delays of inputs of the model, in seconds, by name
    # the inputs of the model that the last channels delay for one of several members, by channel: their z, which are
    # these inputs, are not among the outputs
    shared_inputs: Mapping[str, str] = MappingProxyType({})
    # returns the seconds of the channels for other parameters of the model, where they depend on these
    compute_seconds: Callable[[Mapping[str, float]], Sequence[float]] | None = None


@runtime_checkable
class HasDelays(Protocol, metaclass=_CapabilityType):
    """A model with delays: it cannot be evaluated as it is, and has the equilibria of the model without them."""

    @abstractmethod
    def without_delays(self) -> Model:
        """Return the model in which everything arrives at once."""

    @abstractmethod
    def cut_delays(self, point: OperatingPoint) -> CutDelays:
        """Return the model between the delays at a point."""


@runtime_checkable
class HasMembers(Protocol, metaclass=_CapabilityType):
    """A model of members that are wired together: what reaches the inputs of members may be delayed."""

    @abstractmethod
    def is_member_input(self, name: str) -> bool:
        """Return whether a name denotes inputs of a member, as ``plant.u``."""

    @abstractmethod
    def with_wire_delays(self, delays: Mapping[str, float]) -> Model:
        """Return the model with delays in seconds of what reaches inputs of members, by their names."""


@runtime_checkable
class HasSamples(Protocol, metaclass=_CapabilityType):
    """A model of continuous and sampled parts: it cannot be evaluated as a whole, and has fixed points."""

    @abstractmethod
    def without_samples(self) -> Model:
        """Return a model with equilibria at the fixed points: increments of a sample are rates in it."""

    @abstractmethod
    def hold_samples(self, point: OperatingPoint) -> tuple[Model, OperatingPoint]:
        """Return a model with time events, which samples and holds from a point on, and where it starts."""


def remove_delays(model: Model) -> Model:
    """Return a model with the same equilibria and constraints that has neither delays nor samples."""
    undelayed = model.without_delays() if isinstance(model, HasDelays) else model
    return undelayed.without_samples() if isinstance(undelayed, HasSamples) else undelayed


def delay_wires(model: Model, delays: Mapping[str, float]) -> tuple[Model, dict[str, float]]:
    """Return a model with those of the delays that are of inputs of its members, and the other delays."""
    if not isinstance(model, HasMembers):
        return model, dict(delays)
    on_wires = {name: seconds for name, seconds in delays.items() if model.is_member_input(name)}
    signal_delays = {name: seconds for name, seconds in delays.items() if name not in on_wires}
    return (model.with_wire_delays(on_wires) if on_wires else model), signal_delays


@runtime_checkable
class HasDirectionalDerivatives(Protocol, metaclass=_CapabilityType):
    """A model with exact directional derivatives (Jacobian-vector products)."""

    @abstractmethod
    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
        """Return exact directional derivatives along the columns of (dx, du).

        Parameters
        ----------
        t : float
            In seconds, as in :meth:`fmilin.Model.evaluate`.
        x, u : array, shapes (N,), (nu,)
        dx : array, shape (N, k)
        du : array, shape (nu, k)

        Returns
        -------
        Evaluation or None
            Each member with k columns; NaN rows or columns stand where the source has no exact answer. None if an FMU
            or an engine of this kind offers none at all.
        """


@runtime_checkable
class HasSparseDerivatives(Protocol, metaclass=_CapabilityType):
    """A model that may know which rates depend on which states, and has exact derivatives."""

    @abstractmethod
    def sparse_derivatives(self, t: float, x: FloatArray, u: FloatArray) -> SparseJacobian | None:
        """Return the derivatives of rates and outputs along all states and inputs at a point.

        Returns None where the structure is not declared or not sparse, or an entry has no exact derivative.
        """


@runtime_checkable
class HasExactJacobian(Protocol, metaclass=_CapabilityType):
    """A model with a published procedure of its own kind for the derivatives on its manifold."""

    @abstractmethod
    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the procedure at a point, with the model's own constraints.

        Returns None if other constraints were declared, or the equations are not differentiated so. NumericalError if
        the rates are undetermined.
        """


@runtime_checkable
class HasBatchDerivatives(Protocol, metaclass=_CapabilityType):
    """A model with exact derivatives at many points at once."""

    @abstractmethod
    def tangents(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes = UNCHANGED
    ) -> TangentBatch | None:
        """Return rates, outputs and residuals at k points, with exact derivatives along the independent states.

        P states are ``independent``, as many as there are degrees of freedom. Returns None if the equations of this
        model are not differentiated so. NumericalError if the rates are undetermined at a point.

        Parameters
        ----------
        t : array, shape (k,)
        x, u : array, shapes (k, N), (k, nu)
        independent : sequence of int
        parameters : mapping of str to array, shape (k,)
            Those that differ from point to point.
        """


@runtime_checkable
class HasConstraintResiduals(Protocol, metaclass=_CapabilityType):
    """A model with residuals of constraints that cost less than an evaluation."""

    @abstractmethod
    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return the residuals alone, shape (m,), with ``batches`` of many points; None if they need the rates."""


@runtime_checkable
class HasConstraintGradient(Protocol, metaclass=_CapabilityType):
    """A model with a gradient of its constraints that costs less than an evaluation."""

    @abstractmethod
    def constraint_gradient(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return residuals (m,) and their exact gradient (m, N), with ``batches`` also of many points.

        Returns None if that costs as much as an evaluation.
        """


@runtime_checkable
class HasContacts(Protocol, metaclass=_CapabilityType):
    """A model with bodies that can be held on the ground as feet."""

    @abstractmethod
    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> Mapping[str, FloatArray]:
        """Return the force on each held foot in world axes, (3,), with torque (6,); NaN where undetermined."""

    @abstractmethod
    def with_held(self, feet: Sequence[str], point: OperatingPoint | None = None) -> Model:
        """Return the same model with feet held on the ground, where they are at a point, which becomes its start.

        A point contact takes three degrees of freedom, a flat foot six; the contact forces are outputs, ``FOOT.fx``,
        ...

        Parameters
        ----------
        feet : sequence of str
            ``FOOT``, ``FOOT:point`` (the same) or ``FOOT:flat``; of a geom or body in MJCF ``FOOT:center`` and
            ``FOOT:lowest``, which hold that point of its geometry instead of the one of contact.
        point : OperatingPoint, optional
            ``start`` when left out.

        Raises
        ------
        UnknownNameError
            With the nearest names.
        UsageError
            When the model has no parts that could be held.
        ConstraintError
            When a foot moves at the point.
        """


@runtime_checkable
class HasEvents(Protocol, metaclass=_CapabilityType):
    """A model with state events."""

    @abstractmethod
    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return values with sign changes at state events, shape (ne,); may be empty."""


@runtime_checkable
class HasDiscreteStates(Protocol, metaclass=_CapabilityType):
    """A model with states that change at events only."""

    @abstractmethod
    def discrete_states(self) -> Mapping[str, str]:
        """Return the discrete states by name, as text."""


@runtime_checkable
class HasFormulas(Protocol, metaclass=_CapabilityType):
    """A model with quantities that are known as expressions."""

    @abstractmethod
    def formula(self, name: str) -> Expression | None:
        """Return the quantity ``name`` as an expression over states, inputs, parameters and time.

        Returns None if it is unknown, or needs accelerations or multipliers.
        """


@runtime_checkable
class HasBaumgarteStabilization(Protocol, metaclass=_CapabilityType):
    """A model with equations into which Baumgarte's stabilization can be written."""

    @abstractmethod
    def with_stabilization(self, alpha: float, beta: float) -> Model | None:
        """Return the model with 0 = g'' + 2 alpha g' + beta^2 g, both in 1/s.

        Returns None if a part of the model has constraints and no equations for that.
        """


@runtime_checkable
class HasDerivativeErrors(Protocol, metaclass=_CapabilityType):
    """A model with directional derivatives that may be wrong by more than rounding, as identified models have."""

    @abstractmethod
    def product_errors(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Evaluation | None:
        """Return the errors of ``products`` along the same directions; None if they are rounding."""


@runtime_checkable
class HasRemarksAtPoints(Protocol, metaclass=_CapabilityType):
    """A model that holds at a point only if something else is true there."""

    @abstractmethod
    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return what a user should know about the model at a point, such as inputs outside of their tables."""

    def may_have_point_remarks(self) -> bool:
        """Return whether there are points with diagnostics: False saves a question at each of many points."""
        return True


@runtime_checkable
class HasSecondOrderForm(Protocol, metaclass=_CapabilityType):
    """A model with equations of motion that may be taken apart: mass matrix, constraints, forces."""

    @abstractmethod
    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return the equations of motion in their parts, also where they are singular.

        Returns None if the equations are not Lagrange's.
        """


@runtime_checkable
class HasSparseForm(Protocol, metaclass=_CapabilityType):
    """A model with equations of motion in sparse matrices, which may be too large for dense ones."""

    @abstractmethod
    def sparse_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm:
        """Return the equations of motion in sparse parts, without outputs; NumericalError where they are singular."""


@runtime_checkable
class HasSparseEquations(Protocol, metaclass=_CapabilityType):
    """A model with Lagrange's equations that are linearized in sparse matrices where there are many of them."""

    @abstractmethod
    def sparse_equations(self) -> SparseEquations | None:
        """Return Lagrange's equations in sparse matrices; None if the model is small or has other constraints."""


@runtime_checkable
class HasDescriptorForm(Protocol, metaclass=_CapabilityType):
    """A model with equations that can be linearized as they are written."""

    @abstractmethod
    def has_descriptor_form(self) -> bool:
        """Return whether no equation is redundant and all outputs stand in them; see :func:`can_be_described`."""

    @abstractmethod
    def descriptor_form(self, t: float, x: FloatArray, u: FloatArray) -> DescriptorForm | None:
        """Return the equations as they are written, linearized at a point of the manifold.

        Returns None if an output does not stand in them. UsageError if equations are redundant.
        """


@runtime_checkable
class HasCompiledDerivatives(Protocol, metaclass=_CapabilityType):
    """A model with exact derivatives at many points at once that compiled code can compute."""

    @abstractmethod
    def has_compiled_derivatives(self) -> bool:
        """Return whether compiled code computes them by now: one point then costs about what many do."""

    @abstractmethod
    def differentiate_points(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
        """Return the derivatives of rates, outputs and residuals at k points along all states, then all inputs.

        Each has the shape (k, rows, N + nu); points need not be on the manifold. Returns None without compiled code.

        Parameters
        ----------
        t : array, shape (k,)
        x, u : array, shapes (k, N), (k, nu)
        """

    @abstractmethod
    def reach_manifold(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], sizes: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]] | None:
        """Return points of the manifold with the independent states of guesses (k, N), and whether they were reached.

        Returns None if there is no compiled code, or :meth:`HasBatchDerivatives.tangents` was not called for these
        independent states before.

        Parameters
        ----------
        t : array, shape (k,)
        x, u : array, shapes (k, N), (k, nu)
        independent : sequence of int
        sizes : array, shape (k, N)
            Of the states: the last step of Newton's method is small in them.
        """


@runtime_checkable
class HasCompiledEvaluation(Protocol, metaclass=_CapabilityType):
    """A model that compiled code can evaluate."""

    @abstractmethod
    def compile_for_evaluations(self, evaluations: int) -> Model:
        """Return the model for so many ``evaluations``: compiled as soon as that pays, else itself; same numbers."""


@runtime_checkable
class HasGraph(Protocol, metaclass=_CapabilityType):
    """A model with equations that are a graph of CasADi: they can be compiled, and differentiated exactly."""

    @abstractmethod
    def has_graph(self) -> bool:
        """Return whether all parts of the model have one; see :func:`has_graph`."""

    @abstractmethod
    def in_graph(self) -> ImplicitSystem | None:
        """Return the equations as a graph, with what constraints observe; None without one."""


@runtime_checkable
class HasVariedGraph(Protocol, metaclass=_CapabilityType):
    """A model with a graph that has symbols only for parameters that are asked for: others are numbers in it."""

    @abstractmethod
    def list_symbolic_parameters(self) -> Collection[str]:
        """Return the parameters that can be symbols."""

    @abstractmethod
    def in_varied_graph(self, parameters: Sequence[str]) -> ImplicitSystem | None:
        """Return the equations as a graph with symbols for these parameters; None where one of them cannot be one."""


@runtime_checkable
class HasInputLimits(Protocol, metaclass=_CapabilityType):
    """A model with inputs that may be at limits, beyond which they move nothing."""

    @abstractmethod
    def resolve_limits(self, point: OperatingPoint) -> Model:
        """Return the model as it is to be linearized at a point; itself where no input is at a limit.

        Inputs that stand at their limits may cross these, so that derivatives are those of the inner side. The notes
        of the returned model name these inputs, and those which are beyond their limits and move nothing.
        """

    @abstractmethod
    def is_at_input_limits(self) -> bool:
        """Return whether :meth:`seen_at` made this model for a point with inputs at limits."""


@runtime_checkable
class HasParameterSignals(Protocol, metaclass=_CapabilityType):
    """A model with units and descriptions of parameters."""

    @abstractmethod
    def describe_parameters(self) -> Mapping[str, Signal]:
        """Return unit and description of parameters, by name."""


class StartValue(NamedTuple):
    """A start value of a state: what the model writes, what the state has at the start, and why."""

    name: str  # of the state or, as the model writes it, of a variable that equations set equal to it
    unit: str
    requested: float | None  # None where the model writes none
    reached: float
    reason: str


@runtime_checkable
class ReportsStart(Protocol, metaclass=_CapabilityType):
    """A model that searches for a consistent start near the start values that it contains."""

    @abstractmethod
    def report_start(self) -> tuple[StartValue, ...]:
        """Return each start value, in the order of the states, with what became of it."""


@runtime_checkable
class DescribesDeclarations(Protocol, metaclass=_CapabilityType):
    """A model that knows in which line of which file the variables are declared that an error names."""

    @abstractmethod
    def describe_declarations(self, message: str) -> str:
        """Return a sentence with the places of what a message names, empty where it names none."""


@runtime_checkable
class HasGivenStates(Protocol, metaclass=_CapabilityType):
    """A model that says which states keep their start values when others are set."""

    @abstractmethod
    def choose_kept_states(self, fixed_states: Collection[str]) -> Mapping[str, bool]:
        """Return further states to keep, the most important first, and whether the user gave the value of each."""


def read_products(
    model: Model, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
) -> Evaluation | None:
    """Return exact directional derivatives of a model along the columns of (dx, du); None without."""
    return model.products(t, x, u, dx, du) if isinstance(model, HasDirectionalDerivatives) else None


def read_sparse_derivatives(model: Model, t: float, x: FloatArray, u: FloatArray) -> SparseJacobian | None:
    """Return the derivatives of a model in sparse matrices; None where it has none."""
    return model.sparse_derivatives(t, x, u) if isinstance(model, HasSparseDerivatives) else None


def read_exact_slopes(model: Model, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
    """Return the exact procedure of a model at a point; None without."""
    return model.exact_slopes(t, x, u) if isinstance(model, HasExactJacobian) else None


def read_tangents(
    model: Model,
    t: FloatArray,
    x: FloatArray,
    u: FloatArray,
    independent: Sequence[int],
    parameters: Changes = UNCHANGED,
) -> TangentBatch | None:
    """Return a model at many points with exact derivatives along the independent states; None without."""
    return model.tangents(t, x, u, independent, parameters) if isinstance(model, HasBatchDerivatives) else None


def reach_manifold(
    model: Model, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], sizes: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]] | None:
    """Return points of the manifold of a model with the independent states of guesses, and where they were reached."""
    return model.reach_manifold(t, x, u, independent, sizes) if isinstance(model, HasCompiledDerivatives) else None


def differentiate_points(model: Model, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
    """Return the derivatives of a model at many points along all states and inputs; None without compiled code."""
    return model.differentiate_points(t, x, u) if isinstance(model, HasCompiledDerivatives) else None


def has_compiled_derivatives(model: Model) -> bool:
    """Return whether compiled code computes the derivatives of a model at many points at once by now."""
    return isinstance(model, HasCompiledDerivatives) and model.has_compiled_derivatives()


def is_quick_in_batches(model: Model) -> bool:
    """Return whether a batch of one point takes no longer than the point alone.

    So it is by compiled code, and where many points are one message to another process.
    """
    if has_compiled_derivatives(model):
        return True
    return model.batches and isinstance(model, HasBatchDerivatives) and not isinstance(model, HasExactJacobian)


def read_constraint_residuals(model: Model, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
    """Return the residuals of a model alone, shape (m,); None if they cost as much as an evaluation."""
    return model.constraint_residuals(t, x, u) if isinstance(model, HasConstraintResiduals) else None


def read_constraint_gradient(
    model: Model, t: float, x: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return residuals (m,) and their exact gradient (m, N); None if that costs as much as an evaluation."""
    return model.constraint_gradient(t, x, u) if isinstance(model, HasConstraintGradient) else None


def read_event_indicators(model: Model, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """Return the event indicators of a model, shape (ne,); empty for one without events."""
    return model.event_indicators(t, x, u) if isinstance(model, HasEvents) else np.empty(0)


def read_discrete_states(model: Model) -> Mapping[str, str]:
    """Return the discrete states of a model by name, as text; empty for one without."""
    return model.discrete_states() if isinstance(model, HasDiscreteStates) else {}


def read_point_remarks(model: Model, point: OperatingPoint) -> tuple[Remark, ...]:
    """Return what a user should know about a model at a point; empty for most."""
    return model.list_point_remarks(point) if isinstance(model, HasRemarksAtPoints) else ()


def read_second_order_form(model: Model, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
    """Return the equations of motion of a model in their parts; None if they are not Lagrange's, or not visible."""
    return model.second_order_form(t, x, u) if isinstance(model, HasSecondOrderForm) else None


def read_sparse_equations(model: Model) -> SparseEquations | None:
    """Return Lagrange's equations of a large model in sparse matrices; None for other models."""
    return model.sparse_equations() if isinstance(model, HasSparseEquations) else None


def can_be_described(model: Model) -> bool:
    """Return whether the equations of a model can be linearized as they are written, at any of its points."""
    return isinstance(model, HasDescriptorForm) and model.has_descriptor_form()


def has_graph(model: Model) -> bool:
    """Return whether the equations of a model are a graph, without making it."""
    return isinstance(model, HasGraph) and model.has_graph()


def read_graph(model: Model) -> ImplicitSystem | None:
    """Return the equations of a model as a graph, with what constraints observe; None without one."""
    return model.in_graph() if isinstance(model, HasGraph) else None


def compile_model(model: Model, evaluations: int) -> Model:
    """Return a model for so many evaluations: compiled as soon as that pays, else itself; same numbers."""
    return model.compile_for_evaluations(evaluations) if isinstance(model, HasCompiledEvaluation) else model


def model_at_input_limits(model: Model, point: OperatingPoint) -> Model:
    """Return the model to linearize at a point; itself unless inputs stand at limits there."""
    return model.resolve_limits(point) if isinstance(model, HasInputLimits) else model


def is_at_input_limits(model: Model) -> bool:
    """Return whether a model was made for a point with inputs at limits."""
    return isinstance(model, HasInputLimits) and model.is_at_input_limits()
