"""Options for models that bring their own solver, co-simulation FMUs above all."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.stepping import Stepping

__all__ = ["Interface", "Way", "stepping_of"]


class Interface(StrEnum):
    """Which interface of an FMU is used."""

    ME = "me"
    CS = "cs"


class Way(StrEnum):
    """How a linear model of a stepped model is made."""

    AUTO = "auto"
    DIRECT = "direct"
    STEP = "step"
    RESPONSE = "response"
    MULTISINE = "multisine"


def stepping_of(way: Way, step: float | None, order: int | None, *, lifted: bool) -> Stepping | None:
    """Return what was asked for; None when nothing was.

    Raises
    ------
    UsageError
        When a number is not positive, or the options contradict each other.
    """
    if way is Way.AUTO and step is None and order is None and not lifted:
        return None
    if order is not None and way in (Way.DIRECT, Way.STEP):
        raise UsageError(
            f"--order is for models identified from responses, --way {way.value} has the order of the FMU."
        )
    from fmilin.model.stepping import Stepping

    return Stepping(way=way.value, step=step, lifted=lifted, order=order)
