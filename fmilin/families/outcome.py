"""What comes of one point of a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.families.rows import Template
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals

_NONE = Signals()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One point that was tried."""

    number: int  # of the point on the grid
    reason: str = ""  # why there is no linear model, one paragraph; empty where there is one
    row: FloatArray | None = None  # the linear model as :meth:`fmilin.families.rows.Layout.packed` made it
    template: Template | None = None  # what it shares with others
    states: Signals = _NONE  # the independent coordinates
    method: tuple[str, str] = ("", "")  # how derivatives were taken and coordinates chosen
    remarks: tuple[Remark, ...] = ()
    kind: str = ""  # of a failure, for programs: the name of the error's class, ``"fold"`` for a fold

    @property
    def ok(self) -> bool:
        """Whether there is a linear model."""
        return self.row is not None
