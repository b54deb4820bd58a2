"""Deviations over time as a result."""

from __future__ import annotations

from fmilin.errors import UnknownNameError
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class TimeResponse:
    """Deviations from the point over time; ``response["y"]`` is one state or output."""

    times: FloatArray  #: shape (k,), in seconds from the beginning of the response
    states: FloatArray  #: shape (k, P)
    outputs: FloatArray  #: shape (k, ny)
    state_signals: Signals  #: the names and units of the states
    output_signals: Signals  #: the names and units of the outputs
    error: float  #: an estimate of how far the largest of these numbers may be off

    def __getitem__(self, name: str) -> FloatArray:
        """Return an output or a state over time, by name."""
        if self.output_signals.has(name):
            return self.outputs[:, self.output_signals.index_of(name)]
        if self.state_signals.has(name):
            return self.states[:, self.state_signals.index_of(name)]
        names = [*self.output_signals.names, *self.state_signals.names]
        raise UnknownNameError.among(name, names, "an output or a state of this response")
