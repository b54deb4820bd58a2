"""What the user should know about a point that was solved for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.ground.errors import FmilinError, ModelCrashError
from fmilin.ground.remarks import Remark
from fmilin.points.equations import Equations
from fmilin.points.result import TrimReport
from fmilin.points.unknowns import Place

__all__ = ["remarks_on"]


def remarks_on(equations: Equations, place: Place, report: TrimReport, restless: Sequence[str]) -> list[Remark]:
    """Return what the user should know.

    ``restless``: states that should rest and were seen to move when the motion was followed.
    """
    found = []
    if restless:
        found.append(
            Remark(
                "unsteady",
                f"Followed for a while, the motion does not stay steady: {', '.join(restless)} should rest and "
                f"{'does' if len(restless) == 1 else 'do'} not. This is a steady motion at this instant only.",
            )
        )
    if not report.exact:
        found.append(
            Remark(
                "rounding",
                f"The largest residual is {report.residual:.2g} instead of 1e-10 (in sizes of the states per second): "
                "the model's own noise or rounding allows no better.",
            )
        )
    if report.free_directions:
        leaders = ", ".join(d.name for d in report.free_directions)
        found.append(
            Remark(
                "family",
                f"The solution is one of a family: {leaders} may have other values. Those nearest to the guess were "
                "taken; fix them to choose (--fix NAME=VALUE).",
            )
        )
    later = _later(equations, place)
    if later is not None and not report.moving and later > max(100 * report.residual, 1e-7):
        found.append(
            Remark(
                "time",
                f"The model depends on time: this is an equilibrium at t = {place.time:g} s only; rates are back at "
                f"{later:.2g} of the states' sizes per second soon after.",
            )
        )
    return found


def _later(equations: Equations, place: Place) -> float | None:
    """Return the largest rate at the same states a little later; None where the model cannot be asked."""
    try:
        f = place.model.evaluate(place.time + 1e-2, place.states, place.inputs).derivatives
    except ModelCrashError:
        raise
    except FmilinError:
        return None
    largest = float(np.max(np.abs(f) / equations.state_scales, initial=0.0))
    return largest if np.isfinite(largest) else None
