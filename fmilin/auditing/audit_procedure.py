"""``fl.audit(result)``: chooses the second methods for each kind of result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any

from fmilin.auditing.audit_result import Audit
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model

AUDITED = (
    "linear models, descriptor systems, uncertain models, families, margins, Kalman filters, estimators, filtered "
    "data, regulators, schedules, tuned and placed parameters, gains along motions, orbits, periodic models, charts, "
    "points, trajectories, frequency responses, Monte Carlo studies and Lyapunov exponents"
)


def audit(result: object, *, model: Model | None = None) -> Audit:
    """Compute every number of a result by a second, independent method, and compare.

    Raises UsageError when there is no audit for this kind of result, or a point comes without its model.

    Parameters
    ----------
    result : LinearModel, LinearFamily, Margins, KalmanFilter, Estimator, regulator, Schedule, PeriodicOrbit, \
TrimmedPoint, Trajectory or another result
        A linear model of :func:`fmilin.loop_transfer` is audited with its margins. ``unchecked`` names the numbers of
        a result that have no second method.
    model : Model, optional
        That the result was made from, with the parameters of its point. Linear models, those of families and designs,
        derivatives by parameters and trajectories are then compared with it, too; points need it.

    Returns
    -------
    Audit
        ``rows`` with ``quantity``, ``stated``, ``second_way``, ``difference`` and ``agrees``; ``ok``.
    """
    if model is None:
        return _load_audits()(result, None)
    from fmilin.model.locks import one_at_a_time

    @one_at_a_time
    def audit_with_model(model: Model) -> Audit:
        return _load_audits()(result, model)

    return audit_with_model(model)


@cache
def _load_audits() -> Callable[[Any, Model | None], Audit]:  # noqa: PLR0915 - a line for each kind of result
    """Return the function of a result and its model that chooses the audit; the kinds are imported here, once."""
    from fmilin.auditing.courses import (
        audit_exponents,
        audit_filtered,
        audit_frequency_response,
        audit_monte_carlo,
        audit_trajectory,
    )
    from fmilin.auditing.design_audit import audit_identified_parameters, audit_placed_modes, audit_tuned
    from fmilin.auditing.estimators import audit_estimator, audit_kalman_filter
    from fmilin.auditing.families import audit_family, audit_uncertain
    from fmilin.auditing.linear_model_audit import audit_descriptor, audit_linear_model
    from fmilin.auditing.loop_audit import audit_margins
    from fmilin.auditing.motion_audit import audit_chart, audit_floquet, audit_orbit, audit_periodic_model
    from fmilin.auditing.point_audit import audit_point
    from fmilin.auditing.regulator_audit import (
        audit_estimator_regulator,
        audit_function_regulator,
        audit_kalman_regulator,
        audit_periodic_gain,
        audit_schedule,
        audit_schedule_report,
        audit_state_feedback,
    )
    from fmilin.design.estimation.consistency import Filtered
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.design.frequency_response import FrequencyResponse
    from fmilin.design.kalman import KalmanFilter
    from fmilin.design.margins import Margins
    from fmilin.design.monte_carlo import MonteCarlo
    from fmilin.design.periodic_gains import PeriodicGain
    from fmilin.design.placing import IdentifiedParameters, PlacedModes
    from fmilin.design.regulators import EstimatorRegulator, FunctionRegulator, KalmanRegulator, StateFeedback
    from fmilin.design.schedule import Schedule
    from fmilin.design.schedule_check import ScheduleReport
    from fmilin.design.tuning import Tuned
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.descriptor import Descriptor
    from fmilin.linear_model.model import LinearModel
    from fmilin.lyapunov import LyapunovExponents
    from fmilin.model.interface import OperatingPoint
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.floquet import Floquet
    from fmilin.periodic.orbit import PeriodicOrbit
    from fmilin.periodic.periodic_model import PeriodicModel
    from fmilin.simulation.trajectory import Trajectory
    from fmilin.trimming.uncertainty import Uncertain

    @singledispatch
    def choose(result: Any, model: Model | None) -> Audit:  # noqa: ARG001 - as of the kinds below
        raise UsageError(f"There is no audit of an object of the type '{type(result).__name__}'. It takes {AUDITED}.")

    choose.register(LinearModel, audit_linear_model)
    choose.register(OperatingPoint, audit_point)
    choose.register(LinearFamily, audit_family)
    choose.register(Uncertain, audit_uncertain)
    choose.register(PlacedModes, audit_placed_modes)
    choose.register(IdentifiedParameters, audit_identified_parameters)
    choose.register(Trajectory, audit_trajectory)
    choose.register(Descriptor, _without_model(audit_descriptor))
    choose.register(Schedule, _without_model(audit_schedule))
    choose.register(ScheduleReport, _without_model(audit_schedule_report))
    choose.register(Tuned, _without_model(audit_tuned))
    choose.register(Filtered, _without_model(audit_filtered))
    choose.register(FrequencyResponse, _without_model(audit_frequency_response))
    choose.register(MonteCarlo, _without_model(audit_monte_carlo))
    choose.register(LyapunovExponents, _without_model(audit_exponents))
    choose.register(FunctionRegulator, _without_model(audit_function_regulator))
    choose.register(Margins, _without_model(audit_margins))
    choose.register(KalmanFilter, _without_model(audit_kalman_filter))
    choose.register(Estimator, _without_model(audit_estimator))
    choose.register(PeriodicGain, _without_model(audit_periodic_gain))
    choose.register(KalmanRegulator, _without_model(audit_kalman_regulator))
    choose.register(StateFeedback, _without_model(audit_state_feedback))
    choose.register(EstimatorRegulator, _without_model(audit_estimator_regulator))
    choose.register(PeriodicOrbit, _without_model(audit_orbit))
    choose.register(PeriodicModel, _without_model(audit_periodic_model))
    choose.register(Floquet, _without_model(audit_floquet))
    choose.register(FloquetChart, _without_model(audit_chart))
    return choose


def _without_model(audit_result: Callable[[Any], Audit]) -> Callable[[Any, Model | None], Audit]:
    """Return the audit of a kind of result that has all it needs."""

    def call(result: Any, model: Model | None) -> Audit:  # noqa: ARG001
        return audit_result(result)

    return call
