"""What an expression is made into: the operations that an arithmetic has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Arithmetic"]


class Arithmetic(ABC):
    """What an expression is made into: sympy's expressions, CasADi's nodes."""

    @abstractmethod
    def number(self, value: float) -> Any:
        """Return a number."""

    @abstractmethod
    def operation(self, name: str, operands: Sequence[Any]) -> Any:
        """Return the result of an operator or function; NaN for a constant part that is no real number (``1/0``)."""

    @abstractmethod
    def sympy(self, expression: Any, values: Mapping[Any, Any]) -> Any:
        """Return what the sympy ``expression`` means where its symbols have these ``values``."""

    @abstractmethod
    def rate(self, value: Any, rates: Sequence[tuple[Any, Any]]) -> Any:
        """Return the sum of d ``value``/d x times x' over the pairs (x, x')."""
