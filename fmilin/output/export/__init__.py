"""A LinearModel as a file that other tools accept: one module per format, one registry; systems as SSP files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.output.export.ssp_file import ssp

__all__ = ["ssp"]


def __getattr__(name: str) -> Any:
    """Import the function when it is first used."""
    if name != "ssp":
        raise AttributeError(f"module 'fmilin.output.export' has no attribute '{name}'")
    from fmilin.output.export.ssp_file import ssp

    return ssp
