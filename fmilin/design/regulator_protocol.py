"""The methods of a regulator; ``update_states`` of users' regulators may have its name of fmilin 0.3, ``applied``."""

from __future__ import annotations

from typing import Any, Protocol, cast

from fmilin.signals import FloatArray
from fmilin.support.deprecation import DeprecatedAlias, warn_of_old_name

__all__ = ["Regulator", "accept_old_regulator"]


class Regulator(Protocol):
    """A sampled control law that :func:`fmilin.closed_loop` runs."""

    # reads, drives: variables of the plant that it reads at a sample, and inputs of the plant that it sets
    reads: tuple[str, ...]
    drives: tuple[str, ...]
    sample_time: float  # in seconds

    def restart(self) -> None:
        """Go back to before the first sample."""

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the inputs of the plant, absolute values, for what was read at t."""

    def update_states(self, outputs: FloatArray) -> None:
        """Update the states of the regulator by the outputs that the actuators apply: the answer, or its limits."""


def accept_old_regulator(law: object) -> Regulator:
    """Return a regulator with ``update_states``; one with the old name of it gets that, and raises a warning."""
    if not _has_old_name(law):
        return cast("Regulator", law)
    warn_of_old_name(f"{type(law).__name__}.applied", "update_states")
    return _OldRegulator(law)


def _has_old_name(law: object) -> bool:
    """Return whether ``applied`` is the newer of both methods: a user's subclass may override one of fmilin's."""
    for base in type(law).__mro__:
        methods = vars(base)
        if "update_states" in methods:
            return False
        if "applied" in methods:
            return not isinstance(methods["applied"], DeprecatedAlias)
    return hasattr(law, "applied") and not hasattr(law, "update_states")


class _OldRegulator:
    """A regulator under the new name of its method; everything else is that of the user's object."""

    def __init__(self, law: Any) -> None:
        self._law = law

    def __getattr__(self, name: str) -> Any:
        return getattr(self._law, name)

    def update_states(self, outputs: FloatArray) -> None:
        """Pass the outputs on to the method under its old name."""
        self._law.applied(outputs)
