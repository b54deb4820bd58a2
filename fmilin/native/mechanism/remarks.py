"""What a user should know about the constraints of a mechanism, in sentences."""

from __future__ import annotations

from fmilin.native.mechanism.independence import Independence
from fmilin.native.mechanism.system import System

__all__ = ["redundant_remarks", "rest_remarks", "vanishing_remarks"]


def rest_remarks(system: System) -> tuple[str, ...]:
    """Say that nothing can move."""
    if system.tree.n:
        return ()
    return ("Nothing can move, all joints are fixed: the model has no states and its order is 0.",)


def vanishing_remarks(found: Independence) -> tuple[str, ...]:
    """Say which constraints hold by themselves."""
    if not found.vanishing:
        return ()
    loops = ", ".join(dict.fromkeys(of for of, _ in found.vanishing))
    return (
        f"{len(found.vanishing)} of the {found.total} constraints hold by themselves (in {loops}): the other joints "
        "keep the links in a plane, say. They are left out of the equations, the motion does not depend on them, and "
        "their reactions are not determined.",
    )


def redundant_remarks(system: System, found: Independence) -> tuple[str, ...]:
    """Say which constraints follow from the others."""
    dependent = [loop.of for i, loop in enumerate(system.loop_constraints) if i not in found.all]
    if not dependent:
        return ()
    return (
        f"{len(dependent)} of the {found.total} constraints are redundant (seen in "
        f"{', '.join(dict.fromkeys(dependent))}): they follow from the others and were left out of the equations. "
        "The motion does not depend on that; how redundant constraints share their load is not determined.",
    )
