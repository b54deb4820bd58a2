"""What the user should know about a result: objects with a kind, not printed strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Remark", "discrete_states_remarks", "off_equilibrium"]

MOST_HELD = 12
"""Discrete variables that are listed."""

_INFORMATION = frozenset(
    {"method", "other-method", "fit", "order", "sampling", "repetition", "held", "steady", "standing", "least-squares"}
)
_OF_THE_MODEL = frozenset({"model", "held", "memory", "prescribed-motion", "conserved-quantity", "dependent-states"})
_OF_OLDER_FILES = frozenset({"way", "detour"})


@dataclass(frozen=True, slots=True)
class Remark:
    """One warning or note that travels with a result.

    kind: what a program can test for: ``"off-equilibrium"``, ``"conditioning"``, ``"directional-derivative"``,
        ``"accuracy"``, ``"narrow"``, ``"memory"``, ``"rank"``, ``"conserved-quantity"``, ``"contact"`` (a foot that
        would have to be pulled, slides or tips over), ``"model"``; of a measured model also ``"sampled"``, and as mere
        information ``"steady"``, ``"standing"``, ``"least-squares"``, ``"held"``, ``"method"``, ``"other-method"``,
        ``"fit"``, ``"order"``, ``"sampling"``, ``"repetition"``.
    """

    kind: str
    message: str  # one sentence or two

    @property
    def is_information(self) -> bool:
        """Whether it says how a result was made, rather than what to beware of."""
        return self.kind in _INFORMATION | _OF_OLDER_FILES

    @property
    def speaks_of_the_model(self) -> bool:
        """Whether it is true of the model as a whole, rather than of the point or an entry there."""
        return self.kind in _OF_THE_MODEL

    def __str__(self) -> str:
        return self.message


def discrete_states_remarks(states: Mapping[str, str]) -> list[Remark]:
    """Return the remark about what stays as it is between two events; none when nothing does.

    ``states``: values by name, as :meth:`fmilin.Model.discrete_states` returns them.
    """
    if not states:
        return []
    shown = ", ".join(f"{name} = {value}" for name, value in list(states.items())[:MOST_HELD])
    more = f" and {len(states) - MOST_HELD} more" if len(states) > MOST_HELD else ""
    return [Remark("held", f"Held as they are at the point, as between two events: {shown}{more}.")]


def off_equilibrium(
    what: str,
    meaning: str = "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates.",
) -> Remark:
    """Return the remark on a point that is no equilibrium.

    ``what``: what moves there, or what was done about it: half a sentence. ``meaning``: what that means for the result:
    sentences, or none.
    """
    return Remark("off-equilibrium", f"The point is no equilibrium: {what}. {meaning}".rstrip())
