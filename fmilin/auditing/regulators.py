"""Second ways of regulators: the loop closed by their linear model, and run from sample to sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.auditing.estimators import audit_estimator
from fmilin.auditing.filters import audit_kalman_filter
from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.auditing.schedules import audit_schedule
from fmilin.design.regulators import EstimatorRegulator, FunctionRegulator, KalmanRegulator, StateFeedback
from fmilin.design.schedule import Along, Schedule
from fmilin.reduction.transformation import discretize
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_LOOP

SAMPLES = 60  # that a regulator runs
GIVEN_GAIN = "gain: it was given; neither the weights nor the poles that it was designed for are known"


def audit_kalman_regulator(regulator: KalmanRegulator) -> Audit:
    """Return the audit of an LQG regulator: of its filter, its closed loop, and of what it answers."""
    filter_audit = audit_kalman_filter(regulator.filter)
    rows = [*filter_audit.rows, *_compare_closed_loop(regulator), *_compare_answers(regulator)]
    return Audit("regulator", filter_audit.name, tuple(rows), (GIVEN_GAIN, *filter_audit.unchecked))


def audit_function_regulator(regulator: FunctionRegulator) -> Audit:
    """Return the audit of a function, which states no numbers of its own; a schedule along a course is audited."""
    if isinstance(regulator, Along):
        return audit_schedule(regulator.schedule)
    return Audit("regulator", "", (), ("what the function answers: it is the user's", "sample_time: it was given"))


def audit_estimator_regulator(regulator: EstimatorRegulator) -> Audit:
    """Return the audit of a regulator on estimates: of its estimator, and of its law where that has an audit."""
    audit = audit_estimator(regulator.kf)
    law = regulator.law
    if isinstance(law, StateFeedback):
        law_audit = audit_state_feedback(law)
    elif isinstance(law, Schedule):
        law_audit = audit_schedule(law)
    elif isinstance(law, FunctionRegulator):
        law_audit = audit_function_regulator(law)
    else:
        law_audit = Audit("regulator", audit.name, (), ("the law on the estimates: it has no audit",))
    return Audit("regulator", audit.name, (*audit.rows, *law_audit.rows), (*audit.unchecked, *law_audit.unchecked))


def audit_state_feedback(regulator: StateFeedback) -> Audit:
    """Return the audit of a state feedback: the eigenvalues of its closed loop, and what it answers."""
    plant = discretize(regulator._linear, regulator.sample_time)
    columns = [plant.inputs.index_of(name) for name in regulator.drives]
    closed = plant.A - plant.B[:, columns] @ regulator.gain
    radius = float(np.abs(np.linalg.eigvals(closed)).max(initial=0.0))
    rows = [compare_claim("closed loop is stable", "eigenvalues of A - B K", holds=radius < 1)]
    law = regulator.linear_model()
    rng = np.random.default_rng(0)
    y = plant.y0 + rng.standard_normal(len(plant.y0))
    answered, second = regulator.answer(0.0, y), law.D @ (y - law.u0) + law.g0
    size = float(np.abs(regulator.gain).max(initial=0.0)) * np.sqrt(len(y)) + float(np.abs(law.g0).max(initial=0.0))
    rows += [
        compare(f"answer of {name}", float(a), float(b), "linear model of the regulator", 1e-9 * size)
        for name, a, b in zip(regulator.drives, answered, second, strict=True)
    ]
    return Audit("regulator", regulator._linear.model.name, tuple(rows), (GIVEN_GAIN,))


def _compare_closed_loop(regulator: KalmanRegulator) -> Iterator[AuditRow]:
    """Compare the closed loop's eigenvalues with those of the state feedback and of the filter (separation)."""
    from scipy.optimize import linear_sum_assignment

    s, K = regulator.filter.sampled, regulator.gain
    columns = [s.inputs.index_of(name) for name in regulator.drives]
    law = regulator.linear_model()
    n = len(s.A)
    B, D = s.B[:, columns], s.D[:, columns]
    # A measurement at the end of a sample sees the inputs of that sample: they are states of the plant.
    m = B.shape[1] if D.any() else 0
    read = np.hstack([s.C, D[:, :m]])
    plant = np.block([[s.A, np.zeros((n, m))], [np.zeros((m, n + m))]])
    drive = np.vstack([B, np.eye(m, B.shape[1])])
    closed = np.block([[plant + drive @ law.D @ read, drive @ law.C], [law.B @ read, law.A]])
    stated = np.linalg.eigvals(closed)
    parts = [np.linalg.eigvals(s.A - B @ K), np.linalg.eigvals(s.A - s.A @ regulator.filter.gain @ s.C)]
    second = np.concatenate([*parts, np.zeros(len(stated) - 2 * n)])
    yield compare_claim("closed loop is stable", "eigenvalues", holds=bool(np.abs(stated).max(initial=0.0) < 1))
    rows, order = linear_sum_assignment(np.abs(stated[:, None] - second))
    comparisons = [
        compare(f"eigenvalue {i + 1} of the closed loop", stated[i], second[j], "separation principle", AUDITED_LOOP)
        for i, j in zip(rows, order, strict=True)
    ]
    yield from keep_worst(comparisons)


def _compare_answers(regulator: KalmanRegulator) -> Iterator[AuditRow]:
    """Compare what the regulator answers, sample by sample, with its linear model, for measurements by chance."""
    law, plant = regulator.linear_model(), regulator.filter.linear
    rng = np.random.default_rng(0)
    deviations = rng.standard_normal((SAMPLES, len(plant.outputs))) * np.sqrt(np.diag(regulator.filter.R))
    x = np.zeros(len(law.A))
    drift = law.f0
    answered, second = [], []
    regulator.restart()
    for m in deviations:
        u = regulator.answer(0.0, plant.g0 + m)
        regulator.applied(u)
        answered.append(u)
        second.append(law.g0 + law.C @ x + law.D @ m)
        x = law.A @ x + law.B @ m + drift
    regulator.restart()
    yield from _compare_courses(np.array(answered), np.array(second), regulator.drives)


def _compare_courses(answered: FloatArray, second: FloatArray, names: tuple[str, ...]) -> Iterator[AuditRow]:
    size = float(np.abs(second).max(initial=0.0)) or 1.0
    way = "linear model of the regulator"
    comparisons = [
        compare(
            f"{names[j]} at sample {k}",
            float(answered[k, j]),
            float(second[k, j]),
            way,
            1e-9 * size,
        )
        for k, j in np.ndindex(answered.shape)
    ]
    yield from keep_worst(comparisons)
