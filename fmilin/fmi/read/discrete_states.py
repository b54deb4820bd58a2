"""What an FMU holds between two events: discrete states, and inputs that are no numbers."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.layout import Layout
from fmilin.fmi.read.session import Session
from fmilin.ground.errors import FmilinError

__all__ = ["discrete_values"]

MOST = 50
"""Variables that are read: a big model has thousands."""

_discrete_ones: WeakKeyDictionary[Layout, list[Variable]] = WeakKeyDictionary()

_UNREADABLE = frozenset({"Clock", "Binary"})


def discrete_values(session: Session) -> dict[str, str]:
    """Return the discrete-time variables and their present values, as text.

    Inputs that are inputs of the linear model are left out. A variable that the FMU refuses to tell ends the list:
    it is not asked again.
    """
    layout = session.layout
    found: dict[str, str] = {}
    if layout not in _discrete_ones:  # asked at every linearization, and always the same
        _discrete_ones[layout] = _discrete(session)[:MOST]
    for variable in _discrete_ones[layout]:
        try:
            values = session.instance.values(variable, layout.size(variable))
        except FmilinError as error:
            session.note(f"The discrete variable '{variable.name}' cannot be read. {error}")
            break
        found[variable.name] = " ".join(_text(v) for v in values)
    return found


def _discrete(session: Session) -> list[Variable]:
    distinct: dict[tuple[bool, str, int], Variable] = {}
    for v in session.layout.description.looked_through():
        moves = v.variability == "discrete" or v.causality == "input"
        told = v.type in _UNREADABLE or (session.layout.is_signal(v) and v.causality in ("input", "output"))
        if moves and not v.is_parameter and not v.is_continuous and not told:
            distinct.setdefault((v.is_float, "" if v.is_float else v.type, v.reference), v)
    return list(distinct.values())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"'{value.decode('utf-8', 'replace')}'"
    return f"'{value}'" if isinstance(value, str) else f"{value:g}"
