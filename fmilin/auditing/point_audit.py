"""Second ways of trimmed points: the model's rates there, its constraints, and the next step of Newton's method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.auditing.linear_model_audit import compare_spectrum
from fmilin.errors import FmilinError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_RATES, AUDITED_STEP, START_GAP_TOLERANCE
from fmilin.trimming.trim_report import TrimmedPoint

UNCHECKED = (
    "time: nothing else in the point determines it",
    "adjusted: how far the search has moved the states",
    "fixed inputs and parameters: as given",
)
UNCHECKED_REPORT = (
    "report.certificate.regularity: a ratio of singular values depends on how the equations are scaled",
    "report.certificate.distance: bounds; the Newton step is the second way",
    "report.stability.errors, report.stability.groups and report.instability.errors: estimates, which decide the "
    "verdict on stability",
    "report.free_directions, report.changes, report.preferred, report.multipliers, report.targets and report.missed: "
    "trim again from a displaced guess",
)


def audit_point(point: OperatingPoint, model: Model | None) -> Audit:
    """Return the audit of an operating point or a trimmed one."""
    if model is None:
        raise UsageError("A point has no reference to its model: fl.audit(point, model=model).")
    changed_model = model.with_parameters(point.parameters) if point.parameters else model
    rows = list(_compare_constraints(point, changed_model))
    if isinstance(point, TrimmedPoint):
        rows += _compare_rates(point, changed_model)
        rows += _compare_newton_step(point, changed_model)
    if not isinstance(point, TrimmedPoint):
        return Audit("operating point", model.info.name, tuple(rows), UNCHECKED)
    return Audit("trimmed point", model.info.name, tuple(rows), (*UNCHECKED, *UNCHECKED_REPORT))


def _compare_constraints(point: OperatingPoint, model: Model) -> Iterator[AuditRow]:
    """Compare the point with the declared constraints: how far from the manifold it is, in sizes of the states."""
    residuals = model.evaluate(point.time, point.states, point.inputs).residuals
    if not len(residuals):
        return
    scales = model.states.scales(point.states)
    gradient = np.empty((len(residuals), len(scales)))
    for i, scale in enumerate(scales):
        dx = 1e-5 * scale * np.eye(len(scales))[i]
        after = model.evaluate(point.time, point.states + dx, point.inputs).residuals
        before = model.evaluate(point.time, point.states - dx, point.inputs).residuals
        gradient[:, i] = (after - before) / 2e-5
    step = np.linalg.lstsq(gradient, residuals, rcond=1e-8)[0]
    yield compare(
        "distance from the constraints", 0.0, float(np.abs(step).max()), "step of least norm", START_GAP_TOLERANCE
    )


def _compare_rates(point: TrimmedPoint, model: Model) -> Iterator[AuditRow]:
    """Compare stated rates with the model's, and a state that rests with zero."""
    rates = model.evaluate(point.time, point.states, point.inputs).derivatives
    scales = model.states.scales(point.states)
    comparisons = [
        compare(f"rate of {name}", stated, second, "evaluation of the model", AUDITED_RATES * scale)
        for name, stated, second, scale in zip(model.states.names, point.report.rates, rates, scales, strict=True)
    ]
    yield from keep_worst(comparisons)
    moving = set(point.report.moving)
    at_rest = [
        compare(f"rate of {name}, at equilibrium", 0.0, second, "evaluation of the model", AUDITED_RATES * scale)
        for name, second, scale in zip(model.states.names, rates, scales, strict=True)
        if name not in moving
    ]
    yield from keep_worst(at_rest)
    sizes = dict(zip(model.states.names, scales.tolist(), strict=True))
    stated_sizes = [
        compare(f"size of {name}", stated, sizes[name], "nominal value of the model", AUDITED_RATES * sizes[name])
        for name, stated in point.report.certificate.sizes.items()
        if name in sizes
    ]
    yield from keep_worst(stated_sizes)
    largest = float(np.abs(rates / scales).max(initial=0.0)) if not moving else point.report.residual
    yield compare("report.residual", point.report.residual, largest, "rates of the model in sizes", AUDITED_RATES)
    request = point.request
    if request is None:
        return
    values = _collect_values(point, model)
    targets = {name: value for name, value in request.fixed.items() if name in values}
    comparisons = [
        compare(f"{name}, fixed", values[name], float(target), "request", 1e-9 * max(abs(float(target)), 1.0))
        for name, target in targets.items()
    ]
    yield from keep_worst(comparisons)


def _collect_values(point: OperatingPoint, model: Model) -> dict[str, float]:
    states = dict(zip(model.states.names, point.states.tolist(), strict=True))
    inputs = dict(zip(model.inputs.names, point.inputs.tolist(), strict=True))
    return {**states, **inputs, **point.parameters}


def _compare_newton_step(point: TrimmedPoint, model: Model) -> Iterator[AuditRow]:
    """Compare the point with the next step of Newton's method in the independent coordinates, inputs held.

    Where A is singular, equilibria form a family or meet: the step of least norm is taken.
    """
    if point.report.moving:
        return
    try:
        linear = linearize(model, point, keep_inaccurate=True)
    except FmilinError as error:  # the row of the constraints says how far off the point is
        yield compare_claim(f"model can be linearized at the point ({error})", "linearization", holds=False)
        return
    if not len(linear.A):
        return
    scales = model.states.scales(point.states)
    step = linear.T @ _solve_least_norm(linear.A, linear.f0)
    comparisons = [
        compare(f"step of {name}", 0.0, float(d), "Newton's method on the manifold", AUDITED_STEP * float(scale))
        for name, d, scale in zip(model.states.names, step, scales, strict=True)
    ]
    yield from keep_worst(comparisons)
    yield from _compare_stability(point, linear)
    if point.report.unstable is not None and point.report.unstable >= 0:
        values = linear.eigenvalues()
        size = float(np.abs(values).max(initial=0.0)) or 1.0
        growing = int(np.count_nonzero(values.real > 1e-6 * size))
        least = int(np.count_nonzero(values.real > 0))
        agrees = growing <= point.report.unstable <= max(least, growing)
        yield compare(
            "unstable eigenvalues", float(point.report.unstable), float(growing), "linear model at the point",
            0.0 if not agrees else float(abs(point.report.unstable - growing)),
        )  # fmt: skip


def _compare_stability(point: TrimmedPoint, linear: LinearModel) -> Iterator[AuditRow]:
    """Compare eigenvalues and the verdict with those of the linear model at the point."""
    way = "linear model at the point"
    report = point.report
    for name, stated in (
        ("report.eigenvalues", report.eigenvalues),
        ("report.stability.eigenvalues", None if report.stability is None else report.stability.eigenvalues),
    ):
        if stated is not None:
            yield from keep_worst(compare_spectrum(linear, stated, way, location=f" ({name})"))
    verdict = linear.stability().stable
    if report.stable is not None and verdict is not None:
        yield compare_claim("deviations do not grow", way, stated=report.stable, holds=verdict)


def _solve_least_norm(A: FloatArray, f: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(A, -f, rcond=1e-9)[0])
