"""The checks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fmilin.ground.errors import FmilinError
from fmilin.loading.testing import evaluations, slopes
from fmilin.loading.testing.subject import ModelCheckError, Subject
from fmilin.manifold.operating_points import operating_point
from fmilin.model.interface import Model, OperatingPoint

__all__ = ["ModelCheckError", "check_model"]

Check = Callable[[Subject], bool | None]
"""Returns False when it does not concern the model."""

_ANYWHERE: dict[str, Check] = {
    "shapes": evaluations.shapes,
    "arguments": evaluations.arguments,
    "memory": evaluations.memory,
}
"""What must hold before a consistent point can be looked for."""

_AT_POINT: dict[str, Check] = {
    "copies": evaluations.copies,
    "interface": evaluations.interface,
    "constraints": slopes.constraints,
    "products": slopes.products,
    "structure": slopes.structure,
    "derivatives": slopes.derivatives,
    "batches": evaluations.batches,
}


def check_model(
    model: Model, point: OperatingPoint | None = None, *, tolerance: float = 1e-6, seed: int = 0
) -> list[str]:
    """Check everything that fmilin relies on, at one point and beside it.

    Shapes; arguments left as they are; no memory from call to call; copies of states and inputs; chosen interfaces;
    the constraints hold at the point, the motion keeps them, and inputs do not break them; exact products are linear,
    and equal differences of the values; the declared structure; many points at once equal one after the other; the
    linear model from exact products equals that from differences.

    ``point``: consistent; where the model starts by default, projected. ``tolerance``: what differences may differ by
    from exact derivatives, relative to the largest entry of the same row. Returns names of the promises that were
    checked; those that do not concern this model are left out.
    """
    random = np.random.default_rng(seed)
    done = _checked(_ANYWHERE, Subject(model, model.start if point is None else point, random, tolerance))
    try:
        point = operating_point(model, project=True) if point is None else point
    except FmilinError as error:
        raise ModelCheckError(f"The model '{model.info.name}' has no consistent start: {error}") from error
    return done + _checked(_AT_POINT, Subject(model, point, random, tolerance))


def _checked(checks: Mapping[str, Check], subject: Subject) -> list[str]:
    done = []
    for name, check in checks.items():
        try:
            concerns = check(subject)
        except FmilinError as error:
            what = f"The model '{subject.model.info.name}' fails while its {name} are checked"
            raise ModelCheckError(f"{what}: {error}") from error
        if concerns is not False:
            done.append(name)
    return done
