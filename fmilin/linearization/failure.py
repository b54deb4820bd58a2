"""Why a linearization failed: the reason behind an error."""

from __future__ import annotations

import numpy as np

from fmilin.errors import ConstraintError, FmilinError, NumericalError
from fmilin.manifold.checks.context import ExaminedPoint
from fmilin.manifold.frame import CoordinateChoice
from fmilin.manifold.rank import describe_singularity
from fmilin.manifold.verified_frame import require_frame
from fmilin.model.capabilities import can_be_described
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Hybrid
from fmilin.numerics.differences.differences import EventCrossingError


def find_failed_check(error: FmilinError, at: ExaminedPoint, choice: CoordinateChoice) -> FmilinError:
    """Return the error of the first check of what could be computed; the error of the computation if all pass."""
    try:
        require_frame(at.evaluator, at.point, at.facts, choice)
    except FmilinError as failed:
        return failed
    if isinstance(error, EventCrossingError) and (chattering := describe_chattering(at.model, at.point)):
        return NumericalError(chattering)
    return error


def explain_failure(error: FmilinError, model: Model, point: OperatingPoint) -> FmilinError:
    """Return an error that names the cause: a singular configuration, or coefficients that cancel but for rounding."""
    if singular := describe_singularity(model, point):
        return NumericalError(singular)
    if isinstance(error, ConstraintError) and can_be_described(model):
        from fmilin.formulations.descriptor_system import explain_lost_invariants

        return explain_lost_invariants(error, model) or error
    return error


LOOKAHEAD_SECONDS = 1e-6  # seconds that the model is followed, times the size of its time


def describe_chattering(model: Model, point: OperatingPoint) -> str:
    """Return a sentence when events at the point never end, else nothing; the model ends in the mode of its start."""
    if not isinstance(model, Hybrid):
        return ""
    from fmilin.simulation.integration_loop import ChatteringError
    from fmilin.simulation.run import RunRequest, simulate_at_times

    ahead = LOOKAHEAD_SECONDS * max(abs(point.time), 1.0)
    try:
        simulate_at_times(model, point, np.array([point.time, point.time + ahead]), RunRequest(stabilization="none"))
    except ChatteringError:
        return (
            f"The model chatters at the point (t = {point.time:g} s): events repeat without end, because the motion "
            "on either side of a switch leads back to it. No linear model of one side describes the motion. Move the "
            "point away from the switch, keep the present mode with hold_modes=True, or replace the ideal switch by a "
            "smooth one in the model."
        )
    except FmilinError:
        return ""
    finally:
        model.restart()
    return ""
