"""What is asked of a linearization, checked once: before a model is opened, and before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.formulations.formulation import Formulation
    from fmilin.model.stepping import Stepping
    from fmilin.numerics.differences.differences import Differences


@dataclass(frozen=True, slots=True)
class Request:
    """How a model is linearized at a point: the options of :func:`fmilin.linearize`, where they are explained."""

    independent: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    coordinates: str = "partition"
    derivatives: str | Differences = "auto"
    at_singularity: bool = False
    stepping: Stepping | None = None
    formulation: str | Formulation | None = None
    descriptor: bool = False
    keep_inaccurate: bool = False
    hold_modes: bool = False
    seek_steady: bool = True  # whether a moving point is asked for coordinates in which its motion is steady
    differentiated_by: Sequence[str] = ()  # parameters by which the linear model is differentiated

    def __post_init__(self) -> None:
        if self.coordinates != "partition":
            from fmilin.manifold.selection import require_kind

            require_kind(self.coordinates)
        if self.derivatives not in ("auto", "exact", "differences"):
            from fmilin.numerics.differences.differences import Differences

            if not isinstance(self.derivatives, Differences):
                raise UsageError(f"'{self.derivatives}' is no way to take derivatives: use auto, exact or differences.")
        if self.descriptor and getattr(self.derivatives, "side", None) is not None:
            raise UsageError(
                "A descriptor system has the equations as they are written, with both branches of a kink: ask for "
                "one-sided slopes or for the descriptor system."
            )
        of_its_own = self.coordinates != "partition" or self.derivatives not in ("auto", "exact") or self.stepping
        if self.formulation is not None and of_its_own:
            raise UsageError(
                "A formulation takes exact slopes and coordinates of its own: leave the other choices out."
            )
