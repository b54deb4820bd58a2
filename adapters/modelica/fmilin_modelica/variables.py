"""The front end's description of variables: name, role, size, unit, start value, advice on states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fmilin_modelica.walker import index_text

__all__ = ["Variable", "variables_of"]


@dataclass(frozen=True)
class Variable:
    """A variable, an array of them, or a parameter, as declared."""

    number: int
    content: Mapping[str, Any]
    type: Mapping[str, Any]

    @property
    def name(self) -> str:
        """With the path to it: ``body.frame_a.r_0``."""
        return str(self.content["name"])

    @property
    def role(self) -> str:
        """``state``, ``algebraic``, ``output``, ``input``, ``parameter``, ``constant``, ``discrete_real``, ..."""
        return str(self.content["role"])

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Of the declaration; values are numbers of nodes."""
        return dict(self.content["attributes"])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Dimensions, () of a scalar."""
        return tuple(self.type["dimensions"])

    @property
    def is_real(self) -> bool:
        """Whether its entries are real numbers."""
        return bool(self.type["scalar"] == "real")

    @property
    def unit(self) -> str:
        """As declared; empty where there is none."""
        return str(self.attributes["unit"] or "")

    @property
    def description(self) -> str:
        """The text of the declaration."""
        return str(self.attributes["description"] or "")

    @property
    def is_input(self) -> bool:
        """Whether it is an input of the whole model."""
        return self.role == "input"

    @property
    def is_output(self) -> bool:
        """Whether it is an output of the whole model, not of a block in it."""
        return bool(self.attributes["causality"] == "output")

    @property
    def structural(self) -> bool:
        """Whether the front end may have used its value already, so that another one needs another flattening."""
        return not self.is_real or bool(self.attributes["evaluable"]) or not self.attributes["is_tunable"]

    @property
    def is_free(self) -> bool:
        """Whether it is a parameter that the initial equations determine."""
        said = self.attributes["fixed"]
        return self.role == "parameter" and bool(said) and not any(said)

    def fixed(self, count: int) -> np.ndarray[Any, Any]:
        """Return for each entry whether its start value is to hold."""
        said = self.attributes["fixed"]
        if not said:
            return np.zeros(count, bool)
        flags = np.array(said, bool).reshape(-1)
        return np.broadcast_to(flags, (count,)) if flags.size in (1, count) else np.zeros(count, bool)

    def entries(self) -> Iterator[tuple[tuple[int, ...], str]]:
        """Return index and name of each entry, row by row."""
        for index in np.ndindex(*self.shape):
            yield index, self.name + index_text(index)


def variables_of(flat: Mapping[str, Any]) -> list[Variable]:
    """Return all variables of a flattened model, in its order."""
    types = flat["value_types"]
    return [Variable(k, content, types[content["value_type"]]) for k, content in enumerate(flat["variables"])]
