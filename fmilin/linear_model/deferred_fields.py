"""Fields of a result that are computed when they are first read.

A loop that linearizes a model thousands of times reads A and B, and seldom the errors of all entries or the point by
name, which take longer to write than the matrices take to compute.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, Self

_SOURCE = "_source_of_fields"


class FieldSource(Protocol):
    """Computes fields of a data class by name."""

    def compute_field(self, name: str) -> object:
        """Return the value of a field; AttributeError where it computes none of that name."""


class DeferredFields:
    """A frozen data class with ``__dict__``, some fields of which may be computed when they are first read.

    A field with a default is an attribute of the class, and cannot be deferred.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            source = self.__dict__.get(_SOURCE)
            if source is None:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            value = self.__dict__[name] = source.compute_field(name)
            return value

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that is stored and copied: with all fields, without their source."""
        values: dict[str, Any] = self.__dict__
        if _SOURCE in values:
            for field in fields(self):  # type: ignore[arg-type]  # of a data class
                getattr(self, field.name)
        return {name: value for name, value in values.items() if name != _SOURCE}

    @classmethod
    def with_deferred_fields(cls, source: FieldSource, **values: object) -> Self:
        """Return an object with these fields, those with defaults, and others that a source computes."""
        result = object.__new__(cls)
        result.__dict__.update(values)
        result.__dict__[_SOURCE] = source
        return result
