"""One partition for as many points as it is good for: named, recommended, or found by pivoting and switched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError
from fmilin.models.kane.partition import (
    DOUBTFUL,
    REFUSED,
    ConstraintGradients,
    Dependence,
    Partition,
    dependence,
    pivoted,
)
from fmilin.signals import FloatArray, Signals

__all__ = ["Stretch", "along", "with_named"]

Stretch = tuple[slice, Partition, Dependence]
"""Points in a row, the partition that is used there, and its C_0, C_1, C_2."""


def along(g: ConstraintGradients, scales: FloatArray, recommended: Partition | None) -> Iterator[Stretch]:
    """Yield stretches of points: the recommended partition as long as it is well conditioned, then better ones.

    Raises
    ------
    NumericalError
        When there is no regular choice at a point: constraints depend on each other there.
    """
    start, count, current = 0, len(g.G_c), recommended
    while start < count:
        rest = g[start:count]
        if current is not None:
            C = dependence(rest, current, scales)
            good = _leading(C.condition_number <= DOUBTFUL)
            if good:
                yield slice(start, start + good), current, C[0:good]
                start += good
                continue
        best = pivoted(rest, scales)
        C = dependence(rest[0:1], best, scales)
        if not C.condition_number[0] < REFUSED:
            raise NumericalError(
                "No choice of independent coordinates and speeds is regular at this point (condition number "
                f"{C.condition_number[0]:.3g}): constraints depend on each other here. Choose a point beside it.",
                condition_number=float(C.condition_number[0]),
            )
        if C.condition_number[0] > DOUBTFUL:
            yield slice(start, start + 1), best, C
            start += 1
        current = best


def with_named(g: ConstraintGradients, partition: Partition, states: Signals, scales: FloatArray) -> Stretch:
    """Return the partition that a user named for all points.

    Raises
    ------
    NumericalError
        When it is singular at one of them; with a better choice.
    """
    C = dependence(g, partition, scales)
    bad = np.flatnonzero(~(C.condition_number < REFUSED))
    if not len(bad):
        return slice(0, len(g.G_c)), partition, C
    i = int(bad[0])
    condition = float(C.condition_number[i])
    better = pivoted(g[i : i + 1], scales)
    its = float(dependence(g[i : i + 1], better, scales).condition_number[0])
    names, suggestion = (", ".join(states.names[j] for j in choice.states) for choice in (partition, better))
    raise NumericalError(
        f"The states {names} do not determine the others at this point: the gradient of the constraints is "
        f"singular in the dependent ones (condition number {_figure(condition)}). {suggestion} would (condition number "
        f"{_figure(its)}).",
        condition_number=condition,
    )


def _leading(good: NDArray[np.bool_]) -> int:
    """Return how many are true from the beginning."""
    bad = np.flatnonzero(np.logical_not(good))
    return int(bad[0]) if len(bad) else len(good)


def _figure(value: float) -> str:
    return "infinite" if not np.isfinite(value) else f"{value:.3g}"
