"""Second ways of regulators: the loop closed by their linear model, and run from sample to sample.

Schedules are designed once more at points of their grid; gains along periodic motions by another integrator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim, compare_covariances, keep_worst
from fmilin.auditing.estimators import audit_estimator, audit_kalman_filter
from fmilin.auditing.motion_audit import audit_periodic_model
from fmilin.design.regulators import EstimatorRegulator, FunctionRegulator, KalmanRegulator, StateFeedback
from fmilin.design.schedule import Schedule, ScheduleAlong
from fmilin.errors import NumericalError
from fmilin.periodic.fourier import Interpolant
from fmilin.reduction.transformation import discretize
from fmilin.report.numbers import values_text
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_LOOP_TOLERANCE, AUDIT_RICCATI_TOLERANCE, AUDITED_GAIN

if TYPE_CHECKING:
    from fmilin.design.periodic_gains import PeriodicGain
    from fmilin.design.schedule import Schedule
    from fmilin.design.schedule_check import ScheduleReport

SAMPLES = 60  # that a regulator runs
GIVEN_GAIN = "gain: given without the weights or poles of its design"


def audit_kalman_regulator(regulator: KalmanRegulator) -> Audit:
    """Return the audit of an LQG regulator: of its filter, its closed loop, and of what it answers."""
    filter_audit = audit_kalman_filter(regulator.filter)
    rows = [*filter_audit.rows, *_compare_closed_loop(regulator), *_compare_answers(regulator)]
    return Audit("regulator", filter_audit.name, tuple(rows), (GIVEN_GAIN, *filter_audit.unchecked))


def audit_function_regulator(regulator: FunctionRegulator) -> Audit:
    """Return the audit of a function, which states no numbers of its own; a schedule along a course is audited."""
    if isinstance(regulator, ScheduleAlong):
        return audit_schedule(regulator.schedule)
    return Audit("regulator", "", (), ("values of the user's function", "sample_time: as given"))


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
        compare(
            f"eigenvalue {i + 1} of the closed loop", stated[i], second[j], "separation principle", AUDIT_LOOP_TOLERANCE
        )
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
        regulator.update_states(u)
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


MAX_POINTS = 20  # of the grid, and of the report, that are compared: designs may be slow
DECAY_RATE_TOLERANCE = 1e-5  # relative to the fastest motion: multiple eigenvalues scatter by a root of rounding
UNCHECKED = "verdicts.uncertainty and verdicts.measured_decay: estimates from neighbouring points of the grid"


def audit_schedule(schedule: Schedule) -> Audit:
    """Return the audit of a schedule: its values at points of the grid, and the decay of its loops."""
    rows = [*_compare_designs(schedule), *_compare_decays(schedule, schedule.report)]
    unchecked = [UNCHECKED]
    if schedule.redesign is None:
        unchecked.insert(
            0,
            "gains against their design: this schedule (a file or a copy) has no rule",
        )
    name = schedule.family.template.model.name
    return Audit("schedule", name, tuple(rows), tuple(unchecked))


def audit_schedule_report(report: ScheduleReport) -> Audit:
    """Return the audit of a report: its numbers are compared with those of its schedule."""
    text = "points and verdicts: a report has no reference to its schedule; audit the schedule"
    return Audit("report of a schedule", ", ".join(report.over), (), (text,))


def _compare_designs(schedule: Schedule) -> Iterator[AuditRow]:
    """Compare what the schedule looks up at points of its grid with the design of that point, made again."""
    if schedule.redesign is None:
        return
    table = schedule.table
    rows: dict[str, list[AuditRow]] = {}
    numbers = np.flatnonzero(table.good)
    step = -(-len(numbers) // MAX_POINTS)
    for number in numbers[::step].tolist():
        values = table.grid.values(number)
        location = values_text(values)
        designed = schedule.redesign(number)
        if isinstance(designed, str):
            raise NumericalError(f"The rule no longer gives a gain at {location}: {designed}")
        stated = schedule.parts.of(table.row(np.array([values[name] for name in schedule.over])))
        for name, second in schedule.parts.of(designed).items():
            if name == ("m0" if schedule.estimates else "y0"):
                second = _move_by_turns(second, stated[name], schedule.measured.turns)  # noqa: PLW2901
            size = AUDITED_GAIN * max(float(np.abs(second).max(initial=0.0)), 1e-12)
            rows.setdefault(name, []).extend(
                compare(f"{name}{list(index)} at {location}", float(stated[name][index]), float(second[index]),
                        "the design of that point made again", size)
                for index in np.ndindex(second.shape)
            )  # fmt: skip
    for comparisons in rows.values():
        yield from keep_worst(comparisons)


def _move_by_turns(values: FloatArray, near: FloatArray, turns: FloatArray) -> FloatArray:
    """Return values of angles by whole turns nearest to others: the schedule goes on beyond half a turn."""
    sizes = np.where(turns > 0, turns, 1.0)
    return np.asarray(values + np.where(turns > 0, np.round((near - values) / sizes) * turns, 0.0))


def _compare_decays(schedule: Schedule, report: ScheduleReport) -> Iterator[AuditRow]:
    """Compare stated decays with the loop that the linear model of the regulator closes around the plant."""
    step = -(-len(report.points) // MAX_POINTS)
    comparisons = []
    for at, verdict in list(zip(report.points, report.verdicts, strict=True))[::step]:
        location = values_text(dict(zip(report.over, at.tolist(), strict=True)))
        second, fastest = _compute_decay(schedule, at)
        quantity = f"verdicts.decay at {location}"
        way = "regulator of the point around the plant"
        comparisons.append(compare(quantity, verdict.decay, second, way, DECAY_RATE_TOLERANCE * fastest))
    yield from keep_worst(comparisons)


def _compute_decay(schedule: Schedule, at: FloatArray) -> tuple[float, float]:
    """Return the decay of the slowest motion of the loop at a point, and the rate of the fastest one, in 1/s."""
    part = schedule.parts.of(schedule.table.row(at))
    law = schedule.linear_model(at)
    A, B = part["A"], part["B"]
    C = part["C"] if schedule.estimates else np.eye(len(A))
    closed = np.block([[A + B @ law.D @ C, B @ law.C], [law.B @ C, law.A]])
    values = np.linalg.eigvals(closed).astype(np.complex128)
    if not schedule.sample_time:
        return float(-values.real.max()), float(np.abs(values).max())
    with np.errstate(divide="ignore"):
        decays = -np.log(np.abs(values)) / schedule.sample_time
    return float(decays.min()), 1 / schedule.sample_time


def audit_periodic_gain(gain: PeriodicGain) -> Audit:
    """Return the audit of a regulator or a filter along a periodic motion: of its equation, gain and closed loop."""
    closed = audit_periodic_model(gain.closed)
    floquet = gain.closed.floquet()
    stable = compare_claim("closed loop is stable", "multipliers of the closed loop", holds=floquet.margin < 0)
    rows = [stable, *_compare_riccati(gain), *_compare_gain(gain), *_compare_loop(gain), *closed.rows]
    return Audit("gain along a periodic motion", closed.name, tuple(rows), closed.unchecked)


def _compare_riccati(gain: PeriodicGain) -> Iterator[AuditRow]:
    """Integrate Riccati's equation from one sample to the next, in the direction in which errors die out."""
    from scipy.integrate import solve_ivp

    equation, S = gain.equation, gain.riccati
    m, P = S.shape[:2]
    A, G, Q = (Interpolant(matrix) for matrix in (equation.A, equation.G, equation.Q))

    def rate(phase: float, y: np.ndarray) -> np.ndarray:
        at = np.array(phase % 1.0)
        X = y.reshape(P, P)
        A_at = A(at) if equation.is_filter else A(at).T
        change = A_at @ X + X @ A_at.T - X @ G(at) @ X + Q(at)
        return np.asarray((change if equation.is_filter else -change) * equation.period).ravel()

    way = "Riccati's equation over a period by DOP853"
    ends = (0.0, 1.0) if equation.is_filter else (1.0, 0.0)
    solution = solve_ivp(
        rate, ends, S[0].ravel(), method="DOP853", t_eval=np.linspace(*ends, m + 1), rtol=1e-9, atol=1e-14
    )
    order = range(m + 1) if equation.is_filter else range(m, -1, -1)
    for k, column in zip(order, solution.y.T, strict=False):
        name = f"{'covariance' if equation.is_filter else 'cost'} at phase {k % m}/{m}"
        matrices = S[k % m], column.reshape(P, P)
        yield from compare_covariances(name, matrices, way, AUDIT_RICCATI_TOLERANCE, gain.closed.states.names)
    residual = equation.compute_residual(S)
    yield compare("residual", gain.residual, residual, "harmonics of the samples", 1e-6 * residual)


def _compare_gain(gain: PeriodicGain) -> list[AuditRow]:
    """Compare the gain with the one that belongs to the solution."""
    second = gain.equation.compute_gain(gain.riccati)
    size = AUDITED_GAIN * float(np.abs(second).max(initial=0.0))
    return keep_worst(
        compare(f"gain[{i}, {j}] at phase {k}/{len(second)}", float(gain.gain[k, i, j]), float(second[k, i, j]),
                "product with the solution", size)
        for k, i, j in np.ndindex(second.shape)
    )  # fmt: skip


def _compare_loop(gain: PeriodicGain) -> list[AuditRow]:
    """Compare the closed loop's A with A - G S, or A - P G, which needs neither the gain nor B and C."""
    equation = gain.equation
    back = gain.riccati @ equation.G if equation.is_filter else equation.G @ gain.riccati
    second = equation.A - back
    size = AUDITED_GAIN * float((np.abs(equation.A) + np.abs(back)).max(initial=0.0))
    return keep_worst(
        compare(f"closed A[{i}, {j}] at phase {k}/{len(second)}", float(gain.closed.A[k, i, j]), float(second[k, i, j]),
                "product with the solution", size)
        for k, i, j in np.ndindex(second.shape)
    )  # fmt: skip
