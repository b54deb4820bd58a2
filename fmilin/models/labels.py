"""Labels of a model's quantities, in addition to the equations; none of them needs sympy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fmilin.support.kinds import require_field_containers

Expr = Any  # sympy.Expr, a number, or text in the grammar of fmilin.constraints.expressions
Name = Any  # sympy.Symbol or str


@dataclass(frozen=True)
class Labels:
    """Labels of a model's quantities: units, nominal values, descriptions. Keys are symbols or names."""

    units: Mapping[Name, str] = field(default_factory=dict)  #: of any signals, as text, ``{x: "m", F: "N"}``
    nominals: Mapping[Name, float] = field(default_factory=dict)  #: typical sizes, positive
    descriptions: Mapping[Name, str] = field(default_factory=dict)  #: a few words each
    independent: Sequence[Name] = ()  #: states that are recommended as independent coordinates
    description: str = ""  #: of the whole model

    def __post_init__(self) -> None:
        require_field_containers(self)
