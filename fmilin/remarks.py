"""What the user should know about a result: objects with a kind, not printed strings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Remark"]

_INFORMATION = frozenset({"way", "detour", "fit", "order", "sampling", "repetition", "held"})


@dataclass(frozen=True, slots=True)
class Remark:
    """One warning or note that travels with a result.

    Parameters
    ----------
    kind : str
        What a program can test for: ``"off-equilibrium"``, ``"conditioning"``, ``"directional-derivative"``,
        ``"memory"``, ``"rank"``, ``"conserved-quantity"``, ``"model"``; of a measured model also ``"sampled"``, and
        as mere information ``"held"``, ``"way"``, ``"detour"``, ``"fit"``, ``"order"``, ``"sampling"``, ``"repetition"``.
    message : str
        One sentence or two.
    """

    kind: str
    message: str

    @property
    def is_information(self) -> bool:
        """Whether it says how a result was made, rather than what to beware of."""
        return self.kind in _INFORMATION

    def __str__(self) -> str:
        return self.message
