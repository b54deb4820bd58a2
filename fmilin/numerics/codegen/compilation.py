"""When code is compiled: as soon as the work asked for outweighs the compiler, the same rule for whoever asks.

Work and prices are counted in evaluations and instructions, in seconds that these took where they were measured, and
not by a clock: the same calls change over at the same point and give the same numbers, whatever else the machine does.
"""

from __future__ import annotations

SECONDS_PER_INSTRUCTION = 3e-9  # what the virtual machine takes; compiled code takes about a fifth
COMPILING = 1.3e-4  # seconds of a compiler for each instruction
STARTING = 0.1  # seconds that a compiler takes for nothing
PRINTING = 2e-5  # seconds in which an instruction becomes C text
TRACING = 2e-4  # seconds in which equations are written down as a graph, for each pair of states


class CompilationBudget:
    """How long slower code works before quicker code is made: as long as making it takes (ski rental's rule)."""

    def __init__(self, evaluation: float, price: float) -> None:
        self._evaluation = evaluation  # seconds of the slower code
        self._left = price / evaluation  # evaluations

    @classmethod
    def of_graph(cls, instructions: int) -> CompilationBudget:
        """Return the budget of a graph that a virtual machine computes."""
        return cls(max(instructions, 1) * SECONDS_PER_INSTRUCTION, compiler_seconds(instructions))

    @classmethod
    def of_equations(cls, evaluation: float, states: int) -> CompilationBudget:
        """Return the budget for a graph of equations of so many states; what the compiler takes is to be added."""
        return cls(evaluation, TRACING * states**2)

    def add(self, seconds: float) -> None:
        """Add to the price: more is known of what is to be made."""
        self._left += seconds / self._evaluation

    def is_spent_by(self, points: int, *, ahead: int = 0) -> bool:
        """Count evaluations; return whether quicker code pays, for these or for those that are certain to come."""
        self._left -= points
        return self._left < ahead


def compiler_seconds(instructions: int) -> float:
    """Return how long a compiler takes."""
    return STARTING + max(instructions, 1) * COMPILING
