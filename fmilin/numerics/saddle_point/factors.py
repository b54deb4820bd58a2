"""What a matrix taken apart can do, and what is said when it is singular: the same for all members of this room.

    W w = r:   [ M  G' ] [   v'   ]   [ b1 ]        b1 = F, b2 = -Gdot v
               [ G  0  ] [ lambda ] = [ b2 ]

Members: :class:`~fmilin.numerics.saddle_point.null_space.NullSpaceFactors`, at one point or many, also where rows of G
depend on each other; :class:`~fmilin.numerics.saddle_point.dense.DenseFactors` for any square W, at one point or many;
:class:`~fmilin.numerics.saddle_point.sparse.SparseFactors` for large ones; and
:class:`~fmilin.numerics.saddle_point.null_space.MultiplierFactors`, the classical way to compare with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import SINGULAR

__all__ = ["Factors", "is_singular", "require_regular", "singular"]

SHOWN = 6
"""Names of undetermined unknowns in a message."""


class Factors(Protocol):
    """A matrix W (k, k), taken apart so that W w = r can be solved many times; some members take stacks (..., k, k)."""

    @property
    def rcond(self) -> float | FloatArray:
        """Reciprocal condition number of what is inverted, for each matrix; NaN where W holds a NaN."""

    @property
    def is_singular(self) -> bool | NDArray[np.bool_]:
        """Whether w is not determined, for each matrix; False where W holds a NaN."""

    def solve(self, right: FloatArray) -> FloatArray:
        """Return w for r = ``right``, shape (k,) or (k, j), or (..., k, j) for stacks; NaN where W holds a NaN."""

    def null_vector(self) -> FloatArray | None:
        """Return the direction of w, (k,), that is least determined, for a single matrix; None when not known."""


def is_singular(rcond: float | FloatArray) -> bool | NDArray[np.bool_]:
    """Whether a matrix with this reciprocal condition number, scaled, is singular to working precision."""
    found = rcond <= SINGULAR
    return found if isinstance(found, np.ndarray) else bool(found)


def require_regular(
    factors: Factors, subject: str, unknowns: Sequence[object] = (), when: str = "at this point"
) -> None:
    """Refuse a singular matrix, in the words of :func:`singular`."""
    found = factors.is_singular
    if found.any() if isinstance(found, np.ndarray) else found:
        raise singular(float(np.nanmin(factors.rcond)), subject, unknowns, when, factors.null_vector())


def singular(
    rcond: float,
    subject: str,
    unknowns: Sequence[object] = (),
    when: str = "at this point",
    direction: FloatArray | None = None,
) -> NumericalError:
    """Return the error that says of a singular matrix which unknowns it leaves open.

    ``subject``: what has no unique solution, in the plural: "The equations of 'crane'". ``unknowns``: names, or
    symbols, of the entries of w, or none. ``direction`` (len(unknowns),): the direction of w that is not determined.
    """
    loose: list[str] = []
    if direction is not None and len(unknowns):
        order = np.argsort(-np.abs(direction), kind="stable")
        loose = [str(unknowns[i]) for i in order if abs(direction[i]) > 1e-6 * np.abs(direction).max()]
    shown = ", ".join(loose[:SHOWN]) + (", ..." if len(loose) > SHOWN else "")
    return NumericalError(
        f"{subject} have no unique solution {when}: the matrix that multiplies the unknown rates and multipliers is "
        f"singular (reciprocal condition number {rcond:.1e}){f' and leaves {shown} undetermined' if loose else ''}. "
        "Constraints depend on each other here, a motion that they leave free moves no mass, or angles meet their "
        "singularity: choose another point, drop the redundant constraints, or add the mass.",
        condition_number=1.0 / rcond if rcond > 0 else float("inf"),
        variable=loose[0] if loose else None,
    )
