"""A symbolic model as an FMU."""

from __future__ import annotations

from fmilin.fmi.write.fmu import build_fmu

__all__ = ["build_fmu"]
