"""The versions of the standard that are written."""

from __future__ import annotations

from collections.abc import Mapping

from fmilin.fmi.write.description import Standard
from fmilin.fmi.write.standard2 import Fmi2
from fmilin.fmi.write.standard3 import Fmi3
from fmilin.ground.errors import UsageError

__all__ = ["standard_of"]

_STANDARDS: Mapping[str, Standard] = {"2.0": Fmi2(), "3.0": Fmi3()}


def standard_of(version: str) -> Standard:
    """Return what is particular to a version."""
    standard = _STANDARDS.get(version)
    if standard is None:
        raise UsageError(f"FMUs are built for FMI {' or '.join(_STANDARDS)}, not for '{version}'.")
    return standard
