"""Models that cannot print themselves as C, as co-simulation FMUs that run Python inside."""

from __future__ import annotations

from fmilin.loading.wrapping.fmu import wrap_as_fmu

__all__ = ["wrap_as_fmu"]
