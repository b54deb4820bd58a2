"""What only some models can do: one Protocol for each capability, asked for with ``isinstance``.

>>> from fmilin.model.capabilities import HasContacts
>>> from fmilin.systems import four_bar
>>> isinstance(four_bar(), HasContacts)
True

A class has a capability when it defines its methods. The classes of this package inherit from the Protocol as well,
so that a type checker compares the signatures.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fmilin.codegen.implicit import ImplicitSystem
    from fmilin.constraints.expressions import Expression
    from fmilin.model.equations import SparseEquations
    from fmilin.model.interface import Evaluation, Model, OperatingPoint
    from fmilin.signals import FloatArray


class _CapabilityType(type(Protocol)):  # type: ignore[misc]
    """Makes ``isinstance`` look at the class of a model alone.

    A Protocol looks at the attributes of the object at every call, which takes up to 25 us in Python 3.11. The answer
    for a class is remembered and takes 0.3 us; linearizing a point asks dozens of times.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return ABCMeta.__subclasscheck__(cls, type(instance))


@dataclass(frozen=True)
class SecondOrderForm:
    """M v' + G' lambda = F, G v' = -Gdot v at a point, in its parts; v' and lambda of least norm where G loses rank."""

    # positions, velocities: (n,), which states are q and v
    positions: NDArray[np.intp]
    velocities: NDArray[np.intp]
    M: FloatArray  # shape (n, n)
    G: FloatArray  # shape (m, n)
    multipliers: FloatArray  # (m,), lambda, of least norm
    accelerations: FloatArray  # shape (n,)
    force_states: FloatArray  # (n, N), d(F - M v' - G' lambda)/dx, v' and lambda held
    force_inputs: FloatArray  # shape (n, nu)
    output_states: FloatArray  # shape (ny, N)
    output_inputs: FloatArray  # shape (ny, nu)
    output_unknowns: FloatArray  # (ny, n + m), d outputs / d(v', lambda)
    bend: Callable[[FloatArray], FloatArray]  # a (n,) -> D^2 g [a, a], shape (m,)
    constraint_states: FloatArray  # (m, N), d(G v' + Gdot v)/dx, v' held
    constraint_inputs: FloatArray  # (m, nu), d(G v' + Gdot v)/du: not zero where inputs prescribe a motion


@dataclass(frozen=True, eq=False)
class DescriptorForm:
    """E z' = f0 + A (z - z0) + B (u - u0), out - out0 = C (z - z0) + D (u - u0): the equations as they are written."""

    E: FloatArray  # shape (k, k)
    A: FloatArray  # shape (k, k)
    B: FloatArray  # shape (k, nu)
    C: FloatArray  # shape (ny, k)
    D: FloatArray  # shape (ny, nu)
    f0: FloatArray  # shape (k,)
    states: tuple[str, ...]  # names of z: all states, then algebraic variables
    order: int  # how many finite eigenvalues there are


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
        """Return values whose sign changes mark state events, shape (ne,); empty while there are none."""


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
    def stabilized(self, alpha: float, beta: float) -> Model | None:
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
        """Return the errors of :meth:`fmilin.Model.products` along the same directions; None if they are rounding."""


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
class HasCompiledEvaluation(Protocol, metaclass=_CapabilityType):
    """A model that compiled code can evaluate."""

    @abstractmethod
    def compiled_for(self, evaluations: int) -> Model:
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
class HasInputLimits(Protocol, metaclass=_CapabilityType):
    """A model whose inputs may stand at limits, beyond which they move nothing."""

    @abstractmethod
    def seen_at(self, point: OperatingPoint) -> Model:
        """Return the model as it is to be linearized at a point; itself where no input is at a limit.

        Inputs that stand at their limits may cross these, so that slopes are those of the inner side. The notes of the
        returned model name these inputs, and those which are beyond their limits and move nothing.
        """

    @abstractmethod
    def is_at_input_limits(self) -> bool:
        """Return whether :meth:`seen_at` made this model for a point with inputs at limits."""


@runtime_checkable
class HasGivenStates(Protocol, metaclass=_CapabilityType):
    """A model that says which states keep their start values when others are set."""

    @abstractmethod
    def kept(self, held: Collection[str]) -> Mapping[str, bool]:
        """Return states to keep where others are ``held``, the most important first, and whether each was given."""


def read_event_indicators(model: Model, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """Return the event indicators of a model, shape (ne,); empty for one without events."""
    return model.event_indicators(t, x, u) if isinstance(model, HasEvents) else np.empty(0)


def read_discrete_states(model: Model) -> Mapping[str, str]:
    """Return the discrete states of a model by name, as text; empty for one without."""
    return model.discrete_states() if isinstance(model, HasDiscreteStates) else {}


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


def compile_for(model: Model, evaluations: int) -> Model:
    """Return a model for so many evaluations: compiled as soon as that pays, else itself; same numbers."""
    return model.compiled_for(evaluations) if isinstance(model, HasCompiledEvaluation) else model


def model_at_input_limits(model: Model, point: OperatingPoint) -> Model:
    """Return the model to linearize at a point; itself unless inputs stand at limits there."""
    return model.seen_at(point) if isinstance(model, HasInputLimits) else model


def is_at_input_limits(model: Model) -> bool:
    """Return whether a model was made for a point with inputs at limits."""
    return isinstance(model, HasInputLimits) and model.is_at_input_limits()
