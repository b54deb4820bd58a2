"""What the user should know about a result: objects with a kind, not printed strings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Remark"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One warning or note that travels with a result.

    Parameters
    ----------
    kind : str
        What a program can test for: ``"off-equilibrium"``, ``"conditioning"``, ``"directional-derivative"``,
        ``"memory"``, ``"rank"``, ``"conserved-quantity"``, ``"model"``.
    message : str
        One sentence or two.
    """

    kind: str
    message: str

    def __str__(self) -> str:
        return self.message
