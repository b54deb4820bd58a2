"""``fl.audit(result)``: which second ways there are for which kind of result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any

from fmilin.auditing.result import Audit
from fmilin.ground import UsageError

if TYPE_CHECKING:
    from fmilin.model import Model

AUDITED = (
    "linear models, families, margins, Kalman filters, estimators, regulators, gains along motions, orbits, periodic "
    "models, charts and points"
)


def audit(result: Any, *, model: Model | None = None) -> Audit:
    """Return every number of a result beside the same number by a second, independent computation.

    Raises UsageError when there is no audit for this kind of result, or a point comes without its model.

    Parameters
    ----------
    result : LinearModel, LinearFamily, Margins, KalmanFilter, Estimator, regulator, PeriodicGain, PeriodicOrbit, \
PeriodicModel, Floquet, chart of many motions or TrimmedPoint
        A linear model of :func:`fmilin.loop_transfer` is audited with its margins.
    model : Model, optional
        That the result was made from, with the parameters of its point. Linear models and those of families are then
        compared with plain central differences, too; points need it.

    Returns
    -------
    Audit
        ``rows`` with ``quantity``, ``stated``, ``second_way``, ``difference`` and ``agrees``; ``ok``.
    """
    if model is None:
        return _load_audits()(result, None)
    from fmilin.model import one_at_a_time

    @one_at_a_time
    def audit_with_model(model: Model) -> Audit:
        return _load_audits()(result, model)

    return audit_with_model(model)


@cache
def _load_audits() -> Callable[[Any, Model | None], Audit]:
    """Return the function of a result and its model that chooses the audit; the kinds are imported here, once."""
    from fmilin.auditing.charts import audit_chart
    from fmilin.auditing.estimators import audit_estimator
    from fmilin.auditing.filters import audit_kalman_filter
    from fmilin.auditing.linear import audit_linear_model
    from fmilin.auditing.loops import audit_margins
    from fmilin.auditing.many import audit_family
    from fmilin.auditing.motions import audit_floquet, audit_orbit, audit_periodic_model
    from fmilin.auditing.periodic_gains import audit_periodic_gain
    from fmilin.auditing.points import audit_point
    from fmilin.auditing.regulators import audit_estimator_regulator, audit_kalman_regulator, audit_state_feedback
    from fmilin.design.estimation.estimator import Estimator
    from fmilin.design.kalman import KalmanFilter
    from fmilin.design.margins import Margins
    from fmilin.design.periodic_gains import PeriodicGain
    from fmilin.design.regulators import EstimatorRegulator, KalmanRegulator, StateFeedback
    from fmilin.families.family import LinearFamily
    from fmilin.families.periodic.chart import FloquetChart
    from fmilin.families.periodic.model import PeriodicModel
    from fmilin.families.periodic.orbit import PeriodicOrbit
    from fmilin.linear_model.model import LinearModel
    from fmilin.model import OperatingPoint
    from fmilin.motion.periodic.floquet import Floquet

    @singledispatch
    def choose(result: Any, model: Model | None) -> Audit:  # noqa: ARG001 - as of the kinds below
        raise UsageError(f"There is no audit of an object of the type '{type(result).__name__}': it takes {AUDITED}.")

    choose.register(LinearModel, audit_linear_model)
    choose.register(OperatingPoint, audit_point)
    choose.register(LinearFamily, audit_family)
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
