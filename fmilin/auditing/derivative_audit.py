"""Derivatives of A, B, C and D by parameters, against linear models at displaced parameters.

The point moves as the derivative says. Whether it moves rightly is a comparison of its own: constraints keep holding,
equilibria stay equilibria, and the coordinates of any other point stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fmilin.auditing.audit_result import AuditRow, compare, keep_worst
from fmilin.errors import FmilinError
from fmilin.linearization.linearize import linearize
from fmilin.manifold.operating_points import assemble_branch_point
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_DERIVATIVES

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model

STEP = 1e-3  # of a parameter; again with half of it
WAY = "linear models at displaced parameters"


class ParameterDerivatives(NamedTuple):
    """Central differences by a parameter, the point moving."""

    matrices: dict[str, FloatArray]  # A to D
    rates: FloatArray  # (P,), of the coordinates
    rate_sizes: FloatArray  # (P,), of the terms that cancel at an equilibrium
    states: FloatArray  # (N,), the dependent ones as the constraints have them


def compare_derivatives(linear: LinearModel, model: Model) -> tuple[list[AuditRow], list[str]]:
    """Compare each derivative by a parameter of the model with central differences; say which cannot be compared."""
    rows: list[AuditRow] = []
    unchecked: list[str] = []
    for name, derivative in linear.derivatives.items():
        if name not in model.parameters:
            unchecked.append(f"derivatives by {name}: not a parameter that this model can change")
            continue
        value = float(model.parameters[name])
        tolerance = 1e-9 * max(abs(value), 1e-9)
        rows.append(compare(f"derivatives[{name}].value", derivative.value, value, "the model", tolerance))
        try:
            rough, fine = (_differentiate(linear, model, name, part * STEP) for part in (1.0, 0.5))
        except FmilinError as error:
            unchecked.append(f"derivatives by {name}: {error}")
            continue
        rows += _compare_matrices(linear, name, rough, fine)
        rows += _compare_motion(linear, name, rough, fine)
    return rows, unchecked


def _compare_matrices(
    linear: LinearModel, name: str, rough: ParameterDerivatives, fine: ParameterDerivatives
) -> Iterator[AuditRow]:
    derivative = linear.derivatives[name]
    signals = {
        "A": (linear.states, linear.states),
        "B": (linear.states, linear.inputs),
        "C": (linear.outputs, linear.states),
        "D": (linear.outputs, linear.inputs),
    }
    for part, (rows, columns) in signals.items():
        stated, second = getattr(derivative, part), fine.matrices[part]
        if not stated.size:
            continue
        largest = float(np.abs(getattr(linear, part)).max()) / max(abs(derivative.value), 1e-9)
        size = np.maximum(np.abs(stated), np.abs(second)).max(axis=1)[:, None]
        tolerance = AUDITED_DERIVATIVES * size + 1e-8 * largest + 4 * np.abs(rough.matrices[part] - second)
        yield from keep_worst(
            compare(f"derivatives[{name}].{part}[{rows.names[i]}, {columns.names[j]}]", float(stated[i, j]),
                    float(second[i, j]), WAY, float(tolerance[i, j]))
            for i, j in np.ndindex(stated.shape)
        )  # fmt: skip


def _compare_motion(
    linear: LinearModel, name: str, rough: ParameterDerivatives, fine: ParameterDerivatives
) -> Iterator[AuditRow]:
    """Compare how the point moves with what it keeps: the constraints, and the equilibrium or the coordinates."""
    derivative = linear.derivatives[name]
    quantity = f"derivatives[{name}].states and .inputs"
    names = linear.full_states.names
    if linear.is_equilibrium and (derivative.states.any() or derivative.inputs.any()):
        allowed = AUDITED_DERIVATIVES * fine.rate_sizes + 4 * np.abs(rough.rates - fine.rates)
        yield from keep_worst(
            compare(f"{quantity}: rate of {state}", 0.0, float(rate), "the point stays an equilibrium", float(limit))
            for state, rate, limit in zip(linear.states.names, fine.rates, allowed, strict=True)
        )
    elif not linear.is_equilibrium and set(linear.states.names) <= set(names):
        moved = [(state, derivative.states[names.index(state)]) for state in linear.states.names]
        moved += list(zip(linear.inputs.names, derivative.inputs, strict=True))
        yield from keep_worst(
            compare(f"{quantity}: {signal}", float(slope), 0.0, "the point keeps its coordinates", 1e-9)
            for signal, slope in moved
        )
    sizes = np.maximum(np.abs(derivative.states), np.abs(fine.states))
    floor = 1e-9 * (float(sizes.max(initial=0.0)) + 1.0)
    allowed = AUDITED_DERIVATIVES * sizes + floor + 4 * np.abs(rough.states - fine.states)
    yield from keep_worst(
        compare(f"{quantity}: {state}", float(stated), float(second), "the constraints keep holding", float(limit))
        for state, stated, second, limit in zip(names, derivative.states, fine.states, allowed, strict=True)
    )


def _differentiate(linear: LinearModel, model: Model, name: str, step: float) -> ParameterDerivatives:
    """Return central differences of the matrices, of the rates and of the states."""
    value = float(model.parameters[name])
    h = step * (abs(value) or 1.0)
    after, before = (_linearize_changed(linear, model, name, side * h, moves=True) for side in (1.0, -1.0))
    still = _linearize_changed(linear, model, name, h, moves=False)
    matrices = {part: (getattr(after[0], part) - getattr(before[0], part)) / (2 * h) for part in "ABCD"}
    rates = (after[0].f0 - before[0].f0) / (2 * h)
    rate_sizes = np.abs(still[0].f0 - after[0].f0) / h
    states = (after[1] - before[1]) / (2 * h)
    return ParameterDerivatives(matrices, rates, rate_sizes + float(rate_sizes.max(initial=0.0)), states)


def _linearize_changed(
    linear: LinearModel, model: Model, name: str, h: float, *, moves: bool
) -> tuple[LinearModel, FloatArray]:
    """Return the linear model with another value of a parameter, and its states, which close the loops."""
    derivative = linear.derivatives[name]
    changed = model.with_parameters({**linear.point.parameters, name: float(model.parameters[name]) + h})
    changed = changed.with_interface(linear.inputs.names, linear.outputs.names)
    x = np.array([linear.point.states[state] for state in changed.states.names])
    u = np.array([linear.point.inputs[state] for state in changed.inputs.names])
    if moves:
        x, u = x + h * derivative.states, u + h * derivative.inputs
    point = OperatingPoint(linear.point.time, x, u, dict(changed.start.parameters))
    if len(changed.constraints):
        independent_values = {state: float(x[changed.states.index_of(state)]) for state in linear.states.names}
        point = assemble_branch_point(PointEvaluator(changed), point.time, x, u, independent_values)
    return linearize(changed, point, independent=linear.states.names, keep_inaccurate=True), point.states
