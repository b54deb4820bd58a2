"""A, B, C, D, T and f0 of a linear model against its model, by plain central differences.

Central differences along T need no point of the manifold: x0 + h T e and x0 - h T e leave it by the same h^2, which
cancels in the difference of their rates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fmilin.auditing.audit_result import AuditRow, compare, keep_worst
from fmilin.errors import FmilinError
from fmilin.linear_model.model import LinearModel
from fmilin.model.capabilities import read_constraint_residuals
from fmilin.model.interface import Model
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDIT_DIFFERENCE_TOLERANCE

STEP = 1e-4  # of central differences, in sizes of the variables; again with half of it


def compare_with_differences(linear: LinearModel, model: Model) -> Iterator[AuditRow]:
    """Compare A, B, C, D, T and f0 with the model's rates and outputs around the point."""
    view = model.with_interface(linear.inputs.names, linear.outputs.names)
    t = linear.point.time
    x = np.array([linear.point.states[name] for name in view.states.names])
    u = np.array([linear.point.inputs[name] for name in view.inputs.names])
    if view.states.names != linear.full_states.names:
        return
    at = view.evaluate(t, x, u)
    values = np.array([linear.point.outputs[name] for name in linear.outputs.names])
    comparisons = [
        compare(f"output {name}", stated, second, "evaluation of the model", 1e-6 * max(abs(second), 1e-6))
        for name, stated, second in zip(linear.outputs.names, values, at.outputs, strict=True)
    ]
    yield from keep_worst(comparisons)
    chosen = _choose_rows(linear)
    f0 = linear.f0
    if chosen is not None:
        sizes = np.abs(at.derivatives).max(initial=0.0) + 1e-3 * float(linear.states.scales(linear.y0).min(initial=1.0))
        pairs = [
            compare(f"f0[{name}]", f0[i], float(chosen[i] @ at.derivatives), "evaluation of the model", 1e-6 * sizes)
            for i, name in enumerate(linear.states.names)
        ]
        yield from keep_worst(pairs)
    yield from _compare_gradient(linear, view, t, x, u)
    if chosen is None:
        return
    x_scales, u_scales = view.states.scales(x), view.inputs.scales(u)
    slopes = {}
    for part in (1.0, 0.5):
        try:
            slopes[part] = _differentiate(linear, view, (t, x, u), (x_scales, u_scales), part * STEP)
        except FmilinError:
            return
    for number, (name, matrix, error) in enumerate(
        (("A", linear.A, linear.errors.A), ("B", linear.B, linear.errors.B),
         ("C", linear.C, linear.errors.C), ("D", linear.D, linear.errors.D))
    ):  # fmt: skip
        rough, fine = (slopes[part][number] for part in (1.0, 0.5))
        if name in "AB":
            rough, fine = chosen @ rough, chosen @ fine
        yield from _compare_entries(linear, name, matrix, error, (rough, fine))


def _choose_rows(linear: LinearModel) -> FloatArray | None:
    """Return what takes rates of the coordinates from those of all states: y' = R x'."""
    names = linear.full_states.names
    if set(linear.states.names) <= set(names):
        return np.eye(len(names))[[names.index(name) for name in linear.states.names]]
    at_rest = float(np.abs(linear.f0).max(initial=0.0)) <= 1e-9
    return np.asarray(np.linalg.pinv(linear.T), dtype=np.float64) if at_rest else None


