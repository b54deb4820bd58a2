"""Delays of sampled signals as sampled members: registers of whole samples, and holds that are due between samples.

A delay T = d h + r of what is held over samples of h seconds is a register of d samples, behind it a hold that is due r
seconds after each sample. A signal of the plant that is read T before a sample, T = m h - r, is sampled r seconds after
each sample and goes through a register of m - 1 samples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import floor

import numpy as np

from fmilin.composition.linear_member import at_rest
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import ModelInfo
from fmilin.signals import Signal, Signals

WHOLE_SAMPLES_TOLERANCE = 1e-9  # of a sample, within which a delay is a whole number of samples


@dataclass(frozen=True)
class DelayMember:
    """A member that delays, and by how many seconds after the samples it is due."""

    linear: LinearModel
    offset: float = 0.0


@dataclass
class DelayChains:
    """Members that delay signals of a sampled loop."""

    times: Collection[float]  # the sample times of the loop
    members: dict[str, DelayMember] = field(default_factory=dict)

    @property
    def offsets(self) -> set[float]:
        """The seconds by which members are due after samples, where they are."""
        return {member.offset for member in self.members.values() if member.offset}

    def add(
        self, wire: str, seconds: float, source_time: float | None, reader_time: float | None, value: float
    ) -> list[str]:
        """Return the names of the members, ``in`` to ``out``, that delay a wire; ``value`` is what it carries.

        ``source_time`` is the sample time of what feeds it; None for the plant, that of what reads it then counts.
        """
        h = source_time or reader_time or min(self.times)
        sample_count = floor(seconds / h + WHOLE_SAMPLES_TOLERANCE)
        remainder = seconds - sample_count * h
        is_whole = remainder <= WHOLE_SAMPLES_TOLERANCE * h
        names = []
        if source_time is None and not is_whole:
            names.append(self._add_hold(wire, h, h - remainder, value))
        if sample_count:
            names.append(self._add_register(wire, h, sample_count, value))
        if source_time is not None and not is_whole:
            names.append(self._add_hold(wire, h, remainder, value))
        return names

    def _add_hold(self, wire: str, h: float, offset: float, value: float) -> str:
        name = f"hold of {wire}"
        none = np.empty((0, 0))
        signals = Signals(), Signals([Signal("in", start=value)]), Signals([Signal("out", start=value)])
        matrices = none, np.empty((0, 1)), np.empty((1, 0)), np.eye(1)
        self.members[name] = DelayMember(_set_start(at_rest(ModelInfo(name), signals, matrices, h), value), offset)
        return name

    def _add_register(self, wire: str, h: float, count: int, value: float) -> str:
        name = f"delay of {wire}"
        states = Signals(Signal(f"{k + 1}", start=value) for k in range(count))
        signals = states, Signals([Signal("in", start=value)]), Signals([Signal("out", start=value)])
        matrices = np.eye(count, k=-1), np.eye(count, 1), np.eye(1, count, count - 1), np.zeros((1, 1))
        self.members[name] = DelayMember(_set_start(at_rest(ModelInfo(name), signals, matrices, h), value))
        return name


def _set_start(linear: LinearModel, value: float) -> LinearModel:
    """Return a member that delays at the value that it carries."""
    point = replace(
        linear.point,
        states=dict.fromkeys(linear.point.states, value),
        inputs=dict.fromkeys(linear.point.inputs, value),
        outputs=dict.fromkeys(linear.point.outputs, value),
    )
    return replace(linear, y0=np.full(len(linear.states), value), point=point)
