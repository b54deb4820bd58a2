"""The kind of a source, before a model is opened and before anything heavy is loaded."""

from __future__ import annotations

INTERFACES = {"me": "ModelExchange", "cs": "CoSimulation"}  # what a user calls the interfaces of an FMU


def is_fmu(source: str) -> bool:
    """Whether ``source`` names an FMU."""
    return source.lower().endswith(".fmu")


def is_system(source: str) -> bool:
    """Whether ``source`` names FMUs that are connected: an SSP or SSD file."""
    return source.lower().endswith((".ssp", ".ssd"))
