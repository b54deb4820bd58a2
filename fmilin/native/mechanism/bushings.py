"""Bushings: springs and dampers in all six directions between frames on two bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fmilin.ground.errors import ModelError
from fmilin.ground.tolerances import SYMMETRIC
from fmilin.native.mechanism.parts import check_name
from fmilin.native.mechanism.placement import ORIGIN, Placement


@dataclass(frozen=True)
class Bushing:
    """A six-axis spring and damper between frames of two bodies, without force where both coincide.

    >>> mount = Bushing("mount", "ground", "engine", stiffness=(2e5, 2e5, 4e5, 900, 900, 500), damping=np.eye(6))
    >>> np.array(mount.stiffness).shape
    (6, 6)
    """

    name: str
    # first, second: bodies; one may be the ground
    first: str
    second: str
    # first_placement, second_placement: in the frames of the two bodies
    first_placement: Placement = ORIGIN
    second_placement: Placement = ORIGIN
    # stiffness, damping: 6 floats or 6 x 6, symmetric, along and about x, y, z of the first frame: force then torque
    # by deflection then rotation, in N/m, N/rad, N m/rad, ...
    stiffness: Any = 0.0
    damping: Any = 0.0

    def __post_init__(self) -> None:
        where = check_name(self, "bushing")
        for what in ("stiffness", "damping"):
            object.__setattr__(self, what, _symmetric(getattr(self, what), f"The {what} of {where}"))


def _symmetric(given: Any, what: str) -> tuple[tuple[float, ...], ...]:
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.full(1, np.nan)
    if matrix.ndim == 0 and not matrix:
        matrix = np.zeros(6)
    matrix = np.diag(matrix) if matrix.shape == (6,) else matrix
    if matrix.shape != (6, 6) or not np.isfinite(matrix).all():
        raise ModelError(f"{what} must be 6 numbers or 6 x 6, not {given!r}.")
    if np.abs(matrix - matrix.T).max() > SYMMETRIC * np.abs(matrix).max():
        raise ModelError(f"{what} is not symmetric.")
    return tuple(tuple(row) for row in ((matrix + matrix.T) / 2).tolist())
