"""Exact derivatives of a model at one point, in one matrix: for loops in which each call counts."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from fmilin.model.capabilities import _CapabilityType

if TYPE_CHECKING:
    from fmilin.signals import FloatArray


class ValuesWithJacobian(NamedTuple):
    """The results of a model at a point, in arrays of the caller."""

    rates: FloatArray  # (N,)
    outputs: FloatArray  # (ny,)
    J: FloatArray  # (N + ny, N + nu), of rates, then outputs, along all states, then all inputs


@runtime_checkable
class HasPointDerivatives(Protocol, metaclass=_CapabilityType):
    """A model without constraints, of which the exact derivatives at one point are answered in one step."""

    @abstractmethod
    def differentiate_point(self, t: float, x: FloatArray, u: FloatArray) -> ValuesWithJacobian | None:
        """Return rates, outputs and their derivatives at a point; None where they take more than one step."""
