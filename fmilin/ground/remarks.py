"""What the user should know about a result: remarks of the kinds of one table, not printed strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass

from fmilin.ground.remark_kinds import KINDS, OF_ANOTHER_VERSION, Kind

MOST_HELD = 12  # discrete variables that are listed


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that the user should know, which travels with a result; one that was read may have any kind."""

    kind: str  # what a program can test for: a name of the table
    message: str  # one sentence or two
    is_read: InitVar[bool] = False

    def __post_init__(self, is_read: bool) -> None:
        if not is_read and self.kind not in KINDS:
            raise ValueError(
                f"'{self.kind}' is no kind of remark: add it to the table in fmilin/ground/remark_kinds.py."
            )

    @property
    def is_information(self) -> bool:
        """Whether it says how a result was made, rather than what to beware of."""
        return self._row.severity == "information"

    @property
    def heading(self) -> str:
        """The word before its sentence: ``"Note"`` or ``"Warning"``."""
        return "Note" if self.is_information else "Warning"

    @property
    def speaks_of_the_model(self) -> bool:
        """Whether it is true of the model as a whole, rather than of the point or an entry there."""
        return self._row.scope == "model"

    @property
    def _row(self) -> Kind:
        return KINDS.get(self.kind, OF_ANOTHER_VERSION)

    def __str__(self) -> str:
        return self.message


def model_remarks(notes: Iterable[str]) -> list[Remark]:
    """Return the remarks on what a model notes of itself (:attr:`fmilin.Model.notes`)."""
    return [Remark("model", note) for note in notes]


def discrete_states_remarks(states: Mapping[str, str]) -> list[Remark]:
    """Return the remark about values, by name, that stay as they are between two events; none when nothing does."""
    if not states:
        return []
    shown = ", ".join(f"{name} = {value}" for name, value in list(states.items())[:MOST_HELD])
    more = f" and {len(states) - MOST_HELD} more" if len(states) > MOST_HELD else ""
    return [Remark("held", f"Held as they are at the point, as between two events: {shown}{more}.")]


def off_equilibrium(
    what: str,
    meaning: str = "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates.",
) -> Remark:
    """Return the remark on a point off equilibrium: ``what``, half a sentence, says what moves, or what was done."""
    return Remark("off-equilibrium", f"The point is no equilibrium: {what}. {meaning}".rstrip())


def rate_of_change(name: str, rate: float) -> str:
    """Say how fast a state or coordinate changes: half a sentence for :func:`off_equilibrium`."""
    return f"'{name}' changes at {rate:.6g} per second"


def inaccurate_entry(name: str, value: float, error: float, more: str = "") -> Remark:
    """Return the remark on an entry whose error is large beside its row; ``more``: how many others are alike."""
    return Remark(
        "accuracy", f"{name} = {value:.6g} is known to +-{error:.2g} only, beside the other entries of its row.{more}"
    )


def no_linear_model(reason: Exception, instead: str = "") -> Remark:
    """Return the remark on spurious eigenvalues that no linear model is without."""
    return Remark("labels", f"There is no linear model without the spurious eigenvalues: {reason}{instead}")


def swamping_penalty(alpha: float, loss: str) -> Remark:
    """Return the remark on a penalty that costs digits; ``loss``: how much of the eigenvalues, and what to do."""
    text = f"The penalty alpha = {alpha:g} swamps double precision: rounding may change the true eigenvalues {loss}"
    return Remark("penalty", text)
