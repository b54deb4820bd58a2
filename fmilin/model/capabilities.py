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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.signals import FloatArray


class _CapabilityType(type(Protocol)):  # type: ignore[misc]
    """Makes ``isinstance`` look at the class of a model alone.

    A Protocol looks at the attributes of the object at every call, which takes up to 25 us in Python 3.11. The answer
    for a class is remembered and takes 0.3 us; linearizing a point asks dozens of times.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return ABCMeta.__subclasscheck__(cls, type(instance))


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


def read_event_indicators(model: Model, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """Return the event indicators of a model, shape (ne,); empty for one without events."""
    return model.event_indicators(t, x, u) if isinstance(model, HasEvents) else np.empty(0)


def read_discrete_states(model: Model) -> Mapping[str, str]:
    """Return the discrete states of a model by name, as text; empty for one without."""
    return model.discrete_states() if isinstance(model, HasDiscreteStates) else {}
