"""The result of a verification, channel by channel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Kind = Literal["point", "offset", "step", "sine", "drift"]


@dataclass(frozen=True, eq=False)
class Trace:
    """One signal of both models over time, as deviations from the point."""

    signal: str
    unit: str
    amplitude: float  # of the excitation
    times: FloatArray  # shape (nt,)
    linear: FloatArray  # shape (nt,)
    nonlinear: FloatArray  # shape (nt,)
    # (nt,), the nonlinear response to four times the amplitude, divided by four, or None
    beyond: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Validity:
    """How far a channel of the linear model holds."""

    # the amplitude up to which coordinates and outputs are right, each within 5 % of its own largest response; of the
    # drift, the time in seconds
    limit: float
    at_least: bool = False  # whether the search ended before that amplitude was reached: it is larger than ``limit``
    limited_by: str = ""  # the signal that is wrong first, or the reason why the nonlinear model ends there
    # how far the linear model moves a state at the limit, in sizes of the states: the same for every unit
    motion: float = 0.0


@dataclass(frozen=True, eq=False)
class Channel:
    """One excitation, and how well the linear model answers it."""

    # the values at the point; an offset of an independent coordinate; a step or a sine of an input; the motion of a
    # point that is not an equilibrium
    kind: Kind
    signal: str  # the coordinate or input
    unit: str  # the coordinate or input
    frequency: float | None  # in rad/s, of a sine
    amplitude: float  # at which the derivatives were compared, in ``unit``
    # what is wrong with the linear response in the limit of small amplitudes, relative to its largest value:
    # extrapolated from ``amplitude``, its half and its quarter
    slope_error: float
    # with which power of the amplitude the deviation shrinks: 2 (or more) where the linear model is right, 1 where it
    # is wrong; NaN where there is no deviation beyond rounding
    order: float
    tolerance: float  # what ``slope_error`` may be
    worst: str  # the signal with that error, or why there was nothing to compare
    validity: Validity | None = None  # None where the channel fails
    # the response that shows most, at the limit of validity (or at ``amplitude`` where the channel fails)
    trace: Trace | None = None

    @property
    def passed(self) -> bool:
        """Whether the linear model is right to first order in this channel."""
        return self.slope_error <= self.tolerance

    @property
    def label(self) -> str:
        """The channel in words: ``"step of torque"``."""
        words = {
            "point": "the point itself",
            "offset": f"offset of {self.signal}",
            "step": f"step of {self.signal}",
            "drift": "motion from the point",
        }
        if self.frequency is not None:
            return f"sine of {self.signal}, {self.frequency:.4g} rad/s"
        return words[self.kind]


@dataclass(frozen=True, eq=False, repr=False)
class Verification(TableRepr):
    """A linear model compared with the nonlinear one."""

    _attributes = ".table(), .channels"

    channels: tuple[Channel, ...]  #: one for each excitation
    horizon: float  #: how long each response was followed, in seconds
    evaluations: int  #: evaluations of the nonlinear model
    model: ModelInfo  #: of the nonlinear model
    remarks: tuple[Remark, ...] = ()  #: on the comparison

    @implemented_in("fmilin.report.verification_report:show_verification")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def passed(self) -> bool:
        """Whether every channel is right to first order."""
        return not self.failed

    @property
    def failed(self) -> tuple[Channel, ...]:
        """The channels that are not."""
        return tuple(channel for channel in self.channels if not channel.passed)

    @implemented_in("fmilin.report.verification_report:verification_text")
    def table(self) -> str:
        """Return a table for a person, 80 columns wide."""
        ...

    @implemented_in("fmilin.report.verification_report:save_verification")
    def save_picture(self, path: str | Path) -> None:
        """Draw both responses of each channel, and how far it holds, into ``path``, .png or .svg; else UsageError."""
        ...

    def to_document(self) -> dict[str, Any]:
        """Return everything but the traces as plain data, NaN and infinity as None."""
        return {
            "format": "fmilin-verification/1",
            "passed": self.passed,
            "horizon": self.horizon,
            "evaluations": self.evaluations,
            "model": {"name": self.model.name, "guid": self.model.guid},
            "channels": [_channel(channel) for channel in self.channels],
            "warnings": [{"kind": r.kind, "message": r.message} for r in self.remarks],
        }


def _channel(channel: Channel) -> dict[str, Any]:
    validity = channel.validity or Validity(np.nan, motion=np.nan)
    fields = (
        "kind",
        "signal",
        "unit",
        "frequency",
        "passed",
        "slope_error",
        "tolerance",
        "order",
        "amplitude",
        "worst",
    )
    document = {"channel": channel.label} | {name: getattr(channel, name) for name in fields}
    document |= {
        "limit": validity.limit,
        "limit_is_lower_bound": validity.at_least,
        "limited_by": validity.limited_by,
        "motion_at_limit": validity.motion,
    }
    return {name: None if isinstance(v, float) and not np.isfinite(v) else v for name, v in document.items()}
