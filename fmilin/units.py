"""Units of derived quantities, as text."""

from __future__ import annotations

__all__ = ["rate_unit"]


def rate_unit(unit: str) -> str:
    """Return the unit of a time derivative: ``"m"`` gives ``"m/s"``, ``"m/s"`` gives ``"m/s2"``.

    >>> [rate_unit(u) for u in ("rad", "m/s", "m/s2", "")]
    ['rad/s', 'm/s2', 'm/s3', '']
    """
    if not unit:
        return ""
    for old, new in (("/s", "/s2"), ("/s2", "/s3")):
        if unit.endswith(old):
            return unit.removesuffix(old) + new
    return f"{unit}/s"
