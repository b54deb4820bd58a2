"""What comes of one point of a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from fmilin.families.rows import Template
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals

__all__ = ["Outcome"]

_NONE = Signals()


@dataclass(frozen=True, slots=True)
class Outcome:
    """One point that was tried.

    Attributes
    ----------
    number : int
        Of the point on the grid.
    reason : str
        Why there is no linear model, one paragraph; empty where there is one.
    row : array or None
        The linear model as :meth:`fmilin.families.rows.Layout.packed` made it.
    template : Template or None
        What it shares with others.
    states : Signals
        The independent coordinates.
    method : (str, str)
        How derivatives were taken and coordinates chosen.
    remarks : tuple of Remark
    kind : str
        Of a failure, for programs: the name of the error's class, ``"fold"`` for a fold.
    """

    number: int
    reason: str = ""
    row: FloatArray | None = None
    template: Template | None = None
    states: Signals = _NONE
    method: tuple[str, str] = ("", "")
    remarks: tuple[Remark, ...] = ()
    kind: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a linear model."""
        return self.row is not None
