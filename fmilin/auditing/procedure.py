"""``fl.audit(result)``: which second ways there are for which kind of result."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from fmilin.auditing.filters import audit_estimator, audit_kalman_filter, audit_periodic_gain
from fmilin.auditing.linear import audit_linear_model
from fmilin.auditing.loops import audit_margins
from fmilin.auditing.many import audit_family
from fmilin.auditing.motions import audit_floquet, audit_orbit, audit_periodic_model
from fmilin.auditing.points import audit_point
from fmilin.auditing.regulators import audit_estimator_regulator, audit_kalman_regulator, audit_state_feedback
from fmilin.auditing.result import Audit
from fmilin.design.estimation.estimator import Estimator
from fmilin.design.kalman import KalmanFilter
from fmilin.design.margins import Margins
from fmilin.design.periodic_gains import PeriodicGain
from fmilin.design.regulators import EstimatorRegulator, KalmanRegulator, StateFeedback
from fmilin.families.family import LinearFamily
from fmilin.families.periodic.model import PeriodicModel
from fmilin.families.periodic.orbit import PeriodicOrbit
from fmilin.ground import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model import Model, OperatingPoint, one_at_a_time
from fmilin.motion.periodic.floquet import Floquet

AUDITED = "linear models, families, margins, Kalman filters, estimators, regulators, orbits, periodic models and points"


def audit(result: Any, *, model: Model | None = None) -> Audit:
    """Return every number of a result beside the same number by a second, independent computation.

    Raises UsageError when there is no audit for this kind of result, or a point comes without its model.

    Parameters
    ----------
    result : LinearModel, LinearFamily, Margins, KalmanFilter, Estimator, regulator, PeriodicOrbit, PeriodicModel, \
Floquet or TrimmedPoint
        A linear model of :func:`fmilin.loop_transfer` is audited with its margins.
    model : Model, optional
        That the result was made from, with the parameters of its point. Linear models are then compared with plain
        central differences, too; points need it.

    Returns
    -------
    Audit
        ``rows`` with ``quantity``, ``stated``, ``second_way``, ``difference`` and ``agrees``; ``ok``.
    """
    if model is None:
        return _audit(result, None)
    return _audit_beside(model, result)


@one_at_a_time
def _audit_beside(model: Model, result: Any) -> Audit:
    return _audit(result, model)


@singledispatch
def _audit(result: Any, model: Model | None) -> Audit:  # noqa: ARG001 - as of the kinds below
    raise UsageError(f"There is no audit of an object of the type '{type(result).__name__}': it takes {AUDITED}.")


def _without_model(audit_result: Callable[[Any], Audit]) -> Callable[[Any, Model | None], Audit]:
    """Return the audit of a kind of result that has all it needs."""

    def call(result: Any, model: Model | None) -> Audit:  # noqa: ARG001
        return audit_result(result)

    return call


_audit.register(LinearModel, audit_linear_model)
_audit.register(OperatingPoint, audit_point)
_audit.register(LinearFamily, _without_model(audit_family))
_audit.register(Margins, _without_model(audit_margins))
_audit.register(KalmanFilter, _without_model(audit_kalman_filter))
_audit.register(Estimator, _without_model(audit_estimator))
_audit.register(PeriodicGain, _without_model(audit_periodic_gain))
_audit.register(KalmanRegulator, _without_model(audit_kalman_regulator))
_audit.register(StateFeedback, _without_model(audit_state_feedback))
_audit.register(EstimatorRegulator, _without_model(audit_estimator_regulator))
_audit.register(PeriodicOrbit, _without_model(audit_orbit))
_audit.register(PeriodicModel, _without_model(audit_periodic_model))
_audit.register(Floquet, _without_model(audit_floquet))
