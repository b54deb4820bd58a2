"""Start values that a model writes and that had to move, since they do not fit each other or its equations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fmilin.adapters import Remark, StartValue
from fmilin.signals import FloatArray
from fmilin_modelica.aliases import WrittenStart
from fmilin_modelica.declarations import LIBRARY_RANK
from fmilin_modelica.entries import Entry

__all__ = ["AS_WRITTEN", "FOLLOWS", "MovedStart", "moved_remark", "moved_starts", "report_start_value"]

AS_WRITTEN = 1e-6  # in sizes of the value, or of 1: a smaller change is rounding of the solution. Looser hides moves
FOLLOWS = "follows: no start value is written"
LISTED = 6  # values in a diagnostic


@dataclass(frozen=True)
class MovedStart:
    """A start value with what it became."""

    name: str
    written: float
    became: float
    state: int
    sign: float  # of the state in the variable


def moved_starts(written: Sequence[WrittenStart], states: FloatArray) -> Iterator[MovedStart]:
    """Return the start values that the states do not have."""
    for start in written:
        became = float(states[start.state]) * start.sign
        if abs(became - start.value) > AS_WRITTEN * max(1.0, abs(start.value)):
            yield MovedStart(start.name, start.value, became, start.state, start.sign)


def report_start_value(start: WrittenStart, reached: float, unit: str, entry: Entry) -> StartValue:
    """Return what became of a start value that the model writes, of a state or of a variable equal to it."""
    is_kept = abs(reached - start.value) <= AS_WRITTEN * max(1.0, abs(start.value))
    if not is_kept:
        reason = "moved: the equations, fixed and more important start values leave no choice"
    elif entry.fixed:
        reason = "kept: fixed = true"
    elif entry.rank is not None and entry.rank >= LIBRARY_RANK:
        reason = "kept: written by a library"
    else:
        reason = "kept: written by the model"
    return StartValue(start.name, unit, start.value, reached, reason)


def moved_remark(moved: Sequence[MovedStart]) -> Remark:
    """Return the diagnostic on start values that had to move."""
    listed = "; ".join(f"{m.name} = {m.written:.6g} became {m.became:.6g}" for m in moved[:LISTED])
    more = f" (and {len(moved) - LISTED} more)" if len(moved) > LISTED else ""
    return Remark(
        "moved", f"Start values of the model are inconsistent with each other or its equations: {listed}{more}."
    )
