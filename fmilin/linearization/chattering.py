"""Whether a hybrid model switches without end at a point: no linear model belongs to it there, on neither side."""

from __future__ import annotations

from fmilin.ground.errors import FmilinError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Hybrid

AHEAD = 1e-6  # seconds that the model is followed, times the size of its time


def chattering_at(model: Model, point: OperatingPoint) -> str:
    """Return a sentence when events at the point never end, else nothing; the model ends in the mode of its start."""
    if not isinstance(model, Hybrid):
        return ""
    import numpy as np

    from fmilin.motion.simulation.integration_loop import ChatteringError
    from fmilin.motion.simulation.run import RunRequest, simulate_at

    ahead = AHEAD * max(abs(point.time), 1.0)
    try:
        simulate_at(model, point, np.array([point.time, point.time + ahead]), RunRequest(stabilization="none"))
    except ChatteringError:
        return (
            f"The model chatters at the point (t = {point.time:g} s): events follow each other without end, because "
            "the motion on either side of a switch leads back to it. There is no linear model of either side that "
            "the motion keeps. Move the point away from the switch, stay in the present mode with --hold-modes "
            "(hold_modes=True in Python), or replace the ideal switch by a smooth one in the model."
        )
    except FmilinError:
        return ""
    finally:
        model.restart()
    return ""
