"""Names that the writer of a wrapping FMU and the code inside agree on."""

from __future__ import annotations

__all__ = ["WRAPPED", "residual_name"]

WRAPPED = "fmilin_wrapped.json"
"""What is wrapped: the source, relative to the resources of the FMU."""


def residual_name(i: int) -> str:
    """Return the variable that holds the i-th residual of the model's constraints, declared rates included."""
    return f"residual[{i + 1}]"
