"""The external functions of ``Modelica.Utilities.Strings`` that parameters of the Standard Library call."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["STRING_FUNCTIONS"]


def _substring(text: str, begin: int, end: int) -> str:
    """Return the characters from ``begin`` to ``end``, counted from 1, both included."""
    first = max(int(begin), 1)
    last = first if end < 0 else int(end)
    return text[first - 1 : last]


def _compare(one: str, other: str, is_case_sensitive: int) -> int:
    """Return the number of ``Types.Compare``: 1 less, 2 equal, 3 greater."""
    if not is_case_sensitive:
        one, other = one.lower(), other.lower()
    if one == other:
        return 2
    return 1 if one < other else 3


STRING_FUNCTIONS: Mapping[str, Callable[..., str | int]] = {
    "Modelica.Utilities.Strings.length": len,
    "Modelica.Utilities.Strings.substring": _substring,
    "Modelica.Utilities.Strings.compare": _compare,
}