def _differentiate(
    linear: LinearModel,
    model: Model,
    at: tuple[float, FloatArray, FloatArray],
    scales: tuple[FloatArray, FloatArray],
    step: float,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the derivatives of rates and outputs along T and the inputs by central differences."""
    t, x, u = at
    rates, outputs = [], []
    for dx in linear.T.T:
        h = step / float((np.abs(dx) / scales[0]).max() or 1.0)
        after, before = model.evaluate(t, x + h * dx, u), model.evaluate(t, x - h * dx, u)
        rates.append((after.derivatives - before.derivatives) / (2 * h))
        outputs.append((after.outputs - before.outputs) / (2 * h))
    for j in range(len(u)):
        h = step * float(scales[1][j])
        du, dx = h * np.eye(len(u))[j], h * linear.T_u[:, j]
        after, before = model.evaluate(t, x + dx, u + du), model.evaluate(t, x - dx, u - du)
        rates.append((after.derivatives - before.derivatives) / (2 * h))
        outputs.append((after.outputs - before.outputs) / (2 * h))
    P = linear.T.shape[1]
    F = np.array(rates).reshape(P + len(u), len(x)).T
    G = np.array(outputs).reshape(P + len(u), len(linear.outputs)).T
    return F[:, :P], F[:, P:], G[:, :P], G[:, P:]


def _compare_entries(
    linear: LinearModel, name: str, matrix: FloatArray, error: FloatArray, differences: tuple[FloatArray, FloatArray]
) -> Iterator[AuditRow]:
    rough, fine = differences
    rows = linear.states.names if name in "AB" else linear.outputs.names
    columns = linear.states.names if name in "AC" else linear.inputs.names
    if not matrix.size or not np.isfinite(fine).all():
        return
    largest = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), np.abs(fine).max(axis=1, initial=0.0))
    floor = AUDIT_DIFFERENCE_TOLERANCE * np.maximum(largest, 1e-6 * largest.max(initial=0.0))[:, None]
    tolerance = 3 * error + 4 * np.abs(rough - fine) + floor
    way = "central differences"
    comparisons = [
        compare(f"{name}[{rows[i]}, {columns[j]}]", float(matrix[i, j]), float(fine[i, j]), way, float(tolerance[i, j]))
        for i, j in np.ndindex(matrix.shape)
    ]
    yield from keep_worst(comparisons)


def _compare_gradient(linear: LinearModel, model: Model, t: float, x: FloatArray, u: FloatArray) -> Iterator[AuditRow]:
    """Compare T with the constraints: their residuals must not change along it."""
    if not len(model.constraints) or not linear.T.size:
        return
    scales = model.states.scales(x)
    residual = read_constraint_residuals(model, t, x, u)
    at_point = model.evaluate(t, x, u).residuals if residual is None else residual
    sizes = _measure_residuals(model, t, x, u, scales)
    comparisons = []
    still = np.zeros((len(u), linear.T.shape[1]))
    input_scales = model.inputs.scales(u)
    groups = (("T", linear.states.names, linear.T, still), ("T_u", linear.inputs.names, linear.T_u, np.eye(len(u))))
    for matrix, names, X, U in groups:
        for name, dx, du in zip(names, X.T, U.T, strict=True):
            parts = np.concatenate((np.abs(dx) / scales, np.abs(du) / input_scales))
            h = STEP / float(parts.max(initial=0.0) or 1.0)
            after = model.evaluate(t, x + h * dx, u + h * du).residuals
            before = model.evaluate(t, x - h * dx, u - h * du).residuals
            change = np.abs(after - before) / (2 * h) / sizes
            error = 1e-6 + 10 * STEP**2
            quantity = f"change of the constraints along {matrix}[:, {name}]"
            largest = float(change.max(initial=0.0))
            comparisons.append(compare(quantity, 0.0, largest, "central differences", error * float(parts.sum())))
    if len(at_point):
        yield from keep_worst(comparisons)


def _measure_residuals(model: Model, t: float, x: FloatArray, u: FloatArray, scales: FloatArray) -> FloatArray:
    """Return by how much each residual changes with the states, each moved by its size."""
    total = np.zeros(len(model.evaluate(t, x, u).residuals))
    for i, scale in enumerate(scales):
        dx = STEP * scale * np.eye(len(x))[i]
        total += np.abs(model.evaluate(t, x + dx, u).residuals - model.evaluate(t, x - dx, u).residuals) / (2 * STEP)
    return np.where(total > 0, total, 1.0)
