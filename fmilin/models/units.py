"""Units of derived quantities, as text: where native models look for them."""

from __future__ import annotations

from fmilin.units import rate_unit

__all__ = ["rate_unit"]
