"""Linear models along a given path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fmilin.families.family import LinearFamily
from fmilin.families.gathering import family_of
from fmilin.linearization.procedure import linearize_next
from fmilin.linearization.request import Request
from fmilin.manifold.selection import Selection
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.differences.differences import Differences

__all__ = ["linearize_along"]


def linearize_along(
    model: Model,
    points: Iterable[OperatingPoint],
    *,
    independent: Sequence[str] | None = None,
    coordinates: str = "partition",
    derivatives: str | Differences = "auto",
    descriptor: bool = False,
    keep_inaccurate: bool = False,
) -> LinearFamily:
    """Return one linear model per point of a path, in coordinates that do not jump.

    A partition is kept as long as it is well conditioned; a switch is a remark of kind
    ``"coordinates-switched"``. Tangent coordinates are carried on smoothly.

    Parameters
    ----------
    model : Model
    points : iterable of OperatingPoint
        Consistent, in the order of the path; at least one.
    independent, coordinates, derivatives, descriptor, keep_inaccurate
        As in :func:`fmilin.linearize`.

    Returns
    -------
    LinearFamily
        Over the time where it differs from point to point, else over the number of the point.

    Raises
    ------
    FmilinError
        As :func:`fmilin.linearize`, at the first point that fails.
    """
    request = Request(
        independent,
        coordinates=coordinates,
        derivatives=derivatives,
        descriptor=descriptor,
        keep_inaccurate=keep_inaccurate,
    )
    previous: Selection | None = None
    found = []
    for point in points:
        linear, previous = linearize_next(model, point, request, previous)
        found.append(linear)
    return family_of(found)
