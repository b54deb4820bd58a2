"""What a source returns for a model: the model with its names there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fmilin import Model

__all__ = ["Cell", "Coordinate", "Source"]


@dataclass(frozen=True)
class Coordinate:
    """An independent state of the source, to first order in those of the textbook."""

    name: str
    slopes: Mapping[str, float]  #: by states of the textbook: d name = sum of slope d(state)
    value: float  #: at the point


@dataclass(frozen=True)
class Cell:
    """A model of one source. Names that are left out are those of the textbook."""

    model: Model
    states: Mapping[str, Coordinate] = field(default_factory=dict)  #: in place of states of the textbook
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    missing_outputs: Sequence[str] = ()  #: outputs that the source cannot state
    guess: Mapping[str, float] | None = None  #: where a trim starts, in names of the source
    #: states and inputs of the point in names of the source: for linear systems, which have no start of their own
    start: Mapping[str, float] = field(default_factory=dict)


Source = Callable[[str], Cell]
